#!/usr/bin/env bash
# What needs no training: --bench, --dry-run, --help, --version, and a command without arguments.
source "$(dirname "$0")/common.sh"
make_model

run 0 "$train" --model tiny.yaml --bench 7 --batch-size 16 --threads 1
python3 - <<'END' || die "the lines of --bench"
import json
lines = [json.loads(line) for line in open("out")]
steps, last = lines[:-1], lines[-1]
assert [step["step"] for step in steps] == list(range(1, 8)), steps
ms = sorted(step["ms"] for step in steps)
assert ms[0] > 0
for name, value in (("min", ms[0]), ("median", ms[3]), ("max", ms[6])):
    assert abs(last["step_ms"][name] - value) <= 1e-3 * value + 1e-4, (name, last, ms)
assert abs(last["images_per_s"] - 16e3 / last["step_ms"]["median"]) < 1e-3 * last["images_per_s"]
# The usual count: forward and twice as much backward, two operations a multiply-add.
conv1, conv2, fc = 12 * 12 * 8 * 25, 10 * 10 * 8 * 8 * 9, 200 * 10
assert 0.99 < last["flops_per_image"] / (6 * (conv1 + conv2 + fc)) < 1.1, last["flops_per_image"]
assert last["threads"] == 1 and last["batch_size"] == 16 and last["steps"] == 7
assert last["data_wait_ms"] == 0 and last["limit"] in ("work", "imbalance"), last
END
# docs/training.md explains what is printed, and nothing else.
python3 - "$here/../../docs/training.md" <<'END' || die "the fields of --bench are not those of docs/training.md"
import json, re, sys
section = open(sys.argv[1]).read().split("\n## Measuring speed\n")[1].split("\n## ")[0]
documented = re.findall(r"`([\w.]+)`", "".join(re.findall(r"^\| (`[^|]*) \|", section, re.M)))
lines = [json.loads(line) for line in open("out")]
printed = []
for key, value in lines[-1].items():
    printed += [f"{key}.{part}" for part in value] if isinstance(value, dict) else [key]
assert documented == printed, (documented, printed)
assert all(f"`{key}`" in section for line in lines[:-1] for key in line), lines[0]
END
for layer in conv1 conv2 fc1 loss; do
    grep -qE "^$layer .* ms .*%" err || die "no row for $layer"
done
# What limits the step: no path is longer than all the work, and one worker is always busy, unless it
# lost its core just between two tasks, which does not come time after time.
for turn in 1 2 3 4 5; do
    python3 - <<'END' || die "what limits the step, by its figures"
import re
line, = (line for line in open("err") if line.startswith("the step is limited"))
limit, *figures = re.fullmatch(r"the step is limited by (.*) \(wall ([0-9.]+) ms, critical path ([0-9.]+) ms, "
                               r"work / 1 worker ([0-9.]+) ms\)\n", line).groups()
wall, path, work = map(float, figures)
assert 0 < path < work <= wall, line
if not 0.89 < work / wall < 0.91:  # as printed
    assert limit.startswith("its work: " if work > 0.9 * wall else "load imbalance: "), line
END
    grep -q '^the step is limited by its work: the workers are busy (' err && break
    [ $turn -lt 5 ] || die "no step is limited by its work"
    run 0 "$train" --model tiny.yaml --bench 7 --batch-size 16 --threads 1
done

run 0 "$train" --model lenet --bench 2 --batch-size 4 --input-size 20 24 --classes 7 --threads 2
python3 -c 'import json; [json.loads(line) for line in open("out")]' || die "not JSON"
make_data 100 50
# Of a dataset batches are read, and waited for.
cat >thin.yaml <<'END'
name: thin
input: [1, 28, 28]
classes: 10
layers:
  - global_avgpool
  - fc: {outputs: classes}
