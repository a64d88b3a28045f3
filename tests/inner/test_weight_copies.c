/* Copies of weights in bfloat16 against their definition. That they are what kernels want, with the
 * bits of oneDNN's, is in test_cpu.c. Skipped where the processor rounds to bfloat16 by no
 * instruction.
 *
 * ctest: cpu TIMEOUT=60 */
#include "base/memory.h"
#include "base/random.h"
#include "inner/loops/weight_copies.h"

#include <float.h>
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

/* Last: it needs those above, and defines fail and skip. */
#include <cmocka.h>

enum { SEED = 20263, LANES = BPT_COPY_LANES, BLOCK = LANES * LANES, UNTOUCHED = 0x1234 };

static const bpt_weight_blocks shapes[] = {
    {.k = 3, .c = 2, .taps = 9},
    {.k = 3, .c = 2, .taps = 9, .inputs_first = true},
    {.k = 1, .c = 4, .taps = 1},
    {.k = 4, .c = 1, .taps = 6, .inputs_first = true},
};
enum { N_SHAPES = sizeof shapes / sizeof shapes[0] };

typedef struct {
    size_t n;
    float *weights;
    bpt_bf16 *forward, *backward;
} tensors;

/* Halfway between two values of bfloat16, what rounds to infinity, and what is no number. */
static void put_special(float *x, size_t n) {
    static const float special[] = {0.0f,     -0.0f,         1.00390625f, 1.01171875f, FLT_MAX,
                                    -FLT_MAX, INFINITY,      -INFINITY,   FLT_MIN,     -FLT_MIN,
                                    1e-40f,   -FLT_TRUE_MIN, NAN,         -NAN};
    const size_t count = sizeof special / sizeof special[0];
    for (size_t i = 0; i < n; i += 5) x[i] = special[i / 5 % count];
}

static tensors create(const bpt_weight_blocks *s) {
    tensors t = {.n = (size_t)(s->k * s->c * s->taps) * BLOCK};
    bpt_random r = bpt_random_stream(SEED, BPT_PURPOSE_TEST, 0);
    assert_int_equal(BPT_NEW("weights", t.n, &t.weights), BPT_OK);
    assert_int_equal(BPT_NEW("copy", t.n, &t.forward), BPT_OK);
    assert_int_equal(BPT_NEW("copy", t.n, &t.backward), BPT_OK);
    for (size_t i = 0; i < t.n; i++) {
        t.weights[i] = bpt_random_normal(&r);
        t.forward[i] = t.backward[i] = UNTOUCHED;
    }
    put_special(t.weights, t.n);
    return t;
}

static void destroy(tensors *t) {
    bpt_free(t->backward);
    bpt_free(t->forward);
    bpt_free(t->weights);
}

static bpt_bf16 rounded(float x) {
    if (x != 0.0f && fabsf(x) < FLT_MIN) return signbit(x) ? 0x8000 : 0;
    return bpt_to_bf16(x);
}

/* The value of filter @p k and channel @p c, which count on through blocks. */
static size_t place(const bpt_weight_blocks *s, int64_t k, int64_t c, int64_t tap) {
    const int64_t block = (k / LANES * s->c + c / LANES) * s->taps + tap;
    return (size_t)(block * BLOCK + c % LANES * LANES + k % LANES);
}

static size_t place_forward(const bpt_weight_blocks *s, int64_t k, int64_t c, int64_t tap) {
    const int64_t block = (k / LANES * s->c + c / LANES) * s->taps + tap;
    return (size_t)(block * BLOCK + (c % LANES / 2 * LANES + k % LANES) * 2 + c % 2);
}

static size_t place_backward(const bpt_weight_blocks *s, int64_t k, int64_t c, int64_t tap) {
    const int64_t first =
        s->inputs_first ? c / LANES * s->k + k / LANES : k / LANES * s->c + c / LANES;
    return (size_t)((first * s->taps + tap) * BLOCK + (k % LANES / 2 * LANES + c % LANES) * 2 +
                    k % 2);
}

static void check(const bpt_weight_blocks *s, const tensors *t, bool forward, bool backward) {
    for (int64_t k = 0; k < s->k * LANES; k++)
        for (int64_t c = 0; c < s->c * LANES; c++)
            for (int64_t tap = 0; tap < s->taps; tap++) {
                const bpt_bf16 value = rounded(t->weights[place(s, k, c, tap)]);
                assert_int_equal(t->forward[place_forward(s, k, c, tap)],
                                 forward ? value : UNTOUCHED);
                assert_int_equal(t->backward[place_backward(s, k, c, tap)],
                                 backward ? value : UNTOUCHED);
            }
}

static void test_copies(void **state) {
    bpt_copy_weights *copy = bpt_copy_weights_native();
    (void)state;
    if (!copy) skip();
    for (int i = 0; i < N_SHAPES; i++)
        for (int wanted = 0; wanted < 4; wanted++) {
            const bool forward = wanted & 1, backward = wanted & 2;
            tensors t = create(&shapes[i]);
            copy(&shapes[i], t.weights, forward ? t.forward : NULL, backward ? t.backward : NULL);
            check(&shapes[i], &t, forward, backward);
            destroy(&t);
        }
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_copies)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
