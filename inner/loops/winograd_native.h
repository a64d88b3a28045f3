/** @file inner/loops/winograd_native.h
 * Winograd's transforms of activations of bfloat16 (inner/loops/winograd_loops.h) where vectors
 * have an instruction that rounds to it: a vector is a block's channels, and a square is kept in
 * registers from where it lies to where it goes. Results are those of the loops for all types, but
 * the instruction takes denormals for zeros.
 *
 * Private to inner/loops/winograd_*.c. Pure. Threads: any. */
#ifndef BPT_INNER_WINOGRAD_NATIVE_H
#define BPT_INNER_WINOGRAD_NATIVE_H

#include "inner/loops/winograd_loops.h"

/** bpt_winograd_windows() and so on, of some images. */
typedef struct bpt__winograd_transforms {
    void (*windows)(const bpt_winograd_image *image, const void *restrict x, void *restrict v);
    void (*gradients)(const bpt_winograd_image *image, const void *restrict dy, void *restrict z);
    void (*results)(const bpt_winograd_image *image, const float *restrict v, const float *bias,
                    int64_t n_bias, bool relu, void *restrict y);
} bpt__winograd_transforms;

/** Of images of all types: loops for every processor. */
extern const bpt__winograd_transforms bpt__winograd_plain;

/** Of images of bfloat16, whose blocks have 16 channels.
 * @return NULL: this processor has no such instruction, or the compiler knows none */
const bpt__winograd_transforms *bpt__winograd_native(void);

#endif
