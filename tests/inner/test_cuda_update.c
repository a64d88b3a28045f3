/* Updates of all segments at once on a GPU against those of the CPU's optimisers, segment by
 * segment; what is not to be updated, and who is told.
 *
 * ctest: gpu TIMEOUT=120 */
#include "inner/cuda/cuda_update.h"
#include "inner/cuda/cuda_update_kernels.h"
#include "inner/loops/vector_loops.h"
#include "tests/inner/cuda_fixture.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

/* Last: it needs those above, and defines fail and skip. */
#include <cmocka.h>

enum { RANGE = BPT__UPDATE_RANGE, UNIT = 64, N = 12, MANY = 3, RUNNING = 4 };

/* Ends of vectors of four, of ranges and of units; begins are set below. Number MANY has three
 * ranges. */
static const bpt_cuda_segment sizes[N] = {
    {.count = 64, .decays = true, .has_copy = true},
    {.count = 3},
    {.count = 10, .decays = true, .has_copy = true},
    {.count = 2 * RANGE + 1001, .decays = true, .has_copy = true},
    {.count = 5, .running = 0.1f},
    {.count = RANGE, .has_copy = true},
    {.count = 1, .decays = true},
    {.count = 1000, .running = 0.25f},
    {.count = RANGE + 1, .decays = true, .has_copy = true},
    {.count = 0, .decays = true},
    {.count = 10 * RANGE + 62, .decays = true},
    {.count = 7, .decays = true, .has_copy = true},
};

static const bpt_learning recipes[] = {
    {.optimizer = &bpt_optimizer_sgd},
    {.optimizer = &bpt_optimizer_sgd, .decay = 0.25},
    {.optimizer = &bpt_optimizer_sgd, .momentum = 0.75, .decay = 0.125},
    {.optimizer = &bpt_optimizer_sgd, .momentum = 0.75, .decay = 0.125, .nesterov = true},
    {.optimizer = &bpt_optimizer_sgd, .momentum = 0.75, .clip_norm = 2},
    {.optimizer = &bpt_optimizer_sgd, .momentum = 0.75, .clip_norm = 1e6},
    {.optimizer = &bpt_optimizer_sgd, .momentum = 0.75, .decay = 0.125, .step_limit = 0.0625},
    {.optimizer = &bpt_optimizer_sgd,
     .nesterov = true,
     .momentum = 0.5,
     .clip_norm = 2,
     .step_limit = 0.001},
    {.optimizer = &bpt_optimizer_adamw, .beta1 = 0.9, .beta2 = 0.999, .eps = 1e-8, .decay = 0.125},
    {.optimizer = &bpt_optimizer_adamw, .beta1 = 0.5, .beta2 = 0.75, .eps = 0.25, .clip_norm = 2},
    {.optimizer = &bpt_optimizer_adamw, .beta1 = 0.0, .beta2 = 0.0, .eps = 0.5},
    {.optimizer = &bpt_optimizer_lars, .momentum = 0.75, .decay = 0.125, .eta = 0.5},
    {.optimizer = &bpt_optimizer_lars, .decay = 0.125, .eta = 0.5},
    {.optimizer = &bpt_optimizer_lars,
     .momentum = 0.75,
     .decay = 0.125,
     .eta = 0.5,
     .clip_norm = 2,
     .step_limit = 0.01},
};
enum { N_RECIPES = sizeof recipes / sizeof *recipes };

/* Weights, gradients, states: on the host as they are expected. What is between segments is
 * poison, on both sides. */
enum { WEIGHTS, GRADIENTS, STATE_0, STATE_1, N_VECTORS };

typedef struct {
    bpt_learning learning;
    bpt_cuda_segment segments[N];
    size_t n;
    bool copied; /* also what is frozen */
    float *host[N_VECTORS], *gpu[N_VECTORS];
    bpt_bf16 *copies; /* the GPU's */
    bpt_cuda_update *update;
    bpt_cuda_step step, *gpu_step;
    bpt_cuda_outcome *outcome; /* the GPU's */
} fixture;

static float *poisoned(size_t n) {
    float *values = malloc(n * sizeof *values);
    assert_non_null(values);
    memset(values, 0xFF, n * sizeof *values);
    return values;
}

