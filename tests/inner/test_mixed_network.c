/* Networks that a device and the cores have in common: their steps against those of one network on
 * the cores, for any share; errors of either side; shares that are kept. The device is one of
 * tests.
 *
 * ctest: cpu TIMEOUT=120 */
#include "base/memory.h"
#include "inner/mixed/mixed_device.h"
#include "tests/inner/cores_device.h"
#include "tests/inner/net_fixture.h"

#include <inttypes.h>
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* Last: it needs those above, and defines fail and skip. */
#include <cmocka.h>

enum { BATCH = 9, N_WORKERS = 2 };

/* Every sample by itself: a step does not depend on who has which. */
static const char plain[] =
    "{name: t, input: [3, 8, 8], classes: 5, layers: ["
    "conv: {name: conv1, filters: 8, kernel: 3, pad: 1}, relu, maxpool: {name: p, kernel: 2}, "
    "conv: {name: conv2, filters: 16, kernel: 3, pad: 1}, relu, lrn, "
    "fc: {name: fc1, outputs: 24}, relu, dropout: {rate: 0.25}, "
    "fc: {name: fc2, outputs: classes}]}";

static const bpt_learning learning = {.momentum = 0.9, .decay = 0.01, .label_smoothing = 0.1};

static bpt_draw draw_of(uint64_t step) {
    return (bpt_draw){.seed = 7, .step = step, .first_sample = 20};
}

/* ---- devices with a share that is known ---- */

static bpt_device *open_mixed(void) {
    bpt_device *device;
    net_assert_ok(bpt_mixed_device_open(cores_device_open(0), &device));
    return device;
}

static void write_file(char *path, const char *text) {
    const int fd = mkstemp(path);
    assert_true(fd >= 0);
    assert_int_equal(write(fd, text, strlen(text)), (ssize_t)strlen(text));
    close(fd);
}

static bpt_status load(bpt_device *device, const char *text, bool *alike) {
    char path[] = "/tmp/bpt-shares-XXXXXX";
    write_file(path, text);
    const bpt_status status = bpt_device_load_choices(device, path, alike);
    unlink(path);
    return status;
}

/* @param forward_only 0 or 1 */
static bpt_device *open_sharing(const net_fixture *f, int forward_only, int64_t n_cores) {
    char text[300];
    bool alike;
    bpt_device *device = open_mixed();
    snprintf(text, sizeof text,
             "format: 1\nshares:\n  - [%d, %" PRId64 ", 0, %zu, %zu, %zu, %d, %" PRId64
             "]\ndevice:\n  kind: test\n  of: [1, 2]\n",
             forward_only, f->batch, f->model->n_layers, f->n_weights,
             f->n_pixels / (size_t)f->batch, N_WORKERS, n_cores);
    net_assert_ok(load(device, text, &alike));
    assert_true(alike);
    return device;
}

/* A network with the weights of the fixture's; bpt_network_free() and bpt_device_close(). */
typedef struct {
    bpt_device *device;
    bpt_network *net;
} shared;

static shared share(const net_fixture *f, int64_t n_cores, bpt_learning l) {
    shared s = {.device = open_sharing(f, 0, n_cores)};
    net_assert_ok(bpt_network_create_on(s.device, f->model, f->batch, BPT_F32, l, f->pool, &s.net));
    assert_int_equal(s.device->n_measured, 0);
    net_assert_ok(bpt_network_set(s.net, BPT_VECTOR_WEIGHTS, f->weights));
    return s;
}

static void unshare(shared *s) {
    bpt_network_free(s->net);
    bpt_device_close(s->device);
}

static net_fixture open_net(const char *text, uint64_t seed) {
    return net_open(text, BATCH,
                    (net_options){.n_workers = N_WORKERS, .learning = learning, .seed = seed});
}

static float *vector_of(bpt_network *net, const net_fixture *f, bpt_vector which) {
    float *x = net_floats(f->n_weights);
    memset(x, 0xFF, f->n_weights * sizeof *x);
    net_assert_ok(bpt_network_get(net, which, x));
    return x;
}

static double distance(const float *x, const float *y, size_t n) {
    double error = 0.0, norm = 0.0;
    for (size_t i = 0; i < n; i++) {
        const double d = (double)x[i] - (double)y[i];
        error += d * d;
        norm += (double)y[i] * (double)y[i];
    }
    return sqrt(error / (norm > 0.0 ? norm : 1.0));
}

