/* What is told of long work on images: figures of a clock of the test's own. */
#include "base/clock.h"
#include "base/log.h"
#include "tools/ingest/ingest_progress.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

/* Last: it needs those above, and defines fail and skip. */
#include <cmocka.h>

static const uint64_t second = 1000000000;
static uint64_t now_ns = 77;
static char shown[200];

uint64_t __wrap_bpt_clock_ns(void);
void __wrap_bpt_log_progress(const char *line);

uint64_t __wrap_bpt_clock_ns(void) {
    return now_ns;
}

void __wrap_bpt_log_progress(const char *line) {
    snprintf(shown, sizeof shown, "%s", line);
}

/* So many seconds later. */
static void assert_shows(bpt_ingest_progress *p, uint64_t done, uint64_t total, uint64_t seconds,
                         const char *expected) {
    shown[0] = '\0';
    now_ns += seconds * second;
    bpt_ingest_progress_show(p, done, total);
    assert_string_equal(shown, expected);
}

static void test_rate_and_rest(void **state) {
    (void)state;
    bpt_ingest_progress p = bpt_ingest_progress_start("train: stored");
    p.interval_ns = 5 * second; /* of a log */
    assert_shows(&p, 40, 8000, 4, "");
    assert_shows(&p, 100, 8000, 6, "train: stored 100/8000 images 10 img/s eta 13:10");
    assert_shows(&p, 140, 8000, 4, "");
    assert_shows(&p, 400, 8000, 6, "train: stored 400/8000 images 20 img/s eta 06:20");
    assert_shows(&p, 8000, 8000, 380, "train: stored 8000/8000 images 20 img/s eta 00:00");
}

/* There is no rate, by which the end could be told, before there is an image. */
static void test_nothing_is_done(void **state) {
    (void)state;
    bpt_ingest_progress p = bpt_ingest_progress_start("verified");
    p.interval_ns = 0;
    assert_shows(&p, 0, 3, 60, "");
    assert_shows(&p, 1, 3, 60, "verified 1/3 images 0 img/s eta 04:00");
    assert_shows(&p, 2, 1000, 60, "verified 2/1000 images 0 img/s eta 24:57:00");
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_rate_and_rest),
        cmocka_unit_test(test_nothing_is_done),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
