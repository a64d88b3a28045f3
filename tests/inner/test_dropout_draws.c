/* Which values a step drops: of each seed, step, sample and layer others, as the reference has it.
 *
 * ctest: cpu */
#include "tests/inner/net_fixture.h"
#include "tests/inner/net_values.h"
#include "tests/ref/ref_network.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

/* Last: it needs those above, and defines fail and skip. */
#include <cmocka.h>

/* Runs of numbers that are drawn at once are of 512. */
static const char text[] =
    "{name: t, input: [2, 17, 19], classes: 5, layers: [dropout: {rate: 0.2}, "
    "fc: {name: a, outputs: 40}, dropout: {rate: 0.4}, dropout, fc: {outputs: classes}]}";

enum { BATCH = 6, CLASSES = 5, SEED = 20281 };

static net_fixture open_net(void) {
    return net_open(text, BATCH, (net_options){.n_workers = 3, .seed = SEED});
}

/* @return as the network trains with this draw, shape [BATCH, CLASSES], for free() */
static float *logits_of(net_fixture *f, bpt_draw draw) {
    bpt_batch_result result;
    bpt_network_set_draw(f->net, draw);
    net_assert_ok(bpt_network_gradient(f->net, f->pixels, f->labels, BATCH, &result));
    return net_logits(f);
}

static void check_draw(net_fixture *f, bpt_draw draw) {
    double *pixels = ref_doubles(f->pixels, f->n_pixels);
    double *weights = ref_doubles(f->weights, f->n_weights);
    double *ref = ref_zeros(BATCH * CLASSES), *ref_gradient = ref_zeros(f->n_weights);
    const ref_batch batch = {
        .n = BATCH, .pixels = pixels, .labels = f->labels, .denominator = BATCH, .draw = draw};
    ref_network(f->model, &batch, weights, ref, ref_gradient, NULL);
    float *logits = logits_of(f, draw), *gradient = net_vector(f, BPT_VECTOR_GRADIENTS);
    const double off = ref_error(logits, ref, BATCH * CLASSES);
    const double off_back = ref_error(gradient, ref_gradient, f->n_weights);
    if (!(off <= 1e-5 && off_back <= 1e-5))
        fail_msg("seed %d, step %d, sample %d: logits are off by %.2g, gradients by %.2g",
                 (int)draw.seed, (int)draw.step, (int)draw.first_sample, off, off_back);
    free(gradient);
    free(logits);
    free(ref_gradient);
    free(ref);
    free(weights);
    free(pixels);
}

static const bpt_draw draws[] = {
    {1, 0, 0},  {2, 0, 0},   {1, 1, 0},       {1, 2, 0},
    {1, 16, 0}, {1, 0, 300}, {3, 257, 70000}, {1, 0xFFFFFFF, 0x1000000 - BATCH},
};

enum { N = sizeof draws / sizeof *draws };

static void test_draws_follow_reference(void **state) {
    (void)state;
    net_fixture f = open_net();
    for (size_t i = 0; i < N; i++) check_draw(&f, draws[i]);
    net_close(&f);
}

static void test_draws_differ(void **state) {
    (void)state;
    net_fixture f = open_net();
    float *logits[N];
    for (size_t i = 0; i < N; i++) {
        logits[i] = logits_of(&f, draws[i]);
        for (size_t j = 0; j < i; j++)
            for (size_t k = 0; k < BATCH * CLASSES; k += CLASSES)
                if (memcmp(logits[i] + k, logits[j] + k, CLASSES * sizeof(float)) == 0)
                    fail_msg("draws %zu and %zu drop the same of sample %zu", i, j, k / CLASSES);
    }
    for (size_t i = 0; i < N; i++) free(logits[i]);
    net_close(&f);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_draws_follow_reference),
        cmocka_unit_test(test_draws_differ),
    };
    print_message("seed %d\n", (int)SEED);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
