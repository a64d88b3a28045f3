#!/usr/bin/env bash
# A rank that becomes slow while it trains loses data to the others; such a run too can be replayed and resumed.
source "$(dirname "$0")/common.sh"
make_data
make_model

# Lets a process run a fifth of the time, until it ends.
hinder() { # PID
    while kill -STOP "$1" 2>/dev/null; do
        sleep 0.04
        kill -CONT "$1" 2>/dev/null
        sleep 0.01
    done
}

parts=("${common[@]}" --update agwu --sync-every 4 --eval-every 0 --epochs 40 --lr 0.01)
start_ranks 2 "$train" "${parts[@]}" --output run
await run/metrics.jsonl '"round": 4' # all is given out
hinder "$(rank_process 2)" &
started+=($!)
finish 0
check_json <(python3 -c '
import json
events = [json.loads(line) for line in open("run/metrics.jsonl")]
print(json.dumps([e for e in events if e["event"] == "shares"]))') \
    '[e["round"] for e in d] == list(range(1, len(d) + 1))' 'len(d) > 4' \
    'all(sum(e["held"]) == 2000 for e in d[3:])' \
    'd[-1]["held"][1] < 0.75 * d[3]["held"][1]'
says "data moves, since speeds have changed: shares by rank "

run 0 "$train" --replay run
says "bit for bit"

# Where nothing may move, nothing does.
run 0 ranks 2 "$train" "${parts[@]}" --output fixed --rebalance 0 --epochs 6
json_holds <(grep -c '"event": "shares"' fixed/metrics.jsonl) 'd == 4' || die "data has moved"

# Nor where speeds are not measured before: then it begins with a guess.
run 0 ranks 2 "$train" "${parts[@]}" --output guessed --calibrate 0 --epochs 2
check_json guessed/summary.json 'd["efficiency"] == 0' 'all(r["solo_images_per_s"] == 0 for r in d["ranks"])'
check_json run/summary.json '0 < d["efficiency"] < 1.5' 'all(r["solo_images_per_s"] > 0 for r in d["ranks"])'
