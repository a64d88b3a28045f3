/** @file tools/plan/plan_agreement.h
 * Whether all ranks that measure were told the same: under one mpirun with several commands, or
 * with files that differ from host to host, they may not, and would wait for each other in vain.
 *
 * Threads: the main thread. */
#ifndef BPT_TOOLS_PLAN_AGREEMENT_H
#define BPT_TOOLS_PLAN_AGREEMENT_H

#include "tools/plan/probe.h"

/** Compares versions of bpt, and what is measured but for what may be another on every host: where
 * the dataset is, device and threads. Collective; errors are agreed on.
 * @return BPT_OK, BPT_EUSAGE (names what is not that of rank 0; with hint), BPT_ENOMEM, BPT_EPEER,
 *         BPT_ECOMM */
bpt_status bpt_plan_agree(bpt_comm *comm, const bpt_probe_subject *subject);

#endif
