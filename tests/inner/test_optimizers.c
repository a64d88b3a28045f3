/* Optimisers and clipping against the reference; their sums in one order for any number of workers.
 *
 * ctest: cpu TIMEOUT=60 */
#include "base/memory.h"
#include "base/random.h"
#include "tests/inner/net_fixture.h"
#include "tests/ref/ref_learning.h"
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

enum { SEED = 20267 };

/* Running statistics, segments of several ranges, and channels that fill no vector. */
static const char text[] =
    "{name: t, input: [3, 9, 11], classes: 7, layers: [conv: {name: conv1, filters: 17, kernel: "
    "3}, "
    "batchnorm: {name: bn1}, relu, maxpool: {kernel: 2}, fc: {name: fc1, outputs: 170}, relu, "
    "fc: {name: fc2, outputs: 130}, relu, fc: {name: fc3, outputs: classes}]}";

typedef struct {
    const char *what;
    bpt_learning learning;
} recipe;

/* Bounds of 2 clip the random gradients below, whose norm is about 200; those of 1e6 do not. */
static const recipe recipes[] = {
    {"sgd", {.decay = 0.25}},
    {"sgd with momentum", {.momentum = 0.75, .decay = 0.125}},
    {"sgd, nesterov", {.momentum = 0.75, .decay = 0.125, .nesterov = true}},
    {"sgd, clipped", {.momentum = 0.75, .decay = 0.125, .clip_norm = 2}},
    {"sgd, hardly clipped", {.momentum = 0.75, .clip_norm = 1e6}},
    {"sgd, limited", {.momentum = 0.75, .decay = 0.125, .step_limit = 0.0625}},
    {"sgd, clipped and limited",
     {.momentum = 0.75, .nesterov = true, .clip_norm = 2, .step_limit = 0.001}},
    {"sgd, hardly limited", {.decay = 0.25, .step_limit = 1e6}},
    {"adamw",
     {.optimizer = &bpt_optimizer_adamw,
      .beta1 = 0.9,
      .beta2 = 0.999,
      .eps = 1e-8,
      .decay = 0.125}},
    {"adamw, clipped",
     {.optimizer = &bpt_optimizer_adamw, .beta1 = 0.5, .beta2 = 0.75, .eps = 0.25, .clip_norm = 2}},
    {"lars", {.optimizer = &bpt_optimizer_lars, .momentum = 0.75, .decay = 0.125, .eta = 0.5}},
    {"lars without momentum", {.optimizer = &bpt_optimizer_lars, .decay = 0.125, .eta = 0.5}},
    {"lars, limited",
     {.optimizer = &bpt_optimizer_lars,
      .momentum = 0.75,
      .decay = 0.125,
      .eta = 0.5,
      .step_limit = 0.001}},
    {"lars, clipped",
     {.optimizer = &bpt_optimizer_lars,
      .momentum = 0.75,
      .decay = 0.125,
      .eta = 0.5,
      .clip_norm = 2}},
};

enum { N_RECIPES = sizeof recipes / sizeof *recipes };

static net_fixture open_net(const recipe *r, unsigned n_workers) {
    return net_open(text, 23, (net_options){n_workers, r->learning, SEED, BPT_F32});
}

static void random_fill(float *x, size_t n, uint64_t id) {
    bpt_random r = bpt_random_stream(SEED, BPT_PURPOSE_TEST, id);
    for (size_t i = 0; i < n; i++) x[i] = bpt_random_normal(&r);
}

static void refill(net_fixture *f, uint64_t id) {
    bpt_random r = bpt_random_stream(SEED, BPT_PURPOSE_TEST, 100 + id);
    random_fill(f->pixels, f->n_pixels, 200 + id);
    for (int64_t i = 0; i < f->batch; i++)
        f->labels[i] = (int32_t)bpt_random_below(&r, (uint32_t)f->model->classes);
}

static void check_against(const net_fixture *f, const char *what, bpt_vector which,
                          const double *ref) {
    const char *name = "";
    float *x = net_vector(f, which);
    const double error = ref_segments_error(&f->model->segments, x, ref, &name);
    if (!(error <= 2e-6)) fail_msg("%s: %s is off by %.2g", what, name, error);
    free(x);
}

/* ---- the update ---- */

