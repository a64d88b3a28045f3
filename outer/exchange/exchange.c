#include "outer/exchange/exchange.h"

#include "base/clock.h"
#include "outer/comm/watch.h"
#include "outer/exchange/exchange_state.h"

#include <assert.h>
#include <math.h>
#include <string.h>

enum { LOG_BYTES = 4096 }; /* of the update log that are written at once */

size_t bpt__exchange_shard_bytes(const bpt_exchange *x, uint32_t s) {
    const bpt_shard *shard = bpt_shard_at(x->shards, s);
    return (shard->end - shard->begin) * sizeof(float);
}

bpt__down *bpt__exchange_down(const bpt_exchange *x, uint32_t s) {
    return (bpt__down *)(x->down + s * x->down_stride);
}

bool bpt__exchange_works(const bpt_exchange *x) {
    return x->rank < x->m;
}

/* ---- MPI thread ---- */

/* Receives first, so that no answer ever finds nobody waiting for it. The shard hosted here gets
 * its part without a message, last: the others are under way meanwhile. */
static bpt_status post_push(bpt_exchange *x) {
    const uint32_t n_shards = bpt_shard_count(x->shards);
    for (uint32_t s = 0; s < n_shards; s++) {
        if (s == x->hosted) continue;
        const bpt_shard *shard = bpt_shard_at(x->shards, s);
        const int tag = bpt__tag(s, false);
        BPT_TRY(bpt__transfers_recv(x->transfers, x->m, bpt__exchange_down(x, s),
                                    bpt__down_bytes(s, x->m), shard->host, tag));
        BPT_TRY(bpt__transfers_recv(x->transfers, x->m, x->values + shard->begin,
                                    bpt__exchange_shard_bytes(x, s), shard->host, tag));
    }
    for (uint32_t i = 1; i <= n_shards; i++) {
        const uint32_t s = (x->rank + i) % n_shards; /* not all ranks to the same host at once */
        if (s == x->hosted) continue;
        const bpt_shard *shard = bpt_shard_at(x->shards, s);
        const int tag = bpt__tag(s, true);
        BPT_TRY(bpt__transfers_send(x->transfers, x->m, &x->up, sizeof x->up, shard->host, tag));
        BPT_TRY(bpt__transfers_send(x->transfers, x->m, x->sent + shard->begin,
                                    bpt__exchange_shard_bytes(x, s), shard->host, tag));
    }
    x->stats.payload_sent_bytes += x->n * sizeof(float);
    x->stats.header_sent_bytes += n_shards * sizeof x->up;
    x->posted = true;
    x->moving = bpt__transfers_pending(x->transfers, x->m) > 0;
    if (!x->server) return BPT_OK;
    x->stats.local_sent_bytes += bpt__exchange_shard_bytes(x, x->hosted) + sizeof x->up;
    return bpt__server_take_own(x->server);
}

static void end_push(bpt_exchange *x, enum bpt__phase phase) {
    bpt__comm_push_end(x->comm);
    pthread_mutex_lock(&x->mutex);
    atomic_store_explicit(&x->phase, phase, memory_order_release);
    pthread_cond_broadcast(&x->answered);
    pthread_mutex_unlock(&x->mutex);
}

static void complete_push(bpt_exchange *x) {
    x->stats.payload_received_bytes += x->n * sizeof(float);
    for (uint32_t s = 0; s < bpt_shard_count(x->shards); s++)
        x->stats.header_received_bytes += bpt__down_bytes(s, x->m);
    x->stats.pushes++;
    x->posted = false;
    end_push(x, BPT__ANSWERED);
}

static bool own_answered(const bpt_exchange *x) {
    return !x->server || bpt__server_own_answered(x->server);
}

static bool is_idle(const bpt_exchange *x) {
    return !x->server || bpt__server_idle(x->server);
}

