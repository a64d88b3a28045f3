#!/usr/bin/env bash
# What a run leaves behind: every file of the run folder, that its configuration repeats it bit for
# bit, and that bpt-eval measures what the summary says.
source "$(dirname "$0")/common.sh"
make_data
make_model

run 0 "$train" "${common[@]}" --output runs/one --epochs 2 --eval-every 0.5 --checkpoint-every 60

for entry in config.yaml log.rank-0.txt metrics.jsonl summary.json model.safetensors \
    checkpoints/step-00000060/DONE checkpoints/step-00000180/DONE; do
    [ -s runs/one/$entry ] || die "no runs/one/$entry"
done
[ -z "$(find runs/one -name '*.tmp*')" ] || die "temporary files are left"
cmp tiny.yaml runs/one/model.yaml || die "the model's file is another one"
grep -qE '^20[0-9-]+T[0-9:]+Z r0 [^ ]+ info: ' runs/one/log.rank-0.txt || die "the log's lines"
[ ! -s out ] || die "words on standard output"

check_json runs/one/summary.json \
    '0.5 < d["test_accuracy"] <= 1' '0 < d["test_loss"] < 2' 'd["epochs"] == 2' \
    'd["steps"] == 200' 'd["seconds"] > 0' \
    'math.isclose(d["images_per_s"], 4000 / d["seconds"], rel_tol=1e-6)' \
    'd["update"] == "local" and d["partition"] == "even"' 'len(d["ranks"]) == 1' \
    'd["ranks"][0]["rank"] == 0 and d["ranks"][0]["host"] and d["ranks"][0]["device"] == "cpu"' \
    'd["ranks"][0]["samples"] == 4000 and d["ranks"][0]["share"] == 1' \
    'd["ranks"][0]["images_per_s"] > 0' '0 < d["ranks"][0]["compute_s"] <= d["seconds"]' \
    'd["ranks"][0]["wait_s"] == 0 and d["ranks"][0]["comm_cpu_s"] >= 0' \
    'd["ranks"][0]["bytes_sent"] == d["ranks"][0]["bytes_received"] == 0' \
    'isinstance(d["staleness"], list)' '10**6 < d["peak_rss_bytes"] < 10**11'

# What limited it, by the times of the summary: one worker is on no path longer than its work.
python3 - <<'END' || die "what limited the training"
import json, re
summary = json.load(open("runs/one/summary.json"))
rank, = summary["ranks"]
line, = (line for line in open("err") if "training was limited by" in line)
limit, *shares = re.search(r"limited by (.*) \(of its time: in steps ([0-9.]+)%, waiting for data ([0-9.]+)%, "
                           r"for messages ([0-9.]+)%, between steps ([0-9.]+)%\)$", line).groups()
steps, data, messages, between = map(float, shares)
texts = {"work": "its work", "path": "its critical path", "imbalance": "load imbalance", "data": "waiting for data",
         "messages": "waiting for messages", "between": "what is done between"}
assert limit.startswith(texts[rank["limit"]]), (line, rank)
assert rank["limit"] not in ("path", "messages") and messages == 0, (line, rank)
assert abs(steps + data + between - 100) < 0.3 and steps > 0, line
assert 0 < rank["path_s"] <= rank["work_s"] <= rank["compute_s"] - rank["data_wait_s"] < summary["seconds"], rank
whole = summary["seconds"] - rank["eval_s"]
assert abs(data - 100 * rank["data_wait_s"] / whole) < 0.2, (line, rank)
if rank["limit"] == "work":
    assert rank["work_s"] > 0.69 * whole, (whole, rank) # none of three losses is more than a tenth
END
# Where no step is made nothing is limited.
run 0 "$train" "${common[@]}" --output runs/none --epochs 0.5 --resume runs/one/checkpoints/step-00000180
grep -q 'limited by' err && die "no step, and something limited it"
check_json runs/none/summary.json 'd["ranks"][0]["steps"] == 0 and d["ranks"][0]["limit"] == ""'

python3 - <<'END' || die "metrics.jsonl"
import json
events = [json.loads(line) for line in open("runs/one/metrics.jsonl")]
summary = json.load(open("runs/one/summary.json"))
kinds = [e["event"] for e in events]
assert kinds[0] == "start" and kinds[-1] == "end" and set(kinds) <= {"start", "step", "eval", "end"}
evals = [e for e in events if e["event"] == "eval"]
assert [(e["epoch"], e["step"]) for e in evals] == [(0.5, 50), (1, 100), (1.5, 150), (2, 200)], evals
for e in evals:
    assert e["split"] == "test" and 0 <= e["accuracy"] <= 1 and e["loss"] > 0 and e["seconds"] > 0
