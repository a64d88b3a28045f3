#!/usr/bin/env bash
# --freeze-before: layers that keep the weights that they begin with, under every update, through stops, other numbers of
# ranks and replays, and are not exchanged.
source "$(dirname "$0")/common.sh"
make_data 1000 100
make_model
sed 's/  - relu$/  - batchnorm\n  - relu/; s/pool2, kernel: 2}/&\n  - dropout: {rate: 0.25}/' tiny.yaml >norms.yaml
run 0 "$train" "${common[@]}" --model norms.yaml --epochs 1 --output first
file=first/model.safetensors
frozen=(conv1 batchnorm1) # of norms.yaml before conv2
learning=(conv2 batchnorm2 fc1)
freeze=("${common[@]}" --model norms.yaml --init-weights $file --freeze-before conv2)

kept() { # RUN: the frozen layers are bit for bit those of the file, running statistics too, and all others have learnt
    python3 "$here/weights.py" near first/model.safetensors "$1/model.safetensors" 0 "${frozen[@]}" || die "$1: frozen layers have changed"
    for layer in "${learning[@]}"; do
        python3 "$here/weights.py" near first/model.safetensors "$1/model.safetensors" 1e-6 "$layer" >/dev/null 2>near &&
            die "$1: $layer has not learnt"
        grep -qx 'more than 1e-6' near || die "$1: $layer is not compared"
    done
    check_json "$1/summary.json" 'd["frozen_bytes"] == 4 * (8 * 25 + 8 + 4 * 8)'
}

# ---- every update ----
run 0 "$train" "${freeze[@]}" --epochs 1 --output local
says "weights begin as those of $file"
says 'the layers before conv2 are frozen: 2626 of 2866 values learn'
kept local
for update in agwu sgwu easgd allreduce; do
    run 0 ranks 2 "$train" "${freeze[@]}" --update $update --epochs 1 --output $update
    kept $update
done
# What learns is pushed, and comes back; gradients go by shards, of which each rank has half.
for update in agwu sgwu easgd; do
    check_json $update/summary.json \
        'sum(r["payload_bytes_sent"] for r in d["ranks"]) == 2 * (d["weight_bytes"] - d["frozen_bytes"]) * sum(r["submissions"] for r in d["ranks"])'
done
check_json allreduce/summary.json \
    'sum(r["payload_bytes_sent"] for r in d["ranks"]) <= 2 * (d["weight_bytes"] - d["frozen_bytes"]) * sum(r["steps"] for r in d["ranks"])'
run 0 ranks 2 "$train" "${freeze[@]}" --update sgwu --server-momentum 0.5 --lr-scale none --epochs 1 --output momentum
kept momentum
run 0 ranks 3 "$train" "${freeze[@]}" --servers 1 --server-momentum 0.3 --lr-scale none --epochs 1 --output served
kept served
run 0 ranks 2 "$train" "${freeze[@]}" --update agwu --quality held-out --delay-compensation 0.1 --epochs 1 --output judged
kept judged
run 0 ranks 2 "$train" "${freeze[@]}" --update auto --epochs 1 --output auto
kept auto
for replayed in agwu easgd served judged; do
    run 0 "$train" --replay $replayed
    says 'bit for bit'
done
# A run has no frozen layers beside layers that one rank has for all, unless somebody says so behind its back.
run 0 ranks 2 "$train" "${common[@]}" --model norms.yaml --update agwu --placement fc1 --epochs 1 --output placed
echo 'freeze-before: conv2' >>placed/config.yaml
fails_well 3 "$train" --replay placed
says '"placement", of a run with frozen layers'

# One step of all ranks is one of a rank: the sums are of what learns.
run 0 "$train" "${common[@]}" --epochs 1 --output plain
same=("${common[@]}" --init-weights plain/model.safetensors --freeze-before fc1 --epochs 0.4 --warmup-epochs 0 --lr 0.01)
run 0 "$train" "${same[@]}" --output one
for n in 2 3; do
    run 0 ranks $n "$train" "${same[@]}" --update allreduce --output sum-$n
    near_weights one sum-$n 1e-5
    near_weights plain sum-$n 0 conv1 conv2
done

# ---- going on ----
run 0 "$train" "${freeze[@]}" --epochs 2 --output whole --checkpoint-every 30
run 0 "$train" --config whole/config.yaml --output again
same_weights whole again
kept again
cut_back whole
cp -r whole/checkpoints/step-00000030 checkpoint
run 0 "$train" "${freeze[@]}" --epochs 2 --output whole --checkpoint-every 30 --resume auto
same_weights whole again
run 0 ranks 2 "$train" --config again/config.yaml --update sgwu --output elsewhere --resume checkpoint
kept elsewhere
run 0 ranks 2 "$train" "${freeze[@]}" --update sgwu --partition even --server-momentum 0.5 --lr-scale none --epochs 2 --output sum --checkpoint-every 20
run 0 ranks 2 "$train" --config sum/config.yaml --output sum-again
same_weights sum sum-again
cut_back sum
run 0 ranks 2 "$train" --config sum/config.yaml --output sum --resume auto
same_weights sum sum-again
# With other layers frozen it is another job.
run 0 "$train" "${common[@]}" --model norms.yaml --epochs 2 --output thawed --resume checkpoint
says '--freeze-before'
grep -q 'are frozen' err && die "the layers are frozen still"
run 0 "$train" "${common[@]}" --model norms.yaml --epochs 2 --freeze-before fc1 --output colder --resume checkpoint
says '--freeze-before'

# ---- what it says ----
run 0 "$train" "${common[@]}" --freeze-before fc1 --epochs 0.1 --output drawn
says 'the layers before fc1 stay as they are drawn'
run 0 "$train" "${freeze[@]}" --init-except fc1 --epochs 0.1 --output except
grep -q 'as it is drawn' err && die "a layer that learns is said to stay as it is"
run 0 "$train" "${freeze[@]}" --init-except batchnorm1,fc1 --epochs 0.1 --output except-frozen
says 'layer batchnorm1 stays as it is drawn'
run 0 "$train" "${freeze[@]}" --dry-run
says 'frozen, before conv2: 240 of 2866 values' out
run 0 "$train" --model norms.yaml --bench 2 --freeze-before fc1
run 0 "$train" "${freeze[@]}" --check --output x
fails_well 2 "$train" "${freeze[@]}" --freeze-before conv3 --output x
says 'model tiny has no layer called "conv3"'
fails_well 2 "$train" "${freeze[@]}" --freeze-before conv1 --output x
says 'no weights before layer conv1: nothing is frozen'
says '--freeze-before names the first layer that learns'
for task in --dry-run "--bench 1" "--check --output x"; do
    # shellcheck disable=SC2086 # several words
    run 2 "$train" --data data --model tiny.yaml $task --freeze-before conv3
    grep -q 'has no layer called "conv3"' out err || die "$task takes a layer that is not there"
done
fails_well 2 "$train" "${freeze[@]}" --freeze-before '' --output x
says '--freeze-before is missing'
fails_well 2 ranks 2 "$train" "${freeze[@]}" --placement fc1 --output x
says '--placement and --freeze-before'
fails_well 2 "$train" --replay agwu --freeze-before fc1
says '--freeze-before is not used by --replay'
fails_well 2 ranks 2 "${unlike[@]}" "$train" "${freeze[@]}" --output x --others "$train" "${freeze[@]}" --freeze-before fc1 --output x
says '--freeze-before'
[ ! -e x ] || die "a refused run leaves a folder"
