#!/usr/bin/env bash
# Breaks every rule of house_rules.sh in a small tree, one by one: each must be found.
set -u
rules=$(cd "$(dirname "$0")" && pwd)/house_rules.sh
tree=$(mktemp -d "${TMPDIR:-/tmp}/bpt-house-XXXXXX") || exit 1
trap 'rm -rf "$tree"' EXIT
cd "$tree" || exit 1
failures=0

put() { # FILE LINE...
    mkdir -p "$(dirname "$1")"
    printf '%s\n' "${@:2}" >"$1"
}

# A tree that keeps all rules, with every include that is allowed.
put base/status.h 'int bpt_status;'
put base/json.c '#include "base/status.h"' '#include <jansson.h>' '#include <yaml.h>'
put scheduler/graph.h '#include "base/status.h"'
put scheduler/cores.c '#include "scheduler/graph.h"' '#include <hwloc.h>'
put storage/dataset.h '#include "base/status.h"'
put storage/dataset.c '#include "storage/dataset.h"' '#include <lmdb.h>'
put inner/layer.h '#include "scheduler/graph.h"'
put inner/cpu/conv.c '#include "inner/layer.h"' '#include <oneapi/dnnl/dnnl.h>'
put outer/comm.h '#include "base/status.h"'
put outer/comm_private.h '#include <mpi.h>' '#include "outer/comm.h"'
put outer/comm.c '#include "outer/comm_private.h"'
put tools/train.c '#include "outer/comm.h"' '#include "inner/layer.h"' \
    '#include "storage/dataset.h"' '#include "base/status.h"'
put tests/outer/test_comm.c '#include "outer/comm_private.h"' '#include <mpi.h>' \
    'static const char name[] = "bpt-XXXXXX";'
put build/release/generated.c '#include "../anything.h"' # builds are none of our business

check() { # the expected text in the answer, or "" for a clean tree
    local answer status
    answer=$(CLANG_FORMAT=${formatter:-none} bash "$rules" "$tree" 2>&1)
    status=$?
    if [ -z "$1" ] && [ $status -eq 0 ]; then return; fi
    if [ -n "$1" ] && [ $status -eq 1 ] && grep -qF -- "$1" <<<"$answer"; then return; fi
    printf 'FAILED: expected "%s", got status %d:\n%s\n' "$1" $status "$answer"
    failures=$((failures + 1))
}

breaks() { # EXPECTED FILE LINE...: adds a file, checks, and removes it
    put "${@:2}"
    check "$1"
    rm "$2"
}

check ""
unfinished=TO; unfinished+=DO

# the arrows between folders
for pair in base:scheduler base:storage base:inner base:outer base:tools scheduler:inner \
    scheduler:storage scheduler:outer storage:scheduler storage:inner storage:outer inner:storage \
    inner:outer inner:tools outer:inner outer:storage outer:scheduler outer:tools; do
    from=${pair%:*} to=${pair#*:}
    put "$to/target.h" 'int x;'
    breaks "$from/bad.c:1: $from may not include $to" "$from/bad.c" "#include \"$to/target.h\""
    rm "$to/target.h"
done
put tests/base/support.h 'int x;'
breaks 'tools may not include tests' tools/bad.c '#include "tests/base/support.h"'
breaks 'bad.c:2: "../status.h"' base/bad.c '' '#include "../status.h"'
breaks 'is no file of the tree' base/bad.c '#include "status.h"'
breaks 'is no file of the tree' base/bad.c '#  include "base/none.h"'
breaks 'included with quotes' inner/bad.c '#include <outer/comm.h>'

# third-party headers
for pair in mpi.h:base lmdb.h:tools oneapi/dnnl/dnnl.h:inner dnnl.h:tools cuda_runtime.h:inner/cpu \
    cudnn.h:inner cublas_v2.h:scheduler jansson.h:storage yaml.h:inner xxhash.h:storage \
    hwloc.h:inner hwloc/cuda.h:inner/cuda zlib.h:base png.h:tools turbojpeg.h:inner omp.h:inner \
    mpi.h:tests/inner lmdb.h:tests/outer; do
    breaks "${pair%:*} belongs to" "${pair#*:}/bad.c" 'int x;' "#include <${pair%:*}>"
    breaks "${pair%:*} belongs to" "${pair#*:}/bad.cu" "#include \"${pair%:*}\""
done
breaks 'brings along a third-party header of outer/' tools/bad.c '#include "outer/comm_private.h"'
put outer/second.h '#include "outer/comm_private.h"'
put outer/third.h '#include "outer/second.h"'
breaks 'outer/third.h brings along' tools/bad.c '#include "outer/third.h"'
rm outer/second.h outer/third.h

# names, sizes, marks, the CUDA switch
breaks 'more than one file has this name: base/json.c inner/json.c' inner/json.c 'int x;'
breaks '601 lines' base/bad.c $(seq 601)
breaks 'base/bad.c:2: unfinished mark' base/bad.c '' "/* $unfinished: later */"
breaks 'notes.md:1: unfinished mark' docs/notes.md "${unfinished}: write"
put inner/cuda/switch.c '#ifdef BPT_CUDA' '#endif'
check ""
breaks 'BPT_CUDA is asked in more than one file' tools/bad.c '#if defined(BPT_CUDA)' '#endif'

# nothing to look at is no success
empty=$tree/docs/empty
mkdir -p "$empty"
if bash "$rules" "$empty" >/dev/null 2>&1; then
    echo "FAILED: a tree without sources passed"
    failures=$((failures + 1))
fi

# layout
if clang-format --version 2>/dev/null | grep -q 'version 14\.'; then
    formatter=clang-format
    find . -name '*.[ch]' -not -path './build/*' -exec clang-format --style=LLVM -i {} +
    put .clang-format 'BasedOnStyle: LLVM' 'SortIncludes: Never'
    check ""
    breaks 'base/bad.c: clang-format would change it' base/bad.c 'int  x ;'
fi

if [ $failures -gt 0 ]; then exit 1; fi
echo "every broken rule was found"