END
run 0 "$train" --data data --model thin.yaml --bench 400 --batch-size 50 --augment rotate=30 --loader-threads 1 --prefetch 2
python3 - <<'END' || die "waiting for data"
import json, re
last = [json.loads(line) for line in open("out")][-1]
line, = (line for line in open("err") if line.startswith("the step is limited"))
waits, = map(float, re.findall(r", waiting for data ([0-9.]+) ms\)$", line))
wall, = map(float, re.findall(r"\(wall ([0-9.]+) ms", line))
assert 0 < last["data_wait_ms"] < wall and abs(waits - last["data_wait_ms"]) < 1e-3, (line, last)
assert last["limit"] in ("work", "path", "imbalance", "data"), last
# A thread that turns images is slower than a network which takes their mean.
assert last["limit"] == "data" and waits > 0.5 * wall and " limited by waiting for data (" in line, (line, last)
END
rm thin.yaml
# What is read ahead is not waited for, unless the loader lost its core for long, which does not come time after time.
for turn in 1 2 3 4 5; do
    run 0 "$train" --data data --model lenet --bench 3 --batch-size 20 --threads 1 --loader-threads 1 --prefetch 16
    json_holds <(tail -n 1 out) 'd["data_wait_ms"] == 0' 2>/dev/null && break
    [ $turn -lt 5 ] || die "batches that are there are waited for"
done
# It reads under a lock, by which a writer knows that somebody does. A process that opens a dataset twice loses it.
start "$train" --data data --model tiny.yaml --bench 1000000 --batch-size 4 --threads 1
await out '"step": 1,'
python3 - <<'END' || die "no lock on the dataset"
import fcntl
with open("data/lock.mdb", "r+b") as lock:
    try:
        fcntl.lockf(lock, fcntl.LOCK_EX | fcntl.LOCK_NB, 1, 0)
    except BlockingIOError:
        raise SystemExit(0)
raise SystemExit(1)
END
kill -KILL "$pid"
finish 137
fails_well 3 "$train" --data data --train-split nosuch --model lenet --bench 1
says nosuch
fails_well 2 "$train" --data data --augment crop=400 --model lenet --bench 1 --batch-size 4
says crop
run 0 "$train" --data data --model tiny.yaml --bench 1 --batch-size 100
fails_well 2 "$train" --data data --model tiny.yaml --bench 1 --batch-size 101
says '--batch-size 101: a step takes 101 samples, split "train" has 100'
says 'hint: give --batch-size 100 or less'
fails_well 2 "$train" --model lenet --bench 2 --input-size 4 4
[ "$(ls)" = "$(printf '%s\n' data err out tiny.yaml)" ] || die "--bench leaves something: $(ls)"

run 0 "$train" --data data --model lenet --dry-run --batch-size 32
says 'batch-size: 32' out
says 'conv2' out
says 'memory of a rank, with 32 samples a step:' out
run 0 "$train" --data data --model lenet --dry-run --output runs/x
[ "$(ls)" = "$(printf '%s\n' data err out tiny.yaml)" ] || die "--dry-run leaves something: $(ls)"
fails_well 3 "$train" --data nowhere --model lenet --dry-run
# What the run would refuse for the dataset's sake.
dry=("$train" --data data --model tiny.yaml --dry-run)
for wrong in "--train-split nosuch" "--test-split nosuch"; do
    # shellcheck disable=SC2086 # several words
    fails_well 3 "${dry[@]}" $wrong
    says nosuch
done
fails_well 2 "${dry[@]}" --augment crop=400
says crop
fails_well 2 "${dry[@]}" --batch-size 60000
says 'batch-size 60000: a step of 1 rank takes 60000 samples'
fails_well 2 ranks 2 "${dry[@]}" --batch-size 1 --idpa-rounds 64
says '100 samples in 64 rounds leave some of 2 ranks without any'
[ ! -s out ] || die "a plan of what is refused"

plan() { # KEY: bytes in the table of --dry-run
    sed -nE "s/^  $1 +([0-9]+) +[0-9.]+ MB\$/\1/p" out
}
# Without a dataset, and the rows add up. With 16 filters, which fill the vectors of every processor: kernels for wider
# ones than 8 floats pad the weights.
sed 's/filters: 8/filters: 16/' tiny.yaml >wide.yaml
run 0 "$train" --model wide.yaml --dry-run --batch-size 32 --threads 1
total=0
for key in parameters gradients 'optimiser state' activations 'activation gradients' workspaces \
    batches 'order of samples' 'vectors of weights' exchange; do
    [ "$(plan "$key")" -ge 0 ] || die "no row of $key"
    total=$((total + $(plan "$key")))
done
[ "$(plan total)" -eq "$total" ] || die "the total is not the sum $total"
[ "$(plan exchange)" -eq 0 ] || die "an exchange on one rank"
[ "$(plan 'order of samples')" -eq 0 ] || die "an order of no samples"
weights=$((4 * (16 * 25 + 16 + 16 * 16 * 9 + 16 + 400 * 10 + 10)))
[ "$(plan parameters)" -ge "$weights" ] && [ "$(plan parameters)" -lt $((weights + 1024)) ] ||
    die "$(plan parameters) bytes of parameters, not $weights"
