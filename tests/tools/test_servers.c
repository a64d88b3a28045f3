/* Which ranks are servers, and of how many. */
#include "tools/train/options/servers.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

/* Last: it needs those above, and defines fail and skip. */
#include <cmocka.h>

static bpt_train_options with(int update, int64_t servers) {
    return (bpt_train_options){.update = update, .servers = servers};
}

static void assert_count(int update, int64_t servers, uint32_t n_ranks, uint32_t expected) {
    const bpt_train_options o = with(update, servers);
    uint32_t n = 99;
    assert_int_equal(bpt_servers_count(&o, n_ranks, &n), BPT_OK);
    assert_int_equal(n, expected);
    for (uint32_t r = 0; r < n_ranks; r++)
        assert_int_equal(bpt_servers_have(&o, r, n_ranks), r >= n_ranks - expected);
}

static void test_the_last_serve(void **state) {
    (void)state;
    for (int update = BPT_UPDATE_DEFAULT; update <= BPT_UPDATE_ALLREDUCE; update++)
        for (uint32_t n = 1; n <= 4; n++) assert_count(update, 0, n, 0);
    static const int merging[] = {BPT_UPDATE_DEFAULT, BPT_UPDATE_AUTO, BPT_UPDATE_AGWU,
                                  BPT_UPDATE_SGWU, BPT_UPDATE_EASGD};
    for (size_t i = 0; i < sizeof merging / sizeof *merging; i++)
        for (uint32_t n = 2; n <= 4; n++)
            for (uint32_t servers = 1; servers < n; servers++)
                assert_count(merging[i], servers, n, servers);
    assert_count(BPT_UPDATE_ALLREDUCE, 2, 4, 0); /* of a file: without effect */
    assert_count(BPT_UPDATE_LOCAL, 2, 1, 0);
}

static void assert_refused(int update, int64_t servers, uint32_t n_ranks) {
    const bpt_train_options o = with(update, servers);
    uint32_t n;
    assert_int_equal(bpt_servers_count(&o, n_ranks, &n), BPT_EUSAGE);
    assert_true(strlen(bpt_error_last()->hint) > 0);
    for (uint32_t r = 0; r < n_ranks; r++) assert_false(bpt_servers_have(&o, r, n_ranks));
}

static void test_somebody_trains(void **state) {
    (void)state;
    assert_refused(BPT_UPDATE_AGWU, 1, 1);
    assert_refused(BPT_UPDATE_DEFAULT, 1, 1);
    assert_refused(BPT_UPDATE_AUTO, 4, 4);
    assert_refused(BPT_UPDATE_SGWU, 5, 4);
    assert_refused(BPT_UPDATE_EASGD, 1000000, 4);
}

/* Rank 0 gives samples out where another rank trains beside it, and as it is told to. */
static void test_whom_samples_are_given_to(void **state) {
    (void)state;
    bpt_train_options o = with(BPT_UPDATE_AGWU, 0);
    for (uint32_t n = 1; n <= 4; n++) assert_false(bpt_servers_scatter(&o, n));
    o.data_mode = BPT_DATA_SCATTER;
    for (uint32_t servers = 0; servers <= 5; servers++)
        for (uint32_t n = 1; n <= 4; n++) {
            o.servers = servers;
            /* Too many of them are refused elsewhere, and count as none here. */
            const uint32_t workers = servers < n ? n - servers : n;
            assert_int_equal(bpt_servers_scatter(&o, n), workers > 1);
        }
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_the_last_serve),
                                       cmocka_unit_test(test_somebody_trains),
                                       cmocka_unit_test(test_whom_samples_are_given_to)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
