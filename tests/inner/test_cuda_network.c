/* Whole networks on a GPU: every kind of layer against loops in double precision, training against
 * the processor's cores, and what networks do besides.
 *
 * ctest: gpu TIMEOUT=240 */
#include "inner/device.h"
#include "tests/inner/cuda_fixture.h"
#include "tests/inner/cuda_net_fixture.h"
#include "tests/inner/gradient_cases.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* Last: it needs those above, and defines fail and skip. */
#include <cmocka.h>

enum { BATCH = 7 };

static bpt_device *device;

static bpt_network *on_gpu(const net_fixture *f, bpt_value_type type, bpt_learning learning) {
    return cuda_net_open(device, f, type, learning);
}

/* ---- one step against double precision ---- */

static void test_floats(void **state) {
    net_fixture f = gradient_open(*state, BATCH);
    cuda_net_check_floats(device, &f);
    net_close(&f);
}

static void test_halves(void **state) {
    net_fixture f = gradient_open(*state, BATCH);
    cuda_net_check_halves(device, &f);
    net_close(&f);
}

/* ---- training against the cores ---- */

static const bpt_learning learning = {.momentum = 0.9, .decay = 0.01};

static void test_training(void **state) {
    (void)state;
    net_fixture f =
        net_open(net_mixed, BATCH, (net_options){.n_workers = 2, .learning = learning, .seed = 1});
    bpt_network *net = on_gpu(&f, BPT_F32, learning);
    cuda_net_train(&f, net, 6);
    cuda_net_compare(&f, net, BPT_VECTOR_WEIGHTS, "weights");
    cuda_net_compare(&f, net, BPT_VECTOR_STATE_0, "momenta");
    cuda_net_compare_evaluations(&f, net);
    assert_int_equal(bpt_network_updates(net), 6);
    assert_int_equal(bpt_network_n_states(net), 1);
    bpt_network_free(net);
    net_close(&f);
}

/* Samples that are not there count for nothing, in no layer: as on the cores, whatever they hold.
 */
static void test_absent_samples(void **state) {
    (void)state;
    net_fixture f =
        net_open(net_mixed, BATCH, (net_options){.n_workers = 2, .learning = learning, .seed = 9});
    bpt_network *net = on_gpu(&f, BPT_F32, learning);
    const size_t sample = f.n_pixels / BATCH;
    for (size_t i = (BATCH - 2) * sample; i < f.n_pixels; i++) f.pixels[i] *= 10.0f;
    f.labels[BATCH - 2] = f.labels[BATCH - 1] = -1;
    cuda_net_train(&f, net, 6);
    cuda_net_compare(&f, net, BPT_VECTOR_WEIGHTS, "weights");
    cuda_net_compare(&f, net, BPT_VECTOR_STATE_0, "momenta");
    bpt_network_free(net);
    net_close(&f);
}

/* The update apart from the gradient, as other ranks want it, comes to the same. */
static void test_apply(void **state) {
    (void)state;
    net_fixture f =
        net_open(net_mixed, BATCH, (net_options){.n_workers = 1, .learning = learning, .seed = 2});
    bpt_network *one = on_gpu(&f, BPT_F32, learning), *two = on_gpu(&f, BPT_F32, learning);
    for (int step = 0; step < 4; step++) {
        bpt_batch_result r;
        bpt_network_set_draw(one, cuda_net_draw((uint64_t)step));
        bpt_network_set_draw(two, cuda_net_draw((uint64_t)step));
        net_assert_ok(bpt_network_train(one, f.pixels, f.labels, 0.01f, BATCH, &r));
        net_assert_ok(bpt_network_gradient(two, f.pixels, f.labels, BATCH, &r));
        net_assert_ok(bpt_network_apply(two, 0.01f));
    }
    float *a = net_vector_of(one, &f, BPT_VECTOR_WEIGHTS),
          *b = net_vector_of(two, &f, BPT_VECTOR_WEIGHTS);
    assert_true(net_distance(a, b, f.n_weights) <= 1e-6);
    free(b);
    free(a);
    bpt_network_free(two);
    bpt_network_free(one);
    net_close(&f);
}

/* ---- the rest ---- */

