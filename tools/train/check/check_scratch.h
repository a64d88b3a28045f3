/** @file tools/train/check/check_scratch.h
 * What --check looks at under --data-mode scatter.
 *
 * Threads: one. */
#ifndef BPT_TOOLS_CHECK_SCRATCH_H
#define BPT_TOOLS_CHECK_SCRATCH_H

#include "outer/comm/comm.h"
#include "tools/train/check/check_facts.h"
#include "tools/train/options/train_options.h"

/** Looks at the scratch of this rank, and what it may have to hold, by the dataset that rank 0 has.
 * Collective over at least 2 ranks.
 * @param[in,out] f rank 0's data is set; takes what begins with scratch_ and has_scratch
 * @return BPT_OK, BPT_ENOMEM, BPT_EPEER, BPT_ECOMM */
bpt_status bpt_check_scratch(const bpt_train_options *o, bpt_comm *comm, bpt_check_facts *f);

#endif
