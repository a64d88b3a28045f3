/* Which kernels are taken for one: those that differ in nothing but their operands' places. One
 * number that was left out would give a layer the kernel of another.
 *
 * ctest: cpu */
#include "inner/cpu/cpu_private.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

/* Last: it needs those above, and defines fail and skip. */
#include <cmocka.h>

static bpt_cpu *cpu;

static int set_up(void **state) {
    (void)state;
    return bpt_cpu_create(1, &cpu) == BPT_OK ? 0 : -1;
}

static int tear_down(void **state) {
    (void)state;
    bpt_cpu_free(cpu);
    return 0;
}

static void ok(bpt_status status) {
    if (status != BPT_OK) fail_msg("%s", bpt_error_last()->text);
}

static void check_twins(const char *what, const bpt_kernel *a, const bpt_kernel *b, bool twins) {
    if ((a->pd == b->pd) != twins)
        fail_msg("%s: kernels are %stwins", what, twins ? "no " : "taken for ");
    if (!twins) return;
    /* the first may only be described, and is then not asked for its scratch memory */
    assert_int_equal(a->scratch_bytes, b->scratch_bytes);
    assert_int_equal(a->scratch_arg, b->scratch_arg);
    assert_memory_equal(a->layouts, b->layouts, sizeof a->layouts);
    assert_memory_equal(a->arg_of_slot, b->arg_of_slot, sizeof a->arg_of_slot);
}

/* ---- problems ---- */

static const bpt_conv_problem problem = {.n = 2,
                                         .c = 4,
                                         .h = 9,
                                         .w = 9,
                                         .k = 4,
                                         .p = 4,
                                         .q = 4,
                                         .r = 2,
                                         .s = 2,
                                         .stride = {2, 2},
                                         .dilation = {1, 1},
                                         .groups = 1};

static void check_apart(const char *what, size_t number, const bpt_conv_problem *other) {
    bpt__spec a = bpt__spec_of(BPT__CONV_FORWARD), b = a;
    bpt__spec_problem(&a, &problem);
    bpt__spec_problem(&b, other);
    assert_true(a.n <= BPT__SPEC_NUMBERS);
    if (memcmp(a.numbers, b.numbers, sizeof a.numbers) == 0)
        fail_msg("a problem that differs in %s %zu has the same spec", what, number);
}

static void test_every_number_of_a_problem(void **state) {
    (void)state;
    int64_t numbers[offsetof(bpt_conv_problem, bias) / sizeof(int64_t)];
    for (size_t i = 0; i < sizeof numbers / sizeof *numbers; i++) {
        bpt_conv_problem other = problem;
        memcpy(numbers, &other, sizeof numbers);
        numbers[i]++;
        memcpy(&other, numbers, sizeof numbers);
        check_apart("number", i, &other);
    }
    bpt_conv_problem others[] = {problem, problem, problem, problem};
    others[0].bias = true;
    others[1].relu = true;
    others[2].winograd = true;
    others[3].type = BPT_BF16;
    for (size_t i = 0; i < 4; i++) check_apart("flag", i, &others[i]);
}

/* ---- kernels ---- */

static void test_convolutions(void **state) {
    (void)state;
    const int64_t src_dims[] = {2, 4, 9, 9}, dst_dims[] = {2, 4, 4, 4}, dims[] = {4, 4, 2, 2};
    const bpt_layout *src, *last, *dst, *weights;
    ok(bpt_layout_plain(cpu, BPT_F32, src_dims, 4, &src));
    ok(bpt_layout_channels_last(cpu, BPT_F32, src_dims, &last));
    ok(bpt_layout_plain(cpu, BPT_F32, dst_dims, 4, &dst));
    ok(bpt_layout_plain(cpu, BPT_F32, dims, 4, &weights));
    bpt_kernel *first, *twin, *other, *data, *gradient;
    ok(bpt_cpu_conv_forward(cpu, &problem, src, NULL, dst, &first));
    ok(bpt_cpu_conv_forward(cpu, &problem, src, NULL, dst, &twin));
    check_twins("forward", first, twin, true);
    ok(bpt_cpu_conv_forward(cpu, &problem, src, weights, dst, &other));
    check_twins("forward, weights of another order", first, other, false);
    ok(bpt_cpu_conv_forward(cpu, &problem, NULL, NULL, dst, &other));
    check_twins("forward, a source of its choice", first, other, false);
    ok(bpt_cpu_conv_forward(cpu, &problem, src, NULL, NULL, &other));
    check_twins("forward, a destination of its choice", first, other, false);
    ok(bpt_cpu_conv_backward_data(cpu, &problem, first, NULL, &data));
    ok(bpt_cpu_conv_backward_weights(cpu, &problem, first, NULL, &gradient));
    check_twins("backward", data, gradient, false);
    ok(bpt_cpu_conv_backward_data(cpu, &problem, twin, NULL, &other));
    check_twins("backward data of a twin", data, other, true);
    ok(bpt_cpu_conv_backward_weights(cpu, &problem, twin, NULL, &other));
    check_twins("backward weights of a twin", gradient, other, true);
    ok(bpt_cpu_conv_backward_data(cpu, &problem, first, weights, &other));
    check_twins("backward data, weights of another order", data, other, false);
    bpt_kernel *in_order;
    ok(bpt_layout_channels_last(cpu, BPT_F32, dst_dims, &dst));
    ok(bpt_cpu_conv_forward(cpu, &problem, last, NULL, dst, &in_order));
    check_twins("forward, activations of another order", first, in_order, false);
    ok(bpt_cpu_conv_backward_data(cpu, &problem, in_order, NULL, &other));
    check_twins("backward data, activations of another order", data, other, false);
    ok(bpt_cpu_conv_backward_weights(cpu, &problem, in_order, NULL, &other));
    check_twins("backward weights, activations of another order", gradient, other, false);
}

