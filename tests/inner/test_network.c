/* Training steps: the same bits for any number of workers, SGD, partial batches.
 *
 * ctest: cpu TIMEOUT=60 */
#include "base/memory.h"
#include "base/random.h"
#include "tests/base/near.h"
#include "tests/inner/net_fixture.h"
#include "tests/ref/ref_network.h"

#include <dirent.h>
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Last: it needs those above, and defines fail and skip. */
#include <cmocka.h>

enum { SEED = 20261 };

static const bpt_learning momentum_sgd = {.momentum = 0.9f, .decay = 1e-2f};

static net_fixture open_mixed(int64_t batch, unsigned n_workers) {
    return net_open(net_mixed, batch, (net_options){n_workers, momentum_sgd, SEED, BPT_F32});
}

static net_fixture open_tiny(int64_t batch) {
    return net_open(net_tiny, batch, (net_options){1, momentum_sgd, SEED, BPT_F32});
}

/* Another batch of the same size. */
static void refill(net_fixture *f, uint64_t id) {
    bpt_random r = bpt_random_stream(SEED, BPT_PURPOSE_TEST, 100 + id);
    for (size_t i = 0; i < f->n_pixels; i++) f->pixels[i] = bpt_random_normal(&r);
    for (int64_t i = 0; i < f->batch; i++)
        f->labels[i] = (int32_t)bpt_random_below(&r, (uint32_t)f->model->classes);
}

static float *random_vector(size_t n, uint64_t id) {
    bpt_random r = bpt_random_stream(SEED, BPT_PURPOSE_TEST, 1000 + id);
    float *x = net_floats(n);
    for (size_t i = 0; i < n; i++) x[i] = bpt_random_normal(&r);
    return x;
}

static void check_result(const bpt_batch_result *a, const bpt_batch_result *b) {
    assert_memory_equal(&a->loss_sum, &b->loss_sum, sizeof a->loss_sum);
    assert_int_equal(a->n_correct, b->n_correct);
    assert_int_equal(a->n_samples, b->n_samples);
}

static void check_vectors(const net_fixture *a, const net_fixture *b) {
    static const bpt_vector vectors[] = {BPT_VECTOR_WEIGHTS, BPT_VECTOR_STATE_0};
    for (int i = 0; i < 2; i++) {
        float *x = net_vector(a, vectors[i]), *y = net_vector(b, vectors[i]);
        net_assert_same_bits(i == 0 ? "weights" : "momentum", x, y, a->n_weights);
        free(x);
        free(y);
    }
}

/* ---- the same bits ---- */

enum { N_STEPS = 20 };

static void train(net_fixture *f, bpt_batch_result results[N_STEPS]) {
    for (int step = 0; step < N_STEPS; step++) {
        refill(f, (uint64_t)step);
        net_assert_ok(bpt_network_train(f->net, f->pixels, f->labels, 0.02f, (float)f->batch,
                                        &results[step]));
    }
}

/* Of one sample, of chunks of 5 and 6, of 5 chunks of 13. With more workers than chunks these are
 * cut into tiles. */
static void test_workers_do_not_change_bits(void **state) {
    (void)state;
    static const int64_t batches[] = {1, 23, 65};
    static const unsigned n_workers[] = {2, 3, 5, 8, 21};
    for (size_t b = 0; b < 3; b++) {
        bpt_batch_result expected[N_STEPS], results[N_STEPS];
        net_fixture one = open_mixed(batches[b], 1);
        train(&one, expected);
        assert_true(expected[N_STEPS - 1].loss_sum != expected[0].loss_sum);
        for (size_t w = 0; w < sizeof n_workers / sizeof *n_workers; w++) {
            net_fixture many = open_mixed(batches[b], n_workers[w]);
            train(&many, results);
            for (int step = 0; step < N_STEPS; step++)
                check_result(&expected[step], &results[step]);
            check_vectors(&one, &many);
            net_close(&many);
        }
        net_close(&one);
    }
}

static void test_train_is_gradient_and_apply(void **state) {
    (void)state;
    net_fixture a = open_mixed(23, 2), b = open_mixed(23, 2);
    for (uint64_t step = 0; step < 5; step++) {
        const float rate = 0.05f / (float)(1 + step);
        bpt_batch_result trained, computed;
        refill(&a, step);
        net_assert_ok(bpt_network_train(a.net, a.pixels, a.labels, rate, 20.0f, &trained));
        net_assert_ok(bpt_network_gradient(b.net, a.pixels, a.labels, 20.0f, &computed));
        net_assert_ok(bpt_network_apply(b.net, rate));
        check_result(&trained, &computed);
        check_vectors(&a, &b);
    }
    net_close(&a);
    net_close(&b);
}

