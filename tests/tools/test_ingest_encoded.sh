#!/usr/bin/env bash
# bpt-ingest --encoded: what is stored, what is said of it, what is refused.
. "$(dirname "$0")/ingest_help.sh"
cd "$work" || exit 1
command -v tar >/dev/null || skip "no tar"

# Images of two sizes in two folders.
"$ingest" glyphs --out g --split s --count 60 >/dev/null 2>&1 || failed "glyphs"
"$ingest" export g --split s --to all >/dev/null 2>&1 || failed "export"
"$ingest" montage g --split s --to sheet.png >/dev/null 2>&1 || failed "montage"
mkdir -p in/one in/two
cp all/1/* in/one && cp all/2/* in/two && cp sheet.png in/two
n=13
[ "$(find in -name '*.png' | wc -l)" = $n ] || failed "the images are not $n"

# ---- stored, whatever the number of threads ----
for threads in 1 3; do
    expect 0 "train: $n images of 1 channels, 28.." folder in --out e.$threads --split train --encoded --threads $threads
    cmp -s e.1/data.mdb e.$threads/data.mdb || failed "another dataset with $threads threads"
done
expect 0 "e.1 is sound: $n images" verify e.1
expect 0 'is sound' verify e.1 --fast
expect 0 'format 2, jpeg images of 1 channels, each of its own size' info e.1
expect 0 "split train: $n images of 1 channels, 28.." info e.1
expect 0 '"format": 2, "shape": [1, null, null], "encoding": "jpeg"' info e.1 --json
expect 0 '"heights": [28, ' info e.1 --json
expect 0 'of 3 channels, 20..20x30..30 (HxW)' folder in --out r --split train --encoded --resize 20 30 --channels 3
expect 0 'of 1 channels, 32..32x32..' folder in --out s --split train --encoded --short-side 32
expect 0 'of 1 channels, 24..24x24..24 (HxW)' folder in --out c --split train --encoded --short-side 32 --crop 24 24
# means are those of the pixels; the quality makes them a little other ones, and the files smaller
"$ingest" folder in --out raw --split train --resize 20 30 --channels 3 >/dev/null 2>&1 || failed "folder"
expect 0 'images of 3 channels' folder in --out q --split train --encoded --resize 20 30 --channels 3 --quality 40
python3 - "$ingest" <<'END' || failed "means, deviations or bytes are off"
import json, subprocess, sys
def split(name):
    return json.loads(subprocess.check_output([sys.argv[1], "info", "--json", name]))["splits"][0]
raw, encoded, rough = split("raw"), split("r"), split("q")
for key, tolerance in ("mean", .002), ("std", .01):
    for a, b in zip(raw[key], encoded[key]):
        assert abs(a - b) < tolerance, (key, a, b)
assert rough["bytes"] < encoded["bytes"], (rough["bytes"], encoded["bytes"])
assert raw["per_class"] == encoded["per_class"]
assert (encoded["heights"], encoded["widths"]) == ([20, 20], [30, 30]), encoded
END

# ---- other sources ----
printf 'one/%s one\n' $(ls in/one) >in/list.txt
printf 'two/%s two\n' $(ls in/two) >>in/list.txt
expect 0 "train: $n images of 1 channels" list in/list.txt --out l --split train --encoded
mkdir shard
i=0
while read -r path class; do
    i=$((i + 1))
    cp "in/$path" "shard/$i.png"
    printf '%s' "$class" >"shard/$i.cls"
done <in/list.txt
printf 'one\ntwo\n' >names
tar --sort=name -C shard -cf shard.tar . || failed "tar"
expect 0 "train: $n images of 1 channels" webdataset shard.tar --out w --split train --encoded --class-names names
sums() { "$ingest" info --json "$1" | grep -o '"per_class.*"bytes": [0-9]*'; }
[ "$(sums l)" = "$(sums e.1)" ] && [ "$(sums w)" = "$(sums e.1)" ] || failed "list and shard give other images"

# ---- the other commands: files stay as they are ----
files() { (cd "$1" && find . -name '*.jpg' -exec cksum {} + | sed 's|\./\([a-z]*\)/.*|\1|' | sort); } # their sums and classes
expect 0 "$n images of split train written" export e.1 --split train --to e.jpg --format jpeg
expect 0 "$n images of split train written" export e.1 --split train --to e.png
[ "$(find e.png -type f | wc -l)" = $n ] || failed "not all became PNG"
expect 0 "train: $n images" folder e.jpg --out again --split train --encoded
[ "$(sums again)" = "$(sums e.1)" ] || failed "exported files give another dataset"
expect 0 "train: $n images" folder e.png --out pixels --split train --resize 20 30
expect 0 'train: 26 images of 1 channels' merge e.1 again --out m --split train
expect 0 'm is sound: 26 images' verify m
expect 0 "26 images of split train written" export m --split train --to m.jpg --format jpeg
[ "$(files m.jpg)" = "$( (files e.jpg && files e.jpg) | sort)" ] || failed "merge changed files"
expect 0 'val: 7 images' split m --out d --share 0.25
expect 0 'd is sound: 26 images' verify d
for split in train val; do
    expect 0 'written' export d --split $split --to d.$split --format jpeg
done
[ "$( (files d.train && files d.val) | sort)" = "$(files m.jpg)" ] || failed "split changed files"
expect 0 'row 1: one, the first 3 of' montage e.1 --split train --to e.sheet.png --columns 3
expect 0 'row 2: two, the first 3 of' montage r --split train --to r.sheet.png --columns 3
expect 3 'IDX holds images of one size' export e.1 --split train --to idx --format idx
expect 3 'holds raw images, no JPEG files' export raw --split train --to idx --format jpeg
expect 3 'raw holds raw images, e.1 encoded ones' merge e.1 raw --out x --split train
expect 3 'r holds images of 3 channels, e.1 of 1' merge e.1 r --out x --split train
[ -e idx ] && failed "what was refused left a folder"

# ---- refused ----
expect 2 '--quality is not used without --encoded' folder in --out x --split x --quality 90
expect 2 'must be between 1 and 100' folder in --out x --split x --encoded --quality 101
expect 2 'unknown option "encoded"' glyphs --out x --split x --encoded
expect 3 'holds encoded images, the new ones are raw' folder in --out e.1 --split val --resize 28 28
expect 3 'holds raw images, the new ones are encoded' folder in --out raw --split val --encoded
expect 3 'leave out --encoded, or use another --out' folder in --out raw --split val --encoded
[ -e x ] && failed "what was refused left a dataset"

# ---- damage ----
offset=$(LC_ALL=C grep -obUaP '\xFF\xD8\xFF' r/data.mdb | sed -n 5p | cut -d: -f1)
flip r/data.mdb $((offset + 400))
expect 3 'is damaged: split train, record ' verify r
flip r/data.mdb $((offset + 400))
expect 0 'r is sound' verify r
finish
