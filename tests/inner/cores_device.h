/** @file tests/inner/cores_device.h
 * A device for tests where there is none: it computes as the processor's cores do, on one worker of
 * its own, before begin() returns; and takes as long as it is told to.
 *
 * Threads: one; the test's own. */
#ifndef TESTS_INNER_CORES_DEVICE_H
#define TESTS_INNER_CORES_DEVICE_H

#include "inner/device.h"

#include <stdbool.h>
#include <stdint.h>

/** Zeros: nothing of it. */
typedef struct cores_device_options {
    uint64_t sample_ns;  /* that a step takes at least, of each sample of its batch */
    bool idles;          /* it computes nothing: vectors stay as they are, results are 0 */
    const bool *refuses; /* while it is set, no run begins (BPT_EBACKEND) */
    unsigned *n_hints;   /* counts runs that begin with a next batch */
} cores_device_options;

/** @return bpt_device_close() */
bpt_device *cores_device_open(cores_device_options options);

#endif
