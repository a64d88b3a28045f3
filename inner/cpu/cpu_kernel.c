/* A kernel: one oneDNN primitive, or steps of ours around one, with memory objects of its own, so
 * that any number of kernels may run at the same time. */
#include "base/memory.h"
#include "inner/cpu/cpu_winograd.h"

static const int dnnl_args[BPT_N_SLOTS] = {
    [BPT_SLOT_SRC] = DNNL_ARG_SRC,
    [BPT_SLOT_WEIGHTS] = DNNL_ARG_WEIGHTS,
    [BPT_SLOT_BIAS] = DNNL_ARG_BIAS,
    [BPT_SLOT_DST] = DNNL_ARG_DST,
    [BPT_SLOT_DIFF_SRC] = DNNL_ARG_DIFF_SRC,
    [BPT_SLOT_DIFF_WEIGHTS] = DNNL_ARG_DIFF_WEIGHTS,
    [BPT_SLOT_DIFF_BIAS] = DNNL_ARG_DIFF_BIAS,
    [BPT_SLOT_DIFF_DST] = DNNL_ARG_DIFF_DST,
    [BPT_SLOT_WORKSPACE] = DNNL_ARG_WORKSPACE,
};

static bpt_status add_arg(bpt_kernel *k, int dnnl_arg, const bpt__md *md) {
    dnnl_memory_t memory;
    BPT__DNNL_TRY(dnnl_memory_create(&memory, md, k->cpu->engine, DNNL_MEMORY_NONE));
    k->args[k->n_args++] = (dnnl_exec_arg_t){.arg = dnnl_arg, .memory = memory};
    return BPT_OK;
}

static bpt_status add_slot(bpt_kernel *k, bpt_slot slot) {
    const bpt__md *md =
        dnnl_primitive_desc_query_md(k->pd, dnnl_query_exec_arg_md, dnnl_args[slot]);
    if (!md || dnnl_memory_desc_get_size(md) == 0) return BPT_OK; /* e.g. no workspace needed */
    BPT_TRY(bpt__layout_copy(k->cpu, md, &k->layouts[slot]));
    k->arg_of_slot[slot] = k->n_args;
    return add_arg(k, dnnl_args[slot], md);
}

static bpt_status add_scratch(bpt_kernel *k) {
    const bpt__md *md =
        dnnl_primitive_desc_query_md(k->pd, dnnl_query_exec_arg_md, DNNL_ARG_SCRATCHPAD);
    const size_t bytes = md ? dnnl_memory_desc_get_size(md) : 0;
    if (bytes == 0) return BPT_OK;
    k->scratch_bytes = bytes;
    k->scratch_arg = k->n_args;
    return add_arg(k, DNNL_ARG_SCRATCHPAD, md);
}

bpt_status bpt__kernel_operand(bpt_kernel *k, bpt_slot slot, const bpt_layout *layout) {
    k->layouts[slot] = layout;
    k->arg_of_slot[slot] = k->n_args;
    return add_arg(k, dnnl_args[slot], layout->md);
}

bpt_status bpt__kernel_new(bpt_cpu *cpu, dnnl_primitive_desc_t pd, const bpt__winograd *winograd,
                           bpt_kernel **out) {
    bpt_kernel *k;
    const bpt_status status = BPT_NEW("kernel", 1, &k);
    if (status != BPT_OK) {
        dnnl_primitive_desc_destroy(pd);
        return status;
    }
    k->cpu = cpu;
    k->pd = pd;
    k->scratch_arg = -1;
    for (int i = 0; i < BPT_N_SLOTS; i++) k->arg_of_slot[i] = -1;
    k->next = cpu->kernels; /* from here on bpt_cpu_free() releases it, also after an error */
    cpu->kernels = k;
    *out = k;
    if (!winograd) return BPT_OK;
    BPT_TRY(BPT_NEW("kernel", 1, &k->winograd));
    *k->winograd = *winograd;
    return BPT_OK;
}

bpt_status bpt__kernel_create(bpt_cpu *cpu, const bpt__spec *spec, dnnl_primitive_desc_t pd,
                              const bpt_slot *slots, int n_slots, bpt_kernel **out) {
    BPT_TRY(bpt__kernel_new(cpu, pd, NULL, out));
    (*out)->spec = *spec;
    for (int i = 0; i < n_slots; i++) BPT_TRY(add_slot(*out, slots[i]));
    return add_scratch(*out);
}

const char *bpt__implementation(const_dnnl_primitive_desc_t pd) {
    const char *name = NULL;
    if (dnnl_primitive_desc_query(pd, dnnl_query_impl_info_str, 0, (void *)&name) != dnnl_success)
        return "unknown";
    return name;
}

const char *bpt_kernel_implementation(const bpt_kernel *k) {
    return k->winograd ? "winograd" : bpt__implementation(k->pd);
}

const bpt_layout *bpt_kernel_layout(const bpt_kernel *k, bpt_slot slot) {
    return k->layouts[slot];
}

void bpt_kernel_bind(bpt_kernel *k, bpt_slot slot, bpt_ref where) {
    k->refs[slot] = where;
}

bpt_ref bpt_kernel_operand(const bpt_kernel *k, bpt_slot slot) {
    return k->arg_of_slot[slot] < 0 ? (bpt_ref){0} : k->refs[slot];
}

bpt_status bpt_kernel_run(bpt_kernel *k, unsigned worker) {
    bpt__one_thread();
    if (k->winograd) return k->winograd->run(k, worker);
    if (k->scratch_arg >= 0)
        BPT__DNNL_TRY(
            dnnl_memory_set_data_handle(k->args[k->scratch_arg].memory, k->cpu->scratch[worker]));
    BPT__DNNL_TRY(
        dnnl_primitive_execute(k->primitive, k->cpu->streams[worker], k->n_args, k->args));
    return BPT_OK;
}
