#!/usr/bin/env bash
# --placement: layers that one rank computes for all. The same trajectory as where every rank computes all of them; the bytes
# are those of the formula; a job goes on with the same bits; what cannot be is refused.
source "$(dirname "$0")/common.sh"
source "$here/resume_help.sh"
make_data 2000 100

# Two layers with weights on each side, and dropout behind the border.
cat >parts.yaml <<'END'
name: parts
input: [1, 28, 28]
classes: 10
layers:
  - conv: {name: conv1, filters: 16, kernel: 5, stride: 2}
  - batchnorm: {name: norm1}
  - relu
  - conv: {name: conv2, filters: 16, kernel: 3}
  - relu
  - maxpool: {name: pool, kernel: 2}
  - fc: {name: fc1, outputs: 300}
  - relu
  - dropout: {name: drop, rate: 0.4}
  - fc: {name: fc2, outputs: classes}
END
placed=(--data data --model parts.yaml --batch-size 24 --threads 1 --lr 0.05 --update allreduce --epochs 0.3 --eval-every 0.012
    --warmup-epochs 0.1 --calibrate 0.01 --log-interval 0.1)

losses_agree() { # RUN RUN: on the whole test split, after each of 25 steps
    python3 - "$@" <<'END' || die "$2 leaves the trajectory of $1"
import json, sys
def curve(run):
    events = map(json.loads, open(f"{run}/metrics.jsonl"))
    return [(e["step"], e["loss"]) for e in events if e["event"] == "eval"]
a, b = curve(sys.argv[1]), curve(sys.argv[2])
assert [step for step, _ in a] == list(range(1, 26)) == [step for step, _ in b], (a, b)
worst = max(abs(x - y) / x for (_, x), (_, y) in zip(a, b))
print(f"{sys.argv[2]}: loss differs by at most {worst:.1e} relative")
assert worst <= 1e-5, worst
assert a[-1][1] < a[0][1]
END
}

declare -A before=([conv2]=480 [fc1]=2800 [fc2]=123100) # parameters up to the border, running statistics among them
for n in 2 4; do
    [ $n = 4 ] || variants || continue
    run 0 ranks $n "$train" "${placed[@]}" --output runs/whole-$n
    for border in conv2 fc1 fc2; do
        run 0 ranks $n "$train" "${placed[@]}" --placement $border --output runs/$border-$n
        says "placement: layers from $border on, $((126110 - before[$border])) of 126110 parameters, on rank "
        losses_agree runs/whole-$n runs/$border-$n
        # Tasks of two networks at a time are not told apart.
        check_json runs/$border-$n/summary.json 'all(r["path_s"] == r["work_s"] == 0 for r in d["ranks"])' \
            'all(r["limit"] in ("work", "data", "messages", "between") for r in d["ranks"])'
    done
done

# 4 bytes a value there and back and 4 a label, and the weights up to the border twice, of every rank; running
# statistics are exchanged as weights are.
values() { # BORDER: values of a sample that cross it, and weights before it
    case $1 in
    conv2) echo 2304 $((16 * 25 + 16 + 64)) ;;
    fc1) echo 400 $((16 * 25 + 16 + 64 + 16 * 144 + 16)) ;;
    fc2) echo 300 $((16 * 25 + 16 + 64 + 16 * 144 + 16 + 400 * 300 + 300)) ;;
    esac
}
for n in 2 4; do
    [ $n = 4 ] || variants || continue
    for border in conv2 fc1 fc2; do
        read -r a p < <(values $border)
        check_json runs/$border-$n/summary.json \
            "sum(r['payload_bytes_sent'] for r in d['ranks']) == 25 * ($n * 8 * $p + 24 * (8 * $a + 4))" \
            "sum(r['payload_bytes_received'] for r in d['ranks']) == 25 * ($n * 8 * $p + 24 * (8 * $a + 4))"
    done
done

# The weights are those of the whole network, whoever has them.
near_weights runs/whole-4 runs/fc1-4 1e-4
run 0 "$eval" --data data --split test --model parts.yaml --weights runs/fc1-4/model.safetensors --json
python3 - <<'END' || die "bpt-eval does not see what the run has seen"
import json
said, summary = json.load(open("out")), json.load(open("runs/fc1-4/summary.json"))
assert abs(said["accuracy"] - summary["test_accuracy"]) < 1e-12, (said, summary)
END

