/** @file inner/cpu/cpu_private.h
 * What the files of this folder share; the only header that includes oneDNN's. */
#ifndef BPT_INNER_CPU_PRIVATE_H
#define BPT_INNER_CPU_PRIVATE_H

#include "inner/cpu/cpu.h"

#include <oneapi/dnnl/dnnl.h>

struct bpt_layout {
    dnnl_memory_desc_t md;
    bpt_layout *next; /* in bpt_cpu.layouts */
};

struct bpt_kernel {
    bpt_cpu *cpu;
    dnnl_primitive_desc_t pd;
    dnnl_primitive_t primitive;
    const bpt_layout *layouts[BPT_N_SLOTS];
    bpt_ref refs[BPT_N_SLOTS];
    dnnl_exec_arg_t
        args[BPT_N_SLOTS + 1];    /* operands in use, then the scratchpad if there is one */
    int arg_of_slot[BPT_N_SLOTS]; /* index into args, -1 for none */
    int n_args;
    int scratch_arg;  /* index into args, -1 for none */
    bpt_kernel *next; /* in bpt_cpu.kernels */
};

struct bpt_cpu {
    dnnl_engine_t engine;
    dnnl_primitive_attr_t attr; /* scratchpad given by the caller */
    unsigned n_workers;
    dnnl_stream_t *streams; /* shape [n_workers] */
    char **scratch;         /* shape [n_workers], each scratch_bytes */
    size_t scratch_bytes;   /* of the hungriest kernel */
    bpt_layout *layouts;
    bpt_kernel *kernels;
};

/** Translates oneDNN's codes: BPT_OK, BPT_ENOMEM, or BPT_EBACKEND with the name of the call. */
bpt_status bpt__dnnl_check(dnnl_status_t code, const char *call);

#define BPT__DNNL_TRY(call) BPT_TRY(bpt__dnnl_check((call), #call))

/** Adds a layout that belongs to @p cpu. */
bpt_status bpt__layout_add(bpt_cpu *cpu, const dnnl_memory_desc_t *md, const bpt_layout **out);

/** Makes oneDNN use one thread on the calling thread, now and in kernels created here. */
void bpt__one_thread(void);

/** Makes a kernel from an operation descriptor.
 * @param hint primitive descriptor of the forward kernel, or NULL
 * @param slots operands; @return BPT_OK, BPT_EBACKEND, BPT_ENOMEM */
bpt_status bpt__kernel_create(bpt_cpu *cpu, const_dnnl_op_desc_t op, const bpt_kernel *hint,
                              const bpt_slot *slots, int n_slots, bpt_kernel **out);

/** The same from a ready primitive descriptor, which the kernel takes over (also on error). */
bpt_status bpt__kernel_from_pd(bpt_cpu *cpu, dnnl_primitive_desc_t pd, const bpt_slot *slots,
                               int n_slots, bpt_kernel **out);

#endif
