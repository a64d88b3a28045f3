/* Which GPUs are opened, and what is said where one is here and cannot be used. GPUs are of cores,
 * which can be given another driver, be those of another build, and be two; a card stays as it is.
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
    return unsetenv("BPT_DRIVER_ON_CORES") || unsetenv("BPT_CODE_ON_CORES") ||
           setenv("BPT_GPUS_ON_CORES", "1", 1);
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

/* ---- two GPUs of one thread ---- */

enum {
    BATCH = 5,
    N_STEPS = 4, /* task by task, measured, captured, replayed */
    MEGABYTE = 1 << 20,
};

typedef struct {
    bpt_device *device;
    bpt_network *net;
    float *flat; /* of gradients that are handed out */
    uint32_t n_taken;
    bpt_pinned pinned;
} subject;

static void take(void *context, uint32_t part) {
    subject *s = context;
    assert_int_equal(part, 0);
    s->n_taken++;
}

static void open_subject(const net_fixture *f, const char *choice, subject *s) {
    const bpt_learning learning = {.momentum = 0.9, .decay = 0.01, .clip_norm = 1.0};
    *s = (subject){.flat = net_floats(f->n_weights)};
    net_assert_ok(bpt_device_open(choice, false, &s->device));
    net_assert_ok(
        bpt_network_create_on(s->device, f->model, BATCH, BPT_F32, learning, f->pool, &s->net));
}

/* @param vector of a megabyte */
static void prepare(const net_fixture *f, void *vector, subject *s) {
    const size_t begin[] = {0, f->n_weights};
    const bpt_gradient_parts parts = {1, begin, s->flat, take, s};
    net_assert_ok(bpt_network_hand_out(s->net, &parts));
    net_assert_ok(bpt_network_set(s->net, BPT_VECTOR_WEIGHTS, f->weights));
    bpt_device_pin(s->device, vector, MEGABYTE, &s->pinned);
    assert_non_null(s->pinned.at);
}

static void close_subject(subject *s) {
    bpt_device_unpin(&s->pinned);
    bpt_network_free(s->net);
    bpt_device_close(s->device);
    free(s->flat);
}

static void step(const net_fixture *f, subject *s) {
    bpt_batch_result r;
    bpt_network_set_next(s->net, f->pixels);
    net_assert_ok(bpt_network_train(s->net, f->pixels, f->labels, 0.01f, BATCH, &r));
    net_assert_ok(bpt_network_gradient(s->net, f->pixels, f->labels, BATCH, &r));
    net_assert_ok(bpt_network_set(s->net, BPT_VECTOR_GRADIENTS, s->flat));
    net_assert_ok(bpt_network_apply(s->net, 0.01f));
    net_assert_ok(bpt_network_evaluate(s->net, f->pixels, f->labels, &r));
}

static float *weights_of(const net_fixture *f, subject *s) {
    float *flat = net_floats(f->n_weights);
    net_assert_ok(bpt_network_get(s->net, BPT_VECTOR_WEIGHTS, flat));
    return flat;
}

/* In turns; each computes what it would without the other, and goes on when that is gone. */
static void test_two(void **state) {
    (void)state;
    seem("BPT_GPUS_ON_CORES", "2");
    net_fixture f = net_open(net_mixed, BATCH, (net_options){.n_workers = 1, .seed = 20301});
    char *vectors = malloc(2 * MEGABYTE);
    subject first, second;
    assert_non_null(vectors);
    open_subject(&f, "cuda:0", &first);
    open_subject(&f, "cuda:1", &second);
    prepare(&f, vectors, &first);
    prepare(&f, vectors + MEGABYTE, &second);
    for (int i = 0; i < N_STEPS; i++) {
        step(&f, &first);
        step(&f, &second);
    }
    assert_int_equal(first.n_taken, N_STEPS);
    float *of_first = weights_of(&f, &first), *of_second = weights_of(&f, &second);
    net_assert_same_bits("weights", of_second, of_first, f.n_weights);
    free(of_second);
    step(&f, &second);
    of_second = weights_of(&f, &second);
    step(&f, &first);
    close_subject(&second);
    free(of_first);
    of_first = weights_of(&f, &first);
    net_assert_same_bits("weights, one step on", of_second, of_first, f.n_weights);
    step(&f, &first);
    close_subject(&first);
    free(of_first);
    free(of_second);
    free(vectors);
    net_close(&f);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_teardown(test_driver, clear),
        cmocka_unit_test_teardown(test_old_driver, clear),
        cmocka_unit_test_teardown(test_no_driver, clear),
        cmocka_unit_test_teardown(test_no_code, clear),
        cmocka_unit_test_teardown(test_two, clear),
    };
    if (!getenv("BPT_GPUS_ON_CORES")) {
        fprintf(stderr, "skipped: a card stays as it is\n");
        return 77;
    }
    return cmocka_run_group_tests(tests, NULL, NULL);
}
