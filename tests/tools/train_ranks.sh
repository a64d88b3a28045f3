#!/usr/bin/env bash
# Every way of updating on 1 to 4 ranks: it learns, what moves between the ranks adds up to the
# byte, and every submission's staleness is counted.
source "$(dirname "$0")/common.sh"
make_data
make_model

tells_staleness() { # RUN: in its step events
    python3 - "$1/metrics.jsonl" <<'END' || die "$1/metrics.jsonl: staleness"
import json, sys
for e in map(json.loads, open(sys.argv[1])):
    if e["event"] == "step":
        assert 0 <= e["stale_p50"] <= e["stale_max"] and e["shard_spread_max"] >= 0, e
END
}

never_goes_back() { # RUN: what happened later stands at a later epoch
    python3 - "$1/metrics.jsonl" <<'END' || die "$1/metrics.jsonl goes back"
import itertools, json, sys
for e, next in itertools.pairwise(map(json.loads, open(sys.argv[1]))):
    assert e["epoch"] <= next["epoch"], (e, next)
END
}

limits_are_told() { # RUN: in the summary, and of several ranks in the table at the end
    python3 - "$1/summary.json" <<'END' || die "what limited the ranks of $1"
import json, math, re, sys
summary = json.load(open(sys.argv[1]))
limits = ("work", "path", "imbalance", "data", "messages", "between")
for r in summary["ranks"]:
    assert r["limit"] in limits, r
    assert 0 < r["path_s"] <= r["work_s"] * 1.000001, r # one thread
    assert r["work_s"] <= r["compute_s"] - r["data_wait_s"] + 1e-6, r
table = open("err").read()
if len(summary["ranks"]) > 1:
    assert re.search(r" rank +host +device +img/s +alone +share +efficiency +waited +data +limit$", table, re.M)
    rows = re.findall(r" (\d+) +\S+ +cpu +[\d.]+ +\S+ +[\d.]+% +\S+ +([\d.]+)% +([\d.]+)% +(\w+)$", table, re.M)
    assert [row[0] for row in rows] == [str(r["rank"]) for r in summary["ranks"]], rows
    assert [row[3] for row in rows] == [r["limit"] for r in summary["ranks"]], rows
    alone = [r["solo_images_per_s"] for r in summary["ranks"]]
    assert len(set(alone)) == len(alone) and min(alone) > 0, alone # each its own
    began = re.search(r" each alone, images a second by rank: (.*)$", table, re.M)[1]
    assert began == ", ".join("%.0f on %s" % (r["solo_images_per_s"], r["host"]) for r in summary["ranks"]), began
    told = re.findall(r" \d+ +\S+ +cpu +[\d.]+ +(\d+) +[\d.]+% +([\d.]+) +[\d.]+% +[\d.]+% +\w+$", table, re.M)
    assert told == [("%.0f" % r["solo_images_per_s"], "%.2f" % r["efficiency"]) for r in summary["ranks"]], told
    first = summary["ranks"][0]
    speed = first["samples"] / (summary["seconds"] - first["eval_s"])
    assert math.isclose(first["efficiency"], speed / first["solo_images_per_s"], rel_tol=1e-6), summary
    together = sum(r["efficiency"] * a for r, a in zip(summary["ranks"], alone)) / sum(alone)
    assert math.isclose(summary["efficiency"], together, rel_tol=1e-6), summary
    for row, r in zip(rows, summary["ranks"]):
        busy = r["compute_s"] + r["wait_s"] + r["eval_s"] + r["quality_s"]
        assert abs(float(row[1]) - 100 * r["wait_s"] / busy) < 0.06, (row, r)
        assert abs(float(row[2]) - 100 * r["data_wait_s"] / busy) < 0.06, (row, r)
else:
    assert "training was limited by " in table
END
}

ends_as_summed_up() { # RUN: its last event and its last line
    python3 - "$1" <<'END' || die "what $1 says at its end"
import json, re, sys
summary = json.load(open(sys.argv[1] + "/summary.json"))
*_, end = map(json.loads, open(sys.argv[1] + "/metrics.jsonl"))
fields = dict(epoch="epochs", step="steps", accuracy="test_accuracy", loss="test_loss")
assert end["event"] == "end" and all(end[key] == summary[fields[key]] for key in fields), (end, summary)
assert end["seconds"] >= summary["seconds"], (end, summary)
done, = re.findall(r"info: done: (\S+) accuracy (\S+) after (\S+) epochs in (\S+) s \((\d+) img/s\); see (\S+)$",
                   open("err").read(), re.M)
assert done == ("test", "%.4f" % summary["test_accuracy"], "%.2f" % summary["epochs"], "%.1f" % summary["seconds"],
                "%.0f" % summary["images_per_s"], sys.argv[1] + "/summary.json"), (done, summary)
END
}

