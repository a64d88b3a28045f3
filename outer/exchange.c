#include "outer/exchange.h"

#include "base/checksum.h"
#include "base/clock.h"
#include "base/memory.h"
#include "outer/comm_thread.h"
#include "outer/shard_server.h"
#include "outer/transfers.h"
#include "outer/update_log.h"

#include <assert.h>
#include <math.h>
#include <pthread.h>
#include <stdatomic.h>
#include <string.h>

/* Who may touch the buffers: in PUSHED the MPI thread, else the training thread. The training
 * thread sets PUSHED, the MPI thread ends it. */
enum phase { IDLE, PUSHED, ANSWERED, FAILED };

struct bpt_exchange {
    bpt__job job; /* first: the MPI thread is given this */
    bpt_comm *comm;
    uint32_t m, rank;
    size_t n;
    const bpt_update_rule *rule;
    bpt_partition *partition; /* borrowed, may be NULL */
    bpt_shard_table *shards;  /* m of them */

    /* Host side, MPI thread. */
    bpt__server *server;
    bpt_coordinator *coordinator, *met_state; /* rank 0, else NULL */
    bpt__update_log *log;                     /* may be NULL */
    bpt__transfers *transfers; /* groups 0..m-1: the server's workers; m: this worker's push */
    uint32_t *complete;        /* [m + 1], scratch */
    bpt_exchange_stats stats;  /* without .wait_ns (below) and .staleness (server) */

    /* Worker side. */
    atomic_int phase;        /* enum phase; release by who ends it, acquire by who reads on */
    pthread_mutex_t mutex;   /* with it `answered`; guards nothing else */
    pthread_cond_t answered; /* phase left PUSHED */
    bpt_error error;         /* once FAILED */
    atomic_bool stopping;    /* release in destroy, acquire in poll */
    bool posted;             /* MPI thread: the push is under way */
    bool meeting;            /* training thread: the next push is for a meeting */
    uint64_t seq;            /* of the last push */
    bpt__up up;              /* same header for all shards */
    char *down;              /* [m][down_stride] */
    size_t down_stride;
    float *sent, *values; /* [n] */
    uint64_t *versions;   /* [m] */
    uint64_t wait_ns;
};

static const bpt_shard *shard_of(const bpt_exchange *x, uint32_t s) {
    return bpt_shard_at(x->shards, s);
}

static size_t shard_bytes(const bpt_exchange *x, uint32_t s) {
    return (shard_of(x, s)->end - shard_of(x, s)->begin) * sizeof(float);
}

static bpt__down *down_of(const bpt_exchange *x, uint32_t s) {
    return (bpt__down *)(x->down + s * x->down_stride);
}

/* ---- MPI thread ---- */

/* Receives first, so that no answer ever finds nobody waiting for it. */
static bpt_status post_push(bpt_exchange *x) {
    for (uint32_t s = 0; s < x->m; s++) {
        const bpt_shard *shard = shard_of(x, s);
        const int tag = bpt__tag(s, false);
        BPT_TRY(bpt__transfers_recv(x->transfers, x->m, down_of(x, s), bpt__down_bytes(s, x->m),
                                    shard->host, tag));
        BPT_TRY(bpt__transfers_recv(x->transfers, x->m, x->values + shard->begin, shard_bytes(x, s),
                                    shard->host, tag));
    }
    for (uint32_t i = 0; i < x->m; i++) {
        const uint32_t s = (x->rank + i) % x->m; /* not all ranks to the same host at once */
        const bpt_shard *shard = shard_of(x, s);
        const int tag = bpt__tag(s, true);
        BPT_TRY(bpt__transfers_send(x->transfers, x->m, &x->up, sizeof x->up, shard->host, tag));
        BPT_TRY(bpt__transfers_send(x->transfers, x->m, x->sent + shard->begin, shard_bytes(x, s),
                                    shard->host, tag));
        x->stats.payload_sent_bytes += shard_bytes(x, s);
        x->stats.header_sent_bytes += sizeof x->up;
        if (shard->host == x->rank) x->stats.local_sent_bytes += shard_bytes(x, s) + sizeof x->up;
    }
    x->posted = true;
    return BPT_OK;
}

