/** @file tools/shaped_model.h
 * The model that options name, in the shape that they ask for.
 *
 * Threads: one. */
#ifndef BPT_TOOLS_SHAPED_MODEL_H
#define BPT_TOOLS_SHAPED_MODEL_H

#include "inner/model.h"

/** What the options say. */
typedef struct bpt_shaped_model {
    const char *model;         /* --model */
    const char *data;          /* --data; NULL: none, then the fields below count */
    const int64_t *input_size; /* --input-size, shape [2]; zeros keep the model's own */
    int64_t classes;           /* --classes; 0: the model's own */
} bpt_shaped_model;

/** Loads the model with the shape of the dataset where there is one, else with what is asked for.
 * @param[out] model caller owns, bpt_model_free()
 * @return as bpt_model_load() and bpt_dataset_open() */
bpt_status bpt_shaped_model_load(const bpt_shaped_model *wanted, bpt_model **model);

#endif
