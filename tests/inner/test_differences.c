/* Gradients of whole models against central differences: every weight of every model (under
 * sanitizers, which look for other faults and are five times as slow, every seventh).
 *
 * A difference tells of a gradient only if no ReLU and no maximum switches within its step; the
 * loops in double precision (tests/ref) know whether one does. Where a step in fp32 can judge, the
 * engine's gradient is compared with the difference of the engine's own loss. Besides, the loops'
 * gradient, which is near to the engine's in every segment, is compared with the difference of the
 * loops' own loss, over a step so small that hardly anything switches. So no weight is left out.
 *
 * ctest: cpu TIMEOUT=240 */
#include "tests/inner/gradient_cases.h"
#include "tests/ref/ref_network.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

/* Last: it needs those above, and defines fail and skip. */
#include <cmocka.h>

#if defined __SANITIZE_ADDRESS__ || defined __SANITIZE_THREAD__
enum { STRIDE = 7 };
#else
enum { STRIDE = 1 };
#endif
enum { BATCH = 3 };

/* What moves one weight at a time: an engine, and the loops with the same model and batch. */
typedef struct {
    const gradient_case *c;
    net_fixture f;
    double *pixels, *weights;
    ref_batch batch; /* for the loops */
    float *gradient;
    double *ref_gradient, *terms;
    size_t n_large; /* weights whose gradient is large enough to judge in fp32 */
} subject;

static subject open_subject(const gradient_case *c) {
    subject s = {.c = c, .f = gradient_open_small(c, BATCH)};
    net_fixture *f = &s.f;
    bpt_batch_result result;
    net_assert_ok(bpt_network_gradient(f->net, f->pixels, f->labels, (float)BATCH, &result));
    s.gradient = net_vector(f, BPT_VECTOR_GRADIENTS);
    s.pixels = ref_doubles(f->pixels, f->n_pixels);
    s.weights = ref_doubles(f->weights, f->n_weights);
    s.batch = (ref_batch){
        .n = BATCH, .pixels = s.pixels, .labels = f->labels, .denominator = (double)BATCH};
    s.ref_gradient = ref_zeros(f->n_weights);
    s.terms = ref_zeros(f->n_weights);
    ref_network(f->model, &s.batch, s.weights, NULL, s.ref_gradient, s.terms);
    return s;
}

static void close_subject(subject *s) {
    free(s->terms);
    free(s->ref_gradient);
    free(s->gradient);
    free(s->weights);
    free(s->pixels);
    net_close(&s->f);
}

static void fail_weight(const subject *s, const char *whose, size_t i, double gradient,
                        double difference) {
    const bpt_segment *g = s->f.model->segments.items;
    while (i >= g->offset + g->count) g++;
    fail_msg("%s value %zu: the %s gradient is %.9g, the difference %.9g", g->name, i - g->offset,
             whose, gradient, difference);
}

/* ---- in double precision ---- */

/* Over the smallest step, a difference is known to 1e-8 = REF_RTOL * REF_LARGE. */
static const double REF_STEPS[] = {1e-5, 1e-6, 1e-7}, REF_RTOL = 1e-6, REF_LARGE = 1e-2;

/* @param[out] difference of the mean loss; a gradient if nothing switches
 * @return whether nothing switches between weight i - step and weight i + step */
static bool ref_difference(subject *s, size_t i, double step, double *difference) {
    const double w = s->weights[i], above = w + step, below = w - step;
    s->weights[i] = above;
    const ref_result a = ref_network(s->f.model, &s->batch, s->weights, NULL, NULL, NULL);
    s->weights[i] = below;
    const ref_result b = ref_network(s->f.model, &s->batch, s->weights, NULL, NULL, NULL);
    s->weights[i] = w;
    *difference = (a.loss_sum - b.loss_sum) / ((above - below) * BATCH);
    return a.switches == b.switches;
}

