/* Who speaks of a stall, whom it names, and after how long. */
#include "outer/comm/stall.h"
#include "outer/comm/watch_state.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

/* Last: it needs those above, and defines fail and skip. */
#include <cmocka.h>

enum { MAX_RANKS = 12 };

static char hosts[MAX_RANKS][BPT__HOST_SIZE] = {"a", "b", "c", "d", "e", "f",
                                                "g", "h", "i", "j", "k", "l"};

static bpt__rank_view at(enum bpt__doing kind, double held_s, const char *what) {
    bpt__rank_view view = {.answered = true, .at = {.kind = (uint32_t)kind, .held_s = held_s}};
    snprintf(view.at.what, sizeof view.at.what, "%s", what);
    return view;
}

static const bpt__rank_view silent = {.answered = false};

/* @param look_at of the hint */
static void assert_says(const bpt__rank_view *views, uint32_t n, uint32_t me, const char *text,
                        const char *look_at) {
    char said[BPT_ERROR_TEXT_SIZE];
    const char *hint = bpt__stall_describe(views, n, me, 60, hosts, said, sizeof said);
    assert_string_equal(said, text);
    assert_non_null(strstr(hint, look_at));
}

static void test_the_lowest_that_waits_speaks(void **state) {
    (void)state;
    const bpt__rank_view views[] = {at(BPT__BUSY, 70, "training"), at(BPT__WAITS, 58, "x"),
                                    at(BPT__WAITS, 61, "x"), silent};
    assert_true(bpt__stall_is_mine(views, 4, 1, 60));
    assert_false(bpt__stall_is_mine(views, 4, 2, 60));
}

/* Rank 0 meets others now and then: its wait is not that of rank 1. */
static void test_short_waits_do_not_count(void **state) {
    (void)state;
    bpt__rank_view views[] = {at(BPT__WAITS, 29, "x"), at(BPT__WAITS, 61, "x"), silent};
    assert_true(bpt__stall_is_mine(views, 3, 1, 60));
    views[0].at.held_s = 30; /* half the limit */
    assert_false(bpt__stall_is_mine(views, 3, 1, 60));
}

/* A file system that all share: one of them speaks. */
static void test_own_operations_of_all(void **state) {
    (void)state;
    bpt__rank_view views[] = {at(BPT__OWN, 58, "data from the loader"),
                              at(BPT__OWN, 61, "data from the loader"),
                              at(BPT__OWN, 61, "data from the loader")};
    assert_true(bpt__stall_is_mine(views, 3, 0, 60));
    assert_false(bpt__stall_is_mine(views, 3, 1, 60));
    assert_false(bpt__stall_is_mine(views, 3, 2, 60));
    views[0].at.held_s = 1;
    assert_true(bpt__stall_is_mine(views, 3, 1, 60));
}

static void test_own_operation(void **state) {
    (void)state;
    bpt__rank_view views[] = {at(BPT__WAITS, 1, "x"), at(BPT__OWN, 61, "data from the loader"),
                              at(BPT__WAITS, 1, "x")};
    assert_true(bpt__stall_is_mine(views, 3, 1, 60)); /* nobody waits for it: agwu */
    assert_says(views, 3, 1, "rank 1 on b has waited 61 s for data from the loader",
                "that host's disks");
    views[2].at.held_s = 59;
    assert_false(bpt__stall_is_mine(views, 3, 1, 60)); /* somebody does, and says so */
    assert_true(bpt__stall_is_mine(views, 3, 2, 60));
    assert_says(views, 3, 2,
                "rank 2 on c has waited 59 s at x for rank 1 on b (waiting for data from the "
                "loader for 61 s)",
                "that host's load");
}

static void test_the_frozen_is_named(void **state) {
    (void)state;
    const bpt__rank_view views[] = {at(BPT__WAITS, 60, "an exchange of weights"),
                                    at(BPT__BUSY, 3, "training"), silent};
    assert_says(views, 3, 0,
                "rank 0 on a has waited 60 s at an exchange of weights for rank 2 on c (does not "
                "answer)",
                "its process is stopped");
}

