#include "storage/augmentations/translate.h"

#include <string.h>

/* A row moved by dx, black where nothing is. */
static void move_row(const uint8_t *restrict in, uint32_t W, int64_t dx, uint8_t *restrict out) {
    const uint32_t n = (uint32_t)(dx < 0 ? -dx : dx);
    if (dx < 0) {
        memset(out, 0, n);
        memcpy(out + n, in, W - n);
    } else {
        memcpy(out, in + n, W - n);
        memset(out + W - n, 0, n);
    }
}

bool bpt__translate(int64_t dy, int64_t dx, uint32_t C, uint32_t H, uint32_t W,
                    const uint8_t *restrict in, uint8_t *restrict out) {
    if (dy == 0 && dx == 0) return false;
    for (uint32_t c = 0; c < C; c++, in += (size_t)H * W)
        for (uint32_t y = 0; y < H; y++, out += W) {
            const int64_t from = y + dy;
            if (from < 0 || from >= H)
                memset(out, 0, W);
            else
                move_row(in + (size_t)from * W, W, dx, out);
        }
    return true;
}
