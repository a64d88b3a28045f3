/** @file inner/cpu/cpu_private.h
 * What the files of this folder share. */
#ifndef BPT_INNER_CPU_PRIVATE_H
#define BPT_INNER_CPU_PRIVATE_H

#include "inner/cpu/cpu.h"
#include "inner/cpu/cpu_twins.h"
#include "inner/cpu/dnnl_version.h"

enum { BPT__MAX_DIMS = 5 };

/** Which weights a layout holds. */
typedef enum bpt__filters {
    BPT__FILTERS_AS_THEY_ARE,
    BPT__FILTERS_TRANSFORMED, /* [values, C, K], for Winograd's algorithm (cpu_winograd.h) */
    BPT__FILTERS_TURNED,      /* [values, K, C], likewise, for the gradient of the input */
} bpt__filters;

typedef struct bpt__winograd bpt__winograd;

struct bpt_layout {
    bpt__md *md;
    bpt__filters filters;
    bpt_value_type type; /* of values that tasks of ours read; a workspace may hold others */
    bpt_layout *next;    /* in bpt_cpu.layouts or bpt_cpu.named */
    /* In the latter: what it was made from. */
    dnnl_format_tag_t tag;
    int n_dims;
    int64_t dims[BPT__MAX_DIMS];
};

struct bpt_kernel {
    bpt_cpu *cpu;
    bpt__spec spec;
    bpt_kernel *owner; /* of descriptor and primitive, a twin; NULL: itself */
    dnnl_primitive_desc_t pd;
    dnnl_primitive_t primitive; /* NULL before bpt_cpu_prepare() */
    const bpt_layout *layouts[BPT_N_SLOTS];
    bpt_ref refs[BPT_N_SLOTS];
    dnnl_exec_arg_t args[BPT_N_SLOTS + 1]; /* those in use, then the scratchpad if there is one */
    int arg_of_slot[BPT_N_SLOTS];          /* index into args, -1 for none */
    int n_args;
    int scratch_arg;         /* index into args, -1 for none */
    size_t scratch_bytes;    /* that a worker has to have for it */
    bpt__winograd *winograd; /* what it does around the primitive; NULL: nothing */
    bpt_kernel *next;        /* in bpt_cpu.kernels */
};

struct bpt_cpu {
    dnnl_engine_t engine;
    dnnl_primitive_attr_t attr;      /* scratchpad given by the caller */
    dnnl_primitive_attr_t attr_relu; /* likewise, and max(x, 0) at the end */
    dnnl_primitive_attr_t attr_sum;  /* likewise, and added to what is there */
    bool winograd[2];                /* by type: there are kernels of Winograd's algorithm */
    unsigned n_workers;
    dnnl_stream_t *streams; /* shape [n_workers] */
    char **scratch;         /* shape [n_workers], NULL before bpt_cpu_prepare() */
    bpt_layout *layouts;
    bpt_layout *named; /* each tag and shape once, each kind and shape of filters once */
    bpt_kernel *kernels;
};

/** Translates oneDNN's codes: BPT_OK, BPT_ENOMEM, or BPT_EBACKEND with the name of the call. */
bpt_status bpt__dnnl_check(dnnl_status_t code, const char *call);

#define BPT__DNNL_TRY(call) BPT_TRY(bpt__dnnl_check((call), #call))

/* Layouts; each belongs to @p cpu. @return BPT_OK, BPT_ENOMEM, BPT_EBACKEND */
bpt_status bpt__layout_copy(bpt_cpu *cpu, const bpt__md *md, const bpt_layout **out);
bpt_status bpt__layout_by_tag(bpt_cpu *cpu, bpt_value_type type, const int64_t *dims, int n_dims,
                              dnnl_format_tag_t tag, const bpt_layout **out);
/** bpt_layout_lanes(), and oneDNN's name for the order: of several that are the same in memory, as
 * of one channel or one pixel, that of the same strides, which kernels go by; lanes are of the
 * first.
 * @param[out] tag undefined if @p lanes is 0 */
bpt_status bpt__layout_family(bpt_cpu *cpu, const bpt_layout *l, const int64_t *dims,
                              dnnl_format_tag_t *tag, int64_t *lanes);
bpt_status bpt__layout_by_strides(bpt_cpu *cpu, bpt_value_type type, const int64_t *dims,
                                  const int64_t *strides, int n_dims, const bpt_layout **out);

/** Of transformed filters, row-major. @param dims shape [3] */
bpt_status bpt__layout_of_filters(bpt_cpu *cpu, bpt_value_type type, const int64_t *dims,
                                  bpt__filters filters, const bpt_layout **out);

enum { BPT__N_SPATIAL = 2 }; /* rows, columns */

/** What a window reads beyond the input's end: oneDNN takes it as padding. Below zero where floor
 * division leaves rows over. */
void bpt__pad_end(const bpt_conv_problem *p, dnnl_dim_t pad_end[BPT__N_SPATIAL]);

/** Makes oneDNN use one thread on the calling thread, now and in kernels created here. */
void bpt__one_thread(void);

/** @return oneDNN's name of the implementation that it chose: "jit:avx2", "gemm:jit", "ref:any" */
const char *bpt__implementation(const_dnnl_primitive_desc_t pd);

/** Makes a kernel from a primitive descriptor, which the kernel takes over (also on error).
 * @param spec of the kernel; @param slots operands
 * @return BPT_OK, BPT_EBACKEND, BPT_ENOMEM */
bpt_status bpt__kernel_create(bpt_cpu *cpu, const bpt__spec *spec, dnnl_primitive_desc_t pd,
                              const bpt_slot *slots, int n_slots, bpt_kernel **out);

/** Makes a kernel that has no operands yet. @param pd as above, or NULL; @param winograd copied */
bpt_status bpt__kernel_new(bpt_cpu *cpu, dnnl_primitive_desc_t pd, const bpt__winograd *winograd,
                           bpt_kernel **out);

/** Adds an operand that is not one of the primitive's. @return BPT_OK, BPT_EBACKEND */
bpt_status bpt__kernel_operand(bpt_kernel *k, bpt_slot slot, const bpt_layout *layout);

/** Sets bpt_cpu.winograd. @return BPT_OK, BPT_EBACKEND, BPT_ENOMEM */
bpt_status bpt__choose_winograd(bpt_cpu *cpu);

#endif
