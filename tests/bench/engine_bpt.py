"""bpt as tests/bench/engine asks it: bpt-train --bench, and what a step spends its time on."""
import collections
import json
import os
import re
import subprocess
import tempfile

# channels are the models' own; input size, batch, classes: as in tests/bench/engine_torch.py
NETWORKS = {
    "lenet": (28, 64, 10),
    "resnet20": (32, 128, 10),
    "vgg16": (32, 64, 10),
    "alexnet": (224, 32, 1000),
    "resnet50": (224, 16, 1000),
}

ROW = re.compile(r"^\S+ +(.*?) +\d+ +([0-9.]+) ms +[0-9.]+ %$", re.M)  # of the table of layers: kind, ms
VERBOSE = {"ONEDNN_VERBOSE": "1"}


def bench(build, network, threads, precision, steps, environment=None):
    """@return its standard output and error"""
    size, batch, classes = NETWORKS[network]
    command = [os.path.join(build, "tools", "bpt-train"), "--model", network, "--bench", str(steps),
               "--batch-size", str(batch), "--threads", str(threads), "--input-size", f"{size}x{size}",
               "--classes", str(classes), "--device", "cpu", "--precision", precision]
    with tempfile.TemporaryFile("w+") as out:  # a pipe's reader would want processor time
        done = subprocess.run(command, stdout=out, stderr=subprocess.PIPE, text=True,
                              env={**os.environ, **(environment or {})})
        out.seek(0)
        if done.returncode != 0:
            raise SystemExit(f"engine: {' '.join(command)} failed:\n{done.stderr.strip()}")
        return out.read(), done.stderr


def images_per_s(build, network, threads, precision, steps):
    """Of the median step."""
    return json.loads(bench(build, network, threads, precision, steps)[0].splitlines()[-1])["images_per_s"]


def steps_for(build, network, threads, precision, seconds):
    """Steps that take about so long, at least three."""
    return max(3, round(seconds * images_per_s(build, network, threads, precision, 3) / NETWORKS[network][1]))


def onednn_version(build):
    found = re.search(r"oneDNN v[0-9.]+", bench(build, "lenet", 1, "fp32", 1, VERBOSE)[0])
    return found[0] if found else "oneDNN of unknown version"


def refuses_bf16(build):
    """What it says where it does, else nothing."""
    command = [os.path.join(build, "tools", "bpt-train"), "--model", "lenet", "--bench", "1", "--device", "cpu",
               "--precision", "bf16"]
    done = subprocess.run(command, capture_output=True, text=True)
    return done.stderr.strip().splitlines()[0] if done.returncode == 2 else ""


def primitives(lines):
    """Milliseconds that oneDNN says its primitives took, by kind: fields are named up to 2.x and from 3.x on alike
    from "exec" on, the last is the time."""
    ms = collections.Counter()
    for line in lines:
        fields = line.split(",")
        if fields[0] == "onednn_verbose" and "exec" in fields:
            ms[fields[fields.index("exec") + 2]] += float(fields[-1])
    return ms


def split(build, network, threads, precision):
    """What the last of two steps spends its time on: shares of what its threads have, and the step's milliseconds.

    oneDNN itself tells what its primitives take (ONEDNN_VERBOSE=1). Printing that takes some microseconds each,
    which counts as bpt's own."""
    out, err = bench(build, network, threads, precision, 2, VERBOSE)
    lines = out.splitlines()
    first, last = [i for i, line in enumerate(lines) if line.startswith('{"step"')]
    onednn = primitives(lines[first:last])
    if not onednn:
        raise SystemExit("engine: this oneDNN does not tell the times of its primitives")
    kinds = collections.Counter()
    for kind, ms in ROW.findall(err):
        kinds[kind] += float(ms)
    wall = json.loads(lines[last])["ms"]  # of the step that the table and the lines are of: others may take longer
    total, busy, inside = threads * wall, sum(kinds.values()), sum(onednn.values())
    named = {kind: onednn[kind] / total for kind in ("convolution", "matmul")}
    return {"step_ms": wall, "primitives_ms": inside / threads,
            "shares": {**named, "other": inside / total - sum(named.values()), "own": (busy - inside) / total,
                       "idle": 1 - busy / total},
            "kinds": {kind: ms / total for kind, ms in kinds.most_common()}}


def conv_scaling(build, threads):
    """How many times as fast oneDNN's convolution is on so many threads."""
    command = [os.path.join(build, "tests", "bench", "bench_conv_scaling"), str(threads), "5"]
    done = subprocess.run(command, check=True, capture_output=True, text=True)
    return json.loads(done.stdout)["scaling"]["median"]
