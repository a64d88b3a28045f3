#!/usr/bin/env bash
# tools/quickstart builds every program: what it asks ninja for is written down by a stand-in, and the
# build folder tells what comes of it.
#
# usage: quickstart_selftest.sh BUILD
set -u
build=$1
root=$(cd "$(dirname "$0")/../.." && pwd)
tree=$(mktemp -d "${TMPDIR:-/tmp}/bpt-quickstart-XXXXXX") || exit 1
trap 'rm -rf "$tree"' EXIT

[ -f "$build/build.ninja" ] || {
    echo "skipped: $build was not made for ninja"
    exit 77
}
ninja=$(command -v ninja) || {
    echo "skipped: there is no ninja"
    exit 77
}

mkdir "$tree/bin" "$tree/tools"
cp "$root/tools/quickstart" "$tree/tools"
printf '#!/bin/bash\n' >"$tree/bin/cmake"
printf '#!/bin/bash\nprintf "%%s\\n" "$@" >%q\nexit 1\n' "$tree/asked" >"$tree/bin/ninja"
chmod +x "$tree/bin/"*
PATH=$tree/bin:$PATH "$tree/tools/quickstart" --no-setup >"$tree/answer" 2>&1
status=$?
[ $status -eq 1 ] && grep -qF 'quickstart: the build failed' "$tree/answer" || {
    printf 'FAILED: status %d where the build fails:\n' $status
    cat "$tree/answer"
    exit 1
}

mapfile -t targets < <(sed '/^-C$/,+1d' "$tree/asked")
commands=$("$ninja" -C "$build" -t commands "${targets[@]}") || exit 1
failures=0
for source in "$root"/tools/bpt_*.c; do
    program=$(basename "$source" .c)
    program=${program//_/-}
    grep -qE -- "-o tools/$program( |$)" <<<"$commands" && continue
    echo "FAILED: quickstart builds ${targets[*]}, and so no $program"
    failures=$((failures + 1))
done
[ $failures -eq 0 ] && echo "quickstart builds every program"
