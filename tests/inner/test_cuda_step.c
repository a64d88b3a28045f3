/* Dropout against the CPU's numbers, and the loss against loops in double precision.
 *
 * ctest: gpu TIMEOUT=120 */
#include "base/random.h"
#include "inner/cuda/cuda_step.h"
#include "tests/inner/cuda_fixture.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Last: it needs those above, and defines fail and skip. */
#include <cmocka.h>

#define FOR_TYPES(type)                                                                            \
    for (bpt_value_type type = BPT_F32; type <= BPT_BF16; type = (bpt_value_type)(type + 1))

/* ---- dropout ---- */

typedef struct {
    int64_t n, c, pixels;
    uint64_t layer;
    double rate;
} dropout_case;

static const bpt_cuda_step dropout_step = {
    .seed = 0xFEDCBA9876543210, .step = 0x1234567890, .first_sample = 0xFFFFFE, .trains = 1};

/* One sample, in the canonical order of its numbers. */
static void drop_sample(const dropout_case *p, bpt_value_type type, int64_t sample, const float *x,
                        float *y) {
    const bpt_cuda_step *step = &dropout_step;
    const uint64_t number = (step->first_sample + (uint64_t)sample) & 0xFFFFFF;
    const uint64_t id = p->layer << 52 | (step->step & 0xFFFFFFF) << 24 | number;
    const uint32_t dropped = (uint32_t)(p->rate * 0x1p32);
    const float scale = (float)(1.0 / (1.0 - p->rate));
    bpt_random r = bpt_random_stream(step->seed, BPT_PURPOSE_DROPOUT, id);
    for (int64_t c = 0; c < p->c; c++)
        for (int64_t i = 0; i < p->pixels; i++) {
            const int64_t at = i * p->c + c;
            y[at] = bpt_random_u32(&r) < dropped ? 0.0f : cuda_rounded(type, x[at] * scale);
        }
}

static void check_dropout(const dropout_case *p, bpt_value_type type, bool in_place) {
    const size_t values = (size_t)(p->c * p->pixels), n = (size_t)p->n * values;
    float *x = cuda_random(type, n, 1), *expected = cuda_random(type, n, 2);
    for (int64_t s = 0; s < p->n; s++)
        drop_sample(p, type, s, x + (size_t)s * values, expected + (size_t)s * values);
    void *step = cuda_upload(&dropout_step, sizeof dropout_step);
    void *x_at = cuda_upload_values(type, x, n);
    void *y_at = in_place ? x_at : cuda_poisoned(n * bpt_value_bytes(type));
    cuda_ok(bpt_cuda_dropout(cuda_stream(), step, p->layer, p->rate, p->n, p->c, p->pixels, type,
                             x_at, y_at));
    float *y = cuda_download_values(type, y_at, n);
    for (size_t i = 0; i < n; i++)
        if (y[i] != expected[i])
            fail_msg("%d samples of %d channels, %d pixels: value %zu is %.9g, not %.9g", (int)p->n,
                     (int)p->c, (int)p->pixels, i, (double)y[i], (double)expected[i]);
    if (!in_place) cuda_free(y_at);
    cuda_free(x_at);
    cuda_free(step);
    free(y);
    free(expected);
    free(x);
}

static void test_dropout(void **state) {
    static const dropout_case cases[] = {
        {3, 4096, 1, 7, 0.5}, {4, 10, 1, 0, 0.3},    {5, 1, 1, 4095, 0.99}, {2, 64, 49, 3, 0.2},
        {2, 5, 36, 1, 0.1},   {70, 12, 1, 2, 0.0},   {0, 8, 1, 1, 0.5},     {3, 300, 3, 1, 0.6},
        {2, 1, 101, 1, 0.5},  {9000, 9, 29, 1, 0.5}, {3, 1028, 1, 7, 0.5},
    };
    (void)state;
    FOR_TYPES(type)
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        for (int in_place = 0; in_place < 2; in_place++) check_dropout(&cases[i], type, in_place);
}

