#!/usr/bin/env bash
# Signals between exchanges that are far apart: who asks does not wait for the next one, and what was pushed early is
# replayed.
source "$(dirname "$0")/common.sh"
make_data
make_model
far=("${common[@]}" --update agwu --lr 0.01 --eval-every 0)
start_ranks 2 "$train" "${far[@]}" --sync-every 100000 --epochs 3000 --output runs/far --force
await_steps runs/far
kill -s TERM "$(rank_process 2)" || die "no second rank"
finish 75 30
says "checkpoint saved"
says "hint: go on with the same command and --resume auto in place of --force"
for _ in 1 2 3 4 5; do # until the signal comes before the end does, a quarter of a second later
    start_ranks 2 "$train" "${far[@]}" --sync-every 100 --epochs 18 --output runs/saved
    await_steps runs/saved
    kill -s HUP "$(rank_process 2)" 2>/dev/null
    finish 0
    [ -z "$(ls runs/saved/checkpoints)" ] || break
    rm -r runs/saved
done
[ -d runs/saved ] || die "SIGHUP saved no checkpoint"
run 0 "$train" --replay runs/saved
says "bit for bit"
# Only a push that asks for a meeting, which then is the next, comes before its time.
cp -r runs/saved early
python3 - early/exchange/steps.rank-0.jsonl <<'END' || die "no push to change"
import json, sys
lines = [json.loads(line) for line in open(sys.argv[1])]
pushes = [i for i, line in enumerate(lines) if "pushed_at" in line]
at = next(a for a, b in zip(pushes, pushes[1:]) if not lines[a]["met"] and not lines[b]["met"])
lines[at]["pushed_at"] -= 1
print(*map(json.dumps, lines), sep="\n", file=open(sys.argv[1], "w"))
END
fails_well 3 "$train" --replay early
says 'behind a push before its time'

# More has been trained than is asked for.
run 0 ranks 2 "$train" "${far[@]}" --sync-every 8 --epochs 0.01 --output runs/far --resume auto
says "nothing is left to train: --epochs has 0.01"
