/** @file tools/tune/task_costs.h
 * What the tasks of a network take, learned while it runs.
 *
 * Threads: one. */
#ifndef BPT_TOOLS_TUNE_TASK_COSTS_H
#define BPT_TOOLS_TUNE_TASK_COSTS_H

#include "inner/network/network.h"
#include "tools/tuned_file.h"

typedef struct bpt_task_costs bpt_task_costs;

/** @param[out] costs empty; caller owns, bpt_task_costs_free() @return BPT_OK, BPT_ENOMEM */
bpt_status bpt_task_costs_create(bpt_task_costs **costs);
void bpt_task_costs_free(bpt_task_costs *costs);

/** Notes the times of the network's last training step, of the first BPT_COST_STEPS that are noted.
 * @return BPT_OK, BPT_ENOMEM */
bpt_status bpt_task_costs_note(bpt_task_costs *costs, const bpt_network *network);

enum { BPT_COST_STEPS = 64 };

/** Lists the medians over the steps that were noted; of each, a row's value is the mean of its
 * tasks.
 * @param[out] list caller owns, bpt_free(); its texts are the network's model's; shape [*n]
 * @return BPT_OK, BPT_ENOMEM */
bpt_status bpt_task_costs_list(const bpt_task_costs *costs, bpt_task_cost **list, size_t *n);

#endif
