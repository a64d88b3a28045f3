#!/usr/bin/env bash
# The picture of a run: well-formed and whole at any moment, true to the metrics, also after a stop, a crash and on other
# ranks; and no run hangs on it.
source "$(dirname "$0")/common.sh"
source "$here/resume_help.sh"
make_data
make_model

# What is in a run's chart holds to CONDITION: on c, which has its texts, its titles, and how many marks each panel has; and
# on evals, the evaluations that its metrics tell of. Nothing leads out of the picture.
check_chart() { # RUN CONDITION...
    python3 - "$@" <<'END' || die "$1/chart.svg"
import json, re, sys, types
from xml.etree import ElementTree
run, conditions = sys.argv[1], sys.argv[2:]
space = "{http://www.w3.org/2000/svg}"
elements = list(ElementTree.parse(run + "/chart.svg").getroot().iter())
known = {space + tag for tag in "svg title style rect text line path clipPath circle".split()}
assert {e.tag for e in elements} <= known, {e.tag for e in elements}
for e in elements:
    for key, value in e.attrib.items():
        assert not key.endswith("href") and not key.startswith("on"), (key, value)
        assert not re.search(r"nan|inf|url\((?!#clip)", value), (key, value)
    assert not re.search("@import|url", e.text or ""), e.text
c = types.SimpleNamespace(texts=[e.text for e in elements if e.tag == space + "text"],
                          titles=[e.text for e in elements if e.tag == space + "title"],
                          marks=sum("stroke-dasharray" in e.attrib for e in elements) / 4)
lines = [line for line in open(run + "/metrics.jsonl") if line.endswith("\n")]
evals = [e for e in map(json.loads, lines) if e["event"] == "eval"]
for condition in conditions:
    assert eval(condition), (condition, vars(c))
END
}

run 0 "$train" "${common[@]}" --output runs/one --epochs 2 --eval-every 0.5
check_chart runs/one 'c.texts[0] == c.titles[0] == "tiny on data"' \
    're.fullmatch(r"1 rank, local, batch size 20, lr 0\.05, begun 20..-..-.. ..:.. UTC", c.texts[1])' \
    'c.marks == 0' 'len(evals) == 4' 'sum(": accuracy " in t for t in c.titles) == 4' \
    '"epoch 1.5: loss %.4g" % evals[2]["loss"] in c.titles' \
    '"best %.4f" % max(e["accuracy"] for e in evals) in [t.partition(" at epoch")[0] for t in c.texts]' \
    '"test %.4f" % evals[-1]["accuracy"] in c.texts' '"test %.4g" % evals[-1]["loss"] in c.texts' \
    'any(t.startswith("training ") for t in c.texts)' '{"epochs", "seconds", "learning rate"} <= set(c.texts)'
check_json <(head -n 1 runs/one/metrics.jsonl) 'd["event"] == "start"' 'd["data"] == "data"' 'd["update"] == "local"' \
    'd["lr"] == 0.05 and d["lr_factor"] == 1' 'd["seconds"] == 0' 'len(d["time"]) == 20'
[ -z "$(find runs/one -name '*.tmp*')" ] || die "temporary files are left"

# While it trains each picture is a whole one; without evaluations it comes with checkpoints.
long=("$train" "${common[@]}" --epochs 100000 --eval-every 0 --checkpoint-every 200)
start "${long[@]}" --output runs/cut
await runs/cut/chart.svg '</svg>'
for _ in 1 2 3 4 5; do check_chart runs/cut 'any(t.startswith("training ") for t in c.texts)'; done
kill -s TERM "$pid"
finish 75
check_chart runs/cut '"no evaluation yet" in c.texts' 'c.marks == 0' \
    'any(t.startswith("training ") for t in c.texts)'
begun=$(grep -o 'begun [^<]*' runs/cut/chart.svg)

