/* Mixing two images: in which proportion, and each pixel against a naive reference in doubles. */
#include "storage/augmentations/beta.h"
#include "tests/storage/augment_subject.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

enum { C = 3, H = 13, W = 18, PLANE = H * W, SIZE = C * PLANE, N_DRAWS = 20000 };

static const double alphas[] = {0.01, 0.1, 0.2, 0.5, 0.9999, 1, 1.5, 2, 8, 100};
enum { N_ALPHAS = sizeof alphas / sizeof *alphas };

static uint32_t units(double alpha) {
    return (uint32_t)lround(alpha * BPT_AUGMENT_UNIT);
}

/* ---- proportions ---- */

/* The same, as its source says it, in doubles. */
static double naive_beta(bpt_random *random, double alpha) {
    for (;;) {
        const double u = (bpt_random_u32(random) | 1) / 4294967296.0;
        const double v = (bpt_random_u32(random) | 1) / 4294967296.0;
        if (alpha >= 1) {
            if (v <= pow(4 * u * (1 - u), alpha - 1)) return u;
            continue;
        }
        const double x = log(u) / alpha, y = log(v) / alpha;
        if (exp(x) + exp(y) <= 1) return 1 / (1 + exp(y - x));
    }
}

static void draws_as_the_formula_says(void **state) {
    (void)state;
    for (int a = 0; a < N_ALPHAS; a++)
        for (uint64_t id = 0; id < N_DRAWS; id++) {
            bpt_random random = subject_stream(id), same = random;
            const double found = bpt__draw_beta(&random, units(alphas[a])) / 65536.0;
            const double expected = naive_beta(&same, alphas[a]);
            if (fabs(found - expected) > 1.01 / 131072)
                fail_msg("alpha %g, stream %d: %.7f, not %.7f", alphas[a], (int)id, found,
                         expected);
        }
}

/* Mean 1/2, variance 1 / (4 (2 alpha + 1)), kurtosis 3 - 6 / (2 alpha + 3); each within five
 * deviations of what so many draws give. */
static void has_the_moments_of_beta(void **state) {
    (void)state;
    for (int a = 0; a < N_ALPHAS; a++) {
        const double variance = 1 / (4 * (2 * alphas[a] + 1));
        const double fourth = (3 - 6 / (2 * alphas[a] + 3)) * variance * variance;
        double sum[3] = {0};
        bpt_random random = subject_stream((uint64_t)a);
        for (int i = 0; i < N_DRAWS; i++) {
            const double x = bpt__draw_beta(&random, units(alphas[a])) / 65536.0 - 0.5;
            sum[0] += x / N_DRAWS;
            sum[1] += x * x / N_DRAWS;
            sum[2] += x * x * x / N_DRAWS;
        }
        const double step = 1 / 65536.0; /* of rounding */
        assert_true(fabs(sum[0]) < 5 * sqrt(variance / N_DRAWS));
        assert_true(fabs(sum[1] - variance) <
                    5 * sqrt((fourth - variance * variance) / N_DRAWS) + step);
        assert_true(fabs(sum[2]) < 5 * sqrt(fourth / 4 / N_DRAWS)); /* x^6 is at most x^4 / 4 */
    }
}

/* Where the distribution has a formula: the values, sent through it, are uniform. */
static void has_the_distribution_of_beta(void **state) {
    (void)state;
    static double values[N_DRAWS];
    for (int a = 0; a < 3; a++) {
        bpt_random random = subject_stream(77);
        for (int i = 0; i < N_DRAWS; i++) {
            const double x = bpt__draw_beta(&random, units(a == 0 ? 0.5 : a)) / 65536.0;
            values[i] = a == 0 ? 2 / acos(-1) * asin(sqrt(x)) : a == 1 ? x : x * x * (3 - 2 * x);
        }
        assert_true(subject_distance(values, N_DRAWS, 0, 1) < subject_far(N_DRAWS));
    }
}

/* ---- images ---- */

/* @param[out] image becomes the mixture @return the other's part */
static float mix(const char *list, uint64_t id, uint8_t *image, const uint8_t *other) {
    const bpt_augment a = subject_list(list);
    bpt_random random = subject_stream(id);
    assert_true(bpt_augment_mixes(&a));
    return bpt_augment_mix(&a, &random, C, H, W, image, other);
}

/* No pixel of one is that of the other. */
static void make_two(uint64_t id, uint8_t *image, uint8_t *other) {
    subject_noise(2 * id, image, SIZE);
    subject_noise(2 * id + 1, other, SIZE);
    for (int i = 0; i < SIZE; i++)
        if (image[i] == other[i]) other[i] = (uint8_t)(other[i] + 1);
}

