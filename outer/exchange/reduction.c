#include "outer/exchange/reduction.h"

#include "base/checksum.h"
#include "base/memory.h"
#include "outer/comm/alike.h"
#include "outer/comm/comm_thread.h"
#include "outer/comm/first_error.h"
#include "outer/comm/transfers.h"
#include "outer/exchange/shard.h"

#include <assert.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <string.h>

/* Groups of messages that each bucket has. */
enum { GATHER, OWN, ANSWER, N_GROUPS };

/* A bucket is the caller's, is given, is being summed. Who gives makes it GIVEN, the MPI thread
 * what comes then; who makes it FREE tells, so that each is told of once. */
enum bucket_state { FREE, GIVEN, GOING };

typedef struct bucket {
    atomic_int state; /* enum bucket_state; release by who hands it on, acquire by who takes */
    bpt_shard_table *pieces; /* of the bucket: elements count from its begin */
    size_t begin;
    float *gathered;              /* the own piece as others have it, shape [m - 1][piece] */
    bool has_pieces;              /* all of the own piece are here */
    bool receives;                /* own pieces have left: their sums are awaited */
    bool has_answers;             /* they are here */
    bool is_summed, has_answered; /* the own piece; and it has left for all others */
} bucket;

struct bpt_reduction {
    bpt__job job; /* first: the MPI thread is given this */
    bpt_comm *comm;
    uint32_t m, rank, n_buckets;
    size_t n;
    float *vector;             /* [n] */
    bucket *buckets;           /* [n_buckets] */
    const float **parts;       /* [m], scratch */
    bpt__transfers *transfers; /* N_GROUPS of each bucket */
    uint32_t *complete;        /* [N_GROUPS x n_buckets], scratch */
    atomic_bool stopping;
    bpt_error error;    /* once failed */
    atomic_bool failed; /* the MPI thread polls no longer; set after `error` */
    void (*summed)(void *context, uint32_t bucket, bpt_status status);
    void *context;
    bpt_reduction_stats stats;
};

static uint32_t group_of(uint32_t b, int kind) {
    return N_GROUPS * b + (uint32_t)kind;
}

static int tag_of(uint32_t b, bool answer) {
    return BPT__TAG_REDUCTION + (int)(2 * b + (answer ? 1 : 0));
}

static size_t piece_length(const bucket *k, uint32_t rank) {
    const bpt_shard *piece = bpt_shard_at(k->pieces, rank);
    return piece->end - piece->begin;
}

/* @return where the piece of @p rank lies in the vector */
static float *piece_of(const bpt_reduction *r, const bucket *k, uint32_t rank) {
    return r->vector + k->begin + bpt_shard_at(k->pieces, rank)->begin;
}

/* ---- MPI thread ---- */

static bpt_status advance(bpt_reduction *r, uint32_t b, int kind);

/* After a group's messages were posted: where there are none it is complete at once. */
static bpt_status posted(bpt_reduction *r, uint32_t b, int kind) {
    return bpt__transfers_pending(r->transfers, group_of(b, kind)) ? BPT_OK : advance(r, b, kind);
}

/* The own piece of a bucket that is not given here: others may be ahead. */
static bpt_status gather(bpt_reduction *r, uint32_t b) {
    bucket *k = &r->buckets[b];
    const size_t n = piece_length(k, r->rank);
    for (uint32_t i = 1; i < r->m; i++)
        BPT_TRY(bpt__transfers_recv(r->transfers, group_of(b, GATHER), k->gathered + (i - 1) * n,
                                    n * sizeof(float), (r->rank + i) % r->m, tag_of(b, false)));
    k->has_pieces = bpt__transfers_pending(r->transfers, group_of(b, GATHER)) == 0;
    return BPT_OK;
}

/* Not all ranks to the same one at once. */
static bpt_status send_own(bpt_reduction *r, uint32_t b) {
    bucket *k = &r->buckets[b];
    for (uint32_t i = 1; i < r->m; i++) {
        const uint32_t to = (r->rank + i) % r->m;
        BPT_TRY(bpt__transfers_send(r->transfers, group_of(b, OWN), piece_of(r, k, to),
                                    piece_length(k, to) * sizeof(float), to, tag_of(b, false)));
    }
    return posted(r, b, OWN);
}

