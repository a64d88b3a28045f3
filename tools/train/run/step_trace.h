/** @file tools/train/run/step_trace.h
 * bpt-train --trace: what every worker of every rank did in some of the steps, what the thread that
 * trains waited for, and the messages that were completed meanwhile, as one file for a viewer of
 * trace events.
 *
 * A rank that makes no steps, which serves, records nothing. All functions do nothing with a NULL
 * trace.
 * Threads: the one that trains. */
#ifndef BPT_TOOLS_STEP_TRACE_H
#define BPT_TOOLS_STEP_TRACE_H

#include "outer/comm/comm.h"
#include "scheduler/pool.h"
#include "tools/train/options/train_options.h"

typedef struct bpt_step_trace bpt_step_trace;

/** Opens the file for writing as the join of the ranks' parts will, and leaves what is there.
 * @return BPT_OK, BPT_EIO, BPT_ENOSPC */
bpt_status bpt_step_trace_try(const char *path);

/** Reserves room and makes sure that the file can be written, and each rank's hidden part beside
 * it; leaves neither, and a file that is there as it is. Removes parts that killed jobs left beside
 * a trace of this name. Collective: ranks of one machine share a
 * time 0; that of others is when they come here.
 * @param comm borrowed; NULL: there is one rank
 * @param pool borrowed, outlives the trace; NULL: this rank makes no steps
 * @param[out] trace caller owns, bpt_step_trace_close(); NULL without --trace
 * @return BPT_OK, BPT_ENOMEM, BPT_EIO, BPT_ENOSPC, BPT_ECOMM, BPT_EPEER */
bpt_status bpt_step_trace_open(const bpt_train_options *options, bpt_comm *comm, bpt_pool *pool,
                               bpt_step_trace **trace);
void bpt_step_trace_close(bpt_step_trace *trace);

/** @return bytes that --trace takes of a rank with so many workers; 0 without it */
size_t bpt_step_trace_bytes(const bpt_train_options *options, unsigned n_workers);

/** Records from here on if --trace-steps names this step, counted from 1 since the trace was
 * opened: what a job that goes on has done before is in the trace of that part.
 * @param step number to be shown: that of this rank's step in the run, from 1 */
void bpt_step_trace_begin(bpt_step_trace *trace, uint64_t step);

/** Notes the step that ends now. */
void bpt_step_trace_end(bpt_step_trace *trace);

/** Notes that this thread waited for @p what (a string that stays) from @p begin_ns until now. */
void bpt_step_trace_wait(bpt_step_trace *trace, const char *what, uint64_t begin_ns);

/** Stops recording until the next step: what follows is no part of one. */
void bpt_step_trace_pause(bpt_step_trace *trace);

/** Writes this rank's part; rank 0 joins the parts to one file. Where it sees not all of them they
 * stay; if it fails none does. Where no rank has recorded a step, a file that is there stays as it
 * is. Collective.
 * @return BPT_OK, BPT_ENOMEM, BPT_EIO, BPT_ENOSPC, BPT_EPEER, BPT_ECOMM */
bpt_status bpt_step_trace_write(bpt_step_trace *trace);

#endif
