/** @file tools/shaped_model.h
 * The model that options name, in the shape that they ask for.
 *
 * Threads: one. */
#ifndef BPT_TOOLS_SHAPED_MODEL_H
#define BPT_TOOLS_SHAPED_MODEL_H

#include "inner/model.h"
#include "storage/dataset.h"

/** What the options say. */
typedef struct bpt_shaped_model {
    const char *model;         /* --model */
    const char *data;          /* --data; NULL: none */
    const int64_t *input_size; /* --input-size, shape [2]; zeros keep the model's own; NULL with a
                                  dataset: both */
    int64_t classes;           /* --classes, without --data; 0: the model's own */
} bpt_shaped_model;

/** Settles at which size a network takes the images of a dataset: of an encoded one as is asked
 * for, or else that of the model's own input; raw ones have theirs.
 * @param model      --model
 * @param input_size --input-size, shape [2]; zeros: the model's own; NULL: both
 * @return BPT_OK, as bpt_model_load(), BPT_EUSAGE (an input size that raw images do not have) */
bpt_status bpt_shaped_model_fit(bpt_dataset *dataset, const char *model, const int64_t *input_size);

/** Loads the model with the shape of the dataset where there is one, else with what is asked for.
 * @param[out] model caller owns, bpt_model_free()
 * @return as bpt_model_load() and bpt_dataset_open() */
bpt_status bpt_shaped_model_load(const bpt_shaped_model *wanted, bpt_model **model);

#endif
