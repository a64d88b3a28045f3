#include "storage/images/packed.h"

#include "base/clones.h"
#include "base/memory.h"

#include <endian.h>
#include <string.h>

/* libjpeg-turbo writes rows that are aligned to a vector past the caches, from where they would
 * have to be fetched at once. Behind an odd number of 4 bytes no row is aligned, if W is even, or
 * few. */
enum { OFFSET = 4 };

bpt_status bpt__packed_reserve(bpt__packed *p, uint32_t H, uint32_t W, uint32_t lanes) {
    const size_t need = (size_t)H * W * lanes;
    if (need > p->capacity) {
        bpt__packed_clear(p);
        BPT_TRY(BPT_NEW("pixels of an image", need + OFFSET, &p->memory));
        p->pixels = p->memory + OFFSET;
        p->capacity = need;
    }
    p->H = H;
    p->W = W;
    p->lanes = lanes;
    return BPT_OK;
}

void bpt__packed_clear(bpt__packed *p) {
    bpt_free(p->memory);
    *p = (bpt__packed){0};
}

/* round(n / 255) for n in [0, 255 * 255] */
static uint8_t over_255(uint32_t n) {
    n += 128;
    return (uint8_t)((n + (n >> 8)) >> 8);
}

BPT_CLONES static void cmyk_to_rgb(uint8_t *pixels, size_t n, uint8_t flip) {
    for (size_t i = 0; i < n; i++) {
        uint8_t *pixel = pixels + 4 * i;
        const uint32_t light = pixel[3] ^ flip; /* 255 - K */
        for (int c = 0; c < 3; c++) pixel[c] = over_255((pixel[c] ^ flip) * light);
    }
}

void bpt__packed_cmyk_to_rgb(bpt__packed *p, bool inverted) {
    cmyk_to_rgb(p->pixels, (size_t)p->H * p->W, inverted ? 0 : 255);
}

BPT_CLONES static void over_white(uint8_t *pixels, size_t n) {
    for (size_t i = 0; i < n; i++) {
        uint8_t *pixel = pixels + 4 * i;
        const uint32_t alpha = pixel[3], white = 255 * (255 - alpha);
        for (int c = 0; c < 3; c++) pixel[c] = over_255(pixel[c] * alpha + white);
    }
}

void bpt__packed_over_white(bpt__packed *p) {
    over_white(p->pixels, (size_t)p->H * p->W);
}

void bpt__packed_to_grey(bpt__packed *p) {
    /* 0.299, 0.587, 0.114 of 65536, their sum 65536: grey stays what it is */
    enum { R = 19595, G = 38470, B = 7471, HALF = 32768 };
    const size_t n = (size_t)p->H * p->W;
    for (size_t i = 0; i < n; i++) {
        const uint8_t *pixel = p->pixels + 4 * i;
        p->pixels[i] = (uint8_t)((R * pixel[0] + G * pixel[1] + B * pixel[2] + HALF) >> 16);
    }
    p->lanes = 1;
}

/* Where the pixel of row 0, column 0 of the upright image is in the file, and the steps from there
 * to the next column and row, all in pixels. */
typedef struct walk {
    ptrdiff_t origin, column, row;
} walk;

static walk walk_of(uint32_t orientation, ptrdiff_t H, ptrdiff_t W) {
    const ptrdiff_t right = W - 1, bottom = (H - 1) * W;
    switch (orientation) {
    case 2:
        return (walk){right, -1, W};
    case 3:
        return (walk){bottom + right, -1, -W};
    case 4:
        return (walk){bottom, 1, -W};
    case 5:
        return (walk){0, W, 1};
    case 6:
        return (walk){bottom, -W, 1};
    case 7:
        return (walk){bottom + right, -W, -1};
    case 8:
        return (walk){right, W, -1};
    default:
        return (walk){0, 1, W};
    }
}

/* Small tiles, since rows of one image may be columns of the other: both stay in cache. */
enum { TILE = 32 };

#define TURN(type)                                                                                 \
    static void turn_##type(const type *restrict in, walk w, uint32_t H, uint32_t W,               \
                            type *restrict out) {                                                  \
        for (uint32_t y0 = 0; y0 < H; y0 += TILE)                                                  \
            for (uint32_t x0 = 0; x0 < W; x0 += TILE)                                              \
                for (uint32_t y = y0; y < H && y < y0 + TILE; y++)                                 \
                    for (uint32_t x = x0; x < W && x < x0 + TILE; x++)                             \
                        out[(size_t)y * W + x] = in[w.origin + y * w.row + x * w.column];          \
    }
TURN(uint8_t)
TURN(uint32_t)

bpt_status bpt__packed_turn(bpt__packed *p, uint32_t orientation, bpt__packed *other) {
    if (orientation == 1) return BPT_OK;
    const bool sideways = orientation > 4;
    const uint32_t H = sideways ? p->W : p->H, W = sideways ? p->H : p->W;
    BPT_TRY(bpt__packed_reserve(other, H, W, p->lanes));
    const walk w = walk_of(orientation, p->H, p->W);
    if (p->lanes == 1)
        turn_uint8_t(p->pixels, w, H, W, other->pixels);
    else /* aligned to 4 bytes; four lanes are moved as one */
        turn_uint32_t((const uint32_t *)(void *)p->pixels, w, H, W,
                      (uint32_t *)(void *)other->pixels);
    const bpt__packed turned = *other;
    *other = *p;
    *p = turned;
    return BPT_OK;
}

/* Whole blocks: loops of a constant length become vector code without a remainder. Shifts of whole
 * pixels take a third of the time of picking every fourth byte (AVX2; the same with SSE2). */
enum { BLOCK = 64 };

BPT_CLONES static void split_blocks(const uint8_t *restrict in, size_t n, uint8_t *restrict r,
                                    uint8_t *restrict g, uint8_t *restrict b) {
    for (size_t i = 0; i + BLOCK <= n; i += BLOCK)
        for (size_t k = i; k < i + BLOCK; k++) {
            uint32_t pixel;
            memcpy(&pixel, in + 4 * k, sizeof pixel);
            pixel = le32toh(pixel);
            r[k] = (uint8_t)pixel;
            g[k] = (uint8_t)(pixel >> 8);
            b[k] = (uint8_t)(pixel >> 16);
        }
}

void bpt__split(const uint8_t *in, size_t n, uint8_t *r, uint8_t *g, uint8_t *b) {
    split_blocks(in, n, r, g, b);
    if (n >= BLOCK && n % BLOCK) { /* the last block overlaps the one before */
        const size_t last = n - BLOCK;
        split_blocks(in + 4 * last, BLOCK, r + last, g + last, b + last);
    }
    for (size_t i = 0; n < BLOCK && i < n; i++) {
        r[i] = in[4 * i];
        g[i] = in[4 * i + 1];
        b[i] = in[4 * i + 2];
    }
}

void bpt__packed_to_planes(const bpt__packed *p, uint32_t y, uint32_t x, uint32_t H, uint32_t W,
                           uint8_t *out) {
    const size_t pitch = (size_t)p->W * p->lanes, plane = (size_t)H * W;
    const bool one_piece = W == p->W;
    const size_t n_pieces = one_piece ? 1 : H, n = one_piece ? plane : W; /* pixels of each */
    for (size_t i = 0; i < n_pieces; i++) {
        const uint8_t *in = p->pixels + (y + i) * pitch + (size_t)x * p->lanes;
        uint8_t *piece = out + i * W;
        if (p->lanes == 1)
            memcpy(piece, in, n);
        else
            bpt__split(in, n, piece, piece + plane, piece + 2 * plane);
    }
}
