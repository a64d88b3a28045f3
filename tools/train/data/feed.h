/** @file tools/train/data/feed.h
 * Batches in the order of a sampler, prepared ahead by a loader.
 *
 * The loader runs ahead of the training, so that the sampler's own state is ahead too; the feed
 * keeps the state that belongs to the batches already trained on.
 *
 * Threads: one. */
#ifndef BPT_TOOLS_FEED_H
#define BPT_TOOLS_FEED_H

#include "outer/data/sampler.h"
#include "storage/loader/loader.h"
#include "tools/train/options/train_options.h"

#include <stdbool.h>

typedef struct bpt_feed bpt_feed;

/** Tells whether samples can be read by now, where that is not so from the start. */
typedef struct bpt_feed_gate {
    /** @param indices shape [n]
     * @param wait until they can be read
     * @param[out] here whether they can
     * @return BPT_OK or any error */
    bpt_status (*look)(void *arg, const uint32_t *indices, uint32_t n, bool wait, bool *here);
    void *arg;
} bpt_feed_gate;

/** @return how the images of @p train are loaded in training: normalised by its own mean and
 * deviation (borrowed), augmented by --augment
 * @param batch samples of a batch of this rank
 * @param as_images bpt_device_takes_images() of what trains */
bpt_loader_options bpt_feed_options(const bpt_train_options *o, const bpt_split *train,
                                    uint32_t batch, bool as_images);

/** @param options depth at least 2
 * @param records bpt_held_out_draw() with @p n_held, borrowed: the sampler draws from those that
 * are left; NULL: from all
 * @param sampler taken over, also on error
 * @param[out] feed caller owns, bpt_feed_free()
 * @return BPT_OK, BPT_ENOMEM, BPT_EIO, BPT_EUSAGE */
bpt_status bpt_feed_create(const bpt_dataset *dataset, const bpt_split *split,
                           const bpt_loader_options *options, const uint32_t *records,
                           uint64_t n_held, bpt_sampler *sampler, bpt_feed **feed);
void bpt_feed_free(bpt_feed *feed);

/** Asks from now on before it reads samples. A batch that cannot be read yet is waited for only
 * where there is no other.
 * @param gate copied; its arg is borrowed while the feed lives */
void bpt_feed_set_gate(bpt_feed *feed, const bpt_feed_gate *gate);

/** bpt_sampler_admit() of the sampler. */
void bpt_feed_admit(bpt_feed *feed, uint32_t rounds);

/** Gives back the batch before and takes the next one.
 * @param[out] batch borrowed until the next call
 * @return BPT_OK, BPT_ECORRUPT (names split and record), BPT_EUSAGE (no samples to hand out), or an
 *         error of the gate */
bpt_status bpt_feed_next(bpt_feed *feed, bpt_batch *batch);

/** @return input of the batch that bpt_feed_next() will give, which stays as it is until the call
 * after that one; NULL: it is not ready yet */
const void *bpt_feed_peek(bpt_feed *feed);

/** @return the state of the sampler after the batches taken so far */
bpt_sampler_state bpt_feed_state(const bpt_feed *feed);

/** @return nanoseconds spent waiting for data so far */
uint64_t bpt_feed_wait_ns(const bpt_feed *feed);

#endif