static void test_vectors(void **state) {
    (void)state;
    net_fixture f = net_open(net_mixed, BATCH, (net_options){.n_workers = 1, .seed = 3});
    bpt_network *net = on_gpu(&f, BPT_BF16, learning);
    float *weights = net_vector_of(net, &f, BPT_VECTOR_WEIGHTS);
    net_assert_same_bits("weights", weights, f.weights, f.n_weights);
    net_assert_ok(bpt_network_set(net, BPT_VECTOR_STATE_0, f.weights));
    float *momenta = net_vector_of(net, &f, BPT_VECTOR_STATE_0);
    net_assert_same_bits("momenta", momenta, f.weights, f.n_weights);
    free(momenta);
    free(weights);
    bpt_network_free(net);
    net_close(&f);
}

static void test_second_labels(void **state) {
    (void)state;
    net_fixture f = net_open(net_tiny, 3, (net_options){.n_workers = 1, .seed = 5});
    bpt_network *net = on_gpu(&f, BPT_F32, (bpt_learning){.label_smoothing = 0.1});
    const int32_t second[] = {1, -1, 0};
    const float parts[] = {0.25f, 0.0f, 0.75f};
    bpt_network *cores;
    bpt_batch_result a, b;
    net_assert_ok(bpt_network_create(f.model, 3, BPT_F32, (bpt_learning){.label_smoothing = 0.1},
                                     f.pool, &cores));
    net_assert_ok(bpt_network_set(cores, BPT_VECTOR_WEIGHTS, f.weights));
    f.labels[1] = -1;
    bpt_network_set_second(cores, second, parts);
    bpt_network_set_second(net, second, parts);
    net_assert_ok(bpt_network_gradient(cores, f.pixels, f.labels, 3, &a));
    net_assert_ok(bpt_network_gradient(net, f.pixels, f.labels, 3, &b));
    assert_true(fabs(a.loss_sum - b.loss_sum) <= 1e-5 * fabs(a.loss_sum));
    assert_int_equal(a.n_samples, b.n_samples);
    assert_int_equal(a.n_correct, b.n_correct);
    bpt_network_free(cores);
    bpt_network_free(net);
    net_close(&f);
}

static void assert_weights_stay(bpt_network *net, const net_fixture *f) {
    float *weights = net_vector_of(net, f, BPT_VECTOR_WEIGHTS);
    net_assert_same_bits("weights", weights, f->weights, f->n_weights);
    free(weights);
}

static void test_bad_label(void **state) {
    (void)state;
    net_fixture f = net_open(net_mixed, BATCH, (net_options){.n_workers = 1, .seed = 6});
    bpt_network *net = on_gpu(&f, BPT_F32, learning);
    bpt_batch_result r;
    f.labels[3] = (int32_t)f.model->classes;
    assert_int_equal(bpt_network_train(net, f.pixels, f.labels, 0.1f, BATCH, &r), BPT_EDATA);
    assert_weights_stay(net, &f);
    bpt_network_free(net);
    net_close(&f);
}

static void test_not_finite(void **state) {
    (void)state;
    net_fixture f = net_open(net_mixed, BATCH, (net_options){.n_workers = 1, .seed = 7});
    bpt_network *net = on_gpu(&f, BPT_F32, learning);
    bpt_batch_result r;
    bpt_error error;
    f.pixels[5] = NAN;
    assert_int_equal(bpt_network_train(net, f.pixels, f.labels, 0.1f, BATCH, &r), BPT_ENUMERIC);
    bpt_error_get(&error);
    assert_non_null(strstr(error.text, "nor is all of the input"));
    assert_weights_stay(net, &f);
    f.pixels[5] = 0.0f;
    f.weights[f.n_weights - 1] = INFINITY; /* the last layer's bias */
    net_assert_ok(bpt_network_set(net, BPT_VECTOR_WEIGHTS, f.weights));
    assert_int_equal(bpt_network_train(net, f.pixels, f.labels, 0.1f, BATCH, &r), BPT_ENUMERIC);
    bpt_error_get(&error);
    assert_non_null(strstr(error.text, f.model->layers[f.model->n_layers - 1].name));
    assert_weights_stay(net, &f);
    bpt_network_free(net);
    net_close(&f);
}

