/** @file inner/memory/blocks.h
 * Memory of a network: a few blocks, planned first, allocated once, never resized.
 *
 * While a network is planned, memory is named by a block and an offset; addresses exist only once
 * all sizes are known ("plan, reserve, run").
 *
 * Threads: read-only once allocated. */
#ifndef BPT_INNER_BLOCKS_H
#define BPT_INNER_BLOCKS_H

#include "base/status.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef enum bpt_block {
    BPT_BLOCK_NONE,        /* no memory: what a zeroed bpt_ref names */
    BPT_BLOCK_INPUT,       /* the caller's batch of pixels; changes from step to step */
    BPT_BLOCK_LABELS,      /* the caller's labels, int32; likewise */
    BPT_BLOCK_FLAT,        /* the caller's flat vector while weights are read or written; of a
                            * network with frozen layers the part that learns */
    BPT_BLOCK_FLAT_FROZEN, /* the other part */
    BPT_BLOCK_NATIVE,      /* stands for one of the next four while a flat vector is converted */
    BPT_BLOCK_WEIGHTS,     /* master weights that learn, in the layout that kernels want */
    BPT_BLOCK_GRADIENTS,   /* same offsets as the weights */
    BPT_BLOCK_STATE_0,     /* of the optimiser; same offsets as the weights, or empty */
    BPT_BLOCK_STATE_1,     /* likewise */
    BPT_BLOCK_FROZEN,      /* likewise of layers that are frozen; offsets of their own */
    BPT_BLOCK_PARTIALS,    /* gradients of single chunks, copies of weights in a second layout */
    BPT_BLOCK_ACTIVATIONS, /* buffers: outputs of layers, their gradients, workspaces */
    BPT_N_BLOCKS,
} bpt_block;

/** What a buffer holds; for reports. */
typedef enum bpt_buffer_kind {
    BPT_BUFFER_VALUES,
    BPT_BUFFER_GRADIENTS, /* of such values */
    BPT_BUFFER_WORKSPACE,
} bpt_buffer_kind;

/** A piece of BPT_BLOCK_ACTIVATIONS, which gets its place there once all are known. */
typedef struct bpt_buffer {
    bpt_buffer_kind kind;
    bool used; /* by any task */
    size_t bytes;
    size_t place; /* offset in the block; others may lie there at other times */
} bpt_buffer;

/** A place in memory that need not exist yet. */
typedef struct bpt_ref {
    bpt_block block;
    uint32_t buffer; /* what the offset counts from: a buffer, or 0, the begin of the block */
    size_t offset;   /* bytes */
} bpt_ref;

/** Where the blocks begin; NULL before they are allocated. */
typedef struct bpt_blocks {
    char *base[BPT_N_BLOCKS];
    size_t bytes[BPT_N_BLOCKS]; /* planned size */
    bpt_buffer *buffers;        /* number 0 is none; shape [n_buffers] */
    size_t n_buffers, buffers_capacity;
} bpt_blocks;

/** @return a place in a block that has no buffers */
static inline bpt_ref bpt_ref_in(bpt_block block, size_t offset) {
    return (bpt_ref){block, 0, offset};
}

/** @return the address of @p ref */
static inline void *bpt_at(const bpt_blocks *blocks, bpt_ref ref) {
    const size_t place = ref.buffer ? blocks->buffers[ref.buffer].place : 0;
    return blocks->base[ref.block] + place + ref.offset;
}

/** @return @p ref moved on by @p bytes */
static inline bpt_ref bpt_ref_plus(bpt_ref ref, size_t bytes) {
    return (bpt_ref){ref.block, ref.buffer, ref.offset + bytes};
}

/** @return whether both are one place */
static inline bool bpt_ref_equal(bpt_ref a, bpt_ref b) {
    return a.block == b.block && a.buffer == b.buffer && a.offset == b.offset;
}

/** Plans @p bytes more in a block, aligned to BPT_ALIGNMENT. A block that no size_t can hold fails
 * at its allocation. @return where they will be */
bpt_ref bpt_blocks_reserve(bpt_blocks *blocks, bpt_block block, size_t bytes);

/** Plans a buffer. @param[out] where its begin @return BPT_OK, BPT_ENOMEM */
bpt_status bpt_blocks_buffer(bpt_blocks *blocks, bpt_buffer_kind kind, size_t bytes,
                             bpt_ref *where);

/** @return bytes that a buffer takes, whole lines of the cache */
size_t bpt_buffer_bytes(const bpt_buffer *buffer);

/** Allocates what was planned, except for the caller's blocks and BPT_BLOCK_NATIVE.
 * @param beside bytes that are going to be taken beside them: all has to fit
 * @return BPT_OK, BPT_ENOMEM (nothing stays allocated; more than the machine has is not tried) */
bpt_status bpt_blocks_allocate(bpt_blocks *blocks, size_t beside);
void bpt_blocks_release(bpt_blocks *blocks);

#endif
