/* Life, and what the training thread and the server's thread do; what the MPI thread does is in
 * relay_messages.c. */
#include "outer/placement/relay.h"

#include "base/checksum.h"
#include "base/clock.h"
#include "base/memory.h"
#include "outer/comm/alike.h"
#include "outer/placement/relay_state.h"

#include <assert.h>
#include <stdio.h>
#include <string.h>

/* ---- life ---- */

static void release(bpt_relay *r) {
    bpt__transfers_free(r->transfers);
    pthread_cond_destroy(&r->changed);
    pthread_mutex_destroy(&r->mutex);
    bpt_free(r->arrived);
    bpt_free(r->slots);
    bpt_free(r->complete);
    bpt_free(r->samples);
    bpt_free(r);
}

static bpt_status create_own(bpt_relay *r, const bpt_relay_options *o) {
    BPT_TRY(BPT_NEW("samples of ranks", r->m, &r->samples));
    BPT_TRY(BPT_NEW("complete groups", bpt__relay_groups(r), &r->complete));
    memcpy(r->samples, o->samples, r->m * sizeof *r->samples);
    if (r->rank == r->server) {
        BPT_TRY(BPT_NEW("batches of ranks", r->m, &r->slots));
        BPT_TRY(BPT_NEW("order of batches", r->m, &r->arrived));
        for (uint32_t w = 0; w < r->m; w++)
            r->slots[w] = (bpt__relay_slot){.values = o->values[w], .labels = o->labels[w]};
    }
    return bpt__relay_transfers(r);
}

static bpt_status create_bare(bpt_comm *comm, const bpt_relay_options *o, bpt_relay **out) {
    bpt_relay *r = NULL;
    BPT_TRY(BPT_NEW("relay", 1, &r));
    r->comm = comm;
    r->m = bpt_comm_size(comm);
    r->rank = bpt_comm_rank(comm);
    r->server = o->server;
    r->sample_bytes = o->sample_bytes;
    r->own_thread = o->own_thread;
    snprintf(r->waits_at, sizeof r->waits_at, "the layers on rank %u", r->server);
    pthread_mutex_init(&r->mutex, NULL);
    pthread_cond_init(&r->changed, NULL);
    assert(r->server < r->m && r->sample_bytes > 0);
    const bpt_status status = create_own(r, o);
    if (status == BPT_OK)
        *out = r;
    else
        release(r);
    return status;
}

static bpt_status compare_ranks(const bpt_relay *r) {
    const bpt__common mine[] = {
        {"has the layers at another rank", r->server, false},
        {"has another border", r->sample_bytes, false},
        {"has other batches", bpt_checksum(r->samples, r->m * sizeof *r->samples), false},
    };
    return bpt__alike(r->comm, mine, sizeof mine / sizeof *mine);
}

bpt_status bpt_relay_create(bpt_comm *comm, const bpt_relay_options *options, bpt_relay **out) {
    bpt_relay *r = NULL;
    bpt_status status = bpt_comm_agree(comm, create_bare(comm, options, &r));
    if (status == BPT_OK) status = compare_ranks(r);
    if (status != BPT_OK) {
        if (r) release(r);
        return status;
    }
    r->job.poll = bpt__relay_poll;
    bpt__comm_submit(comm, &r->job);
    *out = r;
    return BPT_OK;
}

bpt_status bpt_relay_destroy(bpt_relay *r) {
    if (!r) return BPT_OK;
    assert(r->phase != BPT__RELAY_SENT && "a batch is not answered");
    bpt_status status = bpt_comm_barrier(r->comm); /* then no rank sends any more */
    pthread_mutex_lock(&r->mutex);
    r->ending = true;
    pthread_mutex_unlock(&r->mutex);
    bpt__comm_wake(r->comm);
    const bpt_status joined = bpt__comm_join(r->comm, &r->job);
    if (status == BPT_OK) status = joined;
    release(r);
    return status;
}

/* ---- batches ---- */

void bpt__relay_arrive(bpt_relay *r, uint32_t worker) {
    assert(r->slots[worker].state == BPT__RELAY_SLOT_LISTENS && r->n_arrived < r->m);
    r->slots[worker].state = BPT__RELAY_SLOT_ARRIVED;
    r->arrived[(r->first_arrived + r->n_arrived++) % r->m] = worker;
    pthread_cond_broadcast(&r->changed);
}

/* On the server's own rank. The place is free: the batch before was answered. */
static void copy_own(const bpt_relay *r, const void *values, const int32_t *labels) {
    const bpt__relay_slot *slot = &r->slots[r->rank];
    memcpy(slot->values, values, bpt__relay_values_bytes(r, r->rank));
    memcpy(slot->labels, labels, r->samples[r->rank] * sizeof *labels);
}

/* Mutex held. */
static void bring_own(bpt_relay *r) {
    r->slots[r->rank].up = r->up;
    r->stats.local_bytes +=
        bpt__relay_values_bytes(r, r->rank) + r->samples[r->rank] * sizeof *r->labels;
    bpt__relay_arrive(r, r->rank);
}