# A job goes on with the same bits, and with the same host.
once=("${placed[@]}" --placement fc1 --momentum 0.9 --checkpoint-every 10)
run 0 ranks 3 "$train" "${once[@]}" --output runs/once
cp -r runs/once runs/on
cut_back runs/on
run 0 ranks 3 "$train" "${once[@]}" --output runs/on --resume auto
says "going on from runs/on/checkpoints/step-00000010"
same_weights runs/once runs/on
# From a checkpoint of before times of steps were told apart: what such a part did is not told apart either.
cp -r runs/once runs/older
cut_back runs/older
older_times runs/older
run 0 ranks 3 "$train" "${once[@]}" --output runs/older --resume auto
same_weights runs/once runs/older
check_json runs/older/summary.json 'all(r["path_s"] == r["work_s"] == 0 < r["compute_s"] for r in d["ranks"])'
cp -r runs/once runs/auto
cut_back runs/auto
run 0 ranks 3 "$train" "${once[@]}" --output runs/auto --resume auto --placement auto
same_weights runs/once runs/auto
cp -r runs/once runs/off
cut_back runs/off
run 0 ranks 3 "$train" "${once[@]}" --output runs/off --resume auto --placement off
says "(--placement differs)"
# Where none can be placed, a name is no other job: on one rank, and under sgwu.
printf 'placement: fc1\n' >named.yaml
idle=("${placed[@]}" --config named.yaml --eval-every 0 --checkpoint-every 10)
for case in "1 allreduce" "2 sgwu --partition even"; do
    read -r n update <<<"$case"
    # shellcheck disable=SC2206 # several words
    same=("${idle[@]}" --update $update)
    run 0 ranks "$n" "$train" "${same[@]}" --output runs/idle-$n
    grep -q "placement: layers from" err && die "placed by --update $update on $n ranks"
    cp -r runs/idle-$n runs/idle-on-$n
    cut_back runs/idle-on-$n
    run 0 ranks "$n" "$train" "${same[@]}" --output runs/idle-on-$n --resume auto
    says "going on from runs/idle-on-$n/checkpoints/step-"
    grep -q 'is of another job' err && die "not the same job"
    same_weights runs/idle-$n runs/idle-on-$n
done

# By measurement. What was measured leaves no trace where nothing is placed.
make_model
for optimizer in sgd adamw; do
    for placement in off auto; do
        run 0 ranks 2 "$train" "${placed[@]}" --model tiny.yaml --lr 0.002 --optimizer $optimizer --placement $placement \
            --output runs/$optimizer-$placement
    done
    says "--placement auto: "
    grep -q "placement: layers from" err && die "a layer of few weights is placed"
    same_weights runs/$optimizer-off runs/$optimizer-auto
done
run 0 ranks 2 "$train" "${placed[@]}" --model lenet --placement auto --output runs/chosen
says "--placement auto: "

# What cannot be.
fails_well 2 ranks 2 "$train" "${placed[@]}" --placement conv7 --output runs/none
says 'bpt-train: --placement conv7: model parts has no layer called "conv7"'
fails_well 2 ranks 2 "$train" "${placed[@]}" --placement conv1 --output runs/none
says "it is the first one"
fails_well 2 ranks 2 "$train" "${placed[@]}" --placement fc1 --clip-norm 1 --output runs/none
says "no rank knows the norm"
fails_well 4 ranks 2 "$train" "${placed[@]}" --placement fc1 --lr 1e12 --warmup-epochs 0 --output runs/torn
says "or lengthen --warmup-epochs"
grep -q -- '--clip-norm' err && die "it hints at what is refused"
fails_well 2 ranks 2 "$train" "${placed[@]}" --placement fc1 --tuned none.yaml --output runs/none
says "networks that are whole"
# A batch norm at the host would have the statistics of all ranks' samples.
sed 's/^  - conv: {name: conv2.*/&\n  - batchnorm: {name: norm2}/' parts.yaml >norms.yaml
fails_well 2 ranks 2 "$train" "${placed[@]}" --model norms.yaml --placement conv2 --output runs/none
says "batch norm norm2 would have the statistics of all ranks"
run 0 ranks 2 "$train" "${placed[@]}" --model norms.yaml --placement fc1 --output runs/norms

fails_well 2 ranks 2 "$train" "${placed[@]}" --placement auto --calibrate 0 --output runs/none
says "auto goes by measurements"
fails_well 2 "$train" "${placed[@]}" --placement conv7 --dry-run
[ ! -e runs/none ] || die "a refused run leaves a folder"
