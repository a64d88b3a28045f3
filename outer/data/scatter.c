#include "outer/data/scatter.h"

#include "base/clock.h"
#include "base/memory.h"
#include "base/thread.h"
#include "outer/comm/first_error.h"
#include "outer/data/scatter_state.h"

#include <assert.h>
#include <inttypes.h>
#include <math.h>
#include <string.h>
#include <time.h>

size_t bpt__scatter_parcel_bytes(const bpt_scatter *x, uint32_t n) {
    return x->options.parcel_bytes + n * x->options.item_bytes;
}

int bpt__scatter_tag(uint32_t slot, bool up) {
    _Static_assert(2 * (int)BPT__SCATTER_SLOTS <= BPT__TAGS_SCATTER, "each slot has two tags");
    return BPT__TAG_SCATTER + (int)(slot + (up ? 0 : BPT__SCATTER_SLOTS));
}

bpt_status bpt__scatter_transfer(bpt_scatter *x, bool *moved, uint32_t *n_complete) {
    bool parts_move = false;
    BPT_TRY(bpt__transfers_poll(x->transfers, &parts_move, x->complete, n_complete));
    if (parts_move) bpt__comm_wait_moves(x->comm);
    *moved = *moved || parts_move;
    return BPT_OK;
}

void bpt__scatter_fail(bpt_scatter *x) {
    if (!atomic_load_explicit(&x->failed, memory_order_relaxed)) bpt_error_get(&x->error);
    atomic_store_explicit(&x->failed, true, memory_order_release);
    pthread_cond_broadcast(&x->changed);
}

static size_t request_bytes(const bpt_scatter_options *o) {
    return sizeof(bpt__scatter_request) + o->items_per_parcel * sizeof(uint32_t);
}

size_t bpt_scatter_bytes(const bpt_scatter_options *o, uint32_t n_ranks, uint32_t rank) {
    const size_t parcel = o->parcel_bytes + o->items_per_parcel * o->item_bytes;
    if (rank == 0)
        return BPT__SCATTER_PARCELS * parcel +
               (n_ranks - 1) * BPT__SCATTER_SLOTS * request_bytes(o);
    return BPT__SCATTER_SLOTS * (parcel + request_bytes(o)) +
           o->n_items * (sizeof(uint32_t) + sizeof(uint8_t));
}

/* ---- what callers ask ---- */

void bpt_scatter_want(bpt_scatter *x, uint32_t kind, const uint32_t *number, size_t n) {
    pthread_mutex_lock(&x->mutex);
    const uint64_t before = atomic_load_explicit(&x->n_wanted, memory_order_relaxed);
    assert(x->rank != 0 && n <= x->options.n_items - before && kind <= UINT8_MAX);
    memcpy(x->taker.number + before, number, n * sizeof *number);
    memset(x->taker.kind + before, (int)kind, n);
    atomic_store_explicit(&x->n_wanted, before + n, memory_order_relaxed);
    pthread_mutex_unlock(&x->mutex);
    if (n > 0) bpt__comm_wake(x->comm);
}

uint64_t bpt_scatter_wanted(const bpt_scatter *x) {
    return atomic_load_explicit(&x->n_wanted, memory_order_relaxed);
}

uint64_t bpt_scatter_kept(const bpt_scatter *x) {
    return atomic_load_explicit(&x->n_kept, memory_order_acquire);
}

bpt_status bpt_scatter_check(bpt_scatter *x) {
    if (!atomic_load_explicit(&x->failed, memory_order_acquire)) return BPT_OK;
    pthread_mutex_lock(&x->mutex);
    const bpt_status status = bpt_error_put(&x->error);
    pthread_mutex_unlock(&x->mutex);
    return status;
}

