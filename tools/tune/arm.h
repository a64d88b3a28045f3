/** @file tools/tune/arm.h
 * One side of a comparison: a network that trains with a given set of choices.
 *
 * Threads: one. */
#ifndef BPT_TOOLS_TUNE_ARM_H
#define BPT_TOOLS_TUNE_ARM_H

#include "inner/network.h"
#include "storage/dataset.h"
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

typedef struct bpt_arm bpt_arm;

/** Builds the network and runs it a little, so that all its memory is there and its tasks' costs
 * are known.
 * @param subject borrowed while the arm lives; convolutions that its model was told to cut are cut
 * so, others by choices.cuts
 * @param choices copied
 * @param[out] arm caller owns, bpt_arm_free()
 * @return BPT_OK or an error of the parts */
bpt_status bpt_arm_create(const bpt_tune_subject *subject, const bpt_tuned_choices *choices,
                          bpt_arm **arm);
void bpt_arm_free(bpt_arm *arm);

/** Trains @p n_steps steps. Batches of a dataset are prepared ahead during them and not between two
 * calls, where the other side has the machine.
 * @param[out] seconds they took
 * @return BPT_OK or an error of a step or of the loader */
bpt_status bpt_arm_run(bpt_arm *arm, uint64_t n_steps, double *seconds);

const bpt_tuned_choices *bpt_arm_choices(const bpt_arm *arm);

/** @return steps of convolutions that its network has cut */
size_t bpt_arm_n_cuts(const bpt_arm *arm);

/** Adds to a table what the parts of its convolutions took in the last step.
 * @return BPT_OK, BPT_ENOMEM */
bpt_status bpt_arm_note_parts(const bpt_arm *arm, bpt_cost_table *costs);

/** @return what its tasks took in the last step of each bpt_arm_run() */
const bpt_task_costs *bpt_arm_costs(const bpt_arm *arm);

#endif
