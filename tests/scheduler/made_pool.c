#include "tests/scheduler/made_pool.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

/* Last: it needs those above, and defines fail and skip. */
#include <cmocka.h>

bpt_pool *made_pool(const bpt_policy *policy, unsigned n_workers) {
    bpt_pool_options options = BPT_POOL_OPTIONS_INIT;
    bpt_pool *pool;
    options.n_workers = n_workers;
    options.policy = policy;
    assert_int_equal(bpt_pool_create(&options, &pool), BPT_OK);
    return pool;
}
