/* What can go wrong with a network: no memory, numbers that are no numbers, labels of no class.
 *
 * ctest: cpu TIMEOUT=60 */
#include "base/memory.h"
#include "tests/inner/net_fixture.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* Last: it needs those above, and defines fail and skip. */
#include <cmocka.h>

enum { SEED = 20265 };

static const bpt_learning momentum_sgd = {.momentum = 0.9f, .decay = 1e-2f};

static net_fixture open_mixed(int64_t batch, unsigned n_workers) {
    return net_open(net_mixed, batch, (net_options){n_workers, momentum_sgd, SEED, BPT_F32});
}

static net_fixture open_tiny(int64_t batch) {
    return net_open(net_tiny, batch, (net_options){1, momentum_sgd, SEED, BPT_F32});
}

/* ---- memory ---- */

/* Every allocation fails once; two tiles, so that all paths are there. */
static void test_no_memory(void **state) {
    (void)state;
    bpt_model *model = net_parse(net_tiny);
    bpt_pool *pool = net_pool(2);
    const uint64_t live = bpt_memory_live();
    bpt_network *net = NULL;
    int64_t n = 0;
    for (;; n++) {
        bpt_memory_fail_at(n);
        const bpt_status status = bpt_network_create(model, 2, BPT_F32, momentum_sgd, pool, &net);
        bpt_memory_fail_at(-1);
        if (status == BPT_OK) break;
        assert_int_equal(status, BPT_ENOMEM);
        assert_null(net);
        assert_int_equal(bpt_memory_live(), live);
    }
    assert_in_range(n, 50, 5000);
    bpt_network_free(net);
    assert_int_equal(bpt_memory_live(), live);
    bpt_pool_free(pool);
    bpt_model_free(model);
}

static void test_too_large_for_memory(void **state) {
    (void)state;
    static const int64_t batches[] = {(int64_t)1 << 42, (int64_t)1 << 58, INT64_MAX};
    bpt_model *model = net_parse(net_mixed);
    bpt_pool *pool = net_pool(1);
    const uint64_t live = bpt_memory_live();
    for (size_t i = 0; i < sizeof batches / sizeof *batches; i++) {
        bpt_network *net = NULL;
        assert_int_equal(bpt_network_create(model, batches[i], BPT_F32, momentum_sgd, pool, &net),
                         BPT_ENOMEM);
        assert_null(net);
        assert_int_equal(bpt_memory_live(), live);
    }
    bpt_pool_free(pool);
    bpt_model_free(model);
}

/* More than the machine has is refused, not tried. */
static void test_too_large_for_machine(void **state) {
    (void)state;
    const double machine = (double)sysconf(_SC_PHYS_PAGES) * (double)sysconf(_SC_PAGESIZE);
    const char text[] =
        "{name: t, input: [64, 512, 512], classes: 2, layers: ["
        "maxpool: {kernel: 1}, global_avgpool, fc: {outputs: classes}]}";
    const int64_t batch = (int64_t)(2.0 * machine / (64.0 * 512 * 512 * sizeof(float)));
    bpt_model *model = net_parse(text);
    bpt_pool *pool = net_pool(1);
    bpt_network *net = NULL;
    assert_int_equal(bpt_network_create(model, batch, BPT_F32, momentum_sgd, pool, &net),
                     BPT_ENOMEM);
    if (!strstr(bpt_error_last()->text, bpt_memory_bound()))
        fail_msg("the error is \"%s\"", bpt_error_last()->text);
    bpt_pool_free(pool);
    bpt_model_free(model);
}

/* ---- what is not finite ---- */

static void check_not_finite(bpt_status status, const char *layer) {
    assert_int_equal(status, BPT_ENUMERIC);
    const char *text = bpt_error_last()->text;
    if (!strstr(text, layer)) fail_msg("\"%s\" does not name \"%s\"", text, layer);
}

