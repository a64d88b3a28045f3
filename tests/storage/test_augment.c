/* Augmentations: what a list says, and crops and flips against pixel-by-pixel references. */
#include "storage/augmentations/augmentation.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
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
    return bpt_augment_apply(a, 0, &random, C, H, W, in, scratch, NULL);
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

/* @return whether the list is refused, with a hint and nothing set */
static bool is_refused(const char *list) {
    bpt_augment a = {.n = 7};
    return bpt_augment_parse(list, &a) == BPT_EUSAGE && a.n == 7 && bpt_error_last()->hint[0];
}

static void refuses_wrong_lists(void **state) {
    (void)state;
    const char *const wrong[] = {"",
                                 "flop",
                                 "crop",
                                 "crop=",
                                 "crop=0",
                                 "=",
                                 "crop=x",
                                 "crop=-1",
                                 "crop=1x",
                                 "crop=9999",
                                 "flip=1",
                                 "crop=4:",
                                 "flip,",
                                 ",flip",
                                 "flip,,flip",
                                 "none,flip",
                                 "crop=99999999999",
                                 "crop=4:4",
                                 "flip=",
                                 "crop=.",
                                 "crop=4.0",
                                 "crop=+4",
                                 "crop=18446744073709551620"};
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++)
        if (!is_refused(wrong[i])) fail_msg("\"%s\" is accepted", wrong[i]);
    assert_true(is_refused("flop"));
    assert_non_null(strstr(bpt_error_last()->hint, "\"flip\""));
    assert_true(is_refused("wobble"));
    assert_non_null(strstr(bpt_error_last()->hint, "crop=PIXELS, "));
    assert_true(
        is_refused("flip,flip,flip,flip,flip,flip,flip,flip,"
                   "flip,flip,flip,flip,flip,flip,flip,flip,flip"));
    char longest[300];
    memset(longest, 'x', sizeof longest);
    longest[299] = 0;
    assert_true(is_refused(longest));
    memset(longest, '0', sizeof longest);
    memcpy(longest, "crop=", 5);
    strcpy(longest + 290, "4");
    assert_int_equal(parse(longest).steps[0].values[0], 4);
    strcpy(longest + 290, "4x");
    assert_true(is_refused(longest));
}

/* The item of @p kind with its own defaults, or what its example has, up to parameter @p n, and
 * then @p value. */
static void write_item(const bpt_augmentation *kind, uint32_t n, const char *value, char *item) {
    char values[64];
    const bpt_augment a = parse(kind->example);
    bpt_augmentation_values(kind, a.steps[0].values, n, values, sizeof values);
    snprintf(item, 200, "%s=%s%s%s", kind->name, values, n > 0 ? ":" : "", value);
}

static void check_value(const bpt_augmentation *kind, uint32_t i, uint32_t value, bool good) {
    char item[200], text[16];
    const bpt_augmentation_parameter *p = &kind->parameters[i];
    if (p->counts)
        snprintf(text, sizeof text, "%u", value);
    else
        snprintf(text, sizeof text, "%.4f", value / (double)BPT_AUGMENT_UNIT);
    write_item(kind, i, text, item);
    if (good)
        assert_int_equal(parse(item).steps[0].values[i], value);
    else if (!is_refused(item))
        fail_msg("\"%s\" is accepted", item);
}

/* Each parameter takes its whole range, and nothing beside it. */
static void check_parameter(const bpt_augmentation *kind, uint32_t i) {
    const bpt_augmentation_parameter *p = &kind->parameters[i];
    const char *const wrong[] = {"",   "x",  "-1",   " 1",      "1 ",  ".",
                                 ".5", "1.", "1..5", "0.12345", "nan", "1e0"};
    char item[200];
    assert_in_range(p->otherwise, p->required ? 0 : p->min, p->max);
    if (i + 1 == kind->n_parameters || !p[1].rises) check_value(kind, i, p->max, true);
    if (!p->rises) check_value(kind, i, p->min, true);
    if (p->min > 0) check_value(kind, i, p->min - 1, false);
    check_value(kind, i, p->max + 1, false);
    for (size_t w = 0; w < sizeof wrong / sizeof *wrong; w++) {
        write_item(kind, i, wrong[w], item);
        if (!is_refused(item)) fail_msg("\"%s\" is accepted", item);
        char usage[64];
        bpt_augmentation_usage(kind, usage, sizeof usage);
        assert_non_null(strstr(bpt_error_last()->hint, usage));
        assert_non_null(strstr(bpt_error_last()->text, p->name));
    }
}

