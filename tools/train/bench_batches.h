/** @file tools/train/bench_batches.h
 * What a bench trains on: batches of a dataset, read as a training on one rank reads them, or one
 * made-up batch again and again.
 *
 * Threads: one. */
#ifndef BPT_TOOLS_BENCH_BATCHES_H
#define BPT_TOOLS_BENCH_BATCHES_H

#include "storage/loader.h"
#include "tools/synthetic.h"
#include "tools/train/feed.h"

/** All zero before it is opened. */
typedef struct bpt_bench_batches {
    bpt_dataset *dataset;   /* NULL without --data, and so are the next two */
    const bpt_split *split; /* --train-split */
    bpt_feed *feed;
    bpt_synthetic made; /* without --data */
    uint32_t batch_size;
} bpt_bench_batches;

/** Opens the dataset, if there is one, and looks for its split: what a plan of memory asks for.
 * @param options borrowed while the batches are open
 * @return BPT_OK, as bpt_dataset_open() and bpt_dataset_find(), BPT_EDATA (the split is empty) */
bpt_status bpt_bench_batches_find(bpt_bench_batches *b, const bpt_train_options *options);

/** Starts to load, or makes the batch up. @param model of what trains on it
 * @return BPT_OK, BPT_ENOMEM, BPT_EUSAGE (no such augmentation of such images), BPT_EIO */
bpt_status bpt_bench_batches_open(bpt_bench_batches *b, const bpt_train_options *options,
                                  const bpt_model *model);

/** @param[out] batch until the next call @return BPT_OK or an error of the loader */
bpt_status bpt_bench_batches_next(bpt_bench_batches *b, bpt_batch *batch);

void bpt_bench_batches_close(bpt_bench_batches *b);

#endif
