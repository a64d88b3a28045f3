/* Sums of a batch norm by parts of the channels: bits of the whole, and nothing of what other parts
 * write. Values against a reference are in test_gradients.c.
 *
 * ctest: cpu TIMEOUT=20 */
#include "base/random.h"
#include "inner/layers/batchnorm_loops.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

/* Last: it needs those above, and defines fail and skip. */
#include <cmocka.h>

enum { SEED = 20333, SAMPLES = 3, PIXELS = 5, MAX_CHANNELS = 80, MAX = 3 * 5 * 80, MOST_PARTS = 6 };

/* What nobody has written to. */
static const double untouched = 77777.0;

/* What is summed, of one order of values. */
typedef struct {
    bpt_lanes a;
    float x[MAX], y[MAX], dy[MAX], mean[MAX_CHANNELS];
} values;

typedef struct {
    double mean[MAX_CHANNELS], dev[MAX_CHANNELS], dy[MAX_CHANNELS], dyx[MAX_CHANNELS];
    float masked[MAX];
} sums;

static const int32_t labels[SAMPLES] = {0, -1, 2};

static void draw(values *v) {
    bpt_random r = bpt_random_stream(SEED, BPT_PURPOSE_TEST, (uint64_t)v->a.lanes);
    for (int i = 0; i < MAX; i++) {
        v->x[i] = bpt_random_normal(&r);
        v->y[i] = bpt_random_normal(&r);
        v->dy[i] = bpt_random_normal(&r);
    }
    for (int i = 0; i < MAX_CHANNELS; i++) v->mean[i] = bpt_random_normal(&r);
}

static void sum(const values *v, bpt_channels part, sums *s) {
    bpt_moments moments = {.mean = s->mean, .dev = s->dev};
    for (int i = 0; i < MAX_CHANNELS; i++)
        s->mean[i] = s->dev[i] = s->dy[i] = s->dyx[i] = untouched;
    for (int i = 0; i < MAX; i++) s->masked[i] = (float)untouched;
    bpt_moments_of(&v->a, v->x, labels, part, &moments);
    bpt_batchnorm_sums(&v->a, v->x, v->dy, v->y, part, s->masked, v->mean, s->dy, s->dyx);
    assert_true(moments.count == 2.0 * PIXELS);
}

static void check(const values *v, const char *what, int64_t at, double found, double expected) {
    if (found == expected) return;
    fail_msg("%d lanes: %s %d is %.17g, not %.17g", (int)v->a.lanes, what, (int)at, found,
             expected);
}

static void check_part(const values *v, bpt_channels part, const sums *whole) {
    static sums s;
    sum(v, part, &s);
    for (int64_t c = 0; c < MAX_CHANNELS; c++) {
        const bool own = c >= part.first && c < part.end;
        check(v, "mean", c, s.mean[c], own ? whole->mean[c] : untouched);
        check(v, "deviation", c, s.dev[c], own ? whole->dev[c] : untouched);
        check(v, "sum of dy", c, s.dy[c], own ? whole->dy[c] : untouched);
        check(v, "sum of dy x", c, s.dyx[c], own ? whole->dyx[c] : untouched);
    }
    for (int64_t i = 0; i < SAMPLES * PIXELS * (int64_t)bpt_lanes_channels(&v->a); i++) {
        const int64_t block = i / v->a.lanes / PIXELS % v->a.n_blocks;
        const int64_t c = block * v->a.lanes + i % v->a.lanes;
        const bool own = c >= part.first && c < part.end;
        check(v, "masked gradient", i, (double)s.masked[i],
              own ? (double)whole->masked[i] : untouched);
    }
}

/* Single channels, blocks, and one block of all channels, whose parts are lanes of it. */
static void test_parts(void **state) {
    static const int64_t orders[][2] = {{7, 1},  {5, 8},  {3, 16}, {1, 16},
                                        {1, 20}, {1, 48}, {1, 77}};
    static values v;
    static sums whole;
    (void)state;
    for (size_t i = 0; i < sizeof orders / sizeof *orders; i++) {
        v.a = (bpt_lanes){SAMPLES, orders[i][0], PIXELS, orders[i][1], BPT_F32};
        draw(&v);
        sum(&v, bpt_channels_cut(&v.a, 0, 1), &whole);
        for (size_t n = 1; n <= MOST_PARTS; n++) {
            int64_t end = 0;
            for (size_t part = 0; part < n; part++) {
                const bpt_channels channels = bpt_channels_cut(&v.a, part, n);
                assert_int_equal(channels.first < channels.end ? channels.first : end, end);
                if (channels.first == channels.end) continue;
                check_part(&v, channels, &whole);
                end = channels.end;
            }
            assert_int_equal(end, bpt_lanes_channels(&v.a));
        }
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_parts)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