static void check_recipe(const recipe *r) {
    net_fixture f = open_net(r, 2);
    const bpt_segments *s = &f.model->segments;
    const size_t n_states = bpt_network_n_states(f.net);
    double *w = ref_doubles(f.weights, f.n_weights);
    double *states[] = {ref_zeros(f.n_weights), ref_zeros(f.n_weights)};
    float *gradient = net_floats(f.n_weights);
    for (uint64_t t = 1; t <= 6; t++) {
        const double rate = 0.25 / (double)(1 << t);
        random_fill(gradient, f.n_weights, t);
        double *g = ref_doubles(gradient, f.n_weights);
        net_assert_ok(bpt_network_set(f.net, BPT_VECTOR_GRADIENTS, gradient));
        net_assert_ok(bpt_network_apply(f.net, (float)rate));
        ref_learning_update(s, &r->learning, t, rate, w, states, g);
        assert_int_equal(bpt_network_updates(f.net), t);
        free(g);
    }
    check_against(&f, r->what, BPT_VECTOR_WEIGHTS, w);
    for (size_t i = 0; i < n_states; i++)
        check_against(&f, r->what, (bpt_vector)(BPT_VECTOR_STATE_0 + i), states[i]);
    free(gradient);
    free(states[0]);
    free(states[1]);
    free(w);
    net_close(&f);
}

static void test_updates_follow_reference(void **state) {
    (void)state;
    for (size_t i = 0; i < N_RECIPES; i++) check_recipe(&recipes[i]);
}

/* The gradients of the step itself; after the first step weights would drift apart by rounding. */
static void test_steps_follow_reference(void **state) {
    (void)state;
    for (size_t i = 0; i < N_RECIPES; i++) {
        const recipe *r = &recipes[i];
        net_fixture f = open_net(r, 2);
        bpt_batch_result result;
        double *states[] = {ref_zeros(f.n_weights), ref_zeros(f.n_weights)};
        for (uint64_t t = 1; t <= 4; t++) {
            float *before = net_vector(&f, BPT_VECTOR_WEIGHTS);
            double *w = ref_doubles(before, f.n_weights);
            for (size_t j = 0; j < bpt_network_n_states(f.net); j++) {
                float *x = net_vector(&f, (bpt_vector)(BPT_VECTOR_STATE_0 + j));
                free(states[j]);
                states[j] = ref_doubles(x, f.n_weights);
                free(x);
            }
            refill(&f, t);
            net_assert_ok(bpt_network_train(f.net, f.pixels, f.labels, 0.0625f, 0.25f, &result));
            float *gradient = net_vector(&f, BPT_VECTOR_GRADIENTS);
            double *g = ref_doubles(gradient, f.n_weights);
            ref_learning_update(&f.model->segments, &r->learning, t, 0.0625, w, states, g);
            check_against(&f, r->what, BPT_VECTOR_WEIGHTS, w);
            free(gradient);
            free(g);
            free(w);
            free(before);
        }
        free(states[0]);
        free(states[1]);
        net_close(&f);
    }
}

/* ---- the same bits ---- */

static void check_same(const char *what, const net_fixture *a, const net_fixture *b) {
    for (int v = BPT_VECTOR_WEIGHTS; v < BPT_VECTOR_STATE_0 + (int)bpt_network_n_states(a->net);
         v++) {
        if (v == BPT_VECTOR_GRADIENTS) continue;
        float *x = net_vector(a, (bpt_vector)v), *y = net_vector(b, (bpt_vector)v);
        net_assert_same_bits(what, x, y, a->n_weights);
        free(x);
        free(y);
    }
}

static void test_workers_do_not_change_bits(void **state) {
    (void)state;
    for (size_t i = 0; i < N_RECIPES; i++) {
        net_fixture one = open_net(&recipes[i], 1), many = open_net(&recipes[i], 3);
        net_fixture apart = open_net(&recipes[i], 2);
        bpt_batch_result result;
        for (uint64_t t = 1; t <= 6; t++) {
            refill(&one, t);
            net_assert_ok(bpt_network_train(one.net, one.pixels, one.labels, 0.1f, 2, &result));
            net_assert_ok(bpt_network_train(many.net, one.pixels, one.labels, 0.1f, 2, &result));
            net_assert_ok(bpt_network_gradient(apart.net, one.pixels, one.labels, 2, &result));
            net_assert_ok(bpt_network_apply(apart.net, 0.1f));
        }
        check_same(recipes[i].what, &one, &many);
        check_same(recipes[i].what, &one, &apart);
        net_close(&one);
        net_close(&many);
        net_close(&apart);
    }
}

