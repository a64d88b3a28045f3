"""What PyTorch makes of the images and the recipe of tests/bench/resnet20: a check of accuracy, not of speed.

  VENV/bin/pip install torch numpy pillow
  VENV/bin/python tests/bench/resnet20_torch.py FOLDER EPOCHS WEIGHT_DECAY

FOLDER is the --out of tests/bench/resnet20 --images cifar10, which leaves its images there. Prints the accuracy after
each epoch. The model is that of tests/bench/engine.
"""
import math
import os
import sys

import numpy
import torch
from PIL import Image
from torch.nn import functional

sys.dont_write_bytecode = True  # of the module beside this file
import engine_torch

BATCH, RATE, PAD, SIZE = 128, 0.1, 4, 32


def load(folder, split):
    """@return pixels [N, 3, 32, 32] and labels [N] of a folder of classes"""
    images, labels = [], []
    for label, name in enumerate(sorted(os.listdir(os.path.join(folder, split)))):
        for file in sorted(os.listdir(os.path.join(folder, split, name))):
            with Image.open(os.path.join(folder, split, name, file)) as image:
                images.append(numpy.asarray(image.convert("RGB")).transpose(2, 0, 1))
            labels.append(label)
    return torch.from_numpy(numpy.stack(images)), torch.tensor(labels)


def normaliser(pixels):
    mean = pixels.float().div(255).mean((0, 2, 3)).view(1, 3, 1, 1)
    deviation = pixels.float().div(255).std((0, 2, 3)).view(1, 3, 1, 1)
    return lambda batch: ((batch.float() / 255 - mean) / deviation).contiguous(memory_format=torch.channels_last)


def augment(batch):
    """A crop at a random place of the padded image, flipped or not."""
    n, padded = len(batch), functional.pad(batch, (PAD,) * 4)
    tops, lefts = torch.randint(0, 2 * PAD + 1, (n,)), torch.randint(0, 2 * PAD + 1, (n,))
    flips = torch.rand(n) < 0.5
    crops = [image[:, y:y + SIZE, x:x + SIZE] for image, y, x in zip(padded, tops.tolist(), lefts.tolist())]
    return torch.stack([crop.flip(2) if flip else crop for crop, flip in zip(crops, flips.tolist())])


def rate_at(step, warm_up, total):
    """As bpt's: a cosine over all steps, times the part of the warm-up that the step brings to its end."""
    return RATE * min(1, (step + 1) / warm_up) * 0.5 * (1 + math.cos(math.pi * step / total))


def accuracy(net, normalise, pixels, labels):
    net.eval()
    with torch.no_grad():
        n = sum((net(normalise(pixels[i:i + 500])).argmax(1) == labels[i:i + 500]).sum().item()
                for i in range(0, len(labels), 500))
    net.train()
    return n / len(labels)


def make_net():
    net = engine_torch.resnet20().to(memory_format=torch.channels_last)
    for module in net.modules():
        if isinstance(module, torch.nn.Conv2d):
            torch.nn.init.kaiming_normal_(module.weight, mode="fan_in", nonlinearity="relu")
    return net


def train_epoch(net, optimizer, normalise, images, first_step, total):
    pixels, labels = images
    order, n_steps = torch.randperm(len(labels)), len(labels) // BATCH
    for i in range(n_steps):
        for group in optimizer.param_groups:
            group["lr"] = rate_at(first_step + i, n_steps, total)
        chosen = order[i * BATCH:(i + 1) * BATCH]
        loss = functional.cross_entropy(net(normalise(augment(pixels[chosen]))), labels[chosen])
        optimizer.zero_grad(set_to_none=True)
        loss.backward()
        optimizer.step()


def main():
    folder, epochs, decay = sys.argv[1], int(sys.argv[2]), float(sys.argv[3])
    torch.manual_seed(1)
    train, test = load(folder, "train"), load(folder, "test")
    normalise, net = normaliser(train[0]), make_net()
    filters = [p for p in net.parameters() if p.dim() > 1]
    others = [p for p in net.parameters() if p.dim() <= 1]  # of batch norms, and biases: bpt lets them not decay
    optimizer = torch.optim.SGD([{"params": filters, "weight_decay": decay}, {"params": others}], lr=RATE, momentum=0.9,
                                nesterov=True)
    n_steps = len(train[1]) // BATCH
    for epoch in range(epochs):
        train_epoch(net, optimizer, normalise, train, epoch * n_steps, epochs * n_steps)
        print(f"epoch {epoch + 1}: test accuracy {accuracy(net, normalise, *test):.4f}", flush=True)


main()
