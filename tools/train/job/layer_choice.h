/** @file tools/train/job/layer_choice.h
 * --placement: which layers one rank computes for all, and which rank; and the parts that are made
 * then (tools/train/job/placed.h).
 *
 * Threads: the one that trains. */
#ifndef BPT_TOOLS_LAYER_CHOICE_H
#define BPT_TOOLS_LAYER_CHOICE_H

#include "tools/train/job/checkpoint.h"
#include "tools/train/job/job.h"

/** Checks the name of a layer, before anything is measured. @return BPT_OK, BPT_EUSAGE (no layer of
 * the model; or the model cannot be parted there: the hint says where it can; or, with allreduce
 * or auto, which may come to it, a batch norm would be at the host) */
bpt_status bpt_layer_choice_check(const bpt_train_options *options, const bpt_model *model);

/** @return whether these options name a layer from which on one rank computes for all, in a job of
 * so many ranks that may do so: then all its ranks have to compute on cores */
bool bpt_layer_choice_wants_cores(const bpt_train_options *options, uint32_t n_ranks);

/** Refuses a named layer where a rank's network is on a device: parts of networks are on cores.
 * With auto none is chosen there. @return BPT_OK, BPT_EUSAGE */
bpt_status bpt_layer_choice_check_devices(const bpt_job *job);

/** Chooses, and parts the job's network where something is to be placed. With auto each rank times
 * its layers and links are measured; the rank that is fastest by itself becomes the host. A job
 * that goes on bit for bit keeps to what it did. Overwrites job->flat and the weights; the
 * optimiser is fresh afterwards. Collective.
 * @param c the checkpoint that the job goes on from; NULL: none
 * @return BPT_OK, or any error of the parts, agreed on */
bpt_status bpt_layer_choice_make(bpt_job *job, const bpt_checkpoint *c);

/** @return whether a layer is named from which on one rank computes for all, in a job that can do
 * so, whatever is measured
 * @param[out] border the layer before it, whose name is checked */
bool bpt_layer_choice_is_named(const bpt_job *job, size_t *border);

/** @return the name of the first layer that the host computes for all; "": none is placed */
const char *bpt_layer_choice_name(const bpt_job *job);

#endif
