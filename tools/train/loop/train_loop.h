/** @file tools/train/loop/train_loop.h
 * The ways of training, one file each: alone, with summed gradients, with merged weights.
 *
 * Each trains until the job's samples are used up or the user stops it, and evaluates and saves on
 * the way.
 * @return BPT_OK; BPT_ESTOPPED (by signal; a checkpoint is saved), or any error of the parts
 *
 * Threads: the one that trains. */
#ifndef BPT_TOOLS_TRAIN_LOOP_H
#define BPT_TOOLS_TRAIN_LOOP_H

#include "tools/train/job/job.h"

/** One rank, nothing exchanged. */
bpt_status bpt_train_local(bpt_job *job);

/** One trajectory of all ranks: gradients are summed at every step. */
bpt_status bpt_train_gradients(bpt_job *job);

/** Weights are merged every few steps and everybody waits: sgwu. */
bpt_status bpt_train_synchronous(bpt_job *job);

/** Weights are merged every few steps and nobody waits: agwu, easgd. */
bpt_status bpt_train_asynchronous(bpt_job *job);

/** A server: nothing is trained here, and the exchange serves by itself. Takes part in meetings. */
bpt_status bpt_train_serve(bpt_job *job);

/** Does what a meeting of all ranks is for; the network holds the global weights. An evaluation
 * comes before the checkpoint. A stop does not wait for one: the checkpoint says that it is due.
 * @param reasons BPT_MEET_* bits, the same on all workers; a server waits until it is told of some
 * @param[out] over whether training has come to its end
 * @return BPT_OK, BPT_ESTOPPED, or any error of the parts */
bpt_status bpt_train_meet(bpt_job *job, uint32_t reasons, bool *over);

/** Makes the evaluation that was due where the checkpoint left off that the job goes on from, if
 * one was. Collective, before training.
 * @return BPT_OK, BPT_ESTOPPED (meanwhile; a checkpoint is saved), or any error of the parts */
bpt_status bpt_train_catch_up(bpt_job *job);

/** Says what every rank has brought so far, as at the end, unless the run was shorter than
 * --log-interval; collective. Where it fails nothing is said. */
void bpt_train_say_ranks(bpt_job *job);

/** Evaluates the final weights, writes them and the summary; collective.
 * @return BPT_OK, BPT_ESTOPPED (told to stop before the weights were evaluated; there is a
 *         checkpoint to finish from) or any error of the parts */
bpt_status bpt_train_finish(bpt_job *job);

#endif
