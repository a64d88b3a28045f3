/** @file outer/exchange/exchange.h
 * The outer layer put together: a worker pushes what it learnt and gets the global values back,
 * while every rank also hosts a shard of them, which may be empty.
 *
 * A worker sends to the host of each shard that shard's part of its vector (a delta or weights, as
 * the rule says) and gets the shard back. An asynchronous rule applies what arrives at
 * once and answers its sender alone; a synchronous one waits for all workers. Within a shard a
 * reply is one version, never a mix. All of it runs on the MPI thread; the training thread fills
 * its outbox, goes on, and looks again when it likes. Each rank sends 4 n bytes of payload per push
 * and gets 4 n back, in chunks, whatever the number of ranks. What stays on a rank takes no
 * message.
 *
 * Across shards an asynchronous answer may be a mix: each shard answers at its own moment, and has
 * by then taken pushes that another had not. A push updates every shard exactly once, so versions
 * of shards compare, and bpt_reply.spread is by how many pushes the newest is ahead of the oldest.
 * A worker has one push under way at a time. With a staleness bound S a shard that applies number q
 * of a worker has applied q-S-1 to q+S of every other, so that two shards of one answer are at most
 * (m-1)(2S+1) pushes apart: m-1 with S = 0. Without a bound they are by as many as the others make
 * between the first answer and the last. At a meeting, and under a synchronous rule, it is 0.
 *
 * A rule of no values has one shard, of nothing, on rank 0: there all hear how far all are and when
 * to meet.
 *
 * Servers: with n_servers the last ranks of the job host all shards and push nothing, and the
 * others, which are the workers, host none. A worker then waits for servers alone, never for
 * another worker but where the rule or the bound on staleness says so, and all that is pushed or
 * answered goes over a wire. Workers are ranks 0, 1, ..., so that a rank's number is that of its
 * worker, and rules, clocks, shares and logs know of no others.
 *
 * Meetings: where a reply says `meet`, the worker ends what it is at and pushes once more; that
 * push is answered when those of all ranks are applied, and the answer has `met` set and brings the
 * same weights to every rank. A worker that has long to go to its next push hears of the meeting
 * from the first such push that reaches the shard hosted on its rank, if one is:
 * bpt_exchange_called(). Under
 * a synchronous rule every reply is such a moment, so `met` comes at once and `meet` never.
 *
 * Memory: 2 n floats a rank, and what its shard and the terms of the update take
 * (bpt_exchange_bytes(), bpt_exchange_server_bytes()); nothing is allocated after create but where
 * shares of the data are computed anew, which on the host of shard 0 is on the MPI thread, for the
 * table of a new round, and for lines of the update log that wait longer than usual for the
 * training thread, which writes them. Errors: a rank on which a call fails reports and ends the job
 * with bpt_comm_abort(). Threads: the functions are called by one thread of the rank, the training
 * thread. */
#ifndef BPT_OUTER_EXCHANGE_H
#define BPT_OUTER_EXCHANGE_H

#include "base/json.h"
#include "base/status.h"
#include "outer/comm/comm.h"
#include "outer/data/partition.h"
#include "outer/exchange/coordinator.h"
#include "outer/exchange/shard.h"
#include "outer/rules/merge.h"
#include "outer/rules/staleness.h"
#include "outer/rules/update_rule.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef struct bpt_exchange bpt_exchange;