static void test_forward_only(void **state) {
    (void)state;
    net_fixture f = net_open(net_mixed, BATCH, (net_options){.n_workers = 1, .seed = 8});
    bpt_network *net;
    net_assert_ok(bpt_network_create_forward_on(device, f.model, BATCH, BPT_F32, f.pool, &net));
    net_assert_ok(bpt_network_set(net, BPT_VECTOR_WEIGHTS, f.weights));
    cuda_net_compare_evaluations(&f, net);
    bpt_network_free(net);
    net_close(&f);
}

/* The same bits step for step from the same kernels. */
static void test_same_bits(void **state) {
    (void)state;
    net_fixture f = net_open(net_mixed, BATCH, (net_options){.n_workers = 1, .seed = 9});
    bpt_network *net = on_gpu(&f, BPT_BF16, learning);
    float *first = NULL;
    for (int round = 0; round < 2; round++) {
        bpt_batch_result r;
        float *zeros = net_floats(f.n_weights);
        memset(zeros, 0, f.n_weights * sizeof *zeros);
        net_assert_ok(bpt_network_set(net, BPT_VECTOR_WEIGHTS, f.weights));
        net_assert_ok(bpt_network_set(net, BPT_VECTOR_STATE_0, zeros));
        for (int step = 0; step < 4; step++) {
            bpt_network_set_draw(net, cuda_net_draw((uint64_t)step));
            net_assert_ok(bpt_network_train(net, f.pixels, f.labels, 0.01f, BATCH, &r));
        }
        free(zeros);
        float *weights = net_vector_of(net, &f, BPT_VECTOR_WEIGHTS);
        if (first) net_assert_same_bits("weights", weights, first, f.n_weights);
        if (first) free(weights);
        if (!first) first = weights;
    }
    free(first);
    bpt_network_free(net);
    net_close(&f);
}

/* ---- which pixels a step is given ---- */

/* @return a batch that no other is like; free() */
static float *batch_of(const net_fixture *f, float scale) {
    float *pixels = net_floats(f->n_pixels);
    for (size_t i = 0; i < f->n_pixels; i++) pixels[i] = scale * f->pixels[f->n_pixels - 1 - i];
    return pixels;
}

/* Both compute the gradient of a batch, the GPU with a hint of what comes then. */
static void compare_step(const net_fixture *f, bpt_network *net, const float *pixels,
                         const float *next) {
    bpt_batch_result a, b;
    net_assert_ok(bpt_network_gradient(f->net, pixels, f->labels, BATCH, &a));
    bpt_network_set_next(net, next);
    net_assert_ok(bpt_network_gradient(net, pixels, f->labels, BATCH, &b));
    if (!(fabs(a.loss_sum - b.loss_sum) <= 1e-4 * fabs(a.loss_sum)))
        fail_msg("the loss is %.9g, on the cores %.9g", b.loss_sum, a.loss_sum);
}

static void compare_evaluation(const net_fixture *f, bpt_network *net, const float *pixels) {
    bpt_batch_result a, b;
    net_assert_ok(bpt_network_evaluate(f->net, pixels, f->labels, &a));
    net_assert_ok(bpt_network_evaluate(net, pixels, f->labels, &b));
    assert_true(fabs(a.loss_sum - b.loss_sum) <= 1e-4 * fabs(a.loss_sum));
}

static void test_hints(void **state) {
    (void)state;
    net_fixture f = net_open(net_tiny, BATCH, (net_options){.n_workers = 1, .seed = 10});
    bpt_network *net = on_gpu(&f, BPT_F32, learning);
    float *x = batch_of(&f, 1.0f), *y = batch_of(&f, -0.5f), *z = batch_of(&f, 2.0f);
    for (int round = 0; round < 3; round++) { /* task by task, and captured */
        compare_step(&f, net, x, y);
        compare_step(&f, net, y, z);    /* as it was said */
        compare_step(&f, net, x, y);    /* not as it was said */
        compare_evaluation(&f, net, z); /* another in between */
        compare_step(&f, net, y, NULL);
        for (size_t i = 0; i < f.n_pixels; i++) y[i] += 0.25f; /* another batch at the same place */
        compare_step(&f, net, y, y);
        compare_step(&f, net, y, NULL);
    }
    free(z);
    free(y);
    free(x);
    bpt_network_free(net);
    net_close(&f);
}

