#include "storage/augmentations/image_move.h"

#include "base/clones.h"

#include <string.h>

bpt_side_move bpt__side_still(uint32_t side) {
    return bpt__side_shifted(side, 0);
}

bpt_side_move bpt__side_shifted(uint32_t side, int64_t by) {
    return (bpt_side_move){
        .first = (int32_t)by,
        .step = 1,
        .begin = by < 0 ? (int32_t)-by : 0,
        .end = (int32_t)(by < 0 ? side : side - by),
    };
}

bpt_side_move bpt__side_mirrored(uint32_t side) {
    return (bpt_side_move){.first = (int32_t)side - 1, .step = -1, .end = (int32_t)side};
}

bpt_image_move bpt__image_still(uint32_t H, uint32_t W) {
    return (bpt_image_move){bpt__side_still(H), bpt__side_still(W)};
}

/* Pixel i comes from b.first + b.step * i, which is to be a pixel that a has. What is black
 * everywhere is kept as one such move, so that no number of moves leads out of an int32_t. */
static bpt_side_move side_then(bpt_side_move a, bpt_side_move b) {
    const bpt_side_move black = {.step = 1};
    int32_t begin = b.step > 0 ? a.begin - b.first : b.first - a.end + 1;
    int32_t end = b.step > 0 ? a.end - b.first : b.first - a.begin + 1;
    if (begin < b.begin) begin = b.begin;
    if (end > b.end) end = b.end;
    if (begin >= end) return black;
    return (bpt_side_move){a.first + a.step * b.first, a.step * b.step, begin, end};
}

bpt_image_move bpt__image_move_then(bpt_image_move first, bpt_image_move next) {
    return (bpt_image_move){side_then(first.y, next.y), side_then(first.x, next.x)};
}

static bool is_still(bpt_side_move m, uint32_t side) {
    return m.first == 0 && m.step == 1 && m.begin == 0 && m.end == (int32_t)side;
}

bool bpt__image_is_still(bpt_image_move move, uint32_t H, uint32_t W) {
    return is_still(move.y, H) && is_still(move.x, W);
}

/* What is black is so before rows come to lie in it: a call more for each of them would cost as
 * much as the row. */
BPT_CLONES static void move_plane(const uint8_t *restrict in, bpt_image_move m, uint32_t H,
                                  uint32_t W, uint8_t *restrict out) {
    const size_t n_rows = (size_t)(m.y.end - m.y.begin), n = (size_t)(m.x.end - m.x.begin);
    if (n_rows < H || n < W) memset(out, 0, (size_t)H * W);
    if (n_rows == 0 || n == 0) return;
    in += m.x.first + m.x.step * m.x.begin;
    for (int32_t y = m.y.begin; y < m.y.end; y++) {
        uint8_t *to = out + (size_t)y * W + (size_t)m.x.begin;
        const uint8_t *row = in + (size_t)(m.y.first + m.y.step * y) * W;
        if (m.x.step > 0)
            memcpy(to, row, n);
        else
            for (size_t x = 0; x < n; x++) to[x] = *(row - x);
    }
}

void bpt__image_make_move(bpt_image_move move, uint32_t C, uint32_t H, uint32_t W,
                          const uint8_t *restrict in, uint8_t *restrict out) {
    const size_t plane = (size_t)H * W;
    for (uint32_t c = 0; c < C; c++) move_plane(in + c * plane, move, H, W, out + c * plane);
}