static void compare(const char *what, const net_fixture *f, bpt_network *net, bpt_vector which) {
    float *x = vector_of(net, f, which), *y = net_vector(f, which);
    const double off = distance(x, y, f->n_weights);
    if (!(off <= 1e-5)) fail_msg("%s are off by %.2g", what, off);
    free(y);
    free(x);
}

static void compare_results(const bpt_batch_result *a, const bpt_batch_result *b) {
    assert_true(fabs(a->loss_sum - b->loss_sum) <= 1e-5 * fabs(b->loss_sum));
    assert_int_equal(a->n_correct, b->n_correct);
    assert_int_equal(a->n_samples, b->n_samples);
}

/* ---- steps ---- */

static void train_both(const net_fixture *f, bpt_network *net, int n_steps) {
    static const int32_t second[BATCH] = {1, -1, 0, 2, -1, 4, 3, 1, 0};
    static const float parts[BATCH] = {0.25f, 0, 0.5f, 0.1f, 0, 0.75f, 0.3f, 0.4f, 0.2f};
    for (int step = 0; step < n_steps; step++) {
        bpt_batch_result a, b;
        bpt_network *const nets[] = {f->net, net};
        for (int i = 0; i < 2; i++) {
            bpt_network_set_draw(nets[i], draw_of((uint64_t)step));
            if (step % 2) bpt_network_set_second(nets[i], second, parts);
            bpt_network_set_next(nets[i], f->pixels);
        }
        net_assert_ok(bpt_network_train(f->net, f->pixels, f->labels, 0.05f, BATCH, &a));
        net_assert_ok(bpt_network_train(net, f->pixels, f->labels, 0.05f, BATCH, &b));
        compare_results(&b, &a);
    }
}

static void check_training(int64_t n_cores) {
    net_fixture f = open_net(plain, 1);
    shared s = share(&f, n_cores, learning);
    bpt_batch_result a, b;
    train_both(&f, s.net, 6);
    compare("weights", &f, s.net, BPT_VECTOR_WEIGHTS);
    compare("momenta", &f, s.net, BPT_VECTOR_STATE_0);
    assert_int_equal(bpt_network_updates(s.net), 6);
    net_assert_ok(bpt_network_evaluate(f.net, f.pixels, f.labels, &a));
    net_assert_ok(bpt_network_evaluate(s.net, f.pixels, f.labels, &b));
    compare_results(&b, &a);
    unshare(&s);
    net_close(&f);
}

static void test_training(void **state) {
    static const int64_t shares[] = {0, 1, 4, 8, BATCH};
    (void)state;
    for (size_t i = 0; i < sizeof shares / sizeof *shares; i++) check_training(shares[i]);
}

/* Gradients and updates one by one, as other ranks want them; a step of another kind between. */
static void check_apply(int64_t n_cores) {
    net_fixture f = open_net(plain, 2);
    shared s = share(&f, n_cores, learning);
    for (int step = 0; step < 4; step++) {
        bpt_batch_result a, b;
        bpt_network_set_draw(f.net, draw_of((uint64_t)step));
        bpt_network_set_draw(s.net, draw_of((uint64_t)step));
        net_assert_ok(bpt_network_gradient(f.net, f.pixels, f.labels, BATCH, &a));
        net_assert_ok(bpt_network_gradient(s.net, f.pixels, f.labels, BATCH, &b));
        compare_results(&b, &a);
        compare("gradients", &f, s.net, BPT_VECTOR_GRADIENTS);
        float *sum = net_vector(&f, BPT_VECTOR_GRADIENTS); /* that other ranks would add to */
        for (size_t i = 0; i < f.n_weights; i++) sum[i] *= 1.5f;
        net_assert_ok(bpt_network_set(f.net, BPT_VECTOR_GRADIENTS, sum));
        net_assert_ok(bpt_network_set(s.net, BPT_VECTOR_GRADIENTS, sum));
        net_assert_ok(bpt_network_apply(f.net, 0.05f));
        net_assert_ok(bpt_network_apply(s.net, 0.05f));
        net_assert_ok(bpt_network_evaluate(f.net, f.pixels, f.labels, &a));
        net_assert_ok(bpt_network_evaluate(s.net, f.pixels, f.labels, &b));
        compare_results(&b, &a);
        free(sum);
    }
    assert_int_equal(bpt_network_updates(s.net), 4);
    unshare(&s);
    net_close(&f);
}