# 4 + 3 batches in flight, each of pixels, labels, indices and passes; two images a thread to augment.
batches=$((7 * 32 * (4 * 28 * 28 + 12)))
[ "$(plan batches)" -eq $batches ] || die "$(plan batches) bytes of batches"
run 0 "$train" --model wide.yaml --dry-run --batch-size 32 --threads 1 --augment flip --loader-threads 3
[ "$(plan batches)" -eq $((batches + 3 * 2 * 28 * 28)) ] || die "$(plan batches) bytes of augmented batches"
run 0 ranks 2 "$train" --model wide.yaml --dry-run
[ "$(grep -c '^memory of a rank' out)" -eq 1 ] || die "each rank prints the plan"
[ "$(plan exchange)" -gt $((3 * weights - 1)) ] || die "no exchange on two ranks"
# 100 samples: the sampler's order, and where they are given out the partition's.
run 0 "${dry[@]}"
[ "$(plan 'order of samples')" -eq 400 ] || die "$(plan 'order of samples') bytes of order"
run 0 ranks 2 "${dry[@]}" --batch-size 10
[ "$(plan 'order of samples')" -eq 800 ] || die "$(plan 'order of samples') bytes of order on two ranks"
# Ranks of a host share its cores: 4 of 8 that hwloc is told of have 2 each.
# The model has convolutions that want scratch memory of each thread, whatever the processor.
unset HWLOC_COMPONENTS # beside it a machine that is made up does not count
HWLOC_SYNTHETIC="core:8 pu:1" run 0 ranks 4 "$train" --model resnet20 --dry-run
cp out shared
run 0 ranks 4 "$train" --model resnet20 --dry-run --threads 2
cut_threads() { grep -v '^threads: ' "$1"; }
[ "$(cut_threads out)" = "$(cut_threads shared)" ] || die "--dry-run plans other threads than the run has"
run 0 ranks 4 "$train" --model resnet20 --dry-run --threads 8
[ "$(cut_threads out)" != "$(cut_threads shared)" ] || die "the plan does not depend on threads"
rm shared
run 0 "$train" --model lenet --dry-run --input-size 40 44 --classes 7
says '1x40x44' out
run 0 "$train" --model lenet --dry-run --input-size 0x44
says '1x28x44' out
fails_well 2 "$train" --data data --model lenet --dry-run --input-size 40 44
# What would never fit is planned in a hundredth of it.
python3 - "$train" <<'END' || die "--dry-run takes the memory that it plans"
import re, resource, subprocess, sys
done = subprocess.run([sys.argv[1], "--model", "vgg16", "--dry-run", "--batch-size", "4096"],
                      check=True, stdout=subprocess.PIPE, text=True)
planned = int(re.search(r"^  total +([0-9]+) ", done.stdout, re.M)[1])
taken = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss * 1024
assert taken < planned / 100, (taken, planned)
END

for program in "$train" "$eval" "$ingest" "$tune"; do
    run 0 "$program" --help
    says "usage: $(basename "$program")" out
    [ ! -s err ] || die "--help says something on standard error"
    awk 'length > 100 { exit 1 }' out || die "a line of --help is too long"
    run 0 "$program" --version
    grep -qE '[0-9]+\.[0-9]+' out || die "--version without a version"
    fails_well 2 "$program" # without arguments: help, but no success
    says "usage: $(basename "$program")" out
    says "no arguments"
done
for command in idx cifar glyphs info verify; do
    run 0 "$ingest" $command --help
    awk 'length > 100 { exit 1 }' out || die "a line of $command --help is too long"
done
# Each has a file: mpirun of Open MPI 5.0.7 writes some of one rank's long output to the other stream.
# shellcheck disable=SC2016 # expanded by the ranks
fails_well 2 ranks 2 bash -c 'exec "$@" >"help.$OMPI_COMM_WORLD_RANK"' each "$train"
[ "$(cat help.[01] | grep -c '^usage: ')" -eq 1 ] || die "each rank prints the help"
# A closed pipe or a full disk at standard output is no success.
if [ -w /dev/full ]; then
    "$train" --model lenet --dry-run --data data >/dev/full 2>err && die "wrote to a full disk"
    grep -q '^bpt-train: ' err || die "no word about standard output"
fi
