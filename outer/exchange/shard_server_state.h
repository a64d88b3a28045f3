/** @file outer/exchange/shard_server_state.h
 * Inside of outer/: what shard_server.c (messages and updates) and shard_server_state.c (creating,
 * saving, loading) share. */
#ifndef BPT_OUTER_SHARD_SERVER_STATE_H
#define BPT_OUTER_SHARD_SERVER_STATE_H

#include "outer/exchange/shard_server.h"

enum bpt__worker_state {
    BPT__LISTENING, /* its next submission is awaited */
    BPT__WAITING,   /* the submission is here, not yet applied */
    BPT__MEETING,   /* applied; answered when all have met */
    BPT__ANSWERING, /* the answer is being sent */
};

/* What a checkpoint stores. */
typedef struct bpt__counters {
    uint64_t version;
    uint64_t staleness[BPT_STALENESS_BUCKETS];
    uint64_t *seq;   /* submissions taken, [m] */
    double *quality; /* [m]: latest; 0 before the first */
} bpt__counters;

struct bpt__server {
    bpt__server_options options; /* without .initial and .velocity */
    bpt__transfers *transfers;
    bpt__counters now, met; /* met: as they were at the last meeting */
    float *global;          /* [n]: the shard */
    float *velocity;        /* [n]: of the server's momentum; NULL: none */
    float *buffer_block;    /* [of workers on other ranks][n], each buffer starts on a cache line */
    float *answer_block;    /* likewise, with compensation; NULL: none */
    float **buffer;         /* [m]: submission of each worker on another rank; else NULL */
    float **answer;         /* [m]: asynchronous answer of each worker, where its submission
                               was; with compensation in a place of its own, where it stays:
                               the weights that the next submission grows from. Of the worker
                               on this rank, the answer's place */
    const float **part;     /* [m]: submissions */
    bpt__up *up;            /* [m] */
    char *down;             /* [m][down_bytes] */
    size_t down_bytes;      /* of each answer's header */
    enum bpt__worker_state *state; /* [m] */
    uint32_t *queue;               /* [m]: workers BPT__WAITING in order of arrival */
    uint32_t n_queue;
    uint32_t n_meeting; /* workers BPT__MEETING */
    uint64_t n_met;     /* meetings since create */
    bool *held;         /* [m]: counted as held by the bound */

    uint64_t *base;      /* [m]: version last sent to each worker */
    uint64_t *staleness; /* [m]: of the latest submission, once applied */
    double *gamma;       /* [m], scratch */
    float *factor;       /* [m], scratch */
    bpt_clocks clocks;   /* since the last meeting */
};

/** Keeps the counters as they are now, a meeting, for bpt__server_save(). */
void bpt__server_keep(bpt__server *s);

#endif
