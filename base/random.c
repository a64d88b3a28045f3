#include "base/random.h"

#include "base/clones.h"

#include <math.h>

/* A round of the generator. Words are below 2^32, but 64 bits wide as their products are: numbers,
 * of one counter, or vectors, of several. GCC 12 makes scalar code of a loop over counters: with
 * vectors the masks of dropout take a quarter of the time (vgg16, AVX-512). */
#define ROUND(c, k)                                                                                \
    do {                                                                                           \
        const __typeof__((c)[0]) product0 = (c)[0] * 0xD2511F53u, product1 = (c)[2] * 0xCD9E8D57u; \
        (c)[0] = product1 >> 32 ^ (c)[1] ^ (k)[0];                                                 \
        (c)[1] = product1 & 0xFFFFFFFFu;                                                           \
        (c)[2] = product0 >> 32 ^ (c)[3] ^ (k)[1];                                                 \
        (c)[3] = product0 & 0xFFFFFFFFu;                                                           \
        (k)[0] += 0x9E3779B9u;                                                                     \
        (k)[1] += 0xBB67AE85u;                                                                     \
    } while (0)

enum { N_ROUNDS = 10 };

static void philox_one(const uint32_t counter[4], const uint32_t key[2], uint32_t out[4]) {
    uint32_t k[2] = {key[0], key[1]};
    uint64_t c[4];
    for (int word = 0; word < 4; word++) c[word] = counter[word];
    for (int round = 0; round < N_ROUNDS; round++) ROUND(c, k);
    for (int word = 0; word < 4; word++) out[word] = (uint32_t)c[word];
}

bpt_random bpt_random_stream(uint64_t seed, bpt_purpose purpose, uint64_t id) {
    return (bpt_random){
        .key = {(uint32_t)seed, (uint32_t)(seed >> 32)},
        .counter = {0, (uint32_t)purpose, (uint32_t)id, (uint32_t)(id >> 32)},
        .used = 4,
    };
}

uint32_t bpt_random_u32(bpt_random *r) {
    if (r->used == 4) {
        philox_one(r->counter, r->key, r->block);
        r->counter[0]++;
        r->used = 0;
    }
    return r->block[r->used++];
}

enum { LANES = 8 }; /* counters in one pass of bpt_random_fill() */
typedef uint64_t lanes __attribute__((vector_size(LANES * sizeof(uint64_t))));

/* The numbers of LANES counters, one after another. */
BPT_CLONES static void philox_lanes(const uint32_t counter[4], const uint32_t key[2],
                                    uint32_t out[4 * LANES]) {
    uint32_t k[2] = {key[0], key[1]};
    lanes c[4];
    c[0] = ((lanes){0, 1, 2, 3, 4, 5, 6, 7} + counter[0]) & 0xFFFFFFFFu;
    for (int word = 1; word < 4; word++) c[word] = (lanes){0} + counter[word];
    for (int round = 0; round < N_ROUNDS; round++) ROUND(c, k);
    for (int i = 0; i < LANES; i++)
        for (int word = 0; word < 4; word++) out[4 * i + word] = (uint32_t)c[word][i];
}

void bpt_random_fill(bpt_random *r, uint32_t *out, size_t n) {
    for (; n && r->used < 4; n--) *out++ = bpt_random_u32(r);
    for (; n >= 4 * LANES; n -= 4 * LANES, out += 4 * LANES) {
        philox_lanes(r->counter, r->key, out);
        r->counter[0] += LANES;
    }
    for (; n; n--) *out++ = bpt_random_u32(r);
}

uint32_t bpt_random_below(bpt_random *r, uint32_t n) {
    /* Lemire's method: the high half of a product, redrawn where the low half would bias it. */
    uint64_t product = (uint64_t)bpt_random_u32(r) * n;
    const uint32_t threshold = (uint32_t)(-n) % n;
    while ((uint32_t)product < threshold) product = (uint64_t)bpt_random_u32(r) * n;
    return (uint32_t)(product >> 32);
}

float bpt_random_uniform(bpt_random *r) {
    return (float)(bpt_random_u32(r) >> 8) * 0x1p-24f;
}

static float normal_of(uint32_t first, uint32_t second) {
    const double u = ((double)first + 1.0) * 0x1p-32; /* (0, 1]: its log is finite */
    const double v = (double)second * 0x1p-32;
    return (float)(sqrt(-2.0 * log(u)) * cos(6.283185307179586 * v));
}

float bpt_random_normal(bpt_random *r) {
    const uint32_t first = bpt_random_u32(r);
    return normal_of(first, bpt_random_u32(r));
}

void bpt_random_normals(bpt_random *r, float *out, size_t n) {
    enum { MOST = 128 };
    uint32_t words[2 * MOST];
    for (size_t from = 0, m; from < n; from += m) {
        m = n - from < MOST ? n - from : MOST;
        bpt_random_fill(r, words, 2 * m);
        for (size_t i = 0; i < m; i++) out[from + i] = normal_of(words[2 * i], words[2 * i + 1]);
    }
}

void bpt_random_shuffle_by(bpt_random *r, uint32_t *items, uint32_t n) {
    for (uint32_t i = n; i > 1; i--) {
        const uint32_t j = bpt_random_below(r, i);
        const uint32_t swap = items[i - 1];
        items[i - 1] = items[j];
        items[j] = swap;
    }
}

void bpt_random_shuffle(uint64_t seed, bpt_purpose purpose, uint64_t id, uint32_t *items,
                        uint32_t n) {
    bpt_random r = bpt_random_stream(seed, purpose, id);
    bpt_random_shuffle_by(&r, items, n);
}

void bpt_random_permutation(uint64_t seed, bpt_purpose purpose, uint64_t id, uint32_t *order,
                            uint32_t n) {
    for (uint32_t i = 0; i < n; i++) order[i] = i;
    bpt_random_shuffle(seed, purpose, id, order, n);
}
