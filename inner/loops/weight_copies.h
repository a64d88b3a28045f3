/** @file inner/loops/weight_copies.h
 * Copies in bfloat16 of a convolution's weights, which are floats: as oneDNN's kernels read them in
 * the forward pass, and for the gradient of the input. Both are made in one pass over the weights,
 * where oneDNN would make two.
 *
 * weights   [K/16][C/16][taps][16 of C][16 of K]
 * forward   [K/16][C/16][taps][8 pairs of C][16 of K][2]
 * backward  [K/16][C/16][taps][8 pairs of K][16 of C][2], or [C/16][K/16].. likewise
 *
 * Values are those of oneDNN: rounded by an instruction that takes denormals for zeros.
 *
 * Pure. Threads: any. */
#ifndef BPT_INNER_WEIGHT_COPIES_H
#define BPT_INNER_WEIGHT_COPIES_H

#include "inner/loops/value_type.h"

#include <stdbool.h>
#include <stdint.h>

enum { BPT_COPY_LANES = 16 };

typedef struct bpt_weight_blocks {
    int64_t k, c, taps; /* blocks of outputs, of inputs, and R * S */
    bool inputs_first;  /* those of the backward copy lie as [C/16][K/16] */
} bpt_weight_blocks;

/** @param weights shape [k * c * taps * 256]
 * @param[out] forward,backward as many values; NULL: not wanted */
typedef void bpt_copy_weights(const bpt_weight_blocks *blocks, const float *restrict weights,
                              bpt_bf16 *restrict forward, bpt_bf16 *restrict backward);

/** @return NULL: this processor has no such instruction, or the program was not built by GCC for
 * x86-64 */
bpt_copy_weights *bpt_copy_weights_native(void);

#endif
