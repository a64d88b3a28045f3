/* The networks that speed is measured on, as wholes: logits, loss and the gradient of every segment
 * against loops in double precision, on small images. Their layers one by one: test_gradients.c.
 *
 * ctest: cpu TIMEOUT=240 */
#include "tests/inner/net_values.h"
#include "tests/ref/ref_network.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

/* Last: it needs those above, and defines fail and skip. */
#include <cmocka.h>

enum { SEED = 20261, CLASSES = 10 };

typedef struct {
    const char *name;
    int64_t channels, size, batch;
    double rtol;
} built_in;

/* Behind the batch norms of resnet50, the last of few values, rounding errors grow. Sanitizers look
 * for other faults, and are five times as slow. */
static const built_in networks[] = {
    {"lenet", 1, 28, 6, 1e-5}, {"resnet20", 3, 16, 6, 1e-4},
#if !defined __SANITIZE_ADDRESS__ && !defined __SANITIZE_THREAD__
    {"vgg16", 3, 32, 2, 1e-4}, {"alexnet", 3, 67, 2, 1e-4},  {"resnet50", 3, 64, 6, 2e-3},
#endif
};

static double distance(const float *x, const double *ref, const bpt_segment *s) {
    double error = 0.0, norm = 0.0;
    for (size_t i = s->offset; i < s->offset + s->count; i++) {
        error += ((double)x[i] - ref[i]) * ((double)x[i] - ref[i]);
        norm += ref[i] * ref[i];
    }
    return norm > 0.0 ? sqrt(error / norm) : sqrt(error);
}

static void check_gradient(const net_fixture *f, const float *gradient, const double *ref,
                           double rtol) {
    const bpt_segments *s = &f->model->segments;
    double worst = 0.0;
    for (size_t i = 0; i < s->n; i++) {
        const double off = distance(gradient, ref, &s->items[i]);
        if (off > worst) worst = off;
        if (!(off <= rtol)) fail_msg("%s: off by %.2g", s->items[i].name, off);
    }
    print_message("gradients are off by at most %.2g\n", worst);
}

/* The reference goes the network's way at kinks: rounding carries some values across. */
static ref_result reference(const net_fixture *f, double *logits, double *gradient) {
    double *pixels = ref_doubles(f->pixels, f->n_pixels);
    double *weights = ref_doubles(f->weights, f->n_weights);
    float **switches = net_switches(f);
    const ref_batch batch = {.n = f->batch,
                             .pixels = pixels,
                             .labels = f->labels,
                             .denominator = (double)f->batch,
                             .switched_by = (const float *const *)switches};
    const ref_result ref = ref_network(f->model, &batch, weights, logits, gradient, NULL);
    net_switches_free(f, switches);
    free(weights);
    free(pixels);
    return ref;
}

static void test_network(void **state) {
    const built_in *b = *state;
    const bpt_model_override override = {.input = {b->channels, b->size, b->size},
                                         .classes = CLASSES};
    const net_options options = {.n_workers = 2, .seed = SEED};
    net_fixture f = net_open_built_in(b->name, &override, b->batch, options, NULL);
    const size_t n_logits = (size_t)(b->batch * CLASSES);
    double *ref_logits = ref_zeros(n_logits), *ref_gradient = ref_zeros(f.n_weights);
    bpt_batch_result result;
    net_assert_ok(bpt_network_gradient(f.net, f.pixels, f.labels, (float)b->batch, &result));
    float *gradient = net_vector(&f, BPT_VECTOR_GRADIENTS), *logits = net_logits(&f);
    const ref_result ref = reference(&f, ref_logits, ref_gradient);
    const double off = ref_error(logits, ref_logits, n_logits);
    print_message("the logits are off by %.2g\n", off);
    assert_true(off <= b->rtol);
    assert_true(fabs(result.loss_sum - ref.loss_sum) <= b->rtol * fabs(ref.loss_sum));
    check_gradient(&f, gradient, ref_gradient, b->rtol);
    free(logits);
    free(gradient);
    free(ref_gradient);
    free(ref_logits);
    net_close(&f);
}

int main(void) {
    enum { N = sizeof networks / sizeof *networks };
    struct CMUnitTest tests[N];
    for (size_t i = 0; i < N; i++)
        tests[i] = (struct CMUnitTest){.name = networks[i].name,
                                       .test_func = test_network,
                                       .initial_state = (void *)&networks[i]};
    print_message("seed %d\n", (int)SEED);
    return _cmocka_run_group_tests("gradients of built-in networks", tests, N, NULL, NULL);
}
