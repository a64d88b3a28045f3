#!/usr/bin/env bash
# Training that begins with weights of a file, and a warm-up that begins with a part of the rate.
source "$(dirname "$0")/common.sh"
make_data 1000 60
make_model
run 0 "$train" "${common[@]}" --epochs 1 --output first
file=first/model.safetensors

# Next to no rate: what comes out is what went in, under every update.
still=(--epochs 0.1 --lr 1e-12 --schedule constant --warmup-epochs 0 --momentum 0 --weight-decay 0)
run 0 "$train" "${common[@]}" "${still[@]}" --output still-local --init-weights $file
says "weights begin as those of $file"
near_weights first still-local 1e-6
for update in agwu sgwu easgd; do
    run 0 ranks 2 "$train" "${common[@]}" "${still[@]}" --sync-every 1 --update $update --output still-$update --init-weights $file
    near_weights first still-$update 1e-6
done
run 0 ranks 2 "$train" "${common[@]}" "${still[@]}" --update allreduce --output still-sum --init-weights $file
near_weights first still-sum 1e-6

# The configuration repeats it; a stop goes on from the checkpoint, not from the file.
warm=("${common[@]}" --epochs 2 --lr 0.01 --init-weights $file)
run 0 "$train" "${warm[@]}" --output warm --checkpoint-every 30
run 0 "$train" --config warm/config.yaml --output again
same_weights warm again
cut_back warm
cp -r warm/checkpoints/step-00000030 kept
run 0 "$train" "${warm[@]}" --output warm --resume auto
says "going on from warm/checkpoints/step-00000030"
grep -q 'weights begin as' err && die "a job that goes on began anew"
same_weights warm again
fails_well 2 "$train" "${warm[@]}" --output x --resume kept
says '--init-weights is not used with --resume RUN'
run 0 "$train" --config warm/config.yaml --output from-kept --resume kept
says 'init-weights in the configuration is not used with --resume RUN'
same_weights again from-kept

# Another beginning is another run.
run 0 "$train" "${common[@]}" --epochs 2 --lr 0.01 --output cold
cmp -s cold/model.safetensors warm/model.safetensors && die "the weights make no difference"

# A replay begins with them too, from where they lie by then.
run 0 ranks 2 "$train" "${warm[@]}" --update agwu --output async --warmup-start 0.5
says "the warm-up begins at 0.01"
run 0 "$train" --replay async
says "bit for bit"
mv first moved
fails_well 3 "$train" --replay async
says "$file"
run 0 "$train" --replay async --init-weights moved/model.safetensors
says "bit for bit"
fails_well 3 "$train" --replay async --init-weights cold/model.safetensors
says "weights differ"
file=moved/model.safetensors

# What does not fit is named, and leaves nothing.
sed -e 's/^name: tiny/name: other/' -e 's/conv2, filters: 8/conv2, filters: 4/' tiny.yaml >other.yaml
for n in 1 2; do
    fails_well 3 ranks $n "$train" "${common[@]}" --model other.yaml --output x --init-weights $file
    says "$file: tensor conv2.weight: its shape is not the one of the model, which is [4, 8, 3, 3]"
    says "not as in the model are also conv2.bias, fc1.weight"
done
fails_well 3 "$train" "${common[@]}" --output x --init-weights nowhere.safetensors
says "RUN/model.safetensors"
fails_well 3 "$train" "${common[@]}" --output x --init-weights moved
says 'moved: not a regular file'
says "RUN/model.safetensors"
fails_well 3 "$eval" --data data --model tiny.yaml --weights moved
says "RUN/model.safetensors"

# Layers that are excepted begin as they would without the file, whatever it has of them: there are other classes then.
fails_well 3 "$train" "${common[@]}" --model other.yaml --output x --init-weights $file
says 'layers of --init-except begin anew'
fails_well 3 "$train" "${common[@]}" --model lenet --output x --init-weights $file
says 'not as in the model are also'
grep -q 'init-except' err && die "where nothing fits, nothing is to be excepted"
# Of a file with a layer more than the model they are passed over.
sed 's/conv: {name: conv2, .*}/maxpool: {kernel: 3, stride: 1}/' tiny.yaml >smaller.yaml
for command in "$train --output x --init-weights" "$eval --weights"; do
    # shellcheck disable=SC2086 # several words
    fails_well 3 $command $file --data data --model smaller.yaml
    says "$file: tensor conv2.weight: the file has it and the model does not"
    says 'hint: the file may belong to another model; not of the model are also conv2.bias'
