/* The table of weights, and the distribution of what they start from. */
#include "base/memory.h"
#include "inner/weights/segments.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

/* Last: it needs those above, and defines fail and skip. */
#include <cmocka.h>

/* A table of a convolution with bias and a fully connected layer; the convolution has K filters. */
static bpt_segments make_table(int64_t k) {
    bpt_segments s = {0};
    assert_int_equal(bpt_segments_add(&s, "a.weight", (int64_t[]){k, 8, 5, 5}, 4,
                                      (bpt_segment_role){.fan_in = 200, .decays = true}),
                     BPT_OK);
    assert_int_equal(
        bpt_segments_add(&s, "a.bias", &k, 1, (bpt_segment_role){.fan_in = 0, .decays = false}),
        BPT_OK);
    assert_int_equal(bpt_segments_add(&s, "b.weight", (int64_t[]){300, 50}, 2,
                                      (bpt_segment_role){.fan_in = 50, .decays = true}),
                     BPT_OK);
    return s;
}

static void test_offsets(void **state) {
    (void)state;
    bpt_segments s = make_table(100);
    assert_int_equal(s.n, 3);
    assert_int_equal(s.items[0].offset, 0);
    assert_int_equal(s.items[0].count, 20000);
    assert_int_equal(s.items[1].offset, 20000);
    assert_int_equal(s.items[1].count, 100);
    assert_int_equal(s.items[2].offset, 20100);
    assert_int_equal(s.n_elements, 35100);
    assert_string_equal(s.items[2].name, "b.weight");
    assert_int_equal(s.items[2].n_dims, 2);
    assert_int_equal(s.items[2].dims[0], 300);
    assert_int_equal(s.items[2].dims[1], 50);
    assert_true(s.items[2].role.decays);
    assert_false(s.items[1].role.decays);
    bpt_segments_clear(&s);
    assert_int_equal(s.n, 0);
    assert_int_equal(s.n_elements, 0);
    assert_null(s.items);
}