/* ---- loss ---- */

typedef struct {
    int64_t n, row, classes;
    double smoothing;
    float scale; /* of the logits */
    bool has_second, trains;
} loss_case;

enum { MAX_SAMPLES = 600, DENOMINATOR = 7 };

typedef struct {
    const loss_case *of;
    bpt_value_type type;
    float *logits;
    int32_t labels[MAX_SAMPLES], second[MAX_SAMPLES];
    float parts[MAX_SAMPLES];
} loss_batch;

static int32_t some_class(const loss_case *p, bpt_random *r, uint32_t one_of_missing) {
    if (bpt_random_below(r, one_of_missing) == 0) return -1;
    return (int32_t)bpt_random_below(r, (uint32_t)p->classes);
}

/* Logits behind the classes are NaNs: they are not looked at. */
static loss_batch *make_batch(const loss_case *p, bpt_value_type type) {
    loss_batch *b = calloc(1, sizeof *b);
    bpt_random r = bpt_random_stream(5, BPT_PURPOSE_TEST, (uint64_t)p->n);
    assert_non_null(b);
    assert_true(p->n <= MAX_SAMPLES);
    b->of = p;
    b->type = type;
    b->logits = cuda_random(type, (size_t)(p->n * p->row), 3);
    for (int64_t i = 0; i < p->n * p->row; i++)
        b->logits[i] = i % p->row < p->classes ? cuda_rounded(type, p->scale * b->logits[i]) : NAN;
    for (int64_t i = 0; i < p->n; i++) {
        b->labels[i] = some_class(p, &r, 10);
        b->second[i] = some_class(p, &r, 3);
        b->parts[i] = bpt_random_uniform(&r);
    }
    return b;
}

static void free_batch(loss_batch *b) {
    free(b->logits);
    free(b);
}

/* The target of each class, which sums to 1. */
static void fill_target(const loss_batch *b, int64_t i, double *target) {
    const loss_case *p = b->of;
    const double smoothing = p->trains ? p->smoothing : 0.0;
    const bool is_mixed = p->trains && p->has_second && b->second[i] >= 0;
    const double part = is_mixed ? (double)b->parts[i] : 0.0;
    for (int64_t k = 0; k < p->classes; k++) target[k] = smoothing / (double)p->classes;
    target[b->labels[i]] += (1.0 - smoothing) * (1.0 - part);
    if (is_mixed) target[b->second[i]] += (1.0 - smoothing) * part;
}

static int32_t label_that_counts(const loss_batch *b, int64_t i) {
    const bool is_mixed = b->of->trains && b->of->has_second && b->second[i] >= 0;
    return is_mixed && (double)b->parts[i] > 0.5 ? b->second[i] : b->labels[i];
}

/* Of one sample that has a label. */
static void add_sample(const loss_batch *b, int64_t i, double *gradient, bpt_cuda_outcome *out) {
    const loss_case *p = b->of;
    const float *x = b->logits + i * p->row;
    double *target = calloc((size_t)p->classes, sizeof *target), sum = 0.0;
    int64_t largest = 0;
    assert_non_null(target);
    fill_target(b, i, target);
    for (int64_t k = 1; k < p->classes; k++)
        if (x[k] > x[largest]) largest = k;
    for (int64_t k = 0; k < p->classes; k++) sum += exp((double)x[k] - (double)x[largest]);
    for (int64_t k = 0; k < p->classes; k++) {
        const double below = (double)x[largest] - (double)x[k];
        gradient[k] = (exp(-below) / sum - target[k]) / DENOMINATOR;
        out->loss_sum += target[k] * (log(sum) + below);
    }
    out->n_correct += largest == label_that_counts(b, i);
    out->n_samples++;
    free(target);
}

/* The GPU's memory of a batch. */
typedef struct {
    void *step, *logits, *labels, *second, *parts, *losses, *gradient, *outcome;
} loss_memory;

