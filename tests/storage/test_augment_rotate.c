/* Turned images against sine, cosine and interpolation in double precision, with the angle that is
 * drawn; and angles as they are seen in the images.
 * ctest: TIMEOUT=120 */
#include "tests/storage/augment_subject.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

enum { C = 2, LARGEST = 400 * 400, N_DRAWS = 3000 };

static const double pi = 3.14159265358979323846;

static double pixel(const uint8_t *in, int H, int W, int y, int x) {
    return y < 0 || y >= H || x < 0 || x >= W ? 0 : in[y * W + x];
}

/* @param in shape [H,W] @return what lies at (v, u), black around the image */
static double interpolate(const uint8_t *in, int H, int W, double v, double u) {
    const int y = (int)floor(v), x = (int)floor(u);
    const double upper =
        pixel(in, H, W, y, x) * (1 - (u - x)) + pixel(in, H, W, y, x + 1) * (u - x);
    const double lower =
        pixel(in, H, W, y + 1, x) * (1 - (u - x)) + pixel(in, H, W, y + 1, x + 1) * (u - x);
    return upper * (1 - (v - y)) + lower * (v - y);
}

/* Turned against the clock by @p degrees. Half a grey level for rounding, and an eighth for weights
 * in 1 / 2048. */
static void expect_turned(const uint8_t *in, const uint8_t *out, int H, int W, double degrees) {
    const double s = sin(degrees * pi / 180), c = cos(degrees * pi / 180);
    for (int plane = 0; plane < C; plane++, in += H * W)
        for (int y = 0; y < H; y++)
            for (int x = 0; x < W; x++, out++) {
                const double dy = y - (H - 1) / 2.0, dx = x - (W - 1) / 2.0;
                const double v = s * dx + c * dy + (H - 1) / 2.0;
                const double u = c * dx - s * dy + (W - 1) / 2.0;
                const double expected = interpolate(in, H, W, v, u);
                if (fabs(*out - expected) > 0.63)
                    fail_msg("%dx%d by %.4f: pixel %d,%d is %d, not %.3f", H, W, degrees, y, x,
                             *out, expected);
            }
}

static void turns(void **state) {
    (void)state;
    static uint8_t in[C * LARGEST], scratch[2 * C * LARGEST];
    const int sides[][2] = {{32, 32}, {1, 1},   {1, 9},    {9, 1},    {2, 2},
                            {7, 12},  {65, 31}, {3, 2000}, {2000, 3}, {400, 400}};
    const struct {
        const char *list;
        uint32_t most; /* in 1 / 10000 degree */
    } cases[] = {{"rotate=0.1", 1000}, {"rotate=15", 150000}, {"rotate=180", 1800000}};
    for (size_t k = 0; k < sizeof sides / sizeof *sides; k++)
        for (size_t l = 0; l < 3; l++) {
            const int H = sides[k][0], W = sides[k][1];
            const bpt_augment a = subject_list(cases[l].list);
            subject_noise(k, in, (size_t)(C * H * W));
            assert_int_equal(bpt_augment_check(&a, (uint32_t)H, (uint32_t)W), BPT_OK);
            for (uint64_t id = 0; id < (H * W > 10000 ? 6 : H * W > 2000 ? 40 : 200); id++) {
                bpt_random random = subject_stream(id);
                const double degrees =
                    ((double)bpt_random_below(&random, 2 * cases[l].most + 1) - cases[l].most) /
                    10000;
                const uint8_t *out =
                    subject_apply(&a, id, C, (uint32_t)H, (uint32_t)W, in, scratch);
                expect_turned(in, out, H, W, degrees);
            }
        }
}

/* @return by how many degrees the one bright spot has been turned, which was on the right */
static double angle_of(const uint8_t *image, int side) {
    double sum = 0, up = 0, right = 0;
    for (int y = 0; y < side; y++)
        for (int x = 0; x < side; x++) {
            sum += image[y * side + x];
            up -= image[y * side + x] * (y - (side - 1) / 2.0);
            right += image[y * side + x] * (x - (side - 1) / 2.0);
        }
    assert_true(sum > 0);
    return atan2(up / sum, right / sum) * 180 / pi;
}

static void draws_all_angles(void **state) {
    (void)state;
    enum { SIDE = 61 };
    static uint8_t in[SIDE * SIDE], scratch[2 * SIDE * SIDE];
    static double angles[N_DRAWS];
    for (int y = 28; y < 33; y++) memset(in + y * SIDE + 50, 255, 5);
    const double most[] = {20, 180};
    for (int k = 0; k < 2; k++) {
        char list[32];
        snprintf(list, sizeof list, "rotate=%g", most[k]);
        const bpt_augment a = subject_list(list);
        for (int i = 0; i < N_DRAWS; i++)
            angles[i] = angle_of(subject_apply(&a, (uint64_t)i, 1, SIDE, SIDE, in, scratch), SIDE);
        assert_true(subject_distance(angles, N_DRAWS, -most[k], most[k]) < subject_far(N_DRAWS));
        assert_true(angles[0] >= -most[k] - 0.05 && angles[N_DRAWS - 1] <= most[k] + 0.05);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(turns),
        cmocka_unit_test(draws_all_angles),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
