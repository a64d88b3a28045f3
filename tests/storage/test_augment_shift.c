/* Moving and mirroring: each image that comes out is one of those that may, and each of these as
 * often as any other. */
#include "tests/storage/augment_subject.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

enum { C = 2, H = 12, W = 9, SIZE = C * H * W, REACH = 3, SPAN = 2 * REACH + 1, N_DRAWS = 6000 };

/* How often each came out: by dy, dx and whether it is upside down. */
typedef struct counts {
    int n[SPAN][SPAN][2];
} counts;

static uint8_t at(const uint8_t *image, int c, int y, int x) {
    if (y < 0 || y >= H || x < 0 || x >= W) return 0;
    return image[(c * H + y) * W + x];
}

static bool is_moved(const uint8_t *in, const uint8_t *out, int dy, int dx, bool mirrored) {
    for (int c = 0; c < C; c++)
        for (int y = 0; y < H; y++)
            for (int x = 0; x < W; x++)
                if (at(out, c, mirrored ? H - 1 - y : y, x) != at(in, c, y + dy, x + dx))
                    return false;
    return true;
}

static void count(const char *list, counts *result) {
    const bpt_augment a = subject_list(list);
    uint8_t in[SIZE], copy[SIZE], scratch[2 * SIZE];
    for (int i = 0; i < SIZE; i++) in[i] = (uint8_t)(i + 1); /* all unlike, none black */
    memcpy(copy, in, SIZE);
    *result = (counts){0};
    for (uint64_t id = 0; id < N_DRAWS; id++) {
        const uint8_t *out = subject_apply(&a, id, C, H, W, in, scratch);
        int found = 0;
        for (int dy = -REACH; dy <= REACH; dy++)
            for (int dx = -REACH; dx <= REACH; dx++)
                for (int mirrored = 0; mirrored < 2; mirrored++)
                    if (is_moved(in, out, dy, dx, mirrored)) {
                        result->n[dy + REACH][dx + REACH][mirrored]++;
                        found++;
                    }
        assert_int_equal(found, 1);
    }
    assert_memory_equal(in, copy, SIZE);
}

/* A quarter of 12 rows is 3, of 9 columns 2. */
static void shifts_by_part_of_the_side(void **state) {
    (void)state;
    counts c;
    count("shift=25", &c);
    for (int dy = -REACH; dy <= REACH; dy++)
        for (int dx = -REACH; dx <= REACH; dx++) {
            const int *n = c.n[dy + REACH][dx + REACH];
            assert_int_equal(n[1], 0);
            if (dx < -2 || dx > 2)
                assert_int_equal(n[0], 0);
            else
                assert_in_range(n[0], 120, 223); /* 171 expected, deviation 12.9 */
        }
}

static void takes_fractions(void **state) {
    (void)state;
    counts c;
    count("shift=8.3334", &c); /* one row of 12, no column of 9 */
    for (int dy = -1; dy <= 1; dy++)
        assert_in_range(c.n[dy + REACH][REACH][0], 1850, 2150); /* 2000 expected, deviation 36.5 */
    count("shift=8.3333", &c);
    assert_int_equal(c.n[REACH][REACH][0], N_DRAWS);
}

static void mirrors_top_to_bottom(void **state) {
    (void)state;
    counts c;
    count("vflip", &c);
    assert_int_equal(c.n[REACH][REACH][0] + c.n[REACH][REACH][1], N_DRAWS);
    assert_in_range(c.n[REACH][REACH][1], 2818, 3182); /* 4.7 standard deviations */
}

static void wants_a_pixel_at_least(void **state) {
    (void)state;
    const bpt_augment a = subject_list("shift=10"), b = subject_list("shift=33.4");
    assert_int_equal(bpt_augment_check(&a, 10, 10), BPT_OK);
    assert_int_equal(bpt_augment_check(&a, 9, 10), BPT_EUSAGE);
    assert_non_null(strstr(bpt_error_last()->text, "shift=10 wants images of at least 10x10"));
    assert_int_equal(bpt_augment_check(&a, 10, 9), BPT_EUSAGE);
    assert_int_equal(bpt_augment_check(&a, 1, 1), BPT_EUSAGE);
    assert_int_equal(bpt_augment_check(&b, 3, 3), BPT_OK);
    assert_int_equal(bpt_augment_check(&b, 2, 3), BPT_EUSAGE);
}

/* A line, and a single pixel: mirroring them changes what it can. */
static void takes_small_images(void **state) {
    (void)state;
    const bpt_augment a = subject_list("vflip");
    uint8_t in[7], scratch[14];
    subject_noise(0, in, 7);
    assert_int_equal(bpt_augment_check(&a, 1, 1), BPT_OK);
    int n_turned = 0;
    for (uint64_t id = 0; id < 20; id++) {
        assert_memory_equal(subject_apply(&a, id, 1, 1, 7, in, scratch), in, 7);
        assert_memory_equal(subject_apply(&a, id, 7, 1, 1, in, scratch), in, 7);
        const uint8_t *out = subject_apply(&a, id, 1, 7, 1, in, scratch);
        if (out == in) continue;
        n_turned++;
        for (int i = 0; i < 7; i++) assert_int_equal(out[i], in[6 - i]);
    }
    assert_in_range(n_turned, 1, 19);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(shifts_by_part_of_the_side), cmocka_unit_test(takes_fractions),
        cmocka_unit_test(mirrors_top_to_bottom),      cmocka_unit_test(wants_a_pixel_at_least),
        cmocka_unit_test(takes_small_images),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
