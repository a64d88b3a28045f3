/** @file tools/saved_weights.h
 * Weights that a user names: those of a run, or of another program.
 *
 * Threads: any. */
#ifndef BPT_TOOLS_SAVED_WEIGHTS_H
#define BPT_TOOLS_SAVED_WEIGHTS_H

#include "inner/weights/segments.h"

/** Reads a file of them and checks every value.
 * @param except layers whose values stay as they are, as bpt_safetensors_read_except() has them
 * @param[in,out] weights shape [s->n_elements]
 * @param[out] n_alike likewise
 * @return as bpt_safetensors_read_except() and bpt_segments_check(); where a folder was named, or
 *         nothing is there, the hint says where a run has its weights */
bpt_status bpt_saved_weights_read(const char *path, const bpt_segments *s, const char *except,
                                  float *weights, size_t *n_alike);

#endif
