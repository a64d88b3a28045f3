/* crop=P: a window of the image's own size, anywhere in the image with P black pixels around it. */
#include "storage/augmentation.h"

#include <string.h>

/* At least one pixel of the image is in any window. */
static uint32_t smallest(uint32_t value) {
    return value + 1;
}

/* A row shifted by dx, black where nothing is. */
static void shift_row(const uint8_t *restrict in, uint32_t W, int64_t dx, uint8_t *restrict out) {
    const uint32_t n = (uint32_t)(dx < 0 ? -dx : dx);
    if (dx < 0) {
        memset(out, 0, n);
        memcpy(out + n, in, W - n);
    } else {
        memcpy(out, in + n, W - n);
        memset(out + W - n, 0, n);
    }
}

static bool apply(uint32_t value, bpt_random *random, uint32_t C, uint32_t H, uint32_t W,
                  const uint8_t *restrict in, uint8_t *restrict out) {
    const int64_t dy = (int64_t)bpt_random_below(random, 2 * value + 1) - value;
    const int64_t dx = (int64_t)bpt_random_below(random, 2 * value + 1) - value;
    if (dy == 0 && dx == 0) return false;
    for (uint32_t c = 0; c < C; c++, in += (size_t)H * W)
        for (uint32_t y = 0; y < H; y++, out += W) {
            const int64_t from = y + dy;
            if (from < 0 || from >= H)
                memset(out, 0, W);
            else
                shift_row(in + (size_t)from * W, W, dx, out);
        }
    return true;
}

const bpt_augmentation bpt_augmentation_crop = {.name = "crop",
                                                .takes_value = true,
                                                .min = 1,
                                                .max = 1024,
                                                .smallest = smallest,
                                                .apply = apply};
