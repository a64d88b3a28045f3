#include "outer/comm/transfers.h"

#include "base/clock.h"
#include "base/memory.h"
#include "outer/comm/comm_thread.h"

#include <assert.h>

typedef struct group {
    size_t begin, room; /* of its requests */
    size_t used;        /* requests started since it was last complete */
    size_t pending;     /* of these, still under way */
    bool fresh;         /* became complete in the current poll */
} group;

/* A request's chunk of a message. */
typedef struct piece {
    const void *at; /* NULL: it is received */
    int bytes, peer, tag;
    size_t next;       /* request that waits behind this one for the same receiver, or NONE */
    uint64_t begin_ns; /* when MPI was given it */
} piece;

/* What one rank is sent: at most so many chunks at a time, the others in a queue. */
typedef struct receiver {
    uint32_t in_flight, most;
    size_t first, last; /* requests that wait, NONE if there are none */
} receiver;

#define NONE SIZE_MAX

struct bpt__transfers {
    MPI_Comm comm;
    size_t n_requests;
    MPI_Request *request; /* [n_requests], group after group; MPI_REQUEST_NULL if not in use */
    uint32_t *group_of;   /* [n_requests] */
    int *index;           /* [n_requests]: which completed */
    piece *piece;         /* [n_requests] */
    receiver *receiver;   /* [ranks of comm] */
    uint32_t n_groups;
    group *group;                    /* [n_groups] */
    const bpt__message_watch *watch; /* NULL: nobody is told */
};

size_t bpt__transfers_chunks(size_t bytes) {
    return bytes / BPT__CHUNK_BYTES + (bytes % BPT__CHUNK_BYTES > 0);
}

static bpt_status create_receivers(bpt__transfers *t, const uint32_t *most, uint32_t n_ranks) {
    BPT_TRY(BPT_NEW("receivers", n_ranks, &t->receiver));
    for (uint32_t r = 0; r < n_ranks; r++)
        t->receiver[r] = (receiver){.most = most[r], .first = NONE, .last = NONE};
    return BPT_OK;
}

bpt_status bpt__transfers_create(MPI_Comm comm, const uint32_t *in_flight, uint32_t n_ranks,
                                 const size_t *room, uint32_t n_groups,
                                 const bpt__message_watch *watch, bpt__transfers **transfers) {
    bpt__transfers *t = NULL;
    bpt_status status = BPT_OK;
    BPT_TRY(BPT_NEW("transfers", 1, &t));
    t->comm = comm;
    t->n_groups = n_groups;
    t->watch = watch;
    BPT_TRY_GOTO(status, BPT_NEW("groups of transfers", n_groups, &t->group), err_free);
    for (uint32_t g = 0; g < n_groups; g++) {
        t->group[g] = (group){.begin = t->n_requests, .room = room[g]};
        t->n_requests += room[g];
    }
    BPT_TRY_GOTO(status, BPT_NEW("requests", t->n_requests, &t->request), err_free);
    BPT_TRY_GOTO(status, BPT_NEW("groups of requests", t->n_requests, &t->group_of), err_free);
    BPT_TRY_GOTO(status, BPT_NEW("completed requests", t->n_requests, &t->index), err_free);
    BPT_TRY_GOTO(status, BPT_NEW("chunks of messages", t->n_requests, &t->piece), err_free);
    BPT_TRY_GOTO(status, create_receivers(t, in_flight, n_ranks), err_free);
    for (uint32_t g = 0; g < n_groups; g++)
        for (size_t i = 0; i < room[g]; i++) t->group_of[t->group[g].begin + i] = g;
    for (size_t i = 0; i < t->n_requests; i++) t->request[i] = MPI_REQUEST_NULL;
    *transfers = t;
    return BPT_OK;
err_free:
    bpt__transfers_free(t);
    return status;
}

void bpt__transfers_free(bpt__transfers *t) {
    if (!t) return;
    bpt_free(t->receiver);
    bpt_free(t->piece);
    bpt_free(t->index);
    bpt_free(t->group_of);
    bpt_free(t->request);
    bpt_free(t->group);
    bpt_free(t);
}

static size_t next_request(bpt__transfers *t, uint32_t g) {
    group *to = &t->group[g];
    assert(to->used < to->room && "a group has room for its largest set of messages");
    to->pending++;
    return to->begin + to->used++;
}