static void end_push(bpt_exchange *x, enum phase phase) {
    pthread_mutex_lock(&x->mutex);
    atomic_store_explicit(&x->phase, phase, memory_order_release);
    pthread_cond_broadcast(&x->answered);
    pthread_mutex_unlock(&x->mutex);
}

static bpt_status complete_push(bpt_exchange *x) {
    for (uint32_t s = 0; s < x->m; s++) {
        x->stats.payload_received_bytes += shard_bytes(x, s);
        x->stats.header_received_bytes += bpt__down_bytes(s, x->m);
    }
    x->stats.pushes++;
    x->posted = false;
    if (x->log && down_of(x, 0)->met) BPT_TRY(bpt__update_log_flush(x->log));
    end_push(x, ANSWERED);
    return BPT_OK;
}

static bpt_status serve(bpt_exchange *x, bool *moved, bool *done) {
    if (!x->posted && atomic_load_explicit(&x->phase, memory_order_acquire) == PUSHED) {
        BPT_TRY(post_push(x));
        *moved = true;
    }
    uint32_t n_complete = 0;
    BPT_TRY(bpt__transfers_poll(x->transfers, moved, x->complete, &n_complete));
    for (uint32_t i = 0; i < n_complete; i++) {
        const uint32_t group = x->complete[i];
        BPT_TRY(group == x->m ? complete_push(x) : bpt__server_complete(x->server, group));
    }
    if (atomic_load_explicit(&x->stopping, memory_order_acquire) && bpt__server_idle(x->server)) {
        bpt__transfers_cancel(x->transfers);
        *done = true;
    }
    return BPT_OK;
}

static bpt_status poll(bpt__job *job, bool *moved, bool *done) {
    bpt_exchange *x = (bpt_exchange *)job;
    const bpt_status status = serve(x, moved, done);
    if (status == BPT_OK) return BPT_OK;
    bpt_error_get(&x->error);
    end_push(x, FAILED);
    return status;
}

/* ---- create and destroy ---- */

static bpt_status create_transfers(bpt_exchange *x) {
    size_t *room = NULL;
    BPT_TRY(BPT_NEW("room for messages", x->m + 1u, &room));
    for (uint32_t j = 0; j < x->m; j++) room[j] = bpt__server_room(x->server);
    for (uint32_t s = 0; s < x->m; s++)
        room[x->m] += bpt__transfers_chunks(sizeof x->up) +
                      bpt__transfers_chunks(bpt__down_bytes(s, x->m)) +
                      2 * bpt__transfers_chunks(shard_bytes(x, s));
    const bpt_status status =
        bpt__transfers_create(bpt__comm_messages(x->comm), room, x->m + 1, &x->transfers);
    bpt_free(room);
    return status;
}

static bpt_status create_coordinator(bpt_exchange *x, const bpt_exchange_options *o) {
    if (x->rank != 0) return BPT_OK;
    BPT_TRY(bpt_coordinator_create(o->coordinator, &x->coordinator));
    BPT_TRY(bpt_coordinator_create(o->coordinator, &x->met_state));
    if (!o->snapshot) return BPT_OK;
    const bpt_json *state = NULL;
    BPT_TRY(bpt_json_get_object(o->snapshot_doc, o->snapshot, "coordinator", &state));
    BPT_TRY(bpt_coordinator_load(x->coordinator, o->snapshot_doc, state));
    bpt_coordinator_copy(x->met_state, x->coordinator);
    return BPT_OK;
}

