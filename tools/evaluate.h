/** @file tools/evaluate.h
 * Loss and accuracy of a network on a split.
 *
 * Threads: the one that owns the network. */
#ifndef BPT_TOOLS_EVALUATE_H
#define BPT_TOOLS_EVALUATE_H

#include "inner/network/network.h"
#include "storage/dataset/dataset.h"

#include <stdbool.h>

enum { BPT_EVALUATION_DEPTH = 3 }; /* batches that are in memory at a time */

/** What a network on cores says of the records of a batch. */
typedef struct bpt_batch_answers {
    uint32_t first, n;         /* records [first, first + n) of the split */
    const int32_t *labels;     /* shape [n]; the dataset's */
    const bpt_answer *answers; /* shape [n] */
} bpt_batch_answers;

/** What to evaluate on. */
typedef struct bpt_evaluation {
    const bpt_dataset *dataset;
    const bpt_split *split;
    const bpt_split *normalise; /* whose mean and standard deviation are used: the training split */
    uint32_t first, count;      /* records [first, first + count) */
    uint32_t batch, loader_threads;
    bool no_labels; /* the dataset's are of other classes than the network's, and not looked at */
    /* Where single answers are wanted, of a network on cores: is given those of each batch, in the
     * order of the records; what it returns but BPT_OK ends the evaluation. NULL: no */
    bpt_status (*take)(void *arg, const bpt_batch_answers *batch);
    void *take_arg;
    bool (*stop)(const void *arg); /* polled at every batch; NULL: never */
    const void *stop_arg;
} bpt_evaluation;

/** @param[out] result sums over the records; if stopped, over those that were seen. Without labels
 *                    .loss_sum, .n_correct and .label_probability of answers are 0
 * @return BPT_OK, BPT_ESTOPPED (stop() said so), BPT_ECORRUPT, BPT_ENUMERIC, BPT_ENOMEM,
 *         BPT_EBACKEND, as bpt_loader_create() and take() */
bpt_status bpt_evaluate(bpt_network *net, const bpt_evaluation *e, bpt_batch_result *result);

#endif
