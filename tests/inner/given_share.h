/** @file tests/inner/given_share.h
 * A device that shares a batch with the cores, told how to, where it would measure.
 *
 * Threads: one; the test's own. Ends the running test where something fails. */
#ifndef TESTS_INNER_GIVEN_SHARE_H
#define TESTS_INNER_GIVEN_SHARE_H

#include "inner/device.h"
#include "tests/inner/net_fixture.h"

/** What a share is of. */
typedef struct given_share {
    int64_t batch, n_cores; /* samples, and those that the cores have */
    bpt_value_type type;
    int n_workers;
} given_share;

/** Puts a share into what a device that has none would write, and has the device read it.
 * @param path a file that is written */
void give_share(const net_fixture *f, bpt_device *device, const given_share *share,
                const char *path);

#endif
