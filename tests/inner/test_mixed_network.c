/* Networks that a device and the cores have in common: their steps against those of one network on
 * the cores, for any share; statistics; errors of either side. The device is one of tests.
 *
 * ctest: cpu TIMEOUT=120 */
#include "inner/mixed/mixed_network.h"
#include "tests/inner/mixed_fixture.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

/* Last: it needs those above, and defines fail and skip. */
#include <cmocka.h>

enum { BATCH = MIXED_BATCH };

/* ---- steps ---- */

static void train_both(const net_fixture *f, bpt_network *net, int n_steps) {
    static const int32_t second[BATCH] = {1, -1, 0, 2, -1, 4, 3, 1, 0};
    static const float parts[BATCH] = {0.25f, 0, 0.5f, 0.1f, 0, 0.75f, 0.3f, 0.4f, 0.2f};
    for (int step = 0; step < n_steps; step++) {
        bpt_batch_result a, b;
        bpt_network *const nets[] = {f->net, net};
        for (int i = 0; i < 2; i++) {
            bpt_network_set_draw(nets[i], mixed_draw((uint64_t)step));
            if (step % 2) bpt_network_set_second(nets[i], second, parts);
            bpt_network_set_next(nets[i], f->pixels);
        }
        net_assert_ok(bpt_network_train(f->net, f->pixels, f->labels, 0.05f, BATCH, &a));
        net_assert_ok(bpt_network_train(net, f->pixels, f->labels, 0.05f, BATCH, &b));
        mixed_compare_results(&b, &a);
    }
}

static void check_training(int64_t n_cores) {
    net_fixture f = mixed_net(mixed_plain, 1);
    mixed_shared s = mixed_share(&f, n_cores, mixed_learning);
    bpt_batch_result a, b;
    train_both(&f, s.net, 6);
    mixed_compare("weights", &f, s.net, BPT_VECTOR_WEIGHTS);
    mixed_compare("momenta", &f, s.net, BPT_VECTOR_STATE_0);
    assert_int_equal(bpt_network_updates(s.net), 6);
    net_assert_ok(bpt_network_evaluate(f.net, f.pixels, f.labels, &a));
    net_assert_ok(bpt_network_evaluate(s.net, f.pixels, f.labels, &b));
    mixed_compare_results(&b, &a);
    mixed_unshare(&s);
    net_close(&f);
}

static void test_training(void **state) {
    static const int64_t shares[] = {0, 1, 4, 8, BATCH};
    (void)state;
    for (size_t i = 0; i < sizeof shares / sizeof *shares; i++) check_training(shares[i]);
}

/* Gradients and updates one by one, as other ranks want them; a step of another kind between. */
static void check_apply(int64_t n_cores) {
    net_fixture f = mixed_net(mixed_plain, 2);
    mixed_shared s = mixed_share(&f, n_cores, mixed_learning);
    for (int step = 0; step < 4; step++) {
        bpt_batch_result a, b;
        bpt_network_set_draw(f.net, mixed_draw((uint64_t)step));
        bpt_network_set_draw(s.net, mixed_draw((uint64_t)step));
        net_assert_ok(bpt_network_gradient(f.net, f.pixels, f.labels, BATCH, &a));
        for (int again = 0; again < 2; again++) { /* by the same weights */
            net_assert_ok(bpt_network_gradient(s.net, f.pixels, f.labels, BATCH, &b));
            mixed_compare_results(&b, &a);
            mixed_compare("gradients", &f, s.net, BPT_VECTOR_GRADIENTS);
        }
        float *sum = net_vector(&f, BPT_VECTOR_GRADIENTS); /* that other ranks would add to */
        for (size_t i = 0; i < f.n_weights; i++) sum[i] *= 1.5f;
        net_assert_ok(bpt_network_set(f.net, BPT_VECTOR_GRADIENTS, sum));
        net_assert_ok(bpt_network_set(s.net, BPT_VECTOR_GRADIENTS, sum));
        net_assert_ok(bpt_network_apply(f.net, 0.05f));
        net_assert_ok(bpt_network_apply(s.net, 0.05f));
        net_assert_ok(bpt_network_evaluate(f.net, f.pixels, f.labels, &a));
        net_assert_ok(bpt_network_evaluate(s.net, f.pixels, f.labels, &b));
        mixed_compare_results(&b, &a);
        free(sum);
    }
    assert_int_equal(bpt_network_updates(s.net), 4);
    mixed_unshare(&s);
    net_close(&f);
}