/** What an exchange is made from. */
typedef struct bpt_exchange_options {
    const bpt_update_rule *rule;
    bpt_update_terms terms;    /* the same on all ranks */
    bpt_statistics statistics; /* elements that no term is for; borrowed */
    size_t n_elements;         /* n; 0 with a rule of no values */
    uint32_t n_servers;        /* the last ranks, which host all shards and push nothing; less than
                                  there are ranks. 0: every rank pushes and hosts a shard, of a
                                  rule of no values rank 0 alone */
    uint32_t (*wants)(void);   /* on a server: BPT_MEET_* bits that it asks for since the last call,
                                  mostly 0; called on the MPI thread. NULL: never any */
    const float *initial;      /* the same bits on all ranks, shape [n]; copied */
    const float *velocity; /* of the server's momentum, as bpt_exchange_velocity() gave it, the same
                              on all ranks, shape [n]; copied. NULL: it begins at 0 */
    const double *part;    /* of the vector that each host has, as bpt_shard_table_create() takes
                              it, the same on all ranks; only read by create; NULL: all alike */
    uint32_t max_staleness; /* SSP bound, or BPT_STALENESS_NONE; asynchronous rules only */
    const bpt_coordinator_options *coordinator; /* read on the host of shard 0 and on servers */
    bpt_partition *partition; /* borrowed, without rounds; every reply adds what is given out. NULL:
                                 no partition (and coordinator->n_samples is 0), or a server */
    const char *log_path;     /* update log of this rank's shard, appended; NULL: none. Not of
                                 a rule of no values, nor where no shard is hosted */
    const bpt_json_doc *snapshot_doc;
    const bpt_json *snapshot; /* goes on from bpt_exchange_snapshot() of this rank in a job of the
                                 same ranks; `initial` then holds the values of that meeting. NULL:
                                 starts anew */
} bpt_exchange_options;

#define BPT_EXCHANGE_OPTIONS_INIT                                                                  \
    { .max_staleness = BPT_STALENESS_NONE }

/** What comes back for a push. */
typedef struct bpt_reply {
    const float *values;      /* global weights, shape [n]; borrowed, valid until the next push */
    const uint64_t *versions; /* of each shard, shape [n_shards]; borrowed likewise */
    uint64_t staleness; /* updates by others between the weights that the push started from and its
                           own, the largest over the shards: version - base - 1 */
    uint64_t spread;    /* updates by which the newest shard is ahead of the oldest */
    uint64_t progress;  /* samples trained on by all ranks */
    uint32_t met;       /* BPT_MEET_* bits: all ranks have these values now, for these reasons */
    uint32_t meet;      /* BPT_MEET_* bits: a meeting is called, the next push is for it */
} bpt_reply;

enum { BPT_STALENESS_BUCKETS = 64 };

/** Counts of this rank since create. Summed over the ranks, payload sent is 8 n bytes a push (4 n
 * there, 4 n back), and as much is received; that includes what stays on a rank. */
typedef struct bpt_exchange_stats {
    uint64_t pushes;                                     /* answered */
    uint64_t wait_ns;                                    /* time inside bpt_exchange_wait() */
    uint64_t payload_sent_bytes, payload_received_bytes; /* values, as worker and as host */
    uint64_t header_sent_bytes, header_received_bytes;   /* all else, likewise */
    uint64_t local_sent_bytes; /* of both kinds, to this rank itself: on no wire */
    uint64_t updates;          /* versions made of the shard hosted here */
    uint64_t held;             /* submissions to it that the staleness bound made wait */
    /** Submissions to it by staleness, also before a resume; the last bucket holds all beyond. */
    uint64_t staleness[BPT_STALENESS_BUCKETS];
    /** Answers that this rank took by their spread, likewise. */
    uint64_t spread[BPT_STALENESS_BUCKETS];
} bpt_exchange_stats;

/** @param part of the vector that the rank hosts, at most
 * @return bytes that an exchange of @p n_elements takes on a rank, but for headers and tables: two
 * vectors, the shard that it hosts, what the other ranks submit to that, with momentum the shard's
 * velocity, and with compensation what the other ranks were answered last */
size_t bpt_exchange_bytes(size_t n_elements, uint32_t n_ranks, double part,
                          const bpt_update_terms *terms);

/** @return bytes that it takes on a server, likewise: its shard, what the workers submit to it, and
 * what the terms take. A worker beside servers takes two vectors */
size_t bpt_exchange_server_bytes(size_t n_elements, uint32_t n_workers, double part,
                                 const bpt_update_terms *terms);

