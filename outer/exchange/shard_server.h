/** @file outer/exchange/shard_server.h
 * Inside of outer/: the host's side of an exchange. One shard, all workers.
 *
 * Each worker has one buffer here. It is either listening (a submission is awaited in it), or its
 * submission waits (for the staleness bound, a meeting, or the other workers of a round), or the
 * answer is being sent. Submissions are taken in the order in which they are complete.
 *
 * The worker on this rank, if it is one, sends no messages: its submission is read, and the answer
 * is written, where the worker has them.
 *
 * Threads: the MPI thread only, except create, free, save and load. */
#ifndef BPT_OUTER_SHARD_SERVER_H
#define BPT_OUTER_SHARD_SERVER_H

#include "outer/comm/transfers.h"
#include "outer/exchange/exchange.h"
#include "outer/exchange/update_log.h"

#include <stdatomic.h>
#include <stdbool.h>

/** Header of a submission; the worker's part of the shard follows. */
typedef struct bpt__up {
    uint64_t seq; /* of the worker's submissions, from 1 */
    uint64_t samples, busy_ns;
    double quality, rates;
    uint32_t covered, wants;
    uint32_t meeting; /* 1: to be answered when all have met */
    uint32_t unused;  /* 0, so that no byte is undefined */
} bpt__up;

/** Header of an answer; the shard follows. Where it is shard 0 that answers, the header ends with
 * what each worker holds after the latest round, uint32_t [n_workers]; else progress, met, meet,
 * rounds are 0. */
typedef struct bpt__down {
    uint64_t version, staleness;
    uint64_t progress;
    uint32_t met, meet;
    uint32_t rounds;
    uint32_t wants; /* BPT_MEET_* bits that the host asks for: the worker passes them on */
    uint32_t held[];
} bpt__down;

/** @return bytes of an answer's header */
size_t bpt__down_bytes(uint32_t shard, uint32_t n_workers);

/** @return tag of submissions to @p shard (@p up) or of its answers */
int bpt__tag(uint32_t shard, bool up);

typedef struct bpt__server bpt__server;

/** The worker on this rank: its part of this shard. Not looked at on a rank that is none. All
 * borrowed for the server's life. */
typedef struct bpt__own_worker {
    const bpt__up *up;
    const float *part; /* shape [n] */
    bpt__down *down;   /* of bpt__down_bytes() */
    float *values;     /* shape [n] */
} bpt__own_worker;

typedef struct bpt__server_options {
    const bpt_update_rule *rule;
    bpt_update_terms terms;
    bpt_statistics statistics;                      /* of the whole vector; borrowed */
    uint32_t n_workers, rank, shard, max_staleness; /* workers are ranks 0 to n_workers - 1 */
    size_t first;          /* element of the vector that the shard begins with */
    size_t n;              /* elements of the shard */
    const float *initial;  /* shape [n]; copied */
    const float *velocity; /* shape [n]; copied; NULL: 0 */
    bpt__own_worker own;
    uint32_t (*wants)(void);      /* as in bpt_exchange_options; NULL: never any */
    bpt_coordinator *coordinator; /* borrowed; NULL unless this is shard 0 */
    bpt_coordinator *met_state;   /* borrowed: takes a copy of the coordinator at each meeting */
    bpt__update_log *log;         /* borrowed; may be NULL */
    bpt_exchange_stats *stats;    /* borrowed */
    atomic_ullong *called;        /* borrowed: set to the number of the meeting, from 1, that a
                                     submission is for, as soon as one has come */
} bpt__server_options;

/** @param[out] s caller owns, bpt__server_free() @return BPT_OK, BPT_ENOMEM */
bpt_status bpt__server_create(const bpt__server_options *options, bpt__server **s);
void bpt__server_free(bpt__server *s);

/** @return requests that the group of @p worker needs */
size_t bpt__server_room(const bpt__server *s, uint32_t worker);

/** Listens to all workers. Worker j uses group j of @p t, borrowed from now on.
 * @return BPT_OK, BPT_ECOMM */
bpt_status bpt__server_start(bpt__server *s, bpt__transfers *t);

/** Group @p worker is complete: its submission is here, or its answer is sent.
 * @return BPT_OK, BPT_ECOMM, BPT_ENOMEM, BPT_EIO or BPT_ENOSPC (update log) */
bpt_status bpt__server_complete(bpt__server *s, uint32_t worker);

/** Takes a submission of the worker on this rank. Until it is answered the worker leaves it and the
 * place of the answer alone.
 * @return as bpt__server_complete() */
bpt_status bpt__server_take_own(bpt__server *s);

/** @return whether the last submission of the worker on this rank is answered */
bool bpt__server_own_answered(const bpt__server *s);

/** @return whether no answer is being sent */
bool bpt__server_idle(const bpt__server *s);

/** @return submissions of @p worker that were answered before, as loaded or 0 */
uint64_t bpt__server_seq(const bpt__server *s, uint32_t worker);

/** @return the velocity of the momentum, which there is, shape [n]; borrowed */
const float *bpt__server_velocity(const bpt__server *s);

/** @return submissions by staleness, shape [BPT_STALENESS_BUCKETS]; borrowed */
const uint64_t *bpt__server_staleness(const bpt__server *s);

/** Saves the state at the last meeting as members of an open JSON object; see
 * bpt_exchange_snapshot(). */
void bpt__server_save(const bpt__server *s, bpt_json_writer *w);

/** Saves or loads counts, as array @p key of an open object. @param counts shape [n]
 * @return BPT_OK, BPT_EDATA (missing, or another number of them) */
void bpt__save_counts(bpt_json_writer *w, const char *key, size_t n, const uint64_t *counts);
bpt_status bpt__load_counts(const bpt_json_doc *doc, const bpt_json *state, const char *key,
                            size_t n, uint64_t *counts);

/** Goes on from a saved state, before start. @return BPT_OK, BPT_EDATA */
bpt_status bpt__server_load(bpt__server *s, const bpt_json_doc *doc, const bpt_json *state);

#endif
