/* Weights' gradients of the whole batch at once: which convolutions have them, and that they are
 * right, whatever the tiles and the number of workers.
 *
 * ctest: cpu TIMEOUT=120 */
#include "base/memory.h"
#include "inner/layers/conv_gather.h"
#include "inner/network/network_private.h"
#include "tests/inner/conv_fixture.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

/* Last: it needs those above, and defines fail and skip. */
#include <cmocka.h>

enum { SEED = 20273 };

/* b has two ranges of filters, of unlike size, and c, without a bias, as many: few values of many
 * channels. a has more activations than weights. */
static const char net_wide[] =
    "{name: wide, input: [3, 4, 3], classes: 5, layers: ["
    "conv: {name: a, filters: 256, kernel: 1}, relu, "
    "conv: {name: b, filters: 80, kernel: 3, pad: 1}, relu, "
    "conv: {name: c, filters: 256, kernel: [3, 3], stride: 2, pad: 1, bias: false}, "
    "conv: {name: d, filters: 80, kernel: 3, pad: 1}, fc: {outputs: classes}]}";

static net_fixture open_wide(int64_t batch, unsigned n_workers, bpt_value_type type,
                             bpt_cut weights) {
    const net_options o = {.n_workers = n_workers, .seed = SEED, .activations = type};
    return net_open_cut(net_wide, batch, o,
                        (net_cuts){.step = {[BPT_CONV_BACKWARD_WEIGHTS] = weights}});
}

/* ---- which ---- */

static void test_what_suits(void **state) {
    (void)state;
    bpt_conv_problem p = conv_square(64, 512, 512, 4);
    assert_true(bpt_conv_suits_gather(&p));
    p.type = BPT_BF16;
    assert_true(bpt_conv_suits_gather(&p));
    p.winograd = true;
    assert_false(bpt_conv_suits_gather(&p));
    p = conv_square(64, 512, 512, 4);
    p.groups = 2;
    assert_false(bpt_conv_suits_gather(&p));
    p = conv_square(64, 256, 256, 8); /* 0.6 million weights, 2.1 million activations */
    assert_false(bpt_conv_suits_gather(&p));
    p = conv_square(4, 64, 64, 2); /* one range */
    assert_false(bpt_conv_suits_gather(&p));
}

static void test_filters_of_a_range(void **state) {
    (void)state;
    bpt_conv_problem p = conv_square(64, 512, 512, 4);
    assert_int_equal(bpt_conv_gather_filters(&p), 32); /* 590 KB */
    p = conv_square(64, 256, 512, 4);
    assert_int_equal(bpt_conv_gather_filters(&p), 64);
    p = conv_square(64, 4096, 512, 4); /* 2.4 MB a block */
    assert_int_equal(bpt_conv_gather_filters(&p), 16);
    p = conv_square(64, 512, 512, 4);
    p.type = BPT_BF16;
    assert_int_equal(bpt_conv_gather_filters(&p), 128); /* wide products */
    p.k = 768;
    assert_int_equal(bpt_conv_gather_filters(&p), 128);
    p.k = 384;
    assert_int_equal(bpt_conv_gather_filters(&p), 96); /* for four ranges */
    p.k = 256;
    assert_int_equal(bpt_conv_gather_filters(&p), 64);
    assert_true(bpt_conv_suits_gather(&p));
    p.k = 64;
    assert_int_equal(bpt_conv_gather_filters(&p), 32);
    p = conv_square(64, 2048, 512, 4);
    p.type = BPT_BF16;
    assert_int_equal(bpt_conv_gather_filters(&p), 80); /* products of 640 KB */
    p = conv_square(64, 64, 512, 4);
    p.type = BPT_BF16;
    assert_int_equal(bpt_conv_gather_filters(&p), 272); /* all of these are cached */
}

/* ---- tasks ---- */

static void test_tasks(void **state) {
    (void)state;
    if (!conv_has_avx512()) skip();
    net_fixture f = open_wide(6, 1, BPT_F32, (bpt_cut){0});
    assert_int_equal(f.net->builder.n_tiles, 4);
    assert_int_equal(conv_tasks(&f, "a", "gather"), 0);
    assert_int_equal(conv_tasks(&f, "a", "backward weights"), 4);
    assert_int_equal(conv_tasks(&f, "b", "backward weights"), 2);
    assert_int_equal(conv_tasks(&f, "b", "gather"), 4 * (1 + 2)); /* the input, and each range */
    assert_int_equal(conv_tasks(&f, "c", "backward weights"), 2); /* of 224 and 32 filters */
    net_close(&f);
}

