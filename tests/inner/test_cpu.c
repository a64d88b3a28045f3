/* Single kernels: matrices in any order, given layouts, memory that moves, wrong
 * problems. What whole models use of them is in test_gradients.c.
 *
 * ctest: cpu TIMEOUT=60 */
#include "base/memory.h"
#include "base/random.h"
#include "inner/cpu/cpu.h"
#include "inner/loops/weight_copies.h"
#include "tests/inner/processor.h"
#include "tests/ref/ref.h"

#include <float.h>
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

/* Last: it needs those above, and defines fail and skip. */
#include <cmocka.h>

enum { SEED = 20263, N_WORKERS = 3 };

/* A device and a block of memory, planned by put() and there after start(). */
typedef struct {
    bpt_cpu *cpu;
    bpt_blocks blocks;
} device;

static void ok(bpt_status status) {
    if (status != BPT_OK) fail_msg("%s", bpt_error_last()->text);
}

static device open_device(void) {
    device d = {0};
    ok(bpt_cpu_create(N_WORKERS, &d.cpu));
    return d;
}

static void close_device(device *d) {
    bpt_cpu_free(d->cpu);
    bpt_blocks_release(&d->blocks);
}

static bpt_ref put(device *d, size_t n_floats) {
    return bpt_blocks_reserve(&d->blocks, BPT_BLOCK_ACTIVATIONS, n_floats * sizeof(float));
}

static bpt_ref put_operand(device *d, bpt_kernel *k, bpt_slot slot) {
    const bpt_layout *l = bpt_kernel_layout(k, slot);
    assert_non_null(l);
    const bpt_ref ref = put(d, bpt_layout_bytes(l) / sizeof(float));
    bpt_kernel_bind(k, slot, ref);
    return ref;
}

static void start(device *d) {
    ok(bpt_blocks_allocate(&d->blocks, 0));
    ok(bpt_cpu_resolve(d->cpu, BPT_BLOCK_ACTIVATIONS, &d->blocks));
    ok(bpt_cpu_prepare(d->cpu));
}

static float *at(const device *d, bpt_ref ref) {
    return bpt_at(&d->blocks, ref);
}

static void fill(float *x, size_t n, uint64_t id) {
    bpt_random r = bpt_random_stream(SEED, BPT_PURPOSE_TEST, id);
    for (size_t i = 0; i < n; i++) x[i] = bpt_random_normal(&r);
}

/* ---- matrices ---- */

static bpt_matrix matrix(int64_t rows, int64_t columns, bool transposed) {
    return transposed ? (bpt_matrix){rows, columns, 1, rows, BPT_F32}
                      : (bpt_matrix){rows, columns, columns, 1, BPT_F32};
}

static float value(const float *x, bpt_matrix m, int64_t i, int64_t j) {
    return x[i * m.row_stride + j * m.column_stride];
}

static void check_product(const float *a, bpt_matrix a_as, const float *b, bpt_matrix b_as,
                          const float *bias, const float *c, bpt_matrix c_as) {
    for (int64_t i = 0; i < c_as.rows; i++)
        for (int64_t j = 0; j < c_as.columns; j++) {
            double sum = bias ? (double)bias[j] : 0.0, scale = 1.0;
            for (int64_t l = 0; l < a_as.columns; l++) {
                const double term = (double)value(a, a_as, i, l) * (double)value(b, b_as, l, j);
                sum += term;
                scale += fabs(term);
            }
            if (!(fabs((double)value(c, c_as, i, j) - sum) <= 1e-6 * scale))
                fail_msg("%dx%dx%d: (%d, %d) is %g, not %g", (int)a_as.rows, (int)a_as.columns,
                         (int)b_as.columns, (int)i, (int)j, (double)value(c, c_as, i, j), sum);
        }
}

