#!/usr/bin/env bash
# A GPU learns what the cores learn: training, evaluation, checkpoints and several ranks; and what is of cores alone is
# refused beside it.
source "$(dirname "$0")/common.sh"
unset CUDA_VISIBLE_DEVICES
n_gpus=${BPT_GPUS_ON_CORES:-$(nvidia-smi -L 2>/dev/null | grep -c '^GPU')}
[ "$n_gpus" -gt 0 ] || skip "no GPU is here"
if variants; then
    epochs=2 near=0.03 enough=0.8 epochs_together=8 part=1 every=66
    make_data 4000 1000
else
    epochs=1 near=0.04 enough=0.6 epochs_together=2 part=0.5 every=16
    make_data 2000 500
fi
common+=(--warmup-epochs 1) # short runs move little, and what they come to is near by that
make_model
"$train" --model tiny.yaml --bench 2 --device cuda >out 2>err
grep -qF 'built without CUDA' err && skip "built without CUDA"

accuracy() { # RUN
    python3 -c 'import json, sys; print(json.load(open(sys.argv[1]))["test_accuracy"])' "$1/summary.json"
}

# ---- what it learns ----

run 0 "$train" "${common[@]}" --output runs/cpu --epochs $epochs --device cpu
run 0 "$train" "${common[@]}" --output runs/gpu --epochs $epochs --device cuda
says 'this rank computes on cuda:0 ('
check_json runs/gpu/summary.json 'd["ranks"][0]["device"].startswith("cuda:0 (")' \
    "abs(d['test_accuracy'] - $(accuracy runs/cpu)) < $near"
run 0 "$train" "${common[@]}" --output runs/auto --epochs 0.2
check_json runs/auto/summary.json 'd["ranks"][0]["device"].startswith("cuda:0 (")'
for precision in fp32 tf32 bf16; do
    [ $precision = bf16 ] || variants || continue
    run 0 "$train" "${common[@]}" --output runs/$precision --epochs $epochs --device cuda --precision $precision
    check_json runs/$precision/summary.json "abs(d['test_accuracy'] - $(accuracy runs/cpu)) < $near"
done
# Moves that --augment ends with are the GPU's to make. With something behind them, though it hardly ever happens, they
# are the cores': the weights end where those do, but for what kernels round that either run finds fastest.
run 0 "$train" "${common[@]}" --output runs/moved --epochs 0.2 --device cuda --augment crop=2,flip
run 0 "$train" "${common[@]}" --output runs/kept --epochs 0.2 --device cuda --augment crop=2,flip,erase=0.0001
near_weights runs/moved runs/kept 0.001
run 0 "$train" "${common[@]}" --output runs/still --epochs 0.2 --device cuda
python3 "$here/weights.py" near runs/moved/model.safetensors runs/still/model.safetensors 0.01 &&
    die "a GPU moves nothing"
# Layers that are frozen keep their bits, and the others learn what they learn on cores.
frozen=("${common[@]}" --init-weights runs/gpu/model.safetensors --freeze-before fc1 --epochs 0.4 --warmup-epochs 0 --lr 0.01)
run 0 "$train" "${frozen[@]}" --output runs/frozen-cpu --device cpu
run 0 "$train" "${frozen[@]}" --output runs/frozen --device cuda
near_weights runs/frozen-cpu runs/frozen 0.001
run 0 ranks 2 "$train" "${frozen[@]}" --output runs/frozen-sum --device auto --update allreduce
near_weights runs/frozen-cpu runs/frozen-sum 0.001
run 0 ranks 2 "$train" "${frozen[@]}" --output runs/frozen-agwu --device auto --update agwu
for run in frozen frozen-sum frozen-agwu; do
    near_weights runs/gpu runs/$run 0 conv1 conv2
done
for device in cpu cuda; do
    run 0 "$eval" --data data --model tiny.yaml --weights runs/gpu/model.safetensors --json --device $device
    check_json out "abs(d['accuracy'] - $(accuracy runs/gpu)) <= 0.005"
done

# ---- going on, on either ----

