/** @file tools/train/job/job_parts.h
 * The parts of bpt_job_open(), in the order of their calls; some of them are what check/ and bench/
 * make of a job, the others (bpt__) are inside of job/.
 *
 * Threads: the one that trains. */
#ifndef BPT_TOOLS_JOB_PARTS_H
#define BPT_TOOLS_JOB_PARTS_H

#include "tools/device_option.h"
#include "tools/train/job/checkpoint.h"
#include "tools/train/job/job.h"
#include "tools/train/job/run_need.h"

/** Opens what --device names. Beside --tuned or a named layer, which are of the cores, auto takes
 * these, with a warning where there is a GPU.
 * @param n_ranks of the job
 * @param[out] device caller owns; NULL: the processor's cores
 * @return BPT_OK, BPT_EUSAGE (a GPU is named beside --tuned), as bpt_device_option_open() */
bpt_status bpt_job_find_device(const bpt_train_options *o, uint32_t n_ranks, bpt_host_place place,
                               bpt_device **device);

/** Lets a rank's GPU compute as it did in the run that is gone on from (RUN/gpu.rank-N.yaml, where
 * that is), before the network is made.
 * @param device NULL: the rank has none
 * @return BPT_OK, as bpt_device_load_choices() */
bpt_status bpt_job_read_choices(const bpt_train_options *o, uint32_t rank, bpt_device *device);

/** Keeps how it computes in the run's folder, once that has begun.
 * @return BPT_OK, as bpt_device_save_choices() */
bpt_status bpt__job_keep_choices(const bpt_job *job);

/** Opens this rank's, GPU i for the i-th of the workers of its host, and finds out whether any rank
 * has one. A server has none. Workers are counted. Collective.
 * @return likewise, agreed on; BPT_EUSAGE (a layer from which on one rank computes for all) */
bpt_status bpt__job_open_device(bpt_job *job);

/** Chooses update, partition, batch and learning rate from options and number of ranks.
 * @return BPT_OK, BPT_EUSAGE (options that do not fit the number of ranks) */
bpt_status bpt_job_choose(bpt_job *job);

/** Turns to another way of updating: all that bpt_job_choose() and bpt_job_choose_lengths() chose
 * by it, and the network, which is made anew; its weights are undefined.
 * @return BPT_OK, as those and bpt__job_open_network() */
bpt_status bpt__job_turn_to(bpt_job *job, bpt_update_choice update);

/** Whether the model can learn from as few samples as a step of this rank has; model and batch are
 * there.
 * @return BPT_OK, BPT_EUSAGE (a batch norm of one value a channel; with hint) */
bpt_status bpt_job_check_batch_norms(const bpt_job *job);

/** Makes the network for job->batch, anew if there is one; model and pool are there.
 * @return BPT_OK, as bpt_job_check_batch_norms(), BPT_EUSAGE (more memory than there is; tuned for
 *         something else), BPT_ENOMEM, BPT_EBACKEND */
bpt_status bpt__job_open_network(bpt_job *job);

/** Sets the lengths that are counted in samples; the training split is known.
 * @return BPT_OK, BPT_EUSAGE (a step of all ranks is more than the split, or too few samples for
 *         the rounds of --idpa-rounds) */
bpt_status bpt_job_choose_lengths(bpt_job *job);

/** Copies the dataset where --stage says, or finds it there, for ranks that open it. Collective.
 * @return BPT_OK, BPT_ESTOPPED (a rank was told to stop), as bpt_stage_open(), bpt_stage_advance()
 *         or bpt_stage_join(), agreed on */
bpt_status bpt__job_stage_data(bpt_job *job);

/** @return where this rank opens the dataset; borrowed */
const char *bpt__job_data_path(const bpt_job *job);

/** Says where the dataset is copied, or advises it where that would help. */
void bpt__job_say_stage(const bpt_job *job);

/** Opens the dataset, finds both splits and checks the augmentation. On an error too the dataset
 * may be open: bpt_job_close_data().
 * @return BPT_OK, BPT_EDATA (an empty split), as bpt_dataset_open(), bpt_dataset_find() or
 *         bpt_augment_check_images() */
bpt_status bpt_job_open_data(bpt_job *job);

/** Likewise where bpt_job_scatters(): rank 0 opens the dataset and tells the others of it, which
 * open their scratch. Collective; to be agreed on afterwards.
 * @return as above, bpt_scratch_open(), BPT_EPEER, BPT_ECOMM */
