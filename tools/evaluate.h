/** @file tools/evaluate.h
 * Loss and accuracy of a network on a split.
 *
 * Threads: the one that owns the network. */
#ifndef BPT_TOOLS_EVALUATE_H
#define BPT_TOOLS_EVALUATE_H

#include "inner/network.h"
#include "storage/dataset.h"

#include <stdbool.h>

enum { BPT_EVALUATION_DEPTH = 3 }; /* batches that are in memory at a time */

/** What to evaluate on. */
typedef struct bpt_evaluation {
    const bpt_dataset *dataset;
    const bpt_split *split;
    const bpt_split *normalise; /* whose mean and standard deviation are used: the training split */
    uint32_t first, count;      /* records [first, first + count) */
    uint32_t batch, loader_threads;
    /* Where it is wanted what is taken for what, of a network on cores: how many images of class i
     * (row) the network took for class j (column), shape [n_classes, n_classes], added to; NULL: no
     */
    uint64_t *confusion;
    uint32_t n_classes;
    bool (*stop)(const void *arg); /* polled at every batch; NULL: never */
    const void *stop_arg;
} bpt_evaluation;

/** @param[out] result sums over the records; if stopped, over those that were seen
 * @return BPT_OK, BPT_ESTOPPED (stop() said so), BPT_ECORRUPT, BPT_ENUMERIC, BPT_ENOMEM,
 *         BPT_EBACKEND, as bpt_loader_create() */
bpt_status bpt_evaluate(bpt_network *net, const bpt_evaluation *e, bpt_batch_result *result);

#endif
