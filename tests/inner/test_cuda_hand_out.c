/* Gradients that a GPU hands out part by part: each part has its last bits when it is said to be
 * there, and is said to be so once, from the last to the first.
 *
 * ctest: gpu TIMEOUT=120 */
#include "base/memory.h"
#include "inner/device.h"
#include "tests/inner/cuda_fixture.h"
#include "tests/inner/net_values.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

/* Last: it needs those above, and defines fail and skip. */
#include <cmocka.h>

enum { BATCH = 7, SEED = 20264 };

static const bpt_learning learning = {.momentum = 0.9, .decay = 0.01};

static bpt_device *device; /* one for all networks: it measures each kernel once */

/* What is handed out, and how it was when it was said to be there. */
typedef struct {
    size_t *begin; /* shape [n + 1] */
    uint32_t n, next;
    float *flat, *seen;
    size_t undone; /* by the GPU when the first came */
    int n_early;   /* times that less was left to do when the last came */
} taker;

/* Of GPUs of cores; a card is not asked. */
size_t gpu_on_cores_undone(void) __attribute__((weak));
void gpu_on_cores_only_when_waited_for(bool only) __attribute__((weak));

static void note_undone(taker *t) {
    if (!gpu_on_cores_undone) return;
    if (t->next == t->n) t->undone = gpu_on_cores_undone();
    if (t->next == 1 && gpu_on_cores_undone() < t->undone) t->n_early++;
}

static void take(void *context, uint32_t part) {
    taker *t = context;
    assert_true(t->next > 0);
    note_undone(t);
    assert_int_equal(part, --t->next);
    memcpy(t->seen + t->begin[part], t->flat + t->begin[part],
           (t->begin[part + 1] - t->begin[part]) * sizeof *t->flat);
}

/* Parts of so many segments each, of what learns. */
static taker cut(const net_fixture *f, size_t segments) {
    const bpt_segments *s = &f->model->segments;
    const size_t n = bpt_model_learned_elements(f->model), frozen = f->n_weights - n;
    taker t = {.flat = net_floats(n), .seen = net_floats(n)};
    t.begin = calloc(s->n + 1, sizeof *t.begin);
    assert_non_null(t.begin);
    for (size_t i = bpt_model_frozen_segments(f->model); i < s->n; i += segments)
        t.begin[t.n++] = s->items[i].offset - frozen;
    t.begin[t.n] = n;
    return t;
}

static void release(taker *t) {
    free(t->begin);
    free(t->flat);
    free(t->seen);
}

static void check_gradient(const net_fixture *f, bpt_network *net, taker *t) {
    const size_t n = bpt_model_learned_elements(f->model);
    bpt_batch_result r;
    float *gradient = net_floats(n);
    memset(t->flat, 0xFF, n * sizeof *t->flat);
    memset(t->seen, 0xFF, n * sizeof *t->seen);
    t->next = t->n;
    net_assert_ok(bpt_network_gradient(net, f->pixels, f->labels, BATCH, &r));
    assert_int_equal(t->next, 0);
    net_assert_ok(bpt_network_get_learned(net, BPT_VECTOR_GRADIENTS, gradient));
    net_assert_same_bits("gradients", t->seen, gradient, n);
    net_assert_same_bits("gradients, later", t->flat, gradient, n);
    free(gradient);
}

/* @param early others are yet to be computed when the first part comes */
static void check_early(const net_fixture *f, bpt_network *net, taker *t, bool early) {
    if (!gpu_on_cores_undone) return;
    t->n_early = 0;
    gpu_on_cores_only_when_waited_for(true);
    check_gradient(f, net, t);
    gpu_on_cores_only_when_waited_for(false);
    assert_int_equal(t->n_early, early);
}

/* @param first layer that learns; NULL: all do
 * @param before gradients that are computed before anybody takes them
 * @param early some part is whole before the last gradient is computed */
static void check_from(const char *first, bpt_value_type type, size_t segments, int before,
                       bool early) {
    net_fixture f = net_open(net_mixed, BATCH, (net_options){.n_workers = 1, .seed = SEED});
    if (first) net_freeze(&f, first, (net_options){0});
    bpt_network *net;
    bpt_batch_result r;
    net_assert_ok(bpt_network_create_on(device, f.model, BATCH, type, learning, f.pool, &net));
    net_assert_ok(bpt_network_set(net, BPT_VECTOR_WEIGHTS, f.weights));
    for (int i = 0; i < before; i++)
        net_assert_ok(bpt_network_gradient(net, f.pixels, f.labels, BATCH, &r));
    taker t = cut(&f, segments);
    const bpt_gradient_parts parts = {t.n, t.begin, t.flat, take, &t};
    net_assert_ok(bpt_network_hand_out(net, &parts));
    for (int run = 0; run < 5; run++) { /* task by task, measured, captured */
        for (size_t i = 0; i < f.n_pixels; i++) f.pixels[i] = -f.pixels[i];
        check_gradient(&f, net, &t);
        if (run % 2) net_assert_ok(bpt_network_apply(net, 0.01f));
        if (run % 3 == 1)
            net_assert_ok(bpt_network_train(net, f.pixels, f.labels, 0.01f, BATCH, &r));
        if (run % 3 == 2) net_assert_ok(bpt_network_evaluate(net, f.pixels, f.labels, &r));
        assert_int_equal(t.next, 0); /* of no other work */
    }
    check_early(&f, net, &t, early);
    bpt_network_free(net);
    release(&t);
    net_close(&f);
}

