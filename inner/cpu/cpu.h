/** @file inner/cpu/cpu.h
 * Kernels of the CPU: prepared oneDNN calls with their memory, or ours around such calls, run as
 * bodies of tasks.
 *
 * A layout says how a tensor's values lie in memory; convolutions choose theirs. A kernel is
 * created once, tells which layouts it wants, has its memory bound by bpt_kernel_bind(), is made
 * ready by bpt_cpu_prepare() and bpt_cpu_resolve(), and is then run any number of times by any
 * worker, one at a time. Layouts and kernels belong to the bpt_cpu that made them and are released
 * with it.
 *
 * Each call runs on the calling thread alone: parallelism is the scheduler's.
 *
 * Threads: creating and binding by the thread that made the bpt_cpu; bpt_kernel_run() from all
 * workers, a given kernel by one at a time. */
#ifndef BPT_INNER_CPU_H
#define BPT_INNER_CPU_H

#include "base/status.h"
#include "inner/loops/value_type.h"
#include "inner/memory/blocks.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef struct bpt_cpu bpt_cpu;
typedef struct bpt_layout bpt_layout;
typedef struct bpt_kernel bpt_kernel;

/** Operands of a kernel. */
typedef enum bpt_slot {
    BPT_SLOT_SRC,
    BPT_SLOT_WEIGHTS,
    BPT_SLOT_BIAS,
    BPT_SLOT_DST,
    BPT_SLOT_DIFF_SRC,
    BPT_SLOT_DIFF_WEIGHTS,
    BPT_SLOT_DIFF_BIAS,
    BPT_SLOT_DIFF_DST,
    BPT_SLOT_WORKSPACE,
    BPT_N_SLOTS,
} bpt_slot;

/** What this processor makes of kernels for bfloat16. */
typedef enum bpt_bf16_support {
    BPT_BF16_NONE,     /* there are none */
    BPT_BF16_EMULATED, /* they convert to floats and back: slower than with floats */
    BPT_BF16_NATIVE,   /* it has the instructions */
} bpt_bf16_support;

/** @return what the processor has, or ONEDNN_MAX_CPU_ISA of the environment leaves of it */
bpt_bf16_support bpt_cpu_bf16(void);

/** @param n_workers bpt_kernel_run() is called with workers below this
 * @return BPT_OK, BPT_ENOMEM, BPT_EBACKEND */
bpt_status bpt_cpu_create(unsigned n_workers, bpt_cpu **cpu);
void bpt_cpu_free(bpt_cpu *cpu);

/** Makes the code of all kernels bound so far, and each worker's scratch memory. Until then a
 * kernel is a description: layouts and sizes are known, it takes little memory and cannot run.
 * @return BPT_OK, BPT_ENOMEM, BPT_EBACKEND */
bpt_status bpt_cpu_prepare(bpt_cpu *cpu);

/** Gives every bound operand in @p block its address. Called for each block once all kernels exist,
 * and again when a caller's block moves.
 * @return BPT_OK, BPT_ENOMEM, BPT_EBACKEND */
bpt_status bpt_cpu_resolve(bpt_cpu *cpu, bpt_block block, const bpt_blocks *blocks);

/** @return bytes of scratch memory of all workers together, as the kernels bound so far want it;
 * also before it is made */
size_t bpt_cpu_scratch_bytes(const bpt_cpu *cpu);

/* ---- layouts ---- */

/** Row-major. @param dims shape [n_dims], n_dims in 1..5
 * @return BPT_OK, BPT_ENOMEM, BPT_EBACKEND */
bpt_status bpt_layout_plain(bpt_cpu *cpu, bpt_value_type type, const int64_t *dims, int n_dims,
                            const bpt_layout **out);
bpt_value_type bpt_layout_type(const bpt_layout *l);
size_t bpt_layout_bytes(const bpt_layout *l);
/** @return values in memory, spare lanes included */
size_t bpt_layout_values(const bpt_layout *l);
/** @return whether type, dimensions and order are the same */
bool bpt_layout_equal(const bpt_layout *a, const bpt_layout *b);
/** @return whether it is for copies of weights alone, which bpt_cpu_reorder() makes from the plain
 * layout: not for the weights themselves, since there is no way back */
bool bpt_layout_is_copy(const bpt_layout *l);

/* Activations [N, C, H, W] in one family of orders: channels in blocks of L lanes, so that value
 * (n, c, h, w) lies at ((n * ceil(C/L) + c/L) * H * W + h * W + w) * L + c mod L. L = 1 is the
 * plain order, L = C has channels last, 8 and 16 fit vectors; the last block's spare lanes are
 * zeros. */

