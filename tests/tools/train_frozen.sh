#!/usr/bin/env bash
# Under agwu a host that does not answer for a while does not stop the others, until all may have trained enough.
source "$(dirname "$0")/common.sh"
make_data
make_model

steps_done() { # of the last line of progress
    python3 -c '
import json
whole = [line for line in open("run/metrics.jsonl") if line.endswith("\n")]  # the last may be half-written
steps = [e["step"] for e in map(json.loads, whole) if e["event"] == "step"]
print(steps[-1] if steps else 0)'
}

start_ranks 2 "$train" "${common[@]}" --lr 0.01 --update agwu --sync-every 4 --eval-every 0 --epochs 10000 --output run
await_steps run
frozen=$(rank_process 2)
kill -STOP "$frozen" || die "no second rank"
sleep 1 # for what was under way
before=$(steps_done)
sleep 2
after=$(steps_done)
kill -CONT "$frozen"
[ "$after" -gt "$before" ] || die "rank 0 stopped at step $before"

# It comes back, and the run goes on and ends as any other.
kill -USR1 "$pid"
finish 75
steps=$(python3 -c '
import json
longest = 0
for line in open("run/exchange/steps.rank-0.jsonl"):
    e = json.loads(line)
    if "landed_at" in e: longest = max(longest, e["landed_at"] - e["pushed_at"])
print(longest)')
[ "$steps" -gt 4 ] || die "no push was answered later than the next was due"

# Who holds the weights does not answer: each of the others trains its part of what is left, not all of it.
rm -r run
epochs=$(length 100 20)
start_ranks 5 "$train" "${common[@]}" --lr 0.001 --servers 1 --partition even --sync-every 4 --eval-every 0 \
    --epochs "$epochs" --output run
await_steps run
kill -STOP "$(rank_process 5)" || die "no server"
until sleep 1 && [ "$(steps_done)" = "${before:-}" ]; do before=$(steps_done); done # rank 0 waits
kill -CONT "$(rank_process 5)"
finish 0
check_json run/summary.json "$epochs <= d['epochs'] < 1.5 * $epochs"
