#!/usr/bin/env bash
# Stopping and going on: by signal, by a killed rank, on other ranks, from damaged checkpoints.
source "$(dirname "$0")/common.sh"
make_data
make_model
lasts=(--lr 0.01 --epochs 16 --eval-every 4) # about a second

newest() { # RUN: its newest whole checkpoint
    find "$1/checkpoints" -name DONE | sort | tail -n 1 | xargs -r dirname
}

stopped() { # RUN: ended early, checkpoint whole, nothing of an end
    says "checkpoint saved"
    says "--resume auto"
    [ "$(grep -c '^bpt-train: ' err)" -eq 1 ] || die "not one line that says it stopped"
    [ -n "$(newest "$1")" ] || die "no whole checkpoint in $1"
    [ ! -e "$1/summary.json" ] || die "a stopped run has a summary"
}

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
    for key in ("compute_ns", "wait_ns", "data_wait_ns", "eval_ns", "comm_cpu_ns"):
        seconds = rank[key.replace("_ns", "_s")]
        assert before.get(key, 0) <= saved[key] <= seconds * 1e9 * (1 + 1e-6), (key, saved, rank)
        before[key] = saved[key]
    assert 0 < saved["peak_rss_bytes"] <= rank["peak_rss_bytes"], (saved, rank)
    assert 0 < saved["comm_cpu_ns"] and 0 < saved["seconds"] < parts["seconds"], (saved, parts)
assert rank["compute_s"] + rank["wait_s"] + rank["eval_s"] < parts["seconds"] * 1.001, parts
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
for signal in TERM USR1 INT; do
    stop_by_signal runs/local-$signal $signal "$train" "${common[@]}" "${lasts[@]}"
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
check_json runs/twice/summary.json 'd["epochs"] == 16' 'd["steps"] == 1600' \
    'd["ranks"][0]["samples"] == 32000 and d["ranks"][0]["steps"] == 1600'

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
    # shellcheck disable=SC2206 # several words
    words=($options)
    n=${words[0]} name=runs/often-${words[1]}
    both=("${common[@]}" "${often[@]}" --update "${words[@]:1}")
    run 0 ranks "$n" "$train" "${both[@]}" --output "$name"
    start_often --output "$name-stop"
    await "$name-stop/metrics.jsonl" '"event": "eval"'
    kill -s TERM "$(last_rank)" || die "rank $n of $name is not there"
    finish 75
    # Once more, perhaps while that evaluation is made.
    start_often --output "$name-stop" --resume auto
    await "$name-stop/log.rank-$((n - 1)).txt" "going on from"
    kill -s TERM "$(last_rank)" || die "rank $n of $name is not there"
    finish 75
    run 0 ranks "$n" "$train" "${both[@]}" --output "$name-stop" --resume auto
    same_weights "$name" "$name-stop"
    same_evaluations "$name" "$name-stop"
done

# agwu depends on who comes first; it goes on from where all ranks met, and ends well.
both=("${common[@]}" "${lasts[@]}" --update agwu)
start_ranks 2 "$train" "${both[@]}" --output runs/agwu
await_steps runs/agwu
kill -s TERM "$(rank_process 1)"
finish 75
stopped runs/agwu
before=$(newest runs/agwu)
cp -r runs/agwu runs/agwu-worked
run 0 ranks 2 "$train" "${both[@]}" --output runs/agwu --resume auto
check_json runs/agwu/summary.json 'd["test_accuracy"] > 0.5' '16 <= d["epochs"] < 17' \
    'sum(r["samples"] for r in d["ranks"]) == d["samples"]' \
    'math.isclose(sum(r["share"] for r in d["ranks"]), 1)' \
    'sum(r["submissions"] for r in d["ranks"]) * 2 * d["weight_bytes"] == sum(r["payload_bytes_sent"] for r in d["ranks"])' \
    'sum(r["submissions"] for r in d["ranks"]) * len(d["ranks"]) == sum(d["staleness"])'
# A replay would begin where the logs do, in the middle.
fails_well 2 "$train" --replay runs/agwu
says "bpt-train: runs/agwu cannot be replayed: it was resumed, the last time at epoch "
says "hint: train it again, from its beginning to its end"

