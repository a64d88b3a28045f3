#!/usr/bin/env bash
# Real photographs: the flowers by folder, by list, as a shard and from Caffe's LMDB; CIFAR-10 from JPEG files.
. "$(dirname "$0")/ingest_help.sh"
source=${BPT_TEST_DATA:-$(dirname "$0")/../../../shared/data}
[ -r "$source/flowers/flowers750.tar" ] && [ -r "$source/cifar10/cifar10-jpeg-q75.tar.xz" ] ||
    skip "no flowers and CIFAR-10 at $source (BPT_TEST_DATA)"
command -v python3 >/dev/null && command -v xz >/dev/null || skip "no python3, or no xz"
cd "$work" || exit 1

# ---- flowers ----
tar -xf "$source/flowers/flowers750.tar" || failed "tar"
size=(--short-side 64 --crop 56 48)
for threads in 1 3; do
    expect 0 'train: per class: daisy 120, dandelion 120, roses 120, sunflowers 120, tulips 120' \
        folder flowers/train --out f.$threads --split train "${size[@]}" --threads $threads
    expect 0 'val: per class: daisy 30, dandelion 30, roses 30, sunflowers 30, tulips 30' \
        folder flowers/val --out f.$threads --split val "${size[@]}" --threads $threads
    cmp -s f.1/data.mdb f.$threads/data.mdb || failed "another dataset with $threads threads"
done
expect 0 'f.1 is sound: 750 images' verify f.1
expect 3 'the images before it have' folder flowers/val --out x --split val
# the same images by list and as a shard
(cd flowers/val && find . -name '*.jpg' | LC_ALL=C sort | sed 's|^\./\([a-z]*\)/.*|&\t\1|') >flowers/val/list.txt
expect 0 'val: 150 images of 3x56x48' list flowers/val/list.txt --out l --split val "${size[@]}"
mkdir shard
while IFS=$'\t' read -r path class; do
    name=${path#./}
    name=${name//\//-}
    cp "flowers/val/$path" "shard/$name" && echo "$class" >"shard/${name%.jpg}.cls"
done <flowers/val/list.txt
tar --sort=name -C shard -cf val.tar . || failed "tar"
printf '%s\n' daisy dandelion roses sunflowers tulips >names
expect 0 'val: 150 images of 3x56x48' webdataset val.tar --class-names names --out w --split val "${size[@]}"
for d in f.1 l w; do
    "$ingest" export $d --split val --to $d.png >/dev/null 2>&1 || failed "export $d"
    (cd $d.png && cat $(find . -name '*.png' | LC_ALL=C sort) | cksum) >$d.sum
done
cmp -s f.1.sum l.sum && cmp -s f.1.sum w.sum || failed "folder, list and shard give other images"
# of Caffe's database, where the images are those of val
expect 0 'val: per class: daisy 12, dandelion 12, roses 12, sunflowers 12, tulips 12' \
    caffe "$source/caffe-lmdb/flowers_val_encoded60_lmdb" --out c --split val "${size[@]}" --class-names names
"$ingest" export c --split val --to c.png >/dev/null 2>&1 || failed "export c"
sums() { # DIR: checksum, size and class of each of its images
    (cd "$1" && find . -name '*.png' -exec cksum {} + | sed 's|\./\([a-z]*\)/.*|\1|' | sort)
}
[ "$(comm -12 <(sums c.png) <(sums f.1.png) | wc -l)" = 60 ] || failed "Caffe's images are not those by folder"

# ---- CIFAR-10 ----
tar -xJf "$source/cifar10/cifar10-jpeg-q75.tar.xz" || failed "tar"
for s in train test; do expect 0 'images of 3x32x32' folder $s --out cifar --split $s; done
"$ingest" info --json cifar | python3 -c '
import json, sys
d = json.load(sys.stdin)
assert d["shape"] == [3, 32, 32] and len(d["classes"]) == 10 and len(d["splits"]) == 2, d
for s in d["splits"]:
    n = {"train": 5000, "test": 1000}[s["name"]]
    assert s["count"] == 10 * n and s["per_class"] == [n] * 10, s
    if s["name"] != "train": continue
    for have, want in zip(s["mean"] + s["std"], (.4913, .4821, .4465, .2452, .2428, .2606)):
        assert abs(have - want) < 5e-4, s
' || failed "what info --json says of CIFAR-10"
bytes=$(stat -c %s cifar/data.mdb)
[ $bytes -le $((60000 * 3072 * 105 / 100)) ] || failed "$bytes bytes are more than 1.05 x the payload"
finish
