/* Threads of a rank where one of the ranks lacks memory: all hear of it, and none waits. */
#include "base/memory.h"
#include "outer/comm.h"
#include "tools/train/rank_threads.h"

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
        const bpt_status mine = bpt_rank_threads_choose(comm, 0, &threads, &cores, &on_host);
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

static void test_what_is_lacking(void **state) {
    (void)state;
    assert_true(bpt_rank_threads_lack(2, 1, 1));
    assert_true(bpt_rank_threads_lack(3, 1, 2));
    assert_false(bpt_rank_threads_lack(2, 1, 2));
    assert_false(bpt_rank_threads_lack(2, 2, 2));
    assert_false(bpt_rank_threads_lack(0, 1, 1));
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_memory_of_one_rank),
                                       cmocka_unit_test(test_what_is_lacking)};
    if (bpt_comm_start(&comm) != BPT_OK) return 1;
    const int failed = cmocka_run_group_tests(tests, NULL, NULL);
    bpt_comm_stop(comm);
    return failed;
}
