/** @file inner/cpu/cpu_winograd.h
 * Convolutions by Winograd's algorithm: transforms of ours (inner/loops/winograd_loops.h) around
 * matrix products of oneDNN's, some samples or, of large weights' gradients, some channels at a
 * time, so that what lies between stays in a cache.
 *
 * Activations are in blocks of 8 or 16 channels, weights' gradients in the plain order. Weights are
 * transformed ones, a copy that is made from the plain ones once a step, for the forward pass and
 * for backward data each; their layouts are no convolution's but these.
 *
 * Threads: creating: the one that made the bpt_cpu; running: any worker, a kernel by one at a time.
 */
#ifndef BPT_INNER_CPU_WINOGRAD_H
#define BPT_INNER_CPU_WINOGRAD_H

#include "inner/cpu/cpu_private.h"
#include "inner/loops/winograd_loops.h"

enum { BPT__FACTOR, BPT__OTHER_FACTOR, BPT__PRODUCT, BPT__N_MATRICES };

/** What a kernel does besides its primitive, a matrix product of some samples; a kernel that
 * transforms filters has no primitive. */
struct bpt__winograd {
    bpt_status (*run)(bpt_kernel *k, unsigned worker);
    bpt_winograd_image in, out; /* of the samples of a product: windows are cut from the one,
                                 * patches from the other */
    bpt_slot in_slot, out_slot;
    int64_t n;          /* samples of all products */
    int64_t n_products; /* one after the other, the last perhaps of fewer samples */
    int64_t n_ranges;   /* of input channels, whose filters' gradients are made one after the other;
                         * 1 where there are several products, and in all other passes */
    int64_t n_bias;     /* channels of the output, without spare ones */
    bool relu;
    bpt_winograd_filters filters; /* that are transformed, or whose gradients are */
    bool turned;
    /* The product's matrices, then its own scratch memory if it needs some. Of each there are as
     * many as transformed values, multiplied one after the other. */
    dnnl_exec_arg_t args[BPT__N_MATRICES + 1];
    size_t steps[BPT__N_MATRICES];       /* from one to the next, in bytes */
    size_t offsets[BPT__N_MATRICES + 1]; /* in the worker's scratch memory, in bytes */
    bool in_scratch[BPT__N_MATRICES + 1];
    int n_args;
};

/** @return samples that a product takes at most, forward and of backward data */
int64_t bpt__winograd_product_samples(const bpt_conv_problem *p);

/** As bpt_cpu_conv_forward() and its like; BPT_EBACKEND where layouts are not as above. */
bpt_status bpt__winograd_forward(bpt_cpu *cpu, const bpt_conv_problem *p, const bpt_layout *src,
                                 const bpt_layout *weights, const bpt_layout *dst,
                                 bpt_kernel **out);
bpt_status bpt__winograd_backward_data(bpt_cpu *cpu, const bpt_conv_problem *p,
                                       const bpt_kernel *forward, const bpt_layout *weights,
                                       bpt_kernel **out);
bpt_status bpt__winograd_backward_weights(bpt_cpu *cpu, const bpt_conv_problem *p,
                                          const bpt_kernel *forward, const bpt_layout *weights,
                                          bpt_kernel **out);

/** Transforms filters.
 * @param from [K, C, 3, 3], each filter's values side by side; @param to of transformed ones */
bpt_status bpt__winograd_reorder(bpt_cpu *cpu, const bpt_layout *from, const bpt_layout *to,
                                 bpt_kernel **out);

/** @param[out] has whether oneDNN has fast matrix products of the kinds that these kernels need
 * @return BPT_OK, BPT_EBACKEND, BPT_ENOMEM */
bpt_status bpt__winograd_has_products(bpt_cpu *cpu, bpt_value_type type, bool *has);

/* Bodies of kernels. */
bpt_status bpt__winograd_run_data(bpt_kernel *k, unsigned worker);
bpt_status bpt__winograd_run_weights(bpt_kernel *k, unsigned worker);
bpt_status bpt__winograd_run_filters(bpt_kernel *k, unsigned worker);

#endif
