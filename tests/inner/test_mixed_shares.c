/* How many samples of a network the cores have: found, kept, read and said; what a device is told,
 * and what it all takes of memory. The device is one of tests.
 *
 * ctest: cpu TIMEOUT=120 */
#include "base/file.h"
#include "base/memory.h"
#include "inner/cpu/cpu.h"
#include "inner/mixed/mixed_device.h"
#include "inner/mixed/mixed_network.h"
#include "tests/inner/mixed_fixture.h"

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

enum { BATCH = MIXED_BATCH };

static void test_trial(void **state) {
    (void)state;
    net_fixture f = mixed_net(mixed_plain, 6);
    bpt_device *first = mixed_open(), *second = mixed_open();
    bpt_network *net, *other;
    char path[] = "/tmp/bpt-shares-XXXXXX";
    const char *unlike;
    mixed_file(path, "");
    net_assert_ok(
        bpt_network_create_on(first, f.model, BATCH, BPT_F32, mixed_learning, f.pool, &net));
    assert_int_equal(first->n_measured, 1);
    float *zeros = net_vector_of(net, &f, BPT_VECTOR_STATE_0); /* as of any network that is new */
    for (size_t i = 0; i < f.n_weights; i++) assert_true(zeros[i] == 0.0f);
    net_assert_ok(bpt_device_save_choices(first, path));
    net_assert_ok(bpt_device_load_choices(second, path, &unlike));
    assert_null(unlike);
    net_assert_ok(
        bpt_network_create_on(second, f.model, BATCH, BPT_F32, mixed_learning, f.pool, &other));
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

/* A batch norm over one pixel: of one sample nothing passes it. */
static const char single[] =
    "{name: t, input: [3, 8, 8], classes: 5, layers: [fc: {name: fc1, outputs: 24}, "
    "batchnorm: {name: bn}, relu, fc: {name: fc2, outputs: classes}]}";

/* @return shares that were measured though @p device has some */
static unsigned n_measured(const net_fixture *f, bpt_device *device) {
    bpt_network *net;
    net_assert_ok(
        bpt_network_create_on(device, f->model, BATCH, BPT_F32, mixed_learning, f->pool, &net));
    bpt_network_free(net);
    return device->n_measured;
}

/* A share that is kept and leaves a side one sample is put right, once. */
static void test_least(void **state) {
    static const struct {
        const char *text;
        int64_t n_cores;
        unsigned n_measured;
    } cases[] = {{single, 1, 1},         {single, BATCH - 1, 1}, {single, 2, 0},     {single, 0, 0},
                 {single, BATCH - 2, 0}, {single, BATCH, 0},     {mixed_plain, 1, 0}};
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        net_fixture f = mixed_net(cases[i].text, 12);
        bpt_device *device = mixed_open_sharing(&f, 0, cases[i].n_cores), *next = mixed_open();
        char path[] = "/tmp/bpt-shares-XXXXXX";
        const char *unlike;
        assert_int_equal(n_measured(&f, device), cases[i].n_measured);
        mixed_file(path, "");
        net_assert_ok(bpt_device_save_choices(device, path));
        net_assert_ok(bpt_device_load_choices(next, path, &unlike));
        assert_int_equal(n_measured(&f, next), 0);
        unlink(path);
        bpt_device_close(next);
        bpt_device_close(device);
        net_close(&f);
    }
}

/* Evaluation takes statistics as they are. */
static void test_least_of_evaluation(void **state) {
    (void)state;
    net_fixture f = mixed_net(single, 14);
    bpt_device *device = mixed_open_sharing(&f, 1, 1);
    bpt_network *net;
    net_assert_ok(bpt_network_create_forward_on(device, f.model, BATCH, BPT_F32, f.pool, &net));
    assert_int_equal(device->n_measured, 0);
    bpt_network_free(net);
    bpt_device_close(device);
    net_close(&f);
}

/* What was measured for one network is nothing for another. */
static void test_other_problems(void **state) {
    (void)state;
    bpt__mixed_shares shares = {0};
    bpt__mixed_problem p = {1, 9, 0, 3, 100, 64, 2, 1};
    int64_t *const numbers[] = {&p.forward_only, &p.batch, &p.type,    &p.layers,
                                &p.elements,     &p.input, &p.workers, &p.frozen};
    net_assert_ok(bpt__mixed_shares_note(&shares, p, 4));
    for (size_t i = 0; i < sizeof numbers / sizeof *numbers; i++) {
        ++*numbers[i];
        assert_null(bpt__mixed_shares_find(&shares, p));
        --*numbers[i];
    }
    assert_int_equal(bpt__mixed_shares_find(&shares, p)->n_cores, 4);
    bpt__mixed_shares_clear(&shares);
}

