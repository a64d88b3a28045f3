/** @file tools/train/replay/replay_state.h
 * Inside of tools/train/replay/: what a replay has at hand; of replay.c, replay_open.c and
 * replay_run.c alone.
 *
 * Threads: one. */
#ifndef BPT_TOOLS_REPLAY_STATE_H
#define BPT_TOOLS_REPLAY_STATE_H

#include "inner/network/network.h"
#include "inner/schedules/schedule.h"
#include "outer/data/sampler.h"
#include "outer/exchange/shard.h"
#include "outer/rules/merge.h"
#include "outer/rules/update_rule.h"
#include "storage/loader/loader.h"
#include "tools/train/exchange/momentum_of_all.h"
#include "tools/train/options/train_options.h"
#include "tools/train/replay/replay_log.h"
#include "tools/train/replay/replay_progress.h"
#include "tools/train/replay/replay_ranks.h"
#include "tools/train/replay/replay_tail.h"
#include "tools/tuned_file.h"

/* A worker of the run, as far as it has been repeated. */
typedef struct bpt__replayed {
    const bpt_replay_worker *log;
    bpt_tuned *tuned; /* NULL: the rank was not */
    bpt_network *network;
    bpt_sampler *sampler;
    float *base;             /* as in train_deltas.c; shape [n] */
    float *pushed;           /* likewise */
    float *part;             /* submission that is being applied: delta or weights; shape [n] */
    float *answer;           /* global weights for it, shard by shard; shape [n] */
    uint32_t answered;       /* shards that the answer holds */
    size_t next_push;        /* index of the push that comes next or is under way */
    bool pending;            /* that push is under way */
    uint64_t steps, samples; /* done */
    uint64_t pushed_samples; /* at the last push */
    uint64_t progress, unreported;
    double rates; /* learning rates since the last push */
    bpt_momentum_of_all momentum;
    float compensation; /* of the push that is under way */
} bpt__replayed;

/* Of a replay. */
typedef struct bpt__replay {
    const bpt_train_options *o;
    bpt_update_choice update; /* AGWU or EASGD */
    const bpt_update_rule *rule;
    bpt_update_terms terms;
    bpt_replay_logs logs;
    bpt_replay_rank *ranks; /* shape [m] */
    bpt_dataset *dataset;
    const bpt_split *split;
    uint64_t n_held, n_samples; /* of the split: held out; left to train on */
    uint32_t *records;          /* bpt_held_out_draw(); NULL where none are held out */
    bpt_model *model;           /* whole */
    const bpt_model *trained;   /* what workers train: the whole, or its head */
    bpt_replay_tail *tail;      /* NULL: they train the whole */
    bpt_pool *pool;
    bpt_partition *shares;
    bpt_loader *loader;
    bpt_shard_table *shards;
    bpt_span *statistics; /* shape [n_statistics] */
    size_t n_statistics;
    double lr_factor; /* of --lr: bpt_train_lr_factor() */
    bpt_schedule schedule;
    bpt_replay_progress progress;
    bpt__replayed *workers; /* shape [m] */
    float *global;          /* shape [n_all]; of the tail only at the begin and at the end */
    float *exchanged;       /* of these, what is exchanged; shape [n] */
    float *velocity;        /* shape [n]; NULL without momentum of the server */
    float *scratch;         /* shape [n] */
    float *final;           /* weights that the run ended with; shape [n_all] */
    size_t *applied;        /* updates applied, of each shard; shape [n_shards] */
    uint32_t *n_met;   /* of each shard: pushes of the present meeting applied; shape [n_shards] */
    uint32_t *indices; /* shape [batch] */
    uint32_t *passes;  /* shape [batch] */
    uint32_t m;
    size_t n, n_all; /* elements that are exchanged, of the whole model */
} bpt__replay;

/** Opens all that the run was made of, and its logs. On an error too bpt__replay_close() is due.
 * @param r all zeros but its options
 * @return as bpt_replay() */
bpt_status bpt__replay_open(bpt__replay *r);
void bpt__replay_close(bpt__replay *r);

/** Cuts the convolutions of networks that are made from now on as those of a rank were. */
void bpt__replay_use_cuts(const bpt__replay *r, uint32_t rank);

/** Whether the machine has memory for the workers' networks, vectors and batches, which are not
 * there yet; model, dataset, pool, ranks and what they were tuned by are.
 * @return BPT_OK, BPT_EUSAGE (with hint), as bpt_network_plan() */
bpt_status bpt__replay_check_memory(const bpt__replay *r);

/** @return where a worker stands, as in train_deltas.c */
bpt_answer_point bpt__replay_point(const bpt__replay *r, const bpt__replayed *w);

/** Repeats all steps, pushes and merges; the weights that come of it are in r->global.
 * @return BPT_OK, BPT_EDATA (logs that do not fit together), as bpt_network_train() and
 *         bpt_loader_next() */
bpt_status bpt__replay_run(bpt__replay *r);

#endif
