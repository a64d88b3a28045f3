/* ReLU and changes of layout through oneDNN. */
#include "inner/cpu/cpu_private.h"

bpt_status bpt_cpu_relu_forward(bpt_cpu *cpu, const bpt_layout *layout, bpt_kernel **out) {
    static const bpt_slot slots[] = {BPT_SLOT_SRC, BPT_SLOT_DST};
    dnnl_eltwise_desc_t op;
    BPT__DNNL_TRY(dnnl_eltwise_forward_desc_init(
        &op, dnnl_forward_training, dnnl_eltwise_relu_use_dst_for_bwd, &layout->md, 0.0f, 0.0f));
    return bpt__kernel_create(cpu, &op, NULL, slots, 2, out);
}

bpt_status bpt_cpu_relu_backward(bpt_cpu *cpu, const bpt_kernel *forward, bpt_kernel **out) {
    static const bpt_slot slots[] = {BPT_SLOT_DST, BPT_SLOT_DIFF_DST, BPT_SLOT_DIFF_SRC};
    const dnnl_memory_desc_t *md = &forward->layouts[BPT_SLOT_DST]->md;
    dnnl_eltwise_desc_t op;
    BPT__DNNL_TRY(dnnl_eltwise_backward_desc_init(&op, dnnl_eltwise_relu_use_dst_for_bwd, md, md,
                                                  0.0f, 0.0f));
    return bpt__kernel_create(cpu, &op, forward, slots, 3, out);
}

bpt_status bpt_cpu_reorder(bpt_cpu *cpu, const bpt_layout *from, const bpt_layout *to,
                           bpt_kernel **out) {
    static const bpt_slot slots[] = {BPT_SLOT_SRC, BPT_SLOT_DST};
    bpt__one_thread();
    dnnl_primitive_desc_t pd;
    BPT__DNNL_TRY(dnnl_reorder_primitive_desc_create(&pd, &from->md, cpu->engine, &to->md,
                                                     cpu->engine, cpu->attr));
    return bpt__kernel_from_pd(cpu, pd, slots, 2, out);
}
