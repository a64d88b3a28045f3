/* Max pooling through oneDNN; the workspace remembers which value of each window won. */
#include "inner/cpu/cpu_private.h"

static bpt_status describe(const bpt_conv_problem *p, dnnl_memory_desc_t *dst,
                           dnnl_dim_t pad_end[2]) {
    const int64_t dims[] = {p->n, p->c, p->p, p->q};
    BPT__DNNL_TRY(dnnl_memory_desc_init_by_tag(dst, 4, dims, dnnl_f32, dnnl_format_tag_any));
    pad_end[0] = (p->p - 1) * p->stride[0] + p->r - p->h - p->pad[0];
    pad_end[1] = (p->q - 1) * p->stride[1] + p->s - p->w - p->pad[1];
    return BPT_OK;
}

bpt_status bpt_cpu_maxpool_forward(bpt_cpu *cpu, const bpt_conv_problem *p, const bpt_layout *src,
                                   bpt_kernel **out) {
    static const bpt_slot slots[] = {BPT_SLOT_SRC, BPT_SLOT_DST, BPT_SLOT_WORKSPACE};
    const dnnl_dim_t kernel[] = {p->r, p->s};
    dnnl_dim_t pad_end[2];
    dnnl_memory_desc_t dst;
    BPT_TRY(describe(p, &dst, pad_end));
    dnnl_pooling_desc_t op;
    BPT__DNNL_TRY(dnnl_pooling_forward_desc_init(&op, dnnl_forward_training, dnnl_pooling_max,
                                                 &src->md, &dst, p->stride, kernel, p->pad,
                                                 pad_end));
    return bpt__kernel_create(cpu, &op, NULL, slots, 3, out);
}

bpt_status bpt_cpu_maxpool_backward(bpt_cpu *cpu, const bpt_conv_problem *p,
                                    const bpt_kernel *forward, bpt_kernel **out) {
    static const bpt_slot slots[] = {BPT_SLOT_DIFF_DST, BPT_SLOT_DIFF_SRC, BPT_SLOT_WORKSPACE};
    const dnnl_dim_t kernel[] = {p->r, p->s};
    dnnl_dim_t pad_end[2];
    dnnl_memory_desc_t dst;
    BPT_TRY(describe(p, &dst, pad_end));
    dnnl_pooling_desc_t op;
    BPT__DNNL_TRY(dnnl_pooling_backward_desc_init(
        &op, dnnl_pooling_max, &forward->layouts[BPT_SLOT_SRC]->md,
        &forward->layouts[BPT_SLOT_DST]->md, p->stride, kernel, p->pad, pad_end));
    return bpt__kernel_create(cpu, &op, forward, slots, 3, out);
}