/** @param dims of @p l: N, C, H, W; shape [4]
 * @param[out] lanes L, or 0 for an order outside of the family
 * @return BPT_OK, BPT_ENOMEM, BPT_EBACKEND */
bpt_status bpt_layout_lanes(bpt_cpu *cpu, const bpt_layout *l, const int64_t *dims, int64_t *lanes);
/** @param dims N, C, H, W; @param lanes 1, 8, 16 or C */
bpt_status bpt_layout_of_lanes(bpt_cpu *cpu, bpt_value_type type, const int64_t *dims,
                               int64_t lanes, const bpt_layout **out);

/** Channels last, by that name: of one channel the plain order is the same in memory, but kernels
 * for the one may not take the other. */
bpt_status bpt_layout_channels_last(bpt_cpu *cpu, bpt_value_type type, const int64_t *dims,
                                    const bpt_layout **out);

/** Orders of weights [K, C, R, S] in bfloat16, whole blocks of 16 channels, that kernels read with
 * instructions that multiply pairs of values and add the products. */
typedef enum bpt_weight_pairs {
    BPT_PAIRS_OF_NOTHING,              /* another order */
    BPT_PAIRS_OF_INPUTS,               /* [K/16][C/16][R][S][8 pairs of C][16 of K][2] */
    BPT_PAIRS_OF_OUTPUTS,              /* [K/16][C/16][R][S][8 pairs of K][16 of C][2] */
    BPT_PAIRS_OF_OUTPUTS_INPUTS_FIRST, /* [C/16][K/16][R][S][8 pairs of K][16 of C][2] */
} bpt_weight_pairs;

/** @param dims shape [4], K and C multiples of 16
 * @return BPT_OK, BPT_ENOMEM, BPT_EBACKEND */
bpt_status bpt_layout_pairs(bpt_cpu *cpu, const bpt_layout *l, const int64_t *dims,
                            bpt_weight_pairs *pairs);

/** Weights [K, C, R, S] of whole blocks: [K/L][C/L][R][S][L of C][L of K].
 * @param dims shape [4]; @param lanes L: 8 or 16 */
bpt_status bpt_layout_weights_of_lanes(bpt_cpu *cpu, const int64_t *dims, int64_t lanes,
                                       const bpt_layout **out);

/** A part of a tensor, in place. */
typedef struct bpt_part {
    const bpt_layout *layout; /* NULL: the tensor's order does not allow it */
    size_t offset;            /* bytes from the tensor's begin */
} bpt_part;

/** A part of an activation that lies in memory as a whole one of that shape would, without gaps.
 * @param l      the activation's; @param dims its N, C, H, W
 * @param from   where the part begins; @param extent its dimensions; shape [4]
 * @return BPT_OK, BPT_ENOMEM, BPT_EBACKEND */
bpt_status bpt_layout_part(bpt_cpu *cpu, const bpt_layout *l, const int64_t *dims,
                           const int64_t *from, const int64_t *extent, bpt_part *part);

/** A part of any tensor, with the gaps that the tensor's order leaves between its values.
 * @param from,extent shape [dimensions of @p l] */
bpt_status bpt_layout_part_with_gaps(bpt_cpu *cpu, const bpt_layout *l, const int64_t *from,
                                     const int64_t *extent, bpt_part *part);

/* ---- kernels ---- */

/** @return the layout of an operand, NULL if the kernel has none there */
const bpt_layout *bpt_kernel_layout(const bpt_kernel *k, bpt_slot slot);

/** @return the backend's name for how it computes: "jit:avx2", "gemm:jit", or "ref:any" for plain
 * loops, and "winograd" for ours; for messages, tests, and whether two compute alike */
const char *bpt_kernel_implementation(const bpt_kernel *k);

/** Says where an operand will be; without effect for one that the kernel has not. Every operand is
 * bound before the first run, or none: such a kernel only tells layouts and is not made ready. */
void bpt_kernel_bind(bpt_kernel *k, bpt_slot slot, bpt_ref where);

/** @return where an operand is bound to; BPT_BLOCK_NONE if the kernel has none there */
bpt_ref bpt_kernel_operand(const bpt_kernel *k, bpt_slot slot);

/** Runs a kernel. @return BPT_OK, BPT_EBACKEND */
bpt_status bpt_kernel_run(bpt_kernel *k, unsigned worker);