/* ---- what is wrong behind a captured step, while another network has run ---- */

static void test_failures_later(void **state) {
    (void)state;
    net_fixture f = net_open(net_mixed, BATCH, (net_options){.n_workers = 1, .seed = 11});
    bpt_network *net = on_gpu(&f, BPT_F32, learning), *other = NULL;
    bpt_batch_result r;
    for (int step = 0; step < 4; step++)
        net_assert_ok(bpt_network_train(net, f.pixels, f.labels, 0.0f, BATCH, &r));
    other = on_gpu(&f, BPT_BF16, learning);
    net_assert_ok(bpt_network_train(other, f.pixels, f.labels, 0.0f, BATCH, &r));
    bpt_network_free(other);
    const int32_t label = f.labels[2];
    const float pixel = f.pixels[9];
    float *before = net_vector_of(net, &f, BPT_VECTOR_WEIGHTS);
    f.labels[2] = (int32_t)f.model->classes + 5;
    assert_int_equal(bpt_network_train(net, f.pixels, f.labels, 0.1f, BATCH, &r), BPT_EDATA);
    f.labels[2] = label;
    f.pixels[9] = NAN;
    assert_int_equal(bpt_network_train(net, f.pixels, f.labels, 0.1f, BATCH, &r), BPT_ENUMERIC);
    f.pixels[9] = pixel;
    assert_int_equal(bpt_network_updates(net), 4);
    float *after = net_vector_of(net, &f, BPT_VECTOR_WEIGHTS);
    net_assert_same_bits("weights", after, before, f.n_weights);
    net_assert_ok(bpt_network_train(net, f.pixels, f.labels, 0.1f, BATCH, &r));
    assert_int_equal(bpt_network_updates(net), 5);
    free(after);
    free(before);
    bpt_network_free(net);
    net_close(&f);
}

/* ---- what was chosen, kept for another process ---- */

/* @return the weights after some steps on a device of its own that has read @p path, or writes it;
 * free() */
static float *train_alone(net_fixture *f, const char *path, bool reads) {
    bpt_device *own, *shared = device;
    bpt_batch_result r;
    const char *unlike = "not read";
    net_assert_ok(bpt_device_open("cuda", false, &own));
    if (reads) net_assert_ok(bpt_device_load_choices(own, path, &unlike));
    assert_int_equal(!unlike, reads);
    device = own;
    bpt_network *net = on_gpu(f, BPT_BF16, learning);
    device = shared;
    for (int step = 0; step < 4; step++) {
        bpt_network_set_draw(net, cuda_net_draw((uint64_t)step));
        net_assert_ok(bpt_network_train(net, f->pixels, f->labels, 0.01f, BATCH, &r));
    }
    float *weights = net_vector_of(net, f, BPT_VECTOR_WEIGHTS);
    if (reads)
        assert_int_equal(own->n_measured, 0);
    else
        assert_true(own->n_measured > 0);
    if (!reads) net_assert_ok(bpt_device_save_choices(own, path));
    bpt_network_free(net);
    bpt_device_close(own);
    return weights;
}

static void test_choices(void **state) {
    (void)state;
    char path[] = "/tmp/bpt-choices-XXXXXX";
    net_fixture f = net_open(net_mixed, BATCH, (net_options){.n_workers = 1, .seed = 12});
    const int fd = mkstemp(path);
    assert_true(fd >= 0);
    close(fd);
    float *first = train_alone(&f, path, false), *second = train_alone(&f, path, true);
    net_assert_same_bits("weights", second, first, f.n_weights);
    unlink(path);
    free(second);
    free(first);
    net_close(&f);
}

static void test_too_large(void **state) {
    (void)state;
    const bpt_model_override override = {.input = {3, 224, 224}};
    bpt_model *model;
    bpt_network *net = NULL;
    bpt_pool *pool = net_pool(1);
    net_assert_ok(bpt_model_load("lenet", &override, &model));
    assert_int_equal(bpt_network_create_on(device, model, 1 << 18, BPT_F32, learning, pool, &net),
                     BPT_EUSAGE);
    bpt_model_free(model);
    bpt_pool_free(pool);
}

