/** @file inner/models/model_part.h
 * A model in two parts: the head, its layers up to a border, and the tail, those behind it with the
 * loss. The border is the output of one layer, and all that the tail takes from the head.
 *
 * A part is a model of its own, and has networks as any other: inner/network/network_border.h says
 * what they take and give. Its segments are called as in the whole model, and its flat vector is a
 * slice of the whole one's: the head's [0, n) is followed by the tail's. What is drawn at random,
 * initial weights and dropout, is what the whole model draws.
 *
 * Threads: any; nothing is changed. */
#ifndef BPT_INNER_MODEL_PART_H
#define BPT_INNER_MODEL_PART_H

#include "base/status.h"
#include "inner/models/model.h"

#include <stddef.h>

/** Whether a model can be parted behind a layer. */
typedef enum bpt_border_kind {
    BPT_BORDER_POSSIBLE,
    BPT_BORDER_AT_END,     /* no layer is behind it */
    BPT_BORDER_BYPASSED,   /* a layer behind it takes something from before it besides its output */
    BPT_BORDER_NO_WEIGHTS, /* nothing is learned on one of its sides */
} bpt_border_kind;

/** @param layer its index in @p whole->layers
 * @param[out] by the first layer that goes round the border, if it is bypassed; may be NULL
 * @return the first of the kinds that applies, in the order in which they are listed behind
 * "possible" */
bpt_border_kind bpt_model_border(const bpt_model *whole, size_t layer, const bpt_layer **by);

/** Finds the border before a layer.
 * @param first name of the first layer of the tail
 * @param[out] layer index of the last layer of the head
 * @return BPT_OK, BPT_EUSAGE (no such layer; the model cannot be parted there: says why, and the
 *         hint where it can) */
bpt_status bpt_model_find_border(const bpt_model *whole, const char *first, size_t *layer);

/** Makes a part.
 * @param whole nothing of it is frozen; the part borrows its table of costs
 * @param layer behind which the border is: BPT_BORDER_POSSIBLE
 * @param role BPT_MODEL_HEAD or BPT_MODEL_TAIL
 * @param[out] part caller owns, bpt_model_free()
 * @return BPT_OK, BPT_ENOMEM */
bpt_status bpt_model_part(const bpt_model *whole, size_t layer, bpt_model_role role,
                          bpt_model **part);

#endif