/** A convolution of a tile of N samples. */
typedef struct bpt_conv_problem {
    int64_t n, c, h, w; /* input */
    int64_t k, p, q;    /* output */
    int64_t r, s;       /* kernel */
    int64_t stride[2];  /* rows, columns */
    int64_t pad[2];
    int64_t dilation[2]; /* distance of the kernel's values in the input, at least 1 */
    int64_t groups;      /* G, at least 1: group g of outputs sees group g of inputs alone */
    bool bias;
    bool relu;           /* forward: max(x, 0) of the result */
    bool winograd;       /* by Winograd's algorithm, else the direct one; no kernel if it has none:
                          * bpt_cpu_conv_has_winograd() */
    bpt_value_type type; /* of SRC, DST, their gradients, and WEIGHTS; all others are floats */
} bpt_conv_problem;

/** Whether Winograd's algorithm suits a convolution (inner/loops/winograd_loops.h): it needs a
 * quarter of the products, of bfloat16 four ninths, but its weights are four times as large, or not
 * quite twice. By the problem alone, never by a measured time, since it rounds otherwise. Says
 * nothing of kernels. */
bool bpt_conv_suits_winograd(const bpt_conv_problem *p);

/** Dimensions of a convolution's weights: K, C, R, S, or G, K/G, C/G, R, S if there are groups.
 * @param[out] dims shape [5] @return their number */
int bpt_conv_weight_dims(const bpt_conv_problem *p, int64_t *dims);

/** Weights in their own dimensions, row-major floats: as they are in files and between ranks.
 * @return BPT_OK, BPT_ENOMEM, BPT_EBACKEND */
bpt_status bpt_cpu_conv_plain_weights(bpt_cpu *cpu, const bpt_conv_problem *p,
                                      const bpt_layout **out);

/** @param src,dst layouts of SRC and DST
 * @param[out] lanes that the blocks of both have, 8 or 16; 0: they have others or none */
bpt_status bpt_cpu_conv_lanes(bpt_cpu *cpu, const bpt_conv_problem *p, const bpt_layout *src,
                              const bpt_layout *dst, int64_t *lanes);

/** How kernels compute, the slowest first. */
typedef enum bpt_conv_way {
    BPT_CONV_NAIVE,    /* plain loops, a thousand times slower than the others, or no kernel */
    BPT_CONV_PRODUCTS, /* matrix products, of patches that are copied first */
    BPT_CONV_DIRECT,
} bpt_conv_way;

typedef struct bpt_conv_ways {
    bpt_conv_way forward, backward_data, backward_weights;
} bpt_conv_ways;

/** How a convolution's passes are computed for these layouts of SRC and DST; NULL: the forward
 * kernel's own choice.
 * @param backward_data whether that pass is needed; else its way is BPT_CONV_DIRECT
 * @return BPT_OK, BPT_EBACKEND, BPT_ENOMEM (as for every kernel below) */
bpt_status bpt_cpu_conv_ways(bpt_cpu *cpu, const bpt_conv_problem *p, bool backward_data,
                             const bpt_layout *src, const bpt_layout *dst, bpt_conv_ways *ways);

/** Whether all three passes of a convolution that suits Winograd's algorithm have kernels of it, in
 * layouts of their choice, that are worth their while, so that .winograd may be set: from AVX2 on,
 * of bfloat16 where vectors multiply it and matrices (AMX) do not, and with at most 128 MiB of a
 * worker's scratch memory. All want activations in blocks of channels. */
bpt_status bpt_cpu_conv_has_winograd(bpt_cpu *cpu, const bpt_conv_problem *p, bool *has);

/** Forward: SRC [N,C,H,W], WEIGHTS (bpt_conv_weight_dims(), or a copy: bpt_layout_is_copy()), BIAS
 * [K] -> DST [N,K,P,Q]. A NULL layout leaves the choice to the kernel. */
bpt_status bpt_cpu_conv_forward(bpt_cpu *cpu, const bpt_conv_problem *p, const bpt_layout *src,
                                const bpt_layout *weights, const bpt_layout *dst, bpt_kernel **out);
/** DIFF_DST, WEIGHTS -> DIFF_SRC, in the activation layouts of @p forward.
 * @param weights NULL for a layout of its own choice */
bpt_status bpt_cpu_conv_backward_data(bpt_cpu *cpu, const bpt_conv_problem *p,
                                      const bpt_kernel *forward, const bpt_layout *weights,
                                      bpt_kernel **out);
