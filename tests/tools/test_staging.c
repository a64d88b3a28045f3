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
static char shown[200], said[200];
static unsigned n_ended;   /* lines of progress */
static unsigned n_doubted; /* copies */

uint64_t __wrap_bpt_clock_ns(void);
double __wrap_bpt_clock_seconds_since(uint64_t since_ns);
void __wrap_bpt_log_progress(const char *line);
void __wrap_bpt_log_progress_end(void);
void __wrap_bpt_log(bpt_log_level level, const char *format, ...)
    __attribute__((format(printf, 2, 3)));
const char *__wrap_bpt_stage_path(const bpt_stage *stage);
void __wrap_bpt_stage_doubt(bpt_stage *stage);

uint64_t __wrap_bpt_clock_ns(void) {
    return now_ns;
}

double __wrap_bpt_clock_seconds_since(uint64_t since_ns) {
    return 1e-9 * (double)(now_ns - since_ns);
}

void __wrap_bpt_log_progress(const char *line) {
    snprintf(shown, sizeof shown, "%s", line);
}

void __wrap_bpt_log_progress_end(void) {
    n_ended++;
}

void __wrap_bpt_log(bpt_log_level level, const char *format, ...) {
    va_list values;
    assert_int_equal(level, BPT_LOG_INFO);
    assert_int_equal(n_ended, 1); /* not in the middle of one */
    va_start(values, format);
    (void)vsnprintf(said, sizeof said, format, values);
    va_end(values);
}

const char *__wrap_bpt_stage_path(const bpt_stage *stage) {
    (void)stage;
    return "disk/data-1";
}

void __wrap_bpt_stage_doubt(bpt_stage *stage) {
    (void)stage;
    n_doubted++;
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

static void assert_ends(const bpt_staging_progress *p, const bpt_staging_sum *sum,
                        const char *expected) {
    n_ended = 0;
    bpt_staging_end(p, sum);
    assert_string_equal(said, expected);
}

/* Told is what was copied now, of what there is. */
static void test_end(void **state) {
    (void)state;
    bpt_staging_sum sum = {.bytes = 9000000, .done = 9000000, .n = 1, .n_whole = 1};
    const bpt_staging_progress p = bpt_staging_begin();
    now_ns += 3 * second;
    assert_ends(&p, &sum, "the dataset is there already: 9.0 MB");
    sum.copied = 2000000;
    assert_ends(&p, &sum, "the dataset is copied: 2.0 of 9.0 MB, in 3.0 s");
    sum.n = sum.n_whole = 2;
    assert_ends(&p, &sum, "the dataset is copied: 2.0 of 9.0 MB in 2 copies, in 3.0 s");
}

/* Damage is the copy's where it names the copy; only then it is made anew. */
static void test_blame(void **state) {
    (void)state;
    bpt_stage *const stage = (bpt_stage *)&now_ns; /* it is not looked into */
    static const struct {
        bpt_status status;
        const char *path;
        bool staged, blamed;
    } cases[] = {{BPT_ECORRUPT, "disk/data-1/data.mdb", true, true},
                 {BPT_ECORRUPT, "runs/a/model.safetensors", true, false},
                 {BPT_EIO, "disk/data-1/data.mdb", true, false},
                 {BPT_ECORRUPT, "disk/data-1/data.mdb", false, false}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        n_doubted = 0;
        (void)bpt_fail(cases[i].status, "%s is damaged", cases[i].path);
        assert_int_equal(bpt_staging_blame(cases[i].staged ? stage : NULL, cases[i].status),
                         cases[i].status);
        assert_int_equal(n_doubted, cases[i].blamed);
        assert_int_equal(strstr(bpt_error_last()->hint, "run this again") != NULL, cases[i].blamed);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_one_copy),
        cmocka_unit_test(test_copies_of_a_job),
        cmocka_unit_test(test_end),
        cmocka_unit_test(test_blame),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
