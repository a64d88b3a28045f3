#!/usr/bin/env bash
# bpt-ingest merge, split, export, montage and verify --fast, on drawn digits.
. "$(dirname "$0")/ingest_help.sh"
cd "$work" || exit 1
quiet() { "$ingest" "$@" >/dev/null 2>&1 || failed "bpt-ingest $*"; }
quiet glyphs --out a --split train --count 1000 --seed 1
quiet glyphs --out a --split test --count 100 --seed 1
quiet glyphs --out b --split train --count 200 --seed 2
quiet glyphs --out g --split s --count 10

# ---- export gives back what was stored; the same again as folders, for any number of threads ----
expect 0 '1000 images of split train written to idx' export a --split train --to idx --format idx
expect 0 'train: 1000 images of 1x28x28' idx idx/images-idx3-ubyte idx/labels-idx1-ubyte --out c --split train
expect 0 '1000 images of split train written to png' export a --split train --to png
[ "$(find png -name '*.png' | wc -l)" = 1000 ] || failed "not 1000 files in png"
expect 0 'train: per class: 0 100, 1 100' folder png --out f1 --split train --threads 1
expect 0 'train: 1000 images of 1x28x28' folder png --out f3 --split train --threads 3
cmp -s f1/data.mdb f3/data.mdb || failed "one thread and three make different datasets"
"$ingest" info --json a | grep -o '"train".*' >a.json
"$ingest" info --json f1 | grep -o '"train".*' >f1.json
cmp -s a.json f1.json || failed "counts or moments of train are not those of its PNG files: $(cat a.json f1.json)"
expect 0 'written to back' export f1 --split train --to back --format idx
# the images of f1 are sorted by class and then by number, those of a by number
sort_idx() { # DIR: checksums of its images with their labels, sorted
    od -An -v -tx1 -w784 -j16 "$1/images-idx3-ubyte" |
        paste -d' ' - <(od -An -v -tx1 -w1 -j8 "$1/labels-idx1-ubyte") | sort
}
[ "$(sort_idx idx | cksum)" = "$(sort_idx back | cksum)" ] || failed "images changed on their way through PNG"
expect 2 'exists' export a --split train --to png
expect 2 '--to PATH is missing' export a --split train
expect 3 'has no split' export a --split nowhere --to x
printf '\0\0\10\3\0\0\0\2\0\0\0\1\0\0\0\2abcd' >images
printf '\0\0\10\1\0\0\0\2\0\1' >labels
quiet idx images labels --out four --split s --classes 4
expect 0 '2 images of split s written' export four --split s --to four.png
[ "$(ls four.png | tr '\n' ' ')" = '0 1 2 3 ' ] || failed "a class without images has no folder: $(ls four.png)"
[ -e x ] && failed "a refused export left a folder"

# ---- merge ----
expect 0 'all: 1200 images of 1x28x28' merge a b --from train --out m --split all
expect 0 'made by merge from a, b' info m
expect 2 'has a split "all" already' merge a b --from train --out m --split all
expect 0 'all: 1200 images of 1x28x28' merge b// ./a/ --from train --out m --split all --force
expect 0 'made by merge from b//, a/' info m
expect 0 '1200 images checked' verify m
expect 2 'is read, and cannot be written' merge a b --from train --out ./b --split all
expect 2 'are the same dataset' merge a a --from train --out x --split all
ln -s a a.link
expect 2 'are the same dataset' merge a b a.link --from train --out x --split all
mkdir data.link && ln -s ../a/data.mdb data.link/
expect 2 'are the same dataset' merge a data.link --from train --out x --split all
expect 2 'is read, and cannot be written' split a --out data.link
expect 2 'it may only be read' glyphs --out data.link --split more --count 10
rm -r data.link
mkdir data.link && ln a/data.mdb data.link/
expect 2 'it may only be read' glyphs --out a --split more --count 10
rm -r data.link
expect 3 'has no split "test"' merge a b --from test --out x --split x
expect 2 'argument' merge a --out x --split x
printf 'cat\ndog\n' >one.names
printf 'bird\ndog\n' >two.names
quiet idx images labels --out one --split s --class-names one.names
quiet idx images labels --out two --split s --class-names two.names
expect 0 'per class: cat 1, dog 2, bird 1' merge one two --out both --split s
expect 0 '"classes": ["cat", "dog", "bird"]' info --json both
expect 3 'both holds images of 1x1x2 (CxHxW), g of 1x28x28' merge g both --out x --split s
[ -e x ] && failed "a refused merge left a dataset"

# ---- split ----
expect 0 'val: per class: 0 20, 1 20, 2 20, 3 20, 4 20' split a --out s --share 0.2 --seed 7
expect 0 'train: per class: 0 80, 1 80' split a --out s2 --share 0.2 --seed 7
[ "$("$ingest" info s2 | grep -c 'made by split, seed 7 from a')" = 2 ] || failed "the seed is not kept"
cmp -s s/data.mdb s2/data.mdb || failed "equal seeds, different splits"
quiet split a --out s3 --share 0.2 --seed 8
cmp -s s/data.mdb s3/data.mdb && failed "another seed, the same split"
expect 0 '1000 images checked' verify s
quiet export s --split train --to s.train --format idx
quiet export s --split val --to s.val --format idx
[ "$(cat <(sort_idx s.train) <(sort_idx s.val) | sort | cksum)" = "$(sort_idx idx | cksum)" ] ||
    failed "the two splits are not what was divided"
expect 2 'name the same split' split a --out x --split s --held-out s
expect 2 'is read, and cannot be written' split a --out a
expect 2 'must be between' split a --out x --share 1