run 0 "$train" "${common[@]}" --output runs/on --epochs $part --checkpoint-every $every --device cuda
cut_back runs/on
run 0 "$train" "${common[@]}" --output runs/on --epochs $part --checkpoint-every $every --device cpu --resume auto
says 'going on from'
says 'rank 0 computed on cuda until'

# On the same card the bits are those of a run that never stopped: kernels are not measured again.
run 0 "$train" "${common[@]}" --output runs/whole --epochs $part --checkpoint-every $every --device cuda
cp -r runs/whole runs/parts
cut_back runs/parts
run 0 "$train" "${common[@]}" --output runs/parts --epochs $part --checkpoint-every $every --device cuda --resume auto
says 'going on from'
cmp runs/whole/model.safetensors runs/parts/model.safetensors || die "a resumed run has other bits"
cmp runs/whole/gpu.rank-0.yaml runs/parts/gpu.rank-0.yaml || die "a resumed run has other kernels"
grep -q 'measured anew' err && die "a resumed run measures kernels that it was given"
# Also in another folder, from the run or from one of its checkpoints.
cp -r runs/whole runs/begun
cut_back runs/begun
cp -r runs/begun runs/linked # its checkpoints lie elsewhere
mkdir -p elsewhere && mv runs/linked/checkpoints elsewhere/many && ln -s "$PWD/elsewhere/many" runs/linked/checkpoints
for from in runs/begun runs/begun/checkpoints/step-* runs/linked/checkpoints/step-*; do
    [ "$from" = runs/begun ] || variants || continue
    run 0 "$train" "${common[@]}" --output runs/else --epochs $part --checkpoint-every $every --device cuda --resume "$from"
    says 'going on from'
    grep -q 'measured anew' err && die "a run that goes on from $from measures kernels that it was given"
    same_weights runs/whole runs/else
    cmp runs/whole/gpu.rank-0.yaml runs/else/gpu.rank-0.yaml || die "a run that goes on from $from has other kernels"
    rm -r runs/else
done
cut_back runs/parts
sed -i 's/^gpu: .*/gpu: "Another card"/' runs/parts/gpu.rank-0.yaml
run 0 "$train" "${common[@]}" --output runs/parts --epochs $part --device cuda --resume auto
says 'gpu.rank-0.yaml is of another card: of no use here'
says 'measured anew'
cut_back runs/parts
run 0 "$train" "${common[@]}" --output runs/parts --epochs $part --device cuda --precision tf32 --resume auto
says 'gpu.rank-0.yaml is of another --precision than tf32: of no use here'
if variants; then
    cut_back runs/parts
    rm runs/parts/gpu.rank-0.yaml
    run 0 "$train" "${common[@]}" --output runs/parts --epochs $part --device cuda --resume auto
    [ "$(grep -c 'measured anew' err)" -eq 1 ] || die "it does not say once that nothing was kept"
    [ -s runs/parts/gpu.rank-0.yaml ] || die "a resumed run does not keep how it computes"
fi
cut_back runs/parts
echo 'choices: 3' >runs/parts/gpu.rank-0.yaml
fails_well 2 "$train" "${common[@]}" --output runs/parts --epochs $part --device cuda --resume auto
says 'gpu.rank-0.yaml'
run 2 "$train" "${common[@]}" --output runs/parts --epochs $part --device cuda --resume auto --check
grep -q '^error: rank 0 .*gpu\.rank-0\.yaml' out || die "a look before does not find it"
says 'hint: remove the file' out

# ---- a GPU and cores of one rank ----

run 0 "$train" "${common[@]}" --output runs/mixed --epochs 1 --checkpoint-every 40 --device cuda+cpu --threads 2
says 'samples of a step'
check_json runs/mixed/summary.json 'd["ranks"][0]["device"].startswith("cuda:0+cpu (")' "d['test_accuracy'] > $enough"
cp -r runs/mixed runs/mixed-parts
cut_back runs/mixed-parts
run 0 "$train" "${common[@]}" --output runs/mixed-parts --epochs 1 --checkpoint-every 40 --device cuda+cpu --threads 2 \
    --resume auto