/* Sums come where the pieces were, so these have to have left.
 *
 * So a rank that is sent a sum may not listen yet. What comes meanwhile of small chunks MPI keeps:
 * at most all sums of the step, and of the next step all pieces. Of large ones it asks first, and
 * what the sender has for the rank stands in line behind (transfers.h). Ranks cannot wait for each
 * other in a circle all the same, since every message, and every chunk of one, waits only for some
 * that were handed over before it, on whatever rank:
 * - a sum, for the receiver's pieces of the bucket to leave: the sender has summed one of them;
 * - a piece, for the receiver to be through with the bucket as it was given last: the sender gives
 *   it again only when it has all sums of that, so that every rank had handed over all of its own;
 * - any, for what the sender handed over for the same rank before: a receive that begins only when
 *   an earlier chunk of its message has come waits for no more. */
static bpt_status receive_answers(bpt_reduction *r, uint32_t b) {
    bucket *k = &r->buckets[b];
    k->receives = true;
    for (uint32_t i = 1; i < r->m; i++) {
        const uint32_t from = (r->rank + i) % r->m;
        BPT_TRY(bpt__transfers_recv(r->transfers, group_of(b, OWN), piece_of(r, k, from),
                                    piece_length(k, from) * sizeof(float), from, tag_of(b, true)));
    }
    return posted(r, b, OWN);
}

static bpt_status send_answers(bpt_reduction *r, uint32_t b) {
    bucket *k = &r->buckets[b];
    for (uint32_t i = 1; i < r->m; i++)
        BPT_TRY(bpt__transfers_send(r->transfers, group_of(b, ANSWER), piece_of(r, k, r->rank),
                                    piece_length(k, r->rank) * sizeof(float), (r->rank + i) % r->m,
                                    tag_of(b, true)));
    return posted(r, b, ANSWER);
}

/* In blocks that stay in cache, since the sum takes the place of a part. */
static void sum(const float *const *parts, uint32_t n_parts, size_t n, float *out) {
    enum { BLOCK = 1024 };
    float block[BLOCK];
    for (size_t at = 0; at < n; at += BLOCK) {
        const size_t length = n - at < BLOCK ? n - at : BLOCK;
        memcpy(block, parts[0] + at, length * sizeof *block);
        for (uint32_t j = 1; j < n_parts; j++)
            for (size_t i = 0; i < length; i++) block[i] += parts[j][at + i];
        memcpy(out + at, block, length * sizeof *block);
    }
}

static bpt_status sum_own(bpt_reduction *r, uint32_t b) {
    bucket *k = &r->buckets[b];
    const size_t n = piece_length(k, r->rank);
    float *own = piece_of(r, k, r->rank);
    for (uint32_t i = 0; i < r->m; i++)
        r->parts[(r->rank + i) % r->m] = i == 0 ? own : k->gathered + (i - 1) * n;
    sum(r->parts, r->m, n, own);
    k->is_summed = true;
    return send_answers(r, b);
}

static size_t bucket_bytes(const bpt_reduction *r, const bucket *k) {
    return bpt_shard_at(k->pieces, r->m - 1)->end * sizeof(float);
}

static bool is_going(bucket *k) {
    return atomic_load_explicit(&k->state, memory_order_relaxed) == GOING;
}

/* All is done: others may send theirs of the next step, and the bucket is the caller's again. */
static bpt_status finish(bpt_reduction *r, uint32_t b) {
    bucket *k = &r->buckets[b];
    const size_t as_host = r->m * piece_length(k, r->rank) * sizeof(float);
    r->stats.buckets++;
    r->stats.sent_bytes += bucket_bytes(r, k) + as_host;
    r->stats.received_bytes += bucket_bytes(r, k) + as_host;
    k->receives = k->has_answers = k->is_summed = k->has_answered = false;
    BPT_TRY(gather(r, b));
    atomic_store_explicit(&k->state, FREE, memory_order_release);
    r->summed(r->context, b, BPT_OK);
    return BPT_OK;
}

/* A group is complete. */
static bpt_status advance(bpt_reduction *r, uint32_t b, int kind) {
    bucket *k = &r->buckets[b];
    if (kind == GATHER) k->has_pieces = true;
    if (kind == ANSWER) k->has_answered = true;
    if (kind == OWN && !k->receives) return receive_answers(r, b);
    if (kind == OWN) k->has_answers = true;
    if (is_going(k) && k->has_pieces && !k->is_summed) return sum_own(r, b);
    return k->has_answers && k->has_answered ? finish(r, b) : BPT_OK;
}

