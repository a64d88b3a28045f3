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
put storage/dataset/dataset.h '#include "base/status.h"'
put storage/dataset/dataset.c '#include "storage/dataset/dataset.h"' '#include <lmdb.h>'
put inner/layers/layer.h '#include "scheduler/graph.h"'
put inner/loops/vector.h '#include "base/status.h"'
put inner/device.h '#include "inner/network/network.h"'
put inner/network/network.h '#include "inner/layers/layer.h"'
put inner/cuda/kernels.c '#include "inner/device.h"' '#include "inner/loops/vector.h"'
put inner/cpu/conv.c '#include "inner/loops/vector.h"' '#include <oneapi/dnnl/dnnl.h>'
put outer/comm/comm.h '#include "base/status.h"'
put outer/comm/comm_private.h '#include <mpi.h>' '#include "outer/comm/comm.h"'
put outer/comm/comm.c '#include "outer/comm/comm_private.h"'
put outer/exchange/exchange.h '#include "outer/comm/comm.h"'
put tools/train.c '#include "outer/comm/comm.h"' '#include "inner/layers/layer.h"' \
    '#include "storage/dataset/dataset.h"' '#include "base/status.h"'
put tools/bpt_train.c '#include "tools/train/job/job.h"'
put tools/train/job/job.h '#include "tools/train/options/options.h"' '#include "outer/comm/comm.h"'
put tools/train/loop/loop.h '#include "tools/train/job/job.h"'
put tools/train/options/options.h '#include "tools/precision.h"'
put tools/precision.h '#include "base/status.h"'
put tests/tools/test_job.c '#include "tools/train/job/job.h"'
put tests/outer/test_comm.c '#include "outer/comm/comm_private.h"' '#include <mpi.h>' \
    'static const char name[] = "bpt-XXXXXX";'
put build/release/generated.c '#include "../anything.h"' # builds are none of our business

expected=() bad_files=()

bad() { # EXPECTED FILE LINE...: a file that breaks one rule, and what must be said of it
    put "${@:2}"
    expected+=("$1")
    bad_files+=("$2")
}