grep -q 'measured anew' err && die "a resumed run measures a share that it was given"
same_weights runs/mixed runs/mixed-parts
# Of kernels the run itself has those of shares too that were tried and not taken.
shares() { sed -n '/^shares:/,/^device:/p' "$1/gpu.rank-0.yaml"; }
[ "$(shares runs/mixed)" = "$(shares runs/mixed-parts)" ] || die "a resumed run has another share"
cut_back runs/mixed-parts
run 0 "$train" "${common[@]}" --output runs/mixed-parts --epochs 1 --device cuda --resume auto
says 'rank 0 computed on cuda+cpu until'
if variants; then
    run 0 "$train" "${common[@]}" --output runs/begun --epochs 1 --device cuda+cpu --threads 2 --resume auto
    says 'rank 0 computed on cuda until'
fi
run 0 "$eval" --data data --model tiny.yaml --weights runs/mixed/model.safetensors --json --device cuda+cpu
check_json out "abs(d['accuracy'] - $(accuracy runs/mixed)) <= 0.005"
run 0 "$train" --model tiny.yaml --bench 5 --device cuda:0+cpu --threads 2
says 'samples of a step'

# What a step takes of memory is the host's where the cores have its samples, and GPUs of cores are so slow that they do.
run 0 "$train" --model tiny.yaml --dry-run --device cuda+cpu --threads 2
says 'memory of the GPU' out
table() { # which of the two
    awk -v n="$1" '/^memory of/ { i++ } i == n && $1 == "parameters" { print $2 }' out
}
if grep -q 'cores have all samples' out; then
    [ "$(table 1)" -gt 0 ] || die "what the cores take is not the host's"
    [ "$(table 2)" -eq 0 ] || die "what the cores take is the GPU's"
elif grep -q 'has all samples' out; then
    [ -z "$(table 1)" ] || die "what the GPU takes is the host's"
    [ "$(table 2)" -gt 0 ] || die "what the GPU takes is not the GPU's"
fi

# ---- a GPU that is here and cannot be used ----

if [ -n "${BPT_GPUS_ON_CORES:-}" ]; then # a card stays as it is
    BPT_DRIVER_ON_CORES=12040 fails_well 1 "$train" --model tiny.yaml --bench 2 --device cuda
    says 'the NVIDIA driver is for CUDA 12.4'
    BPT_DRIVER_ON_CORES=12040 run 0 "$train" --model tiny.yaml --bench 2 --device auto
    says '--device auto takes the cores: the NVIDIA driver is for CUDA 12.4'
    BPT_DRIVER_ON_CORES=0 run 0 "$train" --model tiny.yaml --bench 2 --device auto
    grep -q 'takes the cores' err && die "it speaks of a GPU where there is no driver"
    BPT_CODE_ON_CORES=0 fails_well 2 "$train" --model tiny.yaml --bench 2 --device cuda
    says 'this bpt has no code for GPU on cores'
    BPT_CODE_ON_CORES=0 run 0 "$train" --model tiny.yaml --bench 2 --device auto
    says '--device auto takes the cores: --device cuda:0: this bpt has no code for GPU on cores'
fi

# ---- several ranks ----

for update in agwu sgwu easgd allreduce; do
    [ $update = agwu ] || variants || continue
    run 0 ranks 2 "$train" "${common[@]}" --output runs/$update --update $update --device auto \
        --epochs $epochs_together
    check_json runs/$update/summary.json 'd["ranks"][0]["device"].startswith("cuda:0 (")' "d['test_accuracy'] > $enough"
done
# Gradients of several megabytes: they go to the other rank in parts, while others are computed.
cat >wide.yaml <<'END'
name: wide
input: [1, 28, 28]
classes: 10
layers:
  - fc: {name: fc1, outputs: 700}
  - relu
  - fc: {name: fc2, outputs: 760}
  - relu
  - fc: {name: fc3, outputs: classes}
END
for device in cpu cuda:0; do
    run 0 ranks 2 "$train" "${common[@]}" --model wide.yaml --output runs/wide-$device --update allreduce --epochs 0.1 \
        --device $device