/* The batch that a hint says would fit does, and little more: nearly all that it takes grows with
 * it. */
static void test_what_fits(void **state) {
    (void)state;
    static const char text[] =
        "name: wide\ninput: [1, 28, 28]\nclasses: 10\nlayers:\n"
        "  - pad_channels: {channels: 256}\n  - global_avgpool\n"
        "  - fc: {outputs: classes}\n";
    const int64_t of_a_sample = 256 * 28 * 28 * (int64_t)sizeof(float);
    bpt_model *model;
    bpt_network *net = NULL;
    bpt_pool *pool = net_pool(1);
    net_assert_ok(bpt_model_parse("wide", text, sizeof text - 1, NULL, &model));
    const int64_t asked = (int64_t)device->memory_bytes / of_a_sample;
    assert_int_equal(bpt_network_create_on(device, model, asked, BPT_F32, learning, pool, &net),
                     BPT_EUSAGE);
    const char *said = strstr(bpt_error_last()->hint, "(about ");
    assert_non_null(said);
    assert_non_null(strstr(said, " samples a step would fit)"));
    const int64_t fits = strtoll(said + strlen("(about "), NULL, 10);
    assert_in_range(fits, 1, asked - 1);
    const int64_t more = fits + fits / 8;
    assert_int_equal(bpt_network_create_on(device, model, more, BPT_F32, learning, pool, &net),
                     BPT_EUSAGE);
    net_assert_ok(bpt_network_create_on(device, model, fits, BPT_F32, learning, pool, &net));
    bpt_network_free(net);
    bpt_model_free(model);
    bpt_pool_free(pool);
}

/* Memory can be pinned once, and again when that is over, where the system pins any; little of it
 * is not. */
static void test_pinned(void **state) {
    (void)state;
    static const char *const choices[] = {"cuda", "cuda+cpu"};
    const size_t bytes = 3 << 20;
    char *at = calloc(1, bytes);
    assert_non_null(at);
    for (size_t i = 0; i < sizeof choices / sizeof *choices; i++) {
        bpt_device *own;
        bpt_pinned one, other;
        net_assert_ok(bpt_device_open(choices[i], false, &own));
        bpt_device_pin(own, at, 1 << 19, &one);
        assert_null(one.at);
        bpt_device_pin(own, at, bytes, &one);
        const bool can = one.at != NULL;
        if (!can) print_message("%s: this system pins no memory\n", choices[i]);
        assert_true(!can || one.at == at);
        bpt_device_pin(own, at, bytes, &other);
        assert_null(other.at);
        bpt_device_unpin(&other);
        bpt_device_unpin(&one);
        assert_null(one.at);
        bpt_device_pin(own, at, bytes, &other);
        assert_true(!can || other.at == at);
        bpt_device_unpin(&other);
        bpt_device_close(own);
    }
    bpt_pinned none;
    bpt_device_pin(NULL, at, bytes, &none);
    assert_null(none.at);
    bpt_device_unpin(&none);
    free(at);
}

static int run_cases(void) {
    static const gradient_sort sorts[] = {{"floats", test_floats}, {"bfloat16", test_halves}};
    return gradient_run("test_cuda_network, layers", sorts, sizeof sorts / sizeof *sorts);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_training),       cmocka_unit_test(test_absent_samples),
        cmocka_unit_test(test_apply),          cmocka_unit_test(test_vectors),
        cmocka_unit_test(test_bad_label),      cmocka_unit_test(test_second_labels),
        cmocka_unit_test(test_not_finite),     cmocka_unit_test(test_forward_only),
        cmocka_unit_test(test_same_bits),      cmocka_unit_test(test_too_large),
        cmocka_unit_test(test_choices),        cmocka_unit_test(test_hints),
        cmocka_unit_test(test_failures_later), cmocka_unit_test(test_what_fits),
        cmocka_unit_test(test_pinned),
    };
    const int missing = cuda_begin();
    if (missing) return missing;
    net_assert_ok(bpt_device_open("cuda", false, &device));
    const int failed = cmocka_run_group_tests(tests, NULL, NULL) + run_cases();
    bpt_device_close(device);
    cuda_end();
    return failed;
}
