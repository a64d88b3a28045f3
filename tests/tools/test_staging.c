/* What is told of copies of a dataset while they are made: figures of a clock of the test's own. */
#include "base/clock.h"
#include "base/log.h"
#include "tools/staging.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

/* Last: it needs those above, and defines fail and skip. */
#include <cmocka.h>

static const uint64_t second = 1000000000;
static uint64_t now_ns;
static char shown[200];

uint64_t __wrap_bpt_clock_ns(void);
double __wrap_bpt_clock_seconds_since(uint64_t since_ns);
void __wrap_bpt_log_progress(const char *line);

uint64_t __wrap_bpt_clock_ns(void) {
    return now_ns;
}

double __wrap_bpt_clock_seconds_since(uint64_t since_ns) {
    return 1e-9 * (double)(now_ns - since_ns);
}

void __wrap_bpt_log_progress(const char *line) {
    snprintf(shown, sizeof shown, "%s", line);
}

/* So many seconds later. */
static void assert_shows(bpt_staging_progress *p, const bpt_staging_sum *sum, uint64_t seconds,
                         const char *expected) {
    shown[0] = '\0';
    now_ns += seconds * second;
    bpt_staging_show(p, sum);
    assert_string_equal(shown, expected);
}

static void test_one_copy(void **state) {
    (void)state;
    bpt_staging_progress p = bpt_staging_begin();
    bpt_staging_sum sum = {.bytes = 900000000, .done = 100000000, .n = 1};
    p.interval_ns = 5 * second; /* of a log */
    assert_shows(&p, &sum, 4, "");
    assert_shows(&p, &sum, 6, "checking what is copied already: 100 of 900 MB");
    assert_shows(&p, &sum, 4, "");
    sum.done = 300000000; /* 200 MB of these were there */
    sum.copied = 100000000;
    assert_shows(&p, &sum, 6, "copying the dataset: 300 of 900 MB 5 MB/s eta 02:00");
    sum.n_whole = 1;
    assert_shows(&p, &sum, 60, "");
}

static void test_copies_of_a_job(void **state) {
    (void)state;
    static const bpt_stage_state states[] = {
        {.bytes = 10000000, .done = 10000000, .whole = true},
        {.bytes = 10000000, .done = 5000000, .copied = 5000000},
        {.bytes = 10000000, .done = 1000000, .waits = true},
    };
    bpt_staging_progress p = bpt_staging_begin();
    bpt_staging_sum sum = {0};
    p.interval_ns = 0;
    for (size_t i = 0; i < 3; i++) bpt_staging_add(&sum, &states[i]);
    assert_shows(&p, &sum, 2, "copying the dataset: 16 of 30 MB in 3 copies 2 MB/s eta 00:05");
    sum = (bpt_staging_sum){0};
    bpt_staging_add(&sum, &states[0]);
    bpt_staging_add(&sum, &states[2]); /* the only one that is not whole */
    assert_shows(&p, &sum, 2, "waiting for another job, which is at the same copy");
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_one_copy),
        cmocka_unit_test(test_copies_of_a_job),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