static void test_apply(void **state) {
    (void)state;
    check_apply(3);
    check_apply(BATCH);
}

typedef struct {
    uint32_t n_taken;
} taker;

static void take(void *context, uint32_t part) {
    taker *t = context;
    assert_int_equal(part, t->n_taken++);
}

static void test_hand_out(void **state) {
    (void)state;
    net_fixture f = open_net(plain, 3);
    shared s = share(&f, 4, learning);
    taker t = {0};
    float *flat = net_floats(f.n_weights);
    const size_t begin[] = {0, f.model->segments.items[1].offset, f.n_weights};
    const bpt_gradient_parts parts = {2, begin, flat, take, &t};
    bpt_batch_result r;
    net_assert_ok(bpt_network_hand_out(s.net, &parts));
    net_assert_ok(bpt_network_gradient(s.net, f.pixels, f.labels, BATCH, &r));
    float *gradient = vector_of(s.net, &f, BPT_VECTOR_GRADIENTS);
    assert_int_equal(t.n_taken, 2);
    net_assert_same_bits("gradients", flat, gradient, f.n_weights);
    free(gradient);
    free(flat);
    unshare(&s);
    net_close(&f);
}

/* ---- statistics ---- */

/* @return the gradient of some samples by themselves, divided by the whole batch; free() */
static float *gradient_of(const net_fixture *f, int64_t first, int64_t n) {
    const size_t sample = f->n_pixels / (size_t)f->batch;
    bpt_network *net;
    bpt_batch_result r;
    bpt_draw draw = draw_of(1);
    draw.first_sample += (uint64_t)first;
    net_assert_ok(bpt_network_create(f->model, n, BPT_F32, learning, f->pool, &net));
    net_assert_ok(bpt_network_set(net, BPT_VECTOR_WEIGHTS, f->weights));
    bpt_network_set_draw(net, draw);
    net_assert_ok(bpt_network_gradient(net, f->pixels + (size_t)first * sample, f->labels + first,
                                       BATCH, &r));
    float *gradient = vector_of(net, f, BPT_VECTOR_GRADIENTS);
    bpt_network_free(net);
    return gradient;
}

/* Each side has statistics of its own samples; what is kept of them is weighed by those that are
 * there: 5 of the device and, one being none, 3 of the cores. */
static void test_statistics(void **state) {
    (void)state;
    net_fixture f = open_net(net_mixed, 4);
    shared s = share(&f, 4, learning);
    bpt_batch_result r;
    f.labels[6] = -1;
    bpt_network_set_draw(s.net, draw_of(1));
    net_assert_ok(bpt_network_gradient(s.net, f.pixels, f.labels, BATCH, &r));
    assert_int_equal(r.n_samples, 8);
    float *sum = vector_of(s.net, &f, BPT_VECTOR_GRADIENTS);
    float *device = gradient_of(&f, 0, 5), *cores = gradient_of(&f, 5, 4);
    for (size_t i = 0; i < f.model->segments.n; i++) {
        const bpt_segment *g = &f.model->segments.items[i];
        const float a = g->role.running > 0.0f ? 5.0f / 8.0f : 1.0f;
        const float b = g->role.running > 0.0f ? 3.0f / 8.0f : 1.0f;
        for (size_t k = g->offset; k < g->offset + g->count; k++)
            device[k] = a * device[k] + b * cores[k];
        const double off = distance(sum + g->offset, device + g->offset, g->count);
        if (!(off <= 1e-6)) fail_msg("%s is off by %.2g", g->name, off);
    }
    free(cores);
    free(device);
    free(sum);
    unshare(&s);
    net_close(&f);
}

/* ---- errors ---- */

static void assert_weights_stay(const shared *s, const net_fixture *f) {
    float *weights = vector_of(s->net, f, BPT_VECTOR_WEIGHTS);
    net_assert_same_bits("weights", weights, f->weights, f->n_weights);
    assert_int_equal(bpt_network_updates(s->net), 0);
    free(weights);
}

