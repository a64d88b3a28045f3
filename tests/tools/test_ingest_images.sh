#!/usr/bin/env bash
# bpt-ingest folder, list, webdataset: sizes, colours, classes, bad files.
. "$(dirname "$0")/ingest_help.sh"
cd "$work" || exit 1
command -v tar >/dev/null || skip "no tar"

# Images: digits in three sizes, one folder each, and a colour sheet.
"$ingest" glyphs --out g --split s --count 60 >/dev/null 2>&1 || failed "glyphs"
"$ingest" export g --split s --to all >/dev/null 2>&1 || failed "export"
mkdir -p in/zero in/one in/two
cp all/0/* in/zero && cp all/1/* in/one && cp all/2/* in/two
n=18
[ "$(find in -name '*.png' | wc -l)" = $n ] || failed "the digits are not $n"

# ---- size and colour ----
expect 0 "train: $n images of 1x28x28 (CxHxW) in 3 classes" folder in --out a --split train
expect 0 '"classes": ["one", "two", "zero"]' info a --json
expect 0 "train: $n images of 3x40x20" folder in --out b --split train --resize 40 20 --channels 3
expect 0 "train: $n images of 1x24x16" folder in --out c --split train --short-side 32 --crop 24 16
expect 2 '--resize does not go with --short-side' folder in --out x --split x --resize 8 8 --short-side 8
expect 2 '--resize does not go with --crop' folder in --out x --split x --resize 8 8 --crop 8 8
expect 2 '--crop needs --short-side' folder in --out x --split x --crop 8 8
expect 2 'middle 24 x 8' folder in --out x --split x --short-side 16 --crop 24 8
expect 2 'must be between 1 and' folder in --out x --split x --resize 0 8
expect 2 'must be between 1 and' folder in --out x --split x --threads 0
"$ingest" montage b --split train --to in/zero/wide.png --columns 3 >/dev/null || failed "montage"
expect 3 'in/zero/wide.png has' folder in --out x --split x
expect 3 '--resize H W, or --short-side S with --crop H W' folder in --out x --split x
expect 3 'in/zero/wide.png has 3 channels, the images before it have 1' folder in --out x --split x --resize 9 9
expect 0 "$((n + 1)) images of 3x9x9" folder in --out d --split x --resize 9 9 --channels 3
mkdir -p colour_first/one && cp in/zero/wide.png colour_first/one/0.png && cp in/one/* colour_first/one
expect 0 'images of 3x9x9' folder colour_first --out e --split x --resize 9 9
rm in/zero/wide.png
expect 3 'colour_first/one/0.png has 3 channels, the images of the dataset have 1' folder colour_first --out a \
    --split other --resize 28 28
expect 0 "other: $n images of 3x9x9" folder in --out d --split other --resize 9 9

# ---- the classes of a dataset hold for its other splits ----
mkdir -p val/two && cp in/two/* val/two
expect 0 'val: per class: one 0, two 6, zero 0' folder val --out a --split val
expect 0 '2 of 3 classes have no images, the first of them is one' folder val --out a --split val --force
mkdir -p more/three && cp in/two/* more/three
expect 3 'more: there is no class "three"' folder more --out a --split test
printf 'zero\none\ntwo\nthree\n' >names
expect 0 'train: per class: zero 6, one 6, two 6, three 0' folder in --out named --split train --class-names names
printf 'one\ntwo\n' >fewer
expect 3 'there is no class "zero"' folder in --out x --split x --class-names fewer
expect 3 'holds no folders' folder in/one --out x --split x
expect 3 'cannot open nowhere' folder nowhere --out x --split x
[ -e x ] && failed "what was refused left a dataset"

# ---- lists ----
(cd in && find . -name '*.png' | sort | sed 's|^\./\(\([a-z]*\)/.*\)|\1 \2|') >in/list.txt
expect 0 "train: per class: one 6, two 6, zero 6" list in/list.txt --out l --split train
cp in/list.txt list.txt
expect 3 'cannot open ./one/' list list.txt --out x --split x
expect 0 "train: $n images" list list.txt --root in --out l2 --split train
sed 's/ one$/ 0/; s/ two$/ 1/; s/ zero$/ 4/' in/list.txt >in/numbers.txt
expect 0 'train: per class: 0 6, 1 6, 2 0, 3 0, 4 6' list in/numbers.txt --out l3 --split train
expect 0 'train: per class: 0 6, 1 6, 2 0, 3 0, 4 6, 5 0' list in/numbers.txt --out l4 --split train --classes 6
expect 3 'the labels go up to 4, but there are 3 classes' list in/numbers.txt --out x --split x --classes 3
expect 2 'but there are 3 names' list in/list.txt --out x --split x --classes 5
printf 'a.png\n' >in/wrong.txt
expect 3 'in/wrong.txt: line 1 is no path and label' list in/wrong.txt --out x --split x

# ---- shards ----
mkdir shard
i=0
while read -r path class; do
    i=$((i + 1))
    cp "in/$path" "shard/$i.png"
    printf '%s' "$class" >"shard/$i.cls"
done <in/list.txt
for format in ustar gnu pax; do
    tar --format=$format --sort=name -C shard -cf $format.tar . || failed "tar --format=$format"
    expect 3 'neither the number' webdataset $format.tar --out x --split x
    expect 0 "train: per class: zero 6, one 6, two 6, three 0" webdataset $format.tar --out w.$format \
        --split train --class-names names
done
for split in l l2; do
    "$ingest" info --json $split | grep -o '"mean.*' >mean.$split
done
"$ingest" info --json w.pax | grep -o '"mean.*' >mean.w
cmp -s mean.l mean.l2 && cmp -s mean.l mean.w || failed "lists and shards of the same images differ"
gzip -k pax.tar
expect 3 'pax.tar.gz is compressed' webdataset pax.tar.gz --out x --split x

# ---- bad files ----
: >in/one/empty.png
head -c 100 "$(find in/one -name '0*.png' | head -1)" >in/one/cut.png
echo 'not an image' >in/two/text.jpg
ln -s nowhere in/two/zlink.png
expect 3 'in/one/cut.png' folder in --out x --split x
expect 3 '--skip-bad REPORT' folder in --out x --split x --threads 1
for threads in 1 2 7; do
    expect 0 '4 bad images passed over, listed in report' folder in --out bad.$threads --split train \
        --skip-bad report --threads $threads
    [ "$(head -n 1 report)" = '# bad images that bpt-ingest has passed over' ] || failed "the report has no title"
    [ "$(tail -n +2 report | wc -l)" = 4 ] || failed "the report has not 4 lines: $(cat report)"
    mv report report.$threads
    cmp -s report.1 report.$threads || failed "another report with $threads threads"
    cmp -s bad.1/data.mdb bad.$threads/data.mdb || failed "another dataset with $threads threads"
done
for name in one/cut.png one/empty.png two/text.jpg two/zlink.png; do
    grep -q "in/$name" report.1 || failed "in/$name is not in the report"
done
"$ingest" info bad.1 --json | grep -o '"mean.*' >mean.bad
cmp -s mean.bad mean.l || failed "the good images are not those without the bad ones"
expect 0 '"count": '$n info bad.1 --json
# The report of what is stored stays where another command is refused.
again=(folder in --out bad.1 --split train --skip-bad report)
cp report.1 report
expect 2 'has a split "train" already' "${again[@]}"
exec {lock}>>bad.1/writer.lock
flock -n $lock || failed "writer.lock cannot be locked"
expect 1 'is being written by another process' "${again[@]}" --force
exec {lock}>&-
cmp -s report report.1 || failed "a refused command has changed the report: $(cat report)"
expect 2 'has a split "train" already' folder in --out bad.1 --split train --skip-bad new.report
[ -e new.report ] && failed "a refused command has left a report: $(cat new.report)"
expect 0 '4 bad images passed over' "${again[@]}" --force
cmp -s report report.1 || failed "the report was not made anew: $(cat report)"
: >empty.report # as mktemp makes it
expect 0 '4 bad images passed over, listed in empty.report' folder in --out bad.e --split train --skip-bad empty.report
cmp -s empty.report report.1 || failed "an empty report was not filled: $(cat empty.report)"
mkdir -p none/a && : >none/a/1.jpg && : >none/a/2.jpg
expect 3 'none of 2 images is sound; the first: none/a/1.jpg is empty' folder none --out x --split x --skip-bad report
# Lines of a list, and links, that lead nowhere are bad images as well.
long=$(printf '%0300d' 0)
{ cat in/list.txt && printf '%s\n' nolabel "one/$long.png one" 'loop/a.png one' 'one/none.png one'; } >in/wrong.txt
ln -s loop in/loop
expect 3 'is no path and label: "nolabel"' list in/wrong.txt --out x --split x
expect 0 '4 bad images passed over' list in/wrong.txt --out l5 --split train --skip-bad wrong.report
grep -q 'is no path and label: "nolabel"' wrong.report && grep -q "$long" wrong.report || failed "the report: $(cat wrong.report)"
printf '%s\n' zero one >two.names
expect 3 'there is no class "two"' list in/list.txt --out x --split x --class-names two.names
expect 0 '6 bad images passed over' list in/list.txt --out l6 --split train --class-names two.names --skip-bad wrong.report
rm in/loop
ln -s zloop.png in/one/zloop.png
expect 0 '5 bad images passed over' folder in --out f5 --split train --skip-bad wrong.report
[ "$(wc -l <wrong.report)" = 6 ] || failed "lines of a report before are left: $(cat wrong.report)"
rm in/one/zloop.png
# A name that would break its line is told from one with a question mark in its place.
for name in $'a\nb.png' 'a?b.png'; do
    echo 'no image' >"in/one/$name"
    : >"in/two/$name"
done
expect 0 '8 bad images passed over' folder in --out f6 --split train --skip-bad wrong.report
for name in 'in/one/a\x0ab.png' 'in/two/a\x0ab.png' 'in/one/a?b.png' 'in/two/a?b.png'; do
    grep -qF "$name" wrong.report || failed "$name is not in the report: $(cat wrong.report)"
done
rm in/*/a?b.png
echo nolabel >a.list
expect 3 'is no path and label' list a.list --out x --split x --skip-bad wrong.report
# Numbers that are none of a class are names, which is told.
path=$(find in/one -name '0*.png' | head -1)
for label in 65536 70000000000; do
    printf '%s %s\n' "$path" $label >high.list
    expect 0 "for numbers from 0 to 65535: line 1 has \"$label\"" list high.list --out h.$label --split train
