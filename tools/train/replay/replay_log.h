/** @file tools/train/replay/replay_log.h
 * The logs of an agwu or easgd run, read back and checked.
 *
 * Every field of every line is checked: type and range, against the lines before, and what the logs
 * of different ranks say about the same event against each other. An error names file, line and
 * field. What no other line speaks of is the quality of an update where ranks were judged; it is
 * only seen to be a share.
 *
 * Threads: one. */
#ifndef BPT_TOOLS_REPLAY_LOG_H
#define BPT_TOOLS_REPLAY_LOG_H

#include "base/status.h"
#include "outer/rules/update_rule.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/** What the logs have to agree with. */
typedef struct bpt_replay_facts {
    const char *run; /* its folder */
    const bpt_update_rule *rule;
    double elasticity;      /* of easgd */
    bool judged;            /* updates have a quality; else it is 1 */
    uint64_t n_samples;     /* of the training split */
    uint64_t batch;         /* samples of a worker's step */
    uint64_t first_every;   /* steps before the first push */
    uint64_t least_every;   /* steps between two, at least, and */
    uint64_t most_every;    /* at most */
    uint32_t n_rounds;      /* in which the data are given out */
    bool rebalances;        /* afterwards more rounds may move samples */
    uint32_t max_staleness; /* BPT_STALENESS_NONE: no bound */
    uint32_t n_servers; /* ranks beside the workers that hosted all shards; 0: the workers did */
} bpt_replay_facts;

/** One push of a worker and its answer. */
typedef struct bpt_replay_push {
    size_t line;                   /* of the log, from 1 */
    uint64_t pushed_at, landed_at; /* after how many steps of the worker */
    uint64_t every;                /* steps from this push until the next is due */
    uint64_t progress;             /* told in the answer */
    bool met;                      /* answered when all had met */
    bool asks;                     /* came before it was due, for a meeting: the next is that */
} bpt_replay_push;

/** One pass of a worker over its data. */
typedef struct bpt_replay_pass {
    size_t line;
    uint32_t rounds; /* that it covered */
} bpt_replay_pass;

/** What one worker did. */
typedef struct bpt_replay_worker {
    bpt_replay_push *pushes; /* in order; number i has sequence number i + 1; shape [n_pushes] */
    size_t n_pushes, pushes_capacity;
    bpt_replay_pass *passes; /* shape [n_passes] */
    size_t n_passes, passes_capacity;
    uint32_t *held;      /* samples of each rank after each round: [n_rounds][n_workers] */
    size_t *round_lines; /* shape [n_rounds] */
    size_t n_rounds, held_capacity, round_lines_capacity;
    size_t n_lines;
} bpt_replay_worker;

/** One applied update of a shard: number i is on line i + 1 and made version i + 1. */
typedef struct bpt_replay_update {
    uint32_t worker;
    uint64_t seq, base, staleness, lead;
    double gamma, quality; /* the submission was multiplied by (float)(gamma * quality) */
} bpt_replay_update;

typedef struct bpt_replay_shard {
    bpt_replay_update *updates; /* in order of version; shape [n] */
    size_t n, capacity;
} bpt_replay_shard;

typedef struct bpt_replay_logs {
    uint32_t n_workers;
    bpt_replay_worker *workers;    /* shape [n_workers] */
    uint32_t n_shards, first_host; /* rank first_host + s hosted shard s */
    bpt_replay_shard *shards;      /* shape [n_shards] */
} bpt_replay_logs;

/** Counts the workers of a run by their logs.
 * @param[out] n at least 1
 * @return BPT_OK, BPT_EUSAGE (no logs there: not an agwu run), BPT_ENOMEM */
bpt_status bpt_replay_count_workers(const char *run, uint32_t *n);

/** Reads all logs in a run's folder.
 * @param facts only read by this call
 * @param[out] logs released by bpt_replay_logs_free()
 * @return BPT_OK, BPT_EUSAGE (of a run that was resumed), BPT_EDATA, BPT_EIO, BPT_ENOMEM */
bpt_status bpt_replay_logs_read(const bpt_replay_facts *facts, uint32_t n_workers,
                                bpt_replay_logs *logs);
void bpt_replay_logs_free(bpt_replay_logs *logs);

#endif
