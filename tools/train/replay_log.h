/** @file tools/train/replay_log.h
 * The logs of an agwu run, read back.
 *
 * Threads: one. */
#ifndef BPT_TOOLS_REPLAY_LOG_H
#define BPT_TOOLS_REPLAY_LOG_H

#include "base/status.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/** One push of a worker and its answer. */
typedef struct bpt_replay_push {
    uint64_t pushed_at, landed_at; /* after how many steps of the worker */
    uint64_t progress;             /* told in the answer */
    bool met;                      /* answered when all had met */
} bpt_replay_push;

/** What one worker did. */
typedef struct bpt_replay_worker {
    bpt_replay_push *pushes; /* in order; number i has sequence number i + 1; shape [n_pushes] */
    size_t n_pushes, pushes_capacity;
    uint32_t *pass_rounds; /* rounds that each pass covered; shape [n_passes] */
    size_t n_passes, passes_capacity;
    uint32_t *round_counts; /* samples of each rank in each round: [n_rounds][n_workers] */
    size_t n_rounds, counts_capacity;
} bpt_replay_worker;

/** One applied update of a shard. */
typedef struct bpt_replay_update {
    uint32_t worker;
    uint64_t version, seq;
    float factor; /* what the delta was multiplied by */
} bpt_replay_update;

typedef struct bpt_replay_shard {
    bpt_replay_update *updates; /* in order of version; shape [n] */
    size_t n, capacity;
} bpt_replay_shard;

typedef struct bpt_replay_logs {
    uint32_t n_workers;
    bpt_replay_worker *workers; /* shape [n_workers] */
    bpt_replay_shard *shards;   /* shape [n_workers]: one shard a rank */
} bpt_replay_logs;

/** Reads all logs in a run's folder.
 * @param[out] logs released by bpt_replay_logs_free()
 * @return BPT_OK, BPT_EUSAGE (no logs there: not an agwu run), BPT_EDATA, BPT_EIO, BPT_ENOMEM */
bpt_status bpt_replay_logs_read(const char *run, bpt_replay_logs *logs);
void bpt_replay_logs_free(bpt_replay_logs *logs);

#endif