static void check_matmul(int64_t m, int64_t k, int64_t n, bool a_turned, bool b_turned, bool bias) {
    device d = open_device();
    const bpt_matrix a_as = matrix(m, k, a_turned), b_as = matrix(k, n, b_turned);
    const bpt_matrix c_as = {m, n, n + 3, 1, BPT_F32}; /* columns of a wider matrix */
    bpt_kernel *kernel;
    ok(bpt_cpu_matmul(d.cpu, a_as, b_as, c_as, bias, &kernel));
    const size_t n_a = (size_t)(m * k), n_b = (size_t)(k * n), n_c = (size_t)(m * (n + 3));
    const bpt_ref a = put(&d, n_a), b = put(&d, n_b), c = put(&d, n_c), v = put(&d, (size_t)n);
    bpt_kernel_bind(kernel, BPT_SLOT_SRC, a);
    bpt_kernel_bind(kernel, BPT_SLOT_WEIGHTS, b);
    bpt_kernel_bind(kernel, BPT_SLOT_DST, c);
    if (bias) bpt_kernel_bind(kernel, BPT_SLOT_BIAS, v);
    start(&d);
    fill(at(&d, a), n_a, 1);
    fill(at(&d, b), n_b, 2);
    fill(at(&d, v), (size_t)n, 3);
    for (size_t i = 0; i < n_c; i++) at(&d, c)[i] = 99.0f;
    ok(bpt_kernel_run(kernel, 0));
    check_product(at(&d, a), a_as, at(&d, b), b_as, bias ? at(&d, v) : NULL, at(&d, c), c_as);
    for (int64_t i = 0; i < m; i++) /* what lies between the rows is another's */
        for (int64_t j = n; j < n + 3; j++) assert_true(at(&d, c)[i * (n + 3) + j] == 99.0f);
    close_device(&d);
}

static void test_matmul(void **state) {
    (void)state;
    static const int64_t sizes[][3] = {{1, 1, 1},    {1, 17, 3},   {5, 1, 9},    {16, 64, 10},
                                       {23, 65, 33}, {3, 300, 64}, {65, 130, 17}};
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++)
        for (int variant = 0; variant < 8; variant++)
            check_matmul(sizes[i][0], sizes[i][1], sizes[i][2], variant & 1, variant & 2,
                         variant & 4);
}

/* ---- relu ---- */

static void test_relu_in_place(void **state) {
    (void)state;
    static const float x[] = {-1.0f, -0.0f, 0.0f, 2.0f, -FLT_MAX, FLT_MAX, FLT_MIN, -FLT_MIN, 5.0f};
    static const float dy[] = {1.0f, 2.0f, 3.0f, 4.0f, 5.0f, 6.0f, 7.0f, 8.0f, -9.0f};
    static const float expected_y[] = {0, 0, 0, 2.0f, 0, FLT_MAX, FLT_MIN, 0, 5.0f};
    static const float expected_dx[] = {0, 0, 0, 4.0f, 0, 6.0f, 7.0f, 0, -9.0f};
    const size_t n = sizeof x / sizeof *x;
    device d = open_device();
    const bpt_layout *layout;
    bpt_kernel *forward, *backward;
    ok(bpt_layout_plain(d.cpu, BPT_F32, (int64_t[]){3, 3}, 2, &layout));
    ok(bpt_cpu_relu_forward(d.cpu, layout, &forward));
    ok(bpt_cpu_relu_backward(d.cpu, forward, &backward));
    const bpt_ref y = put(&d, n), gradient = put(&d, n);
    bpt_kernel_bind(forward, BPT_SLOT_SRC, y);
    bpt_kernel_bind(forward, BPT_SLOT_DST, y);
    bpt_kernel_bind(backward, BPT_SLOT_DST, y);
    bpt_kernel_bind(backward, BPT_SLOT_DIFF_DST, gradient);
    bpt_kernel_bind(backward, BPT_SLOT_DIFF_SRC, gradient);
    start(&d);
    memcpy(at(&d, y), x, sizeof x);
    memcpy(at(&d, gradient), dy, sizeof dy);
    ok(bpt_kernel_run(forward, 0));
    ok(bpt_kernel_run(backward, 0));
    for (size_t i = 0; i < n; i++) {
        assert_true(at(&d, y)[i] == expected_y[i]);
        assert_true(at(&d, gradient)[i] == expected_dx[i]);
    }
    close_device(&d);
}

