/* flip: half of all images are mirrored left to right. */
#include "storage/augmentation.h"

static bool apply(const uint32_t *values, bpt_random *random, uint32_t C, uint32_t H, uint32_t W,
                  const uint8_t *restrict in, uint8_t *restrict out) {
    (void)values;
    if (bpt_random_below(random, 2) == 0) return false;
    const size_t n_rows = (size_t)C * H;
    for (size_t row = 0; row < n_rows; row++, in += W, out += W)
        for (uint32_t x = 0; x < W; x++) out[x] = in[W - 1 - x];
    return true;
}

const bpt_augmentation bpt_augmentation_flip = {.name = "flip", .example = "flip", .apply = apply};
