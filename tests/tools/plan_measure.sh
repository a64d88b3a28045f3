#!/usr/bin/env bash
# bpt-plan --measure: what it writes is read back to the same plan, by itself and under mpirun, with a dataset and without;
# what it refuses leaves everything as it was, and where one rank fails all end.
source "$(dirname "$0")/common.sh"
make_data 400 100
make_model
quick=(--model tiny.yaml --seconds 0.05 --threads 1 --device cpu --measure)

again() { # FILE COMMAND...: a plan from the file is that which was made when it was written, but for digits
    local file=$1
    shift
    cp out first.json
    run 0 "$@" --cluster "$file" --json
    cp out second.json
    python3 - <<'END_OF_CHECK' || die "another plan from $file"
import json
def like(a, b):
    if isinstance(a, float) or isinstance(b, float):
        return abs(a - b) <= 1e-3 * abs(a) + 1e-6
    if isinstance(a, dict):
        return a.keys() == b.keys() and all(like(a[k], b[k]) for k in a)
    if isinstance(a, list):
        return len(a) == len(b) and all(map(like, a, b))
    return a == b
assert like(json.load(open("first.json")), json.load(open("second.json")))
END_OF_CHECK
}

# ---- one rank ----
run 0 "$plan" "${quick[@]}" --data data --cluster one.yaml --batch-size 20 --json
check_json out 'len(d["ranks"]) == 1' 'd["ranks"][0]["images_per_s"] > 0' 'd["update"] == "local"' \
    'd["epoch_images"] == 400'
grep -q '^# Made by bpt-plan on ' one.yaml && grep -q 'load-us-per-image: [0-9]' one.yaml || die "$(cat one.yaml)"
again one.yaml "$plan" --model tiny.yaml --data data --batch-size 20
run 0 "$plan" --model tiny.yaml --data data --cluster one.yaml --train-split test --input-size 28x28 --out plan.yaml
says '; 100 images an epoch' out
says 'train-split: "test"' plan.yaml
says 'input-size: [28, 28]' plan.yaml
cp one.yaml kept.yaml
fails_well 2 "$plan" "${quick[@]}" --data data --cluster one.yaml
says 'one.yaml is there already'
cmp one.yaml kept.yaml || die "a file that was there is changed"
run 0 "$plan" "${quick[@]}" --cluster one.yaml --force
grep -q 'load-us-per-image' one.yaml && die "images are read without a dataset"
echo 'update: agwu' >mine.yaml
fails_well 2 "$plan" "${quick[@]}" --cluster mine.yaml --force
[ "$(cat mine.yaml)" = 'update: agwu' ] || die "another's file is replaced"
fails_well 1 "$plan" "${quick[@]}" --cluster nowhere/one.yaml
fails_well 2 "$plan" "${quick[@]}" --cluster twice.yaml --out ./twice.yaml
grep -q '^bpt-cluster: 1' twice.yaml || die "what was measured is replaced by a plan"
fails_well 3 "$plan" "${quick[@]}" --data nowhere --cluster two.yaml
fails_well 2 "$plan" "${quick[@]}" --data data --cluster two.yaml --batch-size 401
says '--batch-size 401: a step takes 401 samples, split "train" has 400'
[ -e two.yaml ] && die "a cluster of nothing is written"

# What was measured is of one shape, precision and optimiser.
fails_well 2 "$plan" --model tiny.yaml --classes 7 --cluster one.yaml
says 'was measured with layers'
fails_well 2 "$plan" --model tiny.yaml --optimizer adamw --cluster one.yaml
says 'was measured with --optimizer sgd, this is adamw'
fails_well 2 "$plan" --model tiny.yaml --precision auto --cluster one.yaml
says 'was measured with --precision fp32, this is auto'

# ---- several ranks ----
run 0 ranks 3 "$plan" "${quick[@]}" --data data --cluster three.yaml --batch-size 20 --json --out plan.yaml --force
[ "$(grep -c '"model"' out)" -eq 1 ] || die "more than one rank answers"
check_json out 'len(d["ranks"]) == 3' 'len({r["node"] for r in d["ranks"]}) == 3' \
    '[s["ranks"] for s in d["sizes"]] == [1, 2, 3]'
again three.yaml "$plan" --model tiny.yaml --data data --batch-size 20
run 0 ranks 3 "$train" --config plan.yaml --data data --epochs 0.2 --threads 1 --output runs/planned
update=$(sed -n 's/^update: //p' plan.yaml)
check_json runs/planned/summary.json "d['update'] == '$update'"
run 0 "$plan" --model tiny.yaml --data data --cluster three.yaml --batch-size 20 --compare runs/planned
says 'runs/planned: ' out
run 2 ranks 2 "$plan" "${quick[@]}" --cluster three.yaml
[ "$(grep -c '^bpt-plan: ' err)" -eq 1 ] || die "not one error line of two ranks"
says 'three.yaml is there already'
run 2 ranks 2 "$plan" --model lenet
[ "$(grep -c '^bpt-plan: ' err)" -eq 1 ] || die "not one error line of two ranks before they met"
# Without --measure ranks are not asked.
run 0 ranks 2 "$plan" --model tiny.yaml --data data --cluster three.yaml
[ "$(grep -c '^take --update' out)" -eq 1 ] || die "more than one rank answers"
# shellcheck disable=SC2016 # expanded by the ranks
run 3 ranks 2 "${unlike[@]}" "$plan" "${quick[@]}" --data data --cluster two.yaml --others \
    "$plan" "${quick[@]}" --data nowhere --cluster two.yaml
[ "$(grep -c '^bpt-plan: ' err)" -eq 1 ] || die "not one error line where one of two ranks fails"
says 'rank 1 on '
run 2 ranks 2 "${unlike[@]}" "$plan" "${quick[@]}" --cluster two.yaml --others \
    "$plan" "${quick[@]}" --cluster two.yaml --batch-size 3
[ "$(grep -c '^bpt-plan: rank 1 on .*: --batch-size is not as rank 0 has it' err)" -eq 1 ] || die "$(cat err)"
# A rank that fails before they have met says so, where no other does.
run 2 ranks 2 "${unlike[@]}" "$plan" "${quick[@]}" --cluster two.yaml --others "$plan" --nonsense
[ "$(grep -c '^bpt-plan: rank 1 on ' err)" -eq 1 ] || die "a rank that fails by itself does not say why"
[ -e two.yaml ] && die "a cluster of nothing is written"
exit 0
