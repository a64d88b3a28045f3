/* Parts of tensors, in place. */
#include "base/integers.h"
#include "inner/cpu/cpu_private.h"

enum { SAMPLES, CHANNELS, ROWS, COLUMNS, N_DIMS };

static int64_t n_blocks(int64_t channels, int64_t lanes) {
    return bpt_quotient_up(channels, lanes);
}

/* Samples lie one behind the other; in a sample, blocks of channels; in a block, rows. What is cut
 * along one of them holds but one of each that contains it. */
static bool has_no_gaps(const int64_t *dims, const int64_t *from, const int64_t *extent,
                        int64_t lanes) {
    const bool rows_cut = extent[ROWS] < dims[ROWS],
               channels_cut = extent[CHANNELS] < dims[CHANNELS];
    if (channels_cut && (from[CHANNELS] % lanes != 0 || extent[CHANNELS] % lanes != 0))
        return false;
    if (rows_cut && n_blocks(extent[CHANNELS], lanes) > 1) return false;
    return extent[SAMPLES] == 1 || !(rows_cut || channels_cut);
}

bpt_status bpt_layout_part(bpt_cpu *cpu, const bpt_layout *l, const int64_t *dims,
                           const int64_t *from, const int64_t *extent, bpt_part *part) {
    dnnl_format_tag_t tag;
    int64_t lanes;
    *part = (bpt_part){0};
    BPT_TRY(bpt__layout_family(cpu, l, dims, &tag, &lanes));
    if (lanes == 0 || !has_no_gaps(dims, from, extent, lanes)) return BPT_OK;
    const int64_t block = from[SAMPLES] * n_blocks(dims[CHANNELS], lanes) + from[CHANNELS] / lanes;
    const int64_t row = block * dims[ROWS] + from[ROWS];
    part->offset = (size_t)(row * dims[COLUMNS] * lanes) * bpt_value_bytes(l->type);
    /* By the whole's name: 16 channels last lie as a block of 16, but kernels tell them apart. */
    return bpt__layout_by_tag(cpu, l->type, extent, 4, tag, &part->layout);
}

bpt_status bpt_layout_part_with_gaps(bpt_cpu *cpu, const bpt_layout *l, const int64_t *from,
                                     const int64_t *extent, bpt_part *part) {
    bpt__md *md;
    dnnl_dim_t offset;
    *part = (bpt_part){0};
    if (bpt_layout_is_copy(l)) return BPT_OK; /* has other dimensions */
    const dnnl_status_t code = bpt__md_part(l->md, extent, from, &md, &offset);
    if (code == dnnl_invalid_arguments || code == dnnl_unimplemented) return BPT_OK;
    BPT__DNNL_TRY(code);
    const bpt_status status = bpt__layout_copy(cpu, md, &part->layout);
    dnnl_memory_desc_destroy(md);
    part->offset = (size_t)offset * bpt_value_bytes(l->type);
    return status;
}