/* Pixels and flat vectors may lie anywhere that a float may. */
static void test_addresses_do_not_change_bits(void **state) {
    (void)state;
    net_fixture a = open_mixed(5, 2), b = open_mixed(5, 2);
    float *moved = net_floats(b.n_pixels + b.n_weights + 1);
    for (uint64_t step = 0; step < 3; step++) {
        bpt_batch_result here, there;
        float *pixels = moved + 1 + 2 * step;
        refill(&a, step);
        memcpy(pixels, a.pixels, a.n_pixels * sizeof *pixels);
        net_assert_ok(bpt_network_train(a.net, a.pixels, a.labels, 0.1f, 5.0f, &here));
        net_assert_ok(bpt_network_train(b.net, pixels, a.labels, 0.1f, 5.0f, &there));
        check_result(&here, &there);
        net_assert_ok(bpt_network_get(b.net, BPT_VECTOR_WEIGHTS, moved + 3));
        net_assert_ok(bpt_network_set(b.net, BPT_VECTOR_WEIGHTS, moved + 3));
        check_vectors(&a, &b);
    }
    free(moved);
    net_close(&a);
    net_close(&b);
}

/* ---- reading and writing ---- */

static void test_vectors_come_back(void **state) {
    (void)state;
    static const bpt_vector vectors[] = {BPT_VECTOR_WEIGHTS, BPT_VECTOR_GRADIENTS,
                                         BPT_VECTOR_STATE_0};
    net_fixture f = open_mixed(5, 2);
    float *given[3];
    for (int i = 0; i < 3; i++) {
        given[i] = random_vector(f.n_weights, (uint64_t)i);
        net_assert_ok(bpt_network_set(f.net, vectors[i], given[i]));
    }
    for (int i = 0; i < 3; i++) {
        float *back = net_vector(&f, vectors[i]);
        net_assert_same_bits("vector", given[i], back, f.n_weights);
        free(back);
    }
    for (int i = 0; i < 3; i++) free(given[i]);
    net_close(&f);
}

static void test_starts_at_zero(void **state) {
    (void)state;
    bpt_model *model = net_parse(net_mixed);
    bpt_pool *pool = net_pool(1);
    bpt_network *net = NULL;
    net_assert_ok(bpt_network_create(model, 4, BPT_F32, momentum_sgd, pool, &net));
    const size_t n = model->segments.n_elements;
    float *x = random_vector(n, 0);
    net_assert_ok(bpt_network_get(net, BPT_VECTOR_WEIGHTS, x));
    for (size_t i = 0; i < n; i++) assert_true(x[i] == 0.0f);
    x[0] = 1.0f;
    net_assert_ok(bpt_network_get(net, BPT_VECTOR_STATE_0, x));
    for (size_t i = 0; i < n; i++) assert_true(x[i] == 0.0f);
    assert_true(bpt_network_memory_of(net).total > 3 * n * sizeof(float));
    free(x);
    bpt_network_free(net);
    bpt_network_free(NULL);
    bpt_pool_free(pool);
    bpt_model_free(model);
}

/* With running statistics, and without dropout. */
static void check_evaluation(const net_fixture *f, const float *weights,
                             const bpt_batch_result *result) {
    double *pixels = ref_doubles(f->pixels, f->n_pixels);
    double *w = ref_doubles(weights, f->n_weights);
    const ref_batch batch = {.n = f->batch,
                             .pixels = pixels,
                             .labels = f->labels,
                             .denominator = 1.0,
                             .evaluation = true};
    const ref_result ref = ref_network(f->model, &batch, w, NULL, NULL, NULL);
    if (!(fabs(result->loss_sum - ref.loss_sum) <= 1e-5 * ref.loss_sum))
        fail_msg("the loss is %.9g, not %.9g", result->loss_sum, ref.loss_sum);
    assert_int_equal(result->n_correct, ref.n_correct);
    free(w);
    free(pixels);
}

