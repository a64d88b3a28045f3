#!/usr/bin/env bash
# Stopping and going on: by signal, once or often, in each way of updating, bit for bit as if it had never stopped.
source "$(dirname "$0")/common.sh"
source "$(dirname "$0")/resume_help.sh"
make_data
make_model

same_evaluations() { # RUN RUN: in their metrics
    python3 - "$1" "$2" <<'END' || die "the evaluations of $1 and $2 differ"
import json, sys
def evals(run):
    events = map(json.loads, open(run + "/metrics.jsonl"))
    return [(e["epoch"], e["step"], e["loss"], e["accuracy"]) for e in events if e["event"] == "eval"]
assert evals(sys.argv[1]) == evals(sys.argv[2]), (evals(sys.argv[1]), evals(sys.argv[2]))
END
}

same_counts() { # RUN RUN: each rank's in the summaries; the second was stopped and went on
    python3 - "$1" "$2" <<'END' || die "the counts of $1 and $2 differ"
import glob, json, sys
whole, parts = (json.load(open(run + "/summary.json")) for run in sys.argv[1:])
for mine, other in zip(whole["ranks"], parts["ranks"]):
    for key in ("samples", "steps", "share", "submissions", "bytes_sent", "bytes_received",
                "payload_bytes_sent", "payload_bytes_received"):
        assert mine[key] == other[key], (key, mine, other)
for key in ("staleness", "shard_spread"):
    assert parts[key] == whole[key], (key, parts[key], whole[key])
# Times and memory have no value to be equal to, but go up from part to part.
states = sorted(glob.glob(sys.argv[2] + "/checkpoints/*/rank-0.json"))
rank = parts["ranks"][0]
assert len(states) == 2, states
before = {}
for saved in map(json.load, map(open, states)):
    for key in ("compute_ns", "path_ns", "work_ns", "wait_ns", "data_wait_ns", "eval_ns", "comm_cpu_ns"):
        seconds = rank[key.replace("_ns", "_s")]
        assert before.get(key, 0) <= saved[key] <= seconds * 1e9 * (1 + 1e-6), (key, saved, rank)
        before[key] = saved[key]
    assert 0 < saved["peak_rss_bytes"] <= rank["peak_rss_bytes"], (saved, rank)
    assert 0 < saved["comm_cpu_ns"] and 0 < saved["seconds"] < parts["seconds"], (saved, parts)
assert rank["compute_s"] + rank["wait_s"] + rank["eval_s"] < parts["seconds"] * 1.001, parts
*_, end = map(json.loads, open(sys.argv[2] + "/metrics.jsonl"))
assert end["event"] == "end" and end["seconds"] >= parts["seconds"], (end, parts)
for event in map(json.loads, open(sys.argv[2] + "/metrics.jsonl")):
    assert 0 <= event.get("rank_wait", 0) <= 1.001 and 0 <= event.get("data_wait", 0) <= 1.001, event
END
}

# ---- by signal, and bit for bit as if it had never stopped ----

stop_by_signal() { # RUN SIGNAL COMMAND...: leaves RUN with a checkpoint
    local run=$1 signal=$2
    shift 2
    start "$@" --output "$run"
    await_steps "$run"
    kill -s "$signal" "$pid"
    finish 75
    stopped "$run"
}

run 0 "$train" "${common[@]}" "${lasts[@]}" --output runs/local
# The time that is left is that of the samples that are left, as fast as those of the interval.
python3 - $((100 * n_epochs)) <<'END' || die "the time that is left"
import re, sys
total = int(sys.argv[1])
lines = re.findall(r"^step (\d+)/(\d+) .* (\d+) img/s .* eta (\d+):(\d\d)$", open("err").read(), re.M)
assert len(lines) == total, len(lines)
for step, of, speed, minutes, seconds in (map(int, line) for line in lines):
    left, eta = 20 * (total - step), 60 * minutes + seconds
    assert of == total and left / (speed + 0.5) - 1 <= eta <= left / max(speed - 0.5, 0.1), (step, speed, eta)
END
attended=(env --default-signal=INT) # which a shell without job control ignores for its background
for signal in TERM USR1 INT; do
    [ $signal = USR1 ] || variants || continue
    stop_by_signal runs/local-$signal $signal "${attended[@]}" "$train" "${common[@]}" "${lasts[@]}"
    run 0 "$train" "${common[@]}" "${lasts[@]}" --output runs/local-$signal --resume auto
    says "going on from runs/local-$signal/checkpoints/step-"
    same_weights runs/local runs/local-$signal
done
# Twice, and from elsewhere into a new run.
stop_by_signal runs/twice TERM "$train" "${common[@]}" "${lasts[@]}"
lines=$(grep -c '"event": "step"' runs/twice/metrics.jsonl)
start "$train" "${common[@]}" "${lasts[@]}" --output runs/twice --resume auto
until [ "$(grep -c '"event": "step"' runs/twice/metrics.jsonl)" -gt "$lines" ]; do
    kill -0 "$pid" || die "ended too early"
    sleep 0.01
