#include "tests/inner/mixed_fixture.h"

#include "inner/mixed/mixed_device.h"

#include <inttypes.h>
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* Last: it needs those above, and defines fail and skip. */
#include <cmocka.h>

const char mixed_plain[] =
    "{name: t, input: [3, 8, 8], classes: 5, layers: ["
    "conv: {name: conv1, filters: 8, kernel: 3, pad: 1}, relu, maxpool: {name: p, kernel: 2}, "
    "conv: {name: conv2, filters: 16, kernel: 3, pad: 1}, relu, lrn, "
    "fc: {name: fc1, outputs: 24}, relu, dropout: {rate: 0.25}, "
    "fc: {name: fc2, outputs: classes}]}";

const bpt_learning mixed_learning = {.momentum = 0.9, .decay = 0.01, .label_smoothing = 0.1};

bpt_draw mixed_draw(uint64_t step) {
    return (bpt_draw){.seed = 7, .step = step, .first_sample = 20};
}

bpt_device *mixed_open(void) {
    bpt_device *device;
    net_assert_ok(bpt_mixed_device_open(cores_device_open((cores_device_options){0}), &device));
    return device;
}

void mixed_file(char *path, const char *text) {
    const int fd = mkstemp(path);
    assert_true(fd >= 0);
    assert_int_equal(write(fd, text, strlen(text)), (ssize_t)strlen(text));
    close(fd);
}

bpt_status mixed_load(bpt_device *device, const char *text, const char **unlike) {
    char path[] = "/tmp/bpt-shares-XXXXXX";
    mixed_file(path, text);
    const bpt_status status = bpt_device_load_choices(device, path, unlike);
    unlink(path);
    return status;
}

bpt_device *mixed_open_sharing(const net_fixture *f, int forward_only, int64_t n_cores) {
    char text[300], frozen[24] = "";
    const char *unlike;
    bpt_device *device = mixed_open();
    if (f->model->n_frozen > 0 && !forward_only)
        snprintf(frozen, sizeof frozen, ", %zu", f->model->n_frozen);
    snprintf(text, sizeof text,
             "format: 1\nshares:\n  - [%d, %" PRId64 ", 0, %zu, %zu, %zu, %d, %" PRId64
             "%s]\ndevice:\n  kind: test\n  of: [1, 2]\n",
             forward_only, f->batch, f->model->n_layers, f->n_weights,
             f->n_pixels / (size_t)f->batch, MIXED_WORKERS, n_cores, frozen);
    net_assert_ok(mixed_load(device, text, &unlike));
    assert_null(unlike);
    return device;
}

mixed_shared mixed_share(const net_fixture *f, int64_t n_cores, bpt_learning l) {
    mixed_shared s = {.device = mixed_open_sharing(f, 0, n_cores)};
    net_assert_ok(bpt_network_create_on(s.device, f->model, f->batch, BPT_F32, l, f->pool, &s.net));
    assert_int_equal(s.device->n_measured, 0);
    net_assert_ok(bpt_network_set(s.net, BPT_VECTOR_WEIGHTS, f->weights));
    return s;
}

void mixed_unshare(mixed_shared *s) {
    bpt_network_free(s->net);
    bpt_device_close(s->device);
}

net_fixture mixed_net(const char *text, uint64_t seed) {
    return net_open(
        text, MIXED_BATCH,
        (net_options){.n_workers = MIXED_WORKERS, .learning = mixed_learning, .seed = seed});
}

void mixed_compare(const char *what, const net_fixture *f, bpt_network *net, bpt_vector which) {
    float *x = net_vector_of(net, f, which), *y = net_vector(f, which);
    const double off = net_distance(x, y, f->n_weights);
    if (!(off <= 1e-5)) fail_msg("%s are off by %.2g", what, off);
    free(y);
    free(x);
}

void mixed_compare_results(const bpt_batch_result *a, const bpt_batch_result *b) {
    assert_true(fabs(a->loss_sum - b->loss_sum) <= 1e-5 * fabs(b->loss_sum));
    assert_int_equal(a->n_correct, b->n_correct);
    assert_int_equal(a->n_samples, b->n_samples);
}
