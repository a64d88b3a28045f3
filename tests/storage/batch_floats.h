/** @file tests/storage/batch_floats.h
 * Batches of bytes as a network sees them, to be compared with batches of floats.
 *
 * Threads: the test's thread. */
#ifndef BPT_TESTS_STORAGE_BATCH_FLOATS_H
#define BPT_TESTS_STORAGE_BATCH_FLOATS_H

#include "storage/loader/loader.h"

/** Image number @p i of a batch of a loader of either kind, which may be one that is not there.
 * @param[out] out shape [C,H,W] */
void batch_floats(const bpt_batch *batch, uint32_t i, uint32_t C, uint32_t H, uint32_t W,
                  float *out);

#endif
