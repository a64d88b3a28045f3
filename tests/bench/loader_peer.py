"""Batches out of PyTorch's DataLoader and torchvision, or of webdataset, run by the bench "data" with the interpreter of
its virtual environment. Prints the images a second of each of PASSES, after one that does not count.

  loader_peer.py raw SHARD WORKERS PASSES        SHARD: a .npz with "pixels" [N,32,32,3] and "labels": crop 4, flip
  loader_peer.py folder FOLDER WORKERS PASSES    JPEG files: resized crops of 224x224, flip
  loader_peer.py shards FOLDER WORKERS PASSES    likewise, of pairs .jpg and .cls in tar files, at least one to a worker
"""
import glob
import os
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


def photograph():
    crop = transforms.RandomResizedCrop(224, (0.08, 1), (0.75, 4 / 3))
    return transforms.Compose([crop, transforms.RandomHorizontalFlip(), *NORMALISE])


def shards(folder, workers):
    """As the documentation of webdataset 1.0 has it."""
    import webdataset

    files = sorted(glob.glob(os.path.join(folder, "*.tar")))
    images = webdataset.WebDataset(files, shardshuffle=len(files)).shuffle(1000).decode("pil").to_tuple("jpg", "cls")
    images = images.map_tuple(photograph(), int).batched(32)
    return webdataset.WebLoader(images, batch_size=None, num_workers=workers, persistent_workers=True)


def batches(kind, path, workers):
    if kind == "shards":
        return shards(path, workers)
    images, batch = (Raw(path), 128) if kind == "raw" else (datasets.ImageFolder(path, photograph()), 32)
    return torch.utils.data.DataLoader(images, batch, shuffle=True, num_workers=workers, persistent_workers=True)


def main():
    kind, path, workers, passes = sys.argv[1], sys.argv[2], int(sys.argv[3]), int(sys.argv[4])
    torch.set_num_threads(1)
    loader = batches(kind, path, workers)
    for turn in range(passes + 1):
        start = time.monotonic()
        n = sum(len(labels) for _, labels in loader)
        if turn:
            print(n / (time.monotonic() - start), flush=True)


main()
