#!/usr/bin/env bash
# --trace: the file parses, has every task of the steps it names and no others, ranks are joined, and
# the waits of the thread that trains and the messages meanwhile are in it.
source "$(dirname "$0")/common.sh"
make_model
make_data 600 100

# A trace is looked at by one script: STEPS "FIRST LAST", RANKS, and what must be waited for.
look() { # FILE FIRST LAST RANKS WAIT...
    python3 - "$@" <<'END' || die "the trace $1"
import collections, json, sys
path, first, last, ranks, waits = sys.argv[1], *map(int, sys.argv[2:5]), sys.argv[5:]
events = json.load(open(path))["traceEvents"]
spans = [e for e in events if e["ph"] == "X"]
exchanges = "gradients" in waits or "weights" in waits
assert {e["ph"] for e in events} == ({"X", "M", "b", "e"} if exchanges else {"X", "M"})
ends = collections.defaultdict(list)
for e in events:
    if e["ph"] in "be":
        ends[e["id"]].append(e)
assert {e["pid"] for e in events} == set(range(ranks))
names = [e for e in events if e["name"] == "process_name"]
assert len(names) == ranks, names
for rank in range(ranks):
    mine = [e for e in spans if e["pid"] == rank]
    steps = sorted((e for e in mine if e["cat"] == "step"), key=lambda e: e["ts"])
    assert [e["args"]["id"] for e in steps] == list(range(first, last + 1)), steps
    shapes = set()
    for step in steps:
        begin, end = step["ts"], step["ts"] + step["dur"]
        tasks = [e for e in mine if e["cat"] not in ("step", "wait")
                 and begin <= e["ts"] and e["ts"] + e["dur"] <= end + 0.01]
        # Each task of each graph once: of one, or of several one after the other.
        ids = collections.Counter(e["args"]["id"] for e in tasks)
        counts = [ids[i] for i in range(len(ids))]
        assert counts and counts == sorted(counts, reverse=True), ids
        assert (counts[0] > 1) == ("gradients" in waits), ids
        # Where gradients are summed or steps limited, updates are tasks apart.
        assert any(e["cat"] == "apply" for e in tasks) == (waits[-1:] != ["data"] and waits != [])
        shapes.add(tuple(sorted(e["name"] for e in tasks)))
        found = " ".join(e["name"] for e in tasks)
        for name in ("conv1 forward", "conv2 backward weights", "fc1 forward", "loss"):
            assert name in found, (name, found)
        # A worker does one thing at a time.
        for worker in {e["tid"] for e in tasks}:
            times = sorted((e["ts"], e["ts"] + e["dur"]) for e in tasks if e["tid"] == worker)
            assert all(a[1] <= b[0] + 0.01 for a, b in zip(times, times[1:])), times
    assert len(shapes) == 1, "steps differ in their tasks"
    assert max(e["tid"] for e in mine) <= 1
    for e in mine:  # viewers nest spans of a thread
        within = [s for s in steps if s["ts"] < e["ts"] + e["dur"] and e["ts"] < s["ts"] + s["dur"]]
        assert e["cat"] != "wait" or all(s["ts"] <= e["ts"] for s in within), e
    names = set()
    for begin, end in (pair for pair in ends.values() if pair[0]["pid"] == rank):
        assert (begin["ph"], end["ph"], end["pid"]) == ("b", "e", rank) and begin["ts"] <= end["ts"], begin
        assert (begin["name"], begin["cat"]) == (end["name"], end["cat"]) and begin["args"]["bytes"] > 0, begin
        assert end["ts"] >= steps[0]["ts"] and begin["tid"] == end["tid"] > 0, end
        names.add(begin["name"])
    other = 1 - rank
    assert names == ({f"to rank {other} send", f"from rank {other} receive"} if exchanges else set()), names
    for wait in waits:
        assert any(e["cat"] == "wait" and e["name"] == wait + " wait" for e in mine), wait
END
}