static void test_huge_rate(void **state) {
    (void)state;
    net_fixture f = open_mixed(23, 2);
    bpt_batch_result result;
    bpt_status status = BPT_OK;
    int steps = 0;
    for (; status == BPT_OK && steps < 5; steps++)
        status = bpt_network_train(f.net, f.pixels, f.labels, 1e30f, 23.0f, &result);
    check_not_finite(status, "layer ");
    assert_true(steps > 1);
    /* nothing of it stays behind */
    float *zero = calloc(f.n_weights, sizeof *zero);
    assert_non_null(zero);
    net_assert_ok(bpt_network_set(f.net, BPT_VECTOR_WEIGHTS, f.weights));
    net_assert_ok(bpt_network_set(f.net, BPT_VECTOR_STATE_0, zero));
    net_assert_ok(bpt_network_train(f.net, f.pixels, f.labels, 0.1f, 23.0f, &result));
    net_fixture fresh = open_mixed(23, 2);
    net_assert_ok(bpt_network_train(fresh.net, f.pixels, f.labels, 0.1f, 23.0f, &result));
    float *again = net_vector(&f, BPT_VECTOR_WEIGHTS);
    float *expected = net_vector(&fresh, BPT_VECTOR_WEIGHTS);
    net_assert_same_bits("weights", expected, again, f.n_weights);
    free(again);
    free(expected);
    free(zero);
    net_close(&fresh);
    net_close(&f);
}

/* oneDNN's ReLU and maximum drop NaNs, and the loss is a number again. */
static void check_pixel(const char *text, float pixel) {
    net_fixture f = net_open(text, 6, (net_options){2, momentum_sgd, SEED, BPT_F32});
    bpt_batch_result result;
    for (size_t i = 0; i < f.n_pixels; i += 7 + f.n_pixels / 5) {
        const float was = f.pixels[i];
        f.pixels[i] = pixel;
        check_not_finite(bpt_network_gradient(f.net, f.pixels, f.labels, 6.0f, &result), "input");
        check_not_finite(bpt_network_train(f.net, f.pixels, f.labels, 0.1f, 6.0f, &result),
                         "input");
        f.pixels[i] = was;
        net_assert_ok(bpt_network_set(f.net, BPT_VECTOR_WEIGHTS, f.weights));
    }
    net_close(&f);
}

static void test_pixels_that_are_not_numbers(void **state) {
    (void)state;
    static const char *const models[] = {net_mixed, net_tiny};
    for (size_t i = 0; i < 2; i++) {
        check_pixel(models[i], NAN);
        check_pixel(models[i], INFINITY);
        check_pixel(models[i], -INFINITY);
    }
}

static void test_weights_that_are_not_numbers(void **state) {
    (void)state;
    net_fixture f = open_mixed(6, 2);
    bpt_batch_result result;
    const bpt_segments *s = &f.model->segments;
    float *momentum = calloc(f.n_weights, sizeof *momentum);
    assert_non_null(momentum);
    for (size_t i = 0; i < s->n; i++) {
        char layer[BPT_NAME_SIZE];
        float *w = &f.weights[s->items[i].offset];
        snprintf(layer, sizeof layer, "%.*s", (int)strcspn(s->items[i].name, "."),
                 s->items[i].name);
        const float was = *w;
        *w = NAN;
        net_assert_ok(bpt_network_set(f.net, BPT_VECTOR_WEIGHTS, f.weights));
        net_assert_ok(bpt_network_set(f.net, BPT_VECTOR_STATE_0, momentum));
        check_not_finite(bpt_network_train(f.net, f.pixels, f.labels, 0.1f, 6.0f, &result), layer);
        *w = was;
    }
    free(momentum);
    net_close(&f);
}

static void test_apply_of_what_is_not_a_number(void **state) {
    (void)state;
    net_fixture f = open_mixed(1, 2);
    float *gradient = net_vector(&f, BPT_VECTOR_GRADIENTS);
    gradient[f.model->segments.items[3].offset] = NAN;
    net_assert_ok(bpt_network_set(f.net, BPT_VECTOR_GRADIENTS, gradient));
    check_not_finite(bpt_network_apply(f.net, 0.0f), f.model->segments.items[3].name);
    /* the next that is a number is applied, until a weight is none */
    gradient[f.model->segments.items[3].offset] = 0.0f;
    net_assert_ok(bpt_network_set(f.net, BPT_VECTOR_GRADIENTS, gradient));
    net_assert_ok(bpt_network_apply(f.net, 0.1f));
    gradient[f.model->segments.items[3].offset] = 1e30f;
    net_assert_ok(bpt_network_set(f.net, BPT_VECTOR_GRADIENTS, gradient));
    check_not_finite(bpt_network_apply(f.net, 1e30f), f.model->segments.items[3].name);
    net_assert_ok(bpt_network_set(f.net, BPT_VECTOR_WEIGHTS, f.weights));
    net_assert_ok(bpt_network_apply(f.net, 0.0f));
    free(gradient);
    net_close(&f);
}