/** SRC, DIFF_DST -> DIFF_WEIGHTS, DIFF_BIAS. Overwrites, does not add.
 * @param weights of DIFF_WEIGHTS; NULL for a layout of its own choice */
bpt_status bpt_cpu_conv_backward_weights(bpt_cpu *cpu, const bpt_conv_problem *p,
                                         const bpt_kernel *forward, const bpt_layout *weights,
                                         bpt_kernel **out);

/** How many samples parts of forward and backward data may have so that results have the same bits
 * whatever is wanted; where bpt_cpu_conv_keeps_bits().
 * @param wanted samples of a part, at least 1
 * @param most_parts that there should be of @p p where @p wanted does not say, at least 1
 * @return @p wanted; of Winograd's algorithm, whatever is wanted, as many as one matrix product
 *         takes, since products of other sizes may round otherwise, or a multiple that makes no
 * more than @p most_parts. May be more than p->n */
int64_t bpt_cpu_conv_part_samples(const bpt_conv_problem *p, int64_t wanted, int64_t most_parts);

/** @return whether a sample's results have the same bits however many are computed in a call, of
 * parts as bpt_cpu_conv_part_samples() says: not where oneDNN makes matrix products, whose sizes it
 * chooses by that */
bool bpt_cpu_conv_keeps_bits(const bpt_kernel *k);

/** What pooling makes of a window. */
typedef enum bpt_pool_kind {
    BPT_POOL_MAX,            /* padding never wins */
    BPT_POOL_AVERAGE,        /* padding counts as zeros */
    BPT_POOL_AVERAGE_INSIDE, /* padding does not count */
} bpt_pool_kind;

/** Pooling; kernel p->r x p->s, p->k and p->bias unused. SRC -> DST, and WORKSPACE for maxima, in
 * @p src's kind of layout. */
bpt_status bpt_cpu_pool_forward(bpt_cpu *cpu, const bpt_conv_problem *p, bpt_pool_kind kind,
                                const bpt_layout *src, bpt_kernel **out);
/** DIFF_DST, and WORKSPACE for maxima -> DIFF_SRC */
bpt_status bpt_cpu_pool_backward(bpt_cpu *cpu, const bpt_conv_problem *p, bpt_pool_kind kind,
                                 const bpt_kernel *forward, bpt_kernel **out);

/** y = x / (k + alpha / size * sum of x^2 over size neighbouring channels)^beta */
typedef struct bpt_lrn {
    int64_t size;
    float alpha, beta, k;
} bpt_lrn;

/** SRC -> DST, WORKSPACE (if it has one), all in @p layout. */
bpt_status bpt_cpu_lrn_forward(bpt_cpu *cpu, bpt_lrn lrn, const bpt_layout *layout,
                               bpt_kernel **out);
/** SRC, DIFF_DST, WORKSPACE -> DIFF_SRC */
bpt_status bpt_cpu_lrn_backward(bpt_cpu *cpu, bpt_lrn lrn, const bpt_kernel *forward,
                                bpt_kernel **out);

/** SRC -> DST = max(SRC, 0); may work in place. */
bpt_status bpt_cpu_relu_forward(bpt_cpu *cpu, const bpt_layout *layout, bpt_kernel **out);
/** DST (of forward), DIFF_DST -> DIFF_SRC; may work in place. */
bpt_status bpt_cpu_relu_backward(bpt_cpu *cpu, const bpt_kernel *forward, bpt_kernel **out);

/** A matrix in memory: value (i, j) at i * row_stride + j * column_stride values. */
typedef struct bpt_matrix {
    int64_t rows, columns;
    int64_t row_stride, column_stride; /* one of them is 1 */
    bpt_value_type type;
} bpt_matrix;

/** DST = SRC x WEIGHTS (+ BIAS, floats, shape [1, columns], if @p bias). SRC and WEIGHTS are of one
 * type, DST of the same or floats. */
bpt_status bpt_cpu_matmul(bpt_cpu *cpu, bpt_matrix src, bpt_matrix weights, bpt_matrix dst,
                          bool bias, bpt_kernel **out);

/** Copies SRC to DST with a change of layout, of the type too. To one of bpt_layout_is_copy():
 * from [K, C, 3, 3], each filter's values side by side. */
bpt_status bpt_cpu_reorder(bpt_cpu *cpu, const bpt_layout *from, const bpt_layout *to,
                           bpt_kernel **out);

#endif
