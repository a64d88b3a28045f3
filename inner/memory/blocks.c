#include "inner/memory/blocks.h"

#include "base/memory.h"

static const char *const block_names[BPT_N_BLOCKS] = {
    [BPT_BLOCK_WEIGHTS] = "weights",         [BPT_BLOCK_GRADIENTS] = "gradients",
    [BPT_BLOCK_STATE_0] = "optimiser state", [BPT_BLOCK_STATE_1] = "optimiser state",
    [BPT_BLOCK_FROZEN] = "frozen weights",   [BPT_BLOCK_PARTIALS] = "partial gradients",
    [BPT_BLOCK_ACTIVATIONS] = "activations",
};

/* SIZE_MAX is no multiple of the alignment: it stands for what no size_t can hold, and stays. */
static size_t aligned(size_t bytes) {
    if (bytes > SIZE_MAX - BPT_ALIGNMENT) return SIZE_MAX;
    return (bytes + BPT_ALIGNMENT - 1) / BPT_ALIGNMENT * BPT_ALIGNMENT;
}

bpt_ref bpt_blocks_reserve(bpt_blocks *blocks, bpt_block block, size_t bytes) {
    const bpt_ref ref = bpt_ref_in(block, blocks->bytes[block]);
    size_t sum;
    blocks->bytes[block] =
        __builtin_add_overflow(ref.offset, bytes, &sum) ? SIZE_MAX : aligned(sum);
    return ref;
}

size_t bpt_buffer_bytes(const bpt_buffer *buffer) {
    return aligned(buffer->bytes);
}

bpt_status bpt_blocks_buffer(bpt_blocks *blocks, bpt_buffer_kind kind, size_t bytes,
                             bpt_ref *where) {
    if (blocks->n_buffers == 0) blocks->n_buffers = 1; /* number 0 is none */
    BPT_TRY(
        BPT_GROW("buffers", blocks->n_buffers + 1, &blocks->buffers, &blocks->buffers_capacity));
    blocks->buffers[blocks->n_buffers] = (bpt_buffer){.kind = kind, .bytes = bytes};
    *where = (bpt_ref){BPT_BLOCK_ACTIVATIONS, (uint32_t)blocks->n_buffers++, 0};
    return BPT_OK;
}

/* Memory that the machine does not have is given out all the same, until it is touched: then the
 * machine stands still, and some process is ended. */
static bpt_status check_machine(const bpt_blocks *blocks, size_t beside) {
    const size_t limit = bpt_memory_of_machine();
    size_t bytes = beside;
    for (int i = BPT_BLOCK_WEIGHTS; i < BPT_N_BLOCKS; i++)
        bytes = bpt_size_add(bytes, blocks->bytes[i]);
    if (bytes <= limit) return BPT_OK;
    const bpt_status status =
        bpt_fail(BPT_ENOMEM, "the network needs %.1f GiB of memory, %s %.1f GiB",
                 (double)bytes / 0x1p30, bpt_memory_bound(), (double)limit / 0x1p30);
    if (blocks->bytes[BPT_BLOCK_ACTIVATIONS] > bytes / 2)
        bpt_hint("lower --batch-size; most of the memory is for activations");
    else
        bpt_hint("most of the memory is for weights: a smaller --batch-size saves little");
    return status;
}

bpt_status bpt_blocks_allocate(bpt_blocks *blocks, size_t beside) {
    BPT_TRY(check_machine(blocks, beside));
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
    bpt_free(blocks->buffers);
    blocks->buffers = NULL;
    blocks->n_buffers = blocks->buffers_capacity = 0;
}