# The speed of a rank, by which the data is given out, is that of what it does now: time that it spent
# before the stop, here of thirty years, is not set against the samples of the first push.
worked=$(newest runs/agwu-worked)
sed -i -E 's/"compute_ns": [0-9]+/"compute_ns": 1000000000000000000/' "$worked/rank-1.json"
python3 - "$worked/DONE" >sealed <<'END' || die "$worked/DONE"
import json, sys
done = json.load(open(sys.argv[1]))
print(done["serial"], *(file["name"] for file in done["files"]))
END
# shellcheck disable=SC2046 # several words
"${BPT_HELPERS:?}/seal_checkpoint" "$worked" $(cat sealed) || die "seal_checkpoint"
run 0 ranks 2 "$train" "${both[@]}" --output runs/agwu-worked --resume auto --checkpoint-every 10 \
    --checkpoint-keep 1000
for state in runs/agwu-worked/checkpoints/*/rank-0.json; do
    check_json "$state" 'all(ns < 1e9 * n for ns, n in zip(*map(d["exchange"]["coordinator"].get, ["timed_ns", "timed_samples"])))'
done

# ---- other ranks, other options ----

run 0 ranks 3 "$train" "${both[@]}" --output runs/agwu-on-3 --resume "$before"
says "the number of ranks differs"
check_json runs/agwu-on-3/summary.json 'd["test_accuracy"] > 0.5' 'len(d["ranks"]) == 3'
fails_well 2 "$train" --replay runs/agwu-on-3
says "bpt-train: runs/agwu-on-3 cannot be replayed: it went on from $before"
run 0 "$train" "${common[@]}" "${lasts[@]}" --output runs/agwu-on-1 --resume "$before"
check_json runs/agwu-on-1/summary.json 'd["test_accuracy"] > 0.5' 'd["update"] == "local"'
run 0 ranks 2 "$train" "${both[@]}" --partition even --output runs/agwu-even --resume "$before"
says "(--partition differs)"
run 0 ranks 2 "$train" "${both[@]}" --gamma lag --output runs/agwu-lag --resume "$before"
says "(--gamma differs)"
run 0 ranks 2 "$train" "${both[@]}" --idpa-rounds 2 --output runs/agwu-rounds --resume "$before"
says "(--idpa-rounds differs)"
run 0 ranks 4 "$train" "${common[@]}" "${lasts[@]}" --update allreduce \
    --output runs/agwu-sum --resume "$before"
run 0 ranks 2 "$train" "${both[@]}" --seed 5 --output runs/agwu-seed --resume "$before"
says "--seed differs"
run 3 ranks 2 "$train" "${both[@]}" --model lenet --output runs/agwu-lenet --resume "$before"

# Without momentum and with one rate nothing is left of another job but the order of samples. Under
# local and allreduce it goes on, whatever the number of ranks; the warning says what it does.
plain=("${common[@]}" --momentum 0 --schedule constant --warmup-epochs 0)
orders=("the optimiser's state starts anew, the order of samples goes on"
    "the optimiser's state starts anew, the samples come in another order"
    "the optimiser's state and the order of samples start anew")
run 0 "$train" "${plain[@]}" --epochs 2 --checkpoint-every 150 --output runs/plain
run 0 "$train" "${plain[@]}" --epochs 3 --output runs/plain-3
from=runs/plain/checkpoints/step-00000150
goes_on() { # NAME ORDER RANKS OPTION...: from the checkpoint of the plain run, with 3 epochs
    local name=$1 order=$2 n=$3
    shift 3
    run 0 ranks "$n" "$train" "${plain[@]}" --epochs 3 "$@" --output "runs/plain-$name" --resume $from
    says "${orders[$order]}"
    [ "$(grep -c 'is of another job' err)" -eq 1 ] || die "not one warning"
}
goes_on epochs 0 1
same_weights runs/plain-3 runs/plain-epochs
goes_on ranks 0 2 --update allreduce
near_weights runs/plain-3 runs/plain-ranks 1e-5
goes_on batch 0 1 --batch-size 30
goes_on seed 1 1 --seed 2
goes_on agwu 2 2 --update agwu
from=$before goes_on from-agwu 1 1

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

# SIGINT is ignored by what bash puts in the background, unless it is given back.
start python3 -c 'import os, signal, sys
signal.signal(signal.SIGINT, signal.SIG_DFL)
os.execv(sys.argv[1], sys.argv[1:])' "$train" "${common[@]}" --epochs 1000 --output runs/int \
    --model lenet --batch-size 1000 # a step takes so long that more than one signal comes within it
await runs/int/metrics.jsonl '"event": "start"'
for ((i = 0; i < 1000; i++)); do # one alone would come to 75, at the end of the step
    kill -s INT "$pid" 2>/dev/null || break
    sleep 0.005
done
finish 130 20

# ---- stopped during the last evaluation: neither lost nor called done ----

mkdir long && (cd long && make_data 200 20000) || die "data"
start "$train" "${common[@]}" --data long/data --batch-size 1 --epochs 0.1 --output runs/last
await runs/last/metrics.jsonl '"event": "start"'
sleep 0.15
kill -s TERM "$pid" 2>/dev/null
wait "$pid"
status=$?
if [ $status -eq 75 ]; then
    stopped runs/last
    run 0 "$train" "${common[@]}" --data long/data --batch-size 1 --epochs 0.1 \
        --output runs/last --resume auto
elif [ $status -ne 0 ]; then
    die "exit status $status after SIGTERM near the end"
fi
check_json runs/last/summary.json 'd["test_accuracy"] > 0 and d["test_loss"] > 0'

# ---- a rank that is killed ----

for update in agwu sgwu; do
    start_ranks 2 "$train" "${common[@]}" "${lasts[@]}" --epochs 1000 --update $update \
        --checkpoint-every 20 --output runs/killed-$update
    await runs/killed-$update/log.rank-0.txt "info: checkpoint "
    kill -s KILL "$(rank_process 2)"
    left=300
    while kill -0 "$pid" 2>/dev/null; do
        [ $((left--)) -gt 0 ] || die "mpirun lives 30 s after a rank was killed"
        sleep 0.1
    done
    wait "$pid" && die "mpirun ends with status 0 after a rank was killed"
    pgrep -f "$work/" >/dev/null && pgrep -P "$pid" && die "processes are left"
    epoch=$(grep -o 'info: checkpoint .* at epoch .*' runs/killed-$update/log.rank-0.txt | tail -n 1 | grep -o '[0-9.]*$')
    run 0 ranks 2 "$train" "${common[@]}" --lr 0.01 --update $update \
        --epochs "$(python3 -c "print(float('$epoch') + 3)")" --output runs/killed-$update --resume auto
    check_json runs/killed-$update/summary.json 'd["test_accuracy"] > 0.2'
done

# ---- checkpoints that are not whole, or damaged ----

damage() { # FILE: flips a bit in its middle
    python3 - "$1" <<'END'
import sys
data = bytearray(open(sys.argv[1], "rb").read())
data[len(data) // 2] ^= 1
open(sys.argv[1], "wb").write(data)
END
}

parts=("${common[@]}" --lr 0.01 --epochs 3)
run 0 "$train" "${parts[@]}" --output runs/whole --checkpoint-every 100
rm -f runs/whole/summary.json
# Without DONE it is not there.
cp -r runs/whole runs/undone
rm runs/undone/checkpoints/step-00000200/DONE
run 0 "$train" "${parts[@]}" --output runs/undone --resume auto
says "going on from runs/undone/checkpoints/step-00000100"
same_weights runs/whole runs/undone

for file in model.safetensors rank-0.momentum.safetensors rank-0.json DONE; do
    rm -rf runs/damaged
    cp -r runs/whole runs/damaged
    damage runs/damaged/checkpoints/step-00000200/$file
    fails_well 3 "$train" "${parts[@]}" --output runs/damaged --resume auto
    says "step-00000200/"
    [ $file = DONE ] || says "step-00000200/$file is damaged"
    # What the hint says, word for word.
    proposal=$(sed -n 's/^hint: .*\(--resume [^ ]*\).*/\1/p' err)
    [ "$proposal" = "--resume runs/damaged/checkpoints/step-00000100" ] || die "proposed: $proposal"
    # shellcheck disable=SC2086 # two words
    run 0 "$train" "${parts[@]}" --output runs/damaged $proposal
    same_weights runs/whole runs/damaged
    # Likewise where the damaged one is named.
    fails_well 3 "$train" "${parts[@]}" --output runs/new --resume runs/damaged/checkpoints/step-00000200/
    says "--resume runs/damaged/checkpoints/step-00000100"
    [ ! -e runs/new/summary.json ] || die "it went on nevertheless"
    (
        cd runs/damaged/checkpoints || exit
        fails_well 3 "$train" "${parts[@]}" --data "$work/data" --model "$work/tiny.yaml" \
            --output "$work/runs/new" --resume step-00000200/
        says "--resume ./step-00000100"
    ) || exit 1
    rm -rf runs/new
