#!/usr/bin/env bash
# Signals that come while a step computes: whatever the kernels keep where a handler's stack would
# be, numbers and memory stay as they are.
source "$(dirname "$0")/common.sh"
make_data

# The matrix products of fully connected layers are the ones that mind (docs/decisions.md).
long=("${common[@]}" --model lenet --batch-size 64 --lr 0.02 --epochs 2)
run 0 "$train" "${long[@]}" --output runs/quiet

for threads in 1 2; do
    start "$train" "${long[@]}" --threads $threads --output runs/interrupted-$threads
    await runs/interrupted-$threads/metrics.jsonl '"event": "start"'
    while kill -s HUP "$pid" 2>/dev/null; do sleep 0.001; done
    finish 0
    same_weights runs/quiet runs/interrupted-$threads
    [ -n "$(ls runs/interrupted-$threads/checkpoints)" ] || die "no signal came"
done