run 0 "$train" --model tiny.yaml --bench 9 --batch-size 16 --threads 2 --trace b.json --trace-steps 3-5
look b.json 3 5 1
run 0 "$train" --data data --model tiny.yaml --output runs/one --epochs 1 --threads 2 --trace one.json
look one.json 1 10 1 data
grep -q '^trace:' runs/one/config.yaml && die "a repeated run would replace the trace"
run 0 ranks 2 "$train" --data data --model tiny.yaml --output runs/two --epochs 2 --threads 1 \
    --update allreduce --trace two.json --trace-steps 2-4
look two.json 2 4 2 data gradients
says 'trace of 3 steps in two.json: open it at'
run 0 ranks 2 "$train" --data data --model tiny.yaml --output runs/three --epochs 2 --threads 1 \
    --update sgwu --partition even --sync-every 2 --trace three.json --trace-steps 2-4
look three.json 2 4 2 data weights
run 0 ranks 2 "$train" --data data --model tiny.yaml --output runs/placed --epochs 1 --threads 1 \
    --update allreduce --placement fc1 --trace placed.json --trace-steps 2-4
python3 - <<'END' || die "who waits for the layers of all"
import json
waits = [e for e in json.load(open("placed.json"))["traceEvents"] if e["name"] == "border wait"]
assert sorted((e["pid"], e["args"]["id"]) for e in waits) == [(r, i) for r in range(2) for i in range(2, 5)], waits
END
no_parts() { # but those of the user
    [ -z "$(find . -name '*.rank-*' ! -path './mine.json.*' ! -path './runs/*')" ] || die "parts are left: $(ls -A)"
}
no_parts

# The weights do not depend on it.
run 0 "$train" --data data --model tiny.yaml --output runs/plain --epochs 1 --threads 2
cmp runs/one/model.safetensors runs/plain/model.safetensors || die "--trace changes the weights"

run 0 "$train" --model tiny.yaml --bench 2 --trace first.json --trace-steps 1-1
says 'trace of 1 step in first.json: open it at'
run 0 "$train" --model tiny.yaml --bench 2 --trace late.json --trace-steps 5-6
says 'the trace is empty'
grep -q 'open it' err && die "nothing is there to be looked at"
[ -s late.json ] || die "no trace"
# It replaces nothing.
cp two.json late2.json
run 0 ranks 2 "$train" --data data --model tiny.yaml --output runs/late --epochs 0.1 --threads 1 \
    --trace late2.json --trace-steps 500-600
[ "$(grep -c 'the trace is empty' err)" -eq 1 ] || die "not said once"
says 'the run ended before step 500; late2.json stays as it was'
cmp -s two.json late2.json || die "an empty trace took the place of one"
# Where a job goes on, steps are counted from there; what is shown are their numbers in the run.
on=(--data data --model tiny.yaml --output runs/on --epochs 2 --threads 1 --checkpoint-every 12 --trace on.json)
run 0 "$train" "${on[@]}" --trace-steps 1-3
look on.json 1 3 1 data
cut_back runs/on
cp -r runs/on runs/on-again
run 0 "$train" "${on[@]}" --trace-steps 1-3 --resume auto
look on.json 13 15 1 data
cp on.json kept.json
run 0 "$train" "${on[@]}" --trace-steps 13-15 --output runs/on-again --resume auto
says 'the run ended before step 13, counted from where it went on; on.json stays as it was'
cmp -s on.json kept.json || die "the trace of the part before is gone"
for steps in 0-3 5-4 3 a-b 3-5x -1-2 1--5 1-+5 '1- 5' ' 1-5' 1-99999999999999999999 \
    18446744073709551617-18446744073709551618 ''; do
    fails_well 2 "$train" --model tiny.yaml --bench 2 --trace x.json --trace-steps "$steps"
done
fails_well 2 "$train" --data data --model tiny.yaml --dry-run --trace x.json
fails_well 1 "$train" --model tiny.yaml --bench 2 --trace nowhere/x.json
[ ! -e x.json ] || die "a refused command leaves a trace"

# What cannot be written is heard of before the first step, and nothing is left.
mkdir folder
fails_well 1 "$train" --model tiny.yaml --bench 2 --trace folder
says 'folder'
[ ! -s out ] || die "steps before the refusal"
fails_well 1 ranks 2 "$train" --data data --model tiny.yaml --output runs/four --epochs 1 --threads 1 \
    --trace folder
