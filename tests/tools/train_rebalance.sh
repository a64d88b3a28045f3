#!/usr/bin/env bash
# A rank that becomes slow while it trains loses data to the others; such a run can be resumed and replayed.
source "$(dirname "$0")/common.sh"
make_data
make_model

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
grep -oE 'shares by rank .*' err >lists # a line for each round, of parts in percent
python3 - <<'END_PYTHON' || die "the shares that are told are no parts of all: $(cat lists)"
import re
lists = [list(map(float, re.findall(r"([\d.]+)%", line))) for line in open("lists")]
assert len(lists) >= 5 and all(len(parts) == 2 and abs(sum(parts) - 100) < 0.15 for parts in lists), lists
END_PYTHON
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

# Speeds are known after two seconds; a rank becomes slow in each of these.
hindered() { # RUN OPTION...
    local run=$1
    shift
    rm -rf "$run"
    start_ranks 2 "$train" "${parts[@]}" --output "$run" --epochs "$epochs" "$@"
    await_steps "$run"
    hinder "$(rank_process 2)" &
    started+=($!)
    finish 0 400
    shares "$run" >"$run.shares"
}

# Replayed: shares that follow the slightest drift.
epochs=$(length 80 45)
until hindered moved --rebalance 0.000001 --idpa-rounds 2 && json_holds moved.shares 'len(d) > 2' 2>/dev/null; do
    epochs=$((2 * epochs))
    [ $epochs -lt 2000 ] || die "no data have moved"
done
run 0 "$train" --replay moved
says "bit for bit"
check_json moved/summary.json 'd["efficiency"] > 0' 'all(r["solo_images_per_s"] > 0 for r in d["ranks"])'

# Where nothing may move, nothing does; where speeds are not measured before, it begins with a guess.
hindered fixed --rebalance 0 --calibrate 0
check_json fixed.shares 'len(d) <= 4'
check_json fixed/summary.json 'd["efficiency"] == 0' 'all(r["solo_images_per_s"] == 0 for r in d["ranks"])'

# A run that ends before all rounds have come says how much of the data it has not seen; where all come at once nothing
# is missing.
run 0 ranks 2 "$train" "${parts[@]}" --output short --epochs 0.5 --idpa-rounds 64
shares short >short.shares
python3 - <<'END' || die "what was not trained on is not said, or wrong"
import json, re
last = json.load(open("short.shares"))[-1]
found = re.search(r"warn: (\d+) of (\d+) training images were never given out: .* round (\d+) of 64; ", open("err").read())
assert found and list(map(int, found.groups())) == [2000 - sum(last["held"]), 2000, last["round"]], (found, last)
assert sum(last["held"]) < 2000, last
END
for all in "--idpa-rounds 1" "--idpa-rounds auto" "--partition even"; do
    # shellcheck disable=SC2086 # several words
    run 0 ranks 2 "$train" "${parts[@]}" --output short --force --epochs 0.5 $all
    ! grep -q 'never given out' err || die "images are missing though all came at once: $all"
done