static void test_values_from_outside(void **state) {
    (void)state;
    bpt_segments s = {0};
    const int64_t two = 2;
    assert_int_equal(bpt_segments_add(&s, "n.mean", &two, 1, (bpt_segment_role){.running = 0.1f}),
                     BPT_OK);
    assert_int_equal(bpt_segments_add(&s, "n.var", &two, 1,
                                      (bpt_segment_role){.running = 0.1f, .variance = true}),
                     BPT_OK);
    static const struct {
        float values[4];
        const char *error;
    } cases[] = {
        {{-1, 0, 0, 3e38f}, NULL},
        {{0, -0.0f, -0.0f, 1e-40f}, NULL},
        {{0, NAN, 1, 1}, "f: tensor n.mean: value 2 of 2 is nan, not a finite number"},
        {{0, 0, INFINITY, 1}, "f: tensor n.var: value 1 of 2 is inf, not a finite number"},
        {{0, 0, 1, -INFINITY}, "f: tensor n.var: value 2 of 2 is -inf, not a finite number"},
        {{0, 0, 1, -1e-9f}, "f: tensor n.var: value 2 of 2 is -1e-09, a variance below 0"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        const bpt_status status = bpt_segments_check(&s, "f", cases[i].values);
        assert_int_equal(status, cases[i].error ? BPT_EDATA : BPT_OK);
        if (!cases[i].error) continue;
        assert_string_equal(bpt_error_last()->text, cases[i].error);
        assert_true(bpt_error_last()->hint[0] != '\0');
    }
    float values[] = {-1, -2, -3, 4};
    bpt_segments_settle(&s, values);
    assert_memory_equal(values, ((const float[]){-1, -2, 0, 4}), sizeof values);
    bpt_segments_clear(&s);
}

static void test_too_large(void **state) {
    (void)state;
    bpt_segments s = make_table(100);
    const int64_t huge[] = {INT64_MAX, INT64_MAX, 3, 3}, limit[] = {1024, 1024, 1024};
    assert_int_equal(
        bpt_segments_add(&s, "c.weight", huge, 4, (bpt_segment_role){.fan_in = 1, .decays = true}),
        BPT_EUSAGE);
    assert_int_equal(
        bpt_segments_add(&s, "c.weight", limit, 3, (bpt_segment_role){.fan_in = 1, .decays = true}),
        BPT_EUSAGE);
    assert_string_equal(bpt_error_last()->text,
                        "with c.weight the model has more than 1073741824 weights");
    assert_int_equal(s.n, 3);
    assert_int_equal(s.n_elements, 35100);
    bpt_segments_clear(&s);
    assert_int_equal(
        bpt_segments_add(&s, "c.weight", limit, 3, (bpt_segment_role){.fan_in = 1, .decays = true}),
        BPT_OK);
    assert_int_equal(s.n_elements, 1 << 30);
    bpt_segments_clear(&s);
}

static float *initialise(const bpt_segments *s, uint64_t seed) {
    float *weights = NULL;
    assert_int_equal(BPT_NEW("weights", s->n_elements, &weights), BPT_OK);
    for (size_t i = 0; i < s->n_elements; i++) weights[i] = 77.0f;
    bpt_segments_initialise(s, seed, weights);
    return weights;
}

/* Mean and variance of a segment lie within 5 standard errors of 0 and 2 / fan_in. */
static void check_moments(const bpt_segment *t, const float *values) {
    const double n = (double)t->count, variance = 2.0 / (double)t->role.fan_in;
    double sum = 0.0, squares = 0.0;
    for (size_t i = 0; i < t->count; i++) {
        sum += (double)values[i];
        squares += (double)values[i] * (double)values[i];
    }
    const double mean_error = fabs(sum / n) / sqrt(variance / n);
    const double variance_error = fabs(squares / n - variance) / (variance * sqrt(2.0 / n));
    if (!(mean_error < 5.0 && variance_error < 5.0))
        fail_msg("%s: mean off by %g, variance by %g standard errors", t->name, mean_error,
                 variance_error);
}

/* The share of values within one standard deviation tells a normal from a uniform one. */
static void check_shape(const bpt_segment *t, const float *values) {
    const double deviation = sqrt(2.0 / (double)t->role.fan_in), n = (double)t->count;
    double inside = 0.0;
    for (size_t i = 0; i < t->count; i++) inside += fabs((double)values[i]) < deviation;
    assert_true(fabs(inside / n - 0.6827) < 5.0 * sqrt(0.6827 * 0.3173 / n));
}

static void test_he_initialisation(void **state) {
    (void)state;
    const uint64_t seed = 20;
    printf("seed %d\n", (int)seed);
    bpt_segments s = make_table(100);
    float *w = initialise(&s, seed);
    for (size_t i = 0; i < s.n; i++) {
        const bpt_segment *t = &s.items[i];
        if (t->role.fan_in == 0) continue;
        check_moments(t, w + t->offset);
        check_shape(t, w + t->offset);
    }
    for (size_t i = 0; i < 100; i++) assert_true(w[20000 + i] == 0.0f);
    bpt_free(w);
    bpt_segments_clear(&s);
}

/* Of one input, as a convolution of 1x1 of each channel by itself has them. */
static void test_one_input(void **state) {
    (void)state;
    bpt_segments s = {0};
    assert_int_equal(bpt_segments_add(&s, "a.weight", (int64_t[]){1000, 1, 1, 1}, 4,
                                      (bpt_segment_role){.fan_in = 1, .decays = true}),
                     BPT_OK);
    float *w = initialise(&s, 21);
    check_moments(&s.items[0], w);
    bpt_free(w);
    bpt_segments_clear(&s);
}

static void test_streams(void **state) {
    (void)state;
    bpt_segments small = make_table(10), large = make_table(100);
    float *a = initialise(&small, 1), *b = initialise(&small, 1), *c = initialise(&small, 2);
    float *d = initialise(&large, 1);
    assert_memory_equal(a, b, small.n_elements * sizeof *a);
    const size_t at_small = small.items[2].offset, at_large = large.items[2].offset;
    assert_memory_not_equal(a, c, 100 * sizeof *a);
    assert_memory_not_equal(a + at_small, c + at_small, 100 * sizeof *a);
    /* the size of one tensor changes no other, and no two tensors share a stream */
    assert_memory_equal(a + at_small, d + at_large, 15000 * sizeof *a);
    assert_memory_equal(a, d, 2000 * sizeof *a);
    assert_true(fabsf(a[0] * sqrtf(200) - a[at_small] * sqrtf(50)) > 1e-3f);
    bpt_free(a);
    bpt_free(b);
    bpt_free(c);
    bpt_free(d);
    bpt_segments_clear(&small);
    bpt_segments_clear(&large);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_offsets),   cmocka_unit_test(test_values_from_outside),
        cmocka_unit_test(test_too_large), cmocka_unit_test(test_he_initialisation),
        cmocka_unit_test(test_one_input), cmocka_unit_test(test_streams),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