for update in agwu sgwu allreduce; do
    for n in 1 2 3 4; do
        [ $n = 1 ] || [ $n = 3 ] || variants || continue
        out=runs/$update-$n
        # The batch is that of all ranks together under allreduce, of each one elsewhere.
        run 0 ranks $n "$train" "${common[@]}" --output $out --update $update --epochs 4 \
            --batch-size 20 --lr 0.01 --eval-every 2
        check_json $out/summary.json "d['update'] == '$update'" 'd["test_accuracy"] > 0.3' \
            "[r['rank'] for r in d['ranks']] == list(range($n))" \
            'sum(r["samples"] for r in d["ranks"]) >= 8000' \
            'math.isclose(sum(r["share"] for r in d["ranks"]), 1)' \
            'all(r["steps"] > 0 and r["host"] for r in d["ranks"])' \
            'd["peak_rss_bytes"] == max(r["peak_rss_bytes"] for r in d["ranks"])'
        says "update $update ($([ $update = agwu ] && echo asynchronous || echo synchronous)), partition "
        limits_are_told $out
        ends_as_summed_up $out
        never_goes_back $out
        head -n 1 $out/metrics.jsonl >begun.json
        all=$([ $update = allreduce ] && echo 20 || echo $((20 * n)))
        check_json begun.json 'd["event"] == "start"' 'd["batch_size"] == 20' "d['batch_size_all'] == $all"
        check_json $out/summary.json 'd["model"] == "tiny"' "d['steps'] == d['samples'] // $all" \
            "all(r['comm_cpu_s'] > 0 and r['comm_cpu_s'] != r['wait_s'] for r in d['ranks'])" \
            'd["epochs"] == d["samples"] / 2000' 'math.isclose(d["images_per_s"], d["samples"] / d["seconds"])'
        # Payload: weights or gradients there and back, for each submission of each rank.
        check_json $out/summary.json \
            'sum(r["submissions"] for r in d["ranks"]) > 0' \
            'sum(r["payload_bytes_sent"] for r in d["ranks"]) == 2 * d["weight_bytes"] * sum(r["submissions"] for r in d["ranks"])' \
            'sum(r["payload_bytes_received"] for r in d["ranks"]) == 2 * d["weight_bytes"] * sum(r["submissions"] for r in d["ranks"])' \
            "all(r['bytes_sent'] > r['payload_bytes_sent'] or $n == 1 for r in d['ranks'])" \
            'sum(r["bytes_sent"] for r in d["ranks"]) == sum(r["bytes_received"] for r in d["ranks"])'
        python3 "$here/weights.py" finite $out/model.safetensors || die "weights of $out"
        run 0 "$eval" --data data --model tiny.yaml --weights $out/model.safetensors --json
        check_json out "d['correct'] == round(500 * $(python3 -c "
import json; print(json.load(open('$out/summary.json'))['test_accuracy'])"))"
        case $update in
        agwu) # every shard counts every submission
            check_json $out/summary.json \
                'sum(d["staleness"]) == len(d["ranks"]) * sum(r["submissions"] for r in d["ranks"])' \
                'sum(d["shard_spread"]) == sum(r["submissions"] for r in d["ranks"])' \
                'len(d["ranks"]) > 1 or len(d["shard_spread"]) == 1'
            tells_staleness $out ;;
        allreduce) # one batch of 20 in all
            check_json $out/summary.json 'd["steps"] == 400' \
                'all(r["submissions"] == 400 and r["steps"] == 400 for r in d["ranks"])' ;;
        esac
        for r in $(seq 0 $((n - 1))); do
            [ -s $out/log.rank-$r.txt ] || die "no log of rank $r in $out"
        done
    done
done

# A staleness bound of 0 keeps the ranks in step.
run 0 ranks 3 "$train" "${common[@]}" --output runs/bound --lr 0.01 --update agwu --epochs 2 --max-staleness 0 \
    --eval-every 0.25
# Nor does any get far while rank 0 evaluates, which it does again and again.
[ "$(grep -c '"event": "eval"' runs/bound/metrics.jsonl)" -ge 5 ] || die "too few evaluations while nobody waits"
check_json runs/bound/summary.json 'd["test_accuracy"] > 0.2' 'len(d["staleness"]) <= 5' \
    'len(d["shard_spread"]) <= 3' # 0 to (m - 1)(2 S + 1)
# Who is held by it waits: no push is under way for longer than an interval. For an evaluation nobody meets.
python3 - runs/bound/exchange/steps.rank-*.jsonl <<'END' || die "a rank trains on while it is held, or meets others for an evaluation"
import json, sys
assert len(sys.argv) == 4, sys.argv
for path in sys.argv[1:]:
    landings = [e for e in map(json.loads, open(path)) if "landed_at" in e]
    assert len(landings) > 2, path
    assert [e for e in landings if e["met"]] == landings[-1:], path
    every = landings[0]["pushed_at"]
    for e in landings:
        assert e["landed_at"] - e["pushed_at"] <= every, (path, every, e)
        every = e["every"]
END
run 0 "$train" --replay runs/bound # which looks at each push's lead
says "bit for bit"

# What is in the logs of the exchange is told to whoever reads them.
python3 - "$here/../../docs/formats.md" <<'END' || die "fields that docs/formats.md does not name"
import glob, json, re, sys
text = open(sys.argv[1]).read()
told = re.split(r"^## ", text[text.index("## Logs of an exchange"):], flags=re.M)[1]
named = set(re.findall(r"`([a-z_]+)`", told))
logs = glob.glob("runs/bound/exchange/*")
assert len(logs) > 3, logs
for path in logs:
    for line in open(path):
        assert named >= json.loads(line).keys(), (path, line)
END