static void test_apply(void **state) {
    (void)state;
    check_apply(3);
    check_apply(BATCH);
}

typedef struct {
    uint32_t n_taken;
} taker;

static void take(void *context, uint32_t part) {
    taker *t = context;
    assert_int_equal(part, t->n_taken++);
}

static void test_hand_out(void **state) {
    (void)state;
    net_fixture f = mixed_net(mixed_plain, 3);
    mixed_shared s = mixed_share(&f, 4, mixed_learning);
    taker t = {0};
    float *flat = net_floats(f.n_weights);
    const size_t begin[] = {0, f.model->segments.items[1].offset, f.n_weights};
    const bpt_gradient_parts parts = {2, begin, flat, take, &t};
    bpt_batch_result r;
    net_assert_ok(bpt_network_hand_out(s.net, &parts));
    net_assert_ok(bpt_network_gradient(s.net, f.pixels, f.labels, BATCH, &r));
    float *gradient = net_vector_of(s.net, &f, BPT_VECTOR_GRADIENTS);
    assert_int_equal(t.n_taken, 2);
    net_assert_same_bits("gradients", flat, gradient, f.n_weights);
    free(gradient);
    free(flat);
    mixed_unshare(&s);
    net_close(&f);
}

/* ---- statistics ---- */

/* Two batch norms: what the first one sees does not depend on who has a sample. */
static const char normed[] =
    "{name: t, input: [3, 8, 8], classes: 5, layers: [batchnorm: {name: first}, "
    "conv: {name: conv1, filters: 8, kernel: 3, pad: 1}, batchnorm: {name: second}, relu, "
    "fc: {name: fc1, outputs: classes}]}";

static const bpt_segment *find_segment(const net_fixture *f, const char *name) {
    for (size_t i = 0; i < f->model->segments.n; i++)
        if (strcmp(f->model->segments.items[i].name, name) == 0)
            return &f->model->segments.items[i];
    fail_msg("there is no %s", name);
    return NULL;
}

/* The running mean of the input moves as it does in one network, whatever part of the samples the
 * sides have, and whatever of these are not there. @param denominator of the step */
static void check_running_mean(int64_t n_cores, int n_absent, float denominator) {
    net_fixture f = mixed_net(normed, 4);
    mixed_shared s = mixed_share(&f, n_cores, mixed_learning);
    const bpt_segment *mean = find_segment(&f, "first.running_mean");
    bpt_batch_result r;
    for (int i = 0; i < n_absent; i++) f.labels[BATCH - 1 - i] = -1;
    net_assert_ok(bpt_network_train(f.net, f.pixels, f.labels, 0.05f, denominator, &r));
    net_assert_ok(bpt_network_train(s.net, f.pixels, f.labels, 0.05f, denominator, &r));
    assert_int_equal(r.n_samples, BATCH - n_absent);
    float *one = net_vector(&f, BPT_VECTOR_WEIGHTS),
          *two = net_vector_of(s.net, &f, BPT_VECTOR_WEIGHTS);
    for (size_t i = mean->offset; i < mean->offset + mean->count; i++) {
        const double moved = (double)one[i] - (double)f.weights[i];
        if (!(fabs((double)two[i] - (double)one[i]) <= 1e-4 * fabs(moved)))
            fail_msg("%d of the cores: it moves by %.6g, not %.6g", (int)n_cores,
                     (double)two[i] - (double)f.weights[i], moved);
    }
    free(two);
    free(one);
    mixed_unshare(&s);
    net_close(&f);
}

static void test_running_mean(void **state) {
    static const int64_t shares[] = {0, 1, 4, 8, BATCH};
    (void)state;
    for (size_t i = 0; i < sizeof shares / sizeof *shares; i++) {
        check_running_mean(shares[i], 0, BATCH);
        check_running_mean(shares[i], 0, 2 * BATCH); /* another rank has as many samples */
        check_running_mean(shares[i], 2, BATCH - 2);
    }
    check_running_mean(2, 2, BATCH - 2); /* nothing is left for the cores */
}

