/* Moves of pixels: one after another, against two images, one made from the other. */
#include "base/random.h"
#include "storage/augmentations/image_move.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

enum { N_RUNS = 4000, MAX_MOVES = 6, MAX_SIDE = 9, C = 2, MAX_SIZE = C * MAX_SIDE * MAX_SIDE };

/* Each pixel by itself; black is 0. */
static void move_naively(bpt_image_move m, uint32_t H, uint32_t W, const uint8_t *in,
                         uint8_t *out) {
    for (uint32_t c = 0; c < C; c++)
        for (int32_t y = 0; y < (int32_t)H; y++)
            for (int32_t x = 0; x < (int32_t)W; x++, out++) {
                const bool there = y >= m.y.begin && y < m.y.end && x >= m.x.begin && x < m.x.end;
                const int32_t from_y = m.y.first + m.y.step * y, from_x = m.x.first + m.x.step * x;
                *out = 0;
                if (!there) continue;
                assert_in_range(from_y, 0, H - 1);
                assert_in_range(from_x, 0, W - 1);
                *out = in[(c * H + (uint32_t)from_y) * W + (uint32_t)from_x];
            }
}

static bpt_side_move draw_side(bpt_random *r, uint32_t side) {
    const int64_t by = (int64_t)bpt_random_below(r, 2 * side - 1) - (side - 1);
    switch (bpt_random_below(r, 3)) {
    case 0:
        return bpt__side_still(side);
    case 1:
        return bpt__side_mirrored(side);
    default:
        return bpt__side_shifted(side, by);
    }
}

static void fill(bpt_random *r, uint8_t *pixels, size_t n) {
    for (size_t i = 0; i < n; i++) pixels[i] = (uint8_t)(1 + bpt_random_below(r, 255));
}

/* Up to six moves as one give what six images give, and what is left alone is known. */
static void several_are_one(void **state) {
    (void)state;
    for (uint64_t run = 0; run < N_RUNS; run++) {
        bpt_random r = bpt_random_stream(2, BPT_PURPOSE_TEST, run);
        const uint32_t H = 1 + bpt_random_below(&r, MAX_SIDE),
                       W = 1 + bpt_random_below(&r, MAX_SIDE);
        const uint32_t n_moves = bpt_random_below(&r, MAX_MOVES + 1);
        const size_t size = (size_t)C * H * W;
        uint8_t in[MAX_SIZE], step[2][MAX_SIZE], out[MAX_SIZE + 16];
        bpt_image_move all = bpt__image_still(H, W);
        fill(&r, in, size);
        memcpy(step[0], in, size);
        for (uint32_t i = 0; i < n_moves; i++) {
            const bpt_image_move m = {draw_side(&r, H), draw_side(&r, W)};
            move_naively(m, H, W, step[i % 2], step[(i + 1) % 2]);
            all = bpt__image_move_then(all, m);
        }
        memset(out, 0xA5, sizeof out);
        bpt__image_make_move(all, C, H, W, in, out);
        assert_memory_equal(out, step[n_moves % 2], size);
        for (size_t i = size; i < size + 16; i++) assert_int_equal(out[i], 0xA5);
        if (bpt__image_is_still(all, H, W)) assert_memory_equal(in, out, size);
        move_naively(all, H, W, in, step[0]); /* as somebody else would make it */
        assert_memory_equal(out, step[0], size);
    }
}

static void knows_what_stays(void **state) {
    (void)state;
    const bpt_image_move still = bpt__image_still(5, 7);
    bpt_image_move mirrored = still, shifted = still;
    mirrored.x = bpt__side_mirrored(7);
    shifted.y = bpt__side_shifted(5, -2);
    assert_true(bpt__image_is_still(still, 5, 7));
    assert_false(bpt__image_is_still(mirrored, 5, 7));
    assert_true(bpt__image_is_still(bpt__image_move_then(mirrored, mirrored), 5, 7));
    assert_false(bpt__image_is_still(shifted, 5, 7));
    bpt_image_move back = still; /* what has left the image is gone */
    back.y = bpt__side_shifted(5, 2);
    assert_false(bpt__image_is_still(bpt__image_move_then(shifted, back), 5, 7));
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(several_are_one),
        cmocka_unit_test(knows_what_stays),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
