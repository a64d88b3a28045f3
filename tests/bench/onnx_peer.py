"""An ONNX file of bpt-eval in ONNX Runtime, on one thread. Run by the bench "onnx_check" with the interpreter of its
virtual environment; prints a JSON object.

  onnx_peer.py ONNX PREDICTIONS FOLDER      the images that "bpt-ingest export" has made
"""
import json
import os
import sys

import numpy
import onnx
import onnxruntime
from PIL import Image

BATCH = 50
WORTH_COMPARING = 1e-3  # a probability, by what it is off over itself


def load(path):
    pixels = numpy.asarray(Image.open(path), dtype=numpy.float32)
    return pixels[None] if pixels.ndim == 2 else pixels.transpose(2, 0, 1)


def open_session(path):
    model = onnx.load(path)
    onnx.checker.check_model(model, full_check=True)
    onnx.checker.check_model(onnx.shape_inference.infer_shapes(model, strict_mode=True, data_prop=True))
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = 1
    metadata = {entry.key: entry.value for entry in model.metadata_props}
    return onnxruntime.InferenceSession(path, options, providers=["CPUExecutionProvider"]), metadata


def find_files(folder):
    """@return path by number of the record"""
    return {int(os.path.splitext(name)[0]): os.path.join(root, name)
            for root, _, names in os.walk(folder) for name in names if name.endswith(".png")}


def compare(line, p, classes, result):
    result["others"] += line["predicted"] != classes[int(p.argmax())]
    result["correct"] += line["predicted"] == line["label"]
    for name, ours in ((line["predicted"], line["probability"]), (line["label"], line["label_probability"])):
        off = abs(float(p[classes.index(name)]) - ours)
        result["largest"] = max(result["largest"], off)
        if ours >= WORTH_COMPARING:
            result["relative"] = max(result["relative"], off / ours)


def main():
    session, metadata = open_session(sys.argv[1])
    with open(sys.argv[2], encoding="utf-8") as file:
        lines = [json.loads(line) for line in file]
    files, classes = find_files(sys.argv[3]), json.loads(metadata["classes"])
    result = {"images": len(lines), "others": 0, "correct": 0, "largest": 0.0, "relative": 0.0,
              "input": "x".join(str(n) for n in session.get_inputs()[0].shape[1:]),
              "versions": f"onnx {onnx.__version__}, onnxruntime {onnxruntime.__version__}"}
    for first in range(0, len(lines), BATCH):
        part = lines[first:first + BATCH]
        pixels = numpy.stack([load(files[line["sample"]]) for line in part])
        (probabilities,) = session.run(["probabilities"], {"input": pixels})
        for line, p in zip(part, probabilities, strict=True):
            compare(line, p, classes, result)
    result["accuracy"] = result.pop("correct") / len(lines)
    print(json.dumps(result))


main()
