/** @file tools/train/job/agreement.h
 * Whether all ranks of a job were told the same and have the same before them. Under one mpirun
 * with several commands, or with files that differ from host to host, they may not: such a job
 * would hang or learn nonsense.
 *
 * Threads: the main thread. All functions are collective and their errors agreed on: the rank that
 * differs from rank 0 says in what, the others return BPT_EPEER. */
#ifndef BPT_TOOLS_AGREEMENT_H
#define BPT_TOOLS_AGREEMENT_H

#include "tools/train/job/job.h"

/** Compares the versions of bpt, also for --check, whose ranks send each other what they found. The
 * first of bpt-train's own messages, and the same in all versions: what comes then may be another
 * one in each.
 * @return BPT_OK, BPT_EUSAGE (names all that are unlike rank 0's), BPT_ENOMEM, BPT_EPEER,
 *         BPT_ECOMM */
bpt_status bpt_agree_on_version(bpt_comm *comm);

/** Compares the options but for those that may be another for every host: where its files are, how
 * many threads it has, what it is tuned by.
 * @return BPT_OK, BPT_EUSAGE (names the option), BPT_ENOMEM, BPT_EPEER, BPT_ECOMM */
bpt_status bpt_agree_on_options(const bpt_train_options *options, bpt_comm *comm);

/** Compares the descriptions of the datasets that ranks have opened themselves; sets
 * job->dataset_identity, also where a rank has opened none.
 * @return BPT_OK, BPT_EDATA (names the dataset), BPT_ENOMEM, BPT_EPEER, BPT_ECOMM */
bpt_status bpt_agree_on_dataset(bpt_job *job);

/** Compares the models; sets job->model_identity.
 * @return BPT_OK, BPT_EDATA (names the file), BPT_ENOMEM, BPT_EPEER, BPT_ECOMM */
bpt_status bpt_agree_on_model(bpt_job *job);

/** Compares the checkpoints that ranks found at one path, which on hosts that share no folder may
 * be those of two jobs.
 * @param checkpoint its folder, on all ranks
 * @return BPT_OK, BPT_EDATA (names the folder), BPT_EIO, BPT_ENOMEM, BPT_EPEER, BPT_ECOMM */
bpt_status bpt_agree_on_checkpoint(const bpt_job *job, const char *checkpoint);

#endif
