/** @file tools/train/job/checkpoint_state.h
 * rank-N.json of a checkpoint: where a rank stands, and what job that was.
 *
 * Threads: the one that trains. */
#ifndef BPT_TOOLS_CHECKPOINT_STATE_H
#define BPT_TOOLS_CHECKPOINT_STATE_H

#include "base/json.h"
#include "tools/train/job/checkpoint.h"

/** @return vectors of state that the shards have beside the weights */
uint64_t bpt_checkpoint_velocities(const bpt_job *job);

/** Writes where the job stands. */
void bpt_checkpoint_put_state(const bpt_job *job, bpt_json_writer *w);

/** Reads it from c->state, and compares the job that wrote it with this one: fills in all of @p c
 * but its path.
 * @param path of the file, for messages
 * @return BPT_OK, BPT_EDATA (also another format, with hint) */
bpt_status bpt_checkpoint_get_state(const bpt_job *job, const char *path, bpt_checkpoint *c);

/** Reads --batch-size of the job that wrote the state.
 * @param n_ranks,servers of a job that may go on
 * @param[out] batch 0: that has other ranks than those of the state, or these merged no weights
 * @return BPT_OK, BPT_EDATA */
bpt_status bpt_checkpoint_get_batch(const bpt_json_doc *state, uint32_t n_ranks, int64_t servers,
                                    int64_t *batch);

#endif
