/* Convolution through oneDNN, direct algorithm. */
#include "inner/cpu/cpu_private.h"

enum { N_PAD = 2 };

typedef struct {
    dnnl_memory_desc_t src, weights, bias, dst;
    dnnl_dim_t pad_end[N_PAD]; /* what is read beyond the input's end: floor division drops rows */
} conv_mds;

/* md of the given layout, or one that oneDNN chooses. */
static bpt_status choose_md(dnnl_memory_desc_t *md, const int64_t dims[4], const bpt_layout *l) {
    if (l) {
        *md = l->md;
        return BPT_OK;
    }
    BPT__DNNL_TRY(dnnl_memory_desc_init_by_tag(md, 4, dims, dnnl_f32, dnnl_format_tag_any));
    return BPT_OK;
}

static bpt_status describe(const bpt_conv_problem *p, const bpt_layout *src,
                           const bpt_layout *weights, const bpt_layout *dst, conv_mds *m) {
    const int64_t src_dims[] = {p->n, p->c, p->h, p->w};
    const int64_t weight_dims[] = {p->k, p->c, p->r, p->s};
    const int64_t dst_dims[] = {p->n, p->k, p->p, p->q};
    BPT_TRY(choose_md(&m->src, src_dims, src));
    BPT_TRY(choose_md(&m->weights, weight_dims, weights));
    BPT_TRY(choose_md(&m->dst, dst_dims, dst));
    BPT__DNNL_TRY(dnnl_memory_desc_init_by_tag(&m->bias, 1, &p->k, dnnl_f32, dnnl_a));
    m->pad_end[0] = (p->p - 1) * p->stride[0] + p->r - p->h - p->pad[0];
    m->pad_end[1] = (p->q - 1) * p->stride[1] + p->s - p->w - p->pad[1];
    return BPT_OK;
}

bpt_status bpt_cpu_conv_forward(bpt_cpu *cpu, const bpt_conv_problem *p, const bpt_layout *src,
                                const bpt_layout *weights, const bpt_layout *dst,
                                bpt_kernel **out) {
    static const bpt_slot slots[] = {BPT_SLOT_SRC, BPT_SLOT_WEIGHTS, BPT_SLOT_DST, BPT_SLOT_BIAS};
    conv_mds m;
    BPT_TRY(describe(p, src, weights, dst, &m));
    dnnl_convolution_desc_t op;
    BPT__DNNL_TRY(dnnl_convolution_forward_desc_init(
        &op, dnnl_forward_training, dnnl_convolution_direct, &m.src, &m.weights,
        p->bias ? &m.bias : NULL, &m.dst, p->stride, p->pad, m.pad_end));
    return bpt__kernel_create(cpu, &op, NULL, slots, p->bias ? 4 : 3, out);
}

bpt_status bpt_cpu_conv_backward_data(bpt_cpu *cpu, const bpt_conv_problem *p,
                                      const bpt_kernel *forward, bpt_kernel **out) {
    static const bpt_slot slots[] = {BPT_SLOT_DIFF_DST, BPT_SLOT_WEIGHTS, BPT_SLOT_DIFF_SRC};
    conv_mds m;
    BPT_TRY(describe(p, forward->layouts[BPT_SLOT_SRC], NULL, forward->layouts[BPT_SLOT_DST], &m));
    dnnl_convolution_desc_t op;
    BPT__DNNL_TRY(dnnl_convolution_backward_data_desc_init(
        &op, dnnl_convolution_direct, &m.src, &m.weights, &m.dst, p->stride, p->pad, m.pad_end));
    return bpt__kernel_create(cpu, &op, forward, slots, 3, out);
}

bpt_status bpt_cpu_conv_backward_weights(bpt_cpu *cpu, const bpt_conv_problem *p,
                                         const bpt_kernel *forward, bpt_kernel **out) {
    static const bpt_slot slots[] = {BPT_SLOT_SRC, BPT_SLOT_DIFF_DST, BPT_SLOT_DIFF_WEIGHTS,
                                     BPT_SLOT_DIFF_BIAS};
    conv_mds m;
    BPT_TRY(describe(p, forward->layouts[BPT_SLOT_SRC], NULL, forward->layouts[BPT_SLOT_DST], &m));
    dnnl_convolution_desc_t op;
    BPT__DNNL_TRY(dnnl_convolution_backward_weights_desc_init(
        &op, dnnl_convolution_direct, &m.src, &m.weights, p->bias ? &m.bias : NULL, &m.dst,
        p->stride, p->pad, m.pad_end));
    return bpt__kernel_create(cpu, &op, forward, slots, p->bias ? 4 : 3, out);
}
