/* Which kernels convolutions get: no layer may end in oneDNN's plain loops, whatever its channels
 * and the instruction set, and what it computes there is right. CMakeLists.txt runs this once for
 * each of several instruction sets, which oneDNN takes from ONEDNN_MAX_CPU_ISA.
 *
 * ctest: cpu TIMEOUT=60 */
#include "inner/cpu/cpu_winograd.h"
#include "inner/network/network_private.h"
#include "tests/inner/conv_fixture.h"
#include "tests/inner/processor.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Last: it needs those above, and defines fail and skip. */
#include <cmocka.h>

enum { SEED = 20271 };

static const int counts[] = {1, 3, 4, 6, 8, 12, 16, 20};
enum { N_COUNTS = sizeof counts / sizeof *counts };

/* Two convolutions: the first needs no gradient of its input, the second does. */
static net_fixture open_channels(int in, int between, int kernel, int64_t batch,
                                 bpt_value_type type) {
    char text[256];
    snprintf(text, sizeof text,
             "{name: t, input: [%d, 9, 10], classes: 3, layers: ["
             "conv: {name: a, filters: %d, kernel: %d}, relu, "
             "conv: {name: b, filters: %d, kernel: 3, pad: 1}, fc: {outputs: classes}]}",
             in, between, kernel, between + 4);
    return net_open(text, batch, (net_options){.n_workers = 1, .seed = SEED, .activations = type});
}

static bool is_convolution(bpt_task_info info) {
    const bool known = strcmp(info.label, "a") == 0 || strcmp(info.label, "b") == 0;
    return known && conv_is_step(info);
}

static void check_kernels(const net_fixture *f) {
    const bpt_builder *b = &f->net->builder;
    size_t n = 0;
    for (size_t i = 0; i < b->n_tasks; i++) {
        const bpt_step_task *task = &b->tasks[i];
        if (!is_convolution(task->info)) continue;
        const char *name = bpt_kernel_implementation(task->arg);
        n++;
        if (strncmp(name, "ref", 3) == 0)
            fail_msg("%d channels: %s of %s is %s", (int)f->model->input.c, task->info.kind,
                     task->info.label, name);
    }
    assert_int_equal(n, 5 * b->n_tiles);
}

static void check_gradient(const net_fixture *f) {
    conv_check_gradient(f, 4e-6, 1e-3);
}

static void check_channels(int in, int between, int kernel) {
    net_fixture f = open_channels(in, between, kernel, 5, BPT_F32);
    check_kernels(&f);
    check_gradient(&f);
    net_close(&f);
}

static void test_channels_of_the_input(void **state) {
    (void)state;
    for (int i = 0; i < N_COUNTS; i++) {
        check_channels(counts[i], 20, 5);
        check_channels(counts[i], 16, 3);
    }
}

static void test_channels_between(void **state) {
    (void)state;
    for (int i = 0; i < N_COUNTS; i++) {
        check_channels(1, counts[i], 3);
        check_channels(3, counts[i], 1);
    }
}

/* Values are checked in test_bf16.c. */
static void test_channels_in_bf16(void **state) {
    (void)state;
    if (bpt_cpu_bf16() == BPT_BF16_NONE) skip();
    for (int i = 0; i < N_COUNTS; i++)
        for (int k = 0; k < 3 * N_COUNTS; k++) {
            net_fixture f = open_channels(counts[i], counts[k / 3], 1 + 2 * (k % 3), 5, BPT_BF16);
            check_kernels(&f);
            net_close(&f);
        }
}

/* ---- Winograd's algorithm ---- */

static bool suits(int64_t n, int64_t c, int64_t k, int64_t side) {
    const bpt_conv_problem p = conv_square(n, c, k, side);
    return bpt_conv_suits_winograd(&p);
}

