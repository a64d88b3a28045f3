/* Convolutions of images that are smaller than their windows, strides or pads, and with windows
 * that leave values out, by kernels for bfloat16: gradients of weights against sums of whole
 * numbers, which have to be exact. In all orders that kernels take, also those that no layer would
 * have here. CMakeLists.txt fills memory that nobody has written, so that it is not taken for
 * zeros; scratch and what is around operands are filled here, with NaNs: 0 times these is not 0
 * either.
 *
 * ctest: cpu TIMEOUT=60 */
#include "base/random.h"
#include "inner/cpu/cpu_private.h"
#include "tests/inner/conv_fixture.h"
#include "tests/ref/ref.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

/* Last: it needs those above, and defines fail and skip. */
#include <cmocka.h>

enum { SEED = 30091, N_SAMPLES = 2, NANS = 0xFF /* bytes of such, of either type */ };

typedef enum { CHOSEN, LAST, PLAIN, N_ORDERS } order;

/* A kernel of weights' gradients, from and to plain floats. */
typedef struct {
    bpt_cpu *cpu;
    bpt_blocks blocks;
    const bpt_conv_problem *problem;
    bpt_kernel *take_x, *take_dy, *gradient, *give;
} gradient;

static const bpt_layout *plain(const gradient *g, const int64_t *dims, int n_dims) {
    const bpt_layout *layout;
    net_assert_ok(bpt_layout_plain(g->cpu, BPT_F32, dims, n_dims, &layout));
    return layout;
}

static const bpt_layout *activation(const gradient *g, order o, const int64_t *dims) {
    const bpt_layout *layout = NULL;
    if (o == LAST) net_assert_ok(bpt_layout_channels_last(g->cpu, BPT_BF16, dims, &layout));
    if (o == PLAIN) net_assert_ok(bpt_layout_plain(g->cpu, BPT_BF16, dims, 4, &layout));
    return layout;
}

static bpt_ref put(gradient *g, bpt_kernel *k, bpt_slot slot) {
    const bpt_ref ref = bpt_blocks_reserve(&g->blocks, BPT_BLOCK_ACTIVATIONS,
                                           bpt_layout_bytes(bpt_kernel_layout(k, slot)));
    bpt_kernel_bind(k, slot, ref);
    return ref;
}

/* A tensor between two kernels. */
static void link_slots(gradient *g, bpt_kernel *from, bpt_slot out, bpt_kernel *to, bpt_slot in) {
    bpt_kernel_bind(to, in, put(g, from, out));
}

static void start(gradient *g) {
    net_assert_ok(bpt_blocks_allocate(&g->blocks, 0));
    net_assert_ok(bpt_cpu_resolve(g->cpu, BPT_BLOCK_ACTIVATIONS, &g->blocks));
    net_assert_ok(bpt_cpu_prepare(g->cpu));
    memset(g->blocks.base[BPT_BLOCK_ACTIVATIONS], NANS, g->blocks.bytes[BPT_BLOCK_ACTIVATIONS]);
}

/* @return false: there is no such kernel, or one of plain loops */
static bool open_gradient(gradient *g, const bpt_conv_problem *p, order o) {
    const int64_t x[] = {p->n, p->c, p->h, p->w}, y[] = {p->n, p->k, p->p, p->q};
    int64_t w[5];
    const int n_w = bpt_conv_weight_dims(p, w);
    bpt_kernel *forward;
    *g = (gradient){.problem = p};
    net_assert_ok(bpt_cpu_create(1, &g->cpu));
    if (bpt_cpu_conv_forward(g->cpu, p, activation(g, o, x), NULL, activation(g, o, y), &forward) !=
            BPT_OK ||
        bpt_cpu_conv_backward_weights(g->cpu, p, forward, NULL, &g->gradient) != BPT_OK)
        return false;
    if (strncmp(bpt_kernel_implementation(g->gradient), "ref", 3) == 0) return false;
    net_assert_ok(bpt_cpu_reorder(g->cpu, plain(g, x, 4),
                                  bpt_kernel_layout(g->gradient, BPT_SLOT_SRC), &g->take_x));
    net_assert_ok(bpt_cpu_reorder(g->cpu, plain(g, y, 4),
                                  bpt_kernel_layout(g->gradient, BPT_SLOT_DIFF_DST), &g->take_dy));
    net_assert_ok(bpt_cpu_reorder(g->cpu, bpt_kernel_layout(g->gradient, BPT_SLOT_DIFF_WEIGHTS),
                                  plain(g, w, n_w), &g->give));
    return true;
}

static void close_gradient(gradient *g) {
    bpt_cpu_free(g->cpu);
    bpt_blocks_release(&g->blocks);
}