static loss_memory upload_batch(const loss_batch *b) {
    const loss_case *p = b->of;
    const size_t n = (size_t)p->n, values = n * (size_t)p->row;
    const bpt_cuda_step step = {
        .denominator = DENOMINATOR, .has_second = p->has_second, .trains = p->trains};
    const bpt_cuda_outcome outcome = {0};
    return (loss_memory){
        .step = cuda_upload(&step, sizeof step),
        .logits = cuda_upload_values(b->type, b->logits, values),
        .labels = cuda_upload(b->labels, n * sizeof *b->labels),
        .second = p->has_second ? cuda_upload(b->second, n * sizeof *b->second) : NULL,
        .parts = p->has_second ? cuda_upload(b->parts, n * sizeof *b->parts) : NULL,
        .losses = cuda_poisoned(2 * n * sizeof(double)),
        .gradient = p->trains ? cuda_poisoned(values * bpt_value_bytes(b->type)) : NULL,
        .outcome = cuda_upload(&outcome, sizeof outcome),
    };
}

static void free_memory(loss_memory *m) {
    void *const memory[] = {m->step,  m->logits, m->labels,   m->second,
                            m->parts, m->losses, m->gradient, m->outcome};
    for (size_t i = 0; i < sizeof memory / sizeof *memory; i++) cuda_free(memory[i]);
}

static bpt_cuda_outcome run_loss(const loss_batch *b, const loss_memory *m) {
    const loss_case *p = b->of;
    bpt_cuda_outcome outcome;
    cuda_ok(bpt_cuda_loss(cuda_stream(), m->step, m->logits, b->type, p->n, p->row, p->classes,
                          m->labels, m->second, m->parts, p->smoothing, m->losses, m->gradient,
                          m->outcome));
    cuda_download(m->outcome, &outcome, sizeof outcome);
    return outcome;
}

static void check_loss(const loss_case *p, bpt_value_type type) {
    const size_t values = (size_t)(p->n * p->row);
    loss_batch *b = make_batch(p, type);
    double *expected = calloc(values + 1, sizeof *expected);
    bpt_cuda_outcome sums = {0};
    assert_non_null(expected);
    for (int64_t i = 0; i < p->n; i++)
        if (b->labels[i] >= 0) add_sample(b, i, expected + i * p->row, &sums);
    loss_memory m = upload_batch(b);
    const bpt_cuda_outcome outcome = run_loss(b, &m);
    if (!(fabs(outcome.loss_sum - sums.loss_sum) <=
          1e-6 * fabs(sums.loss_sum) + 1e-6 * (double)p->n))
        fail_msg("%d samples of %d classes: the loss is %.9g, not %.9g", (int)p->n, (int)p->classes,
                 outcome.loss_sum, sums.loss_sum);
    assert_int_equal(outcome.n_correct, sums.n_correct);
    assert_int_equal(outcome.n_samples, sums.n_samples);
    assert_int_equal(outcome.bad_label, 0);
    assert_int_equal(outcome.bad_loss, 0);
    if (p->trains) {
        float *gradient = cuda_download_values(type, m.gradient, values);
        cuda_compare("gradient of the loss", type, gradient, expected, values);
        free(gradient);
    }
    free_memory(&m);
    free(expected);
    free_batch(b);
}

static void test_loss(void **state) {
    static const loss_case cases[] = {
        {256, 1000, 1000, 0.0, 1.0f, false, true}, {5, 16, 10, 0.0, 4.0f, false, true},
        {5, 16, 10, 0.1, 4.0f, false, true},       {64, 1000, 1000, 0.1, 3.0f, true, true},
        {64, 104, 101, 0.0, 3.0f, true, true},     {64, 104, 101, 0.1, 3.0f, true, false},
        {33, 10, 10, 0.0, 20.0f, false, true},     {7, 8, 1, 0.0, 1.0f, false, true},
        {600, 2, 2, 0.0, 0.0f, true, true},        {1, 300, 257, 0.3, 1.0f, false, true},
        {0, 10, 10, 0.1, 1.0f, true, true},        {300, 24, 20, 0.0, 1.0f, false, false},
        {31, 4096, 4001, 0.2, 30.0f, true, true},
    };
    (void)state;
    FOR_TYPES(type)
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) check_loss(&cases[i], type);
}

