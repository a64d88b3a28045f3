#!/usr/bin/env python3
"""Looks at safetensors files with nothing but the standard library.

    weights.py finite FILE              every tensor lies in the file and is finite
    weights.py normal FILE              no number is denormal
    weights.py near FILE FILE TOLERANCE [LAYER...]  |a - b| <= TOLERANCE |a| over all tensors together, or those of layers
"""
import json
import math
import struct
import sys


def read(path):
    with open(path, "rb") as file:
        data = file.read()
    (length,) = struct.unpack_from("<Q", data, 0)
    header = json.loads(data[8 : 8 + length])
    body = data[8 + length :]
    header.pop("__metadata__", None)
    tensors = {}
    end = 0
    for name, entry in sorted(header.items(), key=lambda item: item[1]["data_offsets"]):
        begin, stop = entry["data_offsets"]
        count = math.prod(entry["shape"])
        if entry["dtype"] != "F32" or stop - begin != 4 * count or begin != end:
            sys.exit(f"{path}: {name} is not as its header says: {entry}")
        tensors[name] = struct.unpack_from(f"<{count}f", body, begin)
        end = stop
    if end != len(body) or not tensors:
        sys.exit(f"{path}: {len(body)} bytes of data, the tensors have {end}")
    return tensors


def finite(path):
    for name, values in read(path).items():
        if not all(map(math.isfinite, values)):
            sys.exit(f"{path}: {name} holds a number that is not finite")
        if name.endswith("weight") and not any(values):
            sys.exit(f"{path}: {name} is all zero")


def normal(path):
    for name, values in read(path).items():
        if any(0 < abs(value) < 2.0**-126 for value in values):
            sys.exit(f"{path}: {name} holds a denormal number")


def near(path_a, path_b, tolerance, *layers):
    a, b = read(path_a), read(path_b)
    if layers:
        a, b = ({name: t[name] for name in t if name.rpartition(".")[0] in layers} for t in (a, b))
    if not a or a.keys() != b.keys():
        sys.exit(f"{path_a} and {path_b} hold different tensors")
    pairs = [pair for name in a for pair in zip(a[name], b[name])]
    difference = math.sqrt(sum((x - y) ** 2 for x, y in pairs))
    norm = math.sqrt(sum(x * x for x, _ in pairs))
    print(f"{path_a} and {path_b}: difference {difference / norm:.3e} of the norm")
    if not difference <= float(tolerance) * norm:
        sys.exit(f"more than {tolerance}")


{"finite": finite, "normal": normal, "near": near}[sys.argv[1]](*sys.argv[2:])
