#!/usr/bin/env bash
# --append: what is added is there as if all had been stored at once, every command reads it, and what does not fit is
# refused with a hint.
. "$(dirname "$0")/ingest_help.sh"
cd "$work" || exit 1
glyphs() { "$ingest" glyphs "$@" >/dev/null 2>&1 || failed "glyphs $*"; }

# ---- two sources, then the same as one ----
glyphs --out a --split train --count 500 --seed 1
glyphs --out b --split train --count 300 --seed 2
"$ingest" export a --split train --to a.png >/dev/null 2>&1 || failed "export"
"$ingest" export b --split train --to b.png >/dev/null 2>&1 || failed "export"
expect 0 'm: 500 images' folder a.png --out f --split m
expect 0 'm: 300 images added, 800 in all, of 1x28x28' folder b.png --out f --split m --append
expect 0 '800 images checked' verify f
[ "$(count_of f m)" = 800 ] || failed "count"
expect 0 'format 3, raw images' info f
expect 0 '  made by folder from a.png: 500 images' info f
expect 0 '  appended by folder from b.png: 300 images' info f
expect 0 'format 1, raw images' info a
"$ingest" folder a.png --out g --split m >/dev/null 2>&1
"$ingest" folder b.png --out h --split m >/dev/null 2>&1
expect 0 'm: 800 images' merge g h --out once2 --split m
for key in mean per_class; do
    [ "$("$ingest" info f --json | grep -o "\"$key\".*")" = "$("$ingest" info once2 --json | grep -o "\"$key\".*")" ] ||
        failed "$key is not that of all images at once"
done
"$ingest" export f --split m --to f.idx --format idx >/dev/null 2>&1
"$ingest" export once2 --split m --to once.idx --format idx >/dev/null 2>&1
diff -r f.idx once.idx >/dev/null || failed "other records than at once"

# ---- other commands take it for what it is ----
expect 0 'all: 1600 images' merge f once2 --from m --out all --split all
expect 0 'val: 80 images' split f --from m --out parts
expect 0 '' montage f --split m --to sheet.png
expect 0 'is sound: 800 images in 1 split' verify f --fast
expect 0 'm: 500 images' folder a.png --out f --split m --force
expect 0 'format 1, raw images' info f

# ---- JPEG files ----
expect 0 'm: 500 images' folder a.png --out e --split m --encoded
expect 0 'm: 300 images added, 800 in all, of 1 channels' folder b.png --out e --split m --encoded --append
expect 0 'format 3, jpeg images' info e
expect 0 '800 images checked' verify e

# ---- what is refused, and that nothing changed ----
cp f/data.mdb f.before
expect 3 'there is no dataset at none' folder b.png --out none --split m --append
expect 3 'hint: leave out --append to make it' folder b.png --out none --split m --append
[ -e none ] && failed "--append made a dataset"
expect 3 'has no split "other"' folder b.png --out f --split other --append
expect 3 'leave out --append' folder b.png --out f --split other --append
expect 2 '--append does not go with --force' folder b.png --out f --split m --append --force
expect 2 'hint: leave out one' folder b.png --out f --split m --append --force
expect 3 'holds images of 1x28x28 (CxHxW), the new ones are 1x30x30' folder b.png --out f --split m --append --resize 30 30
expect 3 'hint: all images of a dataset have one shape: --resize 28 28' folder b.png --out f --split m --append --resize 30 30
expect 3 'holds raw images, the new ones are encoded' folder b.png --out f --split m --append --encoded
mkdir -p new/0 new/cat && cp "$(find b.png/1 -type f | head -1)" new/cat && cp new/cat/* new/0
expect 3 'there is no class "cat"' folder new --out f --split m --append
expect 3 'hint: the 10 classes are "0"' folder new --out f --split m --append
rm -r new/cat
printf 'a\nb\n' >names
echo "$(find new -type f) a" >one.list
expect 3 'has 10 classes ("0" ...), the new images have 2 or other ones' list one.list \
    --out f --split m --append --class-names names
cmp -s f/data.mdb f.before || "$ingest" verify f >/dev/null 2>&1 || failed "what was refused has done harm"
[ "$(count_of f m)" = 500 ] || failed "what was refused was added"

# ---- some classes only; the same again is warned of; unsound images ----
expect 0 'm: 1 image added, 501 in all' folder new --out f --split m --append
expect 0 'images of such a source were added before' folder new --out f --split m --append
: >new/0/empty.png
expect 3 'is empty' folder new --out f --split m --append
expect 0 '1 bad image passed over' folder new --out f --split m --append --skip-bad report
expect 0 '503 images checked' verify f
expect 0 "per class: 0 54, 1 50" folder new --out f --split m --append --skip-bad report

# ---- drawn ones; any number of threads ----
for threads in 1 3; do
    glyphs --out t.$threads --split s --count 400
    expect 0 's: 5000 images added, 5400 in all' glyphs --out t.$threads --split s --count 5000 --seed 3 --append \
        --threads $threads
done
cmp -s t.1/data.mdb t.3/data.mdb || failed "another dataset with 3 threads"
expect 0 '  appended by glyphs, seed 3: 5000 images' info t.1
finish
