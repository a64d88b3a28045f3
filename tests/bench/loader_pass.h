/** @file tests/bench/loader_pass.h
 * A pass over a split through a loader that has made one before.
 *
 * Threads: the bench's. */
#ifndef BPT_TESTS_BENCH_LOADER_PASS_H
#define BPT_TESTS_BENCH_LOADER_PASS_H

#include "storage/loader/loader.h"

/** Takes all images of a split in an order, batch by batch, and drops them; twice.
 * @param order   shape [n]
 * @param options .mean, .std, .augment and .seed are set here
 * @param list    augmentations, as bpt_augment_parse() takes them
 * @param[out] rate images a second, of the second time
 * @return as bpt_augment_parse(), bpt_loader_create(), bpt_loader_next() */
bpt_status loader_pass(const bpt_dataset *dataset, const bpt_split *split, const uint32_t *order,
                       uint32_t n, const char *list, bpt_loader_options options, double *rate);

#endif