/** Makes the exchange; collective over the job. Gives the rounds known so far to the partition.
 * @param comm    borrowed while the exchange lives
 * @param options only read by this call, except what it says is borrowed
 * @param[out] x  caller owns, bpt_exchange_destroy()
 * @return BPT_OK; BPT_EUSAGE (more than 8192 hosts of shards; they differ in rule, terms, n or
 * initial weights; a coordinator for another number of ranks or samples), BPT_EDATA (snapshot
 * malformed or of another job), BPT_EIO or BPT_ENOSPC (update log), BPT_ENOMEM, BPT_EPEER,
 * BPT_ECOMM */
bpt_status bpt_exchange_create(bpt_comm *comm, const bpt_exchange_options *options,
                               bpt_exchange **x);

/** Ends it; collective over the job. Waits for the answer to a push that is outstanding, and
 * writes out the update log. NULL is
 * allowed.
 * @return BPT_OK, BPT_EIO or BPT_ENOSPC (update log), BPT_ECOMM; @p x is gone in any case */
bpt_status bpt_exchange_destroy(bpt_exchange *x);

/** On a server, in the place of pushes and waits: serves until rank @p root makes a
 * bpt_comm_broadcast(), which all workers take part in, and is given what that sends. What the
 * workers do meanwhile is no wait of this rank for them, and the watch knows it. Writes the update
 * log.
 * @param[out] data shape [bytes], bytes at most BPT_EXCHANGE_TOLD_BYTES
 * @return BPT_OK, BPT_ECOMM, BPT_EIO or BPT_ENOSPC (update log), BPT_ENOMEM */
bpt_status bpt_exchange_serve(bpt_exchange *x, uint32_t root, void *data, size_t bytes);

enum { BPT_EXCHANGE_TOLD_BYTES = 64 };

/** @return where the next submission is to be written: a delta or weights; shape [n].
 * The caller's but while a push is under way. What it holds after a push is what was pushed */
float *bpt_exchange_outbox(bpt_exchange *x);

/** Sends what is in the outbox; returns at once. The submission before has been waited for.
 * @return BPT_OK, BPT_ENUMERIC (the quality is no number > 0), or the error that ended the
 * exchange on this rank */
bpt_status bpt_exchange_push(bpt_exchange *x, const bpt_report *report);

/** @return whether bpt_exchange_wait() would return at once; one atomic load */
bool bpt_exchange_ready(const bpt_exchange *x);

/** Waits for the answer of the last push, and adds new rounds to the partition.
 * @param[out] reply
 * @return BPT_OK, BPT_ECOMM, BPT_EIO or BPT_ENOSPC (update log), BPT_ENOMEM */
bpt_status bpt_exchange_wait(bpt_exchange *x, bpt_reply *reply);

/** Looks whether a meeting is called that this rank has not come to; if so its next push is for it.
 * Asynchronous rules; not while a push is under way, whose answer may say more.
 * @return what the `meet` of the last answer said, or that other ranks have begun to meet since */
bool bpt_exchange_called(bpt_exchange *x);

/** @return how the vector is cut and placed; borrowed */
const bpt_shard_table *bpt_exchange_shards(const bpt_exchange *x);

/** Adds the state of this rank's host side (and on the host of shard 0 of the coordinator) at the
 * last meeting to a JSON text, as object @p key. To be called between that meeting and the next
 * push. With the values of the meeting, and with server momentum bpt_exchange_velocity(), it
 * suffices to go on; a synchronous rule then gives the same bits as without a stop. */
void bpt_exchange_snapshot(const bpt_exchange *x, bpt_json_writer *w, const char *key);

/** Gives every rank the velocity of the server's momentum, of all shards. Only of an exchange whose
 * terms have momentum. Collective; between a
 * meeting and the next push of any rank, which cannot be before all have come here.
 * @param[out] velocity shape [n]
 * @return BPT_OK, BPT_ECOMM */
bpt_status bpt_exchange_velocity(const bpt_exchange *x, float *velocity);

/** Copies the counts. */
void bpt_exchange_stats_get(bpt_exchange *x, bpt_exchange_stats *stats);

#endif