/* ---- convolution and changes of layout ---- */

static const bpt_conv_problem conv = {.n = 3,
                                      .c = 5,
                                      .h = 9,
                                      .w = 7,
                                      .k = 20,
                                      .p = 4,
                                      .q = 7,
                                      .r = 3,
                                      .s = 3,
                                      .stride = {2, 1},
                                      .pad = {0, 1},
                                      .bias = true,
                                      .dilation = {1, 1},
                                      .groups = 1};
enum { CONV_X = 3 * 5 * 9 * 7, CONV_W = 20 * 5 * 3 * 3, CONV_Y = 3 * 20 * 4 * 7 };

static void check_close(const char *what, const float *x, const double *ref, size_t n) {
    const double error = ref_error(x, ref, n);
    if (!(error <= 1e-5)) fail_msg("%s is off by %.2g", what, error);
}

static void make_plain_conv(device *d, bpt_kernel *kernels[3]) {
    const bpt_layout *x, *w, *y;
    ok(bpt_layout_plain(d->cpu, BPT_F32, (int64_t[]){3, 5, 9, 7}, 4, &x));
    ok(bpt_layout_plain(d->cpu, BPT_F32, (int64_t[]){20, 5, 3, 3}, 4, &w));
    ok(bpt_layout_plain(d->cpu, BPT_F32, (int64_t[]){3, 20, 4, 7}, 4, &y));
    ok(bpt_cpu_conv_forward(d->cpu, &conv, x, w, y, &kernels[0]));
    ok(bpt_cpu_conv_backward_data(d->cpu, &conv, kernels[0], NULL, &kernels[1]));
    ok(bpt_cpu_conv_backward_weights(d->cpu, &conv, kernels[0], NULL, &kernels[2]));
    assert_true(bpt_layout_equal(bpt_kernel_layout(kernels[0], BPT_SLOT_SRC), x));
    assert_true(bpt_layout_equal(bpt_kernel_layout(kernels[0], BPT_SLOT_WEIGHTS), w));
    assert_true(bpt_layout_equal(bpt_kernel_layout(kernels[0], BPT_SLOT_DST), y));
    assert_false(bpt_layout_equal(x, y));
    assert_null(bpt_kernel_layout(kernels[0], BPT_SLOT_WORKSPACE));
}

/* A convolution takes the layouts that it is given, here the plain ones. */
static void test_conv_in_given_layouts(void **state) {
    (void)state;
    const ref_window a = {
        .n = 3, .c = 5, .h = 9, .w = 7, .k = 20, .r = 3, .s = 3, .stride = {2, 1}, .pad = {0, 1}};
    device d = open_device();
    bpt_kernel *kernels[3];
    make_plain_conv(&d, kernels);
    const bpt_ref x = put_operand(&d, kernels[0], BPT_SLOT_SRC);
    const bpt_ref w = put_operand(&d, kernels[0], BPT_SLOT_WEIGHTS);
    const bpt_ref bias = put_operand(&d, kernels[0], BPT_SLOT_BIAS);
    const bpt_ref y = put_operand(&d, kernels[0], BPT_SLOT_DST);
    const bpt_ref dy = put_operand(&d, kernels[2], BPT_SLOT_DIFF_DST);
    const bpt_ref dbias = put_operand(&d, kernels[2], BPT_SLOT_DIFF_BIAS);
    put_operand(&d, kernels[2], BPT_SLOT_DIFF_WEIGHTS);
    bpt_kernel_bind(kernels[2], BPT_SLOT_SRC, x);
    start(&d);
    fill(at(&d, x), CONV_X, 1);
    fill(at(&d, w), CONV_W, 2);
    fill(at(&d, bias), 20, 3);
    fill(at(&d, dy), CONV_Y, 4);
    ok(bpt_kernel_run(kernels[0], 0));
    ok(bpt_kernel_run(kernels[2], 2));
    double *rx = ref_doubles(at(&d, x), CONV_X), *rw = ref_doubles(at(&d, w), CONV_W);
    double *rb = ref_doubles(at(&d, bias), 20), *rdy = ref_doubles(at(&d, dy), CONV_Y);
    double *ry = ref_zeros(CONV_Y), *rdb = ref_zeros(20);
    assert_int_equal(ref_window_p(&a), conv.p);
    assert_int_equal(ref_window_q(&a), conv.q);
    ref_conv_forward(&a, rx, rw, rb, ry);
    ref_conv_backward_bias(&a, rdy, rdb);
    check_close("y", at(&d, y), ry, CONV_Y);
    check_close("dbias", at(&d, dbias), rdb, 20);
    free(rx);
    free(rw);
    free(rb);
    free(rdy);
    free(ry);
    free(rdb);
    close_device(&d);
}