static void place_segments(fixture *f, const bool *frozen) {
    for (int s = 0; s < N; s++) {
        f->segments[s] = sizes[s];
        f->segments[s].frozen = frozen && frozen[s];
        f->segments[s].begin = (int64_t)f->n;
        f->n += (size_t)(sizes[s].count + UNIT - 1) / UNIT * UNIT;
    }
    f->n -= UNIT - 7; /* nothing behind the last segment */
}

/* States begin as zeros. */
static void fill(const fixture *f, int which) {
    float *random = cuda_random(BPT_F32, f->n, (uint64_t)which);
    for (int s = 0; s < N; s++)
        for (int64_t i = 0; i < f->segments[s].count; i++) {
            const int64_t at = f->segments[s].begin + i;
            f->host[which][at] = which < STATE_0 ? random[at] : 0.0f;
        }
    free(random);
}

/* @param frozen shape [N]; NULL: none is */
static fixture begin_frozen(const bpt_learning *learning, const bool *frozen) {
    fixture f = {.learning = *learning};
    bpt_cuda_vectors vectors = {0};
    const size_t n_states = learning->optimizer->n_states(learning);
    place_segments(&f, frozen);
    for (int i = 0; i < STATE_0 + (int)n_states; i++) {
        f.host[i] = poisoned(f.n);
        fill(&f, i);
        f.gpu[i] = cuda_upload(f.host[i], f.n * sizeof(float));
    }
    f.copies = cuda_poisoned(f.n * sizeof *f.copies);
    f.step = (bpt_cuda_step){.rate = 0.125f};
    f.gpu_step = cuda_poisoned(sizeof f.step);
    f.outcome = cuda_upload(&(bpt_cuda_outcome){0}, sizeof *f.outcome);
    vectors.weights = f.gpu[WEIGHTS];
    vectors.gradients = f.gpu[GRADIENTS];
    vectors.state[0] = f.gpu[STATE_0];
    vectors.state[1] = f.gpu[STATE_1];
    vectors.copies = f.copies;
    cuda_ok(bpt_cuda_update_create(f.segments, N, learning, vectors, &f.update));
    return f;
}

static fixture begin(const bpt_learning *learning) {
    return begin_frozen(learning, NULL);
}

static void end(fixture *f) {
    bpt_cuda_update_free(f->update);
    for (int i = 0; i < N_VECTORS; i++) {
        free(f->host[i]);
        cuda_free(f->gpu[i]);
    }
    cuda_free(f->copies);
    cuda_free(f->gpu_step);
    cuda_free(f->outcome);
}

static void run(fixture *f) {
    f->step.updates++;
    cuda_ok(bpt_cuda_copy(cuda_stream(), f->gpu_step, &f->step, sizeof f->step));
    cuda_ok(bpt_cuda_update_run(cuda_stream(), f->update, f->gpu_step, f->outcome));
    cuda_ok(bpt_cuda_wait(cuda_stream()));
}

static bpt_cuda_outcome outcome_of(const fixture *f) {
    bpt_cuda_outcome outcome;
    cuda_download(f->outcome, &outcome, sizeof outcome);
    return outcome;
}

static void set_outcome(const fixture *f, bpt_cuda_outcome outcome) {
    cuda_ok(bpt_cuda_copy(cuda_stream(), f->outcome, &outcome, sizeof outcome));
    cuda_ok(bpt_cuda_wait(cuda_stream()));
}

static void set_gradient(const fixture *f, int segment, int64_t i, float value) {
    float *at = f->gpu[GRADIENTS] + f->segments[segment].begin + i;
    f->host[GRADIENTS][f->segments[segment].begin + i] = value;
    cuda_ok(bpt_cuda_copy(cuda_stream(), at, &value, sizeof value));
    cuda_ok(bpt_cuda_wait(cuda_stream()));
}

/* ---- what is expected ---- */

static double squares(const fixture *f, int which, int s) {
    return bpt_sum_of_squares(f->host[which] + f->segments[s].begin, (size_t)f->segments[s].count);
}

static float clip_of(const fixture *f) {
    double sum = 0.0;
    if (f->learning.clip_norm == 0.0) return 1.0f;
    for (int s = 0; s < N; s++)
        if (f->segments[s].running == 0.0f && !f->segments[s].frozen)
            sum += squares(f, GRADIENTS, s);
    return bpt_clip_scale(f->learning.clip_norm, sqrt(sum));
}

