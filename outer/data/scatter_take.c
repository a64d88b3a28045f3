/* The other ranks: ask for what is wanted, and let it be kept in that order. */
#include "base/memory.h"
#include "outer/data/scatter_state.h"

#include <string.h>

/* ---- memory ---- */

bpt_status bpt__taker_create(bpt_scatter *x) {
    bpt__taker *t = &x->taker;
    const size_t largest = bpt__scatter_parcel_bytes(x, x->options.items_per_parcel);
    BPT_TRY(BPT_NEW("wanted items", x->options.n_items, &t->number));
    BPT_TRY(BPT_NEW("kinds of wanted items", x->options.n_items, &t->kind));
    for (int s = 0; s < BPT__SCATTER_SLOTS; s++) {
        BPT_TRY(bpt_alloc("request", x->request_bytes, 1, (void **)&t->slots[s].request));
        BPT_TRY(BPT_NEW("parcel", largest, &t->slots[s].parcel));
    }
    return BPT_OK;
}

void bpt__taker_free(bpt_scatter *x) {
    bpt__taker *t = &x->taker;
    for (int s = 0; s < BPT__SCATTER_SLOTS; s++) {
        bpt_free(t->slots[s].parcel);
        bpt_free(t->slots[s].request);
    }
    bpt_free(t->kind);
    bpt_free(t->number);
}

bpt_status bpt__taker_transfers(bpt_scatter *x) {
    size_t room[BPT__SCATTER_SLOTS];
    for (int s = 0; s < BPT__SCATTER_SLOTS; s++) room[s] = 3; /* request, verdict, parcel */
    return bpt__comm_transfers(x->comm, room, BPT__SCATTER_SLOTS, &x->transfers);
}

/* ---- MPI thread ---- */

static bool any_slot(const bpt__taker *t, enum bpt__scatter_request_slot_state state) {
    for (int s = 0; s < BPT__SCATTER_SLOTS; s++)
        if (t->slots[s].state == state) return true;
    return false;
}

/* Puts what is wanted next, of one kind, into the next slot. @return whether there is something,
 * and room for it */
static bool prepare(bpt_scatter *x, uint32_t *slot) {
    bpt__taker *t = &x->taker;
    const uint64_t n_wanted = atomic_load_explicit(&x->n_wanted, memory_order_relaxed);
    uint64_t end = t->n_asked;
    *slot = (uint32_t)(t->n_requests % BPT__SCATTER_SLOTS);
    bpt__scatter_request_slot *s = &t->slots[*slot];
    if (x->quiet || x->stopping || atomic_load_explicit(&x->failed, memory_order_relaxed) ||
        end == n_wanted || s->state != BPT__REQUEST_FREE)
        return false;
    while (end < n_wanted && end - t->n_asked < x->options.items_per_parcel &&
           t->kind[end] == t->kind[t->n_asked])
        end++;
    s->request->kind = t->kind[t->n_asked];
    s->request->n = (uint32_t)(end - t->n_asked);
    memcpy(s->request->number, t->number + t->n_asked, s->request->n * sizeof *t->number);
    s->state = BPT__REQUEST_ASKED;
    t->n_asked = end;
    t->n_requests++;
    return true;
}

/* Receives first, so that the answer finds somebody waiting. */
static bpt_status ask(bpt_scatter *x, uint32_t slot) {
    bpt__scatter_request_slot *s = &x->taker.slots[slot];
    const int up = bpt__scatter_tag(slot, true), down = bpt__scatter_tag(slot, false);
    BPT_TRY(bpt__transfers_recv(x->transfers, slot, &s->verdict, sizeof s->verdict, 0, down));
    BPT_TRY(bpt__transfers_recv(x->transfers, slot, s->parcel,
                                bpt__scatter_parcel_bytes(x, s->request->n), 0, down));
    return bpt__transfers_send(x->transfers, slot, s->request, x->request_bytes, 0, up);
}

static void arrive(bpt_scatter *x, uint32_t slot) {
    pthread_mutex_lock(&x->mutex);
    x->taker.slots[slot].state = BPT__REQUEST_ARRIVED;
    pthread_cond_broadcast(&x->changed);
    pthread_mutex_unlock(&x->mutex);
}

bpt_status bpt__taker_poll(bpt_scatter *x, bool *moved, bool *done) {
    uint32_t n_complete = 0;
    BPT_TRY(bpt__scatter_transfer(x, moved, &n_complete));
    for (uint32_t i = 0; i < n_complete; i++) arrive(x, x->complete[i]);
    for (;;) {
        uint32_t slot;
        pthread_mutex_lock(&x->mutex);
        const bool asks = prepare(x, &slot);
        *done = x->stopping && !any_slot(&x->taker, BPT__REQUEST_ASKED);
        pthread_mutex_unlock(&x->mutex);
        if (!asks) return BPT_OK;
        BPT_TRY(ask(x, slot));
        *moved = true;
    }
}

/* ---- the thread that keeps parcels ---- */

static bpt_status keep(const bpt_scatter *x, const bpt__scatter_request_slot *s) {
    const bpt__scatter_request *r = s->request;
    const bpt_scatter_items items = {.kind = r->kind, .n = r->n, .number = r->number};
    if (s->verdict.status != BPT_OK) return bpt_error_put(&s->verdict);
    bpt__comm_help_begin(x->comm, BPT__SCATTER_KEEPS_AT);
    const bpt_status status = x->options.keep(x->options.arg, &items, s->parcel);
    bpt__comm_help_end(x->comm);
    return status;
}

/* With the mutex, which is given back while a parcel is kept. Behind a failure nothing is: what is
 * kept has no gaps. */
static void keep_next(bpt_scatter *x, bpt__scatter_request_slot *s) {
    if (!atomic_load_explicit(&x->failed, memory_order_relaxed)) {
        pthread_mutex_unlock(&x->mutex);
        const bpt_status status = keep(x, s);
        pthread_mutex_lock(&x->mutex);
        if (status == BPT_OK) {
            x->stats.items_kept += s->request->n;
            x->stats.item_bytes_kept += s->request->n * x->options.item_bytes;
            atomic_store_explicit(&x->n_kept, bpt_scatter_kept(x) + s->request->n,
                                  memory_order_release);
        } else {
            bpt__scatter_fail(x);
        }
    }
    s->state = BPT__REQUEST_FREE;
    x->taker.n_done++;
    pthread_cond_broadcast(&x->changed);
}

bool bpt__taker_busy(const bpt_scatter *x) {
    return any_slot(&x->taker, BPT__REQUEST_ASKED) || any_slot(&x->taker, BPT__REQUEST_ARRIVED);
}

bool bpt__taker_keeps(const bpt_scatter *x) {
    const bpt__taker *t = &x->taker;
    return x->rank != 0 && t->slots[t->n_done % BPT__SCATTER_SLOTS].state == BPT__REQUEST_ARRIVED;
}

void *bpt__taker_main(void *scatter) {
    bpt_scatter *x = scatter;
    bpt__taker *t = &x->taker;
    pthread_mutex_lock(&x->mutex);
    for (;;) {
        bpt__scatter_request_slot *s = &t->slots[t->n_done % BPT__SCATTER_SLOTS];
        if (s->state == BPT__REQUEST_ARRIVED) {
            keep_next(x, s);
            bpt__comm_wake(x->comm);
        } else if (x->stopping && (x->dead || !any_slot(t, BPT__REQUEST_ASKED))) {
            break;
        } else {
            pthread_cond_wait(&x->changed, &x->mutex);
        }
    }
    pthread_mutex_unlock(&x->mutex);
    return NULL;
}
