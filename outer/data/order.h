/** @file outer/data/order.h
 * In which order samples come: rules without ranks.
 *
 * All at random is what learning wants. A cold disk or a file server wants neighbours to be read
 * together: then blocks of neighbours come at random, and the samples of BPT_ORDER_WINDOW blocks at
 * a time are shuffled among themselves. On data that are sorted by class a batch is then drawn
 * from the classes of so many blocks, not of all. As they are stored is for data that were shuffled
 * when they were stored.
 *
 * Threads: pure functions. */
#ifndef BPT_OUTER_ORDER_H
#define BPT_OUTER_ORDER_H

#include <stddef.h>
#include <stdint.h>

enum { BPT_ORDER_WINDOW = 16 };

typedef enum bpt_order_kind {
    BPT_ORDER_SHUFFLE, /* 0: that of an order with nothing but a seed */
    BPT_ORDER_BLOCKS,
    BPT_ORDER_SEQUENTIAL
} bpt_order_kind;

/** A plain value, free to copy. */
typedef struct bpt_order {
    uint64_t seed; /* of all that is random in it */
    bpt_order_kind kind;
    uint32_t block; /* with BPT_ORDER_BLOCKS: samples of a block, at least 1; else 0 */
} bpt_order;

/** @return numbers that the functions below need as scratch for @p n samples */
size_t bpt_order_scratch(const bpt_order *order, uint64_t n);

/** Puts the samples of a split in the order in which ranks get their shares of it: neighbours stay
 * together as the kind says, and in what order a rank trains on its share is another matter.
 * @param samples shape [n]: 0..n-1 on return
 * @param scratch shape [bpt_order_scratch()] */
void bpt_order_deal(const bpt_order *order, uint32_t *samples, uint32_t n, uint32_t *scratch);

/** Puts the samples of a pass in the order in which they come.
 * @param id      of the pass: another order for each
 * @param samples shape [n]: as they are stored, or dealt; a block is so many that follow each other
 * @param scratch as above */
void bpt_order_pass(const bpt_order *order, uint64_t id, uint32_t *samples, uint32_t n,
                    uint32_t *scratch);

#endif
