#!/usr/bin/env bash
# bpt-eval --train-data: images of a dataset of their own, with the classes that the network has learnt, and without any.
source "$(dirname "$0")/common.sh"
make_data 400 100
make_model
run 0 "$train" "${common[@]}" --epochs 2 --output run
weights=(--model tiny.yaml --weights run/model.safetensors)
run 0 "$eval" --data data "${weights[@]}" --json --predictions data.jsonl
cp out whole
run 0 "$ingest" export data --split test --to files

# The same images in a dataset by themselves are judged alike.
run 0 "$ingest" folder files --out apart --split test
run 0 "$eval" --data apart --train-data data "${weights[@]}" --json --per-class --predictions apart.jsonl
python3 - <<'END' || die "the same images, judged otherwise"
import json, math
whole, apart = json.load(open("whole")), json.load(open("out"))
assert (apart["count"], apart["correct"]) == (whole["count"], whole["correct"])
assert math.isclose(apart["loss"], whole["loss"], rel_tol=1e-5)
answers = []
for name in "data.jsonl", "apart.jsonl":
    lines = map(json.loads, open(name))
    answers.append(sorted((line["label"], line["predicted"], line["label_probability"]) for line in lines))
for a, b in zip(*answers, strict=True):
    assert a[:2] == b[:2] and math.isclose(a[2], b[2], rel_tol=1e-4), (a, b)
END
run 0 "$eval" --data apart --train-data data "${weights[@]}" --json --stage copies
json_holds out 'd["count"] == 100 and abs(d["accuracy"] - json.load(open("whole"))["accuracy"]) < 1e-9' ||
    die "a copy is judged otherwise"

# Images that nobody has sorted: the lines of a list of their names and those of the predictions go together.
mkdir new
for file in files/*/*; do cp "$file" "new/$(basename "$file")"; done
(cd new && find . -name '*.png' | sort -r | sed 's/$/\tunknown/') >new/list.txt
run 0 "$ingest" list new/list.txt --out unsorted --split test
run 0 "$eval" --data unsorted --train-data data "${weights[@]}" --predictions list.jsonl
grep -q '^test: 100 images, whose classes are not those of data$' out || die "$(cat out)"
run 0 "$eval" --data unsorted --train-data data "${weights[@]}" --predictions again.jsonl --json --batch-size 7 --threads 2
[ "$(cat out)" = '{"count": 100}' ] || die "a result of images without labels"
# Likewise a folder of them: they come in the order of their names.
mkdir sorted
mv new/list.txt list.txt
mv new sorted/unknown
run 0 "$ingest" folder sorted --out in-folder --split test
run 0 "$eval" --data in-folder --train-data data "${weights[@]}" --predictions folder.jsonl
paste list.txt list.jsonl >pasted
python3 - <<'END' || die "images without labels are taken for something else"
import json, math, re
known = {line["sample"]: line for line in map(json.loads, open("data.jsonl"))}
def check(number, line):
    assert line.keys() == {"sample", "label", "predicted", "probability"} and line["label"] == "unknown", line
    wanted = known[number]
    assert line["predicted"] == wanted["predicted"], (line, wanted)
    assert math.isclose(line["probability"], wanted["probability"], rel_tol=1e-4), (line, wanted)
pasted = [re.fullmatch(r"\./0*(\d+)\.png\tunknown\t(.*)\n", line) for line in open("pasted")]
for match in pasted:
    check(int(match[1]), json.loads(match[2]))
assert [int(match[1]) for match in pasted] == list(reversed(range(100)))
for number, line in enumerate(open("folder.jsonl")):
    check(number, json.loads(line))
for a, b in zip(open("list.jsonl"), open("again.jsonl"), strict=True):
    a, b = json.loads(a), json.loads(b)
    assert math.isclose(a.pop("probability"), b.pop("probability"), rel_tol=1e-4) and a == b
END

# The dataset itself, by whatever path, is no other one.
ln -s data link
for same in data data/ link; do
    run 0 "$eval" --data data --train-data $same "${weights[@]}" --json
    cmp out whole || die "the dataset itself is another one as $same"
done

run 0 "$eval" --data data --stage own "${weights[@]}"
run 0 "$eval" --data data --stage own --train-data own/* "${weights[@]}" --json
cmp out whole || die "the copy that is read is another dataset than itself"
run 0 "$eval" --data data "${weights[@]}" --onnx whole.onnx
run 0 "$eval" --data data --stage own --train-data own/* "${weights[@]}" --onnx copy.onnx
cmp whole.onnx copy.onnx || die "what it was trained on is the copy, not the dataset"

# Files are brought to the size of those that were trained on.
run 0 "$ingest" folder sorted --out encoded --split test --encoded --resize 56 56
run 0 "$eval" --data encoded --train-data data "${weights[@]}" --predictions encoded.jsonl
[ "$(wc -l <encoded.jsonl)" -eq 100 ] || die "JPEG files"

refused() { # STATUS SAYS OPTION...
    local status=$1 text=$2
    shift 2
    fails_well "$status" "$eval" "${weights[@]}" "$@"
    says "$text"
}
refused 2 'the classes of unsorted are not those of data' --data unsorted --train-data data
refused 2 'the classes of unsorted are not those of data' --data unsorted --train-data data --per-class --predictions no.jsonl
# One class more, behind the others, or one less: numbers of classes mean the same, and yet not all of them are known. As
# many of other names are others, too.
mkdir more fewer renamed
cp -r files/* more
cp -r files/0 more/a
cp -r files/[0-8] fewer
cp -r files/[0-8] renamed
cp -r files/9 renamed/a
for other in more fewer renamed; do
    run 0 "$ingest" folder $other --out data-$other --split test
    refused 2 "the classes of data-$other are not those of data" --data data-$other --train-data data
done
run 0 "$ingest" folder files --out three --split test --resize 28 28 --channels 3
refused 2 'three holds images of 3 channels, and data of 1' --data three --train-data data
run 0 "$ingest" folder files --out large --split test --resize 32 32
refused 2 'large holds raw images of 32x32 pixels (HxW), not 28x28' --data large --train-data data
says 'by the same options'
refused 2 'large holds raw images of 32x32 pixels (HxW), not 28x28' --data large --train-data encoded
says 'give --input-size as in training'
refused 3 'no split "train"' --data data --train-data apart
grep -q -- '--train-data names it' err && die "the option that was given is said to be missing"
refused 3 'no split "train"' --data apart
says 'of another dataset, --train-data names it' # it may have been forgotten
refused 3 'no dataset at nowhere' --data data --train-data nowhere
refused 2 '--train-data is missing' --data data --train-data ''
refused 2 '--stage is missing' --data data --stage ''
[ -e no.jsonl ] && die "predictions of what was refused"
exit 0
