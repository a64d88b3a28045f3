/** @file inner/memory/buffer_order.h
 * Which buffers of a graph of tasks are over before others begin, by its edges alone.
 *
 * Threads: one at a time. */
#ifndef BPT_INNER_BUFFER_ORDER_H
#define BPT_INNER_BUFFER_ORDER_H

#include "inner/memory/sharing.h"

/** A square of bits, one for each two buffers. */
typedef struct bpt_buffer_pairs {
    size_t n, stride; /* buffers; words of a row */
    uint64_t *bits;   /* shape [n, stride] */
} bpt_buffer_pairs;

/** @param[out] pairs none set; caller owns, bpt_buffer_pairs_free() @return BPT_OK, BPT_ENOMEM */
bpt_status bpt_buffer_pairs_create(size_t n_buffers, bpt_buffer_pairs *pairs);
void bpt_buffer_pairs_free(bpt_buffer_pairs *pairs);

static inline void bpt_buffer_pairs_set(const bpt_buffer_pairs *pairs, size_t a, size_t b) {
    pairs->bits[a * pairs->stride + b / 64] |= (uint64_t)1 << b % 64;
}

static inline bool bpt_buffer_pairs_get(const bpt_buffer_pairs *pairs, size_t a, size_t b) {
    return pairs->bits[a * pairs->stride + b / 64] >> b % 64 & 1;
}

/** Sets (a, b) and (b, a) where each task that uses the one has ended before any that uses the
 * other begins; it may be set too where a buffer is used by none.
 * @param users shape [n_users]
 * @param[in,out] ordered none set; of all buffers that the users name
 * @return BPT_OK, BPT_ENOMEM */
bpt_status bpt_buffer_order(const bpt_user *users, size_t n_users, const bpt_buffer_pairs *ordered);

#endif
