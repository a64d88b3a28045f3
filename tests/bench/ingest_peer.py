"""A folder of images, a folder for each class, into LMDB as people do it in Python: Pillow and the lmdb module, one
process a core. Run by the bench "data" with the interpreter of its virtual environment; prints the seconds it took.

  ingest_peer.py FOLDER OUT PROCESSES SHORT SIDE      SHORT 0 keeps the size; else the middle SIDE by SIDE
"""
import multiprocessing
import os
import struct
import sys
import time

import lmdb
from PIL import Image


def load(job):
    path, label, short, side = job
    image = Image.open(path).convert("RGB")
    if short:
        w, h = image.size
        scale = short / min(w, h)
        image = image.resize((max(side, round(w * scale)), max(side, round(h * scale))), Image.Resampling.BOX)
        x, y = (image.size[0] - side) // 2, (image.size[1] - side) // 2
        image = image.crop((x, y, x + side, y + side))
    return struct.pack("<HII", label, *image.size) + image.tobytes()


def main():
    folder, out, processes, short, side = sys.argv[1], sys.argv[2], *map(int, sys.argv[3:6])
    start = time.monotonic()
    jobs = [(os.path.join(folder, name, file), label, short, side)
            for label, name in enumerate(sorted(os.listdir(folder)))
            for file in sorted(os.listdir(os.path.join(folder, name)))]
    env = lmdb.open(out, map_size=1 << 36, subdir=True)
    with multiprocessing.Pool(processes) as pool, env.begin(write=True) as txn:
        for i, value in enumerate(pool.imap(load, jobs, chunksize=16)):
            txn.put(b"%08d" % i, value, append=True)
    env.sync(True)
    env.close()
    print(time.monotonic() - start)


main()
