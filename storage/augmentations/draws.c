#include "storage/augmentations/draws.h"

#include "storage/augmentations/augmentation.h"

uint32_t bpt__draw_between(bpt_random *random, uint32_t low, uint32_t high) {
    return low + bpt_random_below(random, high - low + 1);
}

uint64_t bpt__root(uint64_t n) {
    uint64_t r = 0;
    for (uint64_t bit = (uint64_t)1 << 31; bit > 0; bit >>= 1)
        if ((r | bit) * (r | bit) <= n) r |= bit;
    return r;
}

void bpt__sides(uint64_t n_pixels, uint32_t area, uint32_t ratio, uint32_t *h, uint32_t *w) {
    const uint64_t unit = BPT_AUGMENT_UNIT;
    /* A root is rounded by way of twice its value: that of four times the square, rounded down. */
    *h = (uint32_t)((bpt__root(4 * n_pixels * area * ratio / (unit * unit)) + 1) / 2);
    *w = (uint32_t)((bpt__root(4 * n_pixels * area / ratio) + 1) / 2);
}