done
kill -s TERM "$pid"
finish 75
stopped runs/twice
run 0 "$train" "${common[@]}" "${lasts[@]}" --output runs/thrice --resume runs/twice
same_weights runs/local runs/thrice
run 0 "$train" "${common[@]}" "${lasts[@]}" --output runs/twice --resume runs/twice
same_weights runs/local runs/twice
# The counts of a run are those of all its parts.
check_json runs/twice/summary.json "d['epochs'] == $n_epochs" "d['steps'] == 100 * $n_epochs" \
    "d['ranks'][0]['samples'] == 2000 * $n_epochs and d['ranks'][0]['steps'] == 100 * $n_epochs"

# From a checkpoint of before times in steps were told apart: of that part they count as work.
run 0 "$train" "${common[@]}" "${lasts[@]}" --output runs/older --checkpoint-every $((90 * n_epochs))
cut_back runs/older
older_times runs/older
before=$(python3 -c 'import json, sys; d = json.load(open(sys.argv[1])); print((d["compute_ns"] - d["data_wait_ns"]) * 1e-9)' \
    "$(newest runs/older)/rank-0.json")
run 0 "$train" "${common[@]}" "${lasts[@]}" --output runs/older --resume auto --checkpoint-every 70 --checkpoint-keep 100
same_weights runs/local runs/older
# Evaluations and checkpoints come where they would have come, by the steps of the whole job.
python3 - runs/older $((90 * n_epochs)) $((100 * n_epochs)) <<'END' || die "evaluations or checkpoints of a run that goes on"
import json, os, sys
run, begin, end = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])
events = [json.loads(line) for line in open(run + "/metrics.jsonl")]
start = max(i for i, e in enumerate(events) if e["event"] == "start")
assert events[start]["step"] == begin, events[start]
assert [e["step"] for e in events[start:] if e["event"] == "eval"] == [end], events[start:]
wanted = ["step-%08d" % step for step in [begin] + [s for s in range(0, end, 70) if s > begin]]
assert sorted(os.listdir(run + "/checkpoints")) == wanted, os.listdir(run + "/checkpoints")
END
check_json runs/older/summary.json "$before < d['ranks'][0]['work_s'] < d['ranks'][0]['compute_s']" \
    "0 < d['ranks'][0]['path_s'] < d['ranks'][0]['compute_s'] - $before"

for options in "sgwu --partition even" allreduce; do
    update=${options%% *}
    # shellcheck disable=SC2086 # several words
    both=("${common[@]}" "${lasts[@]}" --update $options)
    run 0 ranks 2 "$train" "${both[@]}" --output runs/$update
    # One rank is told; all stop at the same moment.
    start_ranks 2 "$train" "${both[@]}" --output runs/$update-stop
    await_steps runs/$update-stop
    kill -s TERM "$(rank_process 2)" || die "no second rank"
    finish 75
    stopped runs/$update-stop
    # mpirun passes SIGUSR1 on to all.
    start_ranks 2 "$train" "${both[@]}" --output runs/$update-stop --resume auto
    # What is left takes half a second.
    until grep -q "going on from" runs/$update-stop/log.rank-1.txt; do
        kill -0 "$pid" || die "it does not go on"
        sleep 0.01
    done
    kill -s USR1 "$pid"
    finish 75
    stopped runs/$update-stop
    run 0 ranks 2 "$train" "${both[@]}" --output runs/$update-stop --resume auto
    same_weights runs/$update runs/$update-stop
    same_evaluations runs/$update runs/$update-stop
    same_counts runs/$update runs/$update-stop
done

# Among unlike ranks, too, whose speeds are guessed here from the numbers of threads. In each round rank 0 makes one step,
# which is more than its part: what the others bring looks like little, for as long as it goes on.
guessed=("${common[@]}" --update sgwu --partition idpa --calibrate 0 --rebalance 0 --idpa-rounds 1 --sync-every 1
    --epochs 1 --eval-every 0 --checkpoint-every 20)
guess() { # OPTION...
    run 0 ranks 3 "${unlike[@]}" "$train" "${guessed[@]}" "$@" --others "$train" "${guessed[@]}" --threads 4 "$@"
}
guess --output runs/guessed
grep -qE 'shares by rank 1[0-5]\.' err || die "not the shares that this is about"
cp -r runs/guessed runs/guessed-on
cut_back runs/guessed-on
guess --output runs/guessed-on --resume auto
says "going on from runs/guessed-on/checkpoints/step-"
same_weights runs/guessed runs/guessed-on
# Where a round has more steps, a rank makes as many as its part of the data is worth.
guess --sync-every 4 --output runs/weighted
check_json runs/weighted/summary.json 'all(r["steps"] >= 5 * d["ranks"][0]["steps"] > 0 for r in d["ranks"][1:])'