# What is refused is so before the records are read, of which one is damaged here.
cp -r a damaged
head -c 100 /dev/zero | dd of=damaged/data.mdb bs=1 seek=$(($(stat -c %s a/data.mdb) / 3)) conv=notrunc status=none
expect 3 'checksum mismatch' split damaged --out x --split s
expect 3 'checksum mismatch' export damaged --split train --to x --format idx
[ -e x ] && failed "an export that failed left a folder"
expect 2 'has a split "val" already' split damaged --out s
# Both halves or none, whichever of them is refused.
expect 2 'is no name for a split' split a --out x --split a/b
expect 2 'is no name for a split' split a --out x --held-out a/b
expect 3 'split val would have no images' split a --out x --share 0.000001
expect 3 'split train would have no images' split a --out x --share 0.999999
[ -e x ] && failed "what was refused is there"
for taken in train val; do
    rm -rf taken
    quiet glyphs --out taken --split $taken --count 10
    expect 2 "has a split \"$taken\" already" split damaged --out taken
    option=--split
    [ $taken = val ] && option=--held-out
    expect 2 "$option NAME gives the new one another name" split a --out taken
    [ "$("$ingest" info taken | grep -c '^split ')" -eq 1 ] || failed "$taken was there, and the other half is stored"
done
expect 0 'train: per class: 0 90, 1 90' split a --out taken --force
expect 0 '1000 images checked' verify taken

# ---- a description that lies, with its checksum right ----
counts=$("$ingest" info g --json | grep -o '"per_class": \[[^]]*\]')
[ "$counts" = '"per_class": [1, 1, 1, 1, 1, 1, 1, 1, 1, 1]' ] || failed "the counts of g: $counts"
lies() { # WANTED COUNTS
    rm -rf lie lie.out
    cp -r g lie
    "$BPT_HELPERS/alter_entry" lie split/s '"per_class": [1, 1, 1, 1,' "\"per_class\": [$2," || failed "cannot write the lie $2"
    expect 3 "$1" split lie --from s --out lie.out --share 0.5
    [ -z "$(count_of lie.out train)" ] || failed "the lie $2 is divided"
}
lies 'wrong records per class' 2,0,1,1
lies 'wrong records per class' 0,1,0,3
lies 'has 10 records, and its classes 4000000009' 4000000000,1,1,1
lies 'has 10 records, and its classes 9' 1,0,1,1

# ---- montage ----
expect 0 'row 3: 2, the first 5 of 100' montage a --split train --to sheet.png --columns 5
[ "$(od -An -tx1 -N8 sheet.png | tr -d ' ')" = 89504e470d0a1a0a ] || failed "the sheet is no PNG"
[ "$(od -An -tx1 -j16 -N8 sheet.png | tr -d ' ')" = 000000980000012e ] || failed "the sheet is not 152 x 302"
expect 0 'row 2: dog, the first 2 of 2' montage both --split s --to both.png
mkdir -p cl/sheet && cp both.png cl/sheet/
expect 0 '1 image of 1x11x50' folder cl --out sheet --split s
quiet export sheet --split s --to sheet.idx --format idx
pixels=$(tail -c +17 sheet.idx/images-idx3-ubyte | tr '\140' . | fold -w 50) # in front of a grey ground
[[ $pixels =~ ^\.+$'\n'\.+$'\n'\.\.ab\.+$'\n'\.+$'\n'\.+$'\n'\.\.cd\.\.cd\.+$'\n'\.+$'\n'\.+$'\n'\.\.ab\.+$'\n'\.+$'\n'\.+$ ]] ||
    failed "the images are not where they belong: $pixels"
# Colours: one red image of the fourth class, as wide as the sheet but for the ground around it.
{ printf '\3' && head -c 1024 /dev/zero | tr '\0' '\377' && head -c 2048 /dev/zero; } >red.bin
quiet cifar red.bin --out red --split s
mkdir -p of-red/red
expect 0 'row 4: ' montage red --split s --to of-red/red/sheet.png --columns 1
quiet folder of-red --out red-sheet --split s
red=$("$ingest" info red-sheet --json | grep -o '"mean": \[[^]]*')
[[ $red =~ 0\.4283[0-9]*,\ 0\.3451[0-9]*,\ 0\.3451[0-9]*$ ]] || failed "the red image is not red: $red"
expect 3 'has no split' montage a --split nowhere --to x.png
expect 0 'row 3: 2, the first 5 of 100' montage a --split train --to sheet.png --columns 5
echo mine >mine.txt
mkfifo pipe.png
for target in mine.txt a/data.mdb pipe.png a; do
    expect 2 'is there, and no PNG file' montage a --split train --to $target
done
[ "$(cat mine.txt)" = mine ] || failed "montage wrote over a file"
expect 0 '1100 images checked' verify a
expect 1 'no/such' montage a --split train --to no/such/x.png

# ---- verify --fast sees the schema, not the images ----
expect 0 '1100 images in 2 splits, not read' verify a --fast
size=$(stat -c %s a/data.mdb)
for ((at = size / 2, seen = 0; at < size && seen == 0; at += 5000)); do # a byte of an image
    flip a/data.mdb $at
    "$ingest" verify a 2>/dev/null | grep -q sound || seen=$at
    [ $seen -gt 0 ] || flip a/data.mdb $at
done
[ $seen -gt 0 ] || failed "no change is seen by verify"
expect 0 'not read' verify a --fast
expect 3 'damaged' verify a
head -c 4100 a/data.mdb >cut && cp cut a/data.mdb
expect 3 'damaged' verify a --fast
finish
