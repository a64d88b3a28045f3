/* Pooling through oneDNN; for maxima a workspace remembers which value of each window won. */
#include "inner/cpu/cpu_private.h"

static const dnnl_dim_t undilated[BPT__N_SPATIAL] = {0};

static const dnnl_alg_kind_t algorithms[] = {
    [BPT_POOL_MAX] = dnnl_pooling_max,
    [BPT_POOL_AVERAGE] = dnnl_pooling_avg_include_padding,
    [BPT_POOL_AVERAGE_INSIDE] = dnnl_pooling_avg_exclude_padding,
};

bpt_status bpt_cpu_pool_forward(bpt_cpu *cpu, const bpt_conv_problem *p, bpt_pool_kind kind,
                                const bpt_layout *src, bpt_kernel **out) {
    static const bpt_slot slots[] = {BPT_SLOT_SRC, BPT_SLOT_DST, BPT_SLOT_WORKSPACE};
    const int64_t dst_dims[] = {p->n, p->c, p->p, p->q};
    const dnnl_dim_t kernel[] = {p->r, p->s};
    dnnl_dim_t pad_end[BPT__N_SPATIAL];
    const bpt_layout *dst;
    dnnl_primitive_desc_t pd;
    bpt__spec spec = bpt__spec_of(BPT__POOL_FORWARD);
    bpt__spec_problem(&spec, p);
    bpt__spec_number(&spec, (int64_t)kind);
    bpt__spec_layout(&spec, src);
    BPT_TRY(bpt__kernel_twin(cpu, &spec, out));
    if (*out) return BPT_OK;
    bpt__pad_end(p, pad_end);
    BPT_TRY(bpt__layout_by_tag(cpu, src->type, dst_dims, 4, dnnl_format_tag_any, &dst));
    BPT__DNNL_TRY(dnnl_pooling_forward_primitive_desc_create(
        &pd, cpu->engine, dnnl_forward_training, algorithms[kind], src->md, dst->md, p->stride,
        kernel, undilated, p->pad, pad_end, cpu->attr));
    return bpt__kernel_create(cpu, &spec, pd, slots, 3, out);
}

bpt_status bpt_cpu_pool_backward(bpt_cpu *cpu, const bpt_conv_problem *p, bpt_pool_kind kind,
                                 const bpt_kernel *forward, bpt_kernel **out) {
    static const bpt_slot slots[] = {BPT_SLOT_DIFF_DST, BPT_SLOT_DIFF_SRC, BPT_SLOT_WORKSPACE};
    const dnnl_dim_t kernel[] = {p->r, p->s};
    dnnl_dim_t pad_end[BPT__N_SPATIAL];
    dnnl_primitive_desc_t pd;
    bpt__spec spec = bpt__spec_of(BPT__POOL_BACKWARD);
    bpt__spec_problem(&spec, p);
    bpt__spec_number(&spec, (int64_t)kind);
    bpt__spec_kernel(&spec, forward);
    BPT_TRY(bpt__kernel_twin(cpu, &spec, out));
    if (*out) return BPT_OK;
    bpt__pad_end(p, pad_end);
    BPT__DNNL_TRY(dnnl_pooling_backward_primitive_desc_create(
        &pd, cpu->engine, algorithms[kind], forward->layouts[BPT_SLOT_SRC]->md,
        forward->layouts[BPT_SLOT_DST]->md, p->stride, kernel, undilated, p->pad, pad_end,
        forward->pd, cpu->attr));
    return bpt__kernel_create(cpu, &spec, pd, slots, 3, out);
}
