/* The two halves of resizing: what 16 bits lose, and that vectors lose the same as plain loops. */
#include "storage/images/resize_fixed.h"
#include "storage/images/resize_rows.h"
#include "tests/storage/made_images.h"
#include "tests/storage/plain_columns.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

/* More than this, and white might become black. */
static void shares_sum_to_no_more_than_the_whole(void **state) {
    (void)state;
    enum { MOST = 200 };
    uint32_t least = UINT32_MAX, most = 0;
    for (uint32_t in = 1; in <= MOST; in++)
        for (uint32_t out = 1; out <= MOST; out++)
            for (uint32_t i = 0; i < out; i++) {
                const bpt__taps t = bpt__taps_of(i, in, out);
                uint32_t sum = 0;
                if (t.n > BPT__FEW_TAPS) continue;
                for (uint32_t k = 0; k < t.n; k++)
                    sum += bpt__share(bpt__taps_weight(&t, k), bpt__taps_whole(in, out));
                if (sum < least) least = sum;
                if (sum > most) most = sum;
            }
    assert_in_range(least, 65535, 65536);
    assert_in_range(most, 65536, 65537);
}

/* Noise with black and white in it, of few rows and of many. */
static void lines_are_near_the_mean(void **state) {
    (void)state;
    enum { MOST = 60, PITCH = 40 };
    static uint8_t in[MOST * PITCH];
    static uint16_t line[PITCH];
    static uint32_t sums[PITCH];
    made_noise(in, sizeof in, 3);
    for (int i = 0; i < MOST * PITCH; i += 7) in[i] = in[i] < 128 ? 0 : 255;
    for (uint32_t H = 1; H <= MOST; H++)
        for (uint32_t out = 1; out <= MOST; out++)
            for (uint32_t y = 0; y < out; y++) {
                const bpt__taps t = bpt__taps_of(y, H, out);
                const uint32_t whole = bpt__taps_whole(H, out);
                bpt__resize_rows(in, PITCH, &t, whole, PITCH, line, sums);
                for (uint32_t i = 0; i < PITCH; i++) {
                    double mean = 0;
                    for (uint32_t k = 0; k < t.n; k++)
                        mean +=
                            (double)bpt__taps_weight(&t, k) / whole * in[(t.first + k) * PITCH + i];
                    const double off = fabs(line[i] - 256 * mean);
                    assert_true(t.n == 1 ? off == 0 : off < 4);
                }
            }
}

static void expect_same(uint32_t lanes, uint32_t crop, uint32_t W, uint32_t in, uint32_t out) {
    enum { MOST = 512, LANES = 4 };
    static uint16_t line[MOST * LANES];
    static uint8_t pixels[(MOST + BPT__COLUMNS_GROUP) * LANES], plain[sizeof pixels];
    bpt__columns c = {0};
    made_noise((uint8_t *)line, sizeof line, in * 1000 + out);
    for (int i = 0; i < MOST * LANES; i++) line[i] = line[i] > 65283 ? 65283 : line[i];
    memset(pixels, 0, sizeof pixels);
    memset(plain, 0, sizeof plain);
    assert_int_equal(bpt__columns_fill(&c, lanes, crop, W, in, out), BPT_OK);
    bpt__resize_columns(&c, line, pixels);
    plain_resize_columns(&c, line, plain);
    bpt__columns_clear(&c);
    assert_memory_equal(pixels, plain, (size_t)W * lanes);
}

static void plain_loops_give_the_same_bits(void **state) {
    (void)state;
    static const uint32_t sides[] = {1, 2, 3, 4, 5, 7, 18, 31, 64, 151, 300};
    enum { N = sizeof sides / sizeof sides[0] };
    for (int i = 0; i < N * N; i++) {
        const uint32_t in = sides[i / N], out = sides[i % N];
        for (uint32_t lanes = 1; lanes <= 4; lanes += 3) {
            expect_same(lanes, 0, out, in, out);
            expect_same(lanes, out / 3, out - out / 3, in, out);
            expect_same(lanes, out / 2, 1, in, out);
        }
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(shares_sum_to_no_more_than_the_whole),
        cmocka_unit_test(lines_are_near_the_mean),
        cmocka_unit_test(plain_loops_give_the_same_bits),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
