/** @file tools/shaped_model.h
 * The model that options name, in the shape that they ask for.
 *
 * Threads: one. */
#ifndef BPT_TOOLS_SHAPED_MODEL_H
#define BPT_TOOLS_SHAPED_MODEL_H

#include "inner/models/model.h"
#include "storage/dataset/dataset.h"

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

/** Opens the dataset and finds the images to learn from, as that model takes them; the dataset is
 * told how much memory the machine has.
 * @param wanted      .data is not NULL
 * @param train_split --train-split
 * @param[out] dataset caller owns, bpt_dataset_close()
 * @param[out] split   of that name, not empty: borrowed from the dataset
 * @return BPT_OK, as bpt_dataset_open(), bpt_shaped_model_fit() and bpt_split_option_find(),
 *         BPT_EDATA (the split is empty) */
bpt_status bpt_shaped_model_open_data(const bpt_shaped_model *wanted, const char *train_split,
                                      bpt_dataset **dataset, const bpt_split **split);

/** Loads the model with the shape of the dataset where there is one, else with what is asked for.
 * @param wanted its dataset is opened meanwhile: no other of that path may be open in the process
 * @param[out] model caller owns, bpt_model_free()
 * @return as bpt_model_load(), bpt_dataset_open() and bpt_shaped_model_fit() */
bpt_status bpt_shaped_model_load(const bpt_shaped_model *wanted, bpt_model **model);

#endif