/* @return whether one of the steps could judge */
static bool judge_reference(subject *s, size_t i) {
    const double gradient = s->ref_gradient[i];
    for (size_t k = 0; k < sizeof REF_STEPS / sizeof *REF_STEPS; k++) {
        double difference;
        if (!ref_difference(s, i, REF_STEPS[k], &difference)) continue;
        if (!(fabs(difference - gradient) <= REF_RTOL * fmax(fabs(gradient), REF_LARGE)))
            fail_weight(s, "reference's", i, gradient, difference);
        return true;
    }
    return false;
}

/* ---- in fp32 ---- */

/* The mean loss is known to about 2e-7 in fp32, so that its difference over 2 * step can judge to
 * RTOL what is above NOISE / step. Beyond steps[0], the third derivative shows. */
enum { N_STEPS = 2 };
static const double STEPS[N_STEPS] = {1.0 / 128, 1.0 / 512}, NOISE = 8e-5, RTOL = 1e-2;
/* Where a few values are divided by their own deviation, it shows earlier. */
static const double BATCH_STATISTICS_STEPS[N_STEPS] = {1.0 / 1024, 1.0 / 2048};

/* The loss that is trained; an evaluation's is the same for most, and quicker to be had. */
static double mean_loss(const subject *s) {
    const net_fixture *f = &s->f;
    bpt_batch_result result;
    net_assert_ok(bpt_network_set(f->net, BPT_VECTOR_WEIGHTS, f->weights));
    if (s->c->draws || s->c->batch_statistics)
        net_assert_ok(bpt_network_gradient(f->net, f->pixels, f->labels, (float)BATCH, &result));
    else
        net_assert_ok(bpt_network_evaluate(f->net, f->pixels, f->labels, &result));
    return result.loss_sum / BATCH;
}

static double engine_difference(subject *s, size_t i, double step) {
    net_fixture *f = &s->f;
    const float w = f->weights[i], above = w + (float)step, below = w - (float)step;
    f->weights[i] = above;
    const double loss_above = mean_loss(s);
    f->weights[i] = below;
    const double loss_below = mean_loss(s);
    f->weights[i] = w;
    return (loss_above - loss_below) / ((double)above - (double)below);
}

/* @return whether one of the steps could judge */
static bool judge_engine(subject *s, size_t i) {
    const double *steps = s->c->batch_statistics ? BATCH_STATISTICS_STEPS : STEPS;
    const double gradient = (double)s->gradient[i];
    for (size_t k = 0; k < N_STEPS; k++) {
        const double difference = engine_difference(s, i, steps[k]);
        const bool is_large = fmax(fabs(gradient), fabs(difference)) >= NOISE / steps[k];
        if (!is_large) return false;
        s->n_large += k == 0;
        double unused;
        if (!ref_difference(s, i, steps[k], &unused)) continue;
        if (!(fabs(difference - gradient) <= RTOL * fabs(difference)))
            fail_weight(s, "engine's", i, gradient, difference);
        return true;
    }
    return false;
}

/* Every weight that is moved is judged in double precision; of those whose gradient is large, half
 * are in fp32 too. */
static void test_differences(void **state) {
    subject s = open_subject(*state);
    const bpt_segments *segments = &s.f.model->segments;
    size_t n_in_fp32 = 0, n_in_double = 0, n = 0;
    gradient_check(&s.f, s.gradient, s.ref_gradient, s.terms);
    for (size_t g = 0; g < segments->n; g++) {
        const bpt_segment *segment = &segments->items[g];
        if (segment->role.running > 0.0f) continue; /* the loss does not depend on it */
        for (size_t i = segment->offset; i < segment->offset + segment->count; i += STRIDE) {
            n++;
            n_in_fp32 += judge_engine(&s, i);
            n_in_double += judge_reference(&s, i);
        }
    }
    print_message("%zu weights: %zu judged in double; %zu large, %zu judged in fp32\n", n,
                  n_in_double, s.n_large, n_in_fp32);
    assert_int_equal(n_in_double, n);
    assert_true(s.n_large > 0);
    assert_true(n_in_fp32 * 2 >= s.n_large);
    close_subject(&s);
}

int main(void) {
    const gradient_sort sort = {"differences", test_differences};
    return gradient_run("differences", &sort, 1);
}
