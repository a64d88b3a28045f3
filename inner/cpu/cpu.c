#include "inner/cpu/cpu.h"

#include "base/memory.h"
#include "inner/cpu/cpu_winograd.h"

#include <omp.h>

bpt_status bpt__dnnl_check(dnnl_status_t code, const char *call) {
    if (code == dnnl_success) return BPT_OK;
    if (code == dnnl_out_of_memory)
        return bpt_fail(BPT_ENOMEM, "oneDNN is out of memory in %s", call);
    return bpt_fail(BPT_EBACKEND, "oneDNN error %d in %.200s", (int)code, call);
}

void bpt__pad_end(const bpt_conv_problem *p, dnnl_dim_t pad_end[BPT__N_SPATIAL]) {
    const int64_t rows = (p->r - 1) * p->dilation[0] + 1, columns = (p->s - 1) * p->dilation[1] + 1;
    pad_end[0] = (p->p - 1) * p->stride[0] + rows - p->h - p->pad[0];
    pad_end[1] = (p->q - 1) * p->stride[1] + columns - p->w - p->pad[1];
}

/* oneDNN asks OpenMP for its number of threads at creation and at every run; OpenMP keeps that
 * number per thread. */
void bpt__one_thread(void) {
    static _Thread_local bool done;
    if (done) return;
    omp_set_num_threads(1);
    done = true;
}

/* The names of instruction sets are sets of bits: one contains all that it is built upon. Vectors
 * of other processors have the same names (those of ARM's SVE that of AVX-512), and no such
 * kernels. */
bpt_bf16_support bpt_cpu_bf16(void) {
#if defined(__x86_64__)
    const unsigned has = (unsigned)dnnl_get_effective_cpu_isa();
    const unsigned native = dnnl_cpu_isa_avx512_core_bf16, emulating = dnnl_cpu_isa_avx512_core;
    if ((has & native) == native) return BPT_BF16_NATIVE;
    return (has & emulating) == emulating ? BPT_BF16_EMULATED : BPT_BF16_NONE;
#else
    return BPT_BF16_NONE;
#endif
}

static bpt_status create_attr(dnnl_primitive_attr_t *attr) {
    BPT__DNNL_TRY(dnnl_primitive_attr_create(attr));
    BPT__DNNL_TRY(dnnl_primitive_attr_set_scratchpad_mode(*attr, dnnl_scratchpad_mode_user));
    return BPT_OK;
}

static bpt_status append(dnnl_primitive_attr_t attr, dnnl_status_t (*what)(dnnl_post_ops_t)) {
    dnnl_post_ops_t ops;
    BPT__DNNL_TRY(dnnl_post_ops_create(&ops));
    bpt_status status = bpt__dnnl_check(what(ops), "post_ops_append");
    if (status == BPT_OK)
        status = bpt__dnnl_check(dnnl_primitive_attr_set_post_ops(attr, ops), "set_post_ops");
    dnnl_post_ops_destroy(ops);
    return status;
}

static bpt_status create_parts(bpt_cpu *cpu, unsigned n_workers) {
    BPT_TRY(BPT_NEW("streams", n_workers, &cpu->streams));
    BPT_TRY(BPT_NEW("scratch table", n_workers, &cpu->scratch));
    cpu->n_workers = n_workers;
    BPT__DNNL_TRY(dnnl_engine_create(&cpu->engine, dnnl_cpu, 0));
    BPT_TRY(create_attr(&cpu->attr));
    BPT_TRY(create_attr(&cpu->attr_relu));
    BPT_TRY(append(cpu->attr_relu, bpt__post_ops_append_relu));
    BPT_TRY(create_attr(&cpu->attr_sum));
    BPT_TRY(append(cpu->attr_sum, bpt__post_ops_append_sum));
    for (unsigned i = 0; i < n_workers; i++)
        BPT__DNNL_TRY(dnnl_stream_create(&cpu->streams[i], cpu->engine, dnnl_stream_default_flags));
    return bpt__choose_winograd(cpu);
}

