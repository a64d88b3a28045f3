#!/usr/bin/env bash
# Images that are mixed from two, with mixup and cutmix: the same training for any number of loader threads and of ranks,
# after a stop and in a replay; what it does to the loss; and what cannot be.
source "$(dirname "$0")/common.sh"
make_data
make_model
both=crop=2,flip,mixup=0.4,cutmix=1

# ---- the same for any number of threads and ranks ----

mixed=("${common[@]}" --batch-size 50 --epochs 1.5 --warmup-epochs 0.1 --eval-every 0)
run 0 "$train" "${mixed[@]}" --augment $both --output runs/mixed
says "augmentation $both"
run 0 "$train" "${mixed[@]}" --augment $both --output runs/threads --threads 2 --loader-threads 3 --prefetch 9
same_weights runs/mixed runs/threads
run 0 "$train" --config runs/mixed/config.yaml --output runs/again
same_weights runs/mixed runs/again
for list in crop=2,flip crop=2,flip,mixup=0.4 crop=2,flip,cutmix=1; do
    run 0 "$train" "${mixed[@]}" --augment $list --output runs/$list
    cmp -s runs/mixed/model.safetensors runs/$list/model.safetensors && die "$list is as $both"
done
run 0 "$train" "${mixed[@]}" --augment $both --output runs/half --epochs 0.5
for n in 2 3; do
    run 0 ranks $n "$train" "${mixed[@]}" --augment $both --update allreduce --output runs/sum-$n --epochs 0.5
    near_weights runs/half runs/sum-$n 1e-5
done

# ---- the loss ----

# Of two labels a sample only their parts can be known, which costs; an evaluation knows nothing of it.
losses() { # RUN: mean of the training's, and that of the last evaluation
    python3 -c 'import json, sys
events = list(map(json.loads, open(sys.argv[1] + "/metrics.jsonl")))
steps, evals = ([e["loss"] for e in events if e["event"] == kind] for kind in ("step", "eval"))
print(sum(steps) / len(steps), evals[-1])' "$1"
}
long=(--epochs 15 --batch-size 20 --log-interval 0)
run 0 "$train" "${mixed[@]}" "${long[@]}" --output runs/plain
run 0 "$train" "${mixed[@]}" "${long[@]}" --output runs/learnt --augment mixup=0.4
run 0 "$train" "${mixed[@]}" "${long[@]}" --output runs/smoothed --augment mixup=0.4 --label-smoothing 0.1
# shellcheck disable=SC2046 # two words each
python3 - $(losses runs/plain) $(losses runs/learnt) $(losses runs/smoothed) <<'END' || die "losses"
import sys
plain, _, mixed, mixed_test, smoothed, _ = map(float, sys.argv[1:])
print(sys.argv[1:])
assert plain + 0.2 < mixed < smoothed - 0.1 < 2.2
assert mixed_test < mixed - 0.2
END
check_json runs/learnt/summary.json 'd["test_accuracy"] > 0.8'
run 0 "$eval" --data data --split test --model tiny.yaml --weights runs/learnt/model.safetensors --json
cp out eval.json
python3 -c 'import json
a, b = json.load(open("eval.json")), json.load(open("runs/learnt/summary.json"))
assert abs(a["loss"] - b["test_loss"]) < 1e-6 and a["accuracy"] == b["test_accuracy"], (a, b)' || die "another evaluation"

# ---- a stop, and a replay ----

run 0 "$train" "${mixed[@]}" --augment $both --output runs/stopped --checkpoint-every 20 --checkpoint-keep 9
same_weights runs/mixed runs/stopped
cut_back runs/stopped
run 0 "$train" "${mixed[@]}" --augment $both --checkpoint-every 20 --output runs/stopped --resume auto
says "going on from runs/stopped/checkpoints/step-00000020"
same_weights runs/mixed runs/stopped
# Images that are held out are mixed into none, there as here.
run 0 ranks 2 "$train" "${common[@]}" --augment $both --update agwu --quality held-out --held-out 0.2 --epochs 2 --output runs/async
run 0 "$train" --replay runs/async
says "bit for bit"
sed -i 's/mixup=0.4/mixup=0.5/' runs/async/config.yaml
fails_well 3 "$train" --replay runs/async
says "weights differ"

# ---- memory ----

plan() { # OPTION...: bytes of batches
    run 0 "$train" --model tiny.yaml --batch-size 32 --threads 1 --loader-threads 3 --dry-run "$@"
    sed -nE 's/^  batches +([0-9]+) +[0-9.]+ MB$/\1/p' out
}
# 4 batches of the training, not 3 of an evaluation, with two more numbers a sample; an image more a thread.
[ $(($(plan --augment flip,mixup=1) - $(plan --augment flip))) -eq $((4 * 32 * 8 + 3 * 28 * 28)) ] ||
    die "bytes of mixing"

# ---- what cannot be ----

good=("${common[@]}" --output runs/x)
for list in mixup mixup= mixup=-1 mixup=nan mixup=0 mixup=0.001 mixup=101 mixup=1:1 cutmix cutmix=-1 cutmix=nan; do
    fails_well 2 "$train" "${good[@]}" --augment $list
    says "it is written ${list%%=*}=ALPHA, e.g. ${list%%=*}="
done
says 'augmentation cutmix: ALPHA "nan" is not a number from 0.01 to 100'
fails_well 2 "$train" "${good[@]}" --augment mixup=1,crop=2
says 'augmentation crop cannot come behind mixup'
fails_well 2 "$train" "${good[@]}" --augment mixup=1,mixup=1
says 'augmentation mixup is given twice'
for n in 1 2; do
    fails_well 2 ranks $n "$train" "${good[@]}" --augment $both --update agwu --data-mode scatter --scratch "$work/scratch"
    says "mixes images with any others of the split, and --data-mode scatter gives a rank its own alone"
done
for layer in fc1 auto; do
    fails_well 2 ranks 2 "$train" "${good[@]}" --augment $both --update allreduce --placement $layer
    says "--placement and --augment: "
done
[ ! -e runs/x ] && [ ! -e scratch ] || die "what is refused leaves something"
