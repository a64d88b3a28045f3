/** @file tests/scheduler/made_pool.h
 * Pools for tests.
 *
 * Threads: the test's thread. */
#ifndef BPT_TESTS_MADE_POOL_H
#define BPT_TESTS_MADE_POOL_H

#include "scheduler/pool.h"

/** @param policy NULL: the default
 * @return a pool of so many workers, bpt_pool_free(); the test fails where there is none */
bpt_pool *made_pool(const bpt_policy *policy, unsigned n_workers);

#endif