bpt_status bpt_relay_send(bpt_relay *r, const bpt_relay_note *note, const void *values,
                          const int32_t *labels, void *gradient) {
    assert(gradient && "a batch is sent for its gradient");
    if (r->rank == r->server) copy_own(r, values, labels);
    pthread_mutex_lock(&r->mutex);
    assert(r->phase == BPT__RELAY_IDLE && "the last batch has not been waited for");
    const bool failed = r->failed;
    r->up = (bpt__relay_up){.seed = note->seed,
                            .step = note->step,
                            .first_sample = note->first_sample,
                            .denominator = note->denominator,
                            .rate = note->rate};
    r->values = values;
    r->labels = labels;
    r->gradient = gradient;
    if (!failed) r->phase = BPT__RELAY_SENT;
    if (!failed && r->rank == r->server) bring_own(r);
    pthread_mutex_unlock(&r->mutex);
    if (failed) return bpt_error_put(&r->error);
    bpt__comm_got_on(r->comm);
    bpt__comm_wake(r->comm);
    return BPT_OK;
}

bpt_status bpt_relay_wait(bpt_relay *r, bpt_relay_result *result) {
    const uint64_t begin_ns = bpt_clock_ns();
    bpt__comm_wait_begin(r->comm, r->waits_at);
    pthread_mutex_lock(&r->mutex);
    assert(r->phase != BPT__RELAY_IDLE && "there was no batch to wait for");
    while (r->phase == BPT__RELAY_SENT && !r->failed) pthread_cond_wait(&r->changed, &r->mutex);
    const bool answered = r->phase == BPT__RELAY_ANSWERED;
    r->phase = BPT__RELAY_IDLE;
    r->stats.wait_ns += bpt_clock_ns() - begin_ns;
    pthread_mutex_unlock(&r->mutex);
    bpt__comm_wait_end(r->comm);
    if (!answered) return bpt_error_put(&r->error);
    *result = r->down.result;
    if (r->down.status == BPT_OK) return BPT_OK;
    return bpt_fail((bpt_status)r->down.status, "%s", r->down.text);
}

/* ---- the server ---- */

/* A thread of its own is not what the rank is at, but others wait for what it will do. */
static void wait_for_change(bpt_relay *r) {
    if (r->own_thread)
        bpt__comm_expect_begin(r->comm);
    else
        bpt__comm_wait_begin(r->comm, "batches at the server");
    pthread_cond_wait(&r->changed, &r->mutex);
    if (r->own_thread)
        bpt__comm_expect_end(r->comm);
    else
        bpt__comm_wait_end(r->comm);
}

bpt_status bpt_relay_next(bpt_relay *r, uint32_t *worker, bpt_relay_note *note) {
    bpt_status status = BPT_OK;
    pthread_mutex_lock(&r->mutex);
    while (r->n_arrived == 0 && !r->stopped && !r->failed) wait_for_change(r);
    *worker = BPT_RELAY_NOBODY;
    if (r->failed) {
        status = bpt_error_put(&r->error);
    } else if (r->n_arrived > 0) {
        *worker = r->arrived[r->first_arrived];
        r->first_arrived = (r->first_arrived + 1) % r->m;
        r->n_arrived--;
        r->slots[*worker].state = BPT__RELAY_SLOT_TAKEN;
        const bpt__relay_up *up = &r->slots[*worker].up;
        *note = (bpt_relay_note){up->seed, up->step, up->first_sample, up->denominator, up->rate};
    }
    pthread_mutex_unlock(&r->mutex);
    return status;
}

/* Mutex held. */
static void answer_own(bpt_relay *r, const bpt__relay_down *down) {
    r->stats.local_bytes += bpt__relay_values_bytes(r, r->rank);
    r->stats.batches++;
    r->slots[r->rank].state = BPT__RELAY_SLOT_LISTENS;
    r->down = *down;
    r->phase = BPT__RELAY_ANSWERED;
    pthread_cond_broadcast(&r->changed);
}

static bpt_status answer(bpt_relay *r, uint32_t worker, const bpt__relay_down *down,
                         const void *gradient) {
    assert(gradient);
    bpt__relay_slot *slot = &r->slots[worker];
    const bool own = worker == r->rank; /* the batch has been sent: its place can be written */
    if (own) memcpy(r->gradient, gradient, bpt__relay_values_bytes(r, worker));
    pthread_mutex_lock(&r->mutex);
    const bool failed = r->failed;
    assert(slot->state == BPT__RELAY_SLOT_TAKEN && "an answer is for a batch that was taken");
    if (own) {
        answer_own(r, down);
    } else {
        slot->down = *down;
        slot->gradient = gradient;
        slot->state = BPT__RELAY_SLOT_ANSWERED;
    }
    pthread_mutex_unlock(&r->mutex);
    if (failed) return bpt_error_put(&r->error);
    if (!own) bpt__comm_wake(r->comm);
    return BPT_OK;
}

bpt_status bpt_relay_answer(bpt_relay *r, uint32_t worker, const bpt_relay_result *result,
                            const void *gradient) {
    return answer(r, worker, &(bpt__relay_down){.result = *result, .status = BPT_OK}, gradient);
}

bpt_status bpt_relay_refuse(bpt_relay *r, uint32_t worker, const void *gradient) {
    const bpt_error *error = bpt_error_last();
    bpt__relay_down down = {.status = error->status};
    snprintf(down.text, sizeof down.text, "%.200s", error->text);
    return answer(r, worker, &down, gradient);
}

void bpt_relay_stop(bpt_relay *r) {
    pthread_mutex_lock(&r->mutex);
    r->stopped = true;
    pthread_cond_broadcast(&r->changed);
    pthread_mutex_unlock(&r->mutex);
}

void bpt_relay_stats_get(bpt_relay *r, bpt_relay_stats *stats) {
    pthread_mutex_lock(&r->mutex);
    *stats = r->stats;
    pthread_mutex_unlock(&r->mutex);
}