static bool await_change(bpt_scatter *x, uint64_t until_ns) {
    if (until_ns == UINT64_MAX) return pthread_cond_wait(&x->changed, &x->mutex) == 0;
    const struct timespec at = bpt_clock_timespec(until_ns);
    return pthread_cond_clockwait(&x->changed, &x->mutex, CLOCK_MONOTONIC, &at) == 0;
}

/* Waits for a change, with the mutex. What gets on does not hang: each is another wait, for rank 0
 * or, where a parcel has come, for the own disk. @return false if the time is over */
static bool wait_for_change(bpt_scatter *x, uint64_t until_ns) {
    if (bpt__taker_keeps(x))
        bpt__comm_own_begin(x->comm, BPT__SCATTER_KEEPS_AT);
    else
        bpt__comm_wait_begin(x->comm, x->options.waits_at);
    const bool in_time = await_change(x, until_ns);
    bpt__comm_wait_end(x->comm);
    return in_time;
}

bpt_status bpt_scatter_wait(bpt_scatter *x, uint64_t n_kept, double at_most_s) {
    if (bpt_scatter_kept(x) >= n_kept) return bpt_scatter_check(x);
    const uint64_t until_ns =
        isinf(at_most_s) ? UINT64_MAX : bpt_clock_ns() + (uint64_t)(at_most_s * 1e9);
    pthread_mutex_lock(&x->mutex);
    while (bpt_scatter_kept(x) < n_kept && !atomic_load_explicit(&x->failed, memory_order_relaxed))
        if (!wait_for_change(x, until_ns)) break;
    pthread_mutex_unlock(&x->mutex);
    return bpt_scatter_check(x);
}

bpt_status bpt_scatter_settle(bpt_scatter *x) {
    if (x->rank == 0) return bpt_scatter_check(x);
    pthread_mutex_lock(&x->mutex);
    x->quiet = true;
    while (!x->dead && bpt__taker_busy(x)) (void)wait_for_change(x, UINT64_MAX);
    pthread_mutex_unlock(&x->mutex);
    return bpt_scatter_check(x);
}

void bpt_scatter_stats_get(bpt_scatter *x, bpt_scatter_stats *stats) {
    pthread_mutex_lock(&x->mutex);
    *stats = x->stats;
    pthread_mutex_unlock(&x->mutex);
}

/* ---- life ---- */

static bpt_status poll_scatter(bpt__job *job, bool *moved, bool *done) {
    bpt_scatter *x = (bpt_scatter *)job;
    const bpt_status status =
        x->rank == 0 ? bpt__giver_poll(x, moved, done) : bpt__taker_poll(x, moved, done);
    if (status == BPT_OK) return BPT_OK;
    pthread_mutex_lock(&x->mutex);
    x->dead = true;
    bpt__scatter_fail(x);
    pthread_mutex_unlock(&x->mutex);
    return status;
}

static bpt_status start_thread(bpt_scatter *x) {
    const int code =
        bpt_thread_start(&x->thread, x->rank == 0 ? bpt__giver_main : bpt__taker_main, x);
    x->has_thread = code == 0;
    return code == 0 ? BPT_OK
                     : bpt_fail(BPT_ENOMEM, "cannot create the thread for %s: %s",
                                x->options.waits_at, strerror(code));
}

/* Tells the threads to come to an end. */
static void say_stop(bpt_scatter *x) {
    pthread_mutex_lock(&x->mutex);
    x->stopping = true;
    pthread_cond_broadcast(&x->changed);
    pthread_mutex_unlock(&x->mutex);
    bpt__comm_wake(x->comm);
}

static void release(bpt_scatter *x) {
    if (x->has_thread) {
        say_stop(x);
        pthread_join(x->thread, NULL);
    }
    bpt__transfers_free(x->transfers);
    if (x->rank == 0)
        bpt__giver_free(x);
    else
        bpt__taker_free(x);
    bpt_free(x->complete);
    pthread_cond_destroy(&x->changed);
    pthread_mutex_destroy(&x->mutex);
    bpt_free(x);
}

