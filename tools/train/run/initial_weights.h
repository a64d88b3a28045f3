/** @file tools/train/run/initial_weights.h
 * The weights that a run begins with.
 *
 * Threads: any. */
#ifndef BPT_TOOLS_INITIAL_WEIGHTS_H
#define BPT_TOOLS_INITIAL_WEIGHTS_H

#include "inner/weights/segments.h"
#include "tools/train/options/train_options.h"

/** Reads those of --init-weights, or draws them by the seed where nothing was given, and for the
 * layers of --init-except.
 * @param[out] weights shape [s->n_elements]
 * @return BPT_OK, as bpt_safetensors_read() and bpt_segments_check() */
bpt_status bpt_initial_weights(const bpt_train_options *o, const bpt_segments *s, float *weights);

/** Whether they can be read: keeps nothing of them.
 * @return likewise, and BPT_ENOMEM */
bpt_status bpt_initial_weights_try(const bpt_train_options *o, const bpt_segments *s);

#endif
