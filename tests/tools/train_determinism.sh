#!/usr/bin/env bash
# What the results may depend on: not on threads or the scheduling policy, not on how often it is run,
# and on the number of ranks only as far as floats add up in another order.
source "$(dirname "$0")/common.sh"
make_data
make_model

# Threads.
for threads in 1 2 3; do
    run 0 "$train" "${common[@]}" --output runs/threads-$threads --epochs 0.5 --threads $threads
done
same_weights runs/threads-1 runs/threads-2
same_weights runs/threads-1 runs/threads-3

# Augmentation: neither the threads that load nor those that train.
list=crop=2,flip,resized-crop=0.5:1,vflip,rotate=10,shift=5,jitter=0.2,erase
augmented=(--epochs 1.5 --augment $list)
run 0 "$train" "${common[@]}" "${augmented[@]}" --output runs/augmented --threads 1
says "augmentation $list"
run 0 "$train" "${common[@]}" "${augmented[@]}" --output runs/augmented-2 --threads 2 --loader-threads 3
same_weights runs/augmented runs/augmented-2
run 0 "$train" --config runs/augmented/config.yaml --output runs/augmented-3 --threads 2
same_weights runs/augmented runs/augmented-3
run 0 "$train" "${common[@]}" --epochs 1.5 --output runs/as-they-are
cmp -s runs/augmented/model.safetensors runs/as-they-are/model.safetensors && \
    die "augmentation changes nothing"

# Policies.
for policy in level eft fifo; do
    [ $policy = eft ] || variants || continue
    run 0 "$train" "${common[@]}" --output runs/$policy --epochs 0.5 --threads 2 --policy $policy
    same_weights runs/threads-1 runs/$policy
done

# allreduce follows the one-rank trajectory: loss on the whole test split after each of 20 steps.
steps=(--batch-size 50 --epochs 0.5 --eval-every 0.025 --warmup-epochs 0.1)
run 0 "$train" "${common[@]}" "${steps[@]}" --output runs/local --update local
for n in 1 2 3 4; do
    [ $n = 3 ] || variants || continue
    run 0 ranks $n "$train" "${common[@]}" "${steps[@]}" --output runs/sum-$n --update allreduce
    near_weights runs/local runs/sum-$n 1e-5
    python3 - $n <<'END' || die "allreduce on $n ranks leaves the trajectory of one"
import json, sys
def curve(run):
    events = map(json.loads, open(f"runs/{run}/metrics.jsonl"))
    return [(e["step"], e["loss"]) for e in events if e["event"] == "eval"]
a, b = curve("local"), curve(f"sum-{sys.argv[1]}")
assert [step for step, _ in a] == list(range(1, 21)), a
assert [step for step, _ in b] == list(range(1, 21)), b
worst = max(abs(x - y) / x for (_, x), (_, y) in zip(a, b))
print(f"allreduce on {sys.argv[1]} ranks: loss differs by at most {worst:.1e} relative")
assert worst <= 1e-4
assert a[-1][1] < a[0][1]
END
done

# So it does where gradients are summed in several buckets, of 2 MB and more (tools/train/exchange/gradient_buckets.h): of fc3 and fc4,
# of fc2, of fc1, and of the convolution.
cat >wide.yaml <<'END'
name: wide
input: [1, 28, 28]
classes: 10
layers:
  - conv: {name: conv1, filters: 8, kernel: 5, stride: 2}
  - relu
  - fc: {name: fc1, outputs: 500}
  - relu
  - fc: {name: fc2, outputs: 1060}
  - relu
  - fc: {name: fc3, outputs: 600}
  - relu
  - fc: {name: fc4, outputs: classes}
END
wide=("${common[@]}" --model wide.yaml --batch-size 24 --epochs 0.15 --eval-every 0 --warmup-epochs 0.1 --lr 0.02)
run 0 "$train" "${wide[@]}" --output runs/wide --update local
for n in 2 3; do
    [ $n = 3 ] || variants || continue
    run 0 ranks $n "$train" "${wide[@]}" --output runs/wide-$n --update allreduce
    near_weights runs/wide runs/wide-$n 1e-5
done

# Cut by speed, which is guessed here from the number of threads, batches give that trajectory too; and a job that goes on keeps
# its cut, whoever is the faster one by then.
cat >unlike <<'END'
#!/bin/sh
[ "$OMPI_COMM_WORLD_RANK" = "$FAST" ] && exec "$@" --threads 2
exec "$@"
END
chmod +x unlike
parts=("${common[@]}" "${steps[@]}" --update allreduce --partition idpa --calibrate 0 --checkpoint-every 8)
FAST=1 run 0 ranks 2 ./unlike "$train" "${parts[@]}" --output runs/parts
grep -qE 'each batch is cut by speed: samples by rank (1[0-9]|2[0-4]), (2[6-9]|[34][0-9])$' err || die "not cut by speed"
near_weights runs/local runs/parts 1e-5
cp -r runs/parts runs/parts-on
cut_back runs/parts-on
FAST=0 run 0 ranks 2 ./unlike "$train" "${parts[@]}" --output runs/parts-on --resume auto
says "going on from runs/parts-on/checkpoints/step-00000008"
same_weights runs/parts runs/parts-on

# The same seed twice.
for update in sgwu allreduce; do
    [ $update = sgwu ] || variants || continue
    for turn in 1 2; do
        run 0 ranks 2 "$train" "${common[@]}" --output runs/$update-turn-$turn --update $update \
            --partition even --epochs 1
    done
    same_weights runs/$update-turn-1 runs/$update-turn-2
done

# A worker alone merges with nobody: agwu and sgwu are then plain training, however often it
# exchanges. With the whole split as one batch, the order of samples makes no difference either.
mv data data-large
make_data 200 100
alone=(--lr 0.01 --batch-size 200 --epochs 20 --schedule constant --warmup-epochs 0)
for options in agwu "agwu --sync-every 1" "agwu --sync-every 7" sgwu; do
    [ "$options" = agwu ] || variants || continue
    rm -rf runs/alone runs/plain
    # shellcheck disable=SC2086 # several words
    run 0 "$train" "${common[@]}" "${alone[@]}" --output runs/alone --partition even \
        --update $options
    # The push behind the end, at the latest of step 24, may be answered as late as the next is due.
    check_json runs/alone/summary.json 'd["ranks"][0]["submissions"] >= 2' '20 <= d["steps"] <= 32'
    steps=$(python3 -c 'import json; print(json.load(open("runs/alone/summary.json"))["steps"])')
    run 0 "$train" "${common[@]}" "${alone[@]}" --output runs/plain --update local --epochs "$steps"
    near_weights runs/plain runs/alone 1e-4
done