bpt_status bpt__job_share_data(bpt_job *job);

/** Tells servers of the dataset, which they do not open, after either; nothing where there are
 * none. Collective.
 * @return BPT_OK, BPT_ECOMM */
bpt_status bpt__job_tell_servers(bpt_job *job);

/** Closes what either has opened. */
void bpt_job_close_data(bpt_job *job);

/** Where bpt_job_scatters(): begins to give out samples, and waits until each rank has what it
 * needs for its first steps. The feed and, where there are any, rounds of the data are there.
 * Collective.
 * @return BPT_OK, BPT_ESTOPPED (a rank was told to stop), or any error of the parts, agreed on */
bpt_status bpt__job_open_delivery(bpt_job *job);

/** Looks whether a rank was told to stop before the first step. Collective.
 * @return BPT_OK, BPT_ESTOPPED (on all ranks), BPT_ECOMM */
bpt_status bpt__job_stop_if_told(bpt_job *job);

/** Loads the model in the shape of the dataset, which is known, with the layers frozen that are to
 * be. @return as bpt_model_load() and bpt_train_freeze() */
bpt_status bpt_job_load_model(bpt_job *job);

/** What may be at the place of --output, by what is asked for. Changes nothing.
 * @param[out] mode set on success only
 * @return BPT_OK, BPT_EUSAGE (--force would remove what the job begins from; with hint) */
bpt_status bpt_job_run_mode(const bpt_train_options *o, bpt_run_folder_mode *mode);

/** Opens and locks the run's folder, and leaves what is in it; sets job->finished where there is
 * nothing to do (then at most rank 0 has opened it). Collective.
 * @return BPT_OK or an error of the folder, agreed on */
bpt_status bpt__job_open_run(bpt_job *job);

/** What a run that begins anew takes in its folder; model and lengths are known.
 * @param apart whether its checkpoints are to lie on another disk
 * @return bytes */
bpt_run_need bpt_job_need(const bpt_job *job, bool apart);

/** Rank 0: looks whether the disk of the folder has room for the weights and checkpoints of the
 * run, with what it replaces gone. Warns where it has for the next of them, and not for all that
 * are kept.
 * @return BPT_OK, BPT_ENOSPC (with hint), BPT_EIO, BPT_ENOMEM */
bpt_status bpt__job_check_room(const bpt_job *job);

/** Rank 0, while the run is under way: warns where there is none, or where that cannot be told.
 * @return whether there is room for one more checkpoint, and for the weights at the end if they are
 *         written to the same disk, as far as the disk tells: a quota may leave less */
bool bpt__job_has_room(const bpt_job *job);

/** Makes room in the folder, writes config.yaml and what the ranks are tuned by, and opens the log
 * file. Collective.
 * @param anew no checkpoint: what an earlier attempt left is removed
 * @return BPT_OK or an error of the folder, agreed on */
bpt_status bpt__job_begin_run(bpt_job *job, bool anew);

/** Rank 0: makes what draws the run's chart, once its metrics have begun.
 * @return BPT_OK, BPT_ENOMEM */
bpt_status bpt__job_open_chart(bpt_job *job);

/** How fast each rank is by itself; where that was not measured, a guess in other units. That of a
 * server is a guess of how fast it merges, to be compared with other servers only. Collective.
 * @param[out] speeds shape [n_ranks]
 * @return BPT_OK, BPT_ECOMM */
bpt_status bpt__job_speeds(bpt_job *job, double *speeds);

/** Measures what each rank does alone, and settles what goes by it: --update auto, and the cut of
 * the batch. A checkpoint's job keeps to its own. May make the network anew, and open the
 * checkpoint again. Collective.
 * @param[in,out] found whether there is a checkpoint
 * @param[in,out] c     it, if found
 * @return BPT_OK or any error of the parts, agreed on */
bpt_status bpt__job_settle(bpt_job *job, bool *found, bpt_checkpoint *c);

/** Sets weights, optimiser's state and counters and makes exchange and feed: of the checkpoint that
 * --resume finds, else as at the start of a run. Calls bpt__job_begin_run() once nothing is left to
 * refuse. Data, network and run folder are there. Collective.
 * @return BPT_OK or any error of the parts, agreed on */
bpt_status bpt__job_open_state(bpt_job *job);

/** Warns of a run so short that its end, which agwu and sgwu notice at an exchange only, may come
 * late by more than a tenth of it. */
void bpt__job_warn_late_end(const bpt_job *job);

#endif
