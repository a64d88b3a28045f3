/* Convolution through oneDNN, direct algorithm. */
#include "inner/cpu/cpu_private.h"

static const dnnl_dim_t undilated[BPT__N_SPATIAL] = {0};

typedef struct {
    const bpt__md *src, *weights, *bias, *dst; /* bias: NULL if there is none */
    dnnl_dim_t pad_end[BPT__N_SPATIAL];
} conv_mds;

/* The given layout, or one that oneDNN chooses. */
static bpt_status choose(bpt_cpu *cpu, const int64_t dims[4], const bpt_layout *given,
                         const bpt__md **md) {
    if (!given) BPT_TRY(bpt__layout_by_tag(cpu, dims, 4, dnnl_format_tag_any, &given));
    *md = given->md;
    return BPT_OK;
}

static bpt_status describe(bpt_cpu *cpu, const bpt_conv_problem *p, const bpt_layout *src,
                           const bpt_layout *weights, const bpt_layout *dst, conv_mds *m) {
    const int64_t src_dims[] = {p->n, p->c, p->h, p->w};
    const int64_t weight_dims[] = {p->k, p->c, p->r, p->s};
    const int64_t dst_dims[] = {p->n, p->k, p->p, p->q};
    const bpt_layout *bias;
    BPT_TRY(choose(cpu, src_dims, src, &m->src));
    BPT_TRY(choose(cpu, weight_dims, weights, &m->weights));
    BPT_TRY(choose(cpu, dst_dims, dst, &m->dst));
    BPT_TRY(bpt_layout_plain(cpu, &p->k, 1, &bias));
    m->bias = p->bias ? bias->md : NULL;
    bpt__pad_end(p, m->pad_end);
    return BPT_OK;
}

bpt_status bpt_cpu_conv_forward(bpt_cpu *cpu, const bpt_conv_problem *p, const bpt_layout *src,
                                const bpt_layout *weights, const bpt_layout *dst,
                                bpt_kernel **out) {
    static const bpt_slot slots[] = {BPT_SLOT_SRC, BPT_SLOT_WEIGHTS, BPT_SLOT_DST, BPT_SLOT_BIAS};
    conv_mds m;
    dnnl_primitive_desc_t pd;
    BPT_TRY(describe(cpu, p, src, weights, dst, &m));
    BPT__DNNL_TRY(dnnl_convolution_forward_primitive_desc_create(
        &pd, cpu->engine, dnnl_forward_training, dnnl_convolution_direct, m.src, m.weights, m.bias,
        m.dst, p->stride, undilated, p->pad, m.pad_end, cpu->attr));
    return bpt__kernel_create(cpu, pd, slots, p->bias ? 4 : 3, out);
}

bpt_status bpt_cpu_conv_backward_data(bpt_cpu *cpu, const bpt_conv_problem *p,
                                      const bpt_kernel *forward, bpt_kernel **out) {
    static const bpt_slot slots[] = {BPT_SLOT_DIFF_DST, BPT_SLOT_WEIGHTS, BPT_SLOT_DIFF_SRC};
    conv_mds m;
    dnnl_primitive_desc_t pd;
    BPT_TRY(
        describe(cpu, p, forward->layouts[BPT_SLOT_SRC], NULL, forward->layouts[BPT_SLOT_DST], &m));
    BPT__DNNL_TRY(dnnl_convolution_backward_data_primitive_desc_create(
        &pd, cpu->engine, dnnl_convolution_direct, m.src, m.weights, m.dst, p->stride, undilated,
        p->pad, m.pad_end, forward->pd, cpu->attr));
    return bpt__kernel_create(cpu, pd, slots, 3, out);
}

bpt_status bpt_cpu_conv_backward_weights(bpt_cpu *cpu, const bpt_conv_problem *p,
                                         const bpt_kernel *forward, bpt_kernel **out) {
    static const bpt_slot slots[] = {BPT_SLOT_SRC, BPT_SLOT_DIFF_DST, BPT_SLOT_DIFF_WEIGHTS,
                                     BPT_SLOT_DIFF_BIAS};
    conv_mds m;
    dnnl_primitive_desc_t pd;
    BPT_TRY(
        describe(cpu, p, forward->layouts[BPT_SLOT_SRC], NULL, forward->layouts[BPT_SLOT_DST], &m));
    BPT__DNNL_TRY(dnnl_convolution_backward_weights_primitive_desc_create(
        &pd, cpu->engine, dnnl_convolution_direct, m.src, m.weights, m.bias, m.dst, p->stride,
        undilated, p->pad, m.pad_end, forward->pd, cpu->attr));
    return bpt__kernel_create(cpu, pd, slots, p->bias ? 4 : 3, out);
}