static void test_parts(void **state) {
    (void)state;
    check_from(NULL, BPT_F32, 1, 0, true);
    check_from(NULL, BPT_F32, 3, 3, true);
    check_from(NULL, BPT_BF16, 2, 1, true);
    check_from(NULL, BPT_F32, 1000, 0, false);
}

/* Parts are of what learns. */
static void test_frozen(void **state) {
    (void)state;
    check_from("conv5", BPT_F32, 1, 0, true);
    check_from("conv5", BPT_BF16, 3, 2, true);
    check_from("b", BPT_F32, 2, 0, true);
    check_from("fc1", BPT_F32, 1, 1, true);
    check_from("fc1", BPT_F32, 4, 0, false); /* all in one */
    check_from("fc1", BPT_F32, 1000, 0, false);
}

/* A network that hands out, with all segments apart. */
typedef struct {
    net_fixture f;
    bpt_network *net;
    taker t;
} subject;

static subject open_subject(void) {
    subject s = {.f = net_open(net_mixed, BATCH, (net_options){.n_workers = 1, .seed = SEED})};
    net_assert_ok(
        bpt_network_create_on(device, s.f.model, BATCH, BPT_F32, learning, s.f.pool, &s.net));
    net_assert_ok(bpt_network_set(s.net, BPT_VECTOR_WEIGHTS, s.f.weights));
    s.t = cut(&s.f, 1);
    return s;
}

static void close_subject(subject *s) {
    bpt_network_free(s->net);
    release(&s->t);
    net_close(&s->f);
}

static bpt_status hand_out(bpt_network *net, taker *t) {
    const bpt_gradient_parts parts = {t->n, t->begin, t->flat, take, t};
    return bpt_network_hand_out(net, &parts);
}

static void fails(subject *s, bpt_status expected) {
    bpt_batch_result r;
    s->t.next = s->t.n;
    assert_int_equal(bpt_network_gradient(s->net, s->f.pixels, s->f.labels, BATCH, &r), expected);
    assert_int_equal(s->t.next, s->t.n); /* others are given nothing */
}

/* A loss that is not finite, and a label that is none; and the next run is whole again. */
static void test_bad_batches(void **state) {
    (void)state;
    subject s = open_subject();
    net_assert_ok(hand_out(s.net, &s.t));
    for (int run = 0; run < 4; run++) {
        const float pixel = s.f.pixels[3];
        const int32_t label = s.f.labels[1];
        s.f.pixels[3] = NAN;
        fails(&s, BPT_ENUMERIC);
        s.f.pixels[3] = pixel;
        s.f.labels[1] = (int32_t)s.f.model->classes;
        fails(&s, BPT_EDATA);
        s.f.labels[1] = label;
        check_gradient(&s.f, s.net, &s.t);
    }
    close_subject(&s);
}

/* Memory is pinned once: the second network to hand out into it has the GPU write beside it. */
static void test_memory_of_another(void **state) {
    (void)state;
    subject s = open_subject();
    bpt_network *other;
    net_assert_ok(hand_out(s.net, &s.t));
    net_assert_ok(
        bpt_network_create_on(device, s.f.model, BATCH, BPT_F32, learning, s.f.pool, &other));
    net_assert_ok(bpt_network_set(other, BPT_VECTOR_WEIGHTS, s.f.weights));
    net_assert_ok(hand_out(other, &s.t));
    for (int run = 0; run < 4; run++) {
        check_gradient(&s.f, other, &s.t);
        check_gradient(&s.f, s.net, &s.t);
    }
    bpt_network_free(other);
    check_gradient(&s.f, s.net, &s.t);
    close_subject(&s);
}

/* Whichever allocation fails, the network computes on as one that hands nothing out. */
static void test_without_memory(void **state) {
    (void)state;
    subject s = open_subject();
    bpt_batch_result r, first;
    net_assert_ok(bpt_network_gradient(s.net, s.f.pixels, s.f.labels, BATCH, &first));
    bpt_status status = BPT_ENOMEM;
    for (int64_t n = 0; status != BPT_OK; n++) {
        bpt_memory_fail_at(n);
        status = hand_out(s.net, &s.t);
        bpt_memory_fail_at(-1);
        if (status == BPT_OK) break;
        assert_int_equal(status, BPT_ENOMEM);
        net_assert_ok(bpt_network_gradient(s.net, s.f.pixels, s.f.labels, BATCH, &r));
        assert_true(r.loss_sum == first.loss_sum && r.n_samples == BATCH);
    }
    check_gradient(&s.f, s.net, &s.t);
    close_subject(&s);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_parts),          cmocka_unit_test(test_frozen),
        cmocka_unit_test(test_bad_batches),    cmocka_unit_test(test_memory_of_another),
        cmocka_unit_test(test_without_memory),
    };
    const int skipped = cuda_begin();
    if (skipped) return skipped;
    net_assert_ok(bpt_device_open("cuda", false, &device));
    const int failed = cmocka_run_group_tests(tests, NULL, NULL);
    bpt_device_close(device);
    cuda_end();
    return failed;
}
