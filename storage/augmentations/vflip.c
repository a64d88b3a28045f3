/* vflip: half of all images are mirrored top to bottom. */
#include "storage/augmentation.h"

#include <string.h>

static bool apply(const uint32_t *values, bpt_random *random, uint32_t C, uint32_t H, uint32_t W,
                  const uint8_t *restrict in, uint8_t *restrict out) {
    (void)values;
    if (bpt_random_below(random, 2) == 0) return false;
    for (uint32_t c = 0; c < C; c++, in += (size_t)H * W)
        for (uint32_t y = 0; y < H; y++, out += W) memcpy(out, in + (size_t)(H - 1 - y) * W, W);
    return true;
}

const bpt_augmentation bpt_augmentation_vflip = {
    .name = "vflip", .example = "vflip", .apply = apply};
