/* flip: half of all images are mirrored left to right. */
#include "base/clones.h"
#include "storage/augmentation.h"

BPT_CLONES static void mirror(const uint8_t *restrict in, size_t n_rows, size_t W,
                              uint8_t *restrict out) {
    for (size_t row = 0; row < n_rows; row++, in += W, out += W)
        for (size_t x = 0; x < W; x++) out[x] = in[W - 1 - x];
}

static bool apply(const uint32_t *values, bpt_random *random, uint32_t C, uint32_t H, uint32_t W,
                  const uint8_t *restrict in, uint8_t *restrict out) {
    (void)values;
    if (bpt_random_below(random, 2) == 0) return false;
    mirror(in, (size_t)C * H, W, out);
    return true;
}

const bpt_augmentation bpt_augmentation_flip = {.name = "flip", .example = "flip", .apply = apply};
