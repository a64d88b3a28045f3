/** @file inner/layers/pooling.h
 * What the kinds of pooling share: fields, kernels and tasks.
 *
 * Threads: one; the one that builds. */
#ifndef BPT_INNER_LAYERS_POOLING_H
#define BPT_INNER_LAYERS_POOLING_H

#include "inner/layers/layer.h"
#include "inner/step/builder.h"

/** Reads kernel, stride and pad into l->config, a bpt_pool_config.
 * @return BPT_OK, BPT_EUSAGE (as bpt_layer_kind.parse; padding of more than half the kernel) */
bpt_status bpt__pool_parse(bpt_layer *l, const bpt_yaml *doc, const bpt_yaml_node *fields);

/** As bpt_layer_kind.plan_forward. @param config the window */
bpt_status bpt__pool_plan_forward(const bpt_layer *l, bpt_builder *b, bpt_pool_kind kind,
                                  const bpt_pool_config *config, const bpt_activation *in,
                                  bpt_activation *out, void **state);

/** A bpt_layer_kind.plan_backward. */
bpt_status bpt__pool_plan_backward(const bpt_layer *l, bpt_builder *b,
                                   bpt_activation *const *inputs, const bpt_activation *out,
                                   void *state);

#endif
