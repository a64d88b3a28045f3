"""The peer of tests/bench/engine: PyTorch trains one of the same networks on made-up images.

usage: engine_torch.py NETWORK THREADS fp32|bf16

Reads lines "LAYOUT MODE SECONDS" (layout: nchw, nhwc; mode: eager, compile), trains for that long, at least
three steps, and answers each with one line of JSON: images a second of the median step, or an error. What
is asked for the first time is warmed up, and compiled, before. The networks are those of inner/models,
layer by layer; SGD with momentum and weight decay as in bpt-train; bf16 is autocast.
"""
import json
import os
import statistics
import sys
import time

import torch
import torch.nn.functional as F
from torch import nn

class LeNet(nn.Sequential):
    def __init__(self):
        super().__init__(
            nn.Conv2d(1, 20, 5), nn.ReLU(True), nn.MaxPool2d(2),
            nn.Conv2d(20, 50, 5), nn.ReLU(True), nn.MaxPool2d(2),
            nn.Flatten(), nn.Linear(800, 500), nn.ReLU(True), nn.Linear(500, 10))


class Basic(nn.Module):
    """A block of resnet20: its shortcut has no weights."""

    def __init__(self, before, width, stride):
        super().__init__()
        self.conv1 = nn.Conv2d(before, width, 3, stride, 1, bias=False)
        self.bn1 = nn.BatchNorm2d(width)
        self.conv2 = nn.Conv2d(width, width, 3, 1, 1, bias=False)
        self.bn2 = nn.BatchNorm2d(width)
        self.stride, self.grow = stride, width - before

    def forward(self, x):
        y = self.bn2(self.conv2(F.relu(self.bn1(self.conv1(x)), inplace=True)))
        if self.grow:
            x = F.pad(x[:, :, ::self.stride, ::self.stride], (0, 0, 0, 0, 0, self.grow))
        return F.relu(y + x, inplace=True)


class Bottleneck(nn.Module):
    def __init__(self, before, width, stride):
        super().__init__()
        after = 4 * width
        self.body = nn.Sequential(
            nn.Conv2d(before, width, 1, bias=False), nn.BatchNorm2d(width), nn.ReLU(True),
            nn.Conv2d(width, width, 3, stride, 1, bias=False), nn.BatchNorm2d(width), nn.ReLU(True),
            nn.Conv2d(width, after, 1, bias=False), nn.BatchNorm2d(after))
        self.down = None
        if stride != 1 or before != after:
            self.down = nn.Sequential(nn.Conv2d(before, after, 1, stride, bias=False), nn.BatchNorm2d(after))

    def forward(self, x):
        return F.relu(self.body(x) + (self.down(x) if self.down else x), inplace=True)


def resnet20():
    layers, before = [nn.Conv2d(3, 16, 3, 1, 1, bias=False), nn.BatchNorm2d(16), nn.ReLU(True)], 16
    for width, stride in ((16, 1), (32, 2), (64, 2)):
        for i in range(3):
            layers.append(Basic(before, width, stride if i == 0 else 1))
            before = width
    return nn.Sequential(*layers, nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(64, 10))


def resnet50():
    layers = [nn.Conv2d(3, 64, 7, 2, 3, bias=False), nn.BatchNorm2d(64), nn.ReLU(True), nn.MaxPool2d(3, 2, 1)]
    before = 64
    for width, n, stride in ((64, 3, 1), (128, 4, 2), (256, 6, 2), (512, 3, 2)):
        for i in range(n):
            layers.append(Bottleneck(before, width, stride if i == 0 else 1))
            before = 4 * width
    return nn.Sequential(*layers, nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(2048, 1000))


def vgg16():
    layers, before = [], 3
    for width, n in ((64, 2), (128, 2), (256, 3), (512, 3), (512, 3)):
        for _ in range(n):
            layers += [nn.Conv2d(before, width, 3, 1, 1), nn.ReLU(True)]
            before = width
        layers.append(nn.MaxPool2d(2))
    return nn.Sequential(*layers, nn.Flatten(), nn.Linear(512, 4096), nn.ReLU(True), nn.Dropout(),
                         nn.Linear(4096, 4096), nn.ReLU(True), nn.Dropout(), nn.Linear(4096, 10))


def alexnet():
    return nn.Sequential(
        nn.Conv2d(3, 64, 11, 4, 2), nn.ReLU(True), nn.MaxPool2d(3, 2),
        nn.Conv2d(64, 192, 5, 1, 2), nn.ReLU(True), nn.MaxPool2d(3, 2),
        nn.Conv2d(192, 384, 3, 1, 1), nn.ReLU(True), nn.Conv2d(384, 256, 3, 1, 1), nn.ReLU(True),
        nn.Conv2d(256, 256, 3, 1, 1), nn.ReLU(True), nn.MaxPool2d(3, 2),
        nn.Flatten(), nn.Dropout(), nn.Linear(9216, 4096), nn.ReLU(True),
        nn.Dropout(), nn.Linear(4096, 4096), nn.ReLU(True), nn.Linear(4096, 1000))


# builder, channels, size, batch, classes: as in tests/bench/engine_bpt.py
NETWORKS = {
    "lenet": (LeNet, 1, 28, 64, 10),
    "resnet20": (resnet20, 3, 32, 128, 10),
    "vgg16": (vgg16, 3, 32, 64, 10),
    "alexnet": (alexnet, 3, 224, 32, 1000),
    "resnet50": (resnet50, 3, 224, 16, 1000),
}
WARM_UP_STEPS = 5


class Subject:
    """The network in one layout and mode, ready to train."""

    def __init__(self, name, layout, mode, bf16):
        build, channels, size, self.batch, classes = NETWORKS[name]
        memory = torch.channels_last if layout == "nhwc" else torch.contiguous_format
        torch.manual_seed(0)
        model = build().to(memory_format=memory)
        self.x = torch.randn(self.batch, channels, size, size).contiguous(memory_format=memory)
        self.y = torch.randint(0, classes, (self.batch,))
        self.optimizer = torch.optim.SGD(model.parameters(), lr=1e-4, momentum=0.9, weight_decay=5e-4, fused=True)
        self.net = torch.compile(model) if mode == "compile" else model
        self.bf16 = bf16
        for _ in range(WARM_UP_STEPS):
            self.step()

    def step(self):
        self.optimizer.zero_grad(set_to_none=True)
        with torch.autocast("cpu", torch.bfloat16, enabled=self.bf16):
            loss = F.cross_entropy(self.net(self.x), self.y)
        loss.backward()
        self.optimizer.step()

    def images_per_s(self, seconds):
        self.step()  # others have run since the last time
        times, start = [], time.perf_counter()
        while len(times) < 3 or time.perf_counter() - start < seconds:
            before = time.perf_counter()
            self.step()
            times.append(time.perf_counter() - before)
        return self.batch / statistics.median(times)


def main():
    name, threads, precision = sys.argv[1:]
    answers = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)  # whatever else prints
    torch.set_num_threads(int(threads))
    subjects = {}
    for line in sys.stdin:
        layout, mode, seconds = line.split()
        try:
            if (layout, mode) not in subjects:
                subjects[layout, mode] = Subject(name, layout, mode, precision == "bf16")
            answer = {"images_per_s": subjects[layout, mode].images_per_s(float(seconds)), "torch": torch.__version__}
        except Exception as error:  # a mode that does not work here is no peer
            text = str(error).strip() or "no text"
            answer = {"error": f"{type(error).__name__}: {text.splitlines()[0]}"[:200]}
        print(json.dumps(answer), file=answers, flush=True)


if __name__ == "__main__":
    main()