/* @param[out] kernels forward, backward data, backward weights of a convolution with more channels
 * than a vector has, in layouts of their choice: some want scratch memory on any processor */
static void describe_conv(device *d, bpt_kernel *kernels[3]) {
    const bpt_conv_problem wide = {.n = 2,
                                   .c = 24,
                                   .h = 9,
                                   .w = 9,
                                   .k = 20,
                                   .p = 9,
                                   .q = 9,
                                   .r = 3,
                                   .s = 3,
                                   .stride = {1, 1},
                                   .pad = {1, 1},
                                   .bias = true,
                                   .dilation = {1, 1},
                                   .groups = 1};
    ok(bpt_cpu_conv_forward(d->cpu, &wide, NULL, NULL, NULL, &kernels[0]));
    ok(bpt_cpu_conv_backward_data(d->cpu, &wide, kernels[0], NULL, &kernels[1]));
    ok(bpt_cpu_conv_backward_weights(d->cpu, &wide, kernels[0], NULL, &kernels[2]));
}

static void bind_all(device *d, bpt_kernel *k) {
    for (int slot = 0; slot < BPT_N_SLOTS; slot++)
        if (bpt_kernel_layout(k, (bpt_slot)slot)) put_operand(d, k, (bpt_slot)slot);
}

/* @param bound which of the three, as bits; @return bytes of all workers */
static size_t scratch_of(unsigned n_workers, unsigned bound) {
    device d = {0};
    bpt_kernel *kernels[3];
    ok(bpt_cpu_create(n_workers, &d.cpu));
    describe_conv(&d, kernels);
    assert_int_equal(bpt_cpu_scratch_bytes(d.cpu), 0);
    for (int i = 0; i < 3; i++)
        if (bound >> i & 1) bind_all(&d, kernels[i]);
    const size_t bytes = bpt_cpu_scratch_bytes(d.cpu);
    start(&d);
    assert_int_equal(bpt_cpu_scratch_bytes(d.cpu), bytes);
    for (int i = 0; i < 3; i++)
        if (bound >> i & 1) ok(bpt_kernel_run(kernels[i], n_workers - 1));
    close_device(&d);
    return bytes;
}

/* Each worker has what the hungriest kernel wants that is bound, and those that are only described
 * want nothing. */
static void test_scratch_of_bound_kernels(void **state) {
    (void)state;
    size_t most = 0;
    for (int i = 0; i < 3; i++) {
        const size_t own = scratch_of(1, 1U << i);
        if (own > most) most = own;
        assert_int_equal(scratch_of(N_WORKERS, 1U << i), N_WORKERS * own);
    }
    assert_true(most > 0);
    assert_int_equal(scratch_of(N_WORKERS, 7), N_WORKERS * most);
    assert_int_equal(scratch_of(N_WORKERS, 0), 0);
}

/* To the layout that a convolution chooses for its weights, and back: 20 filters of 5 channels fill
 * no vector. */