done
rm -f runs/damaged/checkpoints/step-00000200/model.safetensors runs/damaged/summary.json
fails_well 3 "$train" "${parts[@]}" --output runs/damaged --resume auto
rm -rf runs/damaged/checkpoints/step-00000100
fails_well 3 "$train" "${parts[@]}" --output runs/damaged --resume auto
says "no earlier whole checkpoint"
run 0 "$train" "${parts[@]}" --output runs/damaged --force
same_weights runs/whole runs/damaged

# A format of tomorrow is refused, not guessed at.
step=runs/newer/checkpoints/step-00000200
cp -r runs/whole runs/newer
sed -i 's/"format": 2/"format": 3/' $step/rank-0.json
"${BPT_HELPERS:?}/seal_checkpoint" $step 2 rank-0.json rank-0.momentum.safetensors model.safetensors ||
    die "seal_checkpoint"
fails_well 3 "$train" "${parts[@]}" --output runs/newer --resume auto
says "$step/rank-0.json has format 3, this version of bpt-train reads 2"
sed -i 's/"format": 3/"format": 2/' $step/rank-0.json
"$BPT_HELPERS/seal_checkpoint" $step 2 rank-0.json rank-0.momentum.safetensors model.safetensors
run 0 "$train" "${parts[@]}" --output runs/newer --resume auto
same_weights runs/whole runs/newer

