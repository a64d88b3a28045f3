#!/usr/bin/env bash
# What a packager does: a build without a type, one for a processor of today, an installation into a folder of its own.
#
# usage: packaging.sh BUILD COMPILER GENERATOR
set -u
build=$1 compiler=$2 generator=${3% Multi-Config}
root=$(cd "$(dirname "$0")/../.." && pwd)
place=$(mktemp -d "${TMPDIR:-/tmp}/bpt-packaging-XXXXXX") || exit 1
trap 'rm -rf "$place"' EXIT

die() {
    printf 'FAILED: %s\n' "$*"
    cat "$place/answer"
    exit 1
}
quiet() { "$@" >"$place/answer" 2>&1; }

# With the tools of the build that is tested, whatever the environment asks for.
configure() { quiet env -u CMAKE_BUILD_TYPE -u CFLAGS cmake "$@"; }
type_of() { sed -n 's/^CMAKE_BUILD_TYPE:[A-Z]*=//p' "$place/plain/CMakeCache.txt"; }

# Who says nothing gets programs that are optimised, and who says something gets that.
configure -S "$root" -B "$place/plain" -G "$generator" -DCMAKE_C_COMPILER="$compiler" -DBPT_TESTS=OFF -DBPT_CUDA=OFF ||
    die "a plain build is not configured"
[ "$(type_of)" = Release ] || die "a build without a type is of type \"$(type_of)\""
configure -DCMAKE_BUILD_TYPE=None "$place/plain" || die "a build of type None is not configured"
[ "$(type_of)" = None ] || die "a build of type None is of type $(type_of)"

# Processors that are given have all that the sources ask for, and more.
flags=(-std=c17 -O2 -D_GNU_SOURCE -ffp-contract=off -fopenmp -I "$root" -c -o "$place/object")
if quiet "$compiler" -march=sapphirerapids "${flags[@]}" -xc /dev/null; then
    for source in "$root"/inner/loops/winograd_native.c "$root"/inner/loops/weight_copies.c; do
        quiet "$compiler" -march=sapphirerapids "${flags[@]}" "$source" || die "$source for sapphirerapids"
    done
fi

# Programs run from where they were put, though nothing else is known there, but for libraries, which may be of a
# module. What their hints name is there.
bare() { quiet env -i ${LD_LIBRARY_PATH:+"LD_LIBRARY_PATH=$LD_LIBRARY_PATH"} "$@"; }
# The build's list of what was installed stays that of the user.
list=$build/install_manifest.txt
[ -f "$list" ] && cp -p "$list" "$place/list"
DESTDIR=$place/a quiet cmake --install "$build" --prefix /usr || die "it is not installed"
rm -f "$list"
[ -f "$place/list" ] && cp -p "$place/list" "$list"
mv "$place/a" "$place/moved"
cd / || exit 1
for program in ingest train eval tune plan; do
    bare "$place/moved/usr/bin/bpt-$program" --version || die "bpt-$program does not run"
    [ -f "$place/moved/usr/share/man/man1/bpt-$program.1" ] || die "no manual page of bpt-$program"
done
bare "$place/moved/usr/bin/bpt-train" --model lenet --dry-run || die "no models"
for text in LICENSE README.md docs/models.md docs/formats.md tools/bpt.sbatch; do
    [ -f "$place/moved/usr/share/doc/bpt/$text" ] || die "$text is not installed"
done
