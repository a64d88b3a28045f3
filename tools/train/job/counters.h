/** @file tools/train/job/counters.h
 * What a rank has done since its run began, in however many parts: a checkpoint stores it, a
 * resumed job goes on counting from there. What was done after the last checkpoint and lost is not
 * in it.
 *
 * Threads: any. */
#ifndef BPT_TOOLS_COUNTERS_H
#define BPT_TOOLS_COUNTERS_H

#include "base/json.h"

typedef struct bpt_counters {
    uint64_t progress;     /* samples trained on by all ranks, as last heard */
    uint64_t unreported;   /* of this rank since the last exchange was answered; 0 when stored */
    uint64_t steps;        /* this and all below: of this rank */
    uint64_t samples;      /* trained on */
    uint64_t compute_ns;   /* inside training steps, waiting for data included */
    uint64_t step_ns;      /* of that, computing */
    uint64_t path_ns;      /* on the longest path through the tasks of each step */
    uint64_t work_ns;      /* in tasks of steps, all of them shared evenly by the workers; like
                            * path_ns 0 where a network is in two parts */
    uint64_t wait_ns;      /* for other ranks */
    uint64_t data_wait_ns; /* for the loader */
    uint64_t eval_ns;      /* in evaluations */
    uint64_t quality_ns;   /* judging the rank's own weights, before its pushes */
    uint64_t comm_cpu_ns;  /* processor time of the MPI thread */
    uint64_t submissions;  /* pushes that were answered */
    uint64_t payload_sent_bytes, payload_received_bytes; /* as in bpt_exchange_stats */
    uint64_t header_sent_bytes, header_received_bytes;
    uint64_t border_sent_bytes, border_received_bytes; /* of the payload: across the border of a
                                                        * network in two parts */
    uint64_t peak_rss_bytes;                           /* of the process with the largest */
    double seconds; /* in training; the time between two parts of a run is not counted */
} bpt_counters;

/** Adds the counters to the object that is open. */
void bpt_counters_put(const bpt_counters *c, bpt_json_writer *w);

/** Reads what bpt_counters_put() wrote, also in an earlier version: what that did not count is 0,
 * and all its time in steps counts as work. @return BPT_OK, BPT_EDATA */
bpt_status bpt_counters_get(const bpt_json_doc *doc, const bpt_json *object, bpt_counters *c);

#endif