static void takes_each_parameters_range(void **state) {
    (void)state;
    const bpt_augmentation *kind;
    for (size_t k = 0; (kind = bpt_augmentation_at(k)); k++) {
        char item[200];
        const bpt_augment a = parse(kind->example);
        assert_ptr_equal(a.steps[0].kind, kind);
        for (uint32_t i = 0; i < kind->n_parameters; i++) check_parameter(kind, i);
        write_item(kind, kind->n_parameters, "1", item);
        assert_true(is_refused(item));
    }
}

/* Values that are left out are the defaults, and what is printed is read as the same. */
static void fills_in_defaults(void **state) {
    (void)state;
    const bpt_augmentation *kind;
    for (size_t k = 0; (kind = bpt_augmentation_at(k)); k++) {
        char item[200], values[64];
        const bpt_augment example = parse(kind->example);
        for (uint32_t n = 0; n <= kind->n_parameters; n++) {
            bpt_augmentation_values(kind, example.steps[0].values, n, values, sizeof values);
            snprintf(item, sizeof item, "%s%s%s", kind->name, n > 0 ? "=" : "", values);
            if (n < kind->n_parameters && kind->parameters[n].required) {
                assert_true(is_refused(item));
                continue;
            }
            const bpt_augment a = parse(item);
            for (uint32_t i = 0; i < kind->n_parameters; i++)
                assert_int_equal(a.steps[0].values[i], i < n ? example.steps[0].values[i]
                                                             : kind->parameters[i].otherwise);
        }
    }
}

/* Images of any shape, in memory that is as large as they are: what an address sanitizer watches,
 * and bytes behind it that stay. */
static void keeps_to_its_memory(void **state) {
    (void)state;
    const uint32_t shapes[][3] = {{1, 1, 1},  {3, 1, 1},  {3, 1, 70}, {3, 70, 1}, {3, 2, 2},
                                  {1, 5, 64}, {3, 65, 5}, {4, 9, 13}, {2, 3, 130}};
    const char *const lists[] = {"resized-crop=0.01:1:0.1",
                                 "flip",
                                 "vflip",
                                 "rotate=180",
                                 "jitter=1:1:1",
                                 "erase=1:0.01:1:0.1",
                                 "resized-crop,flip,vflip,rotate=20,jitter,erase=1"};
    for (size_t i = 0; i < sizeof shapes / sizeof *shapes; i++)
        for (size_t l = 0; l < sizeof lists / sizeof *lists; l++) {
            const uint32_t c = shapes[i][0], h = shapes[i][1], w = shapes[i][2];
            const size_t size = (size_t)c * h * w;
            const bpt_augment a = parse(lists[l]);
            uint8_t *in = malloc(size), *scratch = malloc(2 * size),
                    *guarded = malloc(2 * size + 64);
            assert_true(in && scratch && guarded);
            memset(in, 7, size);
            memset(guarded, 0xA5, 2 * size + 64);
            assert_int_equal(bpt_augment_check(&a, h, w), BPT_OK);
            for (uint64_t id = 0; id < 100; id++) {
                bpt_random random = bpt_random_stream(3, BPT_PURPOSE_TEST, id), same = random;
                const uint8_t *out = bpt_augment_apply(&a, 0, &random, c, h, w, in, scratch, NULL);
                const uint8_t *again =
                    bpt_augment_apply(&a, 0, &same, c, h, w, in, guarded + 32, NULL);
                assert_memory_equal(out, again, size);
            }
            for (size_t k = 0; k < 32; k++) {
                assert_int_equal(guarded[k], 0xA5);
                assert_int_equal(guarded[2 * size + 32 + k], 0xA5);
            }
            free(in);
            free(scratch);
            free(guarded);
        }
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
        cmocka_unit_test(takes_each_parameters_range),
        cmocka_unit_test(fills_in_defaults),
        cmocka_unit_test(wants_large_enough_images),
        cmocka_unit_test(keeps_to_its_memory),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
