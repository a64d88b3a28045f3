/* Networks on a GPU that are given images: the same bits as those that are given the floats which
 * the images become.
 *
 * ctest: gpu TIMEOUT=120 */
#include "base/images.h"
#include "base/random.h"
#include "inner/device.h"
#include "tests/inner/cuda_fixture.h"
#include "tests/inner/net_values.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

/* Last: it needs those above, and defines fail and skip. */
#include <cmocka.h>

enum { BATCH = 7, MAX_CHANNELS = 4 };

static const bpt_learning learning = {.momentum = 0.9, .decay = 0.01};

static const float scale[MAX_CHANNELS] = {0.021f, 0.017f, 0.013f, 0.011f};
static const float shift[MAX_CHANNELS] = {-1.9f, -0.7f, -2.3f, 0.4f};

/* A batch of both kinds. */
typedef struct {
    bpt_images images;
    uint8_t *pixels;
    bpt_image_move moves[BATCH];
    float *floats;
    int32_t labels[BATCH];
} batch;

/* Moved by a pixel each way, and every second one mirrored. */
static bpt_image_move move_of(int i, const bpt_shape *s) {
    const int32_t h = (int32_t)s->h, w = (int32_t)s->w;
    const bpt_side_move down = {.first = -1, .step = 1, .begin = 1, .end = h};
    const bpt_side_move left = {.first = 1, .step = 1, .begin = 0, .end = w - 1};
    const bpt_side_move mirrored = {.first = w - 1, .step = -1, .begin = 0, .end = w};
    return (bpt_image_move){down, i % 2 ? mirrored : left};
}

static float value_at(const batch *b, const bpt_shape *s, int i, int64_t c, int64_t y, int64_t x) {
    const bpt_image_move *m = b->images.moves ? &b->moves[i] : NULL;
    const bool black = m && (y < m->y.begin || y >= m->y.end || x < m->x.begin || x >= m->x.end);
    if (m && !black) y = m->y.first + m->y.step * y;
    if (m && !black) x = m->x.first + m->x.step * x;
    const uint8_t pixel = black ? 0 : b->pixels[((i * s->c + c) * s->h + y) * s->w + x];
    const volatile float product = (float)pixel * scale[c];
    return product + shift[c];
}

/* @param n_there of BATCH */
static void make(batch *b, const net_fixture *f, uint64_t id, uint32_t n_there, bool moved) {
    const bpt_shape *s = &f->model->input;
    const size_t sample = (size_t)(s->c * s->h * s->w);
    bpt_random r = bpt_random_stream(5, BPT_PURPOSE_TEST, id);
    assert_in_range(s->c, 1, 4);
    b->pixels = malloc(n_there * sample);
    b->floats = net_floats(f->n_pixels);
    assert_non_null(b->pixels);
    memset(b->floats, 0, f->n_pixels * sizeof *b->floats);
    for (size_t i = 0; i < n_there * sample; i++) b->pixels[i] = (uint8_t)bpt_random_u32(&r);
    b->images = (bpt_images){b->pixels, moved ? b->moves : NULL, scale, shift, n_there};
    for (int i = 0; i < BATCH; i++) {
        b->labels[i] =
            i < (int)n_there ? (int32_t)bpt_random_below(&r, (uint32_t)f->model->classes) : -1;
        b->moves[i] = move_of(i, s);
    }
    float *out = b->floats;
    for (int i = 0; i < (int)n_there; i++)
        for (int64_t c = 0; c < s->c; c++)
            for (int64_t y = 0; y < s->h; y++)
                for (int64_t x = 0; x < s->w; x++) *out++ = value_at(b, s, i, c, y, x);
}

static void release(batch *b) {
    free(b->pixels);
    free(b->floats);
}

static bpt_network *create(bpt_device *device, const net_fixture *f, bpt_value_type type) {
    bpt_network *net;
    net_assert_ok(bpt_network_create_on(device, f->model, BATCH, type, learning, f->pool, &net));
    net_assert_ok(bpt_network_set(net, BPT_VECTOR_WEIGHTS, f->weights));
    return net;
}

static void assert_same_weights(const net_fixture *f, bpt_network *a, bpt_network *b) {
    float *x = net_floats(f->n_weights), *y = net_floats(f->n_weights);
    net_assert_ok(bpt_network_get(a, BPT_VECTOR_WEIGHTS, x));
    net_assert_ok(bpt_network_get(b, BPT_VECTOR_WEIGHTS, y));
    net_assert_same_bits("weights", y, x, f->n_weights);
    free(x);
    free(y);
}

/* Steps that were announced and that were not, task by task and captured, and evaluations. */
static void compare(bpt_value_type type) {
    net_fixture f = net_open(net_mixed, BATCH, (net_options){.n_workers = 1, .seed = 3});
    bpt_device *device;
    bpt_batch_result a, b;
    batch batches[4];
    for (uint32_t i = 0; i < 4; i++) make(&batches[i], &f, i, i == 2 ? BATCH - 2 : BATCH, i > 0);
    net_assert_ok(bpt_device_open("cuda", false, &device));
    bpt_network *floats = create(device, &f, type);
    bpt_device_give_images(device);
    bpt_network *images = create(device, &f, type);
    assert_true(bpt_network_takes_images(images) && !bpt_network_takes_images(floats));
    assert_true(bpt_network_memory_of(images).total < bpt_network_memory_of(floats).total);
    for (int step = 0; step < 12; step++) {
        const batch *x = &batches[step % 4], *next = &batches[(step + 1) % 4];
        bpt_network_set_next(images, step % 3 ? &next->images : NULL);
        net_assert_ok(bpt_network_train(floats, x->floats, x->labels, 0.05f, BATCH, &a));
        net_assert_ok(bpt_network_train(images, &x->images, x->labels, 0.05f, BATCH, &b));
        assert_true(a.loss_sum == b.loss_sum);
        if (step % 5) continue; /* else a batch that was not announced comes in between */
        const batch *other = &batches[(step + 2) % 4];
        net_assert_ok(bpt_network_evaluate(floats, other->floats, other->labels, &a));
        net_assert_ok(bpt_network_evaluate(images, &other->images, other->labels, &b));
        assert_true(a.loss_sum == b.loss_sum);
    }
    assert_same_weights(&f, floats, images);
    for (int i = 0; i < 4; i++) release(&batches[i]);
    bpt_network_free(images);
    bpt_network_free(floats);
    bpt_device_close(device);
    net_close(&f);
}

static void test_same_bits(void **state) {
    (void)state;
    compare(BPT_F32);
    compare(BPT_BF16);
}

static void test_who_can(void **state) {
    (void)state;
    bpt_device *device;
    bpt_device_give_images(NULL);
    assert_false(bpt_device_takes_images(NULL));
    net_assert_ok(bpt_device_open("cuda+cpu", false, &device));
    bpt_device_give_images(device);
    assert_false(bpt_device_takes_images(device));
    bpt_device_close(device);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_same_bits),
        cmocka_unit_test(test_who_can),
    };
    const int skipped = cuda_begin();
    if (skipped) return skipped;
    const int failed = cmocka_run_group_tests(tests, NULL, NULL);
    cuda_end();
    return failed;
}