/* Patches of bfloat16 are 2x2: fewer values to multiply are saved, and more to transform. */
static void test_what_suits_winograd_in_bf16(void **state) {
    (void)state;
    bpt_conv_problem p = conv_square(1, 64, 64, 32);
    p.type = BPT_BF16;
    assert_true(bpt_conv_suits_winograd(&p));
    p.n = 2, p.h = p.w = p.p = p.q = 16; /* 128 patches */
    assert_true(bpt_conv_suits_winograd(&p));
    p.n = 1;
    assert_false(bpt_conv_suits_winograd(&p));
    p = conv_square(128, 64, 64, 1); /* three quarters of a patch are outside */
    p.type = BPT_BF16;
    assert_false(bpt_conv_suits_winograd(&p));
    p = conv_square(64, 32, 64, 32);
    p.type = BPT_BF16;
    assert_false(bpt_conv_suits_winograd(&p));
    p = conv_square(64, 64, 32, 32);
    p.type = BPT_BF16;
    assert_false(bpt_conv_suits_winograd(&p));
}

static void test_what_suits_winograd(void **state) {
    (void)state;
    assert_true(suits(1, 64, 64, 56));
    assert_true(suits(4, 256, 256, 14));
    assert_true(suits(8, 384, 256, 13));
    assert_true(suits(32, 32, 32, 16));
    assert_true(suits(4, 512, 512, 7)); /* 16 patches */
    assert_false(suits(3, 512, 512, 7));
    assert_true(suits(16, 512, 512, 4));
    assert_false(suits(15, 512, 512, 4));
    assert_false(suits(64, 64, 64, 2)); /* three quarters of a patch are outside */
    assert_false(suits(32, 16, 16, 32));
    assert_false(suits(32, 3, 64, 32));

    bpt_conv_problem p = conv_square(8, 64, 64, 32);
    p.pad[0] = p.pad[1] = 0;
    p.h = p.w = 34;
    assert_true(bpt_conv_suits_winograd(&p));
    bpt_conv_problem other = p;
    other.stride[1] = 2;
    assert_false(bpt_conv_suits_winograd(&other));
    other = p;
    other.dilation[0] = 2;
    assert_false(bpt_conv_suits_winograd(&other));
    other = p;
    other.groups = 2;
    assert_false(bpt_conv_suits_winograd(&other));
    other = p;
    other.r = 5;
    assert_false(bpt_conv_suits_winograd(&other));
    other = p;
    other.h = other.w = 32;
    other.pad[0] = other.pad[1] = 1;
    assert_true(bpt_conv_suits_winograd(&other));
    other.pad[1] = 0; /* so one at the end */
    other.w = 33;
    assert_false(bpt_conv_suits_winograd(&other));
    other.pad[1] = 2;
    other.w = 30;
    assert_false(bpt_conv_suits_winograd(&other));
}

/* There are kernels of it, of all three steps, for what has AVX2; elsewhere the direct ones remain.
 */
static bool has_winograd(void) {
    const char *limit = getenv("ONEDNN_MAX_CPU_ISA");
    const bool less = limit && (strcmp(limit, "SSE41") == 0 || strcmp(limit, "AVX") == 0);
    return processor_has_avx2() && !less;
}

static bool has_kernels(int64_t n, int64_t c, int64_t k, int64_t side) {
    const bpt_conv_problem p = conv_square(n, c, k, side);
    bpt_cpu *cpu;
    bool has;
    net_assert_ok(bpt_cpu_create(1, &cpu));
    net_assert_ok(bpt_cpu_conv_has_winograd(cpu, &p, &has));
    bpt_cpu_free(cpu);
    return has;
}

/* Layers of vgg16: transformed they are 467, 191, 113 and 120 MB. Kernels take a sample at a time
 * if need be, but filters as a whole. */
static void test_winograd_in_little_memory(void **state) {
    (void)state;
    assert_int_equal(has_kernels(16, 128, 128, 112), has_winograd());
    assert_int_equal(has_kernels(16, 512, 512, 28), has_winograd());
    assert_int_equal(has_kernels(16, 512, 512, 14), has_winograd());
    assert_int_equal(has_kernels(4, 128, 128, 112), has_winograd());
    assert_false(has_kernels(16, 2048, 2048, 14));
}

