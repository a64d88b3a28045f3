/* Augmentations: what a list says, and images against pixel-by-pixel references. */
#include "storage/augment.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

enum { C = 2, H = 6, W = 5, SIZE = C * H * W };

static bpt_augment parse(const char *text) {
    bpt_augment a;
    assert_int_equal(bpt_augment_parse(text, &a), BPT_OK);
    return a;
}

static const uint8_t *apply(const bpt_augment *a, uint64_t id, const uint8_t *in,
                            uint8_t *scratch) {
    bpt_random random = bpt_random_stream(3, BPT_PURPOSE_TEST, id);
    return bpt_augment_apply(a, &random, C, H, W, in, scratch);
}

/* Every pixel differs from all others, and none is black. */
static void make_image(uint8_t *pixels) {
    for (int i = 0; i < SIZE; i++) pixels[i] = (uint8_t)(i + 1);
}

static uint8_t at(const uint8_t *image, int c, int y, int x) {
    if (y < 0 || y >= H || x < 0 || x >= W) return 0;
    return image[(c * H + y) * W + x];
}

/* @return whether out is in, shifted by (dy, dx) and mirrored or not */
static bool is_moved(const uint8_t *in, const uint8_t *out, int dy, int dx, bool mirrored) {
    for (int c = 0; c < C; c++)
        for (int y = 0; y < H; y++)
            for (int x = 0; x < W; x++)
                if (at(out, c, y, mirrored ? W - 1 - x : x) != at(in, c, y + dy, x + dx))
                    return false;
    return true;
}

/* How often each shift and mirroring comes out of 4,000 draws. Each result is one of these. */
static void count(const char *list, int reach, int n[5][5][2]) {
    const bpt_augment a = parse(list);
    uint8_t in[SIZE], copy[SIZE], scratch[2 * SIZE];
    make_image(in);
    memcpy(copy, in, SIZE);
    memset(n, 0, 50 * sizeof(int));
    for (uint64_t id = 0; id < 4000; id++) {
        const uint8_t *out = apply(&a, id, in, scratch);
        int found = 0;
        for (int dy = -reach; dy <= reach; dy++)
            for (int dx = -reach; dx <= reach; dx++)
                for (int mirrored = 0; mirrored < 2; mirrored++)
                    if (is_moved(in, out, dy, dx, mirrored)) {
                        n[dy + 2][dx + 2][mirrored]++;
                        found++;
                    }
        assert_int_equal(found, 1);
    }
    assert_memory_equal(in, copy, SIZE);
}

static void flips_one_half(void **state) {
    (void)state;
    int n[5][5][2];
    count("flip", 2, n);
    assert_int_equal(n[2][2][0] + n[2][2][1], 4000);
    assert_in_range(n[2][2][1], 1850, 2150); /* 4.7 standard deviations */
}

static void crops_anywhere(void **state) {
    (void)state;
    int n[5][5][2];
    count("crop=2", 2, n);
    for (int y = 0; y < 5; y++)
        for (int x = 0; x < 5; x++) {
            assert_int_equal(n[y][x][1], 0);
            assert_in_range(n[y][x][0], 100, 220); /* 160 expected, deviation 12.4 */
        }
}

static void does_both(void **state) {
    (void)state;
    int n[5][5][2];
    count("crop=1,flip", 1, n);
    for (int y = 1; y < 4; y++)
        for (int x = 1; x < 4; x++)
            for (int mirrored = 0; mirrored < 2; mirrored++)
                assert_in_range(n[y][x][mirrored], 150, 295); /* 222 expected, deviation 14.5 */
}

static void keeps_what_none_changes(void **state) {
    (void)state;
    const bpt_augment a = parse("none");
    uint8_t in[SIZE], scratch[2 * SIZE];
    make_image(in);
    assert_int_equal(a.n, 0);
    assert_ptr_equal(apply(&a, 1, in, scratch), in);
}

/* The order of the list is the order of what is done: the second draw is another's. */
static void keeps_the_order(void **state) {
    (void)state;
    const bpt_augment a = parse("crop=2,flip"), b = parse("flip,crop=2");
    uint8_t in[SIZE], x[2 * SIZE], y[2 * SIZE];
    int n_unlike = 0;
    make_image(in);
    for (uint64_t id = 0; id < 20; id++)
        n_unlike += memcmp(apply(&a, id, in, x), apply(&b, id, in, y), SIZE) != 0;
    assert_in_range(n_unlike, 10, 20);
}

static void refuses_wrong_lists(void **state) {
    (void)state;
    const char *const wrong[] = {
        "",       "flop",    "crop",       "crop=",     "crop=0",
        "crop=x", "crop=-1", "crop=1x",    "crop=9999", "flip=1",
        "flip,",  ",flip",   "flip,,flip", "none,flip", "crop=99999999999"};
    bpt_augment a = {.n = 7};
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        assert_int_equal(bpt_augment_parse(wrong[i], &a), BPT_EUSAGE);
        assert_int_equal(a.n, 7);
    }
    bpt_augment_parse("flop", &a);
    assert_non_null(strstr(bpt_error_last()->hint, "\"flip\""));
    assert_int_equal(bpt_augment_parse("flip,flip,flip,flip,flip,flip,flip,flip,"
                                       "flip,flip,flip,flip,flip,flip,flip,flip,flip",
                                       &a),
                     BPT_EUSAGE);
    char longest[300];
    memset(longest, 'x', sizeof longest);
    longest[299] = 0;
    assert_int_equal(bpt_augment_parse(longest, &a), BPT_EUSAGE);
}

static void wants_large_enough_images(void **state) {
    (void)state;
    const bpt_augment a = parse("flip,crop=4");
    assert_int_equal(bpt_augment_check(&a, 5, 5), BPT_OK);
    assert_int_equal(bpt_augment_check(&a, 4, 5), BPT_EUSAGE);
    assert_int_equal(bpt_augment_check(&a, 5, 4), BPT_EUSAGE);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(flips_one_half),
        cmocka_unit_test(crops_anywhere),
        cmocka_unit_test(does_both),
        cmocka_unit_test(keeps_what_none_changes),
        cmocka_unit_test(keeps_the_order),
        cmocka_unit_test(refuses_wrong_lists),
        cmocka_unit_test(wants_large_enough_images),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