/* Whole numbers from -2 to 2, which bfloat16 has, as their products and sums in floats. */
static void fill(float *x, size_t n, uint64_t id) {
    bpt_random r = bpt_random_stream(SEED, BPT_PURPOSE_TEST, id);
    for (size_t i = 0; i < n; i++) x[i] = (float)bpt_random_below(&r, 5) - 2.0f;
}

static void check(const gradient *g, const float *x, const float *dy, const float *dw) {
    const bpt_conv_problem *p = g->problem;
    const ref_window a = {.n = p->n,
                          .c = p->c,
                          .h = p->h,
                          .w = p->w,
                          .k = p->k,
                          .r = p->r,
                          .s = p->s,
                          .stride = {p->stride[0], p->stride[1]},
                          .pad = {p->pad[0], p->pad[1]},
                          .dilation = {p->dilation[0], p->dilation[1]},
                          .groups = p->groups};
    const size_t n_w = (size_t)(p->k * p->c / p->groups * p->r * p->s);
    double *ref_x = ref_doubles(x, (size_t)(p->n * p->c * p->h * p->w));
    double *ref_dy = ref_doubles(dy, (size_t)(p->n * p->k * p->p * p->q));
    double *ref_dw = ref_zeros(n_w);
    ref_conv_backward_weight(&a, ref_x, ref_dy, ref_dw);
    for (size_t i = 0; i < n_w; i++)
        if ((double)dw[i] != ref_dw[i])
            fail_msg(
                "%s: %d to %d channels, %d groups, image %dx%d, kernel %dx%d, stride %d, pad "
                "%d: gradient %zu is %g, not %g",
                bpt_kernel_implementation(g->gradient), (int)p->c, (int)p->k, (int)p->groups,
                (int)p->h, (int)p->w, (int)p->r, (int)p->s, (int)p->stride[0], (int)p->pad[0], i,
                (double)dw[i], ref_dw[i]);
    free(ref_x);
    free(ref_dy);
    free(ref_dw);
}

static bool check_in(const bpt_conv_problem *p, order o) {
    gradient g;
    const bool has = open_gradient(&g, p, o);
    if (has) {
        const bpt_ref x = put(&g, g.take_x, BPT_SLOT_SRC), dy = put(&g, g.take_dy, BPT_SLOT_SRC);
        link_slots(&g, g.take_x, BPT_SLOT_DST, g.gradient, BPT_SLOT_SRC);
        link_slots(&g, g.take_dy, BPT_SLOT_DST, g.gradient, BPT_SLOT_DIFF_DST);
        link_slots(&g, g.gradient, BPT_SLOT_DIFF_WEIGHTS, g.give, BPT_SLOT_SRC);
        const bpt_ref dw = put(&g, g.give, BPT_SLOT_DST);
        start(&g);
        fill(bpt_at(&g.blocks, x), (size_t)(p->n * p->c * p->h * p->w), 1);
        fill(bpt_at(&g.blocks, dy), (size_t)(p->n * p->k * p->p * p->q), 2);
        net_assert_ok(bpt_kernel_run(g.take_x, 0));
        net_assert_ok(bpt_kernel_run(g.take_dy, 0));
        memset(g.cpu->scratch[0], NANS, bpt_cpu_scratch_bytes(g.cpu));
        net_assert_ok(bpt_kernel_run(g.gradient, 0));
        net_assert_ok(bpt_kernel_run(g.give, 0));
        check(&g, bpt_at(&g.blocks, x), bpt_at(&g.blocks, dy), bpt_at(&g.blocks, dw));
    }
    close_gradient(&g);
    return has;
}

static int64_t outputs(const bpt_conv_problem *p, int64_t in, int64_t kernel, int axis) {
    const int64_t reach = (kernel - 1) * p->dilation[axis] + 1, room = in + 2 * p->pad[axis];
    return room < reach ? 0 : (room - reach) / p->stride[axis] + 1;
}

/* @return in how many orders there was a kernel */
static size_t check_orders(bpt_conv_problem p) {
    size_t n = 0;
    p.p = outputs(&p, p.h, p.r, 0);
    p.q = outputs(&p, p.w, p.s, 1);
    for (int o = 0; o < N_ORDERS && p.p > 0 && p.q > 0; o++) n += check_in(&p, (order)o);
    return n;
}

/* Kernels of K x K, and of K x 1. */
static size_t check_kernels(bpt_conv_problem p, int64_t kernel, int64_t pad) {
    p.r = p.s = kernel;
    p.pad[0] = p.pad[1] = pad;
    size_t n = check_orders(p);
    p.s = 1;
    p.pad[1] = 0;
    return n + check_orders(p);
}