# Where every meeting is for an evaluation, the one to stop is too: it is made after the resume.
mkdir few && (cd few && make_data 2000 60) || die "data"
often=(--data few/data --lr 0.01 --epochs 2 --eval-every 0.001) # about a second
# One rank needs no mpirun, which takes two seconds over a rank that stops.
start_often() { # OPTION...
    if [ "$n" -eq 1 ]; then
        start "$train" "${both[@]}" "$@"
    else
        start_ranks "$n" "$train" "${both[@]}" "$@"
    fi
}
last_rank() {
    if [ "$n" -eq 1 ]; then echo "$pid"; else rank_process "$n"; fi
}
for options in "1 local" "2 sgwu --partition even --sync-every 1" "2 allreduce"; do
    [ "$options" = "2 allreduce" ] || variants || continue
    # shellcheck disable=SC2206 # several words
    words=($options)
    n=${words[0]} name=runs/often-${words[1]}
    both=("${common[@]}" "${often[@]}" --update "${words[@]:1}")
    run 0 ranks "$n" "$train" "${both[@]}" --output "$name"
    for _ in 1 2 3 4 5; do # until the signal comes before the end does
        rm -rf "$name-stop"
        start_often --output "$name-stop"
        await "$name-stop/metrics.jsonl" '"event": "eval"'
        kill -s TERM "$(last_rank)" 2>/dev/null
        await_exit
        [ $status -eq 0 ] || break
    done
    [ $status -eq 75 ] || die "exit status $status instead of 75: $name"
    # Once more, perhaps while that evaluation is made; it may also come to its end before it is told.
    start_often --output "$name-stop" --resume auto
    await "$name-stop/log.rank-$((n - 1)).txt" "going on from"
    kill -s TERM "$(last_rank)" 2>/dev/null
    await_exit
    [ $status -eq 75 ] || [ $status -eq 0 ] || die "exit status $status instead of 75: $name"
    run 0 ranks "$n" "$train" "${both[@]}" --output "$name-stop" --resume auto
    same_weights "$name" "$name-stop"
    same_evaluations "$name" "$name-stop"
done

# ---- SIGHUP saves and goes on; --checkpoint-keep ----

start "$train" "${common[@]}" "${lasts[@]}" --output runs/hup
await_steps runs/hup
kill -s HUP "$pid"
finish 0
[ "$(find runs/hup/checkpoints -name DONE | wc -l)" -eq 1 ] || die "SIGHUP saved no checkpoint"
same_weights runs/local runs/hup

for keep in 1 4; do
    run 0 "$train" "${common[@]}" --epochs 1 --output runs/keep-$keep --checkpoint-every 10 \
        --checkpoint-keep $keep
    # The end itself needs none: steps 10 to 90.
    wanted=$(for ((i = 10 - keep; i < 10; i++)); do echo step-000000${i}0; done)
    [ "$(ls runs/keep-$keep/checkpoints)" = "$wanted" ] ||
        die "--checkpoint-keep $keep left $(ls runs/keep-$keep/checkpoints)"
done

# ---- a second SIGINT ends at once ----

start "${attended[@]}" "$train" "${common[@]}" --epochs 1000 --output runs/int \
    --model lenet --batch-size 1000 # a step takes so long that more than one signal comes within it
await runs/int/metrics.jsonl '"event": "start"'
for ((i = 0; i < 1000; i++)); do # one alone would come to 75, at the end of the step
    kill -s INT "$pid" 2>/dev/null || break
    sleep 0.005
done
finish 130 20

# ---- who reads the messages may end before ----

"$train" "${common[@]}" --epochs 1 --log-interval 0 --output runs/unread 2>&1 | head -1 >/dev/null
status=${PIPESTATUS[0]}
[ $status -eq 0 ] || die "exit status $status where the reader of messages ends"
check_json runs/unread/summary.json 'd["test_accuracy"] > 0'

# ---- stopped during the last evaluation: neither lost nor called done ----

mkdir long && (cd long && make_data 200 20000) || die "data"
in_evaluation=0
for delay in 0.15 0.1 0.2 0.05 0.3 0.5 0.8 1.2 2 4; do
    rm -rf runs/last
    start "$train" "${common[@]}" --data long/data --batch-size 1 --epochs 0.1 --output runs/last
    await runs/last/metrics.jsonl '"event": "start"'
    sleep "$delay"
    kill -s TERM "$pid" 2>/dev/null
    wait "$pid"
    status=$?
    [ $status -eq 0 ] && continue # it was over already
    [ $status -eq 75 ] || die "exit status $status after SIGTERM near the end"
    stopped runs/last
    [ -d runs/last/checkpoints/step-00000020 ] && in_evaluation=1 && break # no step is left
done
[ $in_evaluation -eq 1 ] || die "no stop came within the last evaluation"
run 0 "$train" "${common[@]}" --data long/data --batch-size 1 --epochs 0.1 \
    --output runs/last --resume auto
check_json runs/last/summary.json 'd["test_accuracy"] > 0 and d["test_loss"] > 0'
