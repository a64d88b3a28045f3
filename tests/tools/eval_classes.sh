#!/usr/bin/env bash
# What bpt-eval --per-class says of single classes: the sums of it are the whole, and a class by itself is no other.
source "$(dirname "$0")/common.sh"
make_data 400 100
make_model
run 0 "$train" "${common[@]}" --epochs 2 --output run
weights=(--model tiny.yaml --weights run/model.safetensors)
run 0 "$eval" --data data "${weights[@]}" --json
cp out plain
run 0 "$eval" --data data "${weights[@]}" --per-class --json
cp out whole
for batch in 7 100; do
    run 0 "$eval" --data data "${weights[@]}" --per-class --json --batch-size $batch --threads 2 --loader-threads 2
    cp out again.$batch
done

# One class in a split of its own.
"$ingest" export data --split test --to png >out 2>err || die "the images are not exported"
mkdir -p one
mv png/3 one
"$ingest" folder one --out data --split three >out 2>err || die "no split of one class"
run 0 "$eval" --data data "${weights[@]}" --split three --json
cp out three

"$ingest" info data --json >info 2>err || die "no description"
python3 - again.* <<'END' || die "numbers of classes"
import json, sys
plain, whole, three = (json.load(open(name)) for name in ("plain", "whole", "three"))
for name in sys.argv[1:]:
    again = json.load(open(name))
    assert all(again[key] == whole[key] for key in whole if key != "loss"), name
assert {key: whole[key] for key in plain} == plain
split = next(s for s in json.load(open("info"))["splits"] if s["name"] == "test")
rows = whole["confusion"]
assert [sum(row) for row in rows] == [c["count"] for c in whole["per_class"]] == split["per_class"]
assert [rows[i][i] for i in range(10)] == [c["correct"] for c in whole["per_class"]]
assert sum(c["correct"] for c in whole["per_class"]) == plain["correct"] < plain["count"]
assert [c["class"] for c in whole["per_class"]] == [str(i) for i in range(10)]
assert (three["count"], three["correct"]) == (sum(rows[3]), rows[3][3])
END

run 0 "$eval" --data data "${weights[@]}" --per-class
[ "$(wc -l <out)" -eq 12 ] || die "not a line for each class"
run 0 "$eval" --data data "${weights[@]}" --split three --per-class
grep -qE '^ +0 +-  2$' out || die "a class without images"
run 2 "$eval" --data data "${weights[@]}" --per-class --device cuda
says '--per-class is not for --device cuda'
says 'give --device cpu'
run 2 "$eval" --data data "${weights[@]}" --per-class --precision tf32
says '--per-class is not for --precision tf32'
says 'give --precision fp32'

# Who has held out images by `bpt-ingest split`, or none, is told how to name them.
run 3 "$eval" --data data "${weights[@]}" --split val
says 'its splits are: test, three, train; --split names one of them'
run 3 "$train" "${common[@]}" --test-split val --output x
says 'its splits are: test, three, train; --test-split names one of them, and `bpt-ingest split` makes two of one'