static bpt_status create_server(bpt_exchange *x, const bpt_exchange_options *o) {
    const bpt_shard *shard = shard_of(x, x->rank);
    const bpt__server_options options = {
        .rule = o->rule,
        .n_workers = x->m,
        .rank = x->rank,
        .shard = x->rank,
        .max_staleness = o->rule->synchronous ? BPT_STALENESS_NONE : o->max_staleness,
        .n = shard->end - shard->begin,
        .initial = o->initial + shard->begin,
        .coordinator = x->coordinator,
        .met_state = x->met_state,
        .log = x->log,
        .stats = &x->stats,
    };
    BPT_TRY(bpt__server_create(&options, &x->server));
    if (!o->snapshot) return BPT_OK;
    BPT_TRY(bpt__server_load(x->server, o->snapshot_doc, o->snapshot));
    x->seq = bpt__server_seq(x->server, x->rank);
    return BPT_OK;
}

/* All that may fail on this rank alone. */
static bpt_status create_own(bpt_exchange *x, const bpt_exchange_options *o) {
    x->down_stride = bpt__down_bytes(0, x->m);
    BPT_TRY(BPT_NEW("vector to send", x->n, &x->sent));
    BPT_TRY(BPT_NEW("global values", x->n, &x->values));
    BPT_TRY(BPT_NEW("versions of shards", x->m, &x->versions));
    BPT_TRY(BPT_NEW("complete groups", x->m + 1u, &x->complete));
    BPT_TRY(bpt_alloc("headers of answers", x->m, x->down_stride, (void **)&x->down));
    BPT_TRY(bpt_shard_table_create(x->n, x->m, &x->shards));
    if (o->log_path && o->rule->payload == BPT_PAYLOAD_DELTA)
        BPT_TRY(bpt__update_log_open(o->log_path, &x->log));
    BPT_TRY(create_coordinator(x, o));
    BPT_TRY(create_server(x, o));
    return create_transfers(x);
}

/* What all ranks must have in common. */
typedef struct common {
    uint64_t n_elements, initial, rule, max_staleness, resumes, seq, n_samples;
} common;

/* All ranks see the same table, so all come to the same verdict. */
static bpt_status compare_ranks(bpt_exchange *x, const bpt_exchange_options *o) {
    static const char *const what[] = {
        "has another number of elements", "starts from other values", "uses another update rule",
        "has another staleness bound",    "resumes (or not)",         "resumes from another step",
        "has a split of another size"};
    const common mine = {
        .n_elements = x->n,
        .initial = bpt_checksum(o->initial, x->n * sizeof(float)),
        .rule = bpt_checksum(o->rule->name, strlen(o->rule->name)),
        .max_staleness = o->max_staleness,
        .resumes = o->snapshot != NULL,
        .seq = x->seq,
        .n_samples = o->partition ? bpt_partition_n_samples(o->partition) : 0,
    };
    enum { N_FIELDS = sizeof mine / sizeof(uint64_t) };
    _Static_assert(sizeof what / sizeof what[0] == N_FIELDS, "one text a field");
    uint64_t(*all)[N_FIELDS] = NULL;
    bpt_status status = bpt_comm_agree(x->comm, BPT_NEW("table of ranks", x->m, &all));
    if (status == BPT_OK) status = bpt_comm_allgather(x->comm, &mine, sizeof mine, all);
    for (uint32_t r = 1; r < x->m && status == BPT_OK; r++)
        for (int f = 0; f < N_FIELDS && status == BPT_OK; f++)
            if (all[r][f] != all[0][f])
                status = bpt_fail(BPT_EUSAGE, "rank %u on %s %s: not what rank 0 has", r,
                                  bpt_comm_host(x->comm, r), what[f]);
    bpt_free(all);
    return status;
}