static void test_pooling(void **state) {
    (void)state;
    const bpt_layout *src;
    ok(bpt_layout_plain(cpu, BPT_F32, (int64_t[]){2, 4, 9, 9}, 4, &src));
    bpt_kernel *forward[3], *backward[3], *twin;
    for (int kind = BPT_POOL_MAX; kind <= BPT_POOL_AVERAGE_INSIDE; kind++) {
        ok(bpt_cpu_pool_forward(cpu, &problem, (bpt_pool_kind)kind, src, &forward[kind]));
        ok(bpt_cpu_pool_backward(cpu, &problem, (bpt_pool_kind)kind, forward[kind],
                                 &backward[kind]));
        for (int other = BPT_POOL_MAX; other < kind; other++) {
            check_twins("forward pools of other kinds", forward[kind], forward[other], false);
            check_twins("backward pools of other kinds", backward[kind], backward[other], false);
        }
    }
    bpt_conv_problem other = problem;
    other.r = other.s = 3; /* for the same output */
    ok(bpt_cpu_pool_forward(cpu, &other, BPT_POOL_MAX, src, &twin));
    check_twins("forward pools of other windows", forward[BPT_POOL_MAX], twin, false);
    ok(bpt_cpu_pool_forward(cpu, &problem, BPT_POOL_MAX, src, &twin));
    check_twins("forward pools", forward[BPT_POOL_MAX], twin, true);
    ok(bpt_cpu_pool_backward(cpu, &problem, BPT_POOL_MAX, twin, &twin));
    check_twins("backward pools", backward[BPT_POOL_MAX], twin, true);
}

static void test_normalisations(void **state) {
    (void)state;
    static const bpt_lrn cases[] = {
        {5, 0.5f, 0.75f, 1.0f}, {3, 0.5f, 0.75f, 1.0f}, {5, 0.25f, 0.75f, 1.0f},
        {5, 0.5f, 0.5f, 1.0f},  {5, 0.5f, 0.75f, 2.0f},
    };
    enum { N = sizeof cases / sizeof *cases };
    const bpt_layout *layout;
    ok(bpt_layout_plain(cpu, BPT_F32, (int64_t[]){2, 4, 9, 9}, 4, &layout));
    bpt_kernel *forward[N], *backward[N], *twin;
    for (size_t i = 0; i < N; i++) {
        ok(bpt_cpu_lrn_forward(cpu, cases[i], layout, &forward[i]));
        ok(bpt_cpu_lrn_backward(cpu, cases[i], forward[i], &backward[i]));
        for (size_t j = 0; j < i; j++) {
            check_twins("forward normalisations that differ", forward[i], forward[j], false);
            check_twins("backward normalisations that differ", backward[i], backward[j], false);
        }
    }
    ok(bpt_cpu_lrn_forward(cpu, cases[0], layout, &twin));
    check_twins("forward normalisations", forward[0], twin, true);
    ok(bpt_cpu_lrn_backward(cpu, cases[0], twin, &twin));
    check_twins("backward normalisations", backward[0], twin, true);
}