static bpt_status take(bpt_reduction *r, bool *moved) {
    for (uint32_t b = 0; b < r->n_buckets; b++) {
        bucket *k = &r->buckets[b];
        int given = GIVEN;
        if (!atomic_compare_exchange_strong(&k->state, &given, GOING)) continue;
        *moved = true;
        if (k->has_pieces) BPT_TRY(sum_own(r, b));
        BPT_TRY(send_own(r, b));
    }
    return BPT_OK;
}

static bool is_idle(const bpt_reduction *r) {
    for (uint32_t b = 0; b < r->n_buckets; b++)
        if (atomic_load(&r->buckets[b].state) != FREE) return false;
    return true;
}

static bpt_status serve(bpt_reduction *r, bool *moved, bool *done) {
    uint32_t n = 0;
    BPT_TRY(take(r, moved));
    bool parts_move = false;
    BPT_TRY(bpt__transfers_poll(r->transfers, &parts_move, r->complete, &n));
    if (parts_move) bpt__comm_wait_moves(r->comm);
    *moved = *moved || parts_move;
    for (uint32_t i = 0; i < n; i++)
        BPT_TRY(advance(r, r->complete[i] / N_GROUPS, (int)(r->complete[i] % N_GROUPS)));
    if (atomic_load_explicit(&r->stopping, memory_order_acquire) && is_idle(r)) {
        bpt__transfers_cancel(r->transfers);
        *done = true;
    }
    return BPT_OK;
}

/* Tells of a bucket that will not be summed, unless somebody else does. */
static void tell_failure(bpt_reduction *r, uint32_t b) {
    if (atomic_exchange(&r->buckets[b].state, FREE) == FREE) return;
    r->summed(r->context, b, bpt_error_put(&r->error));
}

/* Who gives a bucket sets its state and then looks for a failure, and here it is the other way
 * round: one of the two sees what the other did (both in one order for all threads). */
static bpt_status fail(bpt_reduction *r, bpt_status status) {
    bpt_error_get(&r->error);
    atomic_store(&r->failed, true);
    for (uint32_t b = 0; b < r->n_buckets; b++) tell_failure(r, b);
    return status;
}

static bpt_status poll(bpt__job *job, bool *moved, bool *done) {
    bpt_reduction *r = (bpt_reduction *)job;
    const bpt_status status = serve(r, moved, done);
    return status == BPT_OK ? BPT_OK : fail(r, status);
}

static bpt_status gather_all(bpt_reduction *r) {
    for (uint32_t b = 0; b < r->n_buckets; b++) BPT_TRY(gather(r, b));
    return BPT_OK;
}

static bpt_status start(bpt__job *job, bool *moved, bool *done) {
    bpt_reduction *r = (bpt_reduction *)job;
    r->job.poll = poll;
    const bpt_status status = gather_all(r);
    return status == BPT_OK ? poll(job, moved, done) : fail(r, status);
}

/* ---- other threads ---- */

float *bpt_reduction_vector(bpt_reduction *r) {
    return r->vector;
}

void bpt_reduction_give(bpt_reduction *r, uint32_t b) {
    const int before = atomic_exchange(&r->buckets[b].state, GIVEN);
    assert(before == FREE && "a bucket is given once, and again when it was told of");
    (void)before;
    if (atomic_load(&r->failed)) tell_failure(r, b);
    bpt__comm_wake(r->comm);
}

void bpt_reduction_wait_begin(bpt_reduction *r) {
    bpt__comm_wait_begin(r->comm, "the sum of gradients");
}

void bpt_reduction_wait_end(bpt_reduction *r) {
    bpt__comm_wait_end(r->comm);
}

void bpt_reduction_stats_get(bpt_reduction *r, bpt_reduction_stats *stats) {
    bpt__comm_copy(r->comm, &(bpt__copy){stats, &r->stats, sizeof *stats}, 1);
}

/* ---- life ---- */

size_t bpt_reduction_bytes(size_t n_elements, uint32_t n_buckets, uint32_t n_ranks) {
    const size_t gathered = n_elements + (size_t)n_buckets * n_ranks * BPT_SHARD_ALIGNMENT;
    return (n_elements + gathered) * sizeof(float);
}