/* Tells all ranks the rounds that the coordinator has given out before the first push. */
static bpt_status share_rounds(bpt_exchange *x) {
    uint32_t rounds = x->coordinator ? bpt_coordinator_directive(x->coordinator).rounds : 0;
    BPT_TRY(bpt_comm_broadcast(x->comm, 0, &rounds, sizeof rounds));
    uint32_t *count = down_of(x, 0)->count; /* not in use yet, and of the right size */
    bpt_status status = BPT_OK;
    for (uint32_t a = 0; a < rounds; a++) {
        if (x->coordinator)
            memcpy(count, bpt_coordinator_round(x->coordinator, a), x->m * sizeof *count);
        BPT_TRY(bpt_comm_broadcast(x->comm, 0, count, x->m * sizeof *count));
        if (status == BPT_OK && x->partition) status = bpt_partition_allot(x->partition, count);
    }
    return bpt_comm_agree(x->comm, status);
}

static bpt_status start(bpt__job *job, bool *moved, bool *done) {
    bpt_exchange *x = (bpt_exchange *)job;
    x->job.poll = poll;
    BPT_TRY(bpt__server_start(x->server, x->transfers));
    return poll(job, moved, done);
}

static bpt_status release(bpt_exchange *x) {
    const bpt_status status = bpt__update_log_close(x->log);
    bpt__transfers_free(x->transfers);
    bpt__server_free(x->server);
    bpt_coordinator_free(x->met_state);
    bpt_coordinator_free(x->coordinator);
    bpt_shard_table_free(x->shards);
    pthread_cond_destroy(&x->answered);
    pthread_mutex_destroy(&x->mutex);
    bpt_free(x->down);
    bpt_free(x->complete);
    bpt_free(x->versions);
    bpt_free(x->values);
    bpt_free(x->sent);
    bpt_free(x);
    return status;
}

static bpt_status create_bare(bpt_comm *comm, const bpt_exchange_options *o, bpt_exchange **out) {
    bpt_exchange *x = NULL;
    BPT_TRY(BPT_NEW("exchange", 1, &x));
    x->comm = comm;
    x->m = bpt_comm_size(comm);
    x->rank = bpt_comm_rank(comm);
    x->n = o->n_elements;
    x->rule = o->rule;
    x->partition = o->partition;
    pthread_mutex_init(&x->mutex, NULL);
    pthread_cond_init(&x->answered, NULL);
    const bpt_status status = create_own(x, o);
    if (status == BPT_OK)
        *out = x;
    else
        (void)release(x);
    return status;
}

bpt_status bpt_exchange_create(bpt_comm *comm, const bpt_exchange_options *options,
                               bpt_exchange **exchange) {
    bpt_exchange *x = NULL;
    bpt_status status = bpt_comm_agree(comm, create_bare(comm, options, &x));
    if (status == BPT_OK) status = compare_ranks(x, options);
    if (status == BPT_OK) status = share_rounds(x);
    if (status != BPT_OK) {
        if (x) (void)release(x);
        return status;
    }
    x->job.poll = start;
    bpt__comm_submit(comm, &x->job);
    *exchange = x;
    return BPT_OK;
}

bpt_status bpt_exchange_destroy(bpt_exchange *x) {
    if (!x) return BPT_OK;
    assert(atomic_load(&x->phase) != PUSHED && "a push is outstanding");
    /* Where all ranks have come here, all answers have been received. */
    bpt_status status = bpt_comm_barrier(x->comm);
    atomic_store_explicit(&x->stopping, true, memory_order_release);
    bpt__comm_wake(x->comm);
    const bpt_status joined = bpt__comm_join(x->comm, &x->job);
    if (status == BPT_OK) status = joined;
    const bpt_status released = release(x);
    return status != BPT_OK ? status : released;
}

/* ---- training thread ---- */

/* Goes from one phase to the next. @return false if the MPI thread has set FAILED, for good */
static bool step(bpt_exchange *x, int from, int to) {
    return atomic_compare_exchange_strong_explicit(&x->phase, &from, to, memory_order_acq_rel,
                                                   memory_order_acquire);
}

