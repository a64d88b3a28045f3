/* Which GPU a process of a job has: by its place among the workers of its host, and how many GPUs
 * it finds there. Ranks and hosts are made up. */
#include "base/log.h"
#include "tools/device_option.h"
#include "tools/train/job/host_place.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

/* Last: it needs those above, and defines fail and skip. */
#include <cmocka.h>

/* ---- what comm says ---- */

static char machines[8];
static uint32_t own_rank;

uint32_t __wrap_bpt_comm_rank(const bpt_comm *comm);
bool __wrap_bpt_comm_together(const bpt_comm *comm, uint32_t a, uint32_t b);

uint32_t __wrap_bpt_comm_rank(const bpt_comm *comm) {
    (void)comm;
    return own_rank;
}

bool __wrap_bpt_comm_together(const bpt_comm *comm, uint32_t a, uint32_t b) {
    (void)comm;
    return machines[a] == machines[b];
}

/* ---- what is logged ---- */

static char said[256];
static unsigned n_said;

void __wrap_bpt_log(bpt_log_level level, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

void __wrap_bpt_log(bpt_log_level level, const char *format, ...) {
    va_list values;
    assert_int_equal(level, BPT_LOG_WARN);
    va_start(values, format);
    (void)vsnprintf(said, sizeof said, format, values);
    va_end(values);
    n_said++;
}

/* ---- places ---- */

/* @param names of machines, a letter each */
static bpt_host_place place_of(uint32_t rank, const char *names, uint32_t n_workers) {
    for (size_t i = 0; names[i]; i++) machines[i] = names[i];
    own_rank = rank;
    return bpt_host_place_of(NULL, n_workers);
}

static void assert_place(bpt_host_place place, unsigned index, unsigned n) {
    assert_int_equal(place.index, index);
    assert_int_equal(place.n, n);
}

static void test_places(void **state) {
    (void)state;
    assert_place(place_of(0, "a", 1), 0, 1);
    assert_place(place_of(2, "aaa", 3), 2, 3);
    assert_place(place_of(2, "aabb", 4), 0, 2);
    assert_place(place_of(3, "abab", 4), 1, 2); /* by turns */
    assert_place(place_of(2, "abcd", 4), 0, 1);
}

/* The last ranks are servers, wherever they are. */
static void test_servers(void **state) {
    (void)state;
    assert_place(place_of(1, "aaab", 2), 1, 2);
    assert_place(place_of(0, "abab", 3), 0, 2);
    assert_place(place_of(1, "abab", 3), 0, 1);
}

/* ---- what it opens ---- */

static void assert_own(const char *choice, bpt_host_place place, int n_devices,
                       const char *wanted) {
    char own[BPT_DEVICE_CHOICE_SIZE];
    assert_int_equal(bpt_device_option_own(choice, place, n_devices, own), BPT_OK);
    assert_string_equal(own, wanted);
}

static void test_a_gpu_each(void **state) {
    (void)state;
    for (unsigned i = 0; i < 4; i++) {
        char wanted[BPT_DEVICE_CHOICE_SIZE];
        snprintf(wanted, sizeof wanted, "cuda:%u", i);
        assert_own("auto", (bpt_host_place){i, 4}, 4, wanted);
        assert_own("cuda", (bpt_host_place){i, 4}, 4, wanted);
        assert_own("cuda", (bpt_host_place){i, 4}, 8, wanted);
    }
}

static void test_fewer_gpus(void **state) {
    (void)state;
    char own[BPT_DEVICE_CHOICE_SIZE];
    assert_own("auto", (bpt_host_place){1, 3}, 2, "cuda:1");
    assert_own("auto", (bpt_host_place){2, 3}, 2, "cpu");
    assert_own("cuda", (bpt_host_place){1, 3}, 2, "cuda:1");
    assert_int_equal(bpt_device_option_own("cuda", (bpt_host_place){2, 3}, 2, own), BPT_EUSAGE);
    assert_non_null(strstr(bpt_error_last()->text, "process 3 of 3 on this host finds 2 GPUs"));
    assert_non_null(strstr(bpt_error_last()->hint, "cuda:0"));
    assert_own("cuda+cpu", (bpt_host_place){1, 3}, 2, "cuda:1+cpu");
    assert_int_equal(bpt_device_option_own("cuda+cpu", (bpt_host_place){2, 3}, 2, own), BPT_EUSAGE);
}

/* Of many for which none is left one says it. */
static void test_one_warning(void **state) {
    (void)state;
    n_said = 0;
    for (unsigned i = 0; i < 5; i++)
        assert_own("auto", (bpt_host_place){i, 5}, 2, i < 2 ? i ? "cuda:1" : "cuda:0" : "cpu");
    assert_int_equal(n_said, 1);
    assert_non_null(
        strstr(said, "process 3 of 5 on this host finds 2 GPUs: 3 processes take the cores;"));
    assert_own("auto", (bpt_host_place){1, 2}, 1, "cpu");
    assert_non_null(
        strstr(said, "process 2 of 2 on this host finds 1 GPU: 1 process takes the cores;"));
}

static void test_threads(void **state) {
    (void)state;
    const bpt_device device = {.memory_bytes = 1}, mixed = {.uses_cores = true};
    assert_int_equal(bpt_device_option_threads(NULL, 0, 8), 8);
    assert_int_equal(bpt_device_option_threads(NULL, 3, 8), 3);
    assert_int_equal(bpt_device_option_threads(&device, 0, 8), 1);
    assert_int_equal(bpt_device_option_threads(&device, 3, 8), 3);
    assert_int_equal(bpt_device_option_threads(&mixed, 0, 8), 8);
    assert_int_equal(bpt_device_option_threads(&mixed, 3, 8), 3);
}

/* To open "cuda" says why there is none. */
static void test_no_gpu(void **state) {
    (void)state;
    assert_own("auto", (bpt_host_place){0, 1}, 0, "cpu");
    assert_own("auto", (bpt_host_place){3, 4}, 0, "cpu");
    assert_own("cuda", (bpt_host_place){0, 1}, 0, "cuda");
    assert_own("cuda", (bpt_host_place){3, 4}, 0, "cuda");
    assert_own("cuda+cpu", (bpt_host_place){0, 1}, 0, "cuda+cpu");
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_places),      cmocka_unit_test(test_servers),
        cmocka_unit_test(test_a_gpu_each),  cmocka_unit_test(test_fewer_gpus),
        cmocka_unit_test(test_one_warning), cmocka_unit_test(test_no_gpu),
        cmocka_unit_test(test_threads)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
