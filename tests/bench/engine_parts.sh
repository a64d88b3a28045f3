#!/usr/bin/env bash
# The bench tests/bench/engine without what it compares with: that it still understands what bpt-train
# and oneDNN print, skips where PyTorch is not there, and leaves nothing when it is told to stop.
# usage: engine_parts.sh BUILD
set -u
engine=$(cd "$(dirname "$0")" && pwd)/engine build=$1
command -v python3 >/dev/null || exit 77
work=$(mktemp -d) || exit 1
pid=
trap 'kill -KILL $pid 2>/dev/null; rm -rf "$work"' EXIT
trap 'exit 1' INT TERM HUP
export TMPDIR=$work

die() { # WHAT
    echo "FAILED: $1" >&2
    cat "$work"/out "$work"/err >&2
    exit 1
}
bench() { # STATUS ARGUMENT...
    local wanted=$1 status
    shift
    python3 "$engine" --build "$build" --networks lenet --precision fp32 --repetitions 2 --seconds 0.05 "$@" \
        >"$work/out" 2>"$work/err"
    status=$?
    [ $status -eq "$wanted" ] || die "exit status $status instead of $wanted: $*"
}

# It names the commit that is measured, and does without where there is no git.
mkdir "$work/path"
for folder in ${PATH//:/ }; do
    ln -s "$folder"/* "$work/path" 2>/dev/null
done
rm -f "$work/path/git"
mkdir -m 000 "$work/closed"
PATH=$work/path:$work/closed bench 0 --runs split,scaling --threads 2 --json "$work/json"
grep -q 'commit unknown' "$work/out" || die "a commit without git"
python3 - "$work/json" <<'END' || die "what a step spends"
import json, sys
rows = json.load(open(sys.argv[1]))["rows"]
assert not rows["torch"]
(row,) = rows["split"]
assert len(row["splits"]) == 2
for split in row["splits"]:
    shares = split["shares"]
    assert abs(sum(shares.values()) - 1) < 1e-3, shares
    assert shares["convolution"] > 0 and shares["matmul"] > 0 and shares["other"] >= 0, shares
    assert 0 < split["primitives_ms"] < split["step_ms"], split
    assert {"forward", "backward data", "backward weights", "update"} <= split["kinds"].keys(), split
    busy = sum(split["kinds"].values())
    assert abs(busy + shares["idle"] - 1) < 1e-3 and shares["own"] > 0, split
(row,) = rows["scaling"]
assert row["threads"] == 2 and len(row["conv"]) == 2
for one, many, ratio in zip(row["one"], row["all"], row["scaling"]):
    assert one > 0 and many > 0 and abs(ratio - many / one) < 1e-9, row
END
grep -qE '^\| lenet \| fp32 \| 2 \|' "$work/out" || die "no row of what a step spends"
grep -qE '^\| lenet \| 2 \|' "$work/out" || die "no row of how it scales"
bench 77 --venv "$work/none"
grep -q 'no PyTorch' "$work/err" || die "no word of why it skips"
bench 2 --networks lenat

# Told to stop, and again while it cleans up, as by timeout(1): what it made and started is gone.
python3 "$engine" --build "$build" --runs scaling --networks lenet --seconds 1000 >"$work/out" 2>"$work/err" &
pid=$!
until made=$(ls -d "$work"/bpt-engine-* 2>/dev/null); do
    kill -0 $pid || die "it ended"
    sleep 0.1
done
(cd "$made" && seq 20000 | xargs touch) # as a compiler would: it takes time to clean up
kill -TERM $pid
while [ -e "$made/1" ] && [ -e "$made/10000" ] && [ -e "$made/20000" ] && kill -0 $pid; do :; done
kill -TERM $pid
wait $pid
status=$? pid=
[ $status -eq 143 ] || die "exit status $status after a signal"
[ ! -e "$made" ] || die "left: $made"
for process in /proc/[0-9]*; do
    { tr '\0' '\n' <"$process/environ" | grep -qxF "TMPDIR=$work"; } 2>/dev/null && die "left: $process"
done
exit 0
