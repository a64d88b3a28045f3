/** @file outer/exchange/exchange_state.h
 * Inside of outer/: what exchange.c (pushes and answers) and exchange_create.c share. */
#ifndef BPT_OUTER_EXCHANGE_STATE_H
#define BPT_OUTER_EXCHANGE_STATE_H

#include "outer/comm/comm_thread.h"
#include "outer/comm/transfers.h"
#include "outer/exchange/exchange.h"
#include "outer/exchange/shard_server.h"
#include "outer/exchange/update_log.h"

#include <pthread.h>
#include <stdatomic.h>

/* Who may touch the buffers: in PUSHED the MPI thread, else the training thread. The training
 * thread sets PUSHED, the MPI thread ends it. */
enum bpt__phase { BPT__IDLE, BPT__PUSHED, BPT__ANSWERED, BPT__FAILED };

struct bpt_exchange {
    bpt__job job; /* first: the MPI thread is given this */
    bpt_comm *comm;
    uint32_t m, rank; /* m: workers, ranks 0 to m - 1 */
    uint32_t hosted;  /* number of the shard that is hosted here, or BPT__NO_SHARD */
    size_t n;
    bpt_partition *partition; /* borrowed, may be NULL */
    bpt_shard_table *shards;

    /* Host side, MPI thread. */
    bpt__server *server;                      /* NULL where no shard is hosted */
    bpt_coordinator *coordinator, *met_state; /* on the host of shard 0, else NULL */
    bpt__update_log *log;                     /* may be NULL */
    bpt__transfers *transfers; /* groups 0..m-1: the server's workers; m: this worker's push */
    uint32_t *complete;        /* [m + 1], scratch */
    bpt_exchange_stats stats;  /* without .wait_ns and .spread (below), .staleness
                                  (server) */

    /* Worker side. */
    atomic_int phase;        /* enum bpt__phase; release by who ends it, acquire by who reads on */
    pthread_mutex_t mutex;   /* with it `answered`; guards nothing else */
    pthread_cond_t answered; /* phase left PUSHED */
    bpt_error error;         /* once FAILED */
    atomic_bool stopping;    /* release in destroy, acquire in poll */
    bool posted;             /* MPI thread: the push is under way */
    bool moving;             /* MPI thread: its messages to other ranks and their answers are */
    bool meeting;            /* training thread: the next push is for a meeting */
    uint64_t n_met;          /* training thread: meetings come to since create */
    atomic_ullong called;    /* of the first n meetings since create, the MPI thread has heard */
    uint64_t seq;            /* of the last push */
    bpt__up up;              /* same header for all shards */
    char *down;              /* [n_shards][down_stride] */
    size_t down_stride;
    float *sent, *values; /* [n]; NULL on a server */
    uint64_t *versions;   /* [n_shards] */
    uint64_t wait_ns;
    uint64_t spread[BPT_STALENESS_BUCKETS]; /* as in bpt_exchange_stats */
    const char *waits_at;                   /* for an answer; for people */
    uint32_t wants;                         /* of servers, to be passed on with the next push */

    /* Server, training thread. */
    bpt__collective hearing; /* what bpt_exchange_serve() waits for, and where it comes */
    char told[BPT_EXCHANGE_TOLD_BYTES];
};

#define BPT__NO_SHARD UINT32_MAX

/** @return whether this rank pushes */
bool bpt__exchange_works(const bpt_exchange *x);

/** @return bytes of the values of shard @p s */
size_t bpt__exchange_shard_bytes(const bpt_exchange *x, uint32_t s);

/** @return where the header of shard @p s's answer is received */
bpt__down *bpt__exchange_down(const bpt_exchange *x, uint32_t s);

/** Poll function of the exchange's job. */
bpt_status bpt__exchange_poll(bpt__job *job, bool *moved, bool *done);

#endif
