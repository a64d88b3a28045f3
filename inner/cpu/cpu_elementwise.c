/* ReLU and changes of layout through oneDNN. */
#include "inner/cpu/cpu_winograd.h"

bpt_status bpt_cpu_relu_forward(bpt_cpu *cpu, const bpt_layout *layout, bpt_kernel **out) {
    static const bpt_slot slots[] = {BPT_SLOT_SRC, BPT_SLOT_DST};
    dnnl_primitive_desc_t pd;
    bpt__spec spec = bpt__spec_of(BPT__RELU_FORWARD);
    bpt__spec_layout(&spec, layout);
    BPT_TRY(bpt__kernel_twin(cpu, &spec, out));
    if (*out) return BPT_OK;
    BPT__DNNL_TRY(dnnl_eltwise_forward_primitive_desc_create(
        &pd, cpu->engine, dnnl_forward_training, dnnl_eltwise_relu_use_dst_for_bwd, layout->md,
        layout->md, 0.0f, 0.0f, cpu->attr));
    return bpt__kernel_create(cpu, &spec, pd, slots, 2, out);
}

bpt_status bpt_cpu_relu_backward(bpt_cpu *cpu, const bpt_kernel *forward, bpt_kernel **out) {
    static const bpt_slot slots[] = {BPT_SLOT_DST, BPT_SLOT_DIFF_DST, BPT_SLOT_DIFF_SRC};
    const bpt__md *md = forward->layouts[BPT_SLOT_DST]->md;
    dnnl_primitive_desc_t pd;
    bpt__spec spec = bpt__spec_of(BPT__RELU_BACKWARD);
    bpt__spec_kernel(&spec, forward);
    BPT_TRY(bpt__kernel_twin(cpu, &spec, out));
    if (*out) return BPT_OK;
    BPT__DNNL_TRY(dnnl_eltwise_backward_primitive_desc_create(
        &pd, cpu->engine, dnnl_eltwise_relu_use_dst_for_bwd, md, md, md, 0.0f, 0.0f, forward->pd,
        cpu->attr));
    return bpt__kernel_create(cpu, &spec, pd, slots, 3, out);
}

bpt_status bpt_cpu_reorder(bpt_cpu *cpu, const bpt_layout *from, const bpt_layout *to,
                           bpt_kernel **out) {
    static const bpt_slot slots[] = {BPT_SLOT_SRC, BPT_SLOT_DST};
    dnnl_primitive_desc_t pd;
    bpt__spec spec = bpt__spec_of(BPT__REORDER);
    if (bpt_layout_is_copy(to)) return bpt__winograd_reorder(cpu, from, to, out);
    bpt__spec_layout(&spec, from);
    bpt__spec_layout(&spec, to);
    BPT_TRY(bpt__kernel_twin(cpu, &spec, out));
    if (*out) return BPT_OK;
    BPT__DNNL_TRY(dnnl_reorder_primitive_desc_create(&pd, from->md, cpu->engine, to->md,
                                                     cpu->engine, cpu->attr));
    return bpt__kernel_create(cpu, &spec, pd, slots, 2, out);
}
