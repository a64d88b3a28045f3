#!/usr/bin/env bash
# bpt-ingest from its user's side: help, every way to get it wrong, info, verify, --force.
. "$(dirname "$0")/ingest_help.sh"
data=$work/data

# ---- help ----
expect 0 'bpt-ingest idx IMAGES LABELS' --help
expect 2 'bpt-ingest idx IMAGES LABELS'
expect 2 'no arguments'
expect 0 'bpt-ingest 0.' --version
for command in idx cifar glyphs info verify; do
    expect 0 "bpt-ingest $command" $command --help
    expect 0 'bpt-ingest 0.' $command --version
done

# ---- wrong usage: status 2, and what to do ----
expect 2 'did you mean "glyphs"' glyhps
expect 2 'unknown command "frobnicate"' frobnicate
# The command behind its options.
expect 2 'the command comes first: bpt-ingest glyphs --out DATASET' --out "$data" --split train glyphs
expect 2 'the first argument is "--out", and no command' --out "$data" --split train
expect 2 'options come behind them' --out "$data" --split train
expect 2 'did you mean "split"' glyphs --out "$data" --splt train
expect 2 'bpt-ingest: --out DATASET is missing' glyphs --split train
expect 2 'bpt-ingest: --out DATASET is missing' glyphs --split train --out ''
expect 2 '--split NAME is missing' glyphs --out "$data"
expect 2 'unexpected argument' glyphs --out "$data" --split train extra
expect 2 'must be between 1 and 4294967295' glyphs --out "$data" --split train --count 0
expect 2 'is no name for a split' glyphs --out "$data" --split a/b
expect 2 'is no name for a split' idx no/images no/labels --out "$data" --split a/b # before the source is looked at
expect 2 'missing' idx --out "$data" --split train only-one-file
expect 2 'missing' info
expect 2 'missing' cifar --out "$data" --split train
[ -e "$data" ] && failed "wrong usage left $data"

# ---- errors say what and where, on one line, with a hint ----
said=$("$ingest" info "$data" 2>&1 >/dev/null)
[ $? -eq 3 ] || failed "info of a missing dataset: status"
[[ $said == "bpt-ingest: "*"$data"*$'\n'"hint: "* ]] || failed "form of an error: $said"
expect 3 'there is no dataset' verify "$data"
expect 3 'no_such_file' idx no_such_file no_such_labels --out "$data" --split train
[ -e "$data" ] && failed "a missing file left $data"

# ---- a dataset ----
expect 0 'train: 500 images of 1x28x28' glyphs --out "$data" --split train --count 500 --seed 3
expect 0 'test: 200 images' glyphs --out "$data" --split test --count 200 --seed 3
expect 0 '700 images checked' verify "$data"
expect 3 'that is a file: name the folder that holds data.mdb' info "$data/data.mdb"
[ "$(count_of "$data" train)" = 500 ] || failed "count of train"
expect 0 'split train: 500 images' info "$data"
expect 0 'made by glyphs, seed 3' info "$data"
expect 0 'one: 1 image of 1x28x28' glyphs --out "$work/lone" --split one --count 1
"$ingest" info "$work/lone" | grep -qx 'split one: 1 image' || failed "info of one image"
expect 0 '1 image checked' verify "$work/lone"
json=$("$ingest" info "$data" --json)
form='^\{"format": 1, "shape": \[1, 28, 28\], "encoding": "raw", "classes": \["0", .*, "9"\], "splits": '
form+='\[\{"name": "test", "count": 200, "per_class": \[(20, ){9}20\], "mean": \[0\.[0-9]+\], "std": \[0\.[0-9]+\]\}, '
form+='\{"name": "train", "count": 500, "per_class": \[(50, ){9}50\], "mean": \[0\.[0-9]+\], "std": \[0\.[0-9]+\]\}\]\}$'
[[ $json =~ $form ]] || failed "form of the JSON: $json"
if command -v python3 >/dev/null; then
    python3 -c 'import json, sys; json.load(sys.stdin)' <<<"$json" || failed "the JSON is not JSON"
fi

# ---- an existing split ----
expect 2 'has a split "train" already' glyphs --out "$data" --split train --count 10
expect 2 '--force' glyphs --out "$data" --split train --count 10
expect 0 'train: 30 images' glyphs --out "$data" --split train --count 30 --force
[ "$(count_of "$data" train),$(count_of "$data" test)" = 30,200 ] || failed "counts after --force"
expect 0 '230 images checked' verify "$data"