# Runs the check once: it must say all that is expected and find nothing else. Cleans up.
check() {
    local answer status text
    answer=$(CLANG_FORMAT=${formatter:-none} bash "$rules" "$tree" 2>&1)
    status=$?
    for text in "${expected[@]}"; do
        grep -qF -- "$text" <<<"$answer" && continue
        printf 'FAILED: not found: %s\n' "$text"
        failures=$((failures + 1))
    done
    text="files keep the rules"
    [ ${#expected[@]} -gt 0 ] && text="house_rules: ${#expected[@]} found"
    if ! grep -qF -- "$text" <<<"$answer" || [ $status -ne $((${#expected[@]} > 0)) ]; then
        printf 'FAILED: expected "%s", got status %d:\n%s\n' "$text" $status "$answer"
        failures=$((failures + 1))
    fi
    rm -f "${bad_files[@]}"
    expected=() bad_files=()
}

check
n=0

# the arrows between folders
for folder in base scheduler storage inner outer tools; do
    put $folder/target_$folder.h 'int x;'
done
for pair in base:scheduler base:storage base:inner base:outer base:tools scheduler:inner \
    scheduler:storage scheduler:outer scheduler:tools storage:scheduler storage:inner \
    storage:outer storage:tools inner:storage inner:outer inner:tools outer:inner outer:storage \
    outer:scheduler outer:tools; do
    from=${pair%:*} to=${pair#*:} n=$((n + 1))
    bad "$from/bad$n.c:1: $from may not include $to" $from/bad$n.c "#include \"$to/target_$to.h\""
done
put tests/base/support.h 'int x;'
bad 'tools may not include tests' tools/bad.c '#include "tests/base/support.h"'
bad 'tools/train/options may not include tools/train/job (tools/train/job/job.h)' tools/train/options/over.c \
    '#include "tools/train/job/job.h"'
bad 'tools may not include tools/train/job (tools/train/job/job.h)' tools/precise.c '#include "tools/train/job/job.h"'
bad 'tools/train may not include base (base/status.h)' tools/train/lost.c '#include "base/status.h"'
bad 'tools/train/replay may not include tools/train/job' tools/train/replay/again.c '#include "tools/train/job/job.h"'
bad 'tools/train/job may not include tools/train/loop' tools/train/job/round.c '#include "tools/train/loop/loop.h"'
bad 'base may not include tools/train/job' base/up_there.c '#include "tools/train/job/job.h"'
bad 'outer/comm may not include outer/exchange' outer/comm/nap.c '#include "outer/exchange/exchange.h"'
bad 'outer may not include base (base/status.h)' outer/top.c '#include "base/status.h"'
bad 'inner/loops may not include inner/network' inner/loops/loop.c '#include "inner/network/network.h"'
bad 'inner/loops may not include inner/device.h' inner/loops/where.c '#include "inner/device.h"'
bad 'inner/cpu may not include inner/layers/layer.h' inner/cpu/pool.c '#include "inner/layers/layer.h"'
bad 'storage/environment may not include storage/dataset' storage/environment/guard.c \
    '#include "storage/dataset/dataset.h"'
bad 'up.c:2: "../status.h"' base/up.c '' '#include "../status.h"'
bad 'here.c:1: "status.h" is no file of the tree' base/here.c '#include "status.h"'
bad 'none.c:1: "base/none.h" is no file of the tree' base/none.c '#  include "base/none.h"'
bad 'angled.c:1: <outer/comm/comm.h>: our own' outer/angled.c '#include <outer/comm/comm.h>'
check

# third-party headers, in both ways to write them
for pair in mpi.h:base lmdb.h:tools oneapi/dnnl/dnnl.h:inner dnnl.h:tools cuda_runtime.h:inner/cpu \
    cudnn.h:inner cublas_v2.h:scheduler jansson.h:storage yaml.h:inner xxhash.h:storage \
    hwloc.h:inner hwloc/cuda.h:inner/cuda zlib.h:base png.h:storage turbojpeg.h:storage/importers omp.h:inner \
    mpi.h:tests/inner lmdb.h:tests/outer; do
    header=${pair%:*} folder=${pair#*:} n=$((n + 1))
    bad "bad$n.c:2: $header belongs to" "$folder/bad$n.c" 'int x;' "#include <$header>"
    bad "cuda$n.cu:1: $header belongs to" "$folder/cuda$n.cu" "#include <$header>"
done
put outer/comm/second.h '#include "outer/comm/comm_private.h"'
put outer/comm/third.h '#include "outer/comm/second.h"'
bad 'outer/comm/comm_private.h brings along' tools/first.c '#include "outer/comm/comm_private.h"'
bad 'outer/comm/third.h brings along' tools/third.c '#include "outer/comm/third.h"'
check

# names, sizes, marks, the CUDA switch
unfinished=TO
unfinished+=DO
put inner/cuda/switch.c '#ifdef BPT_CUDA' '#endif'
check
bad 'more than one file has this name: base/json.c inner/json.c' inner/json.c 'int x;'
bad 'long.c: 601 lines' base/long.c $(seq 601)
bad 'longer.cpp: 601 lines' tests/inner/longer.cpp $(seq 601)
bad 'mark.c:2: unfinished mark' base/mark.c '' "/* $unfinished: later */"
bad 'notes.md:1: unfinished mark' docs/notes.md "${unfinished}: write"
put outer/comm/transfers.c 'int f(void) { return MPI_Test(0, 0, 0); }'
check
bad 'exchange.c:2: MPI is called beside' outer/exchange/exchange.c '' 'int g(void) { return MPI_Test(0, 0, 0); }'
put tests/base/near.h '/* in place of assert_float_equal() */'
bad 'test_sum.c:2: assert_float_equal() passes at NaN' tests/base/test_sum.c '' 'void f(void) { assert_float_equal(1, 1, 0); }'
put tests/tools/common.sh 'await_exit() {' 'true' '}'
put tests/tools/alone.sh 'await_exit() {' 'true' '}'
check
bad 'ends.sh:2: tests/tools/common.sh has a function of this name: await_exit()' tests/cluster/ends.sh \
    'source "$here/../tools/common.sh"' 'await_exit() {' 'true' '}'
bad 'BPT_CUDA is asked in more than one file' tools/ask.c '#if defined(BPT_CUDA)' '#endif'
check

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
    check
    bad 'base/wide.c: clang-format would change it' base/wide.c 'int  x ;'
    check
fi

if [ $failures -gt 0 ]; then exit 1; fi
echo "every broken rule was found"
