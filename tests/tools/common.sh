# What the end-to-end tests of bpt-train and bpt-eval share; sourced by them. Each test works in a
# folder of its own, which is removed at the end, and ends what it started.
#
# From ctest: BPT_TOOLS, the folder of the programs; BPT_MPIRUN, the command before -np N.
set -u
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
: "${BPT_TOOLS:?set it to the folder of bpt-train}" "${BPT_MPIRUN:=mpirun --bind-to none --oversubscribe}"
train=$BPT_TOOLS/bpt-train
eval=$BPT_TOOLS/bpt-eval
tune=$BPT_TOOLS/bpt-tune
plan=$BPT_TOOLS/bpt-plan
ingest=$BPT_TOOLS/bpt-ingest
started=() # background processes that may still live

skip() { # WHY
    echo "skipped: $1"
    exit 77
}

die() { # WHAT
    echo "FAILED: $1" >&2
    local file
    for file in out err; do
        [ -s "$work/$file" ] && tail -n 40 "$work/$file" | sed "s/^/$file: /" >&2
    done
    exit 1
}

clean_up() {
    local pid
    for pid in "${started[@]}"; do
        kill -0 "$pid" 2>/dev/null && kill -KILL $(pgrep -P "$pid") "$pid" 2>/dev/null
    done
    cd /
    rm -rf "$work"
}

command -v python3 >/dev/null || skip "python3 is not there"
# A python3 that is a script, as pyenv's is, takes three times as long to start as the one it looks for.
if [ "$(head -c 2 "$(command -v python3)")" = '#!' ]; then
    PATH=$(python3 -c 'import os, sys; print(os.path.dirname(sys.executable) or "/usr/bin")'):$PATH
fi
# Without what is installed beside it, of which nothing is needed here, it starts in half the time.
python3() {
    command python3 -S "$@"
}
work=$(mktemp -d "${TMPDIR:-/tmp}/bpt-test-XXXXXX") || exit 1
trap clean_up EXIT
trap 'exit 1' INT TERM HUP
cd "$work" || exit 1

make_data() { # [TRAIN [TEST]]: dataset "data" of so many images
    "$ingest" glyphs --out data --split train --count "${1:-2000}" >out 2>err &&
        "$ingest" glyphs --out data --split test --count "${2:-500}" >out 2>err ||
        die "bpt-ingest glyphs"
}

make_model() { # model "tiny.yaml": small enough that a step takes half a millisecond
    cat >tiny.yaml <<'END'
name: tiny
input: [1, 28, 28]
classes: 10
layers:
  - conv: {name: conv1, filters: 8, kernel: 5, stride: 2}
  - relu
  - conv: {name: conv2, filters: 8, kernel: 3}
  - relu
  - maxpool: {name: pool2, kernel: 2}
  - fc: {name: fc1, outputs: classes}
END
}

# The options that all runs have in common; later ones on the command line win.
common=(--data data --model tiny.yaml --batch-size 20 --threads 1 --lr 0.05 --log-interval 0)

# Ranks measure for half a second how fast they are, if they are not told for how long: for jobs as short as these a
# twentieth of a second will do.
calibration() { # COMMAND...: what to add to it, if it trains and says nothing about that itself
    case " $* " in
    *' --calibrate '* | *' --bench '* | *' --update local '* | *' --config '* | *' --others '*) ;;
    *'/bpt-train --data '*) echo --calibrate 0.05 ;;
    esac
}

ranks() { # N COMMAND...: runs it on N ranks
    local n=$1
    shift
    # shellcheck disable=SC2046,SC2086 # several words
    $BPT_MPIRUN -np "$n" "$@" $(calibration "$@")
}

