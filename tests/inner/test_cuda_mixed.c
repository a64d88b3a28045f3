/* Networks that a GPU and the cores have in common: training against the cores alone, with shares
 * that are given and with the one that is found; the same bits from a share that was kept.
 *
 * ctest: gpu TIMEOUT=240 */
#include "inner/device.h"
#include "tests/inner/cuda_fixture.h"
#include "tests/inner/given_share.h"
#include "tests/inner/net_fixture.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

/* Last: it needs those above, and defines fail and skip. */
#include <cmocka.h>

enum { BATCH = 12, N_WORKERS = 2, N_STEPS = 6 };

static const char model[] =
    "{name: t, input: [3, 8, 8], classes: 5, layers: ["
    "conv: {name: conv1, filters: 8, kernel: 3, pad: 1}, relu, "
    "maxpool: {name: p, kernel: 2}, "
    "conv: {name: conv2, filters: 16, kernel: 3, pad: 1}, relu, "
    "fc: {name: fc1, outputs: 24}, relu, dropout: {rate: 0.25}, "
    "fc: {name: fc2, outputs: classes}]}";

static const bpt_learning learning = {.momentum = 0.9, .decay = 0.01};

static char path[] = "/tmp/bpt-mixed-XXXXXX";

static bpt_device *open_mixed(void) {
    bpt_device *device;
    net_assert_ok(bpt_device_open("cuda+cpu", false, &device));
    return device;
}

static void give(const net_fixture *f, bpt_device *device, bpt_value_type type, int64_t n_cores) {
    const given_share share = {BATCH, n_cores, type, N_WORKERS};
    give_share(f, device, &share, path);
}

static bpt_network *create(const net_fixture *f, bpt_device *device, bpt_value_type type) {
    bpt_network *net;
    net_assert_ok(bpt_network_create_on(device, f->model, BATCH, type, learning, f->pool, &net));
    net_assert_ok(bpt_network_set(net, BPT_VECTOR_WEIGHTS, f->weights));
    return net;
}

static void train(const net_fixture *f, bpt_network *net, double bound) {
    for (int step = 0; step < N_STEPS; step++) {
        const bpt_draw draw = {.seed = 5, .step = (uint64_t)step, .first_sample = 24};
        bpt_batch_result a, b;
        bpt_network_set_draw(f->net, draw);
        bpt_network_set_draw(net, draw);
        bpt_network_set_next(net, step % 2 ? f->pixels : NULL);
        net_assert_ok(bpt_network_train(f->net, f->pixels, f->labels, 0.05f, BATCH, &a));
        net_assert_ok(bpt_network_train(net, f->pixels, f->labels, 0.05f, BATCH, &b));
        assert_int_equal(b.n_samples, a.n_samples);
        if (!(fabs(a.loss_sum - b.loss_sum) <= bound * fabs(a.loss_sum)))
            fail_msg("step %d: the loss is %.6g, on the cores %.6g", step, b.loss_sum, a.loss_sum);
    }
}

static void compare(const net_fixture *f, bpt_network *net, bpt_vector which, double bound) {
    float *x = net_vector_of(net, f, which), *y = net_vector(f, which);
    double error = 0.0, norm = 0.0;
    for (size_t i = 0; i < f->n_weights; i++) {
        const double d = (double)x[i] - (double)y[i];
        error += d * d;
        norm += (double)y[i] * (double)y[i];
    }
    if (!(sqrt(error) <= bound * sqrt(norm)))
        fail_msg("vector %d is off by %.2g", (int)which, sqrt(error / norm));
    free(y);
    free(x);
}

static net_fixture open_net(uint64_t seed) {
    return net_open(model, BATCH,
                    (net_options){.n_workers = N_WORKERS, .learning = learning, .seed = seed});
}

static void check_share(bpt_value_type type, int64_t n_cores, double bound) {
    net_fixture f = open_net(1);
    bpt_device *device = open_mixed();
    bpt_batch_result a, b;
    give(&f, device, type, n_cores);
    bpt_network *net = create(&f, device, type);
    train(&f, net, bound);
    compare(&f, net, BPT_VECTOR_WEIGHTS, bound);
    net_assert_ok(bpt_network_evaluate(f.net, f.pixels, f.labels, &a));
    net_assert_ok(bpt_network_evaluate(net, f.pixels, f.labels, &b));
    assert_true(fabs(a.loss_sum - b.loss_sum) <= bound * fabs(a.loss_sum));
    bpt_network_free(net);
    bpt_device_close(device);
    net_close(&f);
}

static void test_floats(void **state) {
    (void)state;
    check_share(BPT_F32, 0, 1e-4);
    check_share(BPT_F32, 1, 1e-4);
    check_share(BPT_F32, 7, 1e-4);
    check_share(BPT_F32, BATCH, 1e-4);
}

/* Normalised by what is known, every sample is by itself. */
static const char residual[] =
    "{name: t, input: [3, 8, 8], classes: 5, layers: ["
    "conv: {name: conv1, filters: 8, kernel: 3, pad: 1, bias: false}, batchnorm: {name: b1}, "
    "relu: {name: r1}, dropout: {name: d1, rate: 0.5}, "
    "conv: {name: conv2, filters: 8, kernel: 3, pad: 1, bias: false}, batchnorm: {name: b2}, "
    "add: {name: sum, input: [b2, d1]}, relu, conv: {name: conv3, filters: 16, kernel: 3}, relu, "
    "fc: {name: fc1, outputs: 24}, relu, dropout: {rate: 0.25}, "
    "fc: {name: fc2, outputs: classes}]}";