/* @return the gradient of some samples by themselves, divided by the whole batch; free() */
static float *gradient_of(const net_fixture *f, int64_t first, int64_t n) {
    const size_t sample = f->n_pixels / (size_t)f->batch;
    bpt_network *net;
    bpt_batch_result r;
    bpt_draw draw = mixed_draw(1);
    draw.first_sample += (uint64_t)first;
    net_assert_ok(bpt_network_create(f->model, n, BPT_F32, mixed_learning, f->pool, &net));
    net_assert_ok(bpt_network_set(net, BPT_VECTOR_WEIGHTS, f->weights));
    bpt_network_set_draw(net, draw);
    net_assert_ok(bpt_network_gradient(net, f->pixels + (size_t)first * sample, f->labels + first,
                                       BATCH, &r));
    float *gradient = net_vector_of(net, f, BPT_VECTOR_GRADIENTS);
    bpt_network_free(net);
    return gradient;
}

/* Of every kind of layer: the sum of what each side has by itself, statistics of its own included.
 */
static void test_sum(void **state) {
    (void)state;
    net_fixture f = mixed_net(net_mixed, 4);
    mixed_shared s = mixed_share(&f, 4, mixed_learning);
    bpt_batch_result r;
    bpt_network_set_draw(s.net, mixed_draw(1));
    net_assert_ok(bpt_network_gradient(s.net, f.pixels, f.labels, BATCH, &r));
    float *sum = net_vector_of(s.net, &f, BPT_VECTOR_GRADIENTS);
    float *device = gradient_of(&f, 0, 5), *cores = gradient_of(&f, 5, 4);
    for (size_t i = 0; i < f.n_weights; i++) device[i] += cores[i];
    for (size_t i = 0; i < f.model->segments.n; i++) {
        const bpt_segment *g = &f.model->segments.items[i];
        const double off = net_distance(sum + g->offset, device + g->offset, g->count);
        if (!(off <= 1e-6)) fail_msg("%s is off by %.2g", g->name, off);
    }
    free(cores);
    free(device);
    free(sum);
    mixed_unshare(&s);
    net_close(&f);
}

/* ---- what is frozen ---- */

/* Behind batch norms that look at no batch, every sample is by itself. */
static const bpt_learning bounded = {
    .momentum = 0.9, .decay = 0.01, .label_smoothing = 0.1, .clip_norm = 0.3, .step_limit = 0.05};

static void check_frozen(const char *first, int64_t n_cores) {
    const net_options options = {.n_workers = MIXED_WORKERS, .learning = bounded, .seed = 25};
    net_fixture f = net_open(net_mixed, BATCH, options);
    bpt_batch_result a, b;
    net_freeze(&f, first, options);
    mixed_shared s = mixed_share(&f, n_cores, bounded);
    for (int round = 0; round < 2; round++) {
        train_both(&f, s.net, 4);
        mixed_compare("weights", &f, s.net, BPT_VECTOR_WEIGHTS);
        mixed_compare("momenta", &f, s.net, BPT_VECTOR_STATE_0);
        net_assert_frozen(&f, s.net);
        net_assert_ok(bpt_network_evaluate(f.net, f.pixels, f.labels, &a));
        net_assert_ok(bpt_network_evaluate(s.net, f.pixels, f.labels, &b));
        mixed_compare_results(&b, &a);
        for (size_t i = 0; i < f.n_weights; i++) f.weights[i] *= 1.125f; /* as other ranks do */
        net_assert_ok(bpt_network_set(f.net, BPT_VECTOR_WEIGHTS, f.weights));
        net_assert_ok(bpt_network_set(s.net, BPT_VECTOR_WEIGHTS, f.weights));
    }
    mixed_unshare(&s);
    net_close(&f);
}

static void test_frozen(void **state) {
    static const int64_t shares[] = {0, 1, 4, 8, BATCH};
    (void)state;
    for (size_t i = 0; i < sizeof shares / sizeof *shares; i++) {
        check_frozen("conv3", shares[i]);
        check_frozen("conv5", shares[i]);
        check_frozen("fc2", shares[i]);
    }
}

/* ---- weights from outside, and other rules ---- */

