/* erase=PROBABILITY:FROM:TO:RATIO: random erasing, the RE-R of Zhong, Zheng, Kang, Li and Yang
 * (Random erasing data augmentation, AAAI 2020), algorithm 1. With that probability a rectangle
 * becomes noise. It has FROM to TO of the image's area and height / width between RATIO and
 * 1 / RATIO, both uniform. One that sticks out is drawn anew, size and place; after 100 of them the
 * image stays as it is. */
#include "storage/augmentations/augmentation.h"
#include "storage/augmentations/draws.h"

#include <string.h>

enum { PROBABILITY, FROM, TO, RATIO, UNIT = BPT_AUGMENT_UNIT, N_TRIES = 100, N_WORDS = 64 };

/* @return whether one was found that lies in the image */
static bool draw_window(const uint32_t *values, bpt_random *random, uint32_t H, uint32_t W,
                        bpt__window *window) {
    for (int i = 0; i < N_TRIES; i++) {
        const uint32_t area = bpt__draw_between(random, values[FROM], values[TO]);
        const uint32_t ratio =
            bpt__draw_between(random, values[RATIO], UNIT * UNIT / values[RATIO]);
        uint32_t h, w;
        bpt__sides((uint64_t)H * W, area, ratio, &h, &w);
        if (h == 0) h = 1;
        if (w == 0) w = 1;
        const uint32_t y = bpt_random_below(random, H), x = bpt_random_below(random, W);
        *window = (bpt__window){.y = y, .x = x, .h = h, .w = w};
        if (h <= H - y && w <= W - x) return true;
    }
    return false;
}

/* Noise, four pixels to a word of the stream: the lowest byte first. */
typedef struct noise {
    bpt_random *random;
    uint32_t words[N_WORDS];
    uint32_t used; /* bytes of them */
} noise;

static uint8_t next_byte(noise *n) {
    if (n->used == 4 * N_WORDS) {
        bpt_random_fill(n->random, n->words, N_WORDS);
        n->used = 0;
    }
    const uint32_t i = n->used++;
    return (uint8_t)(n->words[i / 4] >> 8 * (i % 4));
}

static bool apply(const uint32_t *values, bpt_random *random, uint32_t C, uint32_t H, uint32_t W,
                  const uint8_t *restrict in, uint8_t *restrict out) {
    bpt__window window;
    if (bpt_random_below(random, UNIT) >= values[PROBABILITY]) return false;
    if (!draw_window(values, random, H, W, &window)) return false;
    noise n = {.random = random, .used = 4 * N_WORDS};
    const size_t plane = (size_t)H * W;
    memcpy(out, in, C * plane);
    for (uint32_t c = 0; c < C; c++)
        for (uint32_t y = 0; y < window.h; y++) {
            uint8_t *row = out + c * plane + (size_t)(window.y + y) * W + window.x;
            for (uint32_t x = 0; x < window.w; x++) row[x] = next_byte(&n);
        }
    return true;
}

const bpt_augmentation bpt_augmentation_erase = {
    .name = "erase",
    .example = "erase=0.5:0.02:0.4:0.3",
    .n_parameters = 4,
    .parameters = {{.name = "PROBABILITY", .min = 1, .max = UNIT, .otherwise = UNIT / 2},
                   {.name = "FROM", .min = 1, .max = UNIT, .otherwise = UNIT / 50},
                   {.name = "TO", .min = 1, .max = UNIT, .otherwise = UNIT / 10 * 4, .rises = true},
                   {.name = "RATIO", .min = UNIT / 10, .max = UNIT, .otherwise = UNIT / 10 * 3}},
    .apply = apply};
