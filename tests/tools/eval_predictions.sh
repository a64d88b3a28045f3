#!/usr/bin/env bash
# The file of bpt-eval --predictions: with the accuracy, the loss and the confusions that bpt-eval itself gives, the
# same for any threads, with the names and numbers that the dataset has, and whole or not there.
source "$(dirname "$0")/common.sh"
make_data 400 100
make_model
run 0 "$train" "${common[@]}" --epochs 2 --output run
weights=(--data data --model tiny.yaml --weights run/model.safetensors)
run 0 "$eval" "${weights[@]}" --per-class --json
cp out result
run 0 "$eval" "${weights[@]}" --per-class --json --predictions lines.jsonl
cmp out result || die "--predictions changes the result"
run 0 "$eval" "${weights[@]}" --predictions alone.jsonl
cmp alone.jsonl lines.jsonl || die "with --per-class the file is another one"
[ "$(wc -l <out)" -eq 1 ] || die "more on standard output than the result"
for batch in 1 7 100; do
    run 0 "$eval" "${weights[@]}" --predictions $batch.jsonl --batch-size $batch
    run 0 "$eval" "${weights[@]}" --predictions threads.jsonl --batch-size $batch --threads 3 --loader-threads 2
    cmp threads.jsonl $batch.jsonl || die "other threads, another file with batches of $batch"
done

run 0 "$ingest" export data --split test --to files # to files of the same numbers, in a folder for each label
(cd files && find . -name '*.png' -printf '%P\n') >files.txt
python3 - 1 7 100 <<'END' || die "the lines are not what was computed"
import json, math, sys
result = json.load(open("result"))
lines = [json.loads(line) for line in open("lines.jsonl")]
n = result["count"]
assert [line["sample"] for line in lines] == list(range(n))
assert {f"{line['label']}/{line['sample']:08}.png" for line in lines} == {line.strip() for line in open("files.txt")}
assert sum(line["predicted"] == line["label"] for line in lines) == result["correct"] < n
assert abs(sum(-math.log(line["label_probability"]) for line in lines) / n - result["loss"]) < 1e-6
confusion = [[0] * 10 for _ in range(10)]
for line in lines:
    p, of_label = line["probability"], line["label_probability"]
    confusion[int(line["label"])][int(line["predicted"])] += 1
    assert 0.1 <= p <= 1 and 0 < of_label <= p and (of_label == p) == (line["label"] == line["predicted"]), line
assert confusion == result["confusion"]
for batch in sys.argv[1:]:
    for line, other in zip(lines, map(json.loads, open(f"{batch}.jsonl")), strict=True):
        assert all(math.isclose(line[key], other[key], rel_tol=1e-4) if key.endswith("probability")
                   else line[key] == other[key] for key in line), (line, other)
END

# Names of classes may hold anything.
mkdir photographs
cp -r files/0 'photographs/a "quoted" name'
cp -r files/1 'photographs/Bär'
run 0 "$ingest" folder photographs --out named --split train
run 0 "$ingest" folder photographs --out named --split test
run 0 "$train" --data named --model tiny.yaml --batch-size 10 --threads 1 --epochs 1 --output named-run
run 0 "$eval" --data named --model tiny.yaml --weights named-run/model.safetensors --predictions named.jsonl
python3 - <<'END' || die "names of classes"
import json
lines = [json.loads(line) for line in open("named.jsonl", encoding="utf-8")]
assert {line["label"] for line in lines} == {'a "quoted" name', "Bär"} >= {line["predicted"] for line in lines}
END

# An earlier file is replaced, and so is an empty one; nothing else is.
: >empty.jsonl
run 0 "$eval" "${weights[@]}" --predictions empty.jsonl
cmp empty.jsonl lines.jsonl || die "an empty file was not replaced"
cp named.jsonl replaced.jsonl
run 0 "$eval" "${weights[@]}" --predictions replaced.jsonl
cmp replaced.jsonl lines.jsonl || die "an earlier file was not replaced"
cp tiny.yaml mine
mkfifo pipe
for there in mine run pipe; do
    fails_well 2 "$eval" "${weights[@]}" --predictions $there
    says "$there exists already and is no file of predictions"
done
cmp mine tiny.yaml || die "another file was written over"
fails_well 2 "$eval" "${weights[@]}" --predictions -
says 'standard output has the result'
fails_well 2 "$eval" "${weights[@]}" --predictions ''
says '--predictions is missing'
fails_well 1 "$eval" "${weights[@]}" --predictions nowhere/lines.jsonl
says 'cannot write nowhere/lines.jsonl'
[ -s out ] && die "it was computed for nothing"
fails_well 2 "$eval" "${weights[@]}" --predictions new.jsonl --device cuda
says '--predictions is not for --device cuda'
fails_well 2 "$eval" "${weights[@]}" --predictions new.jsonl --precision tf32
says '--predictions is not for --precision tf32'
fails_well 3 "$eval" "${weights[@]}" --predictions new.jsonl --split val
[ -e new.jsonl ] && die "a file of nothing"

# No room for the file: the one before stays, no part is left, and the result is told all the same.
cp named.jsonl full.jsonl
(
    ulimit -f 4 # of 1024 bytes
    exec "$eval" "${weights[@]}" --predictions full.jsonl
) >out 2>err
[ $? -eq 1 ] || die "a file without room is no failure"
says 'cannot write full.jsonl'
grep -q '^test: accuracy' out || die "the result is lost"
cmp named.jsonl full.jsonl || die "the earlier file is lost"
compgen -G '*.tmp-*' && die "a part of a file is left"
exit 0