done
echo 'in/one/00.png 1' >a.list
for source in a.list in/one/empty.png "$(find in/one -name '0*.png' | head -1)"; do # a source where the report is wanted
    cp -p "$source" source.before
    [ -s "$source" ] || continue
    expect 2 'stands behind --skip-bad' folder in --out x --split x --skip-bad "$source"
    cmp -s "$source" source.before || failed "$source is overwritten"
done
mkfifo pipe
expect 2 'stands behind --skip-bad' folder in --out x --split x --skip-bad pipe
expect 2 'lies in the folder of the dataset' folder in --out x --split x --skip-bad x/report
expect 2 'lies in the folder of the dataset' folder in --out bad.1 --split x --skip-bad ./bad.1/writer.lock
expect 3 'cannot open "": No such file' folder '' --out x --split x
mkdir -p "latin/"$'b\xe9' && cp both.png "latin/"$'b\xe9/' 2>/dev/null || : >"latin/"$'b\xe9/a.png'
expect 3 $'latin: "b\xe9" is no class name' folder latin --out x --split x
printf 'in/one/00.png b\xe9\n' >latin.txt
expect 3 $'latin.txt: line 1: "b\xe9" is no class name' list latin.txt --out x --split x
printf 'zero\n\none\n' >names.bad
expect 3 'names.bad: "", number 2, is no class name' folder in --out x --split x --class-names names.bad
seq 65537 >names.bad
expect 3 'names.bad names 65537 classes, and a dataset has at most 65536' folder in --out x --split x --class-names names.bad
printf 'zero\none\nzero\n' >names.bad
expect 3 'names.bad: the class name "zero" is given twice' folder in --out x --split x --class-names names.bad
expect 1 'cannot write no/such' folder in --out x --split x --skip-bad no/such/report
[ -e x ] && failed "what was refused left a dataset"
finish