bpt_status bpt_cpu_create(unsigned n_workers, bpt_cpu **out) {
    bpt__one_thread();
    bpt_cpu *cpu;
    BPT_TRY(BPT_NEW("CPU device", 1, &cpu));
    const bpt_status status = create_parts(cpu, n_workers);
    if (status == BPT_OK)
        *out = cpu;
    else
        bpt_cpu_free(cpu);
    return status;
}

static void free_kernel(bpt_kernel *k) {
    for (int i = 0; i < k->n_args; i++) dnnl_memory_destroy(k->args[i].memory);
    for (int i = 0; k->winograd && i < k->winograd->n_args; i++)
        dnnl_memory_destroy(k->winograd->args[i].memory);
    bpt_free(k->winograd);
    if (!k->owner) {
        dnnl_primitive_destroy(k->primitive);
        dnnl_primitive_desc_destroy(k->pd);
    }
    bpt_free(k);
}

static void free_layouts(bpt_layout *list) {
    while (list) {
        bpt_layout *l = list;
        list = l->next;
        if (l->md) dnnl_memory_desc_destroy(l->md);
        bpt_free(l);
    }
}

void bpt_cpu_free(bpt_cpu *cpu) {
    if (!cpu) return;
    while (cpu->kernels) {
        bpt_kernel *k = cpu->kernels;
        cpu->kernels = k->next;
        free_kernel(k);
    }
    free_layouts(cpu->layouts);
    free_layouts(cpu->named);
    for (unsigned i = 0; i < cpu->n_workers; i++) {
        dnnl_stream_destroy(cpu->streams[i]);
        bpt_free(cpu->scratch[i]);
    }
    bpt_free(cpu->streams);
    bpt_free(cpu->scratch);
    dnnl_primitive_attr_destroy(cpu->attr);
    dnnl_primitive_attr_destroy(cpu->attr_relu);
    dnnl_primitive_attr_destroy(cpu->attr_sum);
    dnnl_engine_destroy(cpu->engine);
    bpt_free(cpu);
}

bpt_status bpt_cpu_resolve(bpt_cpu *cpu, bpt_block block, const bpt_blocks *blocks) {
    for (bpt_kernel *k = cpu->kernels; k; k = k->next)
        for (int slot = 0; slot < BPT_N_SLOTS; slot++) {
            const int arg = k->arg_of_slot[slot];
            if (arg < 0 || k->refs[slot].block != block) continue;
            BPT__DNNL_TRY(
                dnnl_memory_set_data_handle(k->args[arg].memory, bpt_at(blocks, k->refs[slot])));
        }
    return BPT_OK;
}

static bool is_bound(const bpt_kernel *k) {
    for (int slot = 0; slot < BPT_N_SLOTS; slot++)
        if (k->refs[slot].block != BPT_BLOCK_NONE) return true;
    return false;
}

/* @return bytes that the hungriest kernel wants; those that are not bound never run */
static size_t worker_scratch(const bpt_cpu *cpu) {
    size_t most = 0;
    for (const bpt_kernel *k = cpu->kernels; k; k = k->next)
        if (k->scratch_bytes > most && is_bound(k)) most = k->scratch_bytes;
    return most;
}

/* Code is compiled once for all twins. */
static bpt_status make_code(bpt_kernel *k) {
    bpt_kernel *owner = k->owner ? k->owner : k;
    if (!owner->primitive && owner->pd)
        BPT__DNNL_TRY(dnnl_primitive_create(&owner->primitive, owner->pd));
    k->primitive = owner->primitive;
    return BPT_OK;
}

bpt_status bpt_cpu_prepare(bpt_cpu *cpu) {
    const size_t bytes = worker_scratch(cpu);
    for (bpt_kernel *k = cpu->kernels; k; k = k->next)
        if (is_bound(k)) BPT_TRY(make_code(k));
    for (unsigned i = 0; i < cpu->n_workers; i++) {
        bpt_free(cpu->scratch[i]);
        cpu->scratch[i] = NULL;
        /* Touched first by the worker that it is for, and no farther than its kernels go. */
        BPT_TRY(bpt_alloc_unset("kernel scratch", bytes, 1, (void **)&cpu->scratch[i]));
    }
    return BPT_OK;
}

size_t bpt_cpu_scratch_bytes(const bpt_cpu *cpu) {
    return worker_scratch(cpu) * cpu->n_workers;
}
