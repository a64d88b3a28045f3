"""Batches out of PyTorch's DataLoader and torchvision, run by the bench "data" with the interpreter of its virtual
environment. Prints the images a second of each of PASSES, after one that does not count.

  loader_peer.py raw SHARD WORKERS PASSES        SHARD: a .npz with "pixels" [N,32,32,3] and "labels": crop 4, flip
  loader_peer.py folder FOLDER WORKERS PASSES    JPEG files: resized crops of 224x224, flip
"""
import sys
import time

import numpy
import torch
from PIL import Image
from torchvision import datasets, transforms

NORMALISE = [transforms.ToTensor(), transforms.Normalize((0.49, 0.48, 0.45), (0.25, 0.24, 0.26))]


class Raw(torch.utils.data.Dataset):
    """As torchvision's CIFAR10: arrays in memory, an image made of each."""

    def __init__(self, path):
        with numpy.load(path) as shard:
            self.pixels, self.labels = shard["pixels"], shard["labels"]
        self.change = transforms.Compose([transforms.RandomCrop(32, 4), transforms.RandomHorizontalFlip(), *NORMALISE])

    def __len__(self):
        return len(self.labels)

    def __getitem__(self, i):
        return self.change(Image.fromarray(self.pixels[i])), int(self.labels[i])


def main():
    kind, path, workers, passes = sys.argv[1], sys.argv[2], int(sys.argv[3]), int(sys.argv[4])
    torch.set_num_threads(1)
    if kind == "raw":
        images, batch = Raw(path), 128
    else:
        crop = transforms.RandomResizedCrop(224, (0.08, 1), (0.75, 4 / 3))
        images = datasets.ImageFolder(path, transforms.Compose([crop, transforms.RandomHorizontalFlip(), *NORMALISE]))
        batch = 32
    loader = torch.utils.data.DataLoader(images, batch, shuffle=True, num_workers=workers, persistent_workers=True)
    for turn in range(passes + 1):
        start = time.monotonic()
        n = sum(len(labels) for _, labels in loader)
        if turn:
            print(n / (time.monotonic() - start), flush=True)


main()
