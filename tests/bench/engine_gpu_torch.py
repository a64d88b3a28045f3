"""The peer of tests/bench/engine_gpu: PyTorch trains one of the same networks on made-up images, on a GPU.

usage: engine_gpu_torch.py NETWORK SIZE BATCH CLASSES bf16|fp32 cuda|cpu

Reads lines "MODE STEPS SECONDS" (mode: eager, compile), trains for so many steps, or if these are 0 for that long
and at least five, and answers each with one line of JSON: images a second of the median step, or an error. A mode
that is asked for the first time is built, compiled and warmed up before. Images lie on the device, channels last.
"""
import json
import os
import statistics
import sys
import time

import torch
import torch.nn.functional as F
from torch import nn

sys.dont_write_bytecode = True
import engine_torch as models

WARM_UP_STEPS = 5
LEAST_STEPS = 5


def vgg16(size, classes):
    """That of engine_torch.py behind another size of images and for another number of classes."""
    layers = list(models.vgg16())
    first = next(i for i, layer in enumerate(layers) if isinstance(layer, nn.Linear))
    layers[first] = nn.Linear(512 * (size // 32) ** 2, 4096)
    layers[-1] = nn.Linear(4096, classes)
    return nn.Sequential(*layers)


def build(name, size, classes):
    """@return the network and its channels"""
    if name == "vgg16":
        return vgg16(size, classes), 3
    make, channels, own_size, _, own_classes = models.NETWORKS[name]
    if (size, classes) != (own_size, own_classes):
        raise ValueError(f"{name} is for {own_size}x{own_size} and {own_classes} classes")
    return make(), channels


class Subject:
    """The network in one mode, ready to train."""

    def __init__(self, o, mode):
        self.batch, self.device, self.bf16 = o.batch, o.device, o.bf16
        torch.manual_seed(0)
        model, channels = build(o.name, o.size, o.classes)
        model = model.to(self.device, memory_format=torch.channels_last)
        x = torch.randn(self.batch, channels, o.size, o.size, device=self.device)
        self.x = x.contiguous(memory_format=torch.channels_last)
        self.y = torch.randint(0, o.classes, (self.batch,), device=self.device)
        self.optimizer = torch.optim.SGD(model.parameters(), lr=1e-4, momentum=0.9, weight_decay=5e-4, fused=True)
        self.net = torch.compile(model, mode="max-autotune") if mode == "compile" else model
        for _ in range(WARM_UP_STEPS):
            self.step()
        self.finish()

    def step(self):
        torch.compiler.cudagraph_mark_step_begin()  # what the step before gave out is no longer needed
        self.optimizer.zero_grad(set_to_none=True)
        with torch.autocast(self.device.split(":")[0], torch.bfloat16, enabled=self.bf16):
            loss = F.cross_entropy(self.net(self.x), self.y)
        loss.backward()
        self.optimizer.step()

    def finish(self):
        if self.device != "cpu":
            torch.cuda.synchronize()

    def images_per_s(self, steps, seconds):
        """Steps follow each other as in a training, which does not look at the loss of each: a time is that of a group
        of them, about a twentieth of the whole, and what counts is the median group."""
        self.step()  # others have run since the last time
        self.finish()
        before = time.perf_counter()
        self.step()
        self.finish()
        if not steps:
            steps = max(LEAST_STEPS, round(seconds / (time.perf_counter() - before)))
        group, times = max(1, steps // 20), []
        for _ in range(max(1, steps // group)):
            before = time.perf_counter()
            for _ in range(group):
                self.step()
            self.finish()
            times.append((time.perf_counter() - before) / group)
        return self.batch / statistics.median(times)


class Options:
    def __init__(self, words):
        self.name, size, batch, classes, precision, self.device = words
        self.size, self.batch, self.classes = int(size), int(batch), int(classes)
        self.bf16 = precision == "bf16"


def peak_tflops(o):
    """Of a large product in bfloat16 on this card, as it comes from PyTorch; None on the cores."""
    if o.device == "cpu":
        return None
    n = 8192
    a, b = (torch.randn(n, n, device=o.device, dtype=torch.bfloat16) for _ in range(2))
    times = []
    for _ in range(13):
        torch.cuda.synchronize()
        before = time.perf_counter()
        a @ b
        torch.cuda.synchronize()
        times.append(time.perf_counter() - before)
    return 2 * n**3 / statistics.median(times[3:]) * 1e-12


def about(o):
    cuda = o.device != "cpu"
    return {"torch_version": torch.__version__, "cuda": torch.version.cuda if cuda else "-",
            "cudnn": torch.backends.cudnn.version() if cuda else "-",
            "card": torch.cuda.get_device_name() if cuda else "-"}


def main():
    answers = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)  # whatever else prints
    o = Options(sys.argv[1:])
    torch.backends.cudnn.benchmark = True
    torch.set_float32_matmul_precision("high")
    subjects, peak = {}, peak_tflops(o)
    for line in sys.stdin:
        mode, steps, seconds = line.split()
        try:
            if mode not in subjects:
                subjects[mode] = Subject(o, mode)
            answer = {"images_per_s": subjects[mode].images_per_s(int(steps), float(seconds)),
                      "about": {**about(o), "peak_tflops": peak}}
        except Exception as error:  # a mode that does not work here is no peer
            text = str(error).strip() or "no text"
            answer = {"error": f"{type(error).__name__}: {text.splitlines()[0]}"[:200]}
        print(json.dumps(answer), file=answers, flush=True)


if __name__ == "__main__":
    main()
