#!/usr/bin/env bash
# Ranks of their own for the global weights: --servers.
source "$(dirname "$0")/common.sh"
n_images=$(length 4000 2000)
make_data "$n_images" 200
make_model
few=("${common[@]}" --epochs 3 --lr 0.02 --sync-every 3)

# Every push crosses the wire, and so does its answer: 2 m n s bytes for one of each of m workers, with n weights of s
# bytes (ALGORITHMS 1.4). Servers train nothing and have no part of the data.
served() { # RUN WORKERS SERVERS
    check_json "$1/summary.json" "len(d['ranks']) == $2 + $3 and d['servers'] == $3" \
        "[r['role'] for r in d['ranks']] == ['worker'] * $2 + ['server'] * $3" \
        'sum(r["payload_bytes_sent"] for r in d["ranks"]) == 2 * d["weight_bytes"] * sum(r["submissions"] for r in d["ranks"])' \
        'sum(r["payload_bytes_received"] for r in d["ranks"]) == sum(r["payload_bytes_sent"] for r in d["ranks"])' \
        'all(r["payload_bytes_sent"] == d["weight_bytes"] * r["submissions"] for r in d["ranks"] if r["role"] == "worker")' \
        'all(r["samples"] == r["steps"] == r["submissions"] == r["solo_images_per_s"] == 0 for r in d["ranks"] if r["role"] == "server")' \
        'all(r["samples"] > 0 and r["submissions"] > 0 for r in d["ranks"] if r["role"] == "worker")' \
        'all(r["limit"] == "" and r["path_s"] == r["work_s"] == 0 for r in d["ranks"] if r["role"] == "server")' \
        'all(r["kernels"] == r["precision"] == r["policy"] == "" for r in d["ranks"] if r["role"] == "server")' \
        'all(r["loader_threads"] == r["prefetch"] == 0 for r in d["ranks"] if r["role"] == "server")' \
        'all(r["kernels"] and r["precision"] == "fp32" and r["prefetch"] > 0 for r in d["ranks"] if r["role"] == "worker")' \
        'all(sum(r["bytes_sent"] for r in d["ranks"] if r["role"] == a)
             == sum(r["bytes_received"] for r in d["ranks"] if r["role"] != a) for a in ("worker", "server"))' \
        'all(r["limit"] != "" and 0 < r["path_s"] <= r["compute_s"] for r in d["ranks"] if r["role"] == "worker")' \
        'sum(r["samples"] for r in d["ranks"]) == d["samples"] and d["epochs"] >= 3' \
        'd["update"] != "sgwu" or d["epochs"] < 3.2' \
        '0 < d["efficiency"]'
    [ "$2" -eq 1 ] || check_json "$1/summary.json" \
        "sum(d['staleness']) == $3 * sum(r['submissions'] for r in d['ranks'])"
    python3 - "$1" "$2" <<'END' || die "shares of $1"
import json, sys
events = [json.loads(line) for line in open(sys.argv[1] + "/metrics.jsonl")]
for e in events:
    assert e["event"] != "shares" or len(e["held"]) == int(sys.argv[2]), e
assert events[0]["ranks"] > events[0]["servers"] > 0, events[0]
END
}

# How far a run goes over its end hangs on how long a rank waits for a core, what a worker does about it does not: with
# all trained by what it knows it makes no push that is not answered, and where an answer says so it comes to the meeting
# before its next step.
ends_as_heard() { # RUN: of 3 epochs, which never stopped
    python3 - "$1" "$n_images" 20 <<'END' || die "$1 goes on behind its end"
import glob, json, sys
run, total, batch = sys.argv[1], 3 * int(sys.argv[2]), int(sys.argv[3])
logs = glob.glob(run + "/exchange/steps.rank-*.jsonl")
assert logs
for log in logs:
    landings = [e for e in map(json.loads, open(log)) if "landed_at" in e]
    for before, e in zip(landings, landings[1:]):
        own = (e["landed_at"] - e["pushed_at"]) * batch
        assert before["progress"] + own < total + batch or e["landed_at"] - e["pushed_at"] <= before["every"], (log, e)
        assert before["progress"] < total or e["pushed_at"] == before["landed_at"], (log, before, e)
    assert landings[-1]["met"] and landings[-1]["progress"] >= total, (log, landings[-1])
END
}