static void test_label_of_no_class(void **state) {
    (void)state;
    net_fixture f = open_tiny(6);
    bpt_batch_result result;
    f.labels[4] = 3;
    assert_int_equal(bpt_network_train(f.net, f.pixels, f.labels, 0.1f, 6.0f, &result), BPT_EDATA);
    assert_string_equal(bpt_error_last()->text, "a label is 3, and the model has 3 classes");
    float *weights = net_vector(&f, BPT_VECTOR_WEIGHTS);
    net_assert_same_bits("weights", f.weights, weights, f.n_weights);
    f.labels[4] = 2;
    net_assert_ok(bpt_network_train(f.net, f.pixels, f.labels, 0.1f, 6.0f, &result));
    free(weights);
    net_close(&f);
}

/* Running statistics of batch norms are known long before the loss. */
static void test_a_failed_step_changes_nothing(void **state) {
    (void)state;
    enum { STEPS = 20 };
    net_fixture f = open_mixed(23, 2);
    bpt_batch_result result;
    f.labels[22] = 1000;
    for (int i = 0; i < STEPS; i++) {
        assert_int_equal(bpt_network_train(f.net, f.pixels, f.labels, 0.1f, 23.0f, &result),
                         BPT_EDATA);
        assert_int_equal(bpt_network_updates(f.net), 0);
        float *weights = net_vector(&f, BPT_VECTOR_WEIGHTS);
        net_assert_same_bits("weights", f.weights, weights, f.n_weights);
        free(weights);
    }
    f.labels[22] = 0;
    net_assert_ok(bpt_network_train(f.net, f.pixels, f.labels, 0.1f, 23.0f, &result));
    assert_int_equal(bpt_network_updates(f.net), 1);
    net_close(&f);
}

/* A variance below zero counts as none, but one that is no number is not to be evaluated with. */
static void test_variance_that_is_not_a_number(void **state) {
    (void)state;
    static const char text[] =
        "{name: t, input: [2, 4, 4], classes: 3, layers: [batchnorm, fc: {outputs: classes}]}";
    const struct {
        float value;
        bpt_status expected;
    } cases[] = {{NAN, BPT_ENUMERIC}, {INFINITY, BPT_ENUMERIC}, {-1.0f, BPT_OK}};
    net_fixture f = net_open(text, 6, (net_options){1, momentum_sgd, SEED, BPT_F32});
    const bpt_segments *s = &f.model->segments;
    size_t var = 0;
    while (!strstr(s->items[var].name, "running_var")) var++;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        bpt_batch_result result;
        f.weights[s->items[var].offset] = cases[i].value;
        net_assert_ok(bpt_network_set(f.net, BPT_VECTOR_WEIGHTS, f.weights));
        assert_int_equal(bpt_network_evaluate(f.net, f.pixels, f.labels, &result),
                         cases[i].expected);
    }
    net_close(&f);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_no_memory),
        cmocka_unit_test(test_too_large_for_memory),
        cmocka_unit_test(test_too_large_for_machine),
        cmocka_unit_test(test_huge_rate),
        cmocka_unit_test(test_pixels_that_are_not_numbers),
        cmocka_unit_test(test_weights_that_are_not_numbers),
        cmocka_unit_test(test_apply_of_what_is_not_a_number),
        cmocka_unit_test(test_label_of_no_class),
        cmocka_unit_test(test_a_failed_step_changes_nothing),
        cmocka_unit_test(test_variance_that_is_not_a_number),
    };
    print_message("seed %d\n", (int)SEED);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