static net_fixture open_winograd(int c, int k, int h, int w, int pad, bool bias, int64_t batch,
                                 net_cuts cuts) {
    char text[256];
    snprintf(text, sizeof text,
             "{name: from-%d-to-%d, input: [3, %d, %d], classes: 3, layers: ["
             "conv: {name: a, filters: %d, kernel: 3, pad: 1}, relu, "
             "conv: {name: b, filters: %d, kernel: 3, pad: %d, bias: %s}, relu, "
             "fc: {outputs: classes}]}",
             c, k, h, w, c, k, pad, bias ? "true" : "false");
    return net_open_cut(text, batch, (net_options){.n_workers = 1, .seed = SEED}, cuts);
}

static void check_winograd_of(int c, int k, int h, int w, int pad, bool bias, int64_t batch) {
    net_fixture f = open_winograd(c, k, h, w, pad, bias, batch, (net_cuts){0});
    conv_check_algorithm(&f, "b", has_winograd());
    check_gradient(&f);
    net_close(&f);
}

static void check_winograd(int c, int k, int h, int w, int pad, bool bias) {
    check_winograd_of(c, k, h, w, pad, bias, 16);
}

/* Tiles of two samples, too large for one product: 9 MiB would lie between. */
static void test_winograd_in_several_products(void **state) {
    (void)state;
    if (!has_winograd()) skip();
    check_winograd_of(32, 32, 89, 87, 1, true, 5);
}

/* @return the plan of weights' gradients of layer b in the task, NULL if it is no such task */
static const bpt__winograd *weights_plan(const bpt_step_task *task) {
    if (strcmp(task->info.label, "b") != 0 || strcmp(task->info.kind, "backward weights") != 0)
        return NULL;
    assert_non_null(((const bpt_kernel *)task->arg)->winograd);
    return ((const bpt_kernel *)task->arg)->winograd;
}

/* How all kernels of layer b make weights' gradients. */
static void check_products(const net_fixture *f, int64_t n_products, int64_t samples,
                           int64_t n_ranges) {
    const bpt_builder *b = &f->net->builder;
    size_t n = 0;
    for (size_t i = 0; i < b->n_tasks; i++) {
        const bpt__winograd *w = weights_plan(&b->tasks[i]);
        if (!w) continue;
        assert_int_equal(w->n_products, n_products);
        assert_int_equal(w->in.n, samples);
        /* 13 blocks of 16 channels, the last of which has spare ones, are 25 of 8. */
        assert_int_equal(w->n_ranges, n_ranges == 13 && w->in.lanes == 8 ? 5 : n_ranges);
        n++;
    }
    assert_true(n > 0);
}

/* Chunks of nine samples, of which a product takes eight at most: five and four where there are no
 * tasks of their own. */
static void test_winograd_in_products_of_unlike_samples(void **state) {
    (void)state;
    if (!has_winograd()) skip();
    net_fixture f = open_winograd(64, 64, 16, 16, 1, true, 36, (net_cuts){0});
    check_products(&f, 2, 5, 1);
    check_gradient(&f);
    net_close(&f);
}

/* Filters that are larger than what is multiplied to their gradients: 9 MiB in blocks of channels
 * that can be halved, 7 MiB in others, and such as fit in one range. */
static void test_winograd_in_ranges(void **state) {
    (void)state;
    if (!has_winograd()) skip();
    net_fixture f;
#ifndef __SANITIZE_ADDRESS__ /* for which it takes long */
    f = open_winograd(256, 256, 8, 8, 1, true, 16, (net_cuts){0});
    check_products(&f, 1, 4, 4);
    check_gradient(&f);
    net_close(&f);
#endif
    f = open_winograd(200, 256, 9, 7, 0, false, 16, (net_cuts){0});
    check_products(&f, 1, 4, 13);
    check_gradient(&f);
    net_close(&f);
    f = open_winograd(128, 128, 8, 8, 1, true, 32, (net_cuts){0});
    check_products(&f, 1, 8, 1);
    check_gradient(&f);
    net_close(&f);
}

/* Sides and channels that fill their patches and blocks, and others. */
static void test_winograd(void **state) {
    (void)state;
    check_winograd(32, 32, 16, 16, 1, true);
    check_winograd(48, 32, 13, 15, 1, false);
    check_winograd(32, 64, 17, 14, 0, true);
    check_winograd(40, 36, 14, 18, 1, true);
}