static void test_evaluate_changes_nothing(void **state) {
    (void)state;
    static const bpt_vector vectors[] = {BPT_VECTOR_WEIGHTS, BPT_VECTOR_GRADIENTS,
                                         BPT_VECTOR_STATE_0};
    net_fixture f = open_mixed(23, 2);
    bpt_batch_result computed, evaluated;
    net_assert_ok(bpt_network_train(f.net, f.pixels, f.labels, 0.1f, 23.0f, &computed));
    net_assert_ok(bpt_network_gradient(f.net, f.pixels, f.labels, 23.0f, &computed));
    float *before[3];
    for (int i = 0; i < 3; i++) before[i] = net_vector(&f, vectors[i]);
    for (uint64_t batch = 0; batch < 2; batch++) {
        refill(&f, batch);
        net_assert_ok(bpt_network_evaluate(f.net, f.pixels, f.labels, &evaluated));
        check_evaluation(&f, before[0], &evaluated);
    }
    for (int i = 0; i < 3; i++) {
        float *after = net_vector(&f, vectors[i]);
        net_assert_same_bits("vector", before[i], after, f.n_weights);
        free(after);
        free(before[i]);
    }
    net_close(&f);
}

/* ---- the update ---- */

static void check_against(const net_fixture *f, bpt_vector which, const double *ref,
                          double tolerance) {
    const char *name = "";
    float *x = net_vector(f, which);
    const double error = ref_segments_error(&f->model->segments, x, ref, &name);
    if (!(error <= tolerance)) fail_msg("%s is off by %.2g", name, error);
    free(x);
}

/* A few steps, since rounding errors grow from step to step. */
static void test_sgd_follows_reference(void **state) {
    (void)state;
    const double rate = 0.0625, mu = 0.75, decay = 0.125; /* the same in float and double */
    const net_options options = {2, {.momentum = mu, .decay = decay}, SEED, BPT_F32};
    net_fixture f = net_open(net_mixed, 23, options);
    double *weights = ref_doubles(f.weights, f.n_weights);
    double *momentum = ref_zeros(f.n_weights), *gradient = ref_zeros(f.n_weights);
    for (uint64_t step = 0; step < 6; step++) {
        bpt_batch_result result;
        refill(&f, step);
        double *pixels = ref_doubles(f.pixels, f.n_pixels);
        const ref_batch batch = {
            .n = 23, .pixels = pixels, .labels = f.labels, .denominator = 16.0};
        const ref_result ref = ref_network(f.model, &batch, weights, NULL, gradient, NULL);
        ref_network_update(&f.model->segments, weights, momentum, gradient, rate, mu, decay);
        net_assert_ok(bpt_network_train(f.net, f.pixels, f.labels, (float)rate, 16.0f, &result));
        assert_true(fabs(result.loss_sum - ref.loss_sum) <= 1e-5 * ref.loss_sum);
        assert_int_equal(result.n_correct, ref.n_correct);
        free(pixels);
    }
    check_against(&f, BPT_VECTOR_WEIGHTS, weights, 2e-5);
    check_against(&f, BPT_VECTOR_STATE_0, momentum, 1e-4);
    free(weights);
    free(momentum);
    free(gradient);
    net_close(&f);
}

static void test_apply_takes_a_given_gradient(void **state) {
    (void)state;
    net_fixture f = open_mixed(3, 2);
    float *given = random_vector(f.n_weights, 7);
    double *weights = ref_doubles(f.weights, f.n_weights), *momentum = ref_zeros(f.n_weights);
    double *gradient = ref_doubles(given, f.n_weights);
    net_assert_ok(bpt_network_set(f.net, BPT_VECTOR_GRADIENTS, given));
    for (int step = 0; step < 4; step++) {
        net_assert_ok(bpt_network_apply(f.net, 0.25f));
        ref_network_update(&f.model->segments, weights, momentum, gradient, 0.25,
                           (double)momentum_sgd.momentum, (double)momentum_sgd.decay);
    }
    check_against(&f, BPT_VECTOR_WEIGHTS, weights, 1e-6);
    check_against(&f, BPT_VECTOR_STATE_0, momentum, 1e-6);
    free(given);
    free(weights);
    free(momentum);
    free(gradient);
    net_close(&f);
}

/* ---- partial batches ---- */

