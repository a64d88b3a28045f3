#include "tests/inner/cuda_net_fixture.h"

#include "tests/inner/gradient_cases.h"
#include "tests/inner/net_values.h"
#include "tests/ref/ref_network.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>

/* Last: it needs those above, and defines fail and skip. */
#include <cmocka.h>

enum { SEED = 20261 };

bpt_network *cuda_net_open(bpt_device *device, const net_fixture *f, bpt_value_type type,
                           bpt_learning learning) {
    bpt_network *net;
    net_assert_ok(bpt_network_create_on(device, f->model, f->batch, type, learning, f->pool, &net));
    net_assert_ok(bpt_network_set(net, BPT_VECTOR_WEIGHTS, f->weights));
    return net;
}

bpt_draw cuda_net_draw(uint64_t step) {
    return (bpt_draw){.seed = SEED, .step = step, .first_sample = 3};
}

/* ---- one step against double precision ---- */

typedef struct {
    double *gradient, *terms;
    ref_result result;
} reference;

/* The reference goes the way of the cores at kinks. */
static reference compute_reference(net_fixture *f) {
    reference r = {.gradient = ref_zeros(f->n_weights), .terms = ref_zeros(f->n_weights)};
    bpt_batch_result ignored;
    bpt_network_set_draw(f->net, cuda_net_draw(1));
    net_assert_ok(bpt_network_gradient(f->net, f->pixels, f->labels, (float)f->batch, &ignored));
    float **switches = net_switches(f);
    double *pixels = ref_doubles(f->pixels, f->n_pixels);
    double *weights = ref_doubles(f->weights, f->n_weights);
    const ref_batch batch = {.n = f->batch,
                             .pixels = pixels,
                             .labels = f->labels,
                             .denominator = (double)f->batch,
                             .draw = cuda_net_draw(1),
                             .switched_by = (const float *const *)switches};
    r.result = ref_network(f->model, &batch, weights, NULL, r.gradient, r.terms);
    free(weights);
    free(pixels);
    net_switches_free(f, switches);
    return r;
}

static void free_reference(reference *r) {
    free(r->gradient);
    free(r->terms);
}

void cuda_net_check_floats(bpt_device *device, net_fixture *f) {
    reference ref = compute_reference(f);
    bpt_network *net = cuda_net_open(device, f, BPT_F32, (bpt_learning){0});
    for (int run = 0; run < 3; run++) { /* task by task, and captured */
        bpt_batch_result r;
        bpt_network_set_draw(net, cuda_net_draw(1));
        net_assert_ok(bpt_network_gradient(net, f->pixels, f->labels, (float)f->batch, &r));
        float *gradient = net_vector_of(net, f, BPT_VECTOR_GRADIENTS);
        assert_true(fabs(r.loss_sum - ref.result.loss_sum) <= 1e-5 * fabs(ref.result.loss_sum));
        assert_int_equal(r.n_correct, ref.result.n_correct);
        assert_int_equal(r.n_samples, ref.result.n_samples);
        gradient_check(f, gradient, ref.gradient, ref.terms);
        free(gradient);
    }
    bpt_network_free(net);
    free_reference(&ref);
}

void cuda_net_check_halves(bpt_device *device, net_fixture *f) {
    reference ref = compute_reference(f);
    bpt_network *net = cuda_net_open(device, f, BPT_BF16, (bpt_learning){0});
    bpt_batch_result r;
    bpt_network_set_draw(net, cuda_net_draw(1));
    net_assert_ok(bpt_network_gradient(net, f->pixels, f->labels, (float)f->batch, &r));
    float *gradient = net_vector_of(net, f, BPT_VECTOR_GRADIENTS);
    double dot = 0.0, norms[2] = {0.0, 0.0};
    for (size_t i = 0; i < f->n_weights; i++) {
        dot += (double)gradient[i] * ref.gradient[i];
        norms[0] += (double)gradient[i] * (double)gradient[i];
        norms[1] += ref.gradient[i] * ref.gradient[i];
    }
    assert_true(fabs(r.loss_sum - ref.result.loss_sum) <= 0.05 * fabs(ref.result.loss_sum));
    if (!(dot >= 0.97 * sqrt(norms[0] * norms[1])))
        fail_msg("the gradients' cosine is %.3f", dot / sqrt(norms[0] * norms[1]));
    free(gradient);
    bpt_network_free(net);
    free_reference(&ref);
}

/* ---- training against the cores ---- */

void cuda_net_train(net_fixture *f, bpt_network *net, int n_steps) {
    for (int step = 0; step < n_steps; step++) {
        bpt_batch_result a, b;
        bpt_network_set_draw(f->net, cuda_net_draw((uint64_t)step));
        bpt_network_set_draw(net, cuda_net_draw((uint64_t)step));
        bpt_network_set_next(net, step % 2 ? f->pixels : NULL);
        net_assert_ok(bpt_network_train(f->net, f->pixels, f->labels, 0.01f, (float)f->batch, &a));
        net_assert_ok(bpt_network_train(net, f->pixels, f->labels, 0.01f, (float)f->batch, &b));
        assert_int_equal(a.n_samples, b.n_samples);
        if (!(fabs(a.loss_sum - b.loss_sum) <= 1e-3 * fabs(a.loss_sum)))
            fail_msg("step %d: the loss is %.6g, on the cores %.6g", step, b.loss_sum, a.loss_sum);
    }
}

void cuda_net_compare(const net_fixture *f, bpt_network *net, bpt_vector which, const char *what) {
    float *cores = net_vector(f, which), *gpu = net_vector_of(net, f, which);
    const double off = net_distance(gpu, cores, f->n_weights);
    if (!(off <= 1e-3)) fail_msg("%s are off by %.2g", what, off);
    free(gpu);
    free(cores);
}

void cuda_net_compare_evaluations(const net_fixture *f, bpt_network *net) {
    bpt_batch_result a, b;
    net_assert_ok(bpt_network_evaluate(f->net, f->pixels, f->labels, &a));
    for (int run = 0; run < 3; run++) {
        net_assert_ok(bpt_network_evaluate(net, f->pixels, f->labels, &b));
        assert_true(fabs(a.loss_sum - b.loss_sum) <= 1e-3 * fabs(a.loss_sum));
        assert_int_equal(a.n_correct, b.n_correct);
    }
}
