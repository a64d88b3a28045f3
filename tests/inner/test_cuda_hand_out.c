/* Gradients that a GPU hands out part by part: each part has its last bits when it is said to be
 * there, and is said to be so once, from the last to the first.
 *
 * ctest: gpu TIMEOUT=120 */
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

/* What is handed out, and how it was when it was said to be there. */
typedef struct {
    size_t *begin; /* shape [n + 1] */
    uint32_t n, next;
    float *flat, *seen;
} taker;

static void take(void *context, uint32_t part) {
    taker *t = context;
    assert_true(t->next > 0);
    assert_int_equal(part, --t->next);
    memcpy(t->seen + t->begin[part], t->flat + t->begin[part],
           (t->begin[part + 1] - t->begin[part]) * sizeof *t->flat);
}

/* Parts of so many segments each. */
static taker cut(const net_fixture *f, size_t segments) {
    const bpt_segments *s = &f->model->segments;
    taker t = {.flat = net_floats(f->n_weights), .seen = net_floats(f->n_weights)};
    t.begin = calloc(s->n + 1, sizeof *t.begin);
    assert_non_null(t.begin);
    for (size_t i = 0; i < s->n; i += segments) t.begin[t.n++] = s->items[i].offset;
    t.begin[t.n] = f->n_weights;
    return t;
}

static void release(taker *t) {
    free(t->begin);
    free(t->flat);
    free(t->seen);
}

static void check_gradient(const net_fixture *f, bpt_network *net, taker *t) {
    bpt_batch_result r;
    float *gradient = net_floats(f->n_weights);
    memset(t->flat, 0xFF, f->n_weights * sizeof *t->flat);
    memset(t->seen, 0xFF, f->n_weights * sizeof *t->seen);
    t->next = t->n;
    net_assert_ok(bpt_network_gradient(net, f->pixels, f->labels, BATCH, &r));
    assert_int_equal(t->next, 0);
    net_assert_ok(bpt_network_get(net, BPT_VECTOR_GRADIENTS, gradient));
    net_assert_same_bits("gradients", t->seen, gradient, f->n_weights);
    net_assert_same_bits("gradients, later", t->flat, gradient, f->n_weights);
    free(gradient);
}

/* @param before gradients that are computed before anybody takes them */
static void check(bpt_value_type type, size_t segments, int before) {
    net_fixture f = net_open(net_mixed, BATCH, (net_options){.n_workers = 1, .seed = SEED});
    bpt_device *device;
    bpt_network *net;
    bpt_batch_result r;
    net_assert_ok(bpt_device_open("cuda", false, &device));
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
    bpt_network_free(net);
    release(&t);
    bpt_device_close(device);
    net_close(&f);
}

static void test_parts(void **state) {
    (void)state;
    check(BPT_F32, 1, 0);
    check(BPT_F32, 3, 3);
    check(BPT_BF16, 2, 1);
    check(BPT_F32, 1000, 0);
}

/* What is not finite is said as without parts, and the next run is whole again. */
static void test_not_finite(void **state) {
    (void)state;
    net_fixture f = net_open(net_mixed, BATCH, (net_options){.n_workers = 1, .seed = SEED});
    bpt_device *device;
    bpt_network *net;
    bpt_batch_result r;
    net_assert_ok(bpt_device_open("cuda", false, &device));
    net_assert_ok(bpt_network_create_on(device, f.model, BATCH, BPT_F32, learning, f.pool, &net));
    net_assert_ok(bpt_network_set(net, BPT_VECTOR_WEIGHTS, f.weights));
    taker t = cut(&f, 1);
    const bpt_gradient_parts parts = {t.n, t.begin, t.flat, take, &t};
    net_assert_ok(bpt_network_hand_out(net, &parts));
    for (int run = 0; run < 4; run++) {
        const float pixel = f.pixels[3];
        f.pixels[3] = NAN;
        t.next = t.n;
        assert_int_equal(bpt_network_gradient(net, f.pixels, f.labels, BATCH, &r), BPT_ENUMERIC);
        f.pixels[3] = pixel;
        check_gradient(&f, net, &t);
    }
    bpt_network_free(net);
    release(&t);
    bpt_device_close(device);
    net_close(&f);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_parts),
        cmocka_unit_test(test_not_finite),
    };
    const int skipped = cuda_begin();
    if (skipped) return skipped;
    const int failed = cmocka_run_group_tests(tests, NULL, NULL);
    cuda_end();
    return failed;
}
