/** @file inner/layers/conv_parts.h
 * The kernels that compute a step of a convolution on a chunk of samples: one, or one for each part
 * that the chunk is cut into (inner/cuts/cuts.h).
 *
 * Parts read and write their places in the chunk itself, without copies. A chunk is cut only where
 * each part is computed in the way in which the whole chunk would be, by the backend's name for it
 * (bpt_kernel_implementation()): parts in other words are never slow ones.
 *
 * Threads: the one that builds. */
#ifndef BPT_INNER_LAYERS_CONV_PARTS_H
#define BPT_INNER_LAYERS_CONV_PARTS_H

#include "inner/cuts/cuts.h"
#include "inner/step/builder.h"

/** A part with its kernel. */
typedef struct bpt_conv_piece {
    bpt_conv_part part;
    bpt_kernel *kernel;
    size_t src, dst, bias; /* bytes from the begin of the chunk's operand; gradients likewise */
    bpt_part weights;      /* of the layer's weights, in the layout that was given for them */
} bpt_conv_piece;

typedef struct bpt_conv_pieces {
    bpt_conv_piece *items; /* shape [n], as bpt_cut_part() numbers them */
    size_t n, n_partials;
} bpt_conv_pieces;

/** A step of a convolution as a whole, chunk by chunk. */
typedef struct bpt_conv_whole {
    const char *label;
    bpt_conv_step step;
    const bpt_conv_problem *problems; /* shape [n_chunks] */
    bpt_kernel *const *kernels;       /* likewise */
    /* Of the layer, or their gradient: what parts are taken from. Forward and backward weights work
     * in it, backward data chooses. */
    const bpt_layout *weights;
    /* Backward data: what it has chosen for each range of channels, the same for all chunks; shape
     * [BPT_MAX_CUT]. Else NULL. */
    const bpt_layout **chosen;
} bpt_conv_whole;

/** Makes the kernels of a step on all chunks.
 * @param cut how to cut each chunk; all stay whole where kernels do not allow it (debug log)
 * @param[out] out lives as long as the network; shape [n_chunks]
 * @return BPT_OK, BPT_ENOMEM, BPT_EBACKEND */
bpt_status bpt__conv_pieces(bpt_builder *b, const bpt_conv_whole *whole, bpt_cut cut,
                            bpt_conv_pieces *out);

#endif