/* As other ranks do between steps. */
static void test_weights_set(void **state) {
    (void)state;
    net_fixture f = mixed_net(mixed_plain, 12);
    mixed_shared s = mixed_share(&f, 4, mixed_learning);
    for (int round = 0; round < 3; round++) {
        train_both(&f, s.net, 2);
        net_assert_ok(bpt_network_set(f.net, BPT_VECTOR_WEIGHTS, f.weights));
        net_assert_ok(bpt_network_set(s.net, BPT_VECTOR_WEIGHTS, f.weights));
    }
    train_both(&f, s.net, 2);
    mixed_compare("weights", &f, s.net, BPT_VECTOR_WEIGHTS);
    mixed_unshare(&s);
    net_close(&f);
}

/* As a run that is resumed does. Beside a device the cores have no momenta. */
static void test_momenta_set(void **state) {
    static const int64_t shares[] = {0, 4, BATCH};
    (void)state;
    for (size_t i = 0; i < sizeof shares / sizeof *shares; i++) {
        net_fixture f = mixed_net(mixed_plain, 16);
        mixed_shared s = mixed_share(&f, shares[i], mixed_learning);
        float *momenta = net_floats(f.n_weights);
        for (size_t j = 0; j < f.n_weights; j++) momenta[j] = (float)(j % 7) * 0.01f - 0.03f;
        net_assert_ok(bpt_network_set(f.net, BPT_VECTOR_STATE_0, momenta));
        net_assert_ok(bpt_network_set(s.net, BPT_VECTOR_STATE_0, momenta));
        float *back = net_vector_of(s.net, &f, BPT_VECTOR_STATE_0);
        net_assert_same_bits("momenta", back, momenta, f.n_weights);
        train_both(&f, s.net, 2);
        mixed_compare("weights", &f, s.net, BPT_VECTOR_WEIGHTS);
        mixed_compare("momenta", &f, s.net, BPT_VECTOR_STATE_0);
        net_assert_ok(bpt_network_set(f.net, BPT_VECTOR_STATE_0, momenta)); /* between steps */
        net_assert_ok(bpt_network_set(s.net, BPT_VECTOR_STATE_0, momenta));
        train_both(&f, s.net, 2);
        mixed_compare("weights", &f, s.net, BPT_VECTOR_WEIGHTS);
        free(back);
        free(momenta);
        mixed_unshare(&s);
        net_close(&f);
    }
}

/* It counts updates. */
static void test_adamw(void **state) {
    static const int64_t shares[] = {0, 4, BATCH};
    const bpt_learning adamw = {.decay = 0.01,
                                .beta1 = 0.9,
                                .beta2 = 0.999,
                                .eps = 1e-3,
                                .clip_norm = 0.5,
                                .optimizer = &bpt_optimizer_adamw};
    (void)state;
    for (size_t i = 0; i < sizeof shares / sizeof *shares; i++) {
        net_fixture f = net_open(mixed_plain, BATCH,
                                 (net_options){.n_workers = MIXED_WORKERS, .learning = adamw});
        mixed_shared s = mixed_share(&f, shares[i], adamw);
        bpt_network_set_updates(f.net, 3);
        bpt_network_set_updates(s.net, 3);
        train_both(&f, s.net, 4);
        mixed_compare("weights", &f, s.net, BPT_VECTOR_WEIGHTS);
        mixed_compare("second moments", &f, s.net, BPT_VECTOR_STATE_1);
        assert_int_equal(bpt_network_updates(s.net), 7);
        mixed_unshare(&s);
        net_close(&f);
    }
}

/* ---- errors ---- */

static void assert_weights_stay(const mixed_shared *s, const net_fixture *f) {
    float *weights = net_vector_of(s->net, f, BPT_VECTOR_WEIGHTS);
    net_assert_same_bits("weights", weights, f->weights, f->n_weights);
    assert_int_equal(bpt_network_updates(s->net), 0);
    free(weights);
}

/* Where both have samples, gradients are looked at before any weight is changed. One side alone may
 * have changed some: a ReLU drops the NaN on its way to the loss.
 * @param sample of the device or of the cores */