/* Weights, state and the count of updates are all that a network learns by. */
static void test_state_is_all(void **state) {
    (void)state;
    for (size_t i = 0; i < N_RECIPES; i++) {
        net_fixture a = open_net(&recipes[i], 1), b = open_net(&recipes[i], 1);
        bpt_batch_result result;
        for (uint64_t t = 1; t <= 3; t++) {
            refill(&a, t);
            net_assert_ok(bpt_network_train(a.net, a.pixels, a.labels, 0.1f, 2, &result));
        }
        for (int v = BPT_VECTOR_WEIGHTS; v < BPT_VECTOR_STATE_0 + (int)bpt_network_n_states(a.net);
             v++) {
            float *x = net_vector(&a, (bpt_vector)v);
            net_assert_ok(bpt_network_set(b.net, (bpt_vector)v, x));
            free(x);
        }
        bpt_network_set_updates(b.net, bpt_network_updates(a.net));
        refill(&a, 4);
        net_assert_ok(bpt_network_train(a.net, a.pixels, a.labels, 0.1f, 2, &result));
        net_assert_ok(bpt_network_train(b.net, a.pixels, a.labels, 0.1f, 2, &result));
        check_same(recipes[i].what, &a, &b);
        net_close(&a);
        net_close(&b);
    }
}

/* ---- clipping ---- */

static void test_step_scale(void **state) {
    (void)state;
    assert_true(bpt_step_scale(0.5, 2, 8, 1) == 1.0f);
    assert_true(bpt_step_scale(0.5, 2, 8, 2) == 1.0f); /* as far as it may go */
    assert_true(bpt_step_scale(0.5, 2, 8, 16) == 0.125f);
    assert_true(bpt_step_scale(0.5, 2, 8, INFINITY) == 0.0f);
    assert_true(bpt_step_scale(0.5, 0, 8, 16) == 1.0f);
    assert_true(bpt_step_scale(0.5, 2, 0, 16) == 1.0f); /* or they would never leave 0 */
    assert_true(isnan(bpt_step_scale(0.5, 2, 8, NAN)));
    assert_true(isnan(bpt_step_scale(0.5, 2, NAN, 8)));
}

/* Without either norm there is nothing to compare: weights of 0 would never leave it. */
static void test_trust(void **state) {
    (void)state;
    const bpt_learning l = {.optimizer = &bpt_optimizer_lars, .eta = 0.5, .decay = 0.25};
    assert_true(bpt_optimizer_lars.trust(&l, 8, 6) == 0.5f);
    assert_true(bpt_optimizer_lars.trust(&l, 0, 6) == 1.0f);
    assert_true(bpt_optimizer_lars.trust(&l, 8, 0) == 1.0f);
}

static void test_clip_scale(void **state) {
    (void)state;
    assert_true(bpt_clip_scale(2, 1) == 1.0f);
    assert_true(bpt_clip_scale(2, 0) == 1.0f);
    assert_true(bpt_clip_scale(2, 8) == (float)(2 / (8 + 1e-6)));
    assert_true(bpt_clip_scale(1, 1) < 1.0f); /* the 1e-6 of PyTorch */
    assert_true(bpt_clip_scale(1, INFINITY) == 0.0f);
    assert_true(isnan(bpt_clip_scale(1, NAN)));
}

/* A bound that is not reached changes no bit, though the sums stand between. */
static void test_loose_bound_changes_nothing(void **state) {
    (void)state;
    const recipe loose = {"loose",
                          {.momentum = 0.75, .decay = 0.125, .clip_norm = 1e6, .step_limit = 1e6}};
    net_fixture a = open_net(&recipes[1], 2), b = open_net(&loose, 2);
    bpt_batch_result result;
    for (uint64_t t = 1; t <= 4; t++) {
        refill(&a, t);
        net_assert_ok(bpt_network_train(a.net, a.pixels, a.labels, 0.1f, 2, &result));
        net_assert_ok(bpt_network_train(b.net, a.pixels, a.labels, 0.1f, 2, &result));
    }
    check_same("loose", &a, &b);
    net_close(&a);
    net_close(&b);
}