done
grep -q 'init-except' err && die "bpt-eval speaks of an option of bpt-train"
fails_well 3 "$train" "${common[@]}" --model smaller.yaml --output x --init-weights $file
says 'layers of --init-except begin anew, and those of the file alone are passed over'
run 0 "$train" "${common[@]}" --model smaller.yaml --output x --init-weights $file --init-except conv2
rm -r x
still+=(--model other.yaml)
run 0 "$train" "${common[@]}" "${still[@]}" --output drawn
except=(--init-weights $file --init-except conv2,fc1)
run 0 "$train" "${common[@]}" "${still[@]}" --output tuned "${except[@]}"
says "weights begin as those of $file, but not those of conv2,fc1"
near_weights moved tuned 1e-6 conv1
near_weights drawn tuned 1e-6 conv2 fc1
run 0 "$train" --check "${common[@]}" --model other.yaml "${except[@]}" --output x
run 0 "$train" --config tuned/config.yaml --output tuned-again
same_weights tuned tuned-again
run 0 ranks 2 "$train" "${common[@]}" --model other.yaml --update agwu --epochs 1 --output tuned-async "${except[@]}"
run 0 "$train" --replay tuned-async
says "bit for bit"
fails_well 2 "$train" "${common[@]}" --output x --init-weights $file --init-except conv3
says "neither the model nor $file has a layer \"conv3\" with weights"
says 'without --init-weights --dry-run lists the layers of the model'
fails_well 2 "$train" --dry-run "${common[@]}" --output x --init-weights $file --init-except conv3
says "has a layer \"conv3\" with weights"
fails_well 3 "$train" --dry-run "${common[@]}" --model other.yaml --output x --init-weights $file
says "$file: tensor conv2.weight: its shape is not the one of the model"
run 0 "$train" --dry-run "${common[@]}" --model other.yaml "${except[@]}" --output x
run 0 "$train" --dry-run "${common[@]}" --output warm --resume auto --init-weights nowhere.safetensors
fails_well 2 "$train" --check "${common[@]}" --output x --init-weights $file --init-except conv3
says 'without --init-weights --dry-run lists the layers of the model' out
fails_well 2 "$train" "${common[@]}" --output x --init-except fc1
says '--init-except is not used without --init-weights'
fails_well 2 "$train" "${common[@]}" --output x --init-weights $file --init-except ''
says '--init-except is missing'
says 'name layers, e.g. fc1'
for list in , ,fc1 fc1, conv1,,fc1; do
    fails_well 2 "$train" "${common[@]}" --output x --init-weights $file --init-except $list
    says "--init-except $list: a name beside a comma is empty"
done
fails_well 2 "$train" "${common[@]}" --output x --resume kept --init-except fc1
says '--init-except is not used with --resume RUN'
says 'the run has all weights to go on with'
head -c 1000 $file >short.safetensors
run 3 "$train" "${common[@]}" --output x --init-weights short.safetensors
[ ! -e x ] || die "a refused run leaves a folder"
fails_well 2 "$train" "${common[@]}" --output x --init-weights ''
says '--init-weights is missing'
fails_well 2 "$train" --model tiny.yaml --bench 1 --init-weights $file
says '--init-weights is not used by --bench'

# The rate grows from half of it.
ramp=("${common[@]}" --log-interval 0 --lr 0.02 --schedule constant --warmup-epochs 4 --epochs 6 --warmup-start 0.5)
run 0 "$train" "${ramp[@]}" --output ramp
python3 - <<'END' || die "the rate of the warm-up"
import json
steps = [e for e in map(json.loads, open("ramp/metrics.jsonl")) if e["event"] == "step"]
assert [e["step"] for e in steps] == list(range(1, 301)), "a line of every step"
for e in steps: # of the step that comes, read where it ends
    part = min(1, (e["epoch"] + 20 / 1000) / 4)
    assert abs(e["lr"] - 0.02 * (0.5 + 0.5 * part)) < 1e-6, e
END
fails_well 2 "$train" "${ramp[@]}" --output x --warmup-epochs 0
says '--warmup-start is not used without a warm-up'
fails_well 2 "$train" "${common[@]}" --output x --warmup-start 0.5 --schedule onecycle
says '--warmup-start is not used without a warm-up'
run 0 "$train" "${common[@]}" --epochs 0.1 --output cycle --warmup-start 0.5 --schedule onecycle --warmup-epochs 1
run 0 "$train" --config ramp/config.yaml --output cold-ramp --epochs 0.1 --warmup-epochs 0
says 'warmup-start in the configuration is not used without a warm-up'