static size_t chunk(size_t bytes) {
    return bytes < BPT__CHUNK_BYTES ? bytes : BPT__CHUNK_BYTES;
}

static bpt_status start(bpt__transfers *t, size_t request) {
    piece *p = &t->piece[request];
    t->receiver[p->peer].in_flight++;
    p->begin_ns = bpt_clock_ns();
    return bpt__mpi_check(
        MPI_Isend(p->at, p->bytes, MPI_BYTE, p->peer, p->tag, t->comm, &t->request[request]),
        "send");
}

static void wait_in_line(bpt__transfers *t, receiver *r, size_t request) {
    if (r->first == NONE)
        r->first = request;
    else
        t->piece[r->last].next = request;
    r->last = request;
}

bpt_status bpt__transfers_send(bpt__transfers *t, uint32_t g, const void *data, size_t bytes,
                               uint32_t to, int tag) {
    receiver *r = &t->receiver[to];
    for (const char *at = data; bytes > 0; at += chunk(bytes), bytes -= chunk(bytes)) {
        const size_t request = next_request(t, g);
        t->piece[request] = (piece){at, (int)chunk(bytes), (int)to, tag, NONE, 0};
        if (r->in_flight < r->most)
            BPT_TRY(start(t, request));
        else
            wait_in_line(t, r, request);
    }
    return BPT_OK;
}

/* A chunk has left: the next one for the same rank may go. */
static bpt_status sent(bpt__transfers *t, size_t request) {
    receiver *r = &t->receiver[t->piece[request].peer];
    r->in_flight--;
    if (r->first == NONE) return BPT_OK;
    const size_t next = r->first;
    r->first = t->piece[next].next;
    return start(t, next);
}

bpt_status bpt__transfers_recv(bpt__transfers *t, uint32_t g, void *data, size_t bytes,
                               uint32_t from, int tag) {
    for (char *at = data; bytes > 0; at += chunk(bytes), bytes -= chunk(bytes)) {
        const size_t request = next_request(t, g);
        t->piece[request] = (piece){NULL, (int)chunk(bytes), (int)from, tag, NONE, bpt_clock_ns()};
        BPT_TRY(bpt__mpi_check(MPI_Irecv(at, (int)chunk(bytes), MPI_BYTE, (int)from, tag, t->comm,
                                         &t->request[request]),
                               "receive"));
    }
    return BPT_OK;
}

static void tell(const bpt__transfers *t, const piece *p) {
    if (!t->watch || !t->watch->note) return;
    const bpt_message message = {
        .sent = p->at != NULL,
        .peer = (uint32_t)p->peer,
        .bytes = (size_t)p->bytes,
        .begin_ns = p->begin_ns,
        .end_ns = bpt_clock_ns(),
    };
    t->watch->note(t->watch->arg, &message);
}

bpt_status bpt__transfers_poll(bpt__transfers *t, bool *moved, uint32_t *complete,
                               uint32_t *n_complete) {
    int n = 0;
    *n_complete = 0;
    BPT_TRY(bpt__mpi_check(
        MPI_Testsome((int)t->n_requests, t->request, &n, t->index, MPI_STATUSES_IGNORE),
        "complete messages"));
    if (n == MPI_UNDEFINED || n == 0) return BPT_OK; /* nothing under way, or nothing complete */
    *moved = true;
    for (int i = 0; i < n; i++) {
        const size_t request = (size_t)t->index[i];
        group *of = &t->group[t->group_of[request]];
        of->fresh = --of->pending == 0;
        tell(t, &t->piece[request]);
        if (t->piece[request].at) BPT_TRY(sent(t, request));
    }
    for (uint32_t g = 0; g < t->n_groups; g++) {
        if (!t->group[g].fresh) continue;
        t->group[g].fresh = false;
        t->group[g].used = 0;
        complete[(*n_complete)++] = g;
    }
    return BPT_OK;
}

uint32_t bpt__transfers_pending(const bpt__transfers *t, uint32_t g) {
    return (uint32_t)t->group[g].pending;
}

void bpt__transfers_cancel(bpt__transfers *t) {
    for (size_t i = 0; i < t->n_requests; i++) {
        if (t->request[i] == MPI_REQUEST_NULL) continue;
        MPI_Cancel(&t->request[i]);
        MPI_Wait(&t->request[i], MPI_STATUS_IGNORE);
    }
}