static void check_frozen(const char *first, int64_t n_cores, double bound) {
    const net_options options = {.n_workers = N_WORKERS, .learning = learning, .seed = 4};
    net_fixture f = net_open(residual, BATCH, options);
    bpt_device *device = open_mixed();
    bpt_batch_result a, b;
    net_freeze(&f, first, options);
    give(&f, device, BPT_F32, n_cores);
    bpt_network *net = create(&f, device, BPT_F32);
    assert_int_equal(device->n_measured > 0, n_cores < BATCH); /* kernels: the share was given */
    train(&f, net, bound);
    assert_int_equal(bpt_network_host_memory_of(net).total > 0, n_cores > 0);
    compare(&f, net, BPT_VECTOR_WEIGHTS, bound);
    compare(&f, net, BPT_VECTOR_STATE_0, bound);
    net_assert_ok(bpt_network_evaluate(f.net, f.pixels, f.labels, &a));
    net_assert_ok(bpt_network_evaluate(net, f.pixels, f.labels, &b));
    assert_true(fabs(a.loss_sum - b.loss_sum) <= bound * fabs(a.loss_sum));
    net_assert_frozen(&f, net);
    bpt_network_free(net);
    bpt_device_close(device);
    net_close(&f);
}

static void test_frozen(void **state) {
    static const char *const firsts[] = {"conv3", "fc1", "fc2"};
    static const int64_t shares[] = {0, 1, 7, BATCH};
    (void)state;
    for (size_t i = 0; i < sizeof firsts / sizeof *firsts; i++)
        for (size_t j = 0; j < sizeof shares / sizeof *shares; j++)
            check_frozen(firsts[i], shares[j], 1e-4);
}

/* What a step of both leaves can be kept: the next process finds the share, and has its bits. */
static void test_found(void **state) {
    (void)state;
    net_fixture f = open_net(2);
    float *first = NULL;
    for (int round = 0; round < 2; round++) {
        bpt_device *device = open_mixed();
        const char *unlike;
        if (first) net_assert_ok(bpt_device_load_choices(device, path, &unlike));
        bpt_network *net = create(&f, device, BPT_F32);
        assert_int_equal(device->n_measured == 0, first != NULL);
        net_assert_ok(bpt_network_set(f.net, BPT_VECTOR_WEIGHTS, f.weights));
        train(&f, net, 1.0);
        float *weights = net_vector_of(net, &f, BPT_VECTOR_WEIGHTS);
        if (first) net_assert_same_bits("weights", weights, first, f.n_weights);
        if (!first) net_assert_ok(bpt_device_save_choices(device, path));
        free(first);
        first = weights;
        bpt_network_free(net);
        bpt_device_close(device);
    }
    free(first);
    net_close(&f);
}

/* The running mean of the input moves as in one network, whoever has which samples; also where the
 * step is one of two ranks. The last sample is not there, and is the cores'. */
static void check_running_mean(int64_t n_cores, float denominator) {
    static const char normed[] =
        "{name: t, input: [3, 8, 8], classes: 5, layers: [batchnorm: {name: first}, "
        "conv: {name: conv1, filters: 8, kernel: 3, pad: 1}, relu, "
        "fc: {name: fc1, outputs: classes}]}";
    enum { MEAN = 6, N_MEANS = 3 }; /* behind scales and shifts */
    net_fixture f = net_open(
        normed, BATCH, (net_options){.n_workers = N_WORKERS, .learning = learning, .seed = 3});
    bpt_device *device = open_mixed();
    bpt_batch_result r;
    give(&f, device, BPT_F32, n_cores);
    bpt_network *net = create(&f, device, BPT_F32);
    f.labels[BATCH - 1] = -1;
    net_assert_ok(bpt_network_train(f.net, f.pixels, f.labels, 0.05f, denominator, &r));
    net_assert_ok(bpt_network_train(net, f.pixels, f.labels, 0.05f, denominator, &r));
    float *one = net_vector(&f, BPT_VECTOR_WEIGHTS),
          *two = net_vector_of(net, &f, BPT_VECTOR_WEIGHTS);
    for (size_t i = MEAN; i < MEAN + N_MEANS; i++) {
        const double moved = (double)one[i] - (double)f.weights[i];
        if (!(fabs((double)two[i] - (double)one[i]) <= 1e-4 * fabs(moved)))
            fail_msg("%d of the cores: it moves by %.6g, not %.6g", (int)n_cores,
                     (double)two[i] - (double)f.weights[i], moved);
    }
    free(two);
    free(one);
    bpt_network_free(net);
    bpt_device_close(device);
    net_close(&f);
}

static void test_running_mean(void **state) {
    static const int64_t shares[] = {1, 6, BATCH};
    (void)state;
    for (size_t i = 0; i < sizeof shares / sizeof *shares; i++) {
        check_running_mean(shares[i], BATCH - 1);
        check_running_mean(shares[i], 2 * BATCH);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_floats),
        cmocka_unit_test(test_frozen),
        cmocka_unit_test(test_found),
        cmocka_unit_test(test_running_mean),
    };
    const int missing = cuda_begin();
    if (missing) return missing;
    const int fd = mkstemp(path);
    if (fd < 0) return 1;
    close(fd);
    const int failed = cmocka_run_group_tests(tests, NULL, NULL);
    unlink(path);
    cuda_end();
    return failed;
}