static bpt_status serve(bpt_exchange *x, bool *moved, bool *done) {
    if (!x->posted && atomic_load_explicit(&x->phase, memory_order_acquire) == BPT__PUSHED) {
        BPT_TRY(post_push(x));
        *moved = true;
    }
    uint32_t n_complete = 0;
    const uint32_t pending = bpt__transfers_pending(x->transfers, x->m);
    BPT_TRY(bpt__transfers_poll(x->transfers, moved, x->complete, &n_complete));
    if (bpt__transfers_pending(x->transfers, x->m) != pending) bpt__comm_push_moves(x->comm);
    for (uint32_t i = 0; i < n_complete; i++) {
        const uint32_t group = x->complete[i];
        if (group == x->m)
            x->moving = false;
        else
            BPT_TRY(bpt__server_complete(x->server, group));
    }
    if (x->posted && !x->moving && own_answered(x)) complete_push(x);
    if (atomic_load_explicit(&x->stopping, memory_order_acquire) && is_idle(x)) {
        bpt__transfers_cancel(x->transfers);
        *done = true;
    }
    return BPT_OK;
}

bpt_status bpt__exchange_poll(bpt__job *job, bool *moved, bool *done) {
    bpt_exchange *x = (bpt_exchange *)job;
    const bpt_status status = serve(x, moved, done);
    if (status == BPT_OK) return BPT_OK;
    bpt_error_get(&x->error);
    end_push(x, BPT__FAILED);
    return status;
}

/* ---- training thread ---- */

/* Goes from one phase to the next. @return false if the MPI thread has set BPT__FAILED, for good */
static bool step(bpt_exchange *x, int from, int to) {
    return atomic_compare_exchange_strong_explicit(&x->phase, &from, to, memory_order_acq_rel,
                                                   memory_order_acquire);
}

float *bpt_exchange_outbox(bpt_exchange *x) {
    return x->sent;
}

bpt_status bpt_exchange_push(bpt_exchange *x, const bpt_report *report) {
    if (!(report->quality > 0) || !isfinite(report->quality))
        return bpt_fail(BPT_ENUMERIC, "the quality of rank %u's weights is %g", x->rank,
                        report->quality);
    const int phase = atomic_load_explicit(&x->phase, memory_order_acquire);
    assert((phase == BPT__IDLE || phase == BPT__FAILED) && "the last push has not been waited for");
    if (phase == BPT__FAILED) return bpt_error_put(&x->error);
    x->up = (bpt__up){
        .seq = ++x->seq,
        .samples = report->samples,
        .busy_ns = report->busy_ns,
        .quality = report->quality,
        .rates = report->rates,
        .covered = report->covered,
        .wants = report->wants | x->wants,
        .meeting = x->meeting,
    };
    x->wants = 0;
    bpt__comm_push_begin(x->comm, x->waits_at); /* before the MPI thread can mark its end */
    if (!step(x, BPT__IDLE, BPT__PUSHED)) return bpt_error_put(&x->error);
    bpt__comm_got_on(x->comm);
    bpt__comm_wake(x->comm);
    return BPT_OK;
}

bool bpt_exchange_ready(const bpt_exchange *x) {
    return atomic_load_explicit(&x->phase, memory_order_acquire) != BPT__PUSHED;
}

static void note_spread(bpt_exchange *x, uint64_t spread) {
    const uint64_t last = BPT_STALENESS_BUCKETS - 1;
    x->spread[spread < last ? spread : last]++;
}

static void wait_for_answer(bpt_exchange *x) {
    const uint64_t begin_ns = bpt_clock_ns();
    bpt__comm_wait_begin(x->comm, x->meeting ? "a meeting of all ranks" : x->waits_at);
    pthread_mutex_lock(&x->mutex);
    while (atomic_load_explicit(&x->phase, memory_order_acquire) == BPT__PUSHED)
        pthread_cond_wait(&x->answered, &x->mutex);
    pthread_mutex_unlock(&x->mutex);
    bpt__comm_wait_end(x->comm);
    x->wait_ns += bpt_clock_ns() - begin_ns;
}

/* A disk that hangs is to be seen as such. */
static bpt_status write_log(bpt_exchange *x, bool all) {
    bpt_comm_operation_begin(x->comm, "the update log");
    const bpt_status status = bpt__update_log_write(x->log, all ? 0 : LOG_BYTES);
    bpt_comm_operation_end(x->comm);
    return status;
}