static void expect_segment(const fixture *f, int s, float clip) {
    const bpt_learning *l = &f->learning;
    const bpt_cuda_segment *segment = &f->segments[s];
    const double weights = sqrt(squares(f, WEIGHTS, s));
    const double gradient = (double)clip * sqrt(squares(f, GRADIENTS, s));
    bpt_update_range r = {
        .w = f->host[WEIGHTS] + segment->begin,
        .g = f->host[GRADIENTS] + segment->begin,
        .n = (size_t)segment->count,
        .rate = f->step.rate,
        .decays = segment->decays,
        .scale = clip,
        .trust = 1.0f,
        .update = f->step.updates,
    };
    for (int i = 0; i < BPT_MAX_STATES; i++)
        if (f->host[STATE_0 + i]) r.state[i] = f->host[STATE_0 + i] + segment->begin;
    if (segment->decays && l->step_limit > 0.0)
        r.scale = clip * bpt_step_scale(l->step_limit, (double)r.rate, weights, gradient);
    if (segment->decays && l->optimizer->trust) r.trust = l->optimizer->trust(l, weights, gradient);
    if (segment->running > 0.0f)
        bpt_running_update(r.w, r.g, r.n, segment->running);
    else
        l->optimizer->update(l, &r);
}

static void expect_update(const fixture *f) {
    const float clip = clip_of(f);
    for (int s = 0; s < N; s++)
        if (!f->segments[s].frozen) expect_segment(f, s, clip);
}

/* ---- comparison ---- */

static bool inside(const fixture *f, size_t at) {
    for (int s = 0; s < N; s++)
        if ((int64_t)at >= f->segments[s].begin &&
            (int64_t)at < f->segments[s].begin + f->segments[s].count)
            return true;
    return false;
}

static void compare_vector(const fixture *f, int which) {
    float *found = poisoned(f->n);
    double *expected = calloc(f->n, sizeof *expected);
    assert_non_null(expected);
    cuda_download(f->gpu[which], found, f->n * sizeof *found);
    for (size_t i = 0; i < f->n; i++) {
        if (inside(f, i)) continue;
        assert_memory_equal(&found[i], "\xFF\xFF\xFF\xFF", 4);
    }
    for (int s = 0; s < N; s++) {
        const bpt_cuda_segment *segment = &f->segments[s];
        for (int64_t i = 0; i < segment->count; i++)
            expected[i] = (double)f->host[which][segment->begin + i];
        cuda_compare("segment", BPT_F32, found + segment->begin, expected, (size_t)segment->count);
    }
    free(expected);
    free(found);
}

/* Those of segments that have one are the weights', rounded; no others are written. */
static void check_copies(const fixture *f) {
    float *weights = poisoned(f->n);
    bpt_bf16 *copies = malloc(f->n * sizeof *copies);
    assert_non_null(copies);
    cuda_download(f->gpu[WEIGHTS], weights, f->n * sizeof *weights);
    cuda_download(f->copies, copies, f->n * sizeof *copies);
    for (int s = 0; s < N; s++) {
        const bpt_cuda_segment *segment = &f->segments[s];
        const bool written = segment->has_copy && (!segment->frozen || f->copied);
        for (int64_t i = segment->begin; i < segment->begin + segment->count; i++)
            assert_int_equal(copies[i], written ? bpt_to_bf16(weights[i]) : 0xFFFF);
    }
    for (size_t i = 0; i < f->n; i++)
        if (!inside(f, i)) assert_int_equal(copies[i], 0xFFFF);
    free(copies);
    free(weights);
}

/* The cores' bits, where no norm is summed in another order. */
static void compare_bits(const fixture *f, int vector) {
    float *values = poisoned(f->n);
    cuda_download(f->gpu[vector], values, f->n * sizeof *values);
    for (int s = 0; s < N; s++) {
        const int64_t at = f->segments[s].begin;
        assert_memory_equal(values + at, f->host[vector] + at,
                            (size_t)f->segments[s].count * sizeof *values);
    }
    free(values);
}

static void compare_all(const fixture *f) {
    for (int i = 0; i < N_VECTORS; i++)
        if (f->gpu[i]) compare_vector(f, i);
}

/* ---- tests ---- */

