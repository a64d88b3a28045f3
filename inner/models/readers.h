/** @file inner/models/readers.h
 * Who reads which activation of a model: what planning a step on any device goes by.
 *
 * Activation 0 is the model's input, 1 + i the output of layer i. The readers of one are numbered
 * in the order of the layers.
 *
 * Threads: any; the model is only read. */
#ifndef BPT_INNER_READERS_H
#define BPT_INNER_READERS_H

#include "base/status.h"
#include "inner/models/model.h"

#include <stddef.h>

/** One reader's view of an activation. */
typedef struct bpt_reading {
    size_t activation;
    size_t reader; /* its number among those of the activation */
} bpt_reading;

typedef struct bpt_readers {
    size_t *n;            /* readers of each activation; shape [n_layers + 1] */
    bpt_reading **inputs; /* of each layer, shape [n_layers][n_inputs] */
    size_t *n_inputs; /* what a layer reads: its inputs, and behind them the other input of an add
                       * that it does too. Of a layer that another does the work of: that one's
                       * output. Shape [n_layers] */
    size_t n_layers;
} bpt_readers;

/** @param[out] readers caller owns, bpt_readers_clear(), also where that fails
 * @return BPT_OK, BPT_ENOMEM */
bpt_status bpt_readers_find(const bpt_model *model, bpt_readers *readers);
void bpt_readers_clear(bpt_readers *readers);

#endif
