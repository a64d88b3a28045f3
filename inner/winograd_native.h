/** @file inner/winograd_native.h
 * Winograd's transforms of activations of bfloat16 (inner/winograd_loops.h) where vectors have an
 * instruction that rounds to it: a vector is a block's channels, and a square is kept in
 * registers from where it lies to where it goes. Results are those of the loops for all types, but
 * the instruction takes denormals for zeros.
 *
 * Private to inner/winograd_*.c. Pure. Threads: any. */
#ifndef BPT_INNER_WINOGRAD_NATIVE_H
#define BPT_INNER_WINOGRAD_NATIVE_H

#include "inner/winograd_loops.h"

/** @return whether this processor and the program have them; if not, those below must not be called
 */
bool bpt__winograd_has_native(void);

/* As those of all types. */
void bpt__winograd_native_windows(const bpt_winograd_image *image, const bpt_bf16 *restrict x,
                                  bpt_bf16 *restrict v);
void bpt__winograd_native_gradients(const bpt_winograd_image *image, const bpt_bf16 *restrict dy,
                                    bpt_bf16 *restrict z);
void bpt__winograd_native_results(const bpt_winograd_image *image, const float *restrict v,
                                  const float *bias, int64_t n_bias, bool relu,
                                  bpt_bf16 *restrict y);

#endif