/* What was measured for a network is nothing for one more of whose layers are frozen, but for what
 * only evaluates; and a process has those of all that the one before it had. */
static void test_frozen(void **state) {
    static const struct {
        const char *measured, *asked; /* first layers that learn; NULL: all do */
        bool found;
    } pairs[] = {{NULL, NULL, true},
                 {NULL, "fc1", false},
                 {"fc1", NULL, false},
                 {"fc1", "conv2", false},
                 {"fc1", "fc1", true}};
    (void)state;
    for (size_t i = 0; i < sizeof pairs / sizeof *pairs; i++) {
        net_fixture f = mixed_net(mixed_plain, 26), g = mixed_net(mixed_plain, 26);
        if (pairs[i].measured) net_assert_ok(bpt_model_freeze_before(f.model, pairs[i].measured));
        if (pairs[i].asked) net_assert_ok(bpt_model_freeze_before(g.model, pairs[i].asked));
        bpt_device *device = mixed_open(), *next = mixed_open();
        char path[] = "/tmp/bpt-shares-XXXXXX";
        const char *unlike;
        bpt_network *net;
        assert_int_equal(n_measured(&f, device), 1);
        assert_int_equal(n_measured(&f, device), 1);
        mixed_file(path, "");
        net_assert_ok(bpt_device_save_choices(device, path));
        net_assert_ok(bpt_device_load_choices(next, path, &unlike));
        assert_null(unlike);
        assert_int_equal(n_measured(&f, next), 0);
        assert_int_equal(n_measured(&g, next), pairs[i].found ? 0 : 1);
        assert_int_equal(n_measured(&f, next), pairs[i].found ? 0 : 1);
        for (int j = 0; j < 2; j++) { /* once for both */
            const bpt_model *model = j ? g.model : f.model;
            net_assert_ok(bpt_network_create_forward_on(next, model, BATCH, BPT_F32, f.pool, &net));
            bpt_network_free(net);
            assert_int_equal(next->n_measured, pairs[i].found ? 1 : 2);
        }
        unlink(path);
        bpt_device_close(next);
        bpt_device_close(device);
        net_close(&g);
        net_close(&f);
    }
}

/* Made-up values double until they are none any more; real ones may be 0. */
static void test_trial_without_numbers(void **state) {
    (void)state;
    char text[4096];
    size_t n = (size_t)snprintf(
        text, sizeof text, "{name: t, input: [1, 2, 2], classes: 3, layers: [relu: {name: a0}");
    for (int i = 1; i <= 70; i++)
        n += (size_t)snprintf(text + n, sizeof text - n,
                              ", add: {name: a%d, input: [a%d, a%d, a%d, a%d]}", i, i - 1, i - 1,
                              i - 1, i - 1);
    n += (size_t)snprintf(text + n, sizeof text - n, ", fc: {outputs: classes}]}");
    assert_true(n < sizeof text);
    net_fixture f = mixed_net(text, 17);
    bpt_device *device = mixed_open();
    bpt_network *net;
    net_assert_ok(
        bpt_network_create_on(device, f.model, BATCH, BPT_F32, mixed_learning, f.pool, &net));
    assert_non_null(strstr(bpt_network_sharing(net), "test:0 has all samples"));
    bpt_network_free(net);
    bpt_device_close(device);
    net_close(&f);
}

/* @return who computes, of a device that takes so long for a sample and does nothing */
static void assert_sharing(const net_fixture *f, uint64_t sample_ns, const char *what) {
    bpt_device *device;
    bpt_network *net;
    net_assert_ok(bpt_mixed_device_open(
        cores_device_open((cores_device_options){.sample_ns = sample_ns, .idles = true}), &device));
    net_assert_ok(
        bpt_network_create_on(device, f->model, f->batch, BPT_F32, mixed_learning, f->pool, &net));
    if (!strstr(bpt_network_sharing(net), what)) fail_msg("%s", bpt_network_sharing(net));
    bpt_network_free(net);
    bpt_device_close(device);
}