/* Images of 1x1 to 2x3 under kernels of up to 7x7, with pads and without. */
static size_t check_channels(int64_t c, int64_t k, int64_t groups) {
    bpt_conv_problem p = {
        .n = N_SAMPLES, .c = c, .k = k, .dilation = {1, 1}, .groups = groups, .type = BPT_BF16};
    size_t n = 0;
    for (int64_t size = 0; size < 6; size++)
        for (int64_t kernel = 1; kernel <= 7; kernel++)
            for (int64_t stride = 1; stride <= 4; stride++) {
                p.h = 1 + size % 2;
                p.w = 1 + size / 2;
                p.stride[0] = p.stride[1] = stride;
                n += check_kernels(p, kernel, 0);
                if (kernel > 1) n += check_kernels(p, kernel, kernel / 2);
            }
    return n;
}

static void test_gradients_of_weights(void **state) {
    static const int64_t channels[][3] = {{5, 8, 1}, {7, 16, 1},  {16, 16, 1},  {139, 3, 1},
                                          {1, 1, 1}, {32, 32, 2}, {32, 32, 32}, {5, 5, 5}};
    (void)state;
    if (bpt_cpu_bf16() == BPT_BF16_NONE) skip();
    for (size_t i = 0; i < sizeof channels / sizeof *channels; i++)
        assert_true(check_channels(channels[i][0], channels[i][1], channels[i][2]) > 0);
}

/* Windows that leave values out, over rows that are longer than what kernels take at once. */
static void test_dilated_windows(void **state) {
    static const int64_t channels[][3] = {{16, 16, 1}, {20, 50, 1}, {17, 3, 1},
                                          {3, 3, 3},   {34, 34, 2}, {16, 16, 16}};
    static const int64_t widths[] = {14, 28, 31, 41, 70};
    size_t n = 0;
    (void)state;
    if (bpt_cpu_bf16() == BPT_BF16_NONE) skip();
    for (size_t i = 0; i < sizeof channels / sizeof *channels; i++)
        for (size_t w = 0; w < sizeof widths / sizeof *widths; w++)
            for (int64_t dilation = 2; dilation <= 3; dilation++) {
                const bpt_conv_problem p = {.n = N_SAMPLES,
                                            .c = channels[i][0],
                                            .k = channels[i][1],
                                            .groups = channels[i][2],
                                            .h = 7,
                                            .w = widths[w],
                                            .stride = {1, 1},
                                            .dilation = {dilation, dilation},
                                            .type = BPT_BF16};
                n += check_kernels(p, 1, 0) + check_kernels(p, 3, dilation);
            }
    assert_true(n > 0);
}

/* The last of its layers have images of one pixel, and strides of two. */
static void test_mobilenet(void **state) {
    const bpt_model_override override = {.input = {3, 16, 16}, .classes = 10};
    const net_options options = {.n_workers = 2, .seed = SEED, .activations = BPT_BF16};
    bpt_batch_result result;
    (void)state;
    if (bpt_cpu_bf16() == BPT_BF16_NONE) skip();
    net_fixture f = net_open_built_in("mobilenet", &override, 8, options, NULL);
    net_assert_ok(bpt_network_gradient(f.net, f.pixels, f.labels, 8.0f, &result));
    float *first = net_vector(&f, BPT_VECTOR_GRADIENTS);
    net_assert_ok(bpt_network_gradient(f.net, f.pixels, f.labels, 8.0f, &result));
    float *again = net_vector(&f, BPT_VECTOR_GRADIENTS);
    net_assert_same_bits("gradient", first, again, f.n_weights);
    free(first);
    free(again);
    net_close(&f);
}

/* What is gathered needs no such kernel, and stays in blocks of channels. */
static void test_gathered_gradient(void **state) {
    static const char text[] =
        "{name: t, input: [3, 2, 2], classes: 3, layers: [conv: {name: a, filters: 256, kernel: "
        "2}, conv: {name: b, filters: 256, kernel: 3, stride: 2, pad: 1}, fc: {outputs: classes}]}";
    const net_options options = {.n_workers = 1, .seed = SEED, .activations = BPT_BF16};
    (void)state;
    if (bpt_cpu_bf16() != BPT_BF16_NATIVE) skip();
    net_fixture f = net_open(text, 8, options);
    assert_true(conv_tasks(&f, "b", "gather") > 0);
    net_close(&f);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_gradients_of_weights),
        cmocka_unit_test(test_dilated_windows),
        cmocka_unit_test(test_mobilenet),
        cmocka_unit_test(test_gathered_gradient),
    };
    print_message("seed %d\n", (int)SEED);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
