/** @file base/random.h
 * Random numbers that are a function of what they are for, not of when they are drawn.
 *
 * A stream is named by (seed, purpose, id): the id is a sample's index, an epoch, a segment of the
 * weights. So neither the number of threads nor of ranks changes a result. The generator is
 * Philox4x32-10 (Salmon, Moraes, Dror, Shaw: Parallel random numbers: as easy as 1, 2, 3; SC 2011).
 *
 * Threads: a stream belongs to one thread; any number of streams may be in use. */
#ifndef BPT_BASE_RANDOM_H
#define BPT_BASE_RANDOM_H

#include <stddef.h>
#include <stdint.h>

/** What a stream is for. A value is part of every stored result: add at the end, never reorder. */
typedef enum bpt_purpose {
    BPT_PURPOSE_INIT = 1,      /* initial weights; id: segment */
    BPT_PURPOSE_PARTITION = 2, /* which sample goes to which rank; id: 0 */
    BPT_PURPOSE_SHUFFLE = 3,   /* order within a pass; id: rank and pass */
    BPT_PURPOSE_AUGMENT = 4,   /* id: epoch and sample */
    BPT_PURPOSE_GLYPHS = 5,    /* id: sample */
    BPT_PURPOSE_SYNTHETIC = 6, /* bench batches; id: sample */
    BPT_PURPOSE_TEST = 7,
    BPT_PURPOSE_DROPOUT = 8,  /* id: layer, step and sample */
    BPT_PURPOSE_HELD_OUT = 9, /* which records are not trained on; id: 0 */
    BPT_PURPOSE_SPLIT = 10,   /* which records bpt-ingest split holds out; id: class */
    BPT_PURPOSE_WINDOW = 11,  /* order within windows of blocks; id: rank and pass */
    BPT_PURPOSE_MIX = 12,     /* which image another is mixed with, and how; id: epoch and sample */
} bpt_purpose;

/** State of one stream: a plain value, free to copy. */
typedef struct bpt_random {
    uint32_t key[2];
    uint32_t counter[4];
    uint32_t block[4]; /* numbers of the current counter */
    uint32_t used;     /* of block */
} bpt_random;

/** @return the stream of (seed, purpose, id), at its start */
bpt_random bpt_random_stream(uint64_t seed, bpt_purpose purpose, uint64_t id);

/** @return 32 uniform bits */
uint32_t bpt_random_u32(bpt_random *r);

/** Draws many numbers at once, the same as bpt_random_u32() would, one after another.
 * @param out shape [n] */
void bpt_random_fill(bpt_random *r, uint32_t *out, size_t n);

/** @return uniform in [0, n), without bias. @p n in 1..2^32-1 */
uint32_t bpt_random_below(bpt_random *r, uint32_t n);

/** @return uniform in [0, 1), a multiple of 2^-24 */
float bpt_random_uniform(bpt_random *r);

/** @return standard normal (Box and Muller; uses the first of the pair only) */
float bpt_random_normal(bpt_random *r);

/** Many of them at once, in 0.6 of the time.
 * @param[out] out as many calls of bpt_random_normal() would give, shape [n] */
void bpt_random_normals(bpt_random *r, float *out, size_t n);

/** Shuffles @p items by what comes next in a stream.
 * @param items shape [n] */
void bpt_random_shuffle_by(bpt_random *r, uint32_t *items, uint32_t n);

/** Shuffles @p items, the same way for the same stream name and length.
 * @param items shape [n] */
void bpt_random_shuffle(uint64_t seed, bpt_purpose purpose, uint64_t id, uint32_t *items,
                        uint32_t n);

/** Fills @p order with 0..n-1 as bpt_random_shuffle() shuffles them.
 * @param order shape [n] */
void bpt_random_permutation(uint64_t seed, bpt_purpose purpose, uint64_t id, uint32_t *order,
                            uint32_t n);

#endif
