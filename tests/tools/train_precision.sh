#!/usr/bin/env bash
# --precision: bf16 learns what fp32 learns, with less memory, bit by bit the same on any number of
# threads, in replays and after a stop; may change where a run goes on; and is refused where the
# processor has no instructions for it.
source "$(dirname "$0")/common.sh"
make_data 4000 4000
make_model

# ---- processors without the instructions ----

export ONEDNN_MAX_CPU_ISA=AVX2
for precision in bf16 bf16-emulated; do
    fails_well 2 "$train" --model tiny.yaml --bench 2 --precision $precision
    says "precision $precision: this processor has no AVX-512"
    says 'hint: use fp32'
done
fails_well 2 "$train" "${common[@]}" --output runs/none --precision bf16
[ ! -e runs/none ] || die "a refused run leaves a folder"
fails_well 2 "$train" --model tiny.yaml --dry-run --precision bf16
run 0 "$train" "${common[@]}" --output runs/fp32 --epochs 0.2
fails_well 2 "$eval" --data data --model tiny.yaml --weights runs/fp32/model.safetensors --precision bf16
run 0 "$train" "${common[@]}" --output runs/auto --epochs 0.2 --precision auto
same_weights runs/fp32 runs/auto
unset ONEDNN_MAX_CPU_ISA

grep -q avx512bw /proc/cpuinfo || skip "kernels for bfloat16 need AVX-512"
ONEDNN_MAX_CPU_ISA=AVX512_CORE fails_well 2 "$train" --model tiny.yaml --bench 2 --precision bf16
says 'this processor has no instructions for bfloat16 (avx512_bf16)'
says 'bf16-emulated'
ONEDNN_MAX_CPU_ISA=AVX512_CORE run 0 "$train" --model tiny.yaml --bench 2 --precision bf16-emulated
# What is evaluated in it has no more digits than that.
for precision in fp32 bf16-emulated; do
    ONEDNN_MAX_CPU_ISA=AVX512_CORE run 0 "$eval" --data data --model tiny.yaml --weights runs/fp32/model.safetensors --json \
        --precision $precision
    cp out eval-$precision
done
check_json eval-bf16-emulated '0 < abs(d["loss"] / json.load(open("eval-fp32"))["loss"] - 1) < 0.01'

# ---- ranks that compute each in its own ----

# A replay takes each rank's from the summary; config.yaml says that of rank 0.
agwu=("$train" "${common[@]}" --epochs 0.3 --update agwu --calibrate 0.05)
for emulated in 0 1; do
    own=(fp32 fp32)
    own[emulated]=bf16-emulated
    to=runs/unlike-$emulated
    ONEDNN_MAX_CPU_ISA=AVX512_CORE run 0 ranks 2 "${unlike[@]}" "${agwu[@]}" --output $to --precision "${own[0]}" \
        --others "${agwu[@]}" --output $to --precision "${own[1]}"
    check_json $to/summary.json "[r['precision'] == 'bf16' for r in d['ranks']] == [$emulated == 0, $emulated == 1]" \
        "d['ranks'][1 - $emulated]['precision'] == 'fp32'"
    ONEDNN_MAX_CPU_ISA=AVX512_CORE run 0 "$train" --replay $to
    says 'bit for bit'
done
ONEDNN_MAX_CPU_ISA=AVX2 fails_well 2 "$train" --replay runs/unlike-1
says 'runs/unlike-1 cannot be replayed here: rank 1 computed in bf16'
# Of a summary that does not say it, and of one that says what cannot be.
sed -i 's/"precision": "[a-z0-9]*",//g' runs/unlike-1/summary.json
ONEDNN_MAX_CPU_ISA=AVX512_CORE fails_well 3 "$train" --replay runs/unlike-1
says 'weights differ'
sed -i 's/"precision": "bf16"/"precision": "tf32"/' runs/unlike-0/summary.json
fails_well 3 "$train" --replay runs/unlike-0
says 'runs/unlike-0/summary.json: "precision" of rank 0 is "tf32"'
grep -q avx512_bf16 /proc/cpuinfo || skip "this processor has no instructions for bfloat16"

# ---- what it learns ----

accuracy() { # RUN
    python3 -c 'import json, sys; print(json.load(open(sys.argv[1]))["test_accuracy"])' "$1/summary.json"
}
# One seed tells little: accuracies of the same precision differ by a point and more from seed to seed.
for seed in 3 2 1; do
    [ $seed = 1 ] || variants || continue
    for precision in fp32 bf16; do
        run 0 "$train" --data data --model lenet --output runs/lenet-$precision --epochs 5 --eval-every 0 \
            --precision $precision --seed $seed --force
        accuracy runs/lenet-$precision >>accuracies-$precision
    done
