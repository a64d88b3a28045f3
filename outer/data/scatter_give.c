/* Rank 0: hears requests, lets them be answered in the order in which they came, sends. */
#include "base/memory.h"
#include "outer/data/scatter_state.h"

/* ---- memory ---- */

bpt_status bpt__giver_create(bpt_scatter *x) {
    bpt__giver *g = &x->giver;
    const size_t largest = bpt__scatter_parcel_bytes(x, x->options.items_per_parcel);
    g->n_listeners = (x->m - 1) * BPT__SCATTER_SLOTS;
    BPT_TRY(bpt_alloc("requests", g->n_listeners, x->request_bytes, (void **)&g->requests));
    BPT_TRY(BPT_NEW("queue of requests", g->n_listeners, &g->queue));
    for (int p = 0; p < BPT__SCATTER_PARCELS; p++)
        BPT_TRY(BPT_NEW("parcel", largest, &g->parcels[p].bytes));
    return BPT_OK;
}

void bpt__giver_free(bpt_scatter *x) {
    bpt__giver *g = &x->giver;
    for (int p = 0; p < BPT__SCATTER_PARCELS; p++) bpt_free(g->parcels[p].bytes);
    bpt_free(g->queue);
    bpt_free(g->requests);
}

bpt_status bpt__giver_transfers(bpt_scatter *x) {
    const bpt__giver *g = &x->giver;
    const uint32_t n = g->n_listeners + BPT__SCATTER_PARCELS;
    size_t *room = NULL;
    BPT_TRY(BPT_NEW("room for messages", n, &room));
    for (uint32_t l = 0; l < n; l++)
        room[l] = l < g->n_listeners ? 1 : 2; /* a request; verdict and parcel */
    const bpt_status status = bpt__comm_transfers(x->comm, room, n, &x->transfers);
    bpt_free(room);
    return status;
}

static bpt__scatter_request *request_of(const bpt_scatter *x, uint32_t listener) {
    return (bpt__scatter_request *)(x->giver.requests + listener * x->request_bytes);
}

static uint32_t rank_of(uint32_t listener) {
    return 1 + listener / BPT__SCATTER_SLOTS;
}

/* ---- MPI thread ---- */

static bpt_status listen(bpt_scatter *x, uint32_t listener) {
    const int tag = bpt__scatter_tag(listener % BPT__SCATTER_SLOTS, true);
    return bpt__transfers_recv(x->transfers, listener, request_of(x, listener), x->request_bytes,
                               rank_of(listener), tag);
}

static bpt_status begin(bpt_scatter *x) {
    for (uint32_t l = 0; l < x->giver.n_listeners; l++) BPT_TRY(listen(x, l));
    x->listening = true;
    return BPT_OK;
}

/* A listener has heard something, or a parcel has left. */
static void complete(bpt_scatter *x, uint32_t group) {
    bpt__giver *g = &x->giver;
    pthread_mutex_lock(&x->mutex);
    if (group < g->n_listeners) {
        g->queue[(g->first + g->n_queued++) % g->n_listeners] = group;
    } else {
        g->parcels[group - g->n_listeners].state = BPT__PARCEL_FREE;
    }
    pthread_cond_broadcast(&x->changed);
    pthread_mutex_unlock(&x->mutex);
}

/* Takes a parcel that is made. @return NULL: there is none; @p busy: any is not free */
static bpt__scatter_parcel *take_made(bpt_scatter *x, bool *busy) {
    bpt__giver *g = &x->giver;
    bpt__scatter_parcel *made = NULL;
    pthread_mutex_lock(&x->mutex);
    *busy = g->n_queued > 0;
    for (int p = 0; p < BPT__SCATTER_PARCELS; p++) {
        *busy = *busy || g->parcels[p].state != BPT__PARCEL_FREE;
        if (!made && g->parcels[p].state == BPT__PARCEL_MADE) made = &g->parcels[p];
    }
    if (made) made->state = BPT__PARCEL_LEAVING;
    pthread_mutex_unlock(&x->mutex);
    return made;
}

/* @return the items of a parcel that answers a request, be it one that is refused */
static uint32_t items_to_send(const bpt_scatter *x, const bpt__scatter_request *r) {
    return r->n < x->options.items_per_parcel ? r->n : x->options.items_per_parcel;
}

