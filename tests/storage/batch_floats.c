#include "tests/storage/batch_floats.h"

#include <stdbool.h>
#include <string.h>

/* @return whether pixel i of a side is of the image; @param[out] from which it is */
static bool find(bpt_side_move m, int32_t i, int32_t *from) {
    *from = m.first + m.step * i;
    return i >= m.begin && i < m.end;
}

static float value(const bpt_images *images, uint8_t pixel, uint32_t c) {
    const volatile float product = (float)pixel * images->scale[c]; /* rounded */
    return product + images->shift[c];
}

static void move(const bpt_images *images, uint32_t i, uint32_t C, uint32_t H, uint32_t W,
                 float *out) {
    const uint8_t *image = images->pixels + (size_t)i * C * H * W;
    int32_t from_y, from_x;
    for (uint32_t c = 0; c < C; c++, image += (size_t)H * W)
        for (uint32_t y = 0; y < H; y++)
            for (uint32_t x = 0; x < W; x++) {
                const bool there = find(images->moves[i].y, (int32_t)y, &from_y) &
                                   find(images->moves[i].x, (int32_t)x, &from_x);
                *out++ = value(images, there ? image[from_y * (int32_t)W + from_x] : 0, c);
            }
}

void batch_floats(const bpt_batch *batch, uint32_t i, uint32_t C, uint32_t H, uint32_t W,
                  float *out) {
    const size_t plane = (size_t)H * W, record = C * plane;
    if (batch->pixels) {
        memcpy(out, batch->pixels + i * record, record * sizeof *out);
        return;
    }
    const bpt_images *images = batch->input;
    if (i >= images->n)
        memset(out, 0, record * sizeof *out);
    else if (images->moves)
        move(images, i, C, H, W, out);
    else
        for (size_t p = 0; p < record; p++)
            out[p] = value(images, images->pixels[i * record + p], (uint32_t)(p / plane));
}
