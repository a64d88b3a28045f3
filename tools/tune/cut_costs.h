/** @file tools/tune/cut_costs.h
 * What the parts of a model's convolutions take, measured in training steps.
 *
 * Threads: one. */
#ifndef BPT_TOOLS_TUNE_CUT_COSTS_H
#define BPT_TOOLS_TUNE_CUT_COSTS_H

#include "inner/cuts/cost_table.h"
#include "tools/tune/contender.h"

#include <stdbool.h>
#include <stdint.h>

/** Trains a network all of whose convolutions are cut in one way, where kernels take it, and notes
 * the least that the largest part of each took in some steps (bpt_network_note_costs()).
 * @param choices its cuts are not read
 * @param cut     zeros: as they are if nobody says otherwise
 * @param n_steps at least 1
 * @param[out] costs gets the entries; of those that it has already the shorter stay
 * @return BPT_OK (also where no such network can be made: then nothing is added), BPT_ECANCELED (a
 *         signal), or an error of a step or of the loader */
bpt_status bpt_cut_costs_measure(const bpt_tune_subject *subject, const bpt_tuned_choices *choices,
                                 bpt_cut cut, uint64_t n_steps, bpt_cost_table *costs);

/** @return whether a network may be refused so because parts are many: more tasks than a graph
 * takes, or more memory than the machine has */
bool bpt_cut_costs_too_large(bpt_status status);

/** @param noise relative: what two networks that are alike differ by
 * @return percent of the time of the whole that a cut has to gain to be chosen. Never below 5: so
 *         much the times of parts differ by chance where those of whole steps do not */
int64_t bpt_cut_costs_margin(double noise);

#endif