static bpt_status answer(bpt_scatter *x, bpt__scatter_parcel *p) {
    const uint32_t l = p->listener, n = items_to_send(x, request_of(x, l));
    const uint32_t group = x->giver.n_listeners + (uint32_t)(p - x->giver.parcels);
    const int tag = bpt__scatter_tag(l % BPT__SCATTER_SLOTS, false);
    BPT_TRY(listen(x, l)); /* first: the next request comes as soon as this is answered */
    BPT_TRY(
        bpt__transfers_send(x->transfers, group, &p->verdict, sizeof p->verdict, rank_of(l), tag));
    return bpt__transfers_send(x->transfers, group, p->bytes, bpt__scatter_parcel_bytes(x, n),
                               rank_of(l), tag);
}

bpt_status bpt__giver_poll(bpt_scatter *x, bool *moved, bool *done) {
    uint32_t n_complete = 0;
    bool busy;
    if (!x->listening) BPT_TRY(begin(x));
    BPT_TRY(bpt__scatter_transfer(x, moved, &n_complete));
    for (uint32_t i = 0; i < n_complete; i++) complete(x, x->complete[i]);
    for (bpt__scatter_parcel *p; (p = take_made(x, &busy)); *moved = true) BPT_TRY(answer(x, p));
    pthread_mutex_lock(&x->mutex);
    *done = x->stopping && !busy; /* all others have ended: nothing comes any more */
    pthread_mutex_unlock(&x->mutex);
    if (*done) bpt__transfers_cancel(x->transfers);
    return BPT_OK;
}

/* ---- the thread that makes parcels ---- */

static bpt__scatter_parcel *find_free(bpt__giver *g) {
    for (int p = 0; p < BPT__SCATTER_PARCELS; p++)
        if (g->parcels[p].state == BPT__PARCEL_FREE) return &g->parcels[p];
    return NULL;
}

static bpt_status make(const bpt_scatter *x, const bpt__scatter_parcel *p) {
    const bpt__scatter_request *r = request_of(x, p->listener);
    if (r->n < 1 || r->n > x->options.items_per_parcel)
        return bpt_fail(BPT_ECOMM, "rank %u asks for %u items in a parcel, which holds 1 to %u",
                        rank_of(p->listener), r->n, x->options.items_per_parcel);
    const bpt_scatter_items items = {.kind = r->kind, .n = r->n, .number = r->number};
    return x->options.make(x->options.arg, &items, p->bytes);
}

/* With the mutex, which is given back while a parcel is made. */
static void make_next(bpt_scatter *x, bpt__scatter_parcel *p) {
    bpt__giver *g = &x->giver;
    p->state = BPT__PARCEL_MAKING;
    p->listener = g->queue[g->first];
    g->first = (g->first + 1) % g->n_listeners;
    g->n_queued--;
    pthread_mutex_unlock(&x->mutex);
    const bpt__scatter_request *r = request_of(x, p->listener);
    p->verdict = (bpt_error){.status = BPT_OK};
    bpt__comm_help_begin(x->comm, BPT__SCATTER_MAKES_AT);
    if (make(x, p) != BPT_OK) bpt_error_get(&p->verdict);
    bpt__comm_help_end(x->comm);
    pthread_mutex_lock(&x->mutex);
    if (p->verdict.status == BPT_OK) {
        x->stats.items_sent += r->n;
        x->stats.item_bytes_sent += r->n * x->options.item_bytes;
    } else {
        bpt__scatter_fail(x);
    }
    p->state = BPT__PARCEL_MADE;
}

void *bpt__giver_main(void *scatter) {
    bpt_scatter *x = scatter;
    bpt__giver *g = &x->giver;
    pthread_mutex_lock(&x->mutex);
    while (!x->stopping) {
        bpt__scatter_parcel *p = g->n_queued > 0 ? find_free(g) : NULL;
        if (!p) {
            pthread_cond_wait(&x->changed, &x->mutex);
            continue;
        }
        make_next(x, p);
        bpt__comm_wake(x->comm);
    }
    pthread_mutex_unlock(&x->mutex);
    return NULL;
}
