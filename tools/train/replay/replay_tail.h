/** @file tools/train/replay/replay_tail.h
 * The layers that one rank computed for all in an agwu run that is replayed: the updates that its
 * border log names, in that order (tools/train/run/border_log.h).
 *
 * Threads: one. */
#ifndef BPT_TOOLS_REPLAY_TAIL_H
#define BPT_TOOLS_REPLAY_TAIL_H

#include "inner/network/network.h"
#include "storage/loader/loader.h"
#include "tools/train/options/train_options.h"
#include "tools/train/replay/replay_ranks.h"

typedef struct bpt_replay_tail bpt_replay_tail;

/** @param options of the run; .replay is its folder
 * @param ranks shape [n_workers]
 * @param n_workers at least 1
 * @param whole,pool borrowed
 * @param[out] tail caller owns, bpt_replay_tail_close(); NULL: every rank computed all layers
 * @return BPT_OK, BPT_EUSAGE (of a run that was resumed), BPT_EDATA (names file, line and field),
 *         BPT_EIO, BPT_ENOMEM, or as bpt_network_create() */
bpt_status bpt_replay_tail_open(const bpt_train_options *options, const bpt_replay_rank *ranks,
                                uint32_t n_workers, const bpt_model *whole, bpt_pool *pool,
                                bpt_replay_tail **tail);
void bpt_replay_tail_close(bpt_replay_tail *tail);

/** @return the model of what each worker trains, whose vector comes before the tail's */
const bpt_model *bpt_replay_tail_head(const bpt_replay_tail *tail);

/** Reads or writes the weights of the tail. @param flat shape [its elements] */
bpt_status bpt_replay_tail_get(bpt_replay_tail *tail, float *flat);
bpt_status bpt_replay_tail_set(bpt_replay_tail *tail, const float *flat);

/** @return whether the next update is by a step of this worker */
bool bpt_replay_tail_is_next(const bpt_replay_tail *tail, uint32_t worker);

/** @return whether all updates are made */
bool bpt_replay_tail_is_over(const bpt_replay_tail *tail);

/** Repeats a step, whose update is the next.
 * @param head of the worker
 * @return as bpt_network_train(), BPT_EDATA (the log names another rate) */
bpt_status bpt_replay_tail_step(bpt_replay_tail *tail, bpt_network *head, const bpt_batch *batch,
                                bpt_draw draw, float rate, bpt_batch_result *result);

#endif
