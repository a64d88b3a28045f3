/* Matrix products through oneDNN on matrices as they lie in memory. */
#include "inner/cpu/cpu_private.h"

static bpt_status describe(dnnl_memory_desc_t *md, bpt_matrix m) {
    const dnnl_dim_t dims[] = {m.rows, m.columns};
    const dnnl_dim_t strides[] = {m.row_stride, m.column_stride};
    BPT__DNNL_TRY(dnnl_memory_desc_init_by_strides(md, 2, dims, dnnl_f32, strides));
    return BPT_OK;
}

bpt_status bpt_cpu_matmul(bpt_cpu *cpu, bpt_matrix src, bpt_matrix weights, bpt_matrix dst,
                          bool bias, bpt_kernel **out) {
    static const bpt_slot slots[] = {BPT_SLOT_SRC, BPT_SLOT_WEIGHTS, BPT_SLOT_DST, BPT_SLOT_BIAS};
    dnnl_memory_desc_t src_md, weights_md, dst_md, bias_md;
    BPT_TRY(describe(&src_md, src));
    BPT_TRY(describe(&weights_md, weights));
    BPT_TRY(describe(&dst_md, dst));
    BPT_TRY(describe(&bias_md, (bpt_matrix){1, dst.columns, dst.columns, 1}));
    dnnl_matmul_desc_t op;
    BPT__DNNL_TRY(
        dnnl_matmul_desc_init(&op, &src_md, &weights_md, bias ? &bias_md : NULL, &dst_md));
    return bpt__kernel_create(cpu, &op, NULL, slots, bias ? 4 : 3, out);
}
