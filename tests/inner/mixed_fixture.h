/** @file tests/inner/mixed_fixture.h
 * Networks that a device of tests and the cores have in common, with shares that are given.
 *
 * Every function ends the running test where something fails.
 *
 * Threads: one; the test's own. */
#ifndef TESTS_INNER_MIXED_FIXTURE_H
#define TESTS_INNER_MIXED_FIXTURE_H

#include "tests/inner/cores_device.h"
#include "tests/inner/net_fixture.h"

enum { MIXED_BATCH = 9, MIXED_WORKERS = 2 };

/** Every sample by itself: a step does not depend on who has which. */
extern const char mixed_plain[];
extern const bpt_learning mixed_learning;

bpt_draw mixed_draw(uint64_t step);

/** @return a network of MIXED_BATCH samples on MIXED_WORKERS cores, with mixed_learning;
 * net_close()
 */
net_fixture mixed_net(const char *text, uint64_t seed);

/** @return a mixed device that has no share yet; bpt_device_close() */
bpt_device *mixed_open(void);

/** The same with a share for networks like the fixture's. @param forward_only 0 or 1 */
bpt_device *mixed_open_sharing(const net_fixture *f, int forward_only, int64_t n_cores);

/** Makes a file. @param path of mkstemp() */
void mixed_file(char *path, const char *text);

/** Gives a device the choices that a text holds. @return as bpt_device_load_choices() */
bpt_status mixed_load(bpt_device *device, const char *text, const char **unlike);

/** A network with the weights of the fixture's. */
typedef struct mixed_shared {
    bpt_device *device;
    bpt_network *net;
} mixed_shared;

/** @return mixed_unshare() */
mixed_shared mixed_share(const net_fixture *f, int64_t n_cores, bpt_learning l);
void mixed_unshare(mixed_shared *s);

/** Compares a vector with that of the fixture's network: 1e-5. */
void mixed_compare(const char *what, const net_fixture *f, bpt_network *net, bpt_vector which);
void mixed_compare_results(const bpt_batch_result *a, const bpt_batch_result *b);

#endif