static void test_the_busy_are_named(void **state) {
    (void)state;
    bpt__rank_view views[] = {at(BPT__WAITS, 60, "a meeting"), at(BPT__BUSY, 75, "a checkpoint"),
                              at(BPT__BUSY, 1, "training"), silent};
    assert_says(views, 3, 0,
                "rank 0 on a has waited 60 s at a meeting for rank 1 on b (busy with a checkpoint "
                "for 75 s)",
                "that host's load");
    assert_says(views, 4, 0,
                "rank 0 on a has waited 60 s at a meeting for rank 1 on b (busy with a checkpoint "
                "for 75 s), rank 3 on d (does not answer)",
                "its process is stopped");
    views[1].at.held_s = 2; /* slow, one step after another: better than nobody */
    assert_says(views, 3, 0,
                "rank 0 on a has waited 60 s at a meeting for rank 1 on b (busy with a checkpoint "
                "for 2 s), rank 2 on c (busy with training for 1 s)",
                "that host's load");
}

/* A rank that only serves others is not late, however long nothing is asked of it; but it should
 * answer. */
static void test_idle_servers(void **state) {
    (void)state;
    bpt__rank_view views[] = {at(BPT__WAITS, 60, "an exchange of weights"),
                              at(BPT__BUSY, 70, "training"), at(BPT__IDLES, 900, "training")};
    assert_true(bpt__stall_is_mine(views, 3, 0, 60));
    assert_says(views, 3, 0,
                "rank 0 on a has waited 60 s at an exchange of weights for rank 1 on b (busy with "
                "training for 70 s)",
                "that host's load");
    views[1].at.kind = BPT__WAITS;
    assert_says(views, 3, 0,
                "rank 0 on a has waited 60 s at an exchange of weights for others, which all wait "
                "too",
                "messages get lost");
    views[2] = silent;
    assert_says(views, 3, 0,
                "rank 0 on a has waited 60 s at an exchange of weights for rank 2 on c (does not "
                "answer)",
                "its process is stopped");
}

static void test_all_wait(void **state) {
    (void)state;
    const bpt__rank_view views[] = {at(BPT__WAITS, 60, "the start"),
                                    at(BPT__WAITS, 60, "the start")};
    assert_says(views, 2, 0,
                "rank 0 on a has waited 60 s at the start for others, which all wait too",
                "messages get lost");
}

static void test_many(void **state) {
    (void)state;
    bpt__rank_view views[MAX_RANKS];
    char said[BPT_ERROR_TEXT_SIZE], small[40];
    for (int r = 0; r < MAX_RANKS; r++) views[r] = silent;
    views[3] = at(BPT__WAITS, 60, "the final meeting");
    bpt__stall_describe(views, MAX_RANKS, 3, 60, hosts, said, sizeof said);
    assert_non_null(strstr(said, "rank 8 on i (does not answer) and 3 more"));
    assert_null(strstr(said, "rank 9"));
    bpt__stall_describe(views, MAX_RANKS, 3, 60, hosts, small, sizeof small);
    assert_int_equal(strlen(small), sizeof small - 1); /* cut, and whole memory */
}

static void test_limits(void **state) {
    (void)state;
    const bpt_watch_options never = {.warning_s = 0}, warn = {.warning_s = 60},
                            end = {.timeout_s = 300}, both = {.warning_s = 60, .timeout_s = 150},
                            early = {.warning_s = 60, .timeout_s = 20};
    assert_true(isinf(bpt__watch_limit(&never, 0)));
    assert_true(bpt__watch_limit(&warn, 0) == 60);
    assert_true(bpt__watch_limit(&warn, 61) == 122);
    assert_true(bpt__watch_limit(&end, 0) == 300);
    assert_true(bpt__watch_limit(&both, 60) == 120);
    assert_true(bpt__watch_limit(&both, 120) == 150);
    assert_true(bpt__watch_limit(&early, 0) == 20);
}

/* A process that was stopped for an hour has not waited for an hour. */
static void test_suspension(void **state) {
    (void)state;
    assert_true(bpt__watch_counted(0) == 0);
    assert_true(fabs(bpt__watch_counted(BPT__TICK_NS) - 0.25) < 1e-9);
    assert_true(bpt__watch_counted(3600 * UINT64_C(1000000000)) <= 1);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_the_lowest_that_waits_speaks),
        cmocka_unit_test(test_short_waits_do_not_count),
        cmocka_unit_test(test_own_operation),
        cmocka_unit_test(test_own_operations_of_all),
        cmocka_unit_test(test_the_frozen_is_named),
        cmocka_unit_test(test_the_busy_are_named),
        cmocka_unit_test(test_idle_servers),
        cmocka_unit_test(test_all_wait),
        cmocka_unit_test(test_many),
        cmocka_unit_test(test_limits),
        cmocka_unit_test(test_suspension),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
