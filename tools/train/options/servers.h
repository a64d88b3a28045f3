/** @file tools/train/options/servers.h
 * --servers: which ranks hold the global weights and train nothing.
 *
 * They are the last of the job, so that the number of a rank that trains is that of its worker, and
 * rank 0, which has the run's folder and tells of everything, trains.
 *
 * Threads: any; pure functions. */
#ifndef BPT_TOOLS_TRAIN_SERVERS_H
#define BPT_TOOLS_TRAIN_SERVERS_H

#include "tools/train/options/train_options.h"

/** @param n_ranks at least 1
 * @param[out] n ranks, less than @p n_ranks; 0 where the way of updating has no use for them
 *               (option_uses.h tells of it)
 * @return BPT_OK, BPT_EUSAGE (no rank would be left to train; with hint) */
bpt_status bpt_servers_count(const bpt_train_options *o, uint32_t n_ranks, uint32_t *n);

/** @return whether @p rank is one of them; false where there are too many */
bool bpt_servers_have(const bpt_train_options *o, uint32_t rank, uint32_t n_ranks);

/** @return whether rank 0 gives out samples: by --data-mode scatter, to others that train */
bool bpt_servers_scatter(const bpt_train_options *o, uint32_t n_ranks);

#endif
