/** @file tools/train/job/update_choice.h
 * --update auto on several ranks: allreduce where it costs little of the ranks' speed, else agwu.
 *
 * Under allreduce all ranks do what one would: its result is the better known one. But every step
 * waits for an exchange, and for the slowest rank at its part of the batch: an even one, or one by
 * its speed with --partition idpa. Both are measured before training, and what would come of them
 * is compared with the sum of what the ranks do alone, which agwu comes near to.
 *
 * Threads: the one that trains. */
#ifndef BPT_TOOLS_UPDATE_CHOICE_H
#define BPT_TOOLS_UPDATE_CHOICE_H

#include "tools/train/job/job.h"

/** What a step of allreduce is made of, by measurement. */
typedef struct bpt_step_costs {
    double compute_s;  /* of the rank that takes the longest for its part of the batch */
    double exchange_s; /* of gradients between all ranks */
    double part;       /* images a second that come of it, of the sum of what all ranks do alone */
} bpt_step_costs;

/** @param images_per_s of each rank alone, shape [n_ranks], > 0
 * @param cut how a batch of all ranks would be cut, as in bpt_batch_cut(), shape [n_ranks + 1]
 * @param exchange_s of all weights, > 0 */
bpt_step_costs bpt_allreduce_costs(const double *images_per_s, uint32_t n_ranks,
                                   const uint64_t *cut, double exchange_s);

/** @return whether the cost is worth the trajectory of a single machine */
bool bpt_prefers_allreduce(const bpt_step_costs *costs);

/** Measures an exchange, decides, and says why on rank 0. It is agwu where a batch has not a sample
 * for each rank. What the ranks do alone is known (job->solo). Overwrites job->flat. Collective.
 * @param[out] update AGWU or ALLREDUCE, the same on all ranks
 * @return BPT_OK, BPT_ENOMEM, BPT_EPEER, BPT_ECOMM */
bpt_status bpt_update_choose(bpt_job *job, bpt_update_choice *update);

#endif
