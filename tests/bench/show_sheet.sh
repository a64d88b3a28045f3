#!/usr/bin/env bash
# The sheet of tests/bench/show_augmentations.c: its size, images as they are in its first row, others below,
# and a wrong list refused.
# usage: show_sheet.sh BUILD
set -u
build=$1 show=$1/tests/bench/show_augmentations
command -v python3 >/dev/null || exit 77
work=$(mktemp -d) || exit 1
trap 'rm -rf "$work"' EXIT
cd "$work" || exit 1

die() { # WHAT
    echo "FAILED: $1" >&2
    cat out err >&2
    exit 1
}

"$build/tools/bpt-ingest" glyphs --out data --split train --count 30 >out 2>err || die "bpt-ingest"
"$show" data train sheet.pgm >out 2>err || die "a sheet of all kinds"
n_rows=$(grep -c '^row ' out)
for list in mixup=0.2 cutmix=1; do
    grep -qE "^row [0-9]+: $list; parts of another:( [01]\.[0-9]{2}){12}$" out || die "no parts of $list"
done
"$show" data train chosen.pgm none "crop=4,flip" >out 2>err || die "a sheet of one list"
[ "$(sed -n 3p out)" = "row 3: crop=4,flip" ] || die "the rows' names"
python3 - "$n_rows" <<'END' || die "a sheet"
import sys

def read(path, n_rows):
    """@return {(row, column): pixels of an image} of 28x28, magnified three times"""
    kind, size, levels, pixels = open(path, "rb").read().split(b"\n", 3)
    width, height = map(int, size.split())
    assert (kind, levels) == (b"P5", b"255")
    assert width == 4 + 12 * 88 and height == 4 + n_rows * 88 and len(pixels) == width * height
    return {(r, c): bytes(pixels[(4 + 88 * r + 3 * y) * width + 4 + 88 * c + 3 * x] for y in range(28) for x in range(28))
            for r in range(n_rows) for c in range(12)}

chosen = read("chosen.pgm", 3)
assert len({chosen[0, c] for c in range(12)}) == 12
assert all(chosen[0, c] == chosen[1, c] for c in range(12))
assert sum(chosen[0, c] != chosen[2, c] for c in range(12)) > 8
n_rows = int(sys.argv[1])
assert n_rows > 9
kinds = read("sheet.pgm", n_rows)
for row in range(1, n_rows):
    assert 0 < sum(kinds[0, c] != kinds[row, c] for c in range(12)), row
END
"$show" data train no.pgm "crop=4,flop" >out 2>err
[ $? -eq 2 ] || die "a wrong list is no usage error"
grep -q 'did you mean "flip"' err || die "a wrong list"
[ ! -e no.pgm ] || die "a sheet of a wrong list"