static void test_reorder_there_and_back(void **state) {
    (void)state;
    device d = open_device();
    bpt_kernel *k, *there, *back;
    const bpt_layout *plain;
    ok(bpt_layout_plain(d.cpu, BPT_F32, (int64_t[]){20, 5, 3, 3}, 4, &plain));
    ok(bpt_cpu_conv_forward(d.cpu, &conv, NULL, NULL, NULL, &k));
    const bpt_layout *chosen = bpt_kernel_layout(k, BPT_SLOT_WEIGHTS);
    assert_int_equal(bpt_layout_bytes(plain), CONV_W * sizeof(float));
    assert_true(bpt_layout_bytes(chosen) >= bpt_layout_bytes(plain));
    ok(bpt_cpu_reorder(d.cpu, plain, chosen, &there));
    ok(bpt_cpu_reorder(d.cpu, chosen, plain, &back));
    const bpt_ref x = put_operand(&d, there, BPT_SLOT_SRC);
    const bpt_ref y = put_operand(&d, there, BPT_SLOT_DST);
    bpt_kernel_bind(back, BPT_SLOT_SRC, y);
    const bpt_ref z = put_operand(&d, back, BPT_SLOT_DST);
    start(&d);
    fill(at(&d, x), CONV_W, 5);
    ok(bpt_kernel_run(there, 0));
    ok(bpt_kernel_run(back, 0));
    assert_memory_equal(at(&d, x), at(&d, z), CONV_W * sizeof(float));
    close_device(&d);
}

/* oneDNN's copies of weights in the layouts of both passes. */
typedef struct {
    bpt_kernel *kernel;
    bpt_weight_pairs pairs;
    bpt_ref copy;
} pass;

static pass plan_pass(device *d, const bpt_layout *master, const bpt_layout *wanted,
                      const int64_t *dims, bpt_ref weights) {
    pass p;
    ok(bpt_layout_pairs(d->cpu, wanted, dims, &p.pairs));
    ok(bpt_cpu_reorder(d->cpu, master, wanted, &p.kernel));
    bpt_kernel_bind(p.kernel, BPT_SLOT_SRC, weights);
    p.copy = put_operand(d, p.kernel, BPT_SLOT_DST);
    return p;
}

/* Halfway between two values of bfloat16, what rounds to infinity, denormals, and no numbers. */
static void put_special(float *x, size_t n) {
    static const float special[] = {-0.0f,    1.00390625f,   1.01171875f, FLT_MAX,
                                    -FLT_MAX, INFINITY,      -INFINITY,   FLT_MIN,
                                    1e-40f,   -FLT_TRUE_MIN, NAN,         -NAN};
    const size_t count = sizeof special / sizeof special[0];
    for (size_t i = 0; i < n; i += 5) x[i] = special[i / 5 % count];
}

/* Those of inner/loops/weight_copies.h have the same bits, in the layouts that kernels choose. */
static void check_copies(bpt_conv_problem p) {
    const int64_t dims[] = {p.k, p.c, p.r, p.s};
    const size_t n = (size_t)(p.k * p.c * p.r * p.s);
    device d = open_device();
    bpt_kernel *forward, *backward;
    const bpt_layout *master;
    ok(bpt_cpu_conv_forward(d.cpu, &p, NULL, NULL, NULL, &forward));
    ok(bpt_cpu_conv_backward_data(d.cpu, &p, forward, NULL, &backward));
    ok(bpt_layout_weights_of_lanes(d.cpu, dims, BPT_COPY_LANES, &master));
    const bpt_ref w = put(&d, n), both = put(&d, n);
    pass f = plan_pass(&d, master, bpt_kernel_layout(forward, BPT_SLOT_WEIGHTS), dims, w);
    pass b = plan_pass(&d, master, bpt_kernel_layout(backward, BPT_SLOT_WEIGHTS), dims, w);
    assert_int_equal(f.pairs, BPT_PAIRS_OF_INPUTS);
    assert_true(b.pairs == BPT_PAIRS_OF_OUTPUTS || b.pairs == BPT_PAIRS_OF_OUTPUTS_INPUTS_FIRST);
    start(&d);
    fill(at(&d, w), n, 6);
    put_special(at(&d, w), n);
    ok(bpt_kernel_run(f.kernel, 0));
    ok(bpt_kernel_run(b.kernel, 0));
    const bpt_weight_blocks blocks = {p.k / BPT_COPY_LANES, p.c / BPT_COPY_LANES, p.r * p.s,
                                      b.pairs == BPT_PAIRS_OF_OUTPUTS_INPUTS_FIRST};
    bpt_bf16 *copies = bpt_at(&d.blocks, both);
    bpt_copy_weights_native()(&blocks, at(&d, w), copies, copies + n);
    assert_memory_equal(copies, at(&d, f.copy), n * sizeof *copies);
    assert_memory_equal(copies + n, at(&d, b.copy), n * sizeof *copies);
    close_device(&d);
}