static void naive_mixup(double l, const uint8_t *image, const uint8_t *other, uint8_t *out) {
    for (int i = 0; i < SIZE; i++) out[i] = (uint8_t)floor(l * image[i] + (1 - l) * other[i] + 0.5);
}

static void blends_two_images(void **state) {
    (void)state;
    uint8_t image[SIZE], other[SIZE], copy[SIZE], expected[SIZE];
    for (uint64_t id = 0; id < 2000; id++) {
        bpt_random random = subject_stream(id);
        const double drawn = bpt__draw_beta(&random, 4000) / 65536.0;
        const double l = fmax(drawn, 1 - drawn);
        make_two(id, image, other);
        memcpy(copy, other, SIZE);
        naive_mixup(l, image, other, expected);
        const float part = mix("mixup=0.4", id, image, other);
        assert_true((double)part == 1 - l);
        assert_memory_equal(image, expected, SIZE);
        assert_memory_equal(other, copy, SIZE);
    }
}

/* rand_bbox() of the paper's program, with its own names. @return the other's part */
static double naive_cutmix(bpt_random *random, double l, const uint8_t *image, const uint8_t *other,
                           uint8_t *out) {
    const double cut_rat = sqrt(1 - l);
    const int cut_h = (int)(H * cut_rat), cut_w = (int)(W * cut_rat);
    const int cy = (int)bpt_random_below(random, H), cx = (int)bpt_random_below(random, W);
    const int y1 = cy - cut_h / 2 < 0 ? 0 : cy - cut_h / 2;
    const int x1 = cx - cut_w / 2 < 0 ? 0 : cx - cut_w / 2;
    const int y2 = cy + cut_h / 2 > H ? H : cy + cut_h / 2;
    const int x2 = cx + cut_w / 2 > W ? W : cx + cut_w / 2;
    int n = 0;
    for (int c = 0; c < C; c++)
        for (int y = 0; y < H; y++)
            for (int x = 0; x < W; x++) {
                const bool inside = y >= y1 && y < y2 && x >= x1 && x < x2;
                const int i = (c * H + y) * W + x;
                out[i] = inside ? other[i] : image[i];
                n += inside && c == 0;
            }
    return n / (double)PLANE;
}

static void cuts_a_box_out_of_another(void **state) {
    (void)state;
    static const char *const lists[] = {"cutmix=1", "cutmix=0.2", "cutmix=0.01"};
    uint8_t image[SIZE], other[SIZE], copy[SIZE], expected[SIZE];
    for (uint64_t id = 0; id < 6000; id++) {
        const uint32_t alpha[] = {10000, 2000, 100};
        bpt_random random = subject_stream(id);
        const double l = bpt__draw_beta(&random, alpha[id % 3]) / 65536.0;
        make_two(id, image, other);
        memcpy(copy, other, SIZE);
        const double part = naive_cutmix(&random, l, image, other, expected);
        assert_true(mix(lists[id % 3], id, image, other) == (float)part);
        assert_memory_equal(image, expected, SIZE);
        assert_memory_equal(other, copy, SIZE);
    }
}

/* Counted in the image itself: what the label says is what the other has of it. */
static void says_what_part_it_is(void **state) {
    (void)state;
    uint8_t image[SIZE], other[SIZE], before[SIZE];
    int n_cut = 0;
    for (uint64_t id = 0; id < 1000; id++) {
        make_two(id, image, other);
        memcpy(before, image, SIZE);
        const float part = mix("cutmix=1", id, image, other);
        int n = 0;
        for (int i = 0; i < SIZE; i++) n += image[i] != before[i];
        assert_true(part == (float)((double)n / SIZE));
        n_cut += n > 0 && n < SIZE;
    }
    assert_in_range(n_cut, 800, 1000);
}

/* Of both, half of the images get either; whichever comes first in the list is drawn as often. */
static void takes_one_of_two(void **state) {
    (void)state;
    uint8_t image[SIZE], other[SIZE], before[SIZE];
    for (int turn = 0; turn < 2; turn++) {
        int n_boxes = 0;
        for (uint64_t id = 0; id < 4000; id++) {
            make_two(id, image, other);
            memcpy(before, image, SIZE);
            mix(turn ? "cutmix=8,mixup=8" : "flip,mixup=8,cutmix=8", id, image, other);
            int n_neither = 0;
            for (int i = 0; i < SIZE; i++)
                n_neither += image[i] != before[i] && image[i] != other[i];
            n_boxes += n_neither == 0;
        }
        assert_in_range(n_boxes, 1850, 2150); /* 4.7 standard deviations */
    }
}

