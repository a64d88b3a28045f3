/* cutmix=ALPHA: the CutMix of Yun, Han, Oh, Chun, Choe and Yoo (CutMix: regularization strategy to
 * train strong classifiers with localizable features, ICCV 2019), as their program cuts, but with L
 * and a box for each image, where it draws one of a batch. A box of the image becomes that of the
 * other: sqrt(1 - L) of its height and width, with L from Beta(ALPHA, ALPHA), around a pixel
 * anywhere; what lies beyond the border is cut off, and the area that is left is the other's part.
 */
#include "storage/augmentations/beta.h"
#include "storage/augmentations/draws.h"

#include <string.h>

enum { ROOT_BITS = 31 };

/* Half of a box's side is whole pixels: of a single row or column nothing is ever cut. */
static uint32_t smallest(const uint32_t *values) {
    (void)values;
    return 2;
}

/* @param root of the part that is cut, in 1 / 2^ROOT_BITS
 * @param[out] begin, n where the box lies along a side */
static void draw_span(bpt_random *random, uint32_t side, uint64_t root, uint32_t *begin,
                      uint32_t *n) {
    const uint32_t half = (uint32_t)(side * root >> (ROOT_BITS + 1));
    const uint32_t middle = bpt_random_below(random, side);
    *begin = middle > half ? middle - half : 0;
    *n = (side - middle < half ? side : middle + half) - *begin;
}

static float mix(const uint32_t *values, bpt_random *random, uint32_t C, uint32_t H, uint32_t W,
                 uint8_t *restrict image, const uint8_t *restrict other) {
    const uint64_t cut = BPT__BETA_ONE - bpt__draw_beta(random, values[0]);
    const uint64_t root = bpt__root(cut << (2 * ROOT_BITS - 16));
    bpt__window box;
    draw_span(random, H, root, &box.y, &box.h);
    draw_span(random, W, root, &box.x, &box.w);
    const size_t plane = (size_t)H * W;
    for (size_t c = 0; c < C; c++)
        for (size_t y = box.y; y < box.y + box.h; y++) {
            const size_t row = c * plane + y * W + box.x;
            memcpy(image + row, other + row, box.w);
        }
    return (float)((double)box.h * box.w / (double)plane);
}

_Static_assert(BPT__BETA_ONE == 1 << 16, "mix() shifts by as much");

const bpt_augmentation bpt_augmentation_cutmix = {.name = "cutmix",
                                                  .example = "cutmix=1",
                                                  .n_parameters = 1,
                                                  .parameters = {BPT__BETA_ALPHA},
                                                  .smallest = smallest,
                                                  .mix = mix};