/* A device that takes far longer than the cores leaves them all, one that takes no time none. */
static void test_unlike_devices(void **state) {
    (void)state;
    net_fixture f = mixed_net(mixed_plain, 7);
    assert_sharing(&f, 10000000, "2 cores have all samples");
    assert_sharing(&f, 0, "test:0 has all samples");
    net_close(&f);
}

/* Hints of what comes next reach the device once a step, and none an update. */
static void test_hints(void **state) {
    (void)state;
    net_fixture f = mixed_net(mixed_plain, 13);
    unsigned n_hints = 0;
    bool refuses = false;
    const char *unlike;
    bpt_device *device;
    bpt_network *net;
    char path[] = "/tmp/bpt-shares-XXXXXX";
    bpt_batch_result r;
    bpt_device *other = mixed_open_sharing(&f, 0, 4); /* to have its file */
    net_assert_ok(
        bpt_network_create_on(other, f.model, BATCH, BPT_F32, mixed_learning, f.pool, &net));
    mixed_file(path, "");
    net_assert_ok(bpt_device_save_choices(other, path));
    bpt_network_free(net);
    bpt_device_close(other);
    net_assert_ok(bpt_mixed_device_open(
        cores_device_open((cores_device_options){.n_hints = &n_hints, .refuses = &refuses}),
        &device));
    net_assert_ok(bpt_device_load_choices(device, path, &unlike));
    unlink(path);
    net_assert_ok(
        bpt_network_create_on(device, f.model, BATCH, BPT_F32, mixed_learning, f.pool, &net));
    net_assert_ok(bpt_network_set(net, BPT_VECTOR_WEIGHTS, f.weights));
    for (int i = 0; i < 3; i++) {
        bpt_network_set_next(net, f.pixels);
        net_assert_ok(bpt_network_train(net, f.pixels, f.labels, 0.01f, BATCH, &r));
    }
    assert_int_equal(n_hints, 3);
    refuses = true; /* and an error of the device is one of the step */
    assert_int_equal(bpt_network_train(net, f.pixels, f.labels, 0.01f, BATCH, &r), BPT_EBACKEND);
    assert_int_equal(bpt_network_updates(net), 3);
    refuses = false;
    net_assert_ok(bpt_network_train(net, f.pixels, f.labels, 0.01f, BATCH, &r));
    bpt_network_free(net);
    bpt_device_close(device);
    net_close(&f);
}

static void test_forward_only(void **state) {
    static const int64_t shares[] = {0, 4, BATCH};
    (void)state;
    net_fixture f = mixed_net(mixed_plain, 8);
    for (size_t i = 0; i < sizeof shares / sizeof *shares; i++) {
        bpt_device *device = mixed_open_sharing(&f, 1, shares[i]);
        bpt_network *net;
        bpt_batch_result a, b;
        net_assert_ok(bpt_network_create_forward_on(device, f.model, BATCH, BPT_F32, f.pool, &net));
        net_assert_ok(bpt_network_set(net, BPT_VECTOR_WEIGHTS, f.weights));
        net_assert_ok(bpt_network_evaluate(f.net, f.pixels, f.labels, &a));
        net_assert_ok(bpt_network_evaluate(net, f.pixels, f.labels, &b));
        mixed_compare_results(&b, &a);
        bpt_network_memory plan = {0};
        if (shares[i] > 0)
            net_assert_ok(
                bpt_network_plan_forward(f.model, shares[i], BPT_F32, MIXED_WORKERS, &plan));
        assert_int_equal(bpt_network_host_memory_of(net).total, plan.total);
        bpt_network_free(net);
        bpt_device_close(device);
    }
    net_close(&f);
}

static void test_sharing(void **state) {
    (void)state;
    net_fixture f = mixed_net(mixed_plain, 9);
    mixed_shared s = mixed_share(&f, 4, mixed_learning);
    assert_string_equal(bpt_network_sharing(s.net),
                        "of 9 samples of a step test:0 has 5, 2 cores have 4");
    assert_string_equal(s.device->name, "test:0+cpu (cores)");
    assert_true(s.device->uses_cores && s.device->bf16);
    assert_int_equal(s.device->memory_bytes, 1 << 30);
    assert_int_equal(bpt_network_products_ns(s.net), 17);
    assert_null(bpt_network_sharing(f.net));
    mixed_unshare(&s);
    net_close(&f);
}