bpt_status bpt_exchange_push(bpt_exchange *x, const float *vector, const bpt_report *report) {
    if (!(report->quality >= 0) || !isfinite(report->quality))
        return bpt_fail(BPT_ENUMERIC, "the quality of rank %u's weights is %g", x->rank,
                        report->quality);
    const int phase = atomic_load_explicit(&x->phase, memory_order_acquire);
    assert((phase == IDLE || phase == FAILED) && "the last push has not been waited for");
    if (phase == FAILED) return bpt_error_put(&x->error);
    memcpy(x->sent, vector, x->n * sizeof *vector);
    x->up = (bpt__up){
        .seq = ++x->seq,
        .samples = report->samples,
        .busy_ns = report->busy_ns,
        .quality = report->quality,
        .covered = report->covered,
        .wants = report->wants,
        .meeting = x->meeting,
    };
    if (!step(x, IDLE, PUSHED)) return bpt_error_put(&x->error);
    bpt__comm_wake(x->comm);
    return BPT_OK;
}

bool bpt_exchange_ready(const bpt_exchange *x) {
    return atomic_load_explicit(&x->phase, memory_order_acquire) != PUSHED;
}

static void wait_for_answer(bpt_exchange *x) {
    const uint64_t begin_ns = bpt_clock_ns();
    bpt__comm_hurry_begin(x->comm);
    pthread_mutex_lock(&x->mutex);
    while (atomic_load_explicit(&x->phase, memory_order_acquire) == PUSHED)
        pthread_cond_wait(&x->answered, &x->mutex);
    pthread_mutex_unlock(&x->mutex);
    bpt__comm_hurry_end(x->comm);
    x->wait_ns += bpt_clock_ns() - begin_ns;
}

bpt_status bpt_exchange_wait(bpt_exchange *x, bpt_reply *reply) {
    if (!bpt_exchange_ready(x)) wait_for_answer(x);
    assert(atomic_load(&x->phase) != IDLE && "there was no push to wait for");
    if (!step(x, ANSWERED, IDLE)) return bpt_error_put(&x->error);

    const bpt__down *first = down_of(x, 0);
    *reply = (bpt_reply){.values = x->values,
                         .versions = x->versions,
                         .progress = first->progress,
                         .met = first->met,
                         .meet = first->meet};
    for (uint32_t s = 0; s < x->m; s++) {
        const bpt__down *down = down_of(x, s);
        x->versions[s] = down->version;
        if (down->staleness > reply->staleness) reply->staleness = down->staleness;
    }
    x->meeting = first->meet != 0;
    if (x->partition && first->rounds > bpt_partition_rounds(x->partition))
        return bpt_partition_allot(x->partition, first->count);
    return BPT_OK;
}

const bpt_shard_table *bpt_exchange_shards(const bpt_exchange *x) {
    return x->shards;
}

void bpt_exchange_snapshot(const bpt_exchange *x, bpt_json_writer *w, const char *key) {
    bpt_json_open_object(w, key);
    bpt__server_save(x->server, w);
    if (x->met_state) bpt_coordinator_save(x->met_state, w, "coordinator");
    bpt_json_close_object(w);
}

/* The counts belong to the MPI thread, so it is that one which copies them. */
typedef struct copy_stats {
    bpt__job job;
    const bpt_exchange *from;
    bpt_exchange_stats *to;
} copy_stats;

static bpt_status poll_copy(bpt__job *job, bool *moved, bool *done) {
    copy_stats *c = (copy_stats *)job;
    *c->to = c->from->stats;
    memcpy(c->to->staleness, bpt__server_staleness(c->from->server), sizeof c->to->staleness);
    *moved = *done = true;
    return BPT_OK;
}

bpt_status bpt_exchange_stats_get(bpt_exchange *x, bpt_exchange_stats *stats) {
    copy_stats copy = {.job.poll = poll_copy, .from = x, .to = stats};
    bpt__comm_submit(x->comm, &copy.job);
    BPT_TRY(bpt__comm_join(x->comm, &copy.job));
    stats->wait_ns = x->wait_ns;
    return BPT_OK;
}