static void check_errors(int64_t n_cores, size_t sample) {
    net_fixture f = mixed_net(mixed_plain, 5);
    mixed_shared s = mixed_share(&f, n_cores, mixed_learning);
    bpt_batch_result r;
    const int32_t label = f.labels[sample];
    f.labels[sample] = 99;
    assert_int_equal(bpt_network_train(s.net, f.pixels, f.labels, 0.1f, BATCH, &r), BPT_EDATA);
    assert_non_null(strstr(bpt_error_last()->text, "a label is 99"));
    assert_weights_stay(&s, &f);
    f.labels[sample] = label;
    f.pixels[sample * (f.n_pixels / BATCH) + 3] = NAN;
    assert_int_equal(bpt_network_train(s.net, f.pixels, f.labels, 0.1f, BATCH, &r), BPT_ENUMERIC);
    assert_non_null(strstr(bpt_error_last()->text, "nor is all of the input"));
    if (n_cores > 0 && n_cores < BATCH) {
        assert_weights_stay(&s, &f);
    } else { /* what one side does by itself counts as it does of that side's network */
        assert_int_equal(bpt_network_train(f.net, f.pixels, f.labels, 0.1f, BATCH, &r),
                         BPT_ENUMERIC);
        assert_int_equal(bpt_network_updates(s.net), bpt_network_updates(f.net));
    }
    f.pixels[sample * (f.n_pixels / BATCH) + 3] = 0.5f;
    net_assert_ok(bpt_network_set(s.net, BPT_VECTOR_WEIGHTS, f.weights));
    net_assert_ok(bpt_network_train(s.net, f.pixels, f.labels, 0.1f, BATCH, &r));
    mixed_unshare(&s);
    net_close(&f);
}

static void test_errors(void **state) {
    (void)state;
    check_errors(4, 2);     /* of the device */
    check_errors(4, 7);     /* of the cores */
    check_errors(BATCH, 0); /* the cores have all */
    check_errors(0, 0);
}

/* A device whose updates fail: with new weights, or before it has any. */
static struct {
    const bpt_device_kind *real;
    bpt_device_kind kind;
    bool fails, changes;
} frail;

static bpt_status begin_frail(bpt_device_network *net, bpt_device_work work,
                              const bpt_device_run *run) {
    const bool skips = work == BPT_DEVICE_APPLY && frail.fails && !frail.changes;
    return skips ? BPT_OK : frail.real->begin(net, work, run);
}

static bpt_status end_frail(bpt_device_network *net, bpt_device_work work,
                            bpt_device_outcome *outcome) {
    const bool fails = work == BPT_DEVICE_APPLY && frail.fails;
    *outcome = (bpt_device_outcome){0};
    if (!fails || frail.changes) net_assert_ok(frail.real->end(net, work, outcome));
    return fails ? bpt_fail(BPT_ENUMERIC, "the update fails") : BPT_OK;
}

static bpt_status get_frail(bpt_device_network *net, bpt_vector which, size_t first, float *flat) {
    if (frail.fails) (void)bpt_fail(BPT_EBACKEND, "another error");
    return frail.real->get(net, which, first, flat);
}

static void make_frail(bpt_device *device) {
    bpt_device *fast = ((bpt_mixed_device *)device)->fast;
    frail.real = fast->kind;
    frail.kind = *fast->kind;
    frail.kind.begin = begin_frail;
    frail.kind.end = end_frail;
    frail.kind.get = get_frail;
    fast->kind = &frail.kind;
}

/* The next step of both. */
static void compare_gradients(const net_fixture *f, bpt_network *net) {
    bpt_batch_result a, b;
    bpt_network_set_draw(f->net, mixed_draw(9));
    bpt_network_set_draw(net, mixed_draw(9));
    net_assert_ok(bpt_network_gradient(f->net, f->pixels, f->labels, BATCH, &a));
    net_assert_ok(bpt_network_gradient(net, f->pixels, f->labels, BATCH, &b));
    mixed_compare_results(&b, &a);
    mixed_compare("gradients", f, net, BPT_VECTOR_GRADIENTS);
}

/* @param apart the update is asked for by itself */
static void fail_update(const net_fixture *f, bpt_network *net, bool apart, bool changes) {
    bpt_batch_result r;
    const uint64_t updates = bpt_network_updates(net);
    bpt_network_set_draw(f->net, mixed_draw(8));
    bpt_network_set_draw(net, mixed_draw(8));
    if (changes) net_assert_ok(bpt_network_train(f->net, f->pixels, f->labels, 0.05f, BATCH, &r));
    if (apart) net_assert_ok(bpt_network_gradient(net, f->pixels, f->labels, BATCH, &r));
    frail.fails = true;
    frail.changes = changes;
    const bpt_status status = apart
                                  ? bpt_network_apply(net, 0.05f)
                                  : bpt_network_train(net, f->pixels, f->labels, 0.05f, BATCH, &r);
    frail.fails = false;
    assert_int_equal(status, BPT_ENUMERIC);
    assert_string_equal(bpt_error_last()->text, "the update fails");
    assert_int_equal(bpt_network_updates(net), updates + changes);
}

