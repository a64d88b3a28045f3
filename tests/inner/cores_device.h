/** @file tests/inner/cores_device.h
 * A device for tests where there is none: it computes as the processor's cores do, on one worker of
 * its own, and takes as long as it is told to.
 *
 * Threads: one; the test's own. */
#ifndef TESTS_INNER_CORES_DEVICE_H
#define TESTS_INNER_CORES_DEVICE_H

#include "inner/device.h"

#include <stdint.h>

/** @param step_ns that a step takes at least @return bpt_device_close() */
bpt_device *cores_device_open(uint64_t step_ns);

#endif