no_parts
[ -z "$(find folder -mindepth 1)" ] || die "left: $(find folder)"

# What fails later takes the measurement of nobody.
ln -s /dev/full full.json
fails_well 1 "$train" --model tiny.yaml --bench 2 --trace full.json
says 'full.json'
grep -q '"images_per_s"' out || die "no summary"
no_parts

# What a killed job left beside a trace of that name goes; what may be a living one's stays.
bash -c 'echo $$' >dead
dead=$(cat dead)
no_one=2147483646 # no process has this number
for left in .swept.json.$dead.rank-0 .swept.json.$dead.rank-1.tmp-4711 .swept.json.$$.rank-1 .swept.json.1x.rank-0 \
    .swept.json.rank-0 .other.json.$dead.rank-0 .swept.json.$no_one.rank-notes .swept.json.$no_one.rank-0.txt \
    .swept.json.$no_one.rank-0a .swept.json.$no_one.rank-0.tmp-4711a; do
    echo left >"$left"
done
run 0 "$train" --model tiny.yaml --bench 2 --trace swept.json --trace-steps 1-2
[ -z "$(find . -name ".swept.json.$dead.*")" ] || die "parts of a killed job are left"
for kept in .swept.json.$$.rank-1 .swept.json.1x.rank-0 .swept.json.rank-0 .other.json.$dead.rank-0 \
    .swept.json.$no_one.rank-notes .swept.json.$no_one.rank-0.txt .swept.json.$no_one.rank-0a .swept.json.$no_one.rank-0.tmp-4711a; do
    [ -e "$kept" ] || die "$kept is gone"
    rm "$kept"
done
# Killed while it joins: the reader of the pipe that stands for a slow disk never comes.
mkdir slow && mkfifo slow/pipe.json
# The check at the start opens and closes it, which another reader may hear of late: the steps take a second.
cat slow/pipe.json >/dev/null &
start "$train" --model tiny.yaml --bench 1000 --trace slow/pipe.json --trace-steps 1-2
await err 'the step is limited'
left=100
until [ -n "$(find slow -name '.pipe.json.*')" ]; do
    [ $((left--)) -gt 0 ] || die "no part is written"
    sleep 0.05
done
kill -s KILL "$pid"
wait "$pid" 2>/dev/null
[ -n "$(find slow -name '.pipe.json.*')" ] || die "the kill came late"
rm slow/pipe.json
run 0 "$train" --model tiny.yaml --bench 2 --trace slow/pipe.json --trace-steps 1-2
look slow/pipe.json 1 2 1
[ "$(ls -A slow)" = pipe.json ] || die "left: $(ls -A slow)"

# Files of the user beside it stay, and one of that name until there is another.
echo precious >mine.json.rank-0
cp one.json mine.json
run 4 "$train" --data data --model tiny.yaml --output runs/five --lr 1e9 --warmup-epochs 0 --trace mine.json
cmp -s one.json mine.json || die "a run that failed changes the old trace"
run 0 "$train" --model tiny.yaml --bench 2 --trace mine.json --trace-steps 1-2
look mine.json 1 2 1
[ "$(cat mine.json.rank-0)" = precious ] || die "a file of the user is gone"
no_parts

# Only a trace is replaced by a trace: not the model or the dataset, nor what the run itself writes.
for mine in tiny.yaml data/data.mdb mine.json.rank-0; do
    before=$(cksum $mine)
    fails_well 2 "$train" --data data --model tiny.yaml --output runs/six --epochs 1 --trace $mine
    says "$mine exists already and is no trace"
    fails_well 2 "$train" --model tiny.yaml --bench 2 --trace $mine
    [ "$(cksum $mine)" = "$before" ] || die "a trace took the place of $mine"
    [ ! -e runs/six ] || die "a refused trace leaves a run folder"
done
fails_well 2 "$train" --data data --model tiny.yaml --output runs/six --epochs 1 --trace runs/six/summary.json
check_json runs/six/summary.json 'd["epochs"] >= 1'
no_parts
: >empty.json
run 0 "$train" --model tiny.yaml --bench 2 --trace empty.json --trace-steps 1-2
look empty.json 1 2 1