static void test_recipes(void **state) {
    (void)state;
    for (int i = 0; i < N_RECIPES; i++) {
        fixture f = begin(&recipes[i]);
        for (int step = 0; step < 3; step++) {
            run(&f);
            expect_update(&f);
            compare_all(&f);
            if (!bpt_learning_wants_norms(&recipes[i])) compare_bits(&f, WEIGHTS);
            check_copies(&f);
        }
        const bpt_cuda_outcome o = outcome_of(&f);
        assert_int_equal(o.bad_gradient, 0);
        assert_int_equal(o.bad_weight, 0);
        end(&f);
    }
}

static void test_same_bits(void **state) {
    (void)state;
    for (int i = 0; i < N_RECIPES; i++) {
        fixture a = begin(&recipes[i]), b = begin(&recipes[i]);
        float *of_a = poisoned(a.n), *of_b = poisoned(b.n);
        run(&a);
        run(&b);
        cuda_download(a.gpu[WEIGHTS], of_a, a.n * sizeof *of_a);
        cuda_download(b.gpu[WEIGHTS], of_b, b.n * sizeof *of_b);
        assert_memory_equal(of_a, of_b, a.n * sizeof *of_a);
        free(of_a);
        free(of_b);
        end(&a);
        end(&b);
    }
}

/* Segments are the same before and behind, where they are to stay. */
static void keep(const fixture *f, float *kept) {
    memcpy(kept, f->host[WEIGHTS], f->n * sizeof *kept);
}

static void put_back(const fixture *f, const float *kept, int64_t begin, int64_t count) {
    memcpy(f->host[WEIGHTS] + begin, kept + begin, (size_t)count * sizeof *kept);
}

/* Of a segment of three ranges the second stays, and a range of another one. */
static void test_bad_gradient(void **state) {
    fixture f = begin(&recipes[1]);
    float *kept = poisoned(f.n);
    (void)state;
    keep(&f, kept);
    set_gradient(&f, MANY, RANGE + 77, NAN);
    set_gradient(&f, 2, 9, INFINITY);
    run(&f);
    expect_update(&f);
    put_back(&f, kept, f.segments[MANY].begin + RANGE, RANGE);
    put_back(&f, kept, f.segments[2].begin, f.segments[2].count);
    compare_vector(&f, WEIGHTS);
    assert_int_equal(outcome_of(&f).bad_gradient, 1 + MANY);
    assert_int_equal(outcome_of(&f).bad_weight, 0);
    free(kept);
    end(&f);
}

/* No segment's scale is a number then; running statistics go on, as on the CPU. */
static void test_bad_norm(void **state) {
    fixture f = begin(&recipes[4]);
    float *kept = poisoned(f.n);
    (void)state;
    keep(&f, kept);
    set_gradient(&f, MANY, 0, NAN);
    run(&f);
    expect_update(&f);
    for (int s = 0; s < N; s++)
        if (f.segments[s].running == 0.0f)
            put_back(&f, kept, f.segments[s].begin, f.segments[s].count);
    compare_vector(&f, WEIGHTS);
    assert_int_equal(outcome_of(&f).bad_gradient, 1 + MANY);
    assert_true(outcome_of(&f).bad_norm);
    free(kept);
    end(&f);
}

static void test_bad_running(void **state) {
    fixture f = begin(&recipes[4]);
    (void)state;
    set_gradient(&f, RUNNING, 4, -INFINITY);
    run(&f);
    assert_int_equal(outcome_of(&f).bad_gradient, 1 + RUNNING);
    assert_int_equal(outcome_of(&f).bad_weight, 0);
    end(&f);
}

static void test_bad_weight(void **state) {
    fixture f = begin(&recipes[0]);
    (void)state;
    f.step.rate = 3e38f;
    for (int s = 0; s < N; s++)
        for (int64_t i = 0; i < f.segments[s].count; i++)
            f.host[GRADIENTS][f.segments[s].begin + i] = 0.0f;
    cuda_ok(bpt_cuda_copy(cuda_stream(), f.gpu[GRADIENTS], f.host[GRADIENTS], f.n * sizeof(float)));
    cuda_ok(bpt_cuda_wait(cuda_stream()));
    set_gradient(&f, 5, 3, 1e6f);
    set_gradient(&f, 1, 2, -1e6f);
    run(&f);
    assert_int_equal(outcome_of(&f).bad_gradient, 0);
    assert_int_equal(outcome_of(&f).bad_weight, 1 + 5);
    end(&f);
}