static bpt_status create_own(bpt_scatter *x) {
    const uint32_t n_groups =
        x->rank == 0 ? (x->m - 1) * BPT__SCATTER_SLOTS + BPT__SCATTER_PARCELS : BPT__SCATTER_SLOTS;
    BPT_TRY(BPT_NEW("complete groups", n_groups, &x->complete));
    BPT_TRY(x->rank == 0 ? bpt__giver_create(x) : bpt__taker_create(x));
    BPT_TRY(x->rank == 0 ? bpt__giver_transfers(x) : bpt__taker_transfers(x));
    return start_thread(x);
}

static bpt_status create_bare(bpt_comm *comm, const bpt_scatter_options *o, bpt_scatter **out) {
    bpt_scatter *x = NULL;
    BPT_TRY(BPT_NEW("scatter", 1, &x));
    x->comm = comm;
    x->m = bpt_comm_size(comm);
    x->rank = bpt_comm_rank(comm);
    x->options = *o;
    x->request_bytes = request_bytes(o);
    x->job.poll = poll_scatter;
    pthread_mutex_init(&x->mutex, NULL);
    pthread_cond_init(&x->changed, NULL);
    const bpt_status status = create_own(x);
    if (status == BPT_OK)
        *out = x;
    else
        release(x);
    return status;
}

/* What a parcel's messages are cut by: of other sizes one side would wait for pieces that never
 * come. */
typedef struct {
    uint64_t parcel_bytes, item_bytes, items_per_parcel;
} parcel_sizes;

static bpt_status check_sizes(bpt_comm *comm, const bpt_scatter_options *o) {
    const parcel_sizes mine = {o->parcel_bytes, o->item_bytes, o->items_per_parcel};
    parcel_sizes *all;
    BPT_TRY(bpt_comm_table(comm, "sizes of parcels", &mine, sizeof mine, (void **)&all));
    const parcel_sizes given = all[0];
    bpt_free(all);
    if (memcmp(&mine, &given, sizeof mine) == 0) return BPT_OK;
    const bpt_status status =
        bpt_fail(BPT_EUSAGE,
                 "%s: rank %u takes parcels of %" PRIu64 " items of %" PRIu64 " bytes and %" PRIu64
                 " beside them, and rank 0 makes them of %" PRIu64 " of %" PRIu64 " and %" PRIu64,
                 o->waits_at, bpt_comm_rank(comm), mine.items_per_parcel, mine.item_bytes,
                 mine.parcel_bytes, given.items_per_parcel, given.item_bytes, given.parcel_bytes);
    bpt_hint("start the same program, with the same options, on all ranks");
    return status;
}

static bpt_status create_alike(bpt_comm *comm, const bpt_scatter_options *o, bpt_scatter **x) {
    BPT_TRY(check_sizes(comm, o));
    return create_bare(comm, o, x);
}

bpt_status bpt_scatter_create(bpt_comm *comm, const bpt_scatter_options *options,
                              bpt_scatter **scatter) {
    bpt_scatter *x = NULL;
    const bpt_status status = bpt_comm_agree(comm, create_alike(comm, options, &x));
    if (status != BPT_OK) {
        if (x) release(x);
        return status;
    }
    bpt__comm_submit(comm, &x->job);
    *scatter = x;
    return BPT_OK;
}

static bpt_status stop(bpt_scatter *x) {
    say_stop(x);
    return bpt__comm_join(x->comm, &x->job);
}

bpt_status bpt_scatter_destroy(bpt_scatter *x) {
    if (!x) return BPT_OK;
    bpt_error first = {0};
    if (x->rank != 0) bpt__first_error_note(&first, stop(x));
    bpt__first_error_note(&first, bpt_comm_barrier(x->comm)); /* rank 0 answers until nobody asks */
    if (x->rank == 0) bpt__first_error_note(&first, stop(x));
    release(x);
    return bpt__first_error_put(&first);
}