/* Of one core each verb is another. */
static void test_sharing_with_one_core(void **state) {
    (void)state;
    net_fixture f = net_open(mixed_plain, BATCH,
                             (net_options){.n_workers = 1, .learning = mixed_learning, .seed = 9});
    for (int64_t n = 4; n <= BATCH; n += 5) {
        bpt_device *device = mixed_open();
        bpt_network *net;
        char text[300];
        const char *unlike;
        snprintf(text, sizeof text,
                 "format: 1\nshares: [[0, 9, 0, %zu, %zu, %zu, 1, %d]]\ndevice: {kind: test}\n",
                 f.model->n_layers, f.n_weights, f.n_pixels / BATCH, (int)n);
        net_assert_ok(mixed_load(device, text, &unlike));
        net_assert_ok(
            bpt_network_create_on(device, f.model, BATCH, BPT_F32, mixed_learning, f.pool, &net));
        assert_string_equal(
            bpt_network_sharing(net),
            n < BATCH ? "of 9 samples of a step test:0 has 5, 1 core has 4"
                      : "1 core has all samples of a step, which test:0 would take longer "
                        "for");
        bpt_network_free(net);
        bpt_device_close(device);
    }
    net_close(&f);
}

/* Without instructions for them the cores are not even tried. */
static void test_bfloat16(void **state) {
    (void)state;
    const bool native = bpt_cpu_bf16() == BPT_BF16_NATIVE;
    net_fixture f = mixed_net(mixed_plain, 23);
    bpt_device *device = mixed_open();
    bpt_network *net;
    if (bpt_cpu_bf16() != BPT_BF16_NONE) {
        net_assert_ok(
            bpt_network_create_on(device, f.model, BATCH, BPT_BF16, mixed_learning, f.pool, &net));
        assert_int_equal(device->n_measured, native);
        assert_int_equal(strstr(bpt_network_sharing(net),
                                "test:0 has all samples of a step: the cores have no instructions "
                                "for bfloat16") != NULL,
                         !native);
        bpt_network_free(net);
    }
    net_assert_ok(
        bpt_network_create_on(device, f.model, BATCH, BPT_F32, mixed_learning, f.pool, &net));
    assert_int_equal(device->n_measured, native ? 2 : 1);
    assert_null(strstr(bpt_network_sharing(net), "bfloat16"));
    bpt_network_free(net);
    bpt_device_close(device);
    net_close(&f);
}

/* What the device itself has measured counts, too. */
static void test_kernels_are_counted(void **state) {
    (void)state;
    net_fixture f = mixed_net(mixed_plain, 24);
    bpt_device *device = mixed_open_sharing(&f, 0, 4);
    ((bpt_mixed_device *)device)->fast->n_measured = 3;
    assert_int_equal(n_measured(&f, device), 3);
    bpt_device_close(device);
    net_close(&f);
}

/* ---- memory of callers ---- */

static const void *pinned_at;
static size_t pinned_bytes;

static bool pin(const bpt_device *device, void *at, size_t bytes) {
    assert_string_equal(device->name, "test:0 (cores)");
    pinned_at = at;
    pinned_bytes = bytes;
    return bytes < 4 << 20;
}

static void unpin(const bpt_device *device, void *at) {
    assert_string_equal(device->name, "test:0 (cores)");
    assert_ptr_equal(at, pinned_at);
    pinned_at = NULL;
}

/* By the device, if it can. */
static void test_pins(void **state) {
    static float vector[1 << 19];
    bpt_device *device = mixed_open(), *fast = ((bpt_mixed_device *)device)->fast;
    bpt_device_kind pinning = *fast->kind;
    bpt_pinned pinned;
    (void)state;
    bpt_device_pin(device, vector, sizeof vector, &pinned);
    assert_null(pinned.device);
    bpt_device_unpin(&pinned);
    pinning.pin = pin;
    pinning.unpin = unpin;
    fast->kind = &pinning;
    bpt_device_pin(device, vector, sizeof vector, &pinned);
    assert_non_null(pinned.device);
    assert_ptr_equal(pinned_at, vector);
    assert_int_equal(pinned_bytes, sizeof vector);
    bpt_device_unpin(&pinned);
    assert_null(pinned_at);
    bpt_device_pin(device, vector, 4 << 20, &pinned); /* which it refuses */
    assert_null(pinned.device);
    bpt_device_close(device);
}