/* Without norms a step has no more tasks than before; clipping has one that all wait for. */
static void count_clips(void *context, const char *label, const char *kind, unsigned n_tasks,
                        uint64_t ns) {
    unsigned *n = context;
    (void)label;
    (void)ns;
    if (strcmp(kind, "update") == 0) n[0] += n_tasks;
    if (strcmp(kind, "sum") == 0) n[1] += n_tasks;
    if (strcmp(kind, "norm") == 0) n[2] += n_tasks;
    if (strcmp(kind, "clip") == 0) n[3] += n_tasks;
}

static void test_tasks(void **state) {
    (void)state;
    for (size_t i = 0; i < N_RECIPES; i++) {
        const bpt_learning *l = &recipes[i].learning;
        net_fixture f = open_net(&recipes[i], 1);
        unsigned n[4] = {0};
        bpt_network_visit_times(f.net, count_clips, n);
        const bool clips = l->clip_norm > 0;
        const bool norms = clips || bpt_learning_optimizer(l)->trust || l->step_limit > 0;
        assert_int_equal(n[0] == 0, norms);
        assert_int_equal(n[1] > n[2], norms);   /* some segments have several ranges */
        assert_int_equal(n[2], norms ? 10 : 0); /* 5 weights or scales, 5 biases or shifts */
        assert_int_equal(n[3], clips ? 1 : 0);
        net_close(&f);
    }
}

static void check_no_number(const recipe *r, const char *segment) {
    net_fixture f = open_net(r, 2);
    const bpt_segments *s = &f.model->segments;
    float *gradient = net_floats(f.n_weights);
    size_t i = 0;
    while (strcmp(s->items[i].name, segment) != 0) i++;
    memset(gradient, 0, f.n_weights * sizeof *gradient);
    gradient[s->items[i].offset + 3] = NAN;
    net_assert_ok(bpt_network_set(f.net, BPT_VECTOR_GRADIENTS, gradient));
    assert_int_equal(bpt_network_apply(f.net, 0.1f), BPT_ENUMERIC);
    const char *said = bpt_error_last()->text;
    if (!strstr(said, segment) || !strstr(said, "a gradient")) fail_msg("%s: %s", r->what, said);
    float *weights = net_vector(&f, BPT_VECTOR_WEIGHTS); /* it is not applied */
    for (size_t j = 0; j < f.n_weights; j++) assert_true(isfinite(weights[j]));
    free(weights);
    free(gradient);
    net_close(&f);
}

/* Running statistics have no norms, and are looked at all the same. */
static void test_gradient_that_is_no_number(void **state) {
    (void)state;
    for (size_t i = 0; i < N_RECIPES; i++) {
        check_no_number(&recipes[i], "conv1.weight");
        check_no_number(&recipes[i], "bn1.running_mean");
    }
}

/* Nothing of a segment is updated. */
static void check_no_trust(net_fixture *f, const bpt_segment *t, float *gradient) {
    net_assert_ok(bpt_network_set(f->net, BPT_VECTOR_WEIGHTS, f->weights));
    net_assert_ok(bpt_network_set(f->net, BPT_VECTOR_GRADIENTS, gradient));
    assert_int_equal(bpt_network_apply(f->net, 0.1f), BPT_ENUMERIC);
    float *weights = net_vector(f, BPT_VECTOR_WEIGHTS);
    net_assert_same_bits("weights", weights + t->offset, f->weights + t->offset, t->count);
    free(weights);
}

/* By way of the norm one weight that is no number would reach all others of its segment, in other
 * ranges, too; and so would a trust that is larger than any float. */
static void test_trust_that_is_no_number(void **state) {
    enum { INFINITE, NONE, TOO_LARGE, N_CASES };
    (void)state;
    for (int i = 0; i < 2 * N_CASES; i++) {
        const double decay = i < N_CASES ? 0.0 : 0.125;
        const recipe r = {"lars", {.optimizer = &bpt_optimizer_lars, .eta = 0.5, .decay = decay}};
        if (i % N_CASES == TOO_LARGE && decay > 0.0) continue; /* which bounds it */
        net_fixture f = open_net(&r, 2);
        const bpt_segment *t = f.model->segments.items;
        while (strcmp(t->name, "fc2.weight") != 0) t++;
        float *gradient = net_floats(f.n_weights);
        random_fill(gradient, f.n_weights, 1);
        if (i % N_CASES == INFINITE) f.weights[t->offset + 3] = INFINITY;
        if (i % N_CASES == NONE) f.weights[t->offset + 3] = NAN;
        for (size_t j = t->offset; i % N_CASES == TOO_LARGE && j < t->offset + t->count; j++) {
            f.weights[j] *= 1e10f;
            gradient[j] *= 1e-35f;
        }
        check_no_trust(&f, t, gradient);
        free(gradient);
        net_close(&f);
    }
}