# ---- a limit on the size of files is an error like any other ----
for limit in 16 100 3000; do # for the first file, the first pages, the first images
    said=$(ulimit -f $limit && "$ingest" glyphs --out "$work/limited" --split train --count 9000 2>&1)
    status=$?
    [ $status -eq 1 ] && [[ $said == *"File too large"*"ulimit -f"* ]] ||
        failed "ulimit -f $limit: status $status: $said"
    [ ! -e "$work/limited" ] || failed "ulimit -f $limit leaves a dataset"
done

# ---- one seed, one dataset ----
expect 0 '' glyphs --out "$work/one" --split train --count 300 --seed 9
expect 0 '' glyphs --out "$work/two" --split train --count 300 --seed 9
cmp -s "$work/one/data.mdb" "$work/two/data.mdb" || failed "equal commands, different data"

# ---- other data: idx with classes, cifar ----
printf '\0\0\10\3\0\0\0\3\0\0\0\2\0\0\0\2abcdefghijkl' >"$work/images"
printf '\0\0\10\1\0\0\0\3\0\2\1' >"$work/labels"
printf 'cat\ndog\nbird\n' >"$work/names"
expect 0 'cat 1, dog 1, bird 1' idx "$work/images" "$work/labels" --out "$work/idx" \
    --split train --class-names "$work/names"
expect 0 '"classes": ["cat", "dog", "bird"]' info --json "$work/idx"
printf '\xef\xbb\xbfcat\r\nd\x1b[31mog\r\nb\xc2\x9bird\r\n' >"$work/names" # as some editors begin a file, and worse
expect 0 'per class: cat 1, d\x1b[31mog 1, b\u009bird 1' idx "$work/images" "$work/labels" --out "$work/odd" \
    --split train --class-names "$work/names"
expect 0 '         1  d\x1b[31mog' info "$work/odd"
expect 0 '         1  b\u009bird' info "$work/odd"
expect 0 '"classes": ["cat", "d\u001b[31mog", ' info --json "$work/odd"
expect 0 'the first of them is 3' idx "$work/images" "$work/labels" --out "$work/ten" --split train --classes 10
printf 'a 1\0\0b' >"$work/wide"
expect 3 'it holds a 0 byte' idx "$work/images" "$work/labels" --out "$work/x" --split train --class-names "$work/wide"
cp "$work/images" "$work/"$'ima\nges'
expect 0 'from ima\x0ages, labels' info "$(
    "$ingest" idx "$work/"$'ima\nges' "$work/labels" --out "$work/line" --split train 2>/dev/null
    echo "$work/line"
)"
expect 3 'labels go up to 2' idx "$work/images" "$work/labels" --out "$work/x" --split train --classes 2
expect 2 'names 3 classes' idx "$work/images" "$work/labels" --out "$work/x" --split train \
    --classes 4 --class-names "$work/names"
expect 0 '3 of 6 classes have no images, the first of them is 3' idx "$work/images" "$work/labels" \
    --out "$work/six" --split train --classes 6
expect 3 'holds images of 1x28x28' idx "$work/images" "$work/labels" --out "$data" --split other
expect 3 'no IDX file of images' idx "$work/labels" "$work/images" --out "$work/x" --split train
printf '\0\0\10\1\0\0\0\2\0\2' >"$work/two-labels"
expect 3 'holds 3 images, but' idx "$work/images" "$work/two-labels" --out "$work/x" --split train
: >"$work/nothing"
expect 3 'is empty' idx "$work/nothing" "$work/labels" --out "$work/x" --split train
expect 3 'no binary CIFAR file' cifar "$work/images" --out "$work/x" --split train
head -c 6146 /dev/zero >"$work/cifar.bin"
expect 0 'train: 2 images of 3x32x32' cifar "$work/cifar.bin" --out "$work/cifar" --split train
expect 0 'made by cifar from cifar.bin' info "$work/cifar"
[ -e "$work/x" ] && failed "refused files left $work/x"
expect 2 'not empty' glyphs --out "$work" --split train
expect 2 'File exists' glyphs --out "$work/nothing" --split train
ln -s "$work/nowhere" "$work/dangling"
expect 2 'File exists' glyphs --out "$work/dangling" --split train
mkdir -p "$work/photos/train/a"
expect 2 'not empty: it holds train' folder "$work/photos/train" --out "$work/photos" --split train \
    --skip-bad "$work/bad.txt"
[ ! -e "$work/bad.txt" ] || failed "a refused command leaves a report"

# ---- options from a file, results that cannot be written ----
printf 'out: %s\nsplit: val\ncount: 20\n' "$data" >"$work/config.yaml"
expect 0 'val: 20 images' glyphs --config "$work/config.yaml"
if [ -w /dev/full ]; then
    "$ingest" info "$data" >/dev/full 2>/dev/null
    [ $? -eq 1 ] || failed "a full standard output goes unnoticed"
fi
finish