/* Tiles of one sample and of two, of which only those of two have 16 patches. */
static void test_tiles_are_alike(void **state) {
    (void)state;
    enum { SIDE = 12 };
    assert_false(suits(1, 32, 32, 12));
    assert_true(suits(2, 32, 32, 12));
    for (int64_t batch = 5; batch <= 8; batch++) {
        net_fixture f = open_winograd(32, 32, SIDE, SIDE, 1, true, batch, (net_cuts){0});
        conv_check_algorithm(&f, "b", batch == 8 && has_winograd());
        check_gradient(&f);
        net_close(&f);
    }
}

/* Descriptors of oneDNN's, of up to 100 KB each, that tasks of one step of a layer have between
 * them. */
static size_t descriptors_of(const net_fixture *f, const char *label, const char *kind) {
    enum { MOST = 64 };
    const_dnnl_primitive_desc_t found[MOST];
    const bpt_builder *b = &f->net->builder;
    size_t n = 0;
    for (size_t i = 0; i < b->n_tasks; i++) {
        const bpt_step_task *task = &b->tasks[i];
        if (strcmp(task->info.label, label) != 0 || strcmp(task->info.kind, kind) != 0) continue;
        const bpt_kernel *k = task->arg;
        size_t at = 0;
        while (at < n && found[at] != k->pd) at++;
        if (at == n && n < MOST) found[n++] = k->pd;
    }
    return n;
}

/* Those of the first tile may have been made while layouts were still open. */
static void test_tiles_share_descriptors(void **state) {
    static const char *const kinds[] = {"forward", "backward data", "backward weights"};
    (void)state;
    net_fixture f = open_winograd(32, 32, 16, 16, 1, true, 256, (net_cuts){0});
    conv_check_algorithm(&f, "b", has_winograd());
    for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++) {
        assert_true(conv_tasks(&f, "b", kinds[i]) >= 8);
        assert_in_range(descriptors_of(&f, "b", kinds[i]), 1, 2);
        if (conv_tasks(&f, "a", kinds[i]) > 0)
            assert_in_range(descriptors_of(&f, "a", kinds[i]), 1, 2);
    }
    net_close(&f);
}

static void test_no_winograd_for_wide_pads(void **state) {
    (void)state;
    net_fixture f = open_winograd(32, 32, 15, 16, 2, true, 16, (net_cuts){0});
    conv_check_algorithm(&f, "b", false);
    check_gradient(&f);
    net_close(&f);
}

/* Though only one step is cut. */
static void test_no_winograd_for_rows(void **state) {
    (void)state;
    const net_cuts cuts = {.step = {[BPT_CONV_BACKWARD_DATA] = {.rows = 2}}};
    net_fixture f = open_winograd(32, 32, 16, 16, 1, true, 16, cuts);
    conv_check_algorithm(&f, "b", false);
    check_gradient(&f);
    net_close(&f);
}

/* ---- orders of activations ---- */

/* @return lanes of the results of a convolution of 5x5 behind another layer, or 0: not by AVX-512
 */
static int64_t lanes_of(int c, int k) {
    char text[256];
    int64_t lanes = 0;
    snprintf(text, sizeof text,
             "{name: t, input: [1, 12, 12], classes: 3, layers: [conv: {name: a, filters: %d, "
             "kernel: 1}, conv: {name: b, filters: %d, kernel: 5}, fc: {outputs: classes}]}",
             c, k);
    net_fixture f = net_open(text, 1, (net_options){.n_workers = 1, .seed = SEED});
    const bpt_builder *b = &f.net->builder;
    for (size_t i = 0; i < b->n_tasks; i++) {
        const bpt_step_task *task = &b->tasks[i];
        if (strcmp(task->info.kind, "forward") != 0 || strcmp(task->info.label, "b") != 0) continue;
        if (!strstr(bpt_kernel_implementation(task->arg), "avx512")) continue;
        net_assert_ok(bpt_layout_lanes(b->cpu, bpt_kernel_layout(task->arg, BPT_SLOT_DST),
                                       (int64_t[]){1, k, 8, 8}, &lanes));
    }
    check_gradient(&f);
    net_close(&f);
    return lanes;
}