static void test_bad_step(void **state) {
    (void)state;
    for (int i = 0; i < 2; i++) {
        fixture f = begin(&recipes[2]);
        set_outcome(&f, i ? (bpt_cuda_outcome){.bad_label = 7} : (bpt_cuda_outcome){.bad_loss = 1});
        set_gradient(&f, 0, 0, NAN);
        run(&f);
        float *weights = poisoned(f.n);
        cuda_download(f.gpu[WEIGHTS], weights, f.n * sizeof *weights);
        assert_memory_equal(weights, f.host[WEIGHTS], f.n * sizeof *weights);
        assert_int_equal(outcome_of(&f).bad_gradient, 0);
        free(weights);
        end(&f);
    }
}

static void test_check_and_copies(void **state) {
    fixture f = begin(&recipes[0]);
    (void)state;
    cuda_ok(bpt_cuda_update_check(cuda_stream(), f.update, f.outcome));
    assert_int_equal(outcome_of(&f).bad_gradient, 0);
    set_gradient(&f, 10, 10 * RANGE + 61, NAN);
    set_gradient(&f, 0, 63, NAN);
    cuda_ok(bpt_cuda_update_check(cuda_stream(), f.update, f.outcome));
    assert_int_equal(outcome_of(&f).bad_gradient, 1 + 10);
    compare_vector(&f, WEIGHTS);
    cuda_ok(bpt_cuda_update_copies(cuda_stream(), f.update));
    check_copies(&f);
    end(&f);
}

/* ---- what is frozen ---- */

/* Weights and states have the bits that they had. */
static void check_stays(const fixture *f) {
    float *found = poisoned(f->n);
    for (int i = 0; i < N_VECTORS; i++) {
        if (!f->gpu[i]) continue;
        cuda_download(f->gpu[i], found, f->n * sizeof *found);
        for (int s = 0; s < N; s++)
            if (f->segments[s].frozen)
                assert_memory_equal(found + f->segments[s].begin, f->host[i] + f->segments[s].begin,
                                    (size_t)f->segments[s].count * sizeof *found);
    }
    free(found);
}

/* Nor does anybody look at its gradients. */
static void check_is_not_looked_at(fixture *f) {
    set_gradient(f, 0, 7, NAN);
    set_gradient(f, RUNNING, 1, INFINITY);
    run(f);
    cuda_ok(bpt_cuda_update_check(cuda_stream(), f->update, f->outcome));
    const bpt_cuda_outcome o = outcome_of(f);
    assert_true(!o.bad_gradient && !o.bad_norm && !o.bad_weight);
    set_gradient(f, 8, RANGE, NAN);
    cuda_ok(bpt_cuda_update_check(cuda_stream(), f->update, f->outcome));
    assert_int_equal(outcome_of(f).bad_gradient, 1 + 8);
}

static void check_frozen(const bpt_learning *learning, const bool *frozen) {
    fixture f = begin_frozen(learning, frozen);
    for (int step = 0; step < 2; step++) {
        run(&f);
        expect_update(&f);
        compare_all(&f);
        check_stays(&f);
        check_copies(&f);
    }
    check_is_not_looked_at(&f);
    check_stays(&f);
    cuda_ok(bpt_cuda_update_copies(cuda_stream(), f.update));
    f.copied = true;
    check_copies(&f);
    end(&f);
}

/* The first segments, as in networks, and others. */
static void test_frozen(void **state) {
    static const bool sets[][N] = {
        {[0] = true, [1] = true, [2] = true, [MANY] = true, [RUNNING] = true},
        {[0] = true, [RUNNING] = true, [5] = true, [9] = true, [10] = true, [11] = true},
    };
    (void)state;
    for (int i = 0; i < N_RECIPES; i++)
        for (size_t j = 0; j < sizeof sets / sizeof *sets; j++) check_frozen(&recipes[i], sets[j]);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_recipes),      cmocka_unit_test(test_same_bits),
        cmocka_unit_test(test_bad_gradient), cmocka_unit_test(test_bad_norm),
        cmocka_unit_test(test_bad_running),  cmocka_unit_test(test_bad_weight),
        cmocka_unit_test(test_bad_step),     cmocka_unit_test(test_check_and_copies),
        cmocka_unit_test(test_frozen),
    };
    const int skipped = cuda_begin();
    if (skipped) return skipped;
    const int failed = cmocka_run_group_tests(tests, NULL, NULL);
    cuda_end();
    return failed;
}