/* Not where matrices have instructions (AMX): kernels want other orders there. */
static void test_copies_are_what_kernels_want(void **state) {
    (void)state;
    bpt_conv_problem p = {.n = 4,
                          .c = 32,
                          .h = 8,
                          .w = 8,
                          .k = 48,
                          .p = 8,
                          .q = 8,
                          .r = 3,
                          .s = 3,
                          .stride = {1, 1},
                          .pad = {1, 1},
                          .dilation = {1, 1},
                          .groups = 1,
                          .type = BPT_BF16};
    if (bpt_cpu_bf16() != BPT_BF16_NATIVE || !bpt_copy_weights_native() || processor_has_amx())
        skip();
    check_copies(p);
    p.r = p.s = 1;
    p.pad[0] = p.pad[1] = 0;
    check_copies(p);
}

/* ---- memory ---- */

/* The caller's block lies elsewhere in each run, and any worker may run a kernel. */
static void test_block_that_moves(void **state) {
    (void)state;
    device d = open_device();
    const bpt_layout *layout;
    bpt_kernel *k;
    ok(bpt_layout_plain(d.cpu, BPT_F32, (int64_t[]){4}, 1, &layout));
    ok(bpt_cpu_relu_forward(d.cpu, layout, &k));
    bpt_kernel_bind(k, BPT_SLOT_SRC, bpt_ref_in(BPT_BLOCK_INPUT, 4 * sizeof(float)));
    const bpt_ref y = put(&d, 4);
    bpt_kernel_bind(k, BPT_SLOT_DST, y);
    start(&d);
    float x[N_WORKERS][8];
    for (unsigned i = 0; i < N_WORKERS; i++) {
        for (int j = 0; j < 8; j++) x[i][j] = (float)((int)i * 10 + j);
        d.blocks.base[BPT_BLOCK_INPUT] = (char *)x[i];
        ok(bpt_cpu_resolve(d.cpu, BPT_BLOCK_INPUT, &d.blocks));
        ok(bpt_kernel_run(k, i));
        assert_memory_equal(at(&d, y), x[i] + 4, 4 * sizeof(float));
    }
    close_device(&d);
}

/* A plan beyond what a size_t can hold stays too large, and fails when it is allocated. */
static void test_plan_that_overflows(void **state) {
    (void)state;
    bpt_blocks blocks = {0};
    bpt_blocks_reserve(&blocks, BPT_BLOCK_ACTIVATIONS, 100);
    assert_int_equal(blocks.bytes[BPT_BLOCK_ACTIVATIONS], 128);
    bpt_blocks_reserve(&blocks, BPT_BLOCK_ACTIVATIONS, SIZE_MAX - 200);
    bpt_blocks_reserve(&blocks, BPT_BLOCK_ACTIVATIONS, SIZE_MAX - 50);
    bpt_blocks_reserve(&blocks, BPT_BLOCK_ACTIVATIONS, 1);
    assert_int_equal(bpt_blocks_allocate(&blocks, 0), BPT_ENOMEM);
    assert_null(blocks.base[BPT_BLOCK_WEIGHTS]);
    bpt_blocks small = {0}; /* with what is taken beside it is too large */
    bpt_blocks_reserve(&small, BPT_BLOCK_ACTIVATIONS, 100);
    assert_int_equal(bpt_blocks_allocate(&small, bpt_memory_of_machine()), BPT_ENOMEM);
    assert_null(small.base[BPT_BLOCK_ACTIVATIONS]);
    assert_int_equal(bpt_blocks_allocate(&small, 100), BPT_OK);
    bpt_blocks_release(&small);
}

