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
