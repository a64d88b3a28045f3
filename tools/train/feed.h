/** @file tools/train/feed.h
 * Batches in the order of a sampler, prepared ahead by a loader.
 *
 * The loader runs ahead of the training, so that the sampler's own state is ahead too; the feed
 * keeps the state that belongs to the batches already trained on.
 *
 * Threads: one. */
#ifndef BPT_TOOLS_FEED_H
#define BPT_TOOLS_FEED_H

#include "outer/sampler.h"
#include "storage/loader.h"

typedef struct bpt_feed bpt_feed;

/** @param sampler taken over, also on error
 * @param depth   batches ahead, at least 2
 * @param[out] feed caller owns, bpt_feed_free()
 * @return BPT_OK, BPT_ENOMEM, BPT_EIO, BPT_EUSAGE */
bpt_status bpt_feed_create(const bpt_dataset *dataset, const bpt_split *split, uint32_t batch,
                           uint32_t n_threads, uint32_t depth, bpt_sampler *sampler,
                           bpt_feed **feed);
void bpt_feed_free(bpt_feed *feed);

/** Gives back the batch before and takes the next one.
 * @param[out] batch borrowed until the next call
 * @return BPT_OK, BPT_ECORRUPT (names split and record), BPT_EUSAGE (no samples to hand out) */
bpt_status bpt_feed_next(bpt_feed *feed, bpt_batch *batch);

/** @return the state of the sampler after the batches taken so far */
bpt_sampler_state bpt_feed_state(const bpt_feed *feed);

/** @return nanoseconds spent waiting for data so far */
uint64_t bpt_feed_wait_ns(const bpt_feed *feed);

#endif
