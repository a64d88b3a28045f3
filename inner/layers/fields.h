/** @file inner/layers/fields.h
 * What kinds of layers share when they read their fields, infer their shapes and ask for kernels.
 *
 * Threads: any. */
#ifndef BPT_INNER_LAYERS_FIELDS_H
#define BPT_INNER_LAYERS_FIELDS_H

#include "base/status.h"
#include "base/yaml.h"
#include "inner/cpu/cpu.h"
#include "inner/layers/layer.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum {
    BPT__MAX_WINDOW = 1024,     /* of a kernel, stride or padding, each way */
    BPT__MAX_CHANNELS = 1 << 20 /* of what a layer is told to give */
};

/** Bytes of a struct up to the end of a member. */
#define BPT__BYTES_TO(type, member) (offsetof(type, member) + sizeof(((type *)NULL)->member))

/* Each reads field @p key. @p fields is the layer's map or NULL, as in bpt_layer_kind.parse.
 * @return BPT_OK, BPT_EUSAGE (missing, another type, out of range: names file, line, layer, key) */

/** A required number of channels: a whole number or the word "classes". */
bpt_status bpt__field_channels(const bpt_layer *l, const bpt_model_scope *scope,
                               const bpt_yaml *doc, const bpt_yaml_node *fields, const char *key,
                               int64_t *out);

/** Rows and columns: one whole number for both or a list of two, @p min to BPT__MAX_WINDOW.
 * @param fallback what a missing field means, shape [2]; NULL: the field is required
 * @param[out] out shape [2] */
bpt_status bpt__field_pair(const bpt_layer *l, const bpt_yaml *doc, const bpt_yaml_node *fields,
                           const char *key, int64_t min, const int64_t *fallback, int64_t *out);

/** A whole number from @p min to @p max. */
bpt_status bpt__field_int(const bpt_layer *l, const bpt_yaml *doc, const bpt_yaml_node *fields,
                          const char *key, int64_t min, int64_t max, int64_t fallback,
                          int64_t *out);

/** A number from @p min to @p max. */
bpt_status bpt__field_real(const bpt_layer *l, const bpt_yaml *doc, const bpt_yaml_node *fields,
                           const char *key, double min, double max, double fallback, double *out);

bpt_status bpt__field_bool(const bpt_layer *l, const bpt_yaml *doc, const bpt_yaml_node *fields,
                           const char *key, bool fallback, bool *out);

/** A bpt_layer_kind.parse for kinds without fields. @return BPT_OK */
bpt_status bpt__no_fields(bpt_layer *l, const bpt_model_scope *scope, const bpt_yaml *doc,
                          const bpt_yaml_node *fields);

/** A bpt_layer_kind.infer for kinds without weights whose output has the shape of the input.
 * @return BPT_OK */
bpt_status bpt__same_shape(bpt_layer *l, bpt_segments *s);

/** A bpt_layer_kind.forward_flops for kinds that multiply no matrices. @return 0 */
uint64_t bpt__no_flops(const bpt_layer *l);

/** Sets rows and columns of the output of a window that slides over the padded input and never
 * hangs over its edge: floor((H + 2 pad - R) / stride) + 1.
 * @param kernel,stride,pad shape [2]
 * @return BPT_OK, BPT_EUSAGE (the input is smaller than the kernel) */
bpt_status bpt__window_infer(bpt_layer *l, const int64_t *kernel, const int64_t *stride,
                             const int64_t *pad);

/** @return that window over a tile of @p n samples, as kernels want it; without bias
 * @param kernel,stride,pad shape [2] */
bpt_conv_problem bpt__window_problem(const bpt_layer *l, int64_t n, const int64_t *kernel,
                                     const int64_t *stride, const int64_t *pad);

/** Adds "<layer>.weight" (decays, He initialisation) and, if @p bias, "<layer>.bias" (K values,
 * no decay, starts at zero).
 * @param dims of the weight: K first, then what one output is computed from; shape [n_dims]
 * @return BPT_OK, BPT_EUSAGE (too large), BPT_ENOMEM */
bpt_status bpt__weights_infer(const bpt_layer *l, bpt_segments *s, const int64_t *dims, int n_dims,
                              bool bias);

#endif