for shape in 2+2 3+1; do
    workers=${shape%+*} servers=${shape#*+}
    for update in agwu sgwu easgd; do
        [[ $shape-$update = 3+1-[ae]* ]] || variants || continue
        run 0 ranks $((workers + servers)) "$train" "${few[@]}" --update $update --servers "$servers" \
            --output $shape-$update
        says "the last $servers of these ranks are servers and hold the global weights, $workers train"
        says "shard $((servers - 1)) of $servers on rank $((workers + servers - 1)): elements"
        served $shape-$update "$workers" "$servers"
        check_json $shape-$update/summary.json 'd["test_accuracy"] > 0.4'
        [ -e $shape-$update/exchange/updates.rank-0.jsonl ] && die "rank 0 hosts a shard"
        [ $update = sgwu ] && continue
        ends_as_heard $shape-$update
        run 0 "$train" --replay $shape-$update
        says "bit for bit"
    done
done
says "0.02 x 3 workers" 3+1-easgd/log.rank-0.txt
grep -qE "^[^ ]+ .* 3 .* server .* -$" 3+1-agwu/log.rank-0.txt || die "no server in the table of ranks"

# What is computed is that of workers which hold the weights themselves: with sgwu and given shares bit for bit.
same=("${few[@]}" --update sgwu --partition even)
run 0 ranks 2 "$train" "${same[@]}" --output without
for servers in 1 2; do
    [ $servers = 2 ] || variants || continue
    run 0 ranks $((2 + servers)) "$train" "${same[@]}" --servers $servers --output with-$servers
    same_weights without with-$servers
    check_json with-$servers/summary.json \
        "d['test_accuracy'] == $(python3 -c "import json; print(json.load(open('without/summary.json'))['test_accuracy'])")"
done
# A single worker is no less: its pushes count whole.
run 0 ranks 2 "$train" "${few[@]}" --servers 1 --output one
served one 1 1
check_json one/summary.json 'd["update"] == "agwu"' 'd["test_accuracy"] > 0.3'
ends_as_heard one
run 0 "$train" --replay one
says "bit for bit"

# What is laid over the rules is with the shards.
run 0 ranks 4 "$train" "${few[@]}" --servers 2 --server-momentum 0.5 --delay-compensation 0.1 --gamma lag \
    --max-staleness 1 --quality held-out --output terms
served terms 2 2
ends_as_heard terms
run 0 "$train" --replay terms
says "bit for bit"

# A stop: with the same servers the job goes on as it was, bit for bit where nothing hangs on clocks.
stops=("${same[@]}" --server-momentum 0.5 --servers 1 --checkpoint-every 20)
run 0 ranks 3 "$train" "${stops[@]}" --output straight
cp -r straight stopped
cut_back stopped
kept=$(ls -d stopped/checkpoints/step-*)
cp -r "$kept" kept
run 0 ranks 3 "$train" "${stops[@]}" --output stopped --resume auto
says "going on from stopped/checkpoints/step-"
grep -q 'is of another job' err && die "not the same job"
same_weights straight stopped
served stopped 2 1
# With others, weights and progress are what is taken over.
run 0 ranks 4 "$train" "${stops[@]}" --servers 2 --output more --resume kept
says "is of another job (the number of ranks differs)"
run 0 ranks 3 "$train" "${stops[@]}" --servers 0 --output none --resume kept
says "is of another job (--servers differs)"
run 0 ranks 4 "$train" "${few[@]}" --servers 2 --checkpoint-every 10 --output async
cut_back async
run 0 ranks 4 "$train" "${few[@]}" --servers 2 --checkpoint-every 10 --output async --resume auto
grep -q 'is of another job' err && die "not the same job"
served async 2 2

# A signal to a server alone: the others hear of it.
for server in 1 2; do
    [ $server = 2 ] || variants || continue
    for turn in 1 2 3 4 5; do
        rm -rf told
        start_ranks 4 "$train" "${few[@]}" --servers 2 --epochs 200 --output told
        await_steps told
        kill -TERM "$(rank_process $((2 + server)))" 2>/dev/null && break
        wait "$pid"
    done
    finish 75
    says "checkpoint saved"
    [ -n "$(ls told/checkpoints 2>/dev/null)" ] || die "no checkpoint"
done

# Whoever has nothing to do is not late, and waits for nobody.
for epochs in "$(length 24 12)" 120 1000; do
    run 0 ranks 3 "$train" "${few[@]}" --servers 1 --epochs "$epochs" --eval-every $((epochs / 2)) --stall-warning 1 \
        --output idle --force
    json_holds idle/summary.json 'd["seconds"] > 2' 2>/dev/null && break
done
check_json idle/summary.json 'd["seconds"] > 2'
grep 'has waited' err | grep 'rank 2 ' && die "an idle server stalls"

# Servers want no data: under scatter they are given none, else they need not see the dataset.
run 0 ranks 4 "$train" "${few[@]}" --servers 2 --data-mode scatter --scratch scratch --output scattered
served scattered 2 2
ends_as_heard scattered
check_json scattered/summary.json 'd["ranks"][1]["data_samples_received"] > 0' \
    'd["ranks"][2]["data_samples_received"] == d["ranks"][3]["data_samples_received"] == 0'
[ -e scratch/rank-1 ] && ! [ -e scratch/rank-2 ] && ! [ -e scratch/rank-3 ] || die "scratch of servers"
run 0 "$train" --replay scattered
says "bit for bit"

# Their cores are the workers'.
cores=$(python3 -c 'import os; print(len(os.sched_getaffinity(0)))')
if [ "$cores" -ge 2 ]; then
    run 0 ranks 2 "$train" "${few[@]}" --servers 1 --threads 0 --output threads
    check_json threads/summary.json 'd["ranks"][0]["threads"] >= 1' 'd["ranks"][1]["threads"] == 1'
fi

# Before a run, and beside it.
run 0 ranks 3 "$train" --model lenet --update agwu --servers 1 --dry-run
says "memory of a server:" out
says "servers" out
python3 - <<'END' || die "the plan of memory where there is a server"
import re
text = open("out").read()
weights = 4 * int(re.search(r"^total +10x1x1 +(\d+) ", text, re.M)[1])
rank, server = ({name: int(n) for name, n in re.findall(r"^  (\S.*?) +(\d+) +[\d.]+ MB$", part, re.M)}
                for part in text.split("memory of a server:"))
assert rank["exchange"] == 2 * weights, rank # what is sent, and what comes back
assert rank["vectors of weights"] == 3 * weights, rank # to read through, and two that deltas are taken of
assert server["vectors of weights"] == 2 * weights < server["exchange"], server # it compares nothing
END
run 0 ranks 3 "$train" --check --data data --output there --servers 1
run 0 ranks 3 "$train" "${few[@]}" --servers 1 --trace trace.json --trace-steps 1-3 --output traced
check_json trace.json 'len({e["pid"] for e in d["traceEvents"]}) == 3'
run 0 ranks 3 "$train" "${few[@]}" --update auto --servers 1 --output auto
says "--update auto: agwu"
check_json auto/summary.json 'd["update"] == "agwu"'
run 0 ranks 3 "$train" --config auto/config.yaml --output again
check_json again/summary.json 'd["servers"] == 1'

# Nobody is left to train, or nothing to hold, or it makes no sense.
fails_well 2 ranks 2 "$train" "${few[@]}" --servers 2 --output x
says "--servers 2: this job has 2 ranks"
fails_well 2 "$train" "${few[@]}" --servers 1 --output x
says "--servers 1: this job has 1 rank"
grep -q "warn: .*--servers" err && die "what is refused is said to have no effect"
fails_well 2 "$train" "${few[@]}" --servers 1 --update agwu --output x
fails_well 2 ranks 2 "$train" --check --data data --output x --servers 3
fails_well 2 "$train" "${few[@]}" --servers -1 --output x
for update in allreduce local; do
    fails_well 2 "$train" "${common[@]}" --servers 1 --update $update --output x
    says "--servers is not used by --update $update"
done
sed 's/^placement: .*/placement: fc1/' auto/config.yaml >placed.yaml
fails_well 2 "$train" --config placed.yaml --output x
says "--servers and --placement"
fails_well 2 "$train" --model lenet --bench 2 --servers 1
says "--servers is not used by --bench"
[ -e x ] && die "a refused job has left something"
exit 0