assert evals[-1]["loss"] == summary["test_loss"]
assert evals[-1]["accuracy"] == summary["test_accuracy"]
for e in events:
    if e["event"] == "step":
        assert e["loss"] > 0 and e["lr"] >= 0 and e["images_per_s"] > 0, e
seconds = [e["seconds"] for e in events if "seconds" in e]
assert seconds == sorted(seconds)
END

python3 "$here/weights.py" finite runs/one/model.safetensors || die "the weights"
python3 - <<'END' || die "the weights do not say whose they are"
import json
data = open("runs/one/model.safetensors", "rb").read()
told = json.loads(data[8 : 8 + int.from_bytes(data[:8], "little")])["__metadata__"]
assert told.pop("made_by").startswith("bpt-train ") and told == {"format": "pt", "model": "tiny"}, told
END

# Progress, of steps that take long enough for it on any machine.
run 0 "$train" "${common[@]}" --model lenet --output runs/slow --epochs 0.995 --lr 0.01 --eval-every 0
grep -qE '^step [0-9]+/100 epoch [0-9.]+ loss [0-9.]+ lr [0-9.e+-]+ [0-9]+ img/s data [0-9]+% wait [0-9]+% eta [0-9]+:[0-9]+$' err ||
    die "no line of progress"

# A run of less than an interval has its line nevertheless, at its end, and a longer one tells of its last steps there.
last_step() { # RUN: its step events, which are one; that
    python3 - "$1/metrics.jsonl" <<'END' || die "$1/metrics.jsonl: the step event at the end"
import json, sys
events = [json.loads(line) for line in open(sys.argv[1])]
step, = (e for e in events if e["event"] == "step")
end = events[-1]
assert end["event"] == "end" and step["step"] == end["step"] and step["epoch"] == end["epoch"], (step, end)
assert step["loss"] > 0 and step["images_per_s"] > 0, step
json.dump(step, open("step.json", "w"))
END
}
run 0 "$train" "${common[@]}" --log-interval 3600 --output runs/short --epochs 2 --eval-every 0.5
grep -qE '^step 200/200 epoch 2.0 loss ' err || die "no line of progress at the end"
last_step runs/short
mean=$(python3 -c '
import json
losses = [e["loss"] for e in map(json.loads, open("runs/one/metrics.jsonl")) if e["event"] == "step"]
assert len(losses) == 200
print(sum(losses) / 200)')
check_json step.json "math.isclose(d['loss'], $mean, rel_tol=1e-6)" 'd["step"] == 200'
for update in agwu sgwu allreduce; do
    run 0 ranks 2 "$train" "${common[@]}" --log-interval 3600 --output runs/short-$update --epochs 1 --lr 0.01 \
        --update $update
    last_step runs/short-$update
done
# Who is stopped tells of the steps before as well.
start "$train" "${common[@]}" --log-interval 3600 --eval-every 0 --checkpoint-every 40 --epochs 100000 --output runs/cut
until compgen -G 'runs/cut/checkpoints/step-*/DONE' >/dev/null; do # the first is there for a while only
    kill -0 "$pid" || die "ended too early"
    sleep 0.01
done
kill -s TERM "$pid"
finish 75
check_json <(tail -n 1 runs/cut/metrics.jsonl) 'd["event"] == "step"' 'd["step"] >= 40' 'd["loss"] > 0'

# bpt-eval finds the same accuracy, to the last image, at any batch size and number of threads.
correct=$(python3 -c 'import json; print(round(json.load(open("runs/one/summary.json"))["test_accuracy"] * 500))')
loss=$(python3 -c 'import json; print(json.load(open("runs/one/summary.json"))["test_loss"])')
for options in "--batch-size 20 --threads 1" "--batch-size 7 --threads 2" "--batch-size 500"; do
    # shellcheck disable=SC2086 # several words
    run 0 "$eval" --data data --model tiny.yaml --weights runs/one/model.safetensors --json $options
    check_json out "d['correct'] == $correct" 'd["count"] == 500' \
        'd["accuracy"] == d["correct"] / 500' "math.isclose(d['loss'], $loss, rel_tol=1e-5)"
done
run 0 "$eval" --data data --model tiny.yaml --weights runs/one/model.safetensors
says "($correct of 500)" out
run 0 "$eval" --data data --model tiny.yaml --weights runs/one/model.safetensors --split train --json
check_json out 'd["count"] == 2000'

# The configuration repeats the run, wherever it is run from and also where --force made it.
run 0 "$train" --config runs/one/config.yaml --output runs/two --log-interval 0.02
same_weights runs/one runs/two
# Of each interval its own mean is told, whatever steps are in it.
python3 - <<'END' || die "losses of intervals"
import json, math
def steps(run):
    events = [json.loads(line) for line in open(run + "/metrics.jsonl")]
    return [(e["step"], e["loss"]) for e in events if e["event"] == "step"]
each, before = dict(steps("runs/one")), 0
assert sorted(each) == list(range(1, 201)), each
for step, loss in steps("runs/two"):
    mean = math.fsum(each[s] for s in range(before + 1, step + 1)) / (step - before)
    assert math.isclose(loss, mean, rel_tol=1e-9), (before, step, loss, mean)
    before = step
END
run 0 "$train" --config runs/one/config.yaml --output runs/two --force
run 2 "$train" --config runs/two/config.yaml
says "exists already"
same_weights runs/one runs/two

# Other weights with another seed.
run 0 "$train" --config runs/one/config.yaml --output runs/three --seed 2
! cmp -s runs/one/model.safetensors runs/three/model.safetensors || die "the seed changes nothing"

# Where logs cannot be written out either, a run says what ended it: that they are cut is the lesser evil.
# With the bound it waits at each push, so that the meeting for a checkpoint comes before the end.
run 0 "$train" "${common[@]}" --update agwu --output runs/full --epochs 1 --checkpoint-every 50 --max-staleness 0
cut_back runs/full
for log in steps updates; do
    cp -r runs/full runs/full-$log
    ln -sf /dev/full runs/full-$log/exchange/$log.rank-0.jsonl
    fails_well 4 "$train" "${common[@]}" --update agwu --output runs/full-$log --epochs 1 --lr 1e12 --sync-every 1 \
        --resume auto
    says 'finite'
done
# Metrics that cannot be written are an error, on a device too, which is not read to its end.
cp -r runs/full runs/full-metrics
ln -sf /dev/full runs/full-metrics/metrics.jsonl
fails_well 1 timeout -s KILL 60 "$train" "${common[@]}" --update agwu --output runs/full-metrics --epochs 1 --resume auto
says 'runs/full-metrics/metrics.jsonl: No space left on device'

# What became of the losses of a run that diverges is told, also between two lines.
fails_well 4 "$train" "${common[@]}" --output runs/diverged --epochs 1 --lr 1e12 --log-interval 1000
says 'finite'
grep -qE 'step [0-9]+/100 epoch .* loss ' err || die "no line of a run that diverged"
[ "$(grep -c '"event": *"step"' runs/diverged/metrics.jsonl)" = 1 ] || die "the losses of a run that diverged"
# Where that cannot be written it is said, and what ended the run is. There is room for the event that it begins with.
cp -r runs/full runs/full-losses
python3 - runs/full-losses/metrics.jsonl <<'END' || die "metrics"
import sys
start = open(sys.argv[1]).readline()
room = len(start) + 100 # in 64 kB; the event of steps is longer
open(sys.argv[1], "w").write((start + " " * 64 * 1024)[: 64 * 1024 - room - 1] + "\n")
END
fails_well 4 bash -c 'ulimit -f 64 && exec "$@"' limited "$train" "${common[@]}" --update agwu --epochs 1 --lr 1e12 \
    --log-interval 1000 --output runs/full-losses --resume auto
says 'warn: the last losses are not told: cannot write runs/full-losses/metrics.jsonl: File too large'
says 'finite'

# The copy of the model's file: by it a run is repeated, also in its own place; one that goes on has its own.
copy=("$train" "${common[@]}" --output runs/copy --epochs 1 --checkpoint-every 60)
run 0 "${copy[@]}"
run 0 "${copy[@]}" --force --model runs/copy/model.yaml
cmp tiny.yaml runs/copy/model.yaml || die "the copy that was trained by is another one"
rm runs/copy/summary.json
sed 's/maxpool/avgpool/' tiny.yaml >average.yaml
run 0 "${copy[@]}" --model average.yaml --resume auto
cmp average.yaml runs/copy/model.yaml || die "the copy is of the model before"
run 0 "${copy[@]}" --epochs 0.1 --model lenet --force
grep -qx 'name: lenet' runs/copy/model.yaml || die "no copy of a built-in model"
