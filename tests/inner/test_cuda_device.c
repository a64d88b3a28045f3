/* Which GPUs are opened, and what is said where one is here and cannot be used. GPUs are of cores,
 * which can be given another driver and be those of another build; a card stays as it is.
 *
 * ctest: gpu TIMEOUT=30 */
#include "inner/device.h"
#include "tests/inner/net_fixture.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Last: it needs those above, and defines fail and skip. */
#include <cmocka.h>

static void seem(const char *variable, const char *value) {
    assert_int_equal(setenv(variable, value, 1), 0);
}

static int clear(void **state) {
    (void)state;
    return unsetenv("BPT_DRIVER_ON_CORES") || unsetenv("BPT_CODE_ON_CORES");
}

static void assert_refused(bpt_status wanted, const char *text, const char *hint) {
    bpt_device *device;
    assert_int_equal(bpt_device_open("cuda", false, &device), wanted);
    assert_null(device);
    if (!strstr(bpt_error_last()->text, text)) fail_msg("%s", bpt_error_last()->text);
    if (!strstr(bpt_error_last()->hint, hint)) fail_msg("%s", bpt_error_last()->hint);
}

static void assert_opens(void) {
    bpt_device *device;
    int n;
    net_assert_ok(bpt_device_count(&n));
    assert_true(n > 0);
    net_assert_ok(bpt_device_open("cuda", false, &device));
    bpt_device_close(device);
}

static void test_driver(void **state) {
    (void)state;
    assert_opens();
    seem("BPT_DRIVER_ON_CORES", "13020"); /* a newer one does as well */
    assert_opens();
}

static void test_old_driver(void **state) {
    (void)state;
    int n = 7;
    seem("BPT_DRIVER_ON_CORES", "12040");
    assert_int_equal(bpt_device_count(&n), BPT_EBACKEND);
    assert_int_equal(n, 0);
    assert_refused(BPT_EBACKEND, "the NVIDIA driver is for CUDA 12.4, this bpt needs 13.0",
                   "a newer driver");
}

/* CUDA's error is the same, and there is nothing to say unless a GPU is asked for. */
static void test_no_driver(void **state) {
    (void)state;
    int n = 7;
    seem("BPT_DRIVER_ON_CORES", "0");
    net_assert_ok(bpt_device_count(&n));
    assert_int_equal(n, 0);
    assert_refused(BPT_EUSAGE, "no GPU can be used here", "does nvidia-smi list it?");
}

/* There is one that works as far as it needs no kernel of ours. */
static void test_no_code(void **state) {
    (void)state;
    int n;
    seem("BPT_CODE_ON_CORES", "0");
    net_assert_ok(bpt_device_count(&n));
    assert_true(n > 0);
    assert_refused(BPT_EUSAGE, "this bpt has no code for GPU on cores (compute capability 9.0)",
                   "CUDAARCHS=90");
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_teardown(test_driver, clear),
        cmocka_unit_test_teardown(test_old_driver, clear),
        cmocka_unit_test_teardown(test_no_driver, clear),
        cmocka_unit_test_teardown(test_no_code, clear),
    };
    if (!getenv("BPT_GPUS_ON_CORES")) {
        fprintf(stderr, "skipped: a card stays as it is\n");
        return 77;
    }
    return cmocka_run_group_tests(tests, NULL, NULL);
}
