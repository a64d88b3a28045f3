#!/usr/bin/env bash
# Signals between exchanges that are far apart: who asks does not wait for the next one, and what was pushed early is
# replayed.
source "$(dirname "$0")/common.sh"
make_data
make_model
far=("${common[@]}" --update agwu --lr 0.01 --eval-every 0)
start_ranks 2 "$train" "${far[@]}" --sync-every 100000 --epochs 3000 --output runs/far
await_steps runs/far
kill -s TERM "$(rank_process 2)" || die "no second rank"
finish 75 30
says "checkpoint saved"
start_ranks 2 "$train" "${far[@]}" --sync-every 200 --epochs 12 --output runs/saved
await_steps runs/saved
kill -s HUP "$(rank_process 2)" || die "no second rank"
finish 0
[ -n "$(ls runs/saved/checkpoints)" ] || die "SIGHUP saved no checkpoint"
run 0 "$train" --replay runs/saved
says "bit for bit"

# More has been trained than is asked for.
run 0 ranks 2 "$train" "${far[@]}" --sync-every 8 --epochs 0.01 --output runs/far --resume auto
says "nothing is left to train: --epochs has 0.01"
