#include "outer/data/order.h"

#include "base/random.h"

#include <string.h>

static uint64_t count_blocks(const bpt_order *o, uint64_t n) {
    return (n + o->block - 1) / o->block;
}

size_t bpt_order_scratch(const bpt_order *o, uint64_t n) {
    return o->kind == BPT_ORDER_BLOCKS ? (size_t)(n + count_blocks(o, n)) : 0;
}

/* Blocks change places; samples stay in their blocks. */
static void move_blocks(const bpt_order *o, bpt_purpose purpose, uint64_t id, uint32_t *samples,
                        uint32_t n, uint32_t *scratch) {
    const uint32_t n_blocks = (uint32_t)count_blocks(o, n);
    uint32_t *numbers = scratch + n, *to = scratch;
    bpt_random_permutation(o->seed, purpose, id, numbers, n_blocks);
    for (uint32_t i = 0; i < n_blocks; i++) {
        const uint64_t first = (uint64_t)numbers[i] * o->block, left = n - first;
        const size_t size = left < o->block ? (size_t)left : o->block;
        memcpy(to, samples + first, size * sizeof *to);
        to += size;
    }
    memcpy(samples, scratch, n * sizeof *samples);
}

static void shuffle_windows(const bpt_order *o, uint64_t id, uint32_t *samples, uint32_t n) {
    const uint64_t window = (uint64_t)BPT_ORDER_WINDOW * o->block;
    bpt_random r = bpt_random_stream(o->seed, BPT_PURPOSE_WINDOW, id);
    for (uint64_t at = 0; at < n; at += window)
        bpt_random_shuffle_by(&r, samples + at, (uint32_t)(n - at < window ? n - at : window));
}

void bpt_order_deal(const bpt_order *o, uint32_t *samples, uint32_t n, uint32_t *scratch) {
    for (uint32_t i = 0; i < n; i++) samples[i] = i;
    if (o->kind == BPT_ORDER_SHUFFLE)
        bpt_random_shuffle(o->seed, BPT_PURPOSE_PARTITION, 0, samples, n);
    else if (o->kind == BPT_ORDER_BLOCKS)
        move_blocks(o, BPT_PURPOSE_PARTITION, 0, samples, n, scratch);
}

void bpt_order_pass(const bpt_order *o, uint64_t id, uint32_t *samples, uint32_t n,
                    uint32_t *scratch) {
    if (o->kind == BPT_ORDER_SHUFFLE)
        bpt_random_shuffle(o->seed, BPT_PURPOSE_SHUFFLE, id, samples, n);
    if (o->kind != BPT_ORDER_BLOCKS) return;
    move_blocks(o, BPT_PURPOSE_SHUFFLE, id, samples, n, scratch);
    shuffle_windows(o, id, samples, n);
}
