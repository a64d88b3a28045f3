/** @file tools/train/exchange/gradient_buckets.h
 * Where the vector of a model's weights is cut into buckets, whose gradients are summed over the
 * ranks as soon as all of a bucket's are there.
 *
 * Threads: any. */
#ifndef BPT_TOOLS_GRADIENT_BUCKETS_H
#define BPT_TOOLS_GRADIENT_BUCKETS_H

#include "inner/weights/segments.h"

/** A bucket has at least so many floats, but for that of the first layers, which has what is left:
 * smaller ones cost more messages, larger ones leave later. */
enum { BPT_BUCKET_FLOATS = 1 << 19 };

/** Cuts from the end, where a backward pass begins: whole segments, as few to a bucket as it takes.
 * @param segments at least one learns
 * @param first    the first that learns
 * @param[out] begin of each bucket, in floats of what learns, ascending from 0; the last is the
 *                   number of all; shape [segments + 1], of which [buckets + 1] is filled
 * @return number of buckets, from 1 to the number of segments that learn */
uint32_t bpt_gradient_buckets_cut(const bpt_segments *segments, size_t first, size_t *begin);

/** @return no model of so many floats has more buckets */
uint32_t bpt_gradient_buckets_most(size_t n_elements);

#endif