/* A layout that is asked for by its order is made once, and lanes are told from such. */
static void test_layouts_are_made_once(void **state) {
    (void)state;
    device d = open_device();
    const int64_t dims[] = {2, 32, 5, 7};
    const bpt_layout *first, *again, *other;
    int64_t lanes;
    ok(bpt_layout_of_lanes(d.cpu, BPT_F32, dims, 8, &first));
    ok(bpt_layout_lanes(d.cpu, first, dims, &lanes));
    assert_int_equal(lanes, 8);
    const uint64_t before = bpt_memory_live();
    for (int i = 0; i < 3; i++) {
        ok(bpt_layout_lanes(d.cpu, first, dims, &lanes));
        ok(bpt_layout_of_lanes(d.cpu, BPT_F32, dims, 8, &again));
        assert_ptr_equal(again, first);
    }
    assert_int_equal(bpt_memory_live(), before);
    ok(bpt_layout_of_lanes(d.cpu, BPT_F32, (int64_t[]){2, 32, 7, 5}, 8, &other));
    assert_ptr_not_equal(other, first);
    ok(bpt_layout_of_lanes(d.cpu, BPT_F32, dims, 16, &other));
    assert_false(bpt_layout_equal(other, first));
    close_device(&d);
}

/* ---- parts ---- */

enum { SAMPLES, CHANNELS, ROWS, COLUMNS, N_DIMS };

/* @return where a value of an activation lies, in values from its begin */
static int64_t place(const int64_t *dims, int64_t lanes, const int64_t *at) {
    const int64_t n_blocks = (dims[CHANNELS] + lanes - 1) / lanes;
    const int64_t block = at[SAMPLES] * n_blocks + at[CHANNELS] / lanes;
    return ((block * dims[ROWS] + at[ROWS]) * dims[COLUMNS] + at[COLUMNS]) * lanes +
           at[CHANNELS] % lanes;
}

/* @return whether all of a part lies as a whole of its extent would, from where it begins on */
static bool lies_as_whole(const int64_t *dims, int64_t lanes, const int64_t *from,
                          const int64_t *extent) {
    const bool last = lanes == dims[CHANNELS];
    const int64_t begin = place(dims, lanes, from);
    for (int64_t n = 0; n < extent[SAMPLES]; n++)
        for (int64_t c = 0; c < extent[CHANNELS]; c++)
            for (int64_t h = 0; h < extent[ROWS]; h++)
                for (int64_t w = 0; w < extent[COLUMNS]; w++) {
                    const int64_t own[] = {n, c, h, w};
                    const int64_t there[] = {from[0] + n, from[1] + c, from[2] + h, from[3] + w};
                    if (place(dims, lanes, there) - begin !=
                        place(extent, last ? extent[CHANNELS] : lanes, own))
                        return false;
                }
    return true;
}

/* A last block that is not full reaches over channels that are not the part's. */
static bool ends_with_block(const int64_t *dims, int64_t lanes, const int64_t *from,
                            const int64_t *extent) {
    return extent[CHANNELS] == dims[CHANNELS] || (from[CHANNELS] + extent[CHANNELS]) % lanes == 0;
}

