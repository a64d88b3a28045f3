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

# For people it says the same.
run 0 "$eval" --data data "${weights[@]}" --per-class
python3 - <<'END' || die "the lines of the classes"
import json, re
whole = json.load(open("whole"))
first, head, *lines = open("out").read().splitlines()
assert first == "test: accuracy %.4f (%d of %d), loss %.4f" % tuple(whole[k] for k in ("accuracy", "correct", "count", "loss"))
assert head.startswith("  images  accuracy  class, and what most"), head
assert len(lines) == len(whole["per_class"]) == 10
n_mistaken = 0
for i, (line, told, row) in enumerate(zip(lines, whole["per_class"], whole["confusion"])):
    images, accuracy, name, n, other = re.fullmatch(r" *(\d+) +([\d.]+)  (\S+)(?: \((\d+): (\S+)\))?", line).groups()
    assert (int(images), name) == (told["count"], told["class"]), (line, told)
    assert accuracy == "%.4f" % (told["correct"] / told["count"]), (line, told)
    wrong = {str(j): taken for j, taken in enumerate(row) if j != i}
    most = max(wrong.values())
    if most == 0:
        assert n is None, line
        continue
    n_mistaken += 1
    assert int(n) == most and other == next(j for j in wrong if wrong[j] == most), (line, row) # of several the first
assert n_mistaken > 0, lines
END
run 0 "$eval" --data data "${weights[@]}" --split three --per-class
grep -qE '^ +0 +-  2$' out || die "a class without images"
run 2 "$eval" --data data "${weights[@]}" --per-class --device cuda
says '--per-class is not for --device cuda'
says 'give --device cpu'
run 2 "$eval" --data data "${weights[@]}" --per-class --precision tf32
says '--per-class is not for --precision tf32'
says 'give --precision fp32'

# Images are normalised as those of the split that the weights come from.
run 0 "$eval" --data data "${weights[@]}" --train-split three --json
check_json out "d['count'] == 100 and d['loss'] != json.load(open('plain'))['loss']"
run 3 "$eval" --data data "${weights[@]}" --train-split val
says 'its splits are: test, three, train; --train-split names one of them'

# A table of all pairs of more classes would be too large.
echo "one/3/$(ls one/3 | head -n 1) 4096" >list.txt
"$ingest" list list.txt --out many --split train >out 2>err || die "no dataset of many classes"
fails_well 2 "$eval" --data many --split train "${weights[@]}" --per-class
says 'many has 4097 classes, --per-class takes up to 4096'
sed -i 's/ 4096$/ 4095/' list.txt
"$ingest" list list.txt --out most --split train >out 2>err || die "no dataset of 4096 classes"
fails_well 3 "$eval" --data most --split train "${weights[@]}" --per-class
says 'tensor fc1.weight: its shape is not the one of the model' # as far as the table it has come

# Who has held out images by `bpt-ingest split`, or none, is told how to name them.
run 3 "$eval" --data data "${weights[@]}" --split val
says 'its splits are: test, three, train; --split names one of them'
run 3 "$train" "${common[@]}" --test-split val --output x
says 'its splits are: test, three, train; --test-split names one of them, and `bpt-ingest split` makes two of one'