/* Both sides have the same weights afterwards. */
static void test_updates_that_fail(void **state) {
    (void)state;
    for (int apart = 0; apart < 2; apart++)
        for (int changes = 0; changes < 2; changes++) {
            net_fixture f = mixed_net(mixed_plain, 18);
            mixed_shared s = mixed_share(&f, 4, mixed_learning);
            make_frail(s.device);
            train_both(&f, s.net, 1);
            fail_update(&f, s.net, apart, changes);
            compare_gradients(&f, s.net);
            mixed_unshare(&s);
            net_close(&f);
        }
}

/* ---- asking ---- */

static void check_outcomes(int64_t n_cores) {
    net_fixture f = mixed_net(mixed_plain, 19);
    bpt_device *device = mixed_open_sharing(&f, 0, n_cores);
    bpt_device_wish wish = {
        .model = f.model, .batch = BATCH, .learning = mixed_learning, .pool = f.pool};
    const bpt_device_run run = {
        .input = f.pixels, .labels = f.labels, .updates = 1, .rate = 0.1f, .denominator = BATCH};
    bpt_device_network *net;
    bpt_network_memory memory;
    bpt_device_outcome outcome;
    wish.learning.optimizer = &bpt_optimizer_sgd;
    net_assert_ok(device->kind->create(device, &wish, &net, &memory));
    net_assert_ok(device->kind->set(net, BPT_VECTOR_WEIGHTS, 0, f.weights));
    net_assert_ok(device->kind->begin(net, BPT_DEVICE_GRADIENT, &run));
    net_assert_ok(device->kind->end(net, BPT_DEVICE_GRADIENT, &outcome));
    assert_int_equal(outcome.result.n_samples, BATCH);
    assert_false(outcome.updated);
    net_assert_ok(device->kind->begin(net, BPT_DEVICE_APPLY, &run));
    net_assert_ok(device->kind->end(net, BPT_DEVICE_APPLY, &outcome));
    assert_int_equal(outcome.result.n_samples, 0);
    assert_true(outcome.updated);
    net_assert_ok(device->kind->begin(net, BPT_DEVICE_GRADIENT, &run));
    net_assert_ok(device->kind->end(net, BPT_DEVICE_GRADIENT, &outcome));
    assert_false(outcome.updated);
    device->kind->free(net);
    bpt_device_close(device);
    net_close(&f);
}

static void test_outcomes(void **state) {
    (void)state;
    check_outcomes(0);
    check_outcomes(4);
    check_outcomes(BATCH);
}

static void count_kinds(void *context, const char *label, const char *what, unsigned n_tasks,
                        uint64_t ns) {
    unsigned *n = context;
    (void)n_tasks;
    (void)ns;
    n[strcmp(label, "all") == 0 && strcmp(what, "step") == 0]++;
}

/* Of the device's part where it has one; of a network on cores else. */
static void test_times_are_told(void **state) {
    static const int64_t shares[] = {0, 4, BATCH};
    (void)state;
    for (size_t i = 0; i < sizeof shares / sizeof *shares; i++) {
        net_fixture f = mixed_net(mixed_plain, 20);
        mixed_shared s = mixed_share(&f, shares[i], mixed_learning);
        unsigned n[2] = {0};
        train_both(&f, s.net, 1);
        bpt_network_visit_times(s.net, count_kinds, n);
        assert_int_equal(n[1], shares[i] < BATCH);
        assert_int_equal(n[0] > 0, shares[i] == BATCH);
        mixed_unshare(&s);
        net_close(&f);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_training),    cmocka_unit_test(test_apply),
        cmocka_unit_test(test_hand_out),    cmocka_unit_test(test_running_mean),
        cmocka_unit_test(test_sum),         cmocka_unit_test(test_weights_set),
        cmocka_unit_test(test_momenta_set), cmocka_unit_test(test_adamw),
        cmocka_unit_test(test_errors),      cmocka_unit_test(test_updates_that_fail),
        cmocka_unit_test(test_outcomes),    cmocka_unit_test(test_times_are_told),
        cmocka_unit_test(test_frozen),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
