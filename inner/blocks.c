#include "inner/blocks.h"

#include "base/memory.h"

static const char *const block_names[BPT_N_BLOCKS] = {
    [BPT_BLOCK_WEIGHTS] = "weights",
    [BPT_BLOCK_GRADIENTS] = "gradients",
    [BPT_BLOCK_STATE_0] = "optimiser state",
    [BPT_BLOCK_STATE_1] = "optimiser state",
    [BPT_BLOCK_PARTIALS] = "partial gradients",
    [BPT_BLOCK_ACTIVATIONS] = "activations",
};

bpt_ref bpt_blocks_reserve(bpt_blocks *blocks, bpt_block block, size_t bytes) {
    const bpt_ref ref = {block, blocks->bytes[block]};
    size_t sum; /* of multiples of the alignment: SIZE_MAX is none, and stays */
    if (__builtin_add_overflow(ref.offset, bytes, &sum) || sum > SIZE_MAX - BPT_ALIGNMENT)
        blocks->bytes[block] = SIZE_MAX;
    else
        blocks->bytes[block] = (sum + BPT_ALIGNMENT - 1) / BPT_ALIGNMENT * BPT_ALIGNMENT;
    return ref;
}

bpt_status bpt_blocks_allocate(bpt_blocks *blocks) {
    for (int i = BPT_BLOCK_WEIGHTS; i < BPT_N_BLOCKS; i++) {
        const bpt_status status =
            bpt_alloc(block_names[i], blocks->bytes[i], 1, (void **)&blocks->base[i]);
        if (status == BPT_OK) continue;
        bpt_blocks_release(blocks);
        return status;
    }
    return BPT_OK;
}

void bpt_blocks_release(bpt_blocks *blocks) {
    for (int i = BPT_BLOCK_WEIGHTS; i < BPT_N_BLOCKS; i++) {
        bpt_free(blocks->base[i]);
        blocks->base[i] = NULL;
    }
}
