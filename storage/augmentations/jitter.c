/* jitter=BRIGHTNESS:CONTRAST:SATURATION: colours, as torchvision's ColorJitter without hue. Each of
 * the three has a factor f from 1 - value to 1 + value, and they come in an order that is drawn.
 *
 *   brightness   f pixel
 *   contrast     f pixel + (1 - f) mean grey of the image
 *   saturation   f pixel + (1 - f) grey of the same place; images of three channels have it
 *
 * Each is rounded to a whole grey level and kept in 0..255. Grey is 0.299 R + 0.587 G + 0.114 B, to
 * a whole level; where there are not three channels it is the mean of them all. Factors and weights
 * are in 1 / 65536. */
#include "base/clones.h"
#include "storage/augmentations/augmentation.h"

#include <string.h>

enum { BRIGHTNESS, CONTRAST, SATURATION, N_CHANGES, N_ORDERS = 6 };
enum { ONE = 1 << 16, RED = 19595, GREEN = 38470, BLUE = 7471 };

_Static_assert(RED + GREEN + BLUE == ONE, "grey stays grey");

static const uint8_t orders[N_ORDERS][N_CHANGES] = {{0, 1, 2}, {0, 2, 1}, {1, 0, 2},
                                                    {1, 2, 0}, {2, 0, 1}, {2, 1, 0}};

/* @return factor * pixel + (ONE - factor) * grey in 0..255; factor 0 to 2 */
static inline uint8_t mix(int32_t factor, int32_t pixel, int32_t grey) {
    const int32_t sum = factor * pixel + (ONE - factor) * grey + ONE / 2;
    const int32_t level = sum < 0 ? 0 : sum >> 16;
    return (uint8_t)(level > 255 ? 255 : level);
}

BPT_CLONES static void mix_all(int32_t factor, int32_t grey, uint8_t *pixels, size_t n) {
    for (size_t i = 0; i < n; i++) pixels[i] = mix(factor, pixels[i], grey);
}

/* @param pixels shape [3,plane] */
BPT_CLONES static void saturate(int32_t factor, uint8_t *pixels, size_t plane) {
    uint8_t *restrict r = pixels, *restrict g = pixels + plane, *restrict b = pixels + 2 * plane;
    for (size_t i = 0; i < plane; i++) {
        const int32_t grey = (RED * r[i] + GREEN * g[i] + BLUE * b[i] + ONE / 2) >> 16;
        r[i] = mix(factor, r[i], grey);
        g[i] = mix(factor, g[i], grey);
        b[i] = mix(factor, b[i], grey);
    }
}

BPT_CLONES static uint64_t sum_of(const uint8_t *pixels, size_t n) {
    uint64_t sum = 0;
    for (size_t i = 0; i < n; i++) sum += pixels[i];
    return sum;
}

/* @return the mean grey of an image [C,plane], rounded */
static int32_t mean_grey(const uint8_t *pixels, uint32_t C, size_t plane) {
    if (C != 3) return (int32_t)((sum_of(pixels, C * plane) + C * plane / 2) / (C * plane));
    const uint64_t sum = RED * sum_of(pixels, plane) + GREEN * sum_of(pixels + plane, plane) +
                         BLUE * sum_of(pixels + 2 * plane, plane);
    return (int32_t)((sum + ONE / 2 * (uint64_t)plane) / (ONE * (uint64_t)plane));
}

/* @return a factor, uniform around ONE */
static int32_t draw(bpt_random *random, uint32_t value) {
    const uint32_t most = value * ONE / BPT_AUGMENT_UNIT;
    return (int32_t)(ONE - most + bpt_random_below(random, 2 * most + 1));
}

static void change(uint8_t what, int32_t factor, uint8_t *pixels, uint32_t C, size_t plane) {
    if (factor == ONE) return;
    if (what == BRIGHTNESS) mix_all(factor, 0, pixels, C * plane);
    if (what == CONTRAST) mix_all(factor, mean_grey(pixels, C, plane), pixels, C * plane);
    if (what == SATURATION && C == 3) saturate(factor, pixels, plane);
}

static bool apply(const uint32_t *values, bpt_random *random, uint32_t C, uint32_t H, uint32_t W,
                  const uint8_t *restrict in, uint8_t *restrict out) {
    const uint8_t *order = orders[bpt_random_below(random, N_ORDERS)];
    int32_t factors[N_CHANGES];
    const size_t plane = (size_t)H * W;
    for (int i = 0; i < N_CHANGES; i++) factors[i] = draw(random, values[i]);
    memcpy(out, in, C * plane);
    for (int i = 0; i < N_CHANGES; i++) change(order[i], factors[order[i]], out, C, plane);
    return true;
}

const bpt_augmentation bpt_augmentation_jitter = {
    .name = "jitter",
    .example = "jitter=0.4:0.4:0.4",
    .n_parameters = N_CHANGES,
    .parameters = {{.name = "BRIGHTNESS", .max = BPT_AUGMENT_UNIT, .otherwise = 4000},
                   {.name = "CONTRAST", .max = BPT_AUGMENT_UNIT, .otherwise = 4000},
                   {.name = "SATURATION", .max = BPT_AUGMENT_UNIT, .otherwise = 4000}},
    .apply = apply};
