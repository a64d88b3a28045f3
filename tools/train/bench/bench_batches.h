/** @file tools/train/bench/bench_batches.h
 * What a bench trains on: batches of a dataset, read as a training on one rank reads them, or one
 * made-up batch again and again.
 *
 * Threads: one. */
#ifndef BPT_TOOLS_BENCH_BATCHES_H
#define BPT_TOOLS_BENCH_BATCHES_H

#include "storage/loader/loader.h"
#include "tools/synthetic.h"
#include "tools/train/data/feed.h"

/** All zero before they are opened. */
typedef struct bpt_bench_batches {
    bpt_dataset *dataset;   /* NULL without --data, and so are the next two */
    const bpt_split *split; /* --train-split */
    bpt_feed *feed;
    bpt_synthetic made; /* without --data */
    uint32_t batch_size;
} bpt_bench_batches;

/** Opens the dataset, if there is one, and finds its split: what a plan of memory asks for. Nothing
 * is read yet.
 * @param b       to be closed in any case
 * @param options borrowed while the batches are open
 * @return BPT_OK, as bpt_shaped_model_open_data(), BPT_EUSAGE (a batch is larger than the split, or
 *         --augment does not suit the images) */
bpt_status bpt_bench_batches_open(bpt_bench_batches *b, const bpt_train_options *options);

/** Starts to load, or makes the batch up. Once, after bpt_bench_batches_open().
 * @param options the same
 * @param model   of what trains on them
 * @param as_images   as of bpt_feed_options()
 * @return BPT_OK, BPT_ENOMEM, as bpt_feed_create() */
bpt_status bpt_bench_batches_start(bpt_bench_batches *b, const bpt_train_options *options,
                                   const bpt_model *model, bool as_images);

/** @param[out] batch borrowed until the next call @return BPT_OK, as bpt_feed_next() */
bpt_status bpt_bench_batches_next(bpt_bench_batches *b, bpt_batch *batch);

/** @return input of the batch that comes next, as bpt_feed_peek() */
const void *bpt_bench_batches_peek(const bpt_bench_batches *b);

/** @return nanoseconds spent waiting for batches so far; 0 without --data */
uint64_t bpt_bench_batches_wait_ns(const bpt_bench_batches *b);

/** Ends the loading and leaves all zero; also of what was never opened. */
void bpt_bench_batches_close(bpt_bench_batches *b);

#endif