static void check_partial(int64_t batch, int64_t present) {
    net_fixture whole = open_mixed(batch, 2), part = open_mixed(present, 2);
    bpt_batch_result of_whole, of_part;
    for (int64_t i = present; i < batch; i++) whole.labels[i] = -1;
    memcpy(part.pixels, whole.pixels, part.n_pixels * sizeof *part.pixels);
    memcpy(part.labels, whole.labels, (size_t)present * sizeof *part.labels);
    const float n = (float)present;
    net_assert_ok(bpt_network_gradient(whole.net, whole.pixels, whole.labels, n, &of_whole));
    net_assert_ok(bpt_network_gradient(part.net, part.pixels, part.labels, n, &of_part));
    assert_int_equal(of_whole.n_samples, present);
    assert_int_equal(of_part.n_samples, present);
    assert_int_equal(of_whole.n_correct, of_part.n_correct);
    assert_true(fabs(of_whole.loss_sum - of_part.loss_sum) <= 1e-6 * of_part.loss_sum);
    float *gradient = net_vector(&part, BPT_VECTOR_GRADIENTS);
    double *expected = ref_doubles(gradient, part.n_weights);
    check_against(&whole, BPT_VECTOR_GRADIENTS, expected, 1e-5);
    free(expected);
    free(gradient);
    net_close(&whole);
    net_close(&part);
}

static void test_partial_batch_is_a_smaller_batch(void **state) {
    (void)state;
    check_partial(65, 64);
    check_partial(23, 3);
    check_partial(8, 5);
    check_partial(2, 1);
}

/* ---- memory ---- */

static void test_plan_is_what_is_allocated(void **state) {
    (void)state;
    bpt_network_memory plan;
    bpt_model *model = net_parse(net_mixed);
    const uint64_t live = bpt_memory_live();
    net_assert_ok(bpt_network_plan(model, 23, BPT_F32, momentum_sgd, 3, &plan));
    assert_int_equal(bpt_memory_live(), live);
    net_fixture f = open_mixed(23, 3);
    const bpt_network_memory real = bpt_network_memory_of(f.net);
    assert_memory_equal(&plan, &real, sizeof plan);
    assert_int_equal(plan.total, plan.parameters + plan.gradients + plan.state + plan.activations +
                                     plan.activation_gradients + plan.workspaces);
    assert_int_equal(plan.parameters, plan.gradients);
    assert_int_equal(plan.parameters, plan.state);
    assert_in_range(plan.parameters, f.n_weights * sizeof(float), 2 * f.n_weights * sizeof(float));
    net_close(&f);
    bpt_model_free(model);
}

static void test_steps_allocate_nothing(void **state) {
    (void)state;
    net_fixture f = open_mixed(23, 3);
    bpt_batch_result result;
    const uint64_t before = bpt_memory_allocations();
    for (int step = 0; step < 3; step++) {
        net_assert_ok(bpt_network_train(f.net, f.pixels, f.labels, 0.1f, 23.0f, &result));
        net_assert_ok(bpt_network_gradient(f.net, f.pixels, f.labels, 23.0f, &result));
        net_assert_ok(bpt_network_apply(f.net, 0.1f));
        net_assert_ok(bpt_network_evaluate(f.net, f.pixels, f.labels, &result));
        net_assert_ok(bpt_network_get(f.net, BPT_VECTOR_WEIGHTS, f.weights));
        net_assert_ok(bpt_network_set(f.net, BPT_VECTOR_WEIGHTS, f.weights));
    }
    assert_int_equal(bpt_memory_allocations(), before);
    net_close(&f);
}

static int n_threads(void) {
    int n = 0;
    DIR *dir = opendir("/proc/self/task");
    assert_non_null(dir);
    for (const struct dirent *e; (e = readdir(dir));) n += e->d_name[0] != '.';
    closedir(dir);
    return n;
}

/* Kernels run on the worker that calls them; oneDNN would else have a team of its own for each. */
static void test_steps_start_no_threads(void **state) {
    (void)state;
    static const char text[] =
        "{name: t, input: [64, 32, 32], classes: 64, layers: [conv: {filters: 64, kernel: 3, "
        "pad: 1}, relu, maxpool: {kernel: 2}, fc: {outputs: classes}]}";
    const int before = n_threads();
    net_fixture f = net_open(text, 16, (net_options){3, momentum_sgd, SEED, BPT_F32});
    bpt_batch_result result;
    for (int step = 0; step < 2; step++)
        net_assert_ok(bpt_network_train(f.net, f.pixels, f.labels, 0.01f, 16.0f, &result));
    assert_int_equal(n_threads(), before + 2); /* this one is a worker too */
    net_close(&f);
}

/* ---- what was measured ---- */

typedef struct {
    unsigned n_tasks, n_visits;
    const char *label, *kind; /* of the visit before */
    uint64_t ns, pool_ns;
    bool seen_update, seen_pool, seen_loss;
} times;