static void test_bad_files(void **state) {
    static const char *const texts[] = {
        "format: 1\nshares: []\n",
        "format: 1\nshares: 3\ndevice: {kind: test}\n",
        "format: 1\nshares: [[1, 2]]\ndevice: {kind: test}\n",
        "format: 1\nshares: [[0, 9, 0, 1, 1, 1, 1, 10]]\ndevice: {kind: test}\n",
        "format: 1\nshares: [[0, 9, 0, 1, 1, 1, 1, -1]]\ndevice: {kind: test}\n",
        "format: 1\nshares: [[0, 9, 0, 3, 1, 1, 1, 1, 0]]\ndevice: {kind: test}\n",
        "format: 1\nshares: [[0, 9, 0, 3, 1, 1, 1, 1, 3]]\ndevice: {kind: test}\n",
        "format: 1\nshares: [[0, 9, 0, 3, 1, 1, 1, 1, 2, 0]]\ndevice: {kind: test}\n",
        "format: 1\nshares: []\ndevice: {}\n",
        "format: 1\nshares: []\ndevice: {kind: test}\nmore: 1\n",
        "shares: []\ndevice: {kind: test}\n",
        "3",
    };
    const char *unlike;
    bpt_device *device = mixed_open();
    (void)state;
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++)
        assert_int_equal(mixed_load(device, texts[i], &unlike), BPT_EUSAGE);
    net_assert_ok(mixed_load(device, "format: 2\nothers: []\n", &unlike)); /* not looked into */
    assert_string_equal(unlike, "another format");
    net_assert_ok(
        mixed_load(device, "gpu: \"x\"\nkind: test\n", &unlike)); /* of the device alone */
    assert_null(unlike);
    net_assert_ok(mixed_load(device, "format: 1\nshares: []\ndevice: {kind: other}\n", &unlike));
    assert_non_null(unlike);
    bpt_device_close(device);
}

/* What was measured beside another device is nothing for this one. */
static void test_shares_of_another_device(void **state) {
    (void)state;
    net_fixture f = mixed_net(mixed_plain, 21);
    for (int other = 0; other < 2; other++) {
        bpt_device *device = mixed_open();
        char text[300];
        const char *unlike;
        snprintf(text, sizeof text,
                 "format: 1\nshares: [[0, 9, 0, %zu, %zu, %zu, %d, 4]]\ndevice: {kind: %s}\n",
                 f.model->n_layers, f.n_weights, f.n_pixels / BATCH, (int)MIXED_WORKERS,
                 other ? "other" : "test");
        net_assert_ok(mixed_load(device, text, &unlike));
        assert_int_equal(unlike != NULL, other);
        assert_int_equal(n_measured(&f, device), other);
        bpt_device_close(device);
    }
    net_close(&f);
}

/* Those of networks that are no more are not handed on for ever; and none is a list, too. */
static void test_what_is_written(void **state) {
    (void)state;
    net_fixture f = mixed_net(mixed_plain, 22);
    for (int used = 0; used < 2; used++) {
        bpt_device *device = mixed_open_sharing(&f, 0, 4);
        char path[] = "/tmp/bpt-shares-XXXXXX", *text;
        const char *unlike;
        size_t size;
        net_assert_ok(mixed_load(device,
                                 "format: 1\nshares: [[0, 77, 0, 1, 1, 1, 1, 3]]\n"
                                 "device: {kind: test}\n",
                                 &unlike));
        if (used) assert_int_equal(n_measured(&f, device), 0);
        mixed_file(path, "");
        net_assert_ok(bpt_device_save_choices(device, path));
        net_assert_ok(bpt_file_read(path, 4096, &text, &size));
        assert_null(strstr(text, "77"));
        assert_int_equal(strstr(text, "[0, 9, 0, ") != NULL, used);
        net_assert_ok(bpt_device_load_choices(device, path, &unlike));
        unlink(path);
        bpt_free(text);
        bpt_device_close(device);
    }
    net_close(&f);
}

/* ---- memory ---- */

/* The device's is what it takes for its samples, the host's that of the cores' part and of the
 * vector between them, which has what learns. */