/* Twice the same, bit for bit. */
static void test_loss_repeats(void **state) {
    static const loss_case p = {500, 1000, 1000, 0.1, 2.0f, true, true};
    (void)state;
    loss_batch *b = make_batch(&p, BPT_F32);
    loss_memory m = upload_batch(b);
    const bpt_cuda_outcome first = run_loss(b, &m);
    for (int i = 0; i < 5; i++) {
        const bpt_cuda_outcome again = run_loss(b, &m);
        assert_memory_equal(&again.loss_sum, &first.loss_sum, sizeof first.loss_sum);
    }
    free_memory(&m);
    free_batch(b);
}

static const loss_case wrong_case = {40, 24, 20, 0.1, 1.0f, true, true};

/* @return what a batch leaves that was made wrong by hand */
static bpt_cuda_outcome outcome_of(loss_batch *b) {
    loss_memory m = upload_batch(b);
    const bpt_cuda_outcome outcome = run_loss(b, &m);
    free_memory(&m);
    free_batch(b);
    return outcome;
}

static void test_bad_labels(void **state) {
    (void)state;
    FOR_TYPES(type) {
        loss_batch *b = make_batch(&wrong_case, type);
        b->labels[17] = 20;
        assert_int_equal(outcome_of(b).bad_label, 21);
        b = make_batch(&wrong_case, type);
        b->second[39] = 1000000;
        assert_int_equal(outcome_of(b).bad_label, 1000001);
        b = make_batch(&wrong_case, type);
        b->labels[0] = INT32_MAX;
        assert_true(outcome_of(b).bad_label > 0);
        b = make_batch(&wrong_case, type);
        b->labels[1] = INT32_MIN; /* missing */
        assert_int_equal(outcome_of(b).bad_label, 0);
    }
}

static void test_bad_logits(void **state) {
    static const float bad[] = {NAN, INFINITY};
    (void)state;
    FOR_TYPES(type)
    for (size_t i = 0; i < 2; i++)
        for (int64_t k = 0; k < 20; k += 19) {
            loss_batch *b = make_batch(&wrong_case, type);
            b->labels[3] = 5;
            b->second[3] = -1;
            b->logits[3 * 24 + k] = bad[i];
            assert_int_not_equal(outcome_of(b).bad_loss, 0);
        }
}

/* A sample without a label may be anything; its gradient is none. */
static void test_missing_sample_of_nan(void **state) {
    (void)state;
    FOR_TYPES(type) {
        loss_batch *b = make_batch(&wrong_case, type);
        b->labels[3] = -1;
        for (int64_t k = 0; k < 24; k++) b->logits[3 * 24 + k] = NAN;
        loss_memory m = upload_batch(b);
        assert_int_equal(run_loss(b, &m).bad_loss, 0);
        float *gradient = cuda_download_values(type, m.gradient, 40 * 24);
        for (int64_t k = 0; k < 24; k++) assert_true(gradient[3 * 24 + k] == 0.0f);
        free(gradient);
        free_memory(&m);
        free_batch(b);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_dropout),      cmocka_unit_test(test_loss),
        cmocka_unit_test(test_loss_repeats), cmocka_unit_test(test_bad_labels),
        cmocka_unit_test(test_bad_logits),   cmocka_unit_test(test_missing_sample_of_nan),
    };
    const int skipped = cuda_begin();
    if (skipped) return skipped;
    const int failed = cmocka_run_group_tests(tests, NULL, NULL);
    cuda_end();
    return failed;
}