done
says 'activations and their gradients are bfloat16 on this rank'
python3 - <<END || die "bf16 learns less than fp32"
from statistics import mean
fp32, bf16 = (mean(map(float, open(f"accuracies-{p}"))) for p in ("fp32", "bf16"))
print(f"accuracy: fp32 {fp32:.4f}, bf16 {bf16:.4f}")
assert fp32 > 0.9 and bf16 > fp32 - $(length 0.005 0.02)
END
cmp -s runs/lenet-fp32/model.safetensors runs/lenet-bf16/model.safetensors && die "bf16 changes nothing"
python3 - <<'END' || die "weights are not floats"
import json, struct
data = open("runs/lenet-bf16/model.safetensors", "rb").read()
header = json.loads(data[8:8 + struct.unpack_from("<Q", data)[0]])
assert {t["dtype"] for name, t in header.items() if name != "__metadata__"} == {"F32"}, header
END
for precision in fp32 bf16 auto; do
    run 0 "$eval" --data data --model lenet --weights runs/lenet-bf16/model.safetensors --json \
        --precision $precision
    check_json out "abs(d['accuracy'] - $(accuracy runs/lenet-bf16)) <= 0.005"
done

# ---- the same bits ----

bf16=(--precision bf16 --epochs 0.5 --warmup-epochs 1) # at a low rate: differences stay those of the precision
run 0 "$train" "${common[@]}" "${bf16[@]}" --output runs/one
for threads in 2 3; do
    run 0 "$train" "${common[@]}" "${bf16[@]}" --output runs/threads-$threads --threads $threads
    same_weights runs/one runs/threads-$threads
done
run 0 "$train" --config runs/one/config.yaml --output runs/again
same_weights runs/one runs/again
run 0 "$train" "${common[@]}" "${bf16[@]}" --output runs/emulated --precision bf16-emulated
same_weights runs/one runs/emulated # here it is the same
run 0 ranks 2 "$train" "${common[@]}" "${bf16[@]}" --output runs/agwu --update agwu
run 0 "$train" --replay runs/agwu
run 0 ranks 2 "$train" "${common[@]}" "${bf16[@]}" --output runs/sum --update allreduce
run 0 "$train" "${common[@]}" "${bf16[@]}" --output runs/stopped --checkpoint-every 60
rm runs/stopped/summary.json runs/stopped/model.safetensors
run 0 "$train" "${common[@]}" "${bf16[@]}" --output runs/stopped --checkpoint-every 60 --resume auto
says 'going on from'
grep -q 'from now on' err && die "it warns of the same precision"
same_weights runs/one runs/stopped

# ---- going on with the other precision ----

# Files are floats and the optimiser's state goes on: the weights end where those of the first precision
# do, to 0.002 of the norm; without the state it would be 0.03.
go_on() { # FROM TO RUN WHOLE: from FROM's checkpoint at step 60 of 100; WHOLE is all FROM's
    run 0 "$train" "${common[@]}" --epochs 0.5 --warmup-epochs 1 --output "$3" --checkpoint-every 60 --precision "$1"
    rm "$3/summary.json" "$3/model.safetensors"
    run 0 "$train" "${common[@]}" --epochs 0.5 --warmup-epochs 1 --output "$3" --checkpoint-every 60 --precision "$2" \
        --resume auto
    says "going on from $3/checkpoints/step-00000060"
    says "rank 0 computed in $1 until $3/checkpoints/step-00000060, and in $2 from now on"
    grep -qE 'another job|anew' err && die "from $1 to $2: taken for another job"
    grep -qx "precision: $2" "$3/config.yaml" || die "the configuration of $3 does not say $2"
    for whole in runs/one runs/one-fp32; do
        cmp -s $whole/model.safetensors "$3/model.safetensors" && die "$3 has the bits of $whole"
    done
    python3 "$here/weights.py" near "$4/model.safetensors" "$3/model.safetensors" 0.008 ||
        die "$3 is far from $4"
}
run 0 "$train" "${common[@]}" --epochs 0.5 --warmup-epochs 1 --output runs/one-fp32
go_on bf16 fp32 runs/to-fp32 runs/one
go_on fp32 bf16 runs/to-bf16 runs/one-fp32
says 'activations and their gradients are bfloat16 on this rank'

# ---- memory ----

activations() { # PRECISION: $bytes of activations and of their gradients
    run 0 "$train" --model resnet20 --dry-run --precision "$1"
    says "precision: $1" out
    bytes=$(awk '/^  activation/{sum += $(NF - 2)} END{print sum}' out)
}
activations fp32
floats=$bytes
activations bf16
[ $((bytes * 10)) -lt $((floats * 6)) ] || die "activations take $bytes bytes instead of $floats"