bpt_status bpt_exchange_wait(bpt_exchange *x, bpt_reply *reply) {
    if (!bpt_exchange_ready(x)) wait_for_answer(x);
    assert(atomic_load(&x->phase) != BPT__IDLE && "there was no push to wait for");
    if (!step(x, BPT__ANSWERED, BPT__IDLE)) return bpt_error_put(&x->error);

    const bpt__down *first = bpt__exchange_down(x, 0);
    *reply = (bpt_reply){.values = x->values,
                         .versions = x->versions,
                         .progress = first->progress,
                         .met = first->met,
                         .meet = first->meet};
    for (uint32_t s = 0; s < bpt_shard_count(x->shards); s++) {
        const bpt__down *down = bpt__exchange_down(x, s);
        x->versions[s] = down->version;
        x->wants |= down->wants;
        if (down->staleness > reply->staleness) reply->staleness = down->staleness;
    }
    reply->spread = bpt_shard_spread(x->shards, x->versions);
    note_spread(x, reply->spread);
    x->meeting = first->meet != 0;
    if (first->met) x->n_met++;
    if (x->log) BPT_TRY(write_log(x, first->met != 0));
    if (x->partition && first->rounds > bpt_partition_rounds(x->partition))
        return bpt_partition_allot(x->partition, first->held);
    return BPT_OK;
}

/* What a server does besides: it hears of what has failed on the MPI thread, and writes the log. */
static bpt_status tend(void *arg) {
    bpt_exchange *x = arg;
    if (atomic_load_explicit(&x->phase, memory_order_acquire) == BPT__FAILED)
        return bpt_error_put(&x->error);
    if (!x->log || !bpt__update_log_due(x->log, LOG_BYTES)) return BPT_OK;
    const bpt_status status = write_log(x, false);
    bpt__comm_idle_again(x->comm);
    return status;
}

bpt_status bpt_exchange_serve(bpt_exchange *x, uint32_t root, void *data, size_t bytes) {
    assert(!bpt__exchange_works(x) && bytes <= sizeof x->told);
    BPT_TRY(bpt__comm_hear(x->comm, &x->hearing, root, x->told, bytes, tend, x));
    memcpy(data, x->told, bytes);
    return x->log ? write_log(x, true) : BPT_OK;
}

bool bpt_exchange_called(bpt_exchange *x) {
    if (atomic_load_explicit(&x->called, memory_order_relaxed) > x->n_met) x->meeting = true;
    return x->meeting;
}

const bpt_shard_table *bpt_exchange_shards(const bpt_exchange *x) {
    return x->shards;
}

void bpt_exchange_snapshot(const bpt_exchange *x, bpt_json_writer *w, const char *key) {
    bpt_json_open_object(w, key);
    if (x->server) bpt__server_save(x->server, w);
    bpt_json_put_u64(w, "pushes", x->seq);
    bpt__save_counts(w, "spread", BPT_STALENESS_BUCKETS, x->spread);
    if (x->met_state) bpt_coordinator_save(x->met_state, w, "coordinator");
    bpt_json_close_object(w);
}

bpt_status bpt_exchange_velocity(const bpt_exchange *x, float *velocity) {
    if (x->server) {
        const bpt_shard *own = bpt_shard_at(x->shards, x->hosted);
        const float *mine = bpt__server_velocity(x->server);
        assert(mine && "a velocity is the server's momentum's");
        memcpy(velocity + own->begin, mine, (own->end - own->begin) * sizeof *mine);
    }
    for (uint32_t s = 0; s < bpt_shard_count(x->shards); s++) {
        const bpt_shard *shard = bpt_shard_at(x->shards, s);
        BPT_TRY(bpt_comm_broadcast(x->comm, shard->host, velocity + shard->begin,
                                   bpt__exchange_shard_bytes(x, s)));
    }
    return BPT_OK;
}

void bpt_exchange_stats_get(bpt_exchange *x, bpt_exchange_stats *stats) {
    const bpt__server *server = x->server;
    const bpt__copy copies[] = {
        {stats, &x->stats, sizeof *stats},
        {stats->staleness, server ? bpt__server_staleness(server) : NULL, sizeof stats->staleness},
    };
    bpt__comm_copy(x->comm, copies, server ? 2 : 1);
    stats->wait_ns = x->wait_ns;
    memcpy(stats->spread, x->spread, sizeof stats->spread);
}
