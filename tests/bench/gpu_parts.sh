#!/usr/bin/env bash
# The benches tests/bench/engine_gpu and mixed_gpu without a GPU: programs that are made up hang, fail or take long, and
# the benches end in time all the same, keep what there is, and leave nothing when they are told to stop.
# usage: gpu_parts.sh
set -u
here=$(cd "$(dirname "$0")" && pwd)
command -v python3 >/dev/null || exit 77
work=$(mktemp -d) || exit 1
pid=
trap 'kill -KILL $pid 2>/dev/null; rm -rf "$work"' EXIT
trap 'exit 1' INT TERM HUP
export TMPDIR=$work HANGS= FAILS= TAKES=0

die() { # WHAT
    echo "FAILED: $1" >&2
    cat "$work"/out "$work"/err >&2
    exit 1
}

cat >"$work/bpt-train" <<'END'
#!/bin/bash
case " $* " in
*" --model $HANGS "*) exec sleep 1000 ;;
*" --model $FAILS "*) echo 'bpt-train: no such GPU' >&2 && exit 2 ;;
esac
sleep "$TAKES"
echo '{"images_per_s": 100.0, "step_ms": {"median": 10.0}, "gflops_per_s": 1.0, "products_ms": 5.0, "device": "none"}'
END
cat >"$work/peer" <<'END'
#!/bin/bash
[ "$1" = -c ] && exit 0 # it has torch
while read -r mode _; do
    [ "$mode" = compile ] && sleep 1000
    echo '{"images_per_s": 50.0, "about": {"torch_version": "0"}}'
done
END
chmod +x "$work/bpt-train" "$work/peer"

# What hangs is told from other processes by its folder for temporary files.
sleepers() {
    local process
    for process in $(pgrep -x sleep); do
        { tr '\0' '\n' <"/proc/$process/environ" | grep -qxF "TMPDIR=$work"; } 2>/dev/null && echo "$process"
    done
}
bench() { # STATUS NAME ARGUMENT...
    local wanted=$1 name=$2 status
    shift 2
    timeout 30 python3 "$here/$name" --bpt-train "$work/bpt-train" --json "$work/json" "$@" >"$work/out" 2>"$work/err"
    status=$?
    [ $status -eq "$wanted" ] || die "exit status $status instead of $wanted: $name $*"
    [ -z "$(sleepers)" ] || die "left by $name $*: $(sleepers)"
}
against_torch() { # STATUS ARGUMENT...
    local wanted=$1
    shift
    bench "$wanted" engine_gpu --python "$work/peer" --steps 1 --repetitions 2 "$@"
}
row() { # CONDITION...: all hold of the only row
    python3 - "$work/json" "$@" <<'END' || die "another row than: $*"
import json, sys
(row,) = map(json.loads, open(sys.argv[1]))
assert all(eval(condition) for condition in sys.argv[2:]), row
END
}

# A mode that is still being compiled when the time is over is no peer; the others are measured.
against_torch 0 --networks lenet,resnet20 --budget 2
grep -q 'out of time before resnet20' "$work/err" || die "it goes on behind its budget"
row 'row["network"] == "lenet"' 'row["bpt"] == [100.0]' 'row["torch"] == {"eager": [50.0]}' \
    '"no answer in" in row["failed"]["compile"]'
grep -q '^| lenet ' "$work/out" || die "no table"

# One network that hangs or fails is not all of them.
HANGS=lenet against_torch 1 --networks lenet,resnet20 --no-compile --limit 2
grep -q 'lenet: .*bpt-train .* was not done in 2 s' "$work/err" || die "it does not say what hangs"
row 'row["network"] == "resnet20"' 'row["bpt"] == [100.0] * 2' 'row["ratio"] == {"eager": [2.0] * 2}'
FAILS=lenet against_torch 1 --networks lenet,resnet20 --no-compile
grep -q 'no such GPU' "$work/err" || die "it does not say what fails"
row 'row["network"] == "resnet20"'

HANGS=lenet bench 1 mixed_gpu --cases lenet:8:fp32,resnet20:8:fp32 --repetitions 2 --limit 2
grep -q 'lenet:8:fp32: .* was not done in 2 s' "$work/err" || die "it does not say what hangs"
row 'row["case"] == "resnet20:8:fp32"' 'row["values"] == [[100.0] * 2] * 3'
grep -q '^| resnet20:8:fp32 ' "$work/out" || die "no table"
TAKES=0.3 bench 0 mixed_gpu --cases lenet:8:fp32,resnet20:8:fp32 --repetitions 9 --budget 1.5
grep -q 'lenet:8:fp32: out of time after 1 repetition' "$work/err" || die "it goes on behind its budget"
grep -q 'out of time before resnet20:8:fp32' "$work/err" || die "another case begins behind its budget"
row 'row["values"] == [[100.0]] * 3'

# Told to stop: what hangs ends with it.
for name in engine_gpu mixed_gpu; do
    arguments=(--cases lenet:8:fp32)
    [ $name = mixed_gpu ] || arguments=(--python "$work/peer" --networks lenet --no-compile)
    HANGS=lenet python3 "$here/$name" --bpt-train "$work/bpt-train" "${arguments[@]}" >"$work/out" 2>"$work/err" &
    pid=$!
    until [ -n "$(sleepers)" ]; do
        kill -0 $pid 2>/dev/null || die "$name ended"
    done
    kill -TERM $pid
    wait $pid
    status=$? pid=
    [ $status -eq 143 ] || die "$name: exit status $status after a signal"
    [ -z "$(sleepers)" ] || die "left by $name: $(sleepers)"
done
exit 0
