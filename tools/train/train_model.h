/** @file tools/train/train_model.h
 * The model that the options name, where no job is made of them.
 *
 * Threads: one. */
#ifndef BPT_TOOLS_TRAIN_MODEL_H
#define BPT_TOOLS_TRAIN_MODEL_H

#include "inner/model.h"
#include "tools/train/train_options.h"

/** Loads it with the shape of the dataset where there is one, else with what --input-size and
 * --classes say, else with its own.
 * @param[out] model caller owns, bpt_model_free()
 * @return as bpt_model_load() and bpt_dataset_open() */
bpt_status bpt_train_load_model(const bpt_train_options *options, bpt_model **model);

#endif
