#!/usr/bin/env bash
# A rank that becomes slow while it trains loses data to the others; such a run can be resumed and replayed.
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

shares() { # RUN: "shares" events, as a list
    python3 - "$1" <<'END'
import json, sys
events = [json.loads(line) for line in open(sys.argv[1] + "/metrics.jsonl")]
print(json.dumps([e for e in events if e["event"] == "shares"]))
END
}

parts=("${common[@]}" --lr 0.01 --update agwu --sync-every 4 --eval-every 0)
long=("${parts[@]}" --epochs 100000 --output run)
start_ranks 2 "$train" "${long[@]}"
await run/metrics.jsonl '"round": 4' # all is given out
hinder "$(rank_process 2)" &
started+=($!)
await run/metrics.jsonl '"round": 5'
kill -USR1 "$pid"
finish 75
says "data moves, since speeds have changed: shares by rank "
shares run >before
check_json before '[e["round"] for e in d] == list(range(1, len(d) + 1))' 'all(sum(e["held"]) == 2000 for e in d[3:])' \
    'd[4]["held"][1] < d[3]["held"][1]'

# It goes on with the shares that it had, and does not tell of them again.
start_ranks 2 "$train" "${long[@]}" --resume auto
await err 'eta '
kill -USR1 "$pid"
finish 75
shares run >after
python3 - <<'END' || die "the rounds before the stop are told again, or lost"
import json
before, after = json.load(open("before")), json.load(open("after"))
assert after[:len(before)] == before, (before, after)
assert [e["round"] for e in after] == list(range(1, len(after) + 1)), after
assert all(sum(e["held"]) == 2000 for e in after[3:]), after
END

# Replayed: shares that follow the slightest drift, in a run that is long enough for some.
epochs=$(length 40 16)
until run 0 ranks 2 "$train" "${parts[@]}" --output moved --force --rebalance 0.000001 --idpa-rounds 2 --epochs $epochs &&
    shares moved >some && json_holds some 'len(d) > 2' 2>/dev/null; do
    epochs=$((2 * epochs))
    [ $epochs -lt 2000 ] || die "no data have moved"
done
run 0 "$train" --replay moved
says "bit for bit"
check_json moved/summary.json 'd["efficiency"] > 0' 'all(r["solo_images_per_s"] > 0 for r in d["ranks"])'

# Where nothing may move, nothing does; where speeds are not measured before, it begins with a guess.
run 0 ranks 2 "$train" "${parts[@]}" --output fixed --rebalance 0 --calibrate 0 --epochs $epochs
shares fixed >none
check_json none 'len(d) <= 4'
check_json fixed/summary.json 'd["efficiency"] == 0' 'all(r["solo_images_per_s"] == 0 for r in d["ranks"])'
