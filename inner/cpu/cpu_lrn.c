/* Local response normalisation through oneDNN. */
#include "inner/cpu/cpu_private.h"

/* A window of one value is the same across channels and within one; kernels for the former crash
 * oneDNN when they are made (2.6.3, AVX-512, channels last). */
static dnnl_alg_kind_t algorithm_of(bpt_lrn lrn) {
    return lrn.size == 1 ? dnnl_lrn_within_channel : dnnl_lrn_across_channels;
}

static bpt__spec spec_of(bpt__operation operation, bpt_lrn lrn) {
    bpt__spec s = bpt__spec_of(operation);
    bpt__spec_number(&s, lrn.size);
    bpt__spec_real(&s, lrn.alpha);
    bpt__spec_real(&s, lrn.beta);
    bpt__spec_real(&s, lrn.k);
    return s;
}

bpt_status bpt_cpu_lrn_forward(bpt_cpu *cpu, bpt_lrn lrn, const bpt_layout *layout,
                               bpt_kernel **out) {
    static const bpt_slot slots[] = {BPT_SLOT_SRC, BPT_SLOT_DST, BPT_SLOT_WORKSPACE};
    dnnl_primitive_desc_t pd;
    bpt__spec spec = spec_of(BPT__LRN_FORWARD, lrn);
    bpt__spec_layout(&spec, layout);
    BPT_TRY(bpt__kernel_twin(cpu, &spec, out));
    if (*out) return BPT_OK;
    BPT__DNNL_TRY(dnnl_lrn_forward_primitive_desc_create(
        &pd, cpu->engine, dnnl_forward_training, algorithm_of(lrn), layout->md, layout->md,
        lrn.size, lrn.alpha, lrn.beta, lrn.k, cpu->attr));
    return bpt__kernel_create(cpu, &spec, pd, slots, 3, out);
}

bpt_status bpt_cpu_lrn_backward(bpt_cpu *cpu, bpt_lrn lrn, const bpt_kernel *forward,
                                bpt_kernel **out) {
    static const bpt_slot slots[] = {BPT_SLOT_SRC, BPT_SLOT_DIFF_DST, BPT_SLOT_DIFF_SRC,
                                     BPT_SLOT_WORKSPACE};
    const bpt__md *md = forward->layouts[BPT_SLOT_SRC]->md;
    dnnl_primitive_desc_t pd;
    bpt__spec spec = spec_of(BPT__LRN_BACKWARD, lrn);
    bpt__spec_kernel(&spec, forward);
    BPT_TRY(bpt__kernel_twin(cpu, &spec, out));
    if (*out) return BPT_OK;
    BPT__DNNL_TRY(dnnl_lrn_backward_primitive_desc_create(&pd, cpu->engine, algorithm_of(lrn), md,
                                                          md, md, lrn.size, lrn.alpha, lrn.beta,
                                                          lrn.k, forward->pd, cpu->attr));
    return bpt__kernel_create(cpu, &spec, pd, slots, 4, out);
}