/* Who says how it is cut means it. */
static void test_a_cut_goes_first(void **state) {
    (void)state;
    net_fixture f = open_wide(6, 1, BPT_F32, (bpt_cut){.samples = 1});
    assert_int_equal(conv_tasks(&f, "b", "gather"), 0);
    assert_int_equal(conv_tasks(&f, "b", "backward weights"), 6);
    net_close(&f);
}

/* ---- values ---- */

static void check_against_reference(int64_t batch) {
    net_fixture f = open_wide(batch, 2, BPT_F32, (bpt_cut){0});
    conv_check_gradient(&f, 1e-6, 1e-4);
    net_close(&f);
}

/* One tile, tiles of one sample, and tiles of unlike size. */
static void test_gradients(void **state) {
    (void)state;
    check_against_reference(1);
    check_against_reference(4);
    check_against_reference(6);
}

static float *gradient_of(const net_fixture *f) {
    bpt_batch_result result;
    net_assert_ok(bpt_network_gradient(f->net, f->pixels, f->labels, (float)f->batch, &result));
    return net_vector(f, BPT_VECTOR_GRADIENTS);
}

static void check_workers(bpt_value_type type) {
    net_fixture one = open_wide(6, 1, type, (bpt_cut){0});
    net_fixture three = open_wide(6, 3, type, (bpt_cut){0});
    float *a = gradient_of(&one), *b = gradient_of(&three);
    net_assert_same_bits("one worker and three", a, b, one.n_weights);
    free(a);
    free(b);
    net_close(&one);
    net_close(&three);
}

static void test_any_number_of_workers(void **state) {
    (void)state;
    check_workers(BPT_F32);
    if (conv_has_avx512()) check_workers(BPT_BF16);
}

/* In bfloat16 the values are those of the tiles, so that sums differ by their order alone. */
static void test_bf16(void **state) {
    (void)state;
    if (!conv_has_avx512()) skip();
    net_fixture whole = open_wide(6, 2, BPT_BF16, (bpt_cut){0});
    net_fixture tiles = open_wide(6, 2, BPT_BF16, (bpt_cut){.samples = 1});
    float *a = gradient_of(&whole), *b = gradient_of(&tiles);
    for (size_t i = 0; i < whole.n_weights; i++)
        if (!(fabsf(a[i] - b[i]) <= 1e-5F + 1e-3F * fabsf(b[i])))
            fail_msg("gradient %zu is %.9g, by tiles %.9g", i, (double)a[i], (double)b[i]);
    free(a);
    free(b);
    net_close(&whole);
    net_close(&tiles);
}

/* Every allocation fails once. */
static void test_no_memory(void **state) {
    (void)state;
    bpt_model *model = net_parse(net_wide);
    bpt_pool *pool = net_pool(1);
    bpt_network *net = NULL;
    int64_t n = 0;
    const uint64_t live = bpt_memory_live();
    for (;; n++) {
        bpt_memory_fail_at(n);
        const bpt_status status =
            bpt_network_create(model, 6, BPT_F32, (bpt_learning){0}, pool, &net);
        bpt_memory_fail_at(-1);
        if (status == BPT_OK) break;
        assert_int_equal(status, BPT_ENOMEM);
        assert_null(net);
        assert_int_equal(bpt_memory_live(), live);
    }
    assert_true(n > 100);
    bpt_network_free(net);
    bpt_pool_free(pool);
    bpt_model_free(model);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_what_suits), cmocka_unit_test(test_filters_of_a_range),
        cmocka_unit_test(test_tasks),      cmocka_unit_test(test_a_cut_goes_first),
        cmocka_unit_test(test_gradients),  cmocka_unit_test(test_any_number_of_workers),
        cmocka_unit_test(test_bf16),       cmocka_unit_test(test_no_memory),
    };
    print_message("seed %d\n", (int)SEED);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