/* Blocks of 16 channels, or channels last where blocks would hold half as many again. */
static void test_channels_that_fill_no_block(void **state) {
    (void)state;
    if (lanes_of(32, 32) == 0) skip();
    assert_int_equal(lanes_of(32, 32), 16);
    assert_int_equal(lanes_of(28, 50), 16);
    assert_int_equal(lanes_of(20, 50), 50);
    assert_int_equal(lanes_of(33, 17), 17);
}

/* With strides, oneDNN's kernels of 1x1 write behind their scratch memory if channels are last and
 * fewer than a vector's: the step ended with a crash. */
static void test_strides_without_a_window(void **state) {
    static const int channels[] = {1, 3, 4, 7};
    (void)state;
    for (size_t i = 0; i < sizeof channels / sizeof *channels; i++)
        for (unsigned rows = 0; rows <= 2; rows += 2) {
            char text[256];
            snprintf(text, sizeof text,
                     "{name: t, input: [%d, 64, 64], classes: 10, layers: [conv: {filters: 4, "
                     "kernel: 1, stride: 2}, relu, fc: {outputs: classes}]}",
                     channels[i]);
            const net_cuts cuts = {.step = {[BPT_CONV_FORWARD] = {.rows = rows}}};
            net_fixture f =
                net_open_cut(text, 32, (net_options){.n_workers = 2, .seed = SEED}, cuts);
            check_gradient(&f);
            net_close(&f);
        }
}

/* Images of one pixel lie alike in several orders, but weights do not: the code of a kernel is that
 * of its own order, though the same layer beside it has the other one. The first test of all: which
 * code is kept hangs on what the process has made before. */
static void test_one_pixel_in_two_orders(void **state) {
    static const char text[] =
        "{name: t, input: [5, 1, 1], classes: 3, layers: [conv: {name: c, filters: 29, kernel: 1}, "
        "conv: {name: a, input: c, filters: 96, kernel: 1}, "
        "conv: {name: b, input: c, filters: 96, kernel: 1}, "
        "add: {input: [a, b]}, relu, fc: {outputs: classes}]}";
    const bpt_cut cut = {.samples = 2, .rows = 3}; /* wants channels last, though of one row */
    int32_t label = 1;
    (void)state;
    net_fixture f = {.model = net_parse(text), .pool = net_pool(1), .batch = 1, .n_pixels = 5};
    f.n_weights = f.model->segments.n_elements;
    f.weights = net_floats(f.n_weights);
    f.pixels = net_floats(f.n_pixels);
    f.labels = &label;
    bpt_segments_initialise(&f.model->segments, SEED, f.weights);
    for (size_t i = 0; i < f.n_pixels; i++) f.pixels[i] = 1.0f - 0.25f * (float)i;
    net_assert_ok(bpt_model_set_cut(f.model, "a", BPT_CONV_BACKWARD_WEIGHTS, cut));
    net_assert_ok(bpt_network_create(f.model, 1, BPT_F32, (bpt_learning){0}, f.pool, &f.net));
    net_assert_ok(bpt_network_set(f.net, BPT_VECTOR_WEIGHTS, f.weights));
    check_gradient(&f);
    f.labels = NULL;
    net_close(&f);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_one_pixel_in_two_orders),
        cmocka_unit_test(test_channels_of_the_input),
        cmocka_unit_test(test_channels_between),
        cmocka_unit_test(test_channels_in_bf16),
        cmocka_unit_test(test_what_suits_winograd),
        cmocka_unit_test(test_what_suits_winograd_in_bf16),
        cmocka_unit_test(test_winograd),
        cmocka_unit_test(test_winograd_in_several_products),
        cmocka_unit_test(test_winograd_in_products_of_unlike_samples),
        cmocka_unit_test(test_winograd_in_ranges),
        cmocka_unit_test(test_winograd_in_little_memory),
        cmocka_unit_test(test_tiles_are_alike),
        cmocka_unit_test(test_tiles_share_descriptors),
        cmocka_unit_test(test_no_winograd_for_wide_pads),
        cmocka_unit_test(test_no_winograd_for_rows),
        cmocka_unit_test(test_channels_that_fill_no_block),
        cmocka_unit_test(test_strides_without_a_window),
    };
    print_message("seed %d\n", (int)SEED);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