static void check_memory(const char *first) {
    static const int64_t shares[] = {0, 4, BATCH};
    net_fixture f = mixed_net(mixed_plain, 15);
    if (first) net_freeze(&f, first, (net_options){.learning = mixed_learning});
    const size_t weights = bpt_network_memory_of(f.net).parameters;
    const size_t between = bpt_model_learned_elements(f.model) * sizeof(float);
    assert_int_equal(bpt_network_host_memory_of(f.net).total, 0);
    for (size_t i = 0; i < sizeof shares / sizeof *shares; i++) {
        const bool both = shares[i] > 0 && shares[i] < BATCH;
        const bpt_learning l = both ? (bpt_learning){.label_smoothing = 0.1} : mixed_learning;
        mixed_shared s = mixed_share(&f, shares[i], mixed_learning);
        const bpt_network_memory on_device = bpt_network_memory_of(s.net),
                                 on_host = bpt_network_host_memory_of(s.net);
        bpt_network_memory plan = {0};
        assert_int_equal(on_device.parameters, shares[i] < BATCH ? weights : 0);
        assert_int_equal(on_device.total > 0, shares[i] < BATCH);
        if (shares[i] > 0)
            net_assert_ok(bpt_network_plan(f.model, shares[i], BPT_F32, l, MIXED_WORKERS, &plan));
        assert_int_equal(on_host.parameters, plan.parameters);
        assert_int_equal(on_host.state, plan.state);
        assert_int_equal(on_host.total, plan.total + (both ? between : 0));
        assert_int_equal(on_host.workspaces, plan.workspaces + (both ? between : 0));
        mixed_unshare(&s);
    }
    net_close(&f);
}

static void test_memory(void **state) {
    (void)state;
    check_memory(NULL);
    check_memory("fc1");
}

static void test_steps_allocate_nothing(void **state) {
    (void)state;
    net_fixture f = mixed_net(mixed_plain, 10);
    mixed_shared s = mixed_share(&f, 4, mixed_learning);
    bpt_batch_result r;
    net_assert_ok(bpt_network_train(s.net, f.pixels, f.labels, 0.01f, BATCH, &r));
    const uint64_t before = bpt_memory_allocations();
    for (int i = 0; i < 3; i++)
        net_assert_ok(bpt_network_train(s.net, f.pixels, f.labels, 0.01f, BATCH, &r));
    assert_int_equal(bpt_memory_allocations(), before);
    mixed_unshare(&s);
    net_close(&f);
}

/* @return what creation says when allocation @p n fails; nothing is left in any case */
static bpt_status create_failing(const net_fixture *f, bpt_device *device, int64_t n) {
    bpt_network *net = NULL;
    const uint64_t live = bpt_memory_live();
    bpt_memory_fail_at(n);
    const bpt_status status =
        bpt_network_create_on(device, f->model, f->batch, BPT_F32, mixed_learning, f->pool, &net);
    bpt_memory_fail_at(-1);
    if (status == BPT_OK) bpt_network_free(net);
    assert_int_equal(bpt_memory_live(), live);
    return status;
}

static void test_no_memory(void **state) {
    (void)state;
    net_fixture f = net_open(net_tiny, 3, (net_options){.n_workers = MIXED_WORKERS, .seed = 11});
    bpt_device *device = mixed_open_sharing(&f, 0, 1);
    int64_t n = 0;
    while (create_failing(&f, device, n) == BPT_ENOMEM) n++;
    assert_true(n > 20);
    bpt_device_close(device);
    net_close(&f);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_trial),
        cmocka_unit_test(test_unlike_devices),
        cmocka_unit_test(test_least),
        cmocka_unit_test(test_least_of_evaluation),
        cmocka_unit_test(test_other_problems),
        cmocka_unit_test(test_frozen),
        cmocka_unit_test(test_trial_without_numbers),
        cmocka_unit_test(test_hints),
        cmocka_unit_test(test_forward_only),
        cmocka_unit_test(test_sharing),
        cmocka_unit_test(test_sharing_with_one_core),
        cmocka_unit_test(test_bfloat16),
        cmocka_unit_test(test_kernels_are_counted),
        cmocka_unit_test(test_pins),
        cmocka_unit_test(test_bad_files),
        cmocka_unit_test(test_shares_of_another_device),
        cmocka_unit_test(test_what_is_written),
        cmocka_unit_test(test_no_memory),
        cmocka_unit_test(test_memory),
        cmocka_unit_test(test_steps_allocate_nothing),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