static void add_time(void *context, const char *label, const char *kind, unsigned n_tasks,
                     uint64_t ns) {
    times *t = context;
    assert_true(n_tasks > 0);
    if (t->label) assert_false(strcmp(label, t->label) == 0 && strcmp(kind, t->kind) == 0);
    t->label = label;
    t->kind = kind;
    t->n_tasks += n_tasks;
    t->n_visits++;
    t->ns += ns;
    if (strcmp(label, "pool1") == 0) t->pool_ns += ns;
    if (strcmp(label, "fc1.weight") == 0 && strcmp(kind, "update") == 0) t->seen_update = true;
    if (strcmp(label, "pool1") == 0 && strcmp(kind, "backward") == 0) t->seen_pool = true;
    if (strcmp(label, "loss") == 0 && strcmp(kind, "loss") == 0) t->seen_loss = n_tasks == 2;
}

static void test_times_cover_all_tasks(void **state) {
    (void)state;
    net_fixture f = open_tiny(2);
    bpt_batch_result result;
    for (int step = 0; step < 2; step++)
        net_assert_ok(bpt_network_train(f.net, f.pixels, f.labels, 0.1f, 2.0f, &result));
    const bpt_run_stats run = bpt_network_last_run(f.net);
    times t = {0};
    bpt_network_visit_times(f.net, add_time, &t);
    assert_int_equal(t.n_tasks, run.n_tasks);
    assert_true(t.n_visits < t.n_tasks);
    assert_true(t.ns > 0 && t.ns <= run.busy_ns && t.ns + t.n_tasks >= run.busy_ns);
    /* A layer's part of the time that the step took. */
    double seconds[8] = {0};
    const size_t pool = 2;
    assert_string_equal(f.model->layers[pool].name, "pool1");
    bpt_network_layer_times(f.net, seconds);
    const double part = (double)t.pool_ns / (double)run.busy_ns;
    assert_near(seconds[pool] / ((double)run.wall_ns * 1e-9), part, 1e-9);
    assert_true(t.seen_update && t.seen_pool && t.seen_loss);
    net_close(&f);
}

/* A path is part of the work. */
static void assert_path(const bpt_network *net) {
    const uint64_t path = bpt_network_critical_path(net);
    assert_true(path > 0);
    assert_true(path <= bpt_network_last_run(net).busy_ns);
}

/* Of whichever run was the last, also where it was the first of all. */
static void test_path_is_of_the_last_run(void **state) {
    (void)state;
    bpt_batch_result result;
    net_fixture f = open_tiny(2);
    net_assert_ok(bpt_network_gradient(f.net, f.pixels, f.labels, 2.0f, &result));
    assert_path(f.net);
    const uint64_t gradient = bpt_network_critical_path(f.net);
    net_assert_ok(bpt_network_apply(f.net, 0.1f)); /* none of those */
    assert_int_equal(bpt_network_critical_path(f.net), gradient);
    net_assert_ok(bpt_network_train(f.net, f.pixels, f.labels, 0.1f, 2.0f, &result));
    assert_path(f.net);
    net_close(&f);

    f = open_tiny(2);
    net_assert_ok(bpt_network_evaluate(f.net, f.pixels, f.labels, &result));
    assert_path(f.net);
    bpt_network *forward = NULL;
    net_assert_ok(bpt_network_create_forward(f.model, f.batch, BPT_F32, f.pool, &forward));
    net_assert_ok(bpt_network_set(forward, BPT_VECTOR_WEIGHTS, f.weights));
    net_assert_ok(bpt_network_evaluate(forward, f.pixels, f.labels, &result));
    assert_path(forward);
    bpt_network_free(forward);
    net_close(&f);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_workers_do_not_change_bits),
        cmocka_unit_test(test_train_is_gradient_and_apply),
        cmocka_unit_test(test_addresses_do_not_change_bits),
        cmocka_unit_test(test_vectors_come_back),
        cmocka_unit_test(test_starts_at_zero),
        cmocka_unit_test(test_evaluate_changes_nothing),
        cmocka_unit_test(test_sgd_follows_reference),
        cmocka_unit_test(test_apply_takes_a_given_gradient),
        cmocka_unit_test(test_partial_batch_is_a_smaller_batch),
        cmocka_unit_test(test_plan_is_what_is_allocated),
        cmocka_unit_test(test_steps_allocate_nothing),
        cmocka_unit_test(test_steps_start_no_threads),
        cmocka_unit_test(test_times_cover_all_tasks),
        cmocka_unit_test(test_path_is_of_the_last_run),
    };
    print_message("seed %d\n", (int)SEED);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
