/** @file tools/train/bench/train_bench.h
 * bpt-train --bench: the speed of training steps, on batches of --data or on a synthetic one, and
 * what limits them.
 *
 * Threads: one. */
#ifndef BPT_TOOLS_TRAIN_BENCH_H
#define BPT_TOOLS_TRAIN_BENCH_H

#include "tools/train/options/train_options.h"

/** Runs options->bench steps after a few to warm up. Prints JSON, one object a line, on stdout (the
 * last one is the summary), and the times of layers and what limits the steps on stderr.
 * @return BPT_OK or any error of the parts */
bpt_status bpt_train_bench(const bpt_train_options *options);

#endif
