#!/usr/bin/env bash
# bpt-ingest export, montage, info and split where images are not square, in colour, of many classes, too many for a sheet, or
# where there is no room for them.
. "$(dirname "$0")/ingest_help.sh"
cd "$work" || exit 1
quiet() { "$ingest" "$@" >/dev/null 2>&1 || failed "bpt-ingest $*"; }
idx() { # NAME N H W: files NAME.images, of bytes that hardly repeat, and NAME.labels, 0 and up
    python3 - "$@" <<'END_PYTHON' || failed "no files $1"
import random, struct, sys
name, n, h, w = sys.argv[1], *map(int, sys.argv[2:])
with open(f"{name}.images", "wb") as images, open(f"{name}.labels", "wb") as labels:
    images.write(struct.pack(">4I", 0x803, n, h, w) + random.Random(n).randbytes(n * h * w))
    labels.write(struct.pack(">2I", 0x801, n) + bytes(range(n)))
END_PYTHON
}
png_size() { # FILE: its width and height
    od -An -tu1 -j16 -N8 "$1" | awk '{ print $3 * 256 + $4, $7 * 256 + $8 }'
}

# ---- not square ----
idx wide 3 40 70
quiet idx wide.images wide.labels --out wide --split s
expect 0 '3 images of split s written to wide.idx' export wide --split s --to wide.idx --format idx
cmp -s wide.images wide.idx/images-idx3-ubyte && cmp -s wide.labels wide.idx/labels-idx1-ubyte ||
    failed "the files are not those that it was made of"
quiet export wide --split s --to wide.png
[ "$(png_size wide.png/2/00000002.png)" = '70 40' ] || failed "40x70 as PNG: $(png_size wide.png/2/00000002.png)"
# JPEG files have the name of such, and become PNG files of the same pixels.
quiet folder wide.png --out encoded --split s --encoded
mkdir of-jpeg of-png
quiet export encoded --split s --to of-jpeg/in --format jpeg
quiet export encoded --split s --to of-png/in
[ "$(cd of-jpeg/in && echo */*)" = '0/00000000.jpg 1/00000001.jpg 2/00000002.jpg' ] || failed "names: $(ls of-jpeg/in/*)"
[ "$(png_size of-png/in/1/00000001.png)" = '70 40' ] || failed "40x70 of JPEG: $(png_size of-png/in/1/00000001.png)"
for kind in jpeg png; do quiet folder of-$kind/in --out pixels.$kind --split s; done
cmp -s pixels.jpeg/data.mdb pixels.png/data.mdb || failed "the PNG files have other pixels than the JPEG files"

# ---- what there is, for people ----
printf '\0\0\10\3\0\0\0\3\0\0\0\1\0\0\0\2\0\377\377\377\377\377' >few.images
printf '\0\0\10\1\0\0\0\3\0\1\1' >few.labels
quiet idx few.images few.labels --out few --split s
said=$("$ingest" info few)
[[ $said == *$'\n  mean  0.8333\n  std   0.3727\n'*$'images  class\n         1  0\n         2  1' ]] || failed "few: $said"

# ---- classes, channels, numbers ----
mkdir listed && cp wide.png/0/00000000.png listed/
for n in 256 257; do
    seq -f '00000000.png class%g' "$n" >listed/$n.txt
    said=$("$ingest" list listed/$n.txt --out of-$n --split s 2>&1)
    [[ $said == *'per class: '*', ...'* ]] || failed "the names that are left out: $said"
done
expect 0 '256 images of split s written' export of-256 --split s --to of-256.idx --format idx
expect 3 'of up to 256 classes, and these are more' export of-257 --split s --to x --format idx
{ printf '\3' && head -c 3072 /dev/zero; } >red.bin
quiet cifar red.bin --out red --split s
expect 3 'and these are in colour' export red --split s --to x --format idx
expect 3 '--format png writes them all' export red --split s --to x --format idx
expect 3 'holds raw images, no JPEG files' export red --split s --to x --format jpeg
expect 0 '1 image of split s written' export red --split s --to red.png
expect 2 'name a folder that is not there yet' export red --split s --to red.png
[ -e x ] && failed "what was refused left a folder"

# ---- no room: what is written last has an end only when the file is closed ----
full() { # ARGUMENT...: with room for 1024 bytes in a file
    local said status
    said=$(ulimit -f 1 && "$ingest" "$@" 2>&1)
    status=$?
    [ $status -eq 1 ] && grep -q 'cannot write x/' <<<"$said" || failed "no room for $*: status $status: $said"
    [ -e x ] && failed "no room for $*: a folder is left"
    rm -rf x
}
idx small 2 20 50
quiet idx small.images small.labels --out small --split s
full export wide --split s --to x
full export small --split s --to x --format idx # less than what is kept back until then
full export wide --split s --to x --format idx
full export encoded --split s --to x --format jpeg
# Of the folders above it, too, those are left that were there.
mkdir -p x/there
(ulimit -f 1 && "$ingest" export wide --split s --to x/there/a/b/c >/dev/null 2>&1)
[ "$(find x | sort | xargs)" = 'x x/there' ] || failed "no room in x/there/a/b/c: left are $(find x)"
rmdir x/there x

# ---- sheets: as many rows and columns as there is room for ----
idx tall 2 100 3
quiet idx tall.images tall.labels --out tall --split s --classes 200
expect 0 '40 more classes have no room' montage tall --split s --to tall.png --columns 1
[ "$(png_size tall.png)" = "7 $((2 + 160 * 102))" ] || failed "the sheet is $(png_size tall.png)"
expect 0 'row 160: 159, the first 0 of 0' montage tall --split s --to tall.png --columns 2
idx broad 2 1 200
quiet idx broad.images broad.labels --out broad --split s
expect 0 'row 2: 1, the first 1 of 1' montage broad --split s --to broad.png --columns 1000
[ "$(png_size broad.png)" = "$((2 + 81 * 202)) 8" ] || failed "the sheet is $(png_size broad.png)"
idx long 1 1 16381
quiet idx long.images long.labels --out long --split s
expect 3 'images of 1x16381 pixels are too large for a sheet' montage long --split s --to x.png
[ -e x.png ] && failed "what was refused left a sheet"

# ---- the choice of a class says nothing of that of another ----
python3 - <<'END_PYTHON' || failed "no files"
import struct
open("pair.images", "wb").write(struct.pack(">4I", 0x803, 80, 1, 1) + bytes(range(40)) * 2)
open("pair.labels", "wb").write(struct.pack(">2I", 0x801, 80) + bytes(40) + b"\1" * 40)
END_PYTHON
quiet idx pair.images pair.labels --out pair --split train
quiet split pair --out halves --share 0.5
quiet export halves --split val --to halves.idx --format idx
python3 - <<'END_PYTHON' || failed "the halves of the two classes are alike"
pixels, labels = open("halves.idx/images-idx3-ubyte", "rb").read()[16:], open("halves.idx/labels-idx1-ubyte", "rb").read()[8:]
of = [[p for p, label in zip(pixels, labels) if label == c] for c in range(2)]
assert len(of[0]) == len(of[1]) == 20 and of[0] != of[1], of
END_PYTHON
finish