# Where there are only checkpoints that are not whole, it starts anew, and says so.
cp -r runs/whole runs/torn
rm -f runs/torn/checkpoints/*/DONE runs/torn/summary.json
run 0 "$train" "${parts[@]}" --output runs/torn --resume auto
says "warn: no checkpoint in runs/torn/checkpoints is whole (without DONE: step-00000200, step-00000100)"
grep -q "warn: no checkpoint" runs/torn/log.rank-0.txt || die "the log does not say it"
same_weights runs/whole runs/torn
run 0 "$train" "${parts[@]}" --output runs/fresh --resume auto
! grep -q "warn:" err || die "a warning about nothing"

# A run that came to its end is left as it is.
run 0 "$train" "${parts[@]}" --output runs/damaged --resume auto
says "finished already"
same_weights runs/whole runs/damaged

# Going on with more ranks, checkpoints have smaller numbers than before and are newer all the same.
cp -r runs/whole runs/more
run 0 ranks 2 "$train" "${parts[@]}" --update agwu --epochs 4 --output runs/more --resume auto \
    --checkpoint-every 20 --checkpoint-keep 1
newest=$(ls runs/more/checkpoints)
[ "$newest" \< step-00000200 ] || die "kept $newest"

# Other images are another job, as many as there may be of them.
cp -r data other
n=$("$ingest" info --json data | grep -o '"name": "train", "count": [0-9]*' | grep -o '[0-9]*$')
"$ingest" glyphs --out other --split train --count "$n" --seed 77 --force >out 2>err || die "another dataset"
run 0 "$train" "${parts[@]}" --output runs/same --resume runs/whole/checkpoints/step-00000100
! grep -q 'another job' err || die "the same dataset is another"
run 0 "$train" "${parts[@]}" --data other --output runs/other --resume runs/whole/checkpoints/step-00000100
says 'is of another job (what --data holds differs)'

# A folder with a config.yaml of its own is no run.
mkdir runs/stranger
echo "mine: true" >runs/stranger/config.yaml
fails_well 2 "$train" "${parts[@]}" --output runs/stranger
says "it is not a run folder"
fails_well 2 "$train" "${parts[@]}" --output runs/stranger --force
fails_well 2 "$train" "${parts[@]}" --output runs/stranger --resume auto
[ "$(cat runs/stranger/config.yaml)" = "mine: true" ] || die "it was written to"

# --force never takes what --resume goes on from.
fails_well 2 "$train" "${parts[@]}" --output runs/whole --resume auto --force
fails_well 2 "$train" "${parts[@]}" --output runs/whole --resume runs/whole/checkpoints/step-00000100 --force
[ -s runs/whole/checkpoints/step-00000200/DONE ] || die "--force removed checkpoints"
