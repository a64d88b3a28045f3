/* Threads of a rank where one of the ranks lacks memory: all hear of it, and none waits. */
#include "base/memory.h"
#include "outer/comm/comm.h"
#include "scheduler/pool.h"
#include "tools/train/job/rank_threads.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

/* Last: it needs those above, and defines fail and skip. */
#include <cmocka.h>

static bpt_comm *comm;

static void test_memory_of_one_rank(void **state) {
    (void)state;
    const uint32_t last = bpt_comm_size(comm) - 1;
    enum { ALLOCATIONS = 4, MAX_RANKS = 4 };
    bpt_status each[MAX_RANKS] = {BPT_OK};
    int n_refused = 0;
    for (int n = 0; n < ALLOCATIONS; n++) {
        unsigned threads = 0, cores = 0, on_host = 0;
        if (bpt_comm_rank(comm) == last) bpt_memory_fail_at(n);
        const bpt_status mine = bpt_rank_threads_choose(comm, 0, bpt_comm_size(comm), false,
                                                        &threads, &cores, &on_host);
        bpt_memory_fail_at(-1);
        assert_int_equal(bpt_comm_allgather(comm, &mine, sizeof mine, each), BPT_OK);
        n_refused += each[last] == BPT_ENOMEM;
        for (uint32_t r = 0; r < last; r++)
            assert_int_equal(each[r], each[last] == BPT_ENOMEM ? BPT_EPEER : BPT_OK);
        if (mine == BPT_OK) assert_true(threads >= 1 && cores == threads && on_host == last + 1);
    }
    assert_int_equal(n_refused, 1);
    assert_int_equal(each[last], BPT_OK); /* there were no more of them */
}

/* A rank that computes next to nothing has one thread, and takes no cores from the others. */
static void test_servers(void **state) {
    (void)state;
    const uint32_t size = bpt_comm_size(comm);
    unsigned all = 0, threads = 0, cores = 0, on_host = 0;
    if (size < 3) skip();
    assert_int_equal(bpt_rank_threads_choose(comm, 0, 1, false, &all, &cores, &on_host), BPT_OK);
    assert_int_equal(on_host, size);
    if (bpt_comm_rank(comm) == 0)
        assert_int_equal(all, bpt_rank_threads_expected(0, 1));
    else
        assert_true(all == 1 && cores == 1);
    assert_int_equal(bpt_rank_threads_choose(comm, 5, size - 1, false, &threads, &cores, &on_host),
                     BPT_OK);
    assert_int_equal(threads, bpt_comm_rank(comm) < size - 1 ? 5 : 1);
}

/* A rank on a device has one thread, and a core: the others are those of the ranks on cores. */
static void test_devices(void **state) {
    (void)state;
    const uint32_t size = bpt_comm_size(comm);
    const bool first = bpt_comm_rank(comm) == 0;
    unsigned threads = 0, cores = 0, on_host = 0;
    if (size < 3) skip();
    assert_int_equal(bpt_rank_threads_choose(comm, 0, size, first, &threads, &cores, &on_host),
                     BPT_OK);
    assert_int_equal(on_host, size);
    const unsigned bound = bpt_pool_bound_cores(), quota = bpt_pool_quota_cores();
    const unsigned of_others = bpt_rank_threads_share(bound > 1 ? bound - 1 : 1, size - 1,
                                                      quota > 1 ? quota - 1 : 1, size - 1);
    assert_int_equal(threads, first ? 1 : of_others);
    assert_int_equal(cores, threads);
    assert_int_equal(bpt_rank_threads_choose(comm, 2, size, first, &threads, &cores, &on_host),
                     BPT_OK);
    assert_int_equal(threads, 2);
}

/* Before ranks have met: as many as a pool can have, and the part of a host's cores. */
static void test_what_is_expected(void **state) {
    (void)state;
    const unsigned bound = bpt_pool_bound_cores(), quota = bpt_pool_quota_cores();
    unsigned threads = 0, cores = 0, on_host = 0;
    assert_int_equal(bpt_rank_threads_expected(7, 3), 7);
    assert_int_equal(bpt_rank_threads_expected(100000, 1), BPT_MAX_WORKERS);
    for (unsigned ranks = 1; ranks < 4; ranks++)
        assert_int_equal(bpt_rank_threads_expected(0, ranks),
                         bpt_rank_threads_share(bound, ranks, quota, ranks));
    assert_int_equal(bpt_rank_threads_choose(comm, 100000, bpt_comm_size(comm), false, &threads,
                                             &cores, &on_host),
                     BPT_OK);
    assert_int_equal(threads, BPT_MAX_WORKERS);
}

static void test_what_is_lacking(void **state) {
    (void)state;
    assert_true(bpt_rank_threads_lack(2, 1, 1));
    assert_true(bpt_rank_threads_lack(3, 1, 2));
    assert_false(bpt_rank_threads_lack(2, 1, 2));
    assert_false(bpt_rank_threads_lack(2, 2, 2));
    assert_false(bpt_rank_threads_lack(0, 1, 1));
}

static void test_shares_of_quotas(void **state) {
    (void)state;
    assert_int_equal(bpt_rank_threads_share(8, 1, BPT_MAX_WORKERS, 1), 8);
    assert_int_equal(bpt_rank_threads_share(8, 3, BPT_MAX_WORKERS, 3), 2);
    assert_int_equal(bpt_rank_threads_share(2, 1, 2, 4), 1); /* bound apart, with one quota */
    assert_int_equal(bpt_rank_threads_share(2, 1, 6, 3), 2);
    assert_int_equal(bpt_rank_threads_share(4, 1, 1, 1), 1);
    assert_int_equal(bpt_rank_threads_share(1, 4, 1, 4), 1);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_memory_of_one_rank),
                                       cmocka_unit_test(test_servers),
                                       cmocka_unit_test(test_devices),
                                       cmocka_unit_test(test_what_is_expected),
                                       cmocka_unit_test(test_what_is_lacking),
                                       cmocka_unit_test(test_shares_of_quotas)};
    if (bpt_comm_start(&comm) != BPT_OK) return 1;
    const int failed = cmocka_run_group_tests(tests, NULL, NULL);
    bpt_comm_stop(comm);
    return failed;
}