/* Each differs from one before it in as little as there can be. */
static void test_products(void **state) {
    (void)state;
    static const struct {
        bpt_matrix src, weights, dst;
        bool bias;
    } cases[] = {
        {{2, 3, 3, 1, BPT_F32}, {3, 2, 2, 1, BPT_F32}, {2, 2, 2, 1, BPT_F32}, false},
        {{2, 3, 3, 1, BPT_F32}, {3, 2, 2, 1, BPT_F32}, {2, 2, 2, 1, BPT_F32}, true},
        {{1, 3, 3, 1, BPT_F32}, {3, 2, 2, 1, BPT_F32}, {1, 2, 2, 1, BPT_F32}, false},
        {{2, 3, 3, 1, BPT_F32}, {3, 1, 2, 1, BPT_F32}, {2, 1, 2, 1, BPT_F32}, false},
        {{2, 2, 3, 1, BPT_F32}, {2, 2, 2, 1, BPT_F32}, {2, 2, 2, 1, BPT_F32}, false},
        {{2, 3, 5, 1, BPT_F32}, {3, 2, 2, 1, BPT_F32}, {2, 2, 2, 1, BPT_F32}, false},
        {{2, 3, 7, 1, BPT_F32}, {3, 2, 2, 1, BPT_F32}, {2, 2, 2, 1, BPT_F32}, false},
        {{2, 3, 7, 2, BPT_F32}, {3, 2, 2, 1, BPT_F32}, {2, 2, 2, 1, BPT_F32}, false},
        {{2, 3, 3, 1, BPT_F32}, {3, 2, 5, 1, BPT_F32}, {2, 2, 2, 1, BPT_F32}, false},
        {{2, 3, 3, 1, BPT_F32}, {3, 2, 2, 1, BPT_F32}, {2, 2, 5, 1, BPT_F32}, false},
        {{2, 3, 3, 1, BPT_BF16}, {3, 2, 2, 1, BPT_BF16}, {2, 2, 2, 1, BPT_F32}, false},
        {{2, 3, 3, 1, BPT_BF16}, {3, 2, 2, 1, BPT_BF16}, {2, 2, 2, 1, BPT_BF16}, false},
    };
    enum { N = sizeof cases / sizeof *cases };
    bpt_kernel *kernels[N], *twin;
    size_t n = 0;
    for (size_t i = 0; i < N; i++) {
        const bpt_status status = bpt_cpu_matmul(cpu, cases[i].src, cases[i].weights, cases[i].dst,
                                                 cases[i].bias, &kernels[n]);
        if (status == BPT_EBACKEND && cases[i].src.type == BPT_BF16) continue; /* not here */
        ok(status);
        for (size_t j = 0; j < n; j++) check_twins("products", kernels[n], kernels[j], false);
        n++;
    }
    ok(bpt_cpu_matmul(cpu, cases[0].src, cases[0].weights, cases[0].dst, false, &twin));
    check_twins("products", kernels[0], twin, true);
}

static void test_orders(void **state) {
    (void)state;
    const int64_t dims[] = {2, 16, 3, 3};
    const bpt_layout *plain, *last, *blocks;
    ok(bpt_layout_plain(cpu, BPT_F32, dims, 4, &plain));
    ok(bpt_layout_channels_last(cpu, BPT_F32, dims, &last));
    ok(bpt_layout_of_lanes(cpu, BPT_F32, dims, 8, &blocks));
    bpt_kernel *first, *other, *back;
    ok(bpt_cpu_reorder(cpu, plain, last, &first));
    ok(bpt_cpu_reorder(cpu, plain, blocks, &other));
    check_twins("to other orders", first, other, false);
    ok(bpt_cpu_reorder(cpu, blocks, last, &other));
    check_twins("from other orders", first, other, false);
    ok(bpt_cpu_reorder(cpu, plain, last, &other));
    check_twins("between the same orders", first, other, true);
    ok(bpt_cpu_relu_forward(cpu, plain, &first));
    ok(bpt_cpu_relu_forward(cpu, last, &other));
    check_twins("rectifiers of other orders", first, other, false);
    ok(bpt_cpu_relu_backward(cpu, first, &back));
    ok(bpt_cpu_relu_backward(cpu, other, &other));
    check_twins("backward rectifiers of other orders", back, other, false);
    ok(bpt_cpu_relu_forward(cpu, plain, &other));
    check_twins("rectifiers", first, other, true);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_every_number_of_a_problem),
        cmocka_unit_test_setup_teardown(test_convolutions, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_pooling, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_normalisations, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_products, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_orders, set_up, tear_down),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
