/** @file tools/train/check/check.h
 * `bpt-train --check`: whether a job would start well on these hosts, without training.
 *
 * Threads: one. */
#ifndef BPT_TOOLS_CHECK_H
#define BPT_TOOLS_CHECK_H

#include "outer/comm/comm.h"
#include "tools/train/options/train_options.h"

/** Gathers what every rank is and sees; rank 0 prints a table of it and what is wrong with it to
 * stdout. Changes nothing. Collective.
 * @param[out] verdict the same on all ranks: BPT_OK, or BPT_EUSAGE where an error was found (the
 *             text of it on rank 0, with hint); set on success only
 * @return BPT_OK, BPT_ENOMEM, BPT_EPEER, BPT_ECOMM */
bpt_status bpt_train_check(const bpt_train_options *options, bpt_comm *comm, bpt_status *verdict);

#endif