/* Where both have samples, gradients are looked at before any weight is changed. One side alone may
 * have changed some: a ReLU drops the NaN on its way to the loss.
 * @param sample of the device or of the cores */
static void check_errors(int64_t n_cores, size_t sample) {
    net_fixture f = open_net(plain, 5);
    shared s = share(&f, n_cores, learning);
    bpt_batch_result r;
    const int32_t label = f.labels[sample];
    f.labels[sample] = 99;
    assert_int_equal(bpt_network_train(s.net, f.pixels, f.labels, 0.1f, BATCH, &r), BPT_EDATA);
    assert_non_null(strstr(bpt_error_last()->text, "a label is 99"));
    assert_weights_stay(&s, &f);
    f.labels[sample] = label;
    f.pixels[sample * (f.n_pixels / BATCH) + 3] = NAN;
    assert_int_equal(bpt_network_train(s.net, f.pixels, f.labels, 0.1f, BATCH, &r), BPT_ENUMERIC);
    assert_non_null(strstr(bpt_error_last()->text, "nor is all of the input"));
    if (n_cores > 0 && n_cores < BATCH) assert_weights_stay(&s, &f);
    f.pixels[sample * (f.n_pixels / BATCH) + 3] = 0.5f;
    net_assert_ok(bpt_network_set(s.net, BPT_VECTOR_WEIGHTS, f.weights));
    net_assert_ok(bpt_network_train(s.net, f.pixels, f.labels, 0.1f, BATCH, &r));
    unshare(&s);
    net_close(&f);
}

static void test_errors(void **state) {
    (void)state;
    check_errors(4, 2);     /* of the device */
    check_errors(4, 7);     /* of the cores */
    check_errors(BATCH, 0); /* the cores have all */
    check_errors(0, 0);
}

/* ---- shares ---- */

static void test_trial(void **state) {
    (void)state;
    net_fixture f = open_net(plain, 6);
    bpt_device *first = open_mixed(), *second = open_mixed();
    bpt_network *net, *other;
    char path[] = "/tmp/bpt-shares-XXXXXX";
    bool alike;
    write_file(path, "");
    net_assert_ok(bpt_network_create_on(first, f.model, BATCH, BPT_F32, learning, f.pool, &net));
    assert_int_equal(first->n_measured, 1);
    float *zeros = vector_of(net, &f, BPT_VECTOR_STATE_0); /* as of any network that is new */
    for (size_t i = 0; i < f.n_weights; i++) assert_true(zeros[i] == 0.0f);
    net_assert_ok(bpt_device_save_choices(first, path));
    net_assert_ok(bpt_device_load_choices(second, path, &alike));
    assert_true(alike);
    net_assert_ok(bpt_network_create_on(second, f.model, BATCH, BPT_F32, learning, f.pool, &other));
    assert_int_equal(second->n_measured, 0);
    assert_string_equal(bpt_network_sharing(net), bpt_network_sharing(other));
    unlink(path);
    free(zeros);
    bpt_network_free(other);
    bpt_network_free(net);
    bpt_device_close(second);
    bpt_device_close(first);
    net_close(&f);
}

/* A device that takes long leaves all to the cores. */
static void test_slow_device(void **state) {
    (void)state;
    net_fixture f = open_net(plain, 7);
    bpt_device *device;
    bpt_network *net;
    net_assert_ok(bpt_mixed_device_open(cores_device_open(200000000), &device));
    net_assert_ok(bpt_network_create_on(device, f.model, BATCH, BPT_F32, learning, f.pool, &net));
    assert_non_null(strstr(bpt_network_sharing(net), "2 cores have all samples"));
    bpt_network_free(net);
    bpt_device_close(device);
    net_close(&f);
}

static void test_forward_only(void **state) {
    static const int64_t shares[] = {0, 4, BATCH};
    (void)state;
    net_fixture f = open_net(plain, 8);
    for (size_t i = 0; i < sizeof shares / sizeof *shares; i++) {
        bpt_device *device = open_sharing(&f, 1, shares[i]);
        bpt_network *net;
        bpt_batch_result a, b;
        net_assert_ok(bpt_network_create_forward_on(device, f.model, BATCH, BPT_F32, f.pool, &net));
        net_assert_ok(bpt_network_set(net, BPT_VECTOR_WEIGHTS, f.weights));
        net_assert_ok(bpt_network_evaluate(f.net, f.pixels, f.labels, &a));
        net_assert_ok(bpt_network_evaluate(net, f.pixels, f.labels, &b));
        compare_results(&b, &a);
        bpt_network_free(net);
        bpt_device_close(device);
    }
    net_close(&f);
}

