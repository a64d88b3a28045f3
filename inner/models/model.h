/** @file inner/models/model.h
 * A network as its description says: layers with inferred shapes and the table of weights.
 *
 * The loss at the end of every model is softmax cross-entropy over its classes.
 * The file format is described in docs/models.md.
 *
 * Threads: read-only after loading and while it has networks. */
#ifndef BPT_INNER_MODEL_H
#define BPT_INNER_MODEL_H

#include "base/status.h"
#include "inner/cuts/cost_table.h"
#include "inner/layers/layer.h"

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

/** What a model is of the one that its file describes. */
typedef enum bpt_model_role {
    BPT_MODEL_WHOLE,
    BPT_MODEL_HEAD, /* the layers up to a border, without a loss */
    BPT_MODEL_TAIL, /* those behind it, with the loss */
} bpt_model_role;

typedef struct bpt_model {
    char *name;   /* from the file */
    char *source; /* path of the file */
    char *text;   /* of the file, as it was read; shape [text_bytes]; NULL: of one from memory */
    size_t text_bytes;
    bpt_shape input;
    int64_t classes;
    bpt_layer *layers; /* in an order in which inputs come first; shape [n_layers] */
    size_t n_layers;
    bpt_segments segments;
    size_t n_frozen; /* layers from the first on that do not learn: bpt_model_freeze_before() */
    const bpt_cost_table *costs; /* by which networks cut convolutions; NULL: as usual */
    bpt_model_role role;         /* parts: inner/models/model_part.h */
    size_t first_element; /* of a part: where its flat vector begins in that of the whole model */
    bool typed_input;     /* of a tail: its input has the type that a network gives to activations;
                           * else floats */
} bpt_model;

/** What replaces the values of the file; zeros keep them. */
typedef struct bpt_model_override {
    bpt_shape input;
    int64_t classes;
} bpt_model_override;

/** Loads a model by the name of a built-in one ("lenet"), or by path (it ends in .yaml or .yml, or
 * holds a slash).
 * @param override may be NULL
 * @param[out] model caller owns, bpt_model_free()
 * @return BPT_OK, BPT_EUSAGE (unknown name, with the list of known ones; error in the file, with
 * file, line and layer; an input shape that a layer cannot take; no layer with weights; no such
 * file), BPT_EIO, BPT_ENOMEM */
bpt_status bpt_model_load(const char *name_or_path, const bpt_model_override *override,
                          bpt_model **model);

/** The same from memory. @param source stands for the path in errors */
bpt_status bpt_model_parse(const char *source, const char *text, size_t size,
                           const bpt_model_override *override, bpt_model **model);

/** @return whether bpt_model_load() would find a file by that name or path, sound or not; the last
 * error stays as it is */
bool bpt_model_is_there(const char *name_or_path);

void bpt_model_free(bpt_model *model);

/** Finds a layer. @param[out] layer its index in layers
 * @return BPT_OK, BPT_EUSAGE (no such layer; with the nearest name as hint) */
bpt_status bpt_model_find_layer(const bpt_model *model, const char *name, size_t *layer);

/** Freezes the layers before one, as far as they have weights or stand before some that have: in
 * networks that are created from now on these weights and running statistics stay as they are, and
 * a training step computes these layers as an evaluation does: batch norms by their running
 * statistics, dropout not at all. No gradient is computed of them. What has no weights and stands
 * behind the last weights that are frozen trains as ever.
 * @param model a whole one
 * @param first name of the first layer that is not to be frozen
 * @return BPT_OK, BPT_EUSAGE (no such layer; no weights before it, or none from it on) */
bpt_status bpt_model_freeze_before(bpt_model *model, const char *first);

/** @return how many segments from the first on are frozen, how many elements of the flat vector,
 * and how many of its elements are left: those learn */
size_t bpt_model_frozen_segments(const bpt_model *model);
size_t bpt_model_frozen_elements(const bpt_model *model);
size_t bpt_model_learned_elements(const bpt_model *model);

/** Lets networks that are created from now on cut their convolutions by costs.
 * @param costs borrowed while the model is used; NULL: they are cut as usual, into tiles
 */
void bpt_model_use_costs(bpt_model *model, const bpt_cost_table *costs);

/** Says how networks that are created from now on cut a step of a convolution, whatever the costs
 * say. Where no fast kernels compute the parts the step stays whole (debug log).
 * @param layer its name; @param cut channels and rows up to BPT_MAX_CUT
 * @return BPT_OK, BPT_EUSAGE (no such convolution) */
bpt_status bpt_model_set_cut(bpt_model *model, const char *layer, bpt_conv_step step, bpt_cut cut);

/** Says the same of all steps of all convolutions.
 * @param cut as above; NULL: nothing was said of any of them, so that the costs count again */
void bpt_model_set_cuts(bpt_model *model, const bpt_cut *cut);

/** @return parameters: the values that are learned. Running statistics are none */
size_t bpt_model_parameters(const bpt_model *model);

/** @return values of running statistics: saved and sent with the parameters, but not learned */
size_t bpt_model_running_statistics(const bpt_model *model);

/** @param[out] layer the first that learns and wants more than one; NULL: none does
 * @return samples of a step that every layer can learn from: 2 where a batch norm is over a single
 *         pixel, since of one value nothing but the bias is left, else 1 */
uint32_t bpt_model_least_batch(const bpt_model *model, const bpt_layer **layer);

/** @return floating-point operations for one sample of forward (1x) and, of layers that are not
 *          frozen, backward (2x) */
uint64_t bpt_model_training_flops(const bpt_model *model);

/** Prints a table of layers: name, kind, output shape, parameters, forward flops; and the number of
 * running statistics if there are any. */
void bpt_model_print(const bpt_model *model, FILE *out);

/** Tells models apart, also of the same name.
 * @param[out] identity checksum of what bpt_model_print() prints, of each layer's inputs and of all
 *                      that its fields say
 * @return BPT_OK, BPT_ENOMEM */
bpt_status bpt_model_identify(const bpt_model *model, uint64_t *identity);

#endif