static bpt_status check_tags(uint32_t n_buckets) {
    _Static_assert(2 * (int)BPT_REDUCTION_BUCKETS <= BPT__TAGS_REDUCTION,
                   "each bucket has two tags");
    if (n_buckets <= BPT_REDUCTION_BUCKETS) return BPT_OK;
    return bpt_fail(BPT_EUSAGE, "a sum in %u buckets, at most %d are possible", n_buckets,
                    BPT_REDUCTION_BUCKETS);
}

static bpt_status create_bucket(const bpt_reduction *r, const bpt_reduction_options *o,
                                uint32_t b) {
    bucket *k = &r->buckets[b];
    k->begin = o->begin[b];
    BPT_TRY(bpt_shard_table_create(o->begin[b + 1] - o->begin[b], r->m, 0, NULL, &k->pieces));
    return BPT_NEW("pieces of a sum", (r->m - 1) * piece_length(k, r->rank), &k->gathered);
}

static bpt_status create_transfers(bpt_reduction *r) {
    const uint32_t n_groups = N_GROUPS * r->n_buckets;
    size_t *room = NULL;
    BPT_TRY(BPT_NEW("rooms of groups", n_groups, &room));
    for (uint32_t g = 0; g < n_groups; g++) room[g] = r->m - 1; /* one for each other rank */
    const bpt_status status = bpt__comm_transfers(r->comm, room, n_groups, &r->transfers);
    bpt_free(room);
    return status;
}

static bpt_status reserve(bpt_reduction *r, const bpt_reduction_options *o) {
    BPT_TRY(check_tags(r->n_buckets));
    BPT_TRY(BPT_NEW("vector to be summed", r->n, &r->vector));
    BPT_TRY(BPT_NEW("buckets", r->n_buckets, &r->buckets));
    BPT_TRY(BPT_NEW("parts of a sum", r->m, &r->parts));
    BPT_TRY(BPT_NEW("complete groups", N_GROUPS * r->n_buckets, &r->complete));
    for (uint32_t b = 0; b < r->n_buckets; b++) BPT_TRY(create_bucket(r, o, b));
    return create_transfers(r);
}

static void release(bpt_reduction *r) {
    if (!r) return;
    for (uint32_t b = 0; r->buckets && b < r->n_buckets; b++) {
        bpt_shard_table_free(r->buckets[b].pieces);
        bpt_free(r->buckets[b].gathered);
    }
    bpt__transfers_free(r->transfers);
    bpt_free(r->complete);
    bpt_free(r->parts);
    bpt_free(r->buckets);
    bpt_free(r->vector);
    bpt_free(r);
}

static bpt_status compare_ranks(const bpt_reduction *r, const bpt_reduction_options *o) {
    const bpt__common mine = {"sums other buckets",
                              bpt_checksum(o->begin, (o->n_buckets + 1u) * sizeof *o->begin),
                              false};
    return bpt__alike(r->comm, &mine, 1);
}

bpt_status bpt_reduction_create(bpt_comm *comm, const bpt_reduction_options *o,
                                bpt_reduction **reduction) {
    bpt_reduction *r = NULL;
    bpt_status status = BPT_NEW("reduction", 1, &r);
    if (status == BPT_OK) {
        r->job.poll = start;
        r->comm = comm;
        r->m = bpt_comm_size(comm);
        r->rank = bpt_comm_rank(comm);
        r->n_buckets = o->n_buckets;
        r->n = o->begin[o->n_buckets];
        r->summed = o->summed;
        r->context = o->context;
        status = reserve(r, o);
    }
    status = bpt_comm_agree(comm, status);
    if (status == BPT_OK) status = compare_ranks(r, o);
    if (status != BPT_OK) {
        release(r);
        return status;
    }
    bpt__comm_submit(comm, &r->job);
    *reduction = r;
    return BPT_OK;
}

bpt_status bpt_reduction_destroy(bpt_reduction *r) {
    if (!r) return BPT_OK;
    bpt_error first = {0};
    bpt__first_error_note(&first, bpt_comm_barrier(r->comm)); /* what others gave is summed then */
    atomic_store_explicit(&r->stopping, true, memory_order_release);
    bpt__comm_wake(r->comm);
    bpt__first_error_note(&first, bpt__comm_join(r->comm, &r->job));
    release(r);
    return bpt__first_error_put(&first);
}
