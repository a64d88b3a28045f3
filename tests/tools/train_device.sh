#!/usr/bin/env bash
# --device: the cores by name, or by default where there is no GPU, compute the same; a GPU that is not there, a word
# that is none, and a precision that is of the other are refused, by bpt-train and by bpt-eval.
source "$(dirname "$0")/common.sh"
make_data 400 200
make_model
run 0 "$train" "${common[@]}" --output runs/cpu --epochs 0.5 --device cpu
evaluate=("$eval" --data data --model tiny.yaml --weights runs/cpu/model.safetensors)

# ---- on cores ----

json_cpu='[r["device"] for r in d["ranks"]] == ["cpu"]'
check_json runs/cpu/summary.json "$json_cpu"
run 0 "$train" "${common[@]}" --output runs/auto --epochs 0.5 # ctest hides GPUs: BPT_TEST_ENVIRONMENT
check_json runs/auto/summary.json "$json_cpu"
same_weights runs/cpu runs/auto
grep -qx 'device: "cpu"' runs/cpu/config.yaml || die "the configuration does not say where it computed"
run 0 "${evaluate[@]}" --device cpu --json
mv out cpu.json
run 0 "${evaluate[@]}" --json
cmp -s out cpu.json || die "bpt-eval says something else by default"
run 0 "$train" --model tiny.yaml --bench 2 --device cpu
grep -q '"device"' out && die "a bench on cores names a device"
run 0 ranks 2 "$train" "${common[@]}" --output runs/two --epochs 0.5 --device auto
check_json runs/two/summary.json '[r["device"] for r in d["ranks"]] == ["cpu", "cpu"]'
run 0 "$train" --replay runs/two

# ---- what is refused ----

refused() { # TEXT OPTION...: by each task, and before anything is made
    local text=$1 task
    shift
    for task in "--bench 2" "--dry-run" "--output runs/none --data data"; do
        # shellcheck disable=SC2086 # several words
        fails_well 2 "$train" --model tiny.yaml $task "$@"
        says "$text"
    done
    [ ! -e runs/none ] || die "a refused run leaves a folder"
    fails_well 2 "${evaluate[@]}" "$@"
    says "$text"
}

refused 'nonsense" is not known' --device nonsense
refused 'precision tf32 is of GPUs' --precision tf32
refused 'precision tf32 is of GPUs' --precision tf32 --device cpu
refused 'precision bf16-emulated is of the processor' --precision bf16-emulated --device cuda
fails_well 2 "$tune" --model tiny.yaml --out tuned.yaml --precision tf32
fails_well 2 "$train" --replay runs/two --device cpu
for device in cuda cuda:0; do # no GPU is seen, or bpt is built without CUDA
    refused '--device cuda' --device $device
done
fails_well 2 ranks 2 "$train" "${common[@]}" --output runs/none --device cuda
run 2 "$train" "${common[@]}" --output runs/none --device cuda --check
grep -qF -- '--device cuda' out || die "--check does not say that there is no GPU"

# A run is told from its summary to have computed on a GPU.
sed -i 's/"device": "cpu"/"device": "cuda:0 (some card)"/' runs/two/summary.json
fails_well 2 "$train" --replay runs/two
says 'rank 0 computed on cuda:0 (some card)'

# Of one that ended before its summary what a rank keeps of its kernels tells it.
rm runs/two/summary.json
touch runs/two/gpu.rank-1.yaml
fails_well 2 "$train" --replay runs/two
says 'rank 1 computed on a GPU,'
mv runs/two/gpu.rank-1.yaml runs/two/gpu.rank-1.old.yaml # somebody's
run 0 "$train" --replay runs/two

# ---- a run that goes on elsewhere ----

run 0 "$train" "${common[@]}" --output runs/whole --epochs 1 --checkpoint-every 5
changed() { # SED RUN: the run as it was at its first checkpoint, whose state is changed so
    cp -r runs/whole "$2"
    cut_back "$2"
    local step
    step=$(echo "$2"/checkpoints/*)
    grep -q '"device": *"cpu"' "$step/rank-0.json" && grep -q '"precision": *"fp32"' "$step/rank-0.json" ||
        die "a checkpoint does not say where and how it computed"
    sed -i "$1" "$step/rank-0.json"
    seal "$step"
    run 0 "$train" "${common[@]}" --output "$2" --epochs 1 --resume auto
    says 'going on from'
}
changed 's/"device": *"cpu"/"device": "cuda"/' runs/on
says 'rank 0 computed on cuda until'
grep -q 'computed in' err && die "it warns of the same precision"
changed 's/"precision": *"fp32"/"precision": "bf16"/' runs/rounded
says 'rank 0 computed in bf16 until'
says 'in fp32 from now on'
changed 's/"device": *"cpu", *//; s/"precision": *"fp32", *//' runs/older # of before it was said
grep -qE 'last bits|computed in' err && die "it warns of what no checkpoint names"
same_weights runs/whole runs/older
