#!/usr/bin/env bash
# build_name.sh SOURCES VERSION PROGRAMS GENERATOR: the name that a build says it has (tools/build_name.h) is that of its
# sources: where they are does not matter, nor what else lies beside them, and any change of one makes another name.
set -u
sources=$1 version=$2 programs=$3 generator=$4
place=$(mktemp -d "${TMPDIR:-/tmp}/bpt-build-name.XXXXXX") || exit 1
trap 'rm -rf "$place"' EXIT

die() {
    echo "FAILED: $*" >&2
    exit 1
}
name_of() { # TREE
    cmake -DSOURCE_DIR="$1" -DVERSION="$version" -DOUT="$place/name.c" -P "$sources/tools/cmake/NameBuild.cmake" ||
        die "no name of $1"
    sed -n 's/.* = "\(.*\)";$/\1/p' "$place/name.c"
}

here=$(name_of "$sources")
[[ $here =~ ^$version\+[0-9a-f]{8}$ ]] || die "the name \"$here\""
for program in train eval ingest tune plan; do
    said=$("$programs/bpt-$program" --version)
    [ "$said" = "bpt-$program $here" ] || die "bpt-$program --version: $said, its sources are $here"
done
[ "$("$programs/bpt-ingest" glyphs --version | cut -d' ' -f2)" = "$here" ] || die "bpt-ingest glyphs --version"

tree="$place/a [copy] of it*"
mkdir "$tree"
for folder in base inner outer scheduler storage tools; do
    (cd "$sources" && find "$folder" -type f \( -name '*.c' -o -name '*.h' -o -name '*.cu' -o -name '*.cuh' \) \
        -exec cp --parents -t "$tree" {} +) || die "no copy"
done
[ "$(name_of "$tree")" = "$here" ] || die "a copy has another name"
mkdir "$tree/docs" "$tree/tests"
echo "int x;" >"$tree/tests/test_x.c"
echo "words" >"$tree/docs/words.md"
[ "$(name_of "$tree")" = "$here" ] || die "words and tests change the name"
ln -s somebody@somewhere.1 "$tree/base/.#log.c" # an editor's mark of a file that is open
echo "int y;" >"$tree/tools/.program.c"
[ "$(name_of "$tree")" = "$here" ] || die "what an editor keeps beside sources changes the name"

# A build makes it again when a source has come, or gone, and not else; here one in the source tree.
cat >"$tree/CMakeLists.txt" <<END
cmake_minimum_required(VERSION 3.25)
project(names VERSION $version LANGUAGES NONE)
include($sources/tools/cmake/BuildName.cmake)
bpt_name_build(name)
add_custom_target(names ALL DEPENDS \${name})
END
built() { # the name
    cmake --build "$tree" >"$place/log" 2>&1 || die "no build: $(cat "$place/log")"
    sed -n 's/.* = "\(.*\)";$/\1/p' "$tree/build_name.c"
}
cmake -G "$generator" -S "$tree" -B "$tree" >"$place/log" 2>&1 || die "no configuration: $(cat "$place/log")"
[ "$(built)" = "$here" ] || die "the build in a copy has another name"
echo >"$tree/outer/new.h"
[ "$(built)" != "$here" ] || die "a new source is not seen"
rm "$tree/outer/new.h"
[ "$(built)" = "$here" ] || die "it is not seen that a source is gone"
grep -q Naming "$place/log" && built >/dev/null || die "$(cat "$place/log")"
grep -q Naming "$place/log" && die "named again for nothing"

names=$here
for change in 'echo >>base/log.c' 'echo >>outer/exchange/exchange.h' 'echo >>inner/cuda/cuda_norms.cu' \
    'echo >>inner/cuda/cuda_columns.cuh' 'mv scheduler/pool.h scheduler/pond.h' 'rm storage/stage/stage.h' \
    'echo >tools/train/loop/new.c'; do
    (cd "$tree" && eval "$change") || die "$change"
    new=$(name_of "$tree") || exit 1
    names+=$'\n'$new
    [ "$(sort -u <<<"$names" | wc -l)" -eq "$(wc -l <<<"$names")" ] || die "no new name after: $change"
done
exit 0
