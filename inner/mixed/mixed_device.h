/** @file inner/mixed/mixed_device.h
 * A device and the processor's cores as one: of each batch the device takes the first samples, the
 * cores of the network's pool the others, at the same time; the device sums the gradients and
 * updates the weights.
 *
 * How many samples the cores take is measured when a network is created (mixed_trial.h), and kept
 * with the device's other choices: none where they would only cost time or have no instructions
 * for bfloat16, all where the device would. Batch normalisation takes its statistics over the
 * samples of one side, as it does over those of one rank; running statistics are weighed by
 * samples. The device must be able to be one of two (add_gradients and so on in bpt_device_kind).
 *
 * Threads: one, that which owns the device and the pool. */
#ifndef BPT_INNER_MIXED_MIXED_DEVICE_H
#define BPT_INNER_MIXED_MIXED_DEVICE_H

#include "inner/device.h"

/** @param fast of another kind; the mixed one owns it from then on
 * @param[out] device caller owns, bpt_device_close()
 * @return BPT_OK, BPT_ENOMEM (@p fast is still the caller's) */
bpt_status bpt_mixed_device_open(bpt_device *fast, bpt_device **device);

#endif
