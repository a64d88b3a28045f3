/** @file inner/models/model_parts.h
 * The steps of loading a model. Private to inner/.
 *
 * Threads: any. */
#ifndef BPT_INNER_MODEL_PARTS_H
#define BPT_INNER_MODEL_PARTS_H

#include "base/status.h"
#include "base/yaml.h"
#include "inner/models/model.h"

#include <stdbool.h>

/* Values of one sample at any point of a network. Together with the bound on weights (segments.c)
 * it keeps every count of operations below 2^63. */
enum { BPT__MAX_ACTIVATION = 1 << 30 };

/** Finds the file of a model: a path (it ends in .yaml or .yml, or holds a slash) is taken as it
 * is; a name is looked up in ../share/bpt/models beside the folder of the running program, in the
 * source tree that it was built from, and where it was configured to be installed.
 * @param[out] path caller owns, bpt_free()
 * @return BPT_OK, BPT_EUSAGE (no such name; the known ones are in the hint), BPT_ENOMEM */
bpt_status bpt__model_find(const char *name_or_path, char **path);

/** Reads everything but shapes and weights.
 * @param m zeroed but for its source; on error it may be filled in part
 * @return BPT_OK, BPT_EUSAGE (names file, line, layer), BPT_ENOMEM */
bpt_status bpt__model_read(const bpt_yaml *doc, const bpt_model_override *override, bpt_model *m);

/** Reads the field "input" of layer @p l, the last one so far: a name or a list of names of layers
 * before it, or "input" for the model's. Without the field it is the layer before it.
 * @param fields a map, or NULL for a bare name
 * @return BPT_OK, BPT_EUSAGE (no such layer before it; a list for a layer that takes one input,
 * less than two for one that joins), BPT_ENOMEM */
bpt_status bpt__model_read_inputs(const bpt_model *m, bpt_layer *l, const bpt_yaml *doc,
                                  const bpt_yaml_node *fields);

/** @return BPT_OK, BPT_EUSAGE (nobody takes the output of a layer that is not the last) */
bpt_status bpt__model_check_uses(const bpt_model *m);

/** Decides which layers are computed together; shapes are known. */
void bpt__model_fuse(bpt_model *m);

/** @return whether a sample of this shape has 1 to BPT__MAX_ACTIVATION values */
bool bpt__shape_is_allowed(bpt_shape s);

#endif
