/** @file tools/tune/contender.h
 * One side of a comparison: a network that trains with a given set of choices.
 *
 * Threads: one. */
#ifndef BPT_TOOLS_TUNE_CONTENDER_H
#define BPT_TOOLS_TUNE_CONTENDER_H

#include "inner/network/network.h"
#include "storage/dataset/dataset.h"
#include "tools/synthetic.h"
#include "tools/tune/task_costs.h"

/** What all sides train, and on what. */
typedef struct bpt_tune_subject {
    bpt_model *model;
    int64_t batch;
    bpt_value_type activations;
    bpt_learning learning;
    bpt_dataset *dataset; /* NULL: .synthetic is used */
    const bpt_split *split;
    bpt_synthetic synthetic;
} bpt_tune_subject;

typedef struct bpt_contender bpt_contender;

/** Builds the network and runs it a little, so that all its memory is there and its tasks' costs
 * are known.
 * @param subject borrowed while the contender lives; convolutions that its model was told to cut
 * are cut so, others by choices.cuts
 * @param choices copied
 * @param[out] c caller owns, bpt_contender_free()
 * @return BPT_OK or an error of the parts */
bpt_status bpt_contender_create(const bpt_tune_subject *subject, const bpt_tuned_choices *choices,
                                bpt_contender **c);
void bpt_contender_free(bpt_contender *c);

/** Trains @p n_steps steps. Of a dataset as many batches are prepared meanwhile, one ahead of those
 * that are trained on, and none between two calls, where the other side has the machine: a step
 * that is sooner over than the next batch is there waits for it, as in training.
 * @param[out] seconds they took
 * @return BPT_OK or an error of a step or of the loader */
bpt_status bpt_contender_run(bpt_contender *c, uint64_t n_steps, double *seconds);

/** @return steps of convolutions that its network has cut */
size_t bpt_contender_n_cuts(const bpt_contender *c);

/** Adds to a table what the parts of its convolutions took in the last step.
 * @return BPT_OK, BPT_ENOMEM */
bpt_status bpt_contender_note_parts(const bpt_contender *c, bpt_cost_table *costs);

/** @return what its tasks took in the last step of each bpt_contender_run() */
const bpt_task_costs *bpt_contender_costs(const bpt_contender *c);

#endif
