#!/usr/bin/env bash
# What a packager does: a build for a processor of today.
#
# usage: packaging.sh BUILD COMPILER
set -u
build=$1 compiler=$2
root=$(cd "$(dirname "$0")/../.." && pwd)
place=$(mktemp -d "${TMPDIR:-/tmp}/bpt-packaging-XXXXXX") || exit 1
trap 'rm -rf "$place"' EXIT

die() {
    printf 'FAILED: %s\n' "$*"
    cat "$place/answer"
    exit 1
}
quiet() { "$@" >"$place/answer" 2>&1; }

# Processors that are given have all that the sources ask for, and more.
flags=(-std=c17 -O2 -D_GNU_SOURCE -ffp-contract=off -fopenmp -I "$root" -c -o "$place/object")
if quiet "$compiler" -march=sapphirerapids "${flags[@]}" -xc /dev/null; then
    for source in "$root"/inner/winograd_native.c "$root"/inner/weight_copies.c; do
        quiet "$compiler" -march=sapphirerapids "${flags[@]}" "$source" || die "$source for sapphirerapids"
    done
fi
