#!/usr/bin/env bash
# Fashion-MNIST, as its publisher gives it: counts, statistics, speed; damaged downloads; damaged
# datasets.
. "$(dirname "$0")/ingest_help.sh"
source=${BPT_TEST_DATA:-$(dirname "$0")/../../../shared/data}/fashion-mnist
train=("$source/train-images-idx3-ubyte.gz" "$source/train-labels-idx1-ubyte.gz")
test=("$source/t10k-images-idx3-ubyte.gz" "$source/t10k-labels-idx1-ubyte.gz")
[ -r "${train[0]}" ] || skip "no Fashion-MNIST at $source (BPT_TEST_DATA)"
command -v python3 >/dev/null || skip "no python3"
data=$work/data

start=$(date +%s%N)
expect 0 'train: 60000 images of 1x28x28' idx "${train[@]}" --out "$data" --split train
expect 0 'test: 10000 images of 1x28x28' idx "${test[@]}" --out "$data" --split test
echo "both splits stored in $((($(date +%s%N) - start) / 1000000)) ms"
expect 0 '70000 images checked' verify "$data"
"$ingest" info --json "$data" | python3 -c '
import json, sys
d = json.load(sys.stdin)
assert d["format"] == 1 and d["shape"] == [1, 28, 28] and d["encoding"] == "raw", d
assert len(d["classes"]) == 10 and len(d["splits"]) == 2, d
for s in d["splits"]:
    n, mean, std = {"train": (6000, .2860, .3530), "test": (1000, .2868, .3524)}[s["name"]]
    assert s["count"] == 10 * n and s["per_class"] == [n] * 10, s
    assert abs(s["mean"][0] - mean) < 5e-4 and abs(s["std"][0] - std) < 5e-4, s
' || failed "what info --json says"
bytes=$(stat -c %s "$data/data.mdb")
[ $bytes -le $((70000 * 784 * 105 / 100)) ] || failed "$bytes bytes are more than 1.05 x the payload"

# ---- downloads gone wrong ----
head -c 1000000 "${train[0]}" >"$work/cut.gz"
expect 3 'cut.gz ends within image' idx "$work/cut.gz" "${train[1]}" --out "$work/x" --split train
cp "${train[0]}" "$work/bad.gz"
chmod u+w "$work/bad.gz"
flip "$work/bad.gz" 5000000
expect 3 'bad.gz is damaged' idx "$work/bad.gz" "${train[1]}" --out "$work/x" --split train
expect 3 '60000 images, but' idx "${train[0]}" "${test[1]}" --out "$work/x" --split train
expect 3 'bpt-ingest idx IMAGES LABELS' idx "${train[1]}" "${train[0]}" --out "$work/x" --split train
gzip -dc "${test[0]}" >"$work/plain"
expect 0 '10000 images' idx "$work/plain" "${test[1]}" --out "$work/plain.data" --split test
[ -e "$work/x" ] && failed "a refused download left a dataset"

# ---- a byte changed in the data file: never a crash; in a record, an error that names it ----
RANDOM=7
quiet=0
for ((i = 0; i < 40; i++)); do
    at=$(((RANDOM * 32768 + RANDOM) % bytes))
    flip "$data/data.mdb" $at
    said=$("$ingest" verify "$data" 2>&1)
    status=$?
    case $status in
    3) [[ $said =~ "split "(train|test)", records "[0-9]+" to "[0-9]+ ]] || echo "byte $at: $said" ;;
    0) quiet=$((quiet + 1)) ;; # a byte that nothing uses: the images are right
    *) failed "byte $at: status $status: $said" ;;
    esac
    flip "$data/data.mdb" $at
done
[ $quiet -le 2 ] || failed "$quiet of 40 changed bytes were not seen"
expect 0 '70000 images checked' verify "$data"
finish
