#!/usr/bin/env bash
# The file of bpt-eval --onnx: computed by plain loops from the pixels as they are stored, it says of each image what
# --predictions says; it names the classes and where it comes from; and it is whole or not there.
source "$(dirname "$0")/common.sh"
make_data 400 100
cat >norm.yaml <<'END'
name: norm
input: [1, 28, 28]
classes: 10
layers:
  - conv: {name: conv1, filters: 8, kernel: 5, stride: 2, bias: false}
  - batchnorm: {name: norm1}
  - relu
  - maxpool: {kernel: 3, stride: 2, ceil: true}
  - fc: {name: fc1, outputs: 20}
  - relu
  - dropout: {rate: 0.2}
  - fc: {name: fc2, outputs: classes}
END
quick=(--model norm.yaml --batch-size 20 --threads 1 --lr 0.05 --log-interval 0 --epochs 6)
run 0 "$train" --data data "${quick[@]}" --output run
weights=(--data data --model norm.yaml --weights run/model.safetensors)

agrees() { # ONNX PREDICTIONS DATASET SPLIT [H W]
    "${BPT_HELPERS:?}/run_onnx" "$1" "${@:3}" >computed 2>err || die "$1 cannot be computed"
    "$BPT_HELPERS/run_onnx" "$1" >told || die "$1 cannot be read"
    python3 - "$2" <<'END' || die "$1 says something else than $2"
import json, math, sys
classes = json.loads(json.load(open("told"))["metadata"]["classes"])
lines = [json.loads(line) for line in open(sys.argv[1], encoding="utf-8")]
assert len(lines) > 10
for line, p in zip(lines, map(json.loads, open("computed")), strict=True):
    assert len(p) == len(classes) and math.isclose(sum(p), 1, rel_tol=1e-6)
    assert line["predicted"] == classes[p.index(max(p))], (line, p)
    assert math.isclose(line["probability"], max(p), rel_tol=1e-5), (line, p)
    label = p[classes.index(line["label"])]
    assert math.isclose(line["label_probability"], label, rel_tol=1e-5), (line, p)
END
}

run 0 "$eval" "${weights[@]}" --json
cp out result
run 0 "$eval" "${weights[@]}" --json --onnx net.onnx --predictions lines.jsonl
cmp out result || die "--onnx changes the result"
agrees net.onnx lines.jsonl data test
run 0 "$ingest" info data --json
cp out info
check_json told 'd["producer"] == "bpt"' 'd["input"] == [-1, 1, 28, 28]' \
    'd["input_text"] == d["metadata"]["input"] == "pixels from 0 to 255, grey, of images of 28 x 28 (height x width)"' \
    'd["metadata"]["model"] == "norm"' 'd["metadata"]["weights"] == "run/model.safetensors"' \
    'd["metadata"]["train_data"] == "data"' 'd["metadata"]["train_split"] == "train"' \
    'all(json.loads(d["metadata"][key]) == s[key] for s in json.load(open("info"))["splits"] if s["name"] == "train"
         for key in ("mean", "std"))'

# The file depends on nothing but the weights and what they have learnt from.
run 0 "$eval" "${weights[@]}" --onnx again.onnx --batch-size 7 --threads 2 --per-class --split train
cmp net.onnx again.onnx || die "the same network, another file"

# Images of another dataset are normalised as those that it has learnt from.
run 0 "$ingest" export data --split test --to files
mkdir sorted
cp -r files/7 sorted/unknown
run 0 "$ingest" folder sorted --out new --split test
run 0 "$eval" --data new --train-data data --model norm.yaml --weights run/model.safetensors --onnx new.onnx \
    --predictions new.jsonl
cmp net.onnx new.onnx || die "with --train-data the same network makes another file"

# Images in colours that are brought to a size, and classes of any names.
mkdir photographs
cp -r files/0 'photographs/a "quoted" name'
cp -r files/1 'photographs/Bär'
for split in train test; do
    run 0 "$ingest" folder photographs --out colours --split $split --encoded --channels 3 --resize 42 40
done
run 0 "$train" --data colours "${quick[@]}" --batch-size 10 --input-size 30 26 --output colours-run
run 0 "$eval" --data colours --model norm.yaml --weights colours-run/model.safetensors --input-size 30 26 \
    --onnx colours.onnx --predictions colours.jsonl
agrees colours.onnx colours.jsonl colours test 30 26
check_json told 'd["input"] == [-1, 3, 30, 26]' 'len(json.loads(d["metadata"]["std"])) == 3' \
    '"channels red, green, blue, of images of 30 x 26" in d["input_text"]'

# An earlier file is replaced, and so is an empty one; nothing else is.
: >empty.onnx
cp colours.onnx replaced.onnx
for there in empty replaced; do
    run 0 "$eval" "${weights[@]}" --onnx $there.onnx
    cmp $there.onnx net.onnx || die "$there.onnx was not replaced"
done
cp norm.yaml mine
mkfifo pipe
printf '\x08\x07\x12\x07pytorch' >others.onnx
cp others.onnx kept
for there in mine run pipe others.onnx lines.jsonl run/model.safetensors; do
    fails_well 2 "$eval" "${weights[@]}" --onnx $there
    says "$there exists already and is no ONNX file of bpt's"
done
cmp mine norm.yaml && cmp others.onnx kept || die "another file was written over"
fails_well 2 "$eval" "${weights[@]}" --predictions net.onnx
says 'net.onnx exists already and is no file of predictions'
fails_well 2 "$eval" "${weights[@]}" --onnx -
says 'standard output has the result'
fails_well 2 "$eval" "${weights[@]}" --onnx ''
says '--onnx is missing'
fails_well 1 "$eval" "${weights[@]}" --onnx nowhere/net.onnx
says 'cannot write nowhere/net.onnx'
[ -s out ] && die "it was computed before the file was tried"
fails_well 2 "$eval" "${weights[@]}" --onnx one --predictions one
says '--predictions and --onnx name the same file: one'
[ -s out ] && die "it was computed for nothing"
fails_well 2 "$eval" "${weights[@]}" --onnx one --predictions ./one
says 'one exists already'
cmp one lines.jsonl || die "the predictions are lost"
fails_well 3 "$eval" "${weights[@]}" --onnx none.onnx --split val
[ -e none.onnx ] && die "a file of nothing"

# No room for the file: the one before stays, no part is left, and the result is told all the same.
cp colours.onnx full.onnx
(
    ulimit -f 4 # of 1024 bytes
    exec "$eval" "${weights[@]}" --onnx full.onnx
) >out 2>err
[ $? -eq 1 ] || die "a file without room is no failure"
says 'cannot write full.onnx'
grep -q '^test: accuracy' out || die "the result is lost"
cmp colours.onnx full.onnx || die "the earlier file is lost"
compgen -G '*.tmp-*' && die "a part of a file is left"
exit 0