/* ---- memory ---- */

static void test_state_costs_what_it_needs(void **state) {
    (void)state;
    size_t bytes[N_RECIPES], n = 0;
    for (size_t i = 0; i < N_RECIPES; i++) {
        net_fixture f = open_net(&recipes[i], 1);
        const size_t n_states = bpt_network_n_states(f.net);
        const bpt_learning *l = &recipes[i].learning;
        assert_int_equal(n_states, l->optimizer == &bpt_optimizer_adamw ? 2 : l->momentum > 0);
        bytes[i] = bpt_network_memory_of(f.net).total;
        if (i == 0) n = f.n_weights * sizeof(float);
        /* layouts pad a little */
        assert_true(bytes[i] >= bytes[0] + n_states * n);
        assert_true(bytes[i] <= bytes[0] + n_states * (n + n / 2));
        net_close(&f);
    }
}

static void test_steps_allocate_nothing(void **state) {
    (void)state;
    for (size_t i = 0; i < N_RECIPES; i++) {
        net_fixture f = open_net(&recipes[i], 2);
        bpt_batch_result result;
        const uint64_t before = bpt_memory_allocations();
        net_assert_ok(bpt_network_train(f.net, f.pixels, f.labels, 0.1f, 23, &result));
        net_assert_ok(bpt_network_gradient(f.net, f.pixels, f.labels, 23, &result));
        net_assert_ok(bpt_network_apply(f.net, 0.1f));
        assert_int_equal(bpt_memory_allocations(), before);
        net_close(&f);
    }
}

static void test_no_memory(void **state) {
    (void)state;
    bpt_model *model = net_parse(text);
    bpt_pool *pool = net_pool(1);
    const uint64_t live = bpt_memory_live();
    bpt_network *net = NULL;
    int64_t n = 0;
    for (;; n++) {
        bpt_memory_fail_at(n);
        const bpt_status status =
            bpt_network_create(model, 2, BPT_F32, recipes[N_RECIPES - 1].learning, pool, &net);
        bpt_memory_fail_at(-1);
        if (status == BPT_OK) break;
        assert_int_equal(status, BPT_ENOMEM);
        assert_int_equal(bpt_memory_live(), live);
    }
    assert_in_range(n, 50, 5000);
    bpt_network_free(net);
    bpt_pool_free(pool);
    bpt_model_free(model);
}

static void test_table(void **state) {
    (void)state;
    static const char *const names[] = {"sgd", "adamw", "lars"};
    for (size_t i = 0; i < 3; i++) {
        assert_string_equal(bpt_optimizer_at(i)->name, names[i]);
        assert_int_equal(bpt_optimizer_at(i)->id, i);
    }
    assert_null(bpt_optimizer_at(3));
    assert_ptr_equal(bpt_learning_optimizer(&(bpt_learning){0}), &bpt_optimizer_sgd);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_updates_follow_reference),
        cmocka_unit_test(test_steps_follow_reference),
        cmocka_unit_test(test_workers_do_not_change_bits),
        cmocka_unit_test(test_state_is_all),
        cmocka_unit_test(test_trust),
        cmocka_unit_test(test_clip_scale),
        cmocka_unit_test(test_step_scale),
        cmocka_unit_test(test_loose_bound_changes_nothing),
        cmocka_unit_test(test_tasks),
        cmocka_unit_test(test_gradient_that_is_no_number),
        cmocka_unit_test(test_trust_that_is_no_number),
        cmocka_unit_test(test_state_costs_what_it_needs),
        cmocka_unit_test(test_steps_allocate_nothing),
        cmocka_unit_test(test_no_memory),
        cmocka_unit_test(test_table),
    };
    print_message("seed %d\n", (int)SEED);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