# One that goes on marks where; after a kill, which may leave half a line, what was lost is not shown. It goes on by a tenth
# at least: where both marks are within a hundredth of the picture they are one.
steps() {
    local folder
    folder=$(newest runs/cut)
    echo $((10#0${folder##*-}))
}
stop=$(steps)
start "${long[@]}" --output runs/cut --resume auto
await runs/cut/chart.svg '>resumed<'
for ((left = 3000; $(steps) < stop + stop / 10; left--)); do
    [ $left -gt 0 ] && kill -0 "$pid" 2>/dev/null || die "no checkpoint a tenth behind step $stop"
    sleep 0.02
done
kill -s KILL "$pid"
finish 137
printf '{"event": "step", "epoch": 1e6, "st' >>runs/cut/metrics.jsonl
printf 'half' >runs/cut/chart.svg.tmp-1
start "${long[@]}" --output runs/cut --resume auto --eval-every 2
await runs/cut/metrics.jsonl '"eval"'
kill -s TERM "$pid"
finish 75
check_chart runs/cut 'c.marks == 2' 'c.texts.count("resumed") >= 1' '"no evaluation yet" not in c.texts'
[ "$(grep -o 'begun [^<]*' runs/cut/chart.svg)" = "$begun" ] || die "the run has begun anew"
[ -z "$(find runs/cut -name '*.tmp*')" ] || die "temporary files are left"

# Several ranks, which go on as others. With the bound they wait at each push, so that meetings for checkpoints come in time.
ranks=("${common[@]}" --eval-every 0.5 --checkpoint-every 20 --output runs/ranks)
go_on() { # N COMMAND...: from the last checkpoint that a finished run has left
    compgen -G 'runs/ranks/checkpoints/step-*' >/dev/null || die "ended before its first checkpoint: it has to be longer"
    rm runs/ranks/{summary.json,model.safetensors}
    run 0 ranks "$@" --resume auto
}
run 0 ranks 3 "$train" "${ranks[@]}" --epochs 2 --update agwu --sync-every 4 --max-staleness 0
check_chart runs/ranks 're.match(r"3 ranks, agwu, batch size 20, lr 0\.05 × 3, begun ", c.texts[1])' \
    'c.marks == 0' 'len(evals) >= 2' 'sum(": accuracy " in t for t in c.titles) == len(evals)'
go_on 2 "$train" "${ranks[@]}" --epochs 3 --update allreduce
check_chart runs/ranks 'c.marks == 1' '"resumed, 2 ranks" in c.texts' 'c.texts[1].startswith("2 ranks, allreduce, ")'
go_on 2 "$train" "${ranks[@]}" --epochs 4 --update sgwu --sync-every 4
check_chart runs/ranks 'c.marks == 2' 'c.texts[1].startswith("2 ranks, sgwu, ")'
# --force begins a picture anew.
run 0 "$train" "${ranks[@]}" --epochs 0.2 --eval-every 0 --force
check_chart runs/ranks 'c.marks == 0' 'c.texts[1].startswith("1 rank, local")' 'len(evals) == 1'

# How the losses grew is what there is to look at.
fails_well 4 "$train" "${common[@]}" --output runs/diverged --epochs 1 --lr 1e12
check_chart runs/diverged '"no evaluation yet" in c.texts' 'any(t.startswith("training ") for t in c.texts)'

# What cannot be written is said once, and is no end of a run.
mkdir -p runs/kept
cp -r runs/cut/. runs/kept
rm runs/kept/chart.svg
mkdir -p runs/kept/chart.svg/mine
more=$(python3 -c '
import json
events = [json.loads(line) for line in open("runs/kept/metrics.jsonl")]
print(max(e["epoch"] for e in events if "epoch" in e) + 3)')
run 0 "$train" "${common[@]}" --output runs/kept --eval-every 0.5 --epochs "$more" --resume auto
[ "$(grep -c 'warn: no chart: cannot .*runs/kept/chart.svg: .*; the run goes on without' err)" -eq 1 ] || die "said once"
[ -d runs/kept/chart.svg/mine ] || die "what was there is gone"
[ -s runs/kept/summary.json ] || die "no summary"
[ -z "$(find runs/kept -name '*.tmp*')" ] || die "temporary files are left"
