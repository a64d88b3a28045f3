/** @file inner/mixed/mixed_trial.h
 * Finds by measurement how many samples of a batch the cores are to take. Private to inner/mixed/.
 *
 * Measured are steps of the device alone, of the cores alone, and of both with the share that the
 * earliest finish time (mixed_split.h) tells of these; the fastest is taken, and the device alone
 * unless another is faster than it by more than what times vary.
 *
 * Threads: one, that which owns the device and the pool. */
#ifndef BPT_INNER_MIXED_MIXED_TRIAL_H
#define BPT_INNER_MIXED_MIXED_TRIAL_H

#include "inner/mixed/mixed_network.h"

/** @return BPT_OK, BPT_ENOMEM, BPT_EUSAGE (the device has less memory than the whole batch takes),
 * BPT_EBACKEND */
bpt_status bpt__mixed_find_share(bpt_mixed_device *device, const bpt_device_wish *wish,
                                 int64_t *n_cores);

#endif