done
check_json runs/wide-cuda:0/summary.json "abs(d['test_accuracy'] - $(accuracy runs/wide-cpu)) <= 0.01" \
    "abs(d['test_loss'] - $(python3 -c 'import json; print(json.load(open("runs/wide-cpu/summary.json"))["test_loss"])')) < 1e-4"
if [ -n "${BPT_GPUS_ON_CORES:-}" ]; then # each rank has one of its own, and computes what it would on one for both
    BPT_GPUS_ON_CORES=2 run 0 ranks 2 "$train" "${common[@]}" --model wide.yaml --output runs/wide-each \
        --update allreduce --epochs 0.1 --device cuda
    check_json runs/wide-each/summary.json 'all(r["device"].startswith("cuda:%d (" % r["rank"]) for r in d["ranks"])'
    same_weights runs/wide-cuda:0 runs/wide-each
fi
variants || exit 0 # what follows is as on cores, or refused
run 0 ranks $((n_gpus + 1)) "$train" "${common[@]}" --output runs/few --update agwu --epochs 0.5 --threads 0
says "process $((n_gpus + 1)) of $((n_gpus + 1)) on this host finds $n_gpus GPU"
check_json runs/few/summary.json 'd["ranks"][-1]["device"] == "cpu"' \
    'all(r["device"].startswith("cuda:") for r in d["ranks"][:-1])' \
    'all(r["threads"] == 1 for r in d["ranks"][:-1])'
run 0 ranks 2 "$train" "${common[@]}" --output runs/shared --device cuda:0 --update allreduce --epochs 0.5
check_json runs/shared/summary.json 'all(r["device"].startswith("cuda:0 (") for r in d["ranks"])'
fails_well 2 "$train" --replay runs/agwu
says 'a replay computes on cores'
rm runs/agwu/summary.json # as of a run that was killed: what is kept of its kernels says it too
fails_well 2 "$train" --replay runs/agwu
says 'rank 0 computed on a GPU,'

# ---- speed and memory ----

run 0 "$train" --model tiny.yaml --bench 5 --device cuda
tail -n 1 out >last.json
check_json last.json 'd["device"].startswith("cuda:0 (")' 'd["precision"] == "fp32"' 'd["memory_bytes"] > 0'
run 0 "$train" --model tiny.yaml --dry-run --device cuda
says 'memory of the GPU' out

# ---- what is refused ----

fails_well 2 "$train" --model tiny.yaml --bench 2 --device cuda:999
fails_well 2 "$train" --model tiny.yaml --bench 2 --device cuda --precision bf16-emulated
fails_well 2 ranks $((n_gpus + 1)) "$train" "${common[@]}" --output runs/none --device cuda
says 'on this host finds'
fails_well 2 ranks 2 "$train" "${common[@]}" --output runs/none --device cuda:0 --update allreduce --placement fc1
says 'whole networks only'
run 0 "$tune" --model tiny.yaml --batch-size 20 --out tuned.yaml --budget 5
fails_well 2 "$train" "${common[@]}" --output runs/none --device cuda --tuned tuned.yaml
says "tuned is of the processor's cores"
[ ! -e runs/none ] || die "a refused run leaves a folder"

# ---- what leaves a GPU alone, where it is not named ----

takes_cores() { # OPTION RUN: it did, and said so once
    check_json "$2/summary.json" 'all(r["device"] == "cpu" for r in d["ranks"])'
    [ "$(grep -c -- "--device auto takes the cores: --$1 is of these alone" err)" -eq 1 ] ||
        die "it does not say why, once"
}
run 0 ranks 2 "$train" "${common[@]}" --output runs/placed --epochs 0.5 --update allreduce --placement fc1
takes_cores placement runs/placed
run 0 ranks 2 "$train" "${common[@]}" --output runs/chosen --epochs 0.5 --update allreduce --placement auto
says '--placement auto: every rank keeps all layers, a GPU has whole networks only'
check_json runs/chosen/summary.json 'd["ranks"][0]["device"].startswith("cuda:0 (")'
run 0 "$train" "${common[@]}" --output runs/tuned --epochs 0.5 --tuned tuned.yaml
takes_cores tuned runs/tuned