/* Of any shape, in memory that is as large as they are; but of a row or a column no box is cut. */
static void mixes_small_images(void **state) {
    (void)state;
    const uint32_t shapes[][3] = {{1, 1, 1}, {3, 1, 70}, {3, 70, 1}, {2, 2, 2}, {1, 65, 3}};
    const char *const lists[] = {"mixup=1", "cutmix=0.01", "cutmix=1,mixup=0.01"};
    for (size_t i = 0; i < sizeof shapes / sizeof *shapes; i++)
        for (size_t l = 0; l < 3; l++) {
            const size_t size = (size_t)shapes[i][0] * shapes[i][1] * shapes[i][2];
            const bool is_line = shapes[i][1] == 1 || shapes[i][2] == 1;
            const bpt_augment a = subject_list(lists[l]);
            if (is_line && l > 0) {
                assert_int_equal(bpt_augment_check(&a, shapes[i][1], shapes[i][2]), BPT_EUSAGE);
                assert_non_null(strstr(bpt_error_last()->text, "cutmix="));
                assert_non_null(strstr(bpt_error_last()->text, "wants images of at least 2x2"));
                continue;
            }
            uint8_t *image = malloc(size), *other = malloc(size);
            assert_true(image && other);
            assert_int_equal(bpt_augment_check(&a, shapes[i][1], shapes[i][2]), BPT_OK);
            for (uint64_t id = 0; id < 200; id++) {
                bpt_random random = subject_stream(id);
                subject_noise(id, image, size);
                subject_noise(id + 1, other, size);
                const float part = bpt_augment_mix(&a, &random, shapes[i][0], shapes[i][1],
                                                   shapes[i][2], image, other);
                assert_true(part >= 0 && part <= 1);
            }
            free(image);
            free(other);
        }
}

/* ---- lists ---- */

static void comes_last_and_once(void **state) {
    (void)state;
    const struct {
        const char *list, *text;
    } wrong[] = {{"mixup=1,flip", "augmentation flip cannot come behind mixup"},
                 {"flip,cutmix=1,crop=2", "augmentation crop cannot come behind cutmix"},
                 {"mixup=1,cutmix=1,erase", "augmentation erase cannot come behind cutmix"},
                 {"mixup=1,mixup=0.2", "augmentation mixup is given twice"},
                 {"mixup=1,cutmix=1,mixup=1", "augmentation mixup is given twice"},
                 {"mixup", "augmentation mixup lacks its ALPHA"},
                 {"mixup=", "ALPHA \"\" is not a number from 0.01 to 100"},
                 {"mixup=-1", "ALPHA \"-1\" is not a number from 0.01 to 100"},
                 {"cutmix=nan", "ALPHA \"nan\" is not a number from 0.01 to 100"},
                 {"cutmix=0", "ALPHA \"0\" is not a number from 0.01 to 100"},
                 {"cutmix=1:1", "augmentation cutmix: too many values"}};
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        bpt_augment a = {.n = 7};
        assert_int_equal(bpt_augment_parse(wrong[i].list, &a), BPT_EUSAGE);
        assert_int_equal(a.n, 7);
        assert_true(bpt_error_last()->hint[0]);
        if (!strstr(bpt_error_last()->text, wrong[i].text))
            fail_msg("%s: %s", wrong[i].list, bpt_error_last()->text);
    }
    const bpt_augment none = subject_list("none"), alone = subject_list("crop=2,flip");
    assert_false(bpt_augment_mixes(&none));
    assert_false(bpt_augment_mixes(&alone));
}

/* What comes before is done to an image by itself; mixing is not. */
static void is_no_part_of_what_is_done_to_one_image(void **state) {
    (void)state;
    const bpt_augment a = subject_list("crop=2,flip"), b = subject_list("crop=2,flip,mixup=1"),
                      mixes = subject_list("cutmix=1");
    uint8_t in[SIZE], one[2 * SIZE], two[2 * SIZE];
    subject_noise(1, in, SIZE);
    for (uint64_t id = 0; id < 20; id++)
        assert_memory_equal(subject_apply(&a, id, C, H, W, in, one),
                            subject_apply(&b, id, C, H, W, in, two), SIZE);
    assert_ptr_equal(subject_apply(&mixes, 1, C, H, W, in, one), in);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(draws_as_the_formula_says),
        cmocka_unit_test(has_the_moments_of_beta),
        cmocka_unit_test(has_the_distribution_of_beta),
        cmocka_unit_test(blends_two_images),
        cmocka_unit_test(cuts_a_box_out_of_another),
        cmocka_unit_test(says_what_part_it_is),
        cmocka_unit_test(takes_one_of_two),
        cmocka_unit_test(mixes_small_images),
        cmocka_unit_test(comes_last_and_once),
        cmocka_unit_test(is_no_part_of_what_is_done_to_one_image),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