static void test_sharing(void **state) {
    (void)state;
    net_fixture f = open_net(plain, 9);
    shared s = share(&f, 4, learning);
    assert_string_equal(bpt_network_sharing(s.net),
                        "of 9 samples of a step test:0 has 5, 2 cores have 4");
    assert_string_equal(s.device->name, "test:0+cpu (cores)");
    assert_int_equal(bpt_network_products_ns(s.net), 17);
    assert_null(bpt_network_sharing(f.net));
    unshare(&s);
    net_close(&f);
}

static void test_bad_files(void **state) {
    static const char *const texts[] = {
        "format: 1\nshares: []\n",
        "format: 1\nshares: 3\ndevice: {kind: test}\n",
        "format: 1\nshares: [[1, 2]]\ndevice: {kind: test}\n",
        "format: 1\nshares: [[0, 9, 0, 1, 1, 1, 1, 10]]\ndevice: {kind: test}\n",
        "format: 1\nshares: [[0, 9, 0, 1, 1, 1, 1, -1]]\ndevice: {kind: test}\n",
        "format: 1\nshares: []\ndevice: {}\n",
        "format: 1\nshares: []\ndevice: {kind: test}\nmore: 1\n",
        "gpu: \"x\"\n",
    };
    bool alike;
    bpt_device *device = open_mixed();
    (void)state;
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++)
        assert_int_equal(load(device, texts[i], &alike), BPT_EUSAGE);
    net_assert_ok(load(device, "format: 2\nshares: []\ndevice: {kind: test}\n", &alike));
    assert_false(alike);
    net_assert_ok(load(device, "format: 1\nshares: []\ndevice: {kind: other}\n", &alike));
    assert_false(alike);
    bpt_device_close(device);
}

/* ---- memory ---- */

static void test_steps_allocate_nothing(void **state) {
    (void)state;
    net_fixture f = open_net(plain, 10);
    shared s = share(&f, 4, learning);
    bpt_batch_result r;
    net_assert_ok(bpt_network_train(s.net, f.pixels, f.labels, 0.01f, BATCH, &r));
    const uint64_t before = bpt_memory_allocations();
    for (int i = 0; i < 3; i++)
        net_assert_ok(bpt_network_train(s.net, f.pixels, f.labels, 0.01f, BATCH, &r));
    assert_int_equal(bpt_memory_allocations(), before);
    unshare(&s);
    net_close(&f);
}

/* @return what creation says when allocation @p n fails; nothing is left in any case */
static bpt_status create_failing(const net_fixture *f, bpt_device *device, int64_t n) {
    bpt_network *net = NULL;
    const uint64_t live = bpt_memory_live();
    bpt_memory_fail_at(n);
    const bpt_status status =
        bpt_network_create_on(device, f->model, f->batch, BPT_F32, learning, f->pool, &net);
    bpt_memory_fail_at(-1);
    if (status == BPT_OK) bpt_network_free(net);
    assert_int_equal(bpt_memory_live(), live);
    return status;
}

static void test_no_memory(void **state) {
    (void)state;
    net_fixture f = net_open(net_tiny, 3, (net_options){.n_workers = N_WORKERS, .seed = 11});
    bpt_device *device = open_sharing(&f, 0, 1);
    int64_t n = 0;
    while (create_failing(&f, device, n) == BPT_ENOMEM) n++;
    assert_true(n > 20);
    bpt_device_close(device);
    net_close(&f);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_training),
        cmocka_unit_test(test_apply),
        cmocka_unit_test(test_hand_out),
        cmocka_unit_test(test_statistics),
        cmocka_unit_test(test_errors),
        cmocka_unit_test(test_trial),
        cmocka_unit_test(test_slow_device),
        cmocka_unit_test(test_forward_only),
        cmocka_unit_test(test_sharing),
        cmocka_unit_test(test_bad_files),
        cmocka_unit_test(test_steps_allocate_nothing),
        cmocka_unit_test(test_no_memory),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