# Before FIRST... --others OTHERS..., for ranks: rank 0 runs the one command, all others the other. For mpirun that is
# FIRST... : OTHERS..., by which the one of Open MPI 5.0.7 crashes.
# shellcheck disable=SC2016 # expanded by the ranks
unlike=(bash -c '
    first=()
    while [ "$1" != --others ]; do
        first+=("$1")
        shift
    done
    [ "$OMPI_COMM_WORLD_RANK" -eq 0 ] && exec "${first[@]}"
    shift
    exec "$@"' unlike)

# Whether variants of one case are wanted: not under sanitizers, which look for other faults and are several times as slow.
variants() {
    [ -z "${BPT_SANITIZED:-}" ]
}

length() { # WHOLE SHORT: how long something is to be, which takes several times as long under sanitizers
    variants && echo "$1" || echo "$2"
}

# Looking for leaks doubles the time of a short run: under sanitizers it is done in one of five.
n_runs=0
leaks_of_run() {
    [ $((n_runs++ % 5)) -eq 0 ] && unset ASAN_OPTIONS || export ASAN_OPTIONS=detect_leaks=0
}

# mpirun of Open MPI 5 puts a zero byte behind what it says of an abort, before the next line.
without_zeros() { # FILE
    IFS= read -r -d '' _ <"$1" || return 0
    tr -d '\0' <"$1" >"$1.text" && mv "$1.text" "$1"
}

run() { # STATUS COMMAND...: runs it to the end, output in files out and err
    local wanted=$1 status
    shift
    variants || leaks_of_run
    "$@" >out 2>err </dev/null
    status=$?
    without_zeros err
    [ $status -eq "$wanted" ] || die "exit status $status instead of $wanted: $*"
}

start() { # COMMAND...: runs it in the background; $pid
    : >out # at once: what is waited for in them is not to be what the last one said
    : >err
    "$@" >out 2>err </dev/null &
    pid=$!
    started+=("$pid")
}

start_ranks() { # N COMMAND...: likewise under mpirun, which is $pid
    local n=$1
    shift
    # shellcheck disable=SC2046,SC2086 # several words
    start $BPT_MPIRUN -np "$n" "$@" $(calibration "$@")
}

await_exit() { # [SECONDS]: waits for $pid, which has so long; $status
    local left=$((${1:-120} * 10))
    while kill -0 "$pid" 2>/dev/null; do
        [ $((left--)) -gt 0 ] || die "process $pid has not ended after ${1:-120} s"
        sleep 0.1
    done
    wait "$pid"
    status=$?
    without_zeros err
}

finish() { # STATUS [SECONDS]: likewise, and ends so
    local status
    await_exit "${2:-}"
    [ $status -eq "$1" ] || die "exit status $status instead of $1"
}

await() { # FILE TEXT: until the file holds the text
    local left=3000
    until grep -qsF -- "$2" "$1"; do
        [ $((left--)) -gt 0 ] || die "no \"$2\" in $1 after 60 s"
        kill -0 "$pid" 2>/dev/null || grep -qsF -- "$2" "$1" || die "ended before $1 held \"$2\""
        sleep 0.02
    done
}

await_steps() { # RUN: until training is under way
    await "$1/metrics.jsonl" '"event": "step"'
}

stop_early() { # RUN SIGNAL COMMAND...: ends the training of COMMAND with a checkpoint in RUN
    local run=$1 signal=$2 turn status
    shift 2
    for turn in 1 2 3 4 5; do # until the signal comes before the end does
        start "$@" --output "$run"
        await_steps "$run"
        kill -s "$signal" "$pid" 2>/dev/null
        await_exit
        [ $status -eq 0 ] || break
        rm -r "$run"
    done
    [ $status -eq 75 ] || die "exit status $status instead of 75, the $turn. time: $*"
}

cut_back() { # RUN: to its first checkpoint, unfinished
    compgen -G "$1/checkpoints/step-*" >/dev/null || die "$1 ended before its first checkpoint: it has to be longer"
    rm "$1/summary.json" "$1/model.safetensors"
    find "$1/checkpoints" -mindepth 1 -maxdepth 1 | sort | tail -n +2 | xargs -r rm -r
}

seal() { # CHECKPOINT: whose files were changed by hand
    python3 - "$1/DONE" >sealed <<'END' || die "$1/DONE"
import json, sys
done = json.load(open(sys.argv[1]))
print(done["serial"], *(file["name"] for file in done["files"]))
END
    # shellcheck disable=SC2046 # several words
    "${BPT_HELPERS:?}/seal_checkpoint" "$1" $(cat sealed) || die "seal_checkpoint"
    rm sealed
}

rank_process() { # N: process id of the N-th local rank of the mpirun that is $pid, from 1
    pgrep -P "$pid" -x bpt-train | sed -n "$1p"
}

# Lets a process run a fifth of the time, until it ends.
hinder() { # PID
    while kill -STOP "$1" 2>/dev/null; do
        sleep 0.04
        kill -CONT "$1" 2>/dev/null
        sleep 0.01
    done
}

says() { # TEXT [FILE]: the file (err) holds the text
    grep -qF -- "$1" "${2:-err}" || die "\"$1\" is not in ${2:-err}"
}

fails_well() { # STATUS COMMAND...: a failure with one line that says what, and one hint
    run "$@"
    local n
    n=$(grep -cE '^bpt-(train|eval|ingest|tune|plan): ' err)
    [ "$n" -eq 1 ] || die "$n error lines instead of 1: ${*:2}"
    grep -qE '^(bpt-[a-z]+): \1' err && die "the program's name twice: ${*:2}"
    grep -q '^hint: ' err || die "no hint: ${*:2}"
    if grep -qE 'Segmentation|signal 11|AddressSanitizer|runtime error|assert' err; then
        die "it crashed: ${*:2}"
    fi
}

json_holds() { # FILE EXPRESSION...: whether each Python expression about the parsed file, d, is true
    python3 - "$@" <<'END'
import json, math, sys
d = json.load(open(sys.argv[1]))
for expression in sys.argv[2:]:
    if not eval(expression):
        sys.exit(f"{sys.argv[1]}: not true: {expression}\n{json.dumps(d)}")
END
}

check_json() { # FILE EXPRESSION...: they are
    json_holds "$@" || die "$1 is not as it should be"
}

same_weights() { # RUN RUN
    cmp "$1/model.safetensors" "$2/model.safetensors" || die "the weights of $1 and $2 differ"
}

near_weights() { # RUN RUN TOLERANCE [LAYER...]: norm of the difference over the norm
    python3 "$here/weights.py" near "$1/model.safetensors" "$2/model.safetensors" "${@:3}" ||
        die "the weights of $1 and $2 are not near"
}