/* Every part of samples, channels and rows in units of @p step. @return how many can be had */
static int check_parts(bpt_cpu *cpu, bpt_value_type type, const int64_t *dims, int64_t lanes,
                       const int64_t *step) {
    const bpt_layout *whole;
    int n = 0;
    int64_t from[N_DIMS] = {0}, extent[N_DIMS] = {0, 0, 0, dims[COLUMNS]};
    ok(bpt_layout_of_lanes(cpu, type, dims, lanes, &whole));
    for (from[0] = 0; from[0] < dims[0]; from[0] += step[0])
        for (extent[0] = step[0]; from[0] + extent[0] <= dims[0]; extent[0] += step[0])
            for (from[1] = 0; from[1] < dims[1]; from[1] += step[1])
                for (extent[1] = step[1]; from[1] + extent[1] <= dims[1]; extent[1] += step[1])
                    for (from[2] = 0; from[2] < dims[2]; from[2] += step[2])
                        for (extent[2] = step[2]; from[2] + extent[2] <= dims[2];
                             extent[2] += step[2]) {
                            bpt_part part;
                            ok(bpt_layout_part(cpu, whole, dims, from, extent, &part));
                            if (!part.layout) continue;
                            assert_true(lies_as_whole(dims, lanes, from, extent));
                            assert_true(ends_with_block(dims, lanes, from, extent));
                            assert_int_equal(part.offset, (size_t)place(dims, lanes, from) *
                                                              bpt_value_bytes(type));
                            n++;
                        }
    return n;
}

/* What has gaps between its values is no part: kernels would take others' for its own. */
static void test_parts_without_gaps(void **state) {
    (void)state;
    const int64_t dims[] = {3, 32, 4, 2}, odd[] = {2, 24, 3, 2};
    const int64_t eights[] = {1, 8, 1, 1}, fours[] = {1, 4, 1, 1};
    device d = open_device();
    for (int type = BPT_F32; type <= BPT_BF16; type++) {
        const bpt_value_type t = (bpt_value_type)type;
        /* 6 ranges of samples, and of each of 3 samples 9 ranges of rows */
        assert_int_equal(check_parts(d.cpu, t, dims, 32, eights), 6 + 3 * 9);
        assert_true(check_parts(d.cpu, t, dims, 16, eights) > 6 + 3 * 2);
        assert_true(check_parts(d.cpu, t, dims, 8, eights) > 6 + 3 * 3);
        assert_true(check_parts(d.cpu, t, dims, 1, eights) > 6);
        check_parts(d.cpu, t, odd, 16, eights);
        check_parts(d.cpu, t, odd, 8, fours);
    }
    close_device(&d);
}

static void test_wrong_problem(void **state) {
    (void)state;
    device d = open_device();
    bpt_kernel *k = NULL;
    bpt_conv_problem p = conv;
    p.k = -3;
    assert_int_equal(bpt_cpu_conv_forward(d.cpu, &p, NULL, NULL, NULL, &k), BPT_EBACKEND);
    assert_non_null(strstr(bpt_error_last()->text, "oneDNN error"));
    const bpt_matrix a = {2, 3, 3, 1, BPT_F32}, b = {4, 2, 2, 1, BPT_F32},
                     c = {2, 2, 2, 1, BPT_F32};
    assert_int_equal(bpt_cpu_matmul(d.cpu, a, b, c, false, &k), BPT_EBACKEND);
    assert_null(k);
    close_device(&d);
    bpt_cpu_free(NULL);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_matmul),
        cmocka_unit_test(test_relu_in_place),
        cmocka_unit_test(test_conv_in_given_layouts),
        cmocka_unit_test(test_scratch_of_bound_kernels),
        cmocka_unit_test(test_reorder_there_and_back),
        cmocka_unit_test(test_copies_are_what_kernels_want),
        cmocka_unit_test(test_block_that_moves),
        cmocka_unit_test(test_plan_that_overflows),
        cmocka_unit_test(test_layouts_are_made_once),
        cmocka_unit_test(test_parts_without_gaps),
        cmocka_unit_test(test_wrong_problem),
    };
    print_message("seed %d\n", (int)SEED);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
