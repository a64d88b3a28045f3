/* Matrix products through oneDNN on matrices as they lie in memory. */
#include "inner/cpu/cpu_private.h"

static void add_matrix(bpt__spec *s, bpt_matrix m) {
    bpt__spec_number(s, m.rows);
    bpt__spec_number(s, m.columns);
    bpt__spec_number(s, m.row_stride);
    bpt__spec_number(s, m.column_stride);
    bpt__spec_number(s, (int64_t)m.type);
}

static bpt__spec spec_of(bpt_matrix src, bpt_matrix weights, bpt_matrix dst, bool bias) {
    bpt__spec s = bpt__spec_of(BPT__MATMUL);
    add_matrix(&s, src);
    add_matrix(&s, weights);
    add_matrix(&s, dst);
    bpt__spec_number(&s, bias);
    return s;
}

static bpt_status describe(bpt_cpu *cpu, bpt_matrix m, const bpt_layout **out) {
    const int64_t dims[] = {m.rows, m.columns}, strides[] = {m.row_stride, m.column_stride};
    return bpt__layout_by_strides(cpu, m.type, dims, strides, 2, out);
}

bpt_status bpt_cpu_matmul(bpt_cpu *cpu, bpt_matrix src, bpt_matrix weights, bpt_matrix dst,
                          bool bias, bpt_kernel **out) {
    static const bpt_slot slots[] = {BPT_SLOT_SRC, BPT_SLOT_WEIGHTS, BPT_SLOT_DST, BPT_SLOT_BIAS};
    const bpt_layout *src_l, *weights_l, *dst_l, *bias_l;
    const bpt__spec spec = spec_of(src, weights, dst, bias);
    dnnl_primitive_desc_t pd;
    BPT_TRY(bpt__kernel_twin(cpu, &spec, out));
    if (*out) return BPT_OK;
    BPT_TRY(describe(cpu, src, &src_l));
    BPT_TRY(describe(cpu, weights, &weights_l));
    BPT_TRY(describe(cpu, dst, &dst_l));
    BPT_TRY(describe(cpu, (bpt_matrix){1, dst.columns, dst.columns, 1, BPT_F32}, &bias_l));
    BPT__DNNL_TRY(dnnl_matmul_primitive_desc_create(&pd, cpu->engine, src_l->md, weights_l->md,
                                                    bias ? bias_l->md : NULL, dst_l->md,
                                                    cpu->attr));
    return bpt__kernel_create(cpu, &spec, pd, slots, bias ? 4 : 3, out);
}
