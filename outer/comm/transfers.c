#include "outer/comm/transfers.h"

#include "base/clock.h"
#include "base/memory.h"
#include "outer/comm/comm_thread.h"

#include <assert.h>

/* Open MPI sends over TCP without asking what takes 64 KiB at most, with a header of its own. */
const bpt__way bpt__way_network = {
    .chunk_bytes = 63 << 10, .in_flight = 8, .ahead = 2, .beyond = 16};
const bpt__way bpt__way_memory = {
    .chunk_bytes = 1 << 19, .in_flight = 16, .ahead = 4, .beyond = 32};

#define NONE SIZE_MAX

typedef struct group {
    size_t begin, room; /* of its messages */
    size_t used;        /* messages since it was last complete */
    size_t pending;     /* chunks of these that are not complete */
    bool fresh;         /* became complete in the current poll */
} group;

/* Chunks begin from the first to the last. */
typedef struct message {
    const char *from; /* NULL: it is received */
    char *to;         /* NULL: it is sent */
    size_t bytes, begun;
    size_t next; /* message behind this one in the line that it stands in, or NONE */
    uint32_t peer, group;
    int tag;
    uint32_t under_way; /* chunks that MPI has */
    bool comes;         /* a chunk has come */
} message;

/* A chunk that MPI has. */
typedef struct chunk {
    size_t message;
    int bytes;
    uint64_t begin_ns; /* when MPI was given it */
} chunk;

/* Messages of which a part has not begun. */
typedef struct line {
    size_t first, last; /* NONE if there are none */
} line;

typedef struct peer {
    bpt__way way;
    uint32_t in_flight; /* chunks for it that MPI has */
    uint32_t beyond;    /* receives from it that are more than `ahead` of their message */
    line to_send, to_receive;
} peer;

struct bpt__transfers {
    MPI_Comm comm;
    peer *peer;       /* [ranks of comm] */
    message *message; /* group after group */
    uint32_t n_groups;
    group *group;                    /* [n_groups] */
    size_t n_active, most_active;    /* chunks that MPI has, and that it may have */
    MPI_Request *request;            /* [n_active], in no order; room for most_active, as below */
    chunk *chunk;                    /* [n_active] */
    int *index;                      /* scratch: which of them are complete */
    chunk *complete;                 /* scratch: what these were */
    const bpt__message_watch *watch; /* NULL: nobody is told */
};

/* ---- life ---- */

static bpt_status create_peers(bpt__transfers *t, const bpt__way *ways, uint32_t n_ranks,
                               size_t n_messages) {
    uint32_t ahead = 0;
    BPT_TRY(BPT_NEW("ranks to send to", n_ranks, &t->peer));
    for (uint32_t r = 0; r < n_ranks; r++) {
        t->peer[r] = (peer){ways[r], 0, 0, {NONE, NONE}, {NONE, NONE}};
        t->most_active += ways[r].in_flight + ways[r].beyond;
        if (ways[r].ahead > ahead) ahead = ways[r].ahead;
    }
    t->most_active += n_messages * ahead;
    return BPT_OK;
}

/* @param[out] n_messages that there may be at a time */
static bpt_status create_groups(bpt__transfers *t, const size_t *room, size_t *n_messages) {
    *n_messages = 0;
    BPT_TRY(BPT_NEW("groups of messages", t->n_groups, &t->group));
    for (uint32_t g = 0; g < t->n_groups; g++) {
        t->group[g] = (group){.begin = *n_messages, .room = room[g]};
        *n_messages += room[g];
    }
    return BPT_NEW("messages", *n_messages, &t->message);
}

bpt_status bpt__transfers_create(MPI_Comm comm, const bpt__way *ways, uint32_t n_ranks,
                                 const size_t *room, uint32_t n_groups,
                                 const bpt__message_watch *watch, bpt__transfers **transfers) {
    bpt__transfers *t = NULL;
    bpt_status status = BPT_OK;
    size_t n_messages;
    BPT_TRY(BPT_NEW("transfers", 1, &t));
    t->comm = comm;
    t->n_groups = n_groups;
    t->watch = watch;
    BPT_TRY_GOTO(status, create_groups(t, room, &n_messages), err_free);
    BPT_TRY_GOTO(status, create_peers(t, ways, n_ranks, n_messages), err_free);
    BPT_TRY_GOTO(status, BPT_NEW("requests", t->most_active, &t->request), err_free);
    BPT_TRY_GOTO(status, BPT_NEW("chunks", t->most_active, &t->chunk), err_free);
    BPT_TRY_GOTO(status, BPT_NEW("numbers of complete chunks", t->most_active, &t->index),
                 err_free);
    BPT_TRY_GOTO(status, BPT_NEW("complete chunks", t->most_active, &t->complete), err_free);
    *transfers = t;
    return BPT_OK;
err_free:
    bpt__transfers_free(t);
    return status;
}

void bpt__transfers_free(bpt__transfers *t) {
    if (!t) return;
    bpt_free(t->complete);
    bpt_free(t->index);
    bpt_free(t->chunk);
    bpt_free(t->request);
    bpt_free(t->peer);
    bpt_free(t->message);
    bpt_free(t->group);
    bpt_free(t);
}

/* ---- lines ---- */

static void append(bpt__transfers *t, line *l, size_t m) {
    t->message[m].next = NONE;
    if (l->first == NONE)
        l->first = m;
    else
        t->message[l->last].next = m;
    l->last = m;
}

static void take_out(bpt__transfers *t, line *l, size_t m) {
    size_t before = NONE;
    for (size_t i = l->first; i != m; i = t->message[i].next) before = i;
    if (before == NONE)
        l->first = t->message[m].next;
    else
        t->message[before].next = t->message[m].next;
    if (l->last == m) l->last = before;
}

/* @return the first with this tag, or NONE */
static size_t find(const bpt__transfers *t, const line *l, int tag) {
    size_t m = l->first;
    while (m != NONE && t->message[m].tag != tag) m = t->message[m].next;
    return m;
}

/* ---- chunks begin ---- */

static bool all_begun(const message *m) {
    return m->begun == m->bytes;
}

/* Gives MPI the next chunk of a message. */
static bpt_status begin(bpt__transfers *t, size_t number) {
    message *m = &t->message[number];
    const size_t left = m->bytes - m->begun, most = t->peer[m->peer].way.chunk_bytes;
    const int bytes = (int)(left < most ? left : most);
    assert(t->n_active < t->most_active);
    MPI_Request *request = &t->request[t->n_active];
    const int code =
        m->from
            ? MPI_Isend(m->from + m->begun, bytes, MPI_BYTE, (int)m->peer, m->tag, t->comm, request)
            : MPI_Irecv(m->to + m->begun, bytes, MPI_BYTE, (int)m->peer, m->tag, t->comm, request);
    BPT_TRY(bpt__mpi_check(code, m->from ? "send" : "receive"));
    t->chunk[t->n_active++] = (chunk){number, bytes, bpt_clock_ns()};
    m->begun += (size_t)bytes;
    m->under_way++;
    return BPT_OK;
}

/* To one rank, as many as may be under way. */
static bpt_status begin_sends(bpt__transfers *t, peer *p) {
    while (p->to_send.first != NONE && p->in_flight < p->way.in_flight) {
        const size_t m = p->to_send.first;
        p->in_flight++;
        BPT_TRY(begin(t, m));
        if (all_begun(&t->message[m])) take_out(t, &p->to_send, m);
    }
    return BPT_OK;
}

/* Of one message, as many as may be. */
static bpt_status begin_receives_of(bpt__transfers *t, size_t number) {
    message *m = &t->message[number];
    peer *p = &t->peer[m->peer];
    while (!all_begun(m)) {
        if (m->under_way >= p->way.ahead) {
            if (!m->comes || p->beyond == p->way.beyond) break;
            p->beyond++;
        }
        BPT_TRY(begin(t, number));
    }
    return BPT_OK;
}

/* Of the first message in line with its tag, and of those with the same tag behind it: MPI would
 * give these what comes of it, so none begins before all of the one ahead has. */
static bpt_status begin_receives(bpt__transfers *t, size_t m) {
    line *l = &t->peer[t->message[m].peer].to_receive;
    while (m != NONE) {
        BPT_TRY(begin_receives_of(t, m));
        if (!all_begun(&t->message[m])) break;
        take_out(t, l, m);
        m = find(t, l, t->message[m].tag);
    }
    return BPT_OK;
}

/* ---- messages begin ---- */

static size_t add(bpt__transfers *t, const message *m) {
    group *to = &t->group[m->group];
    const size_t most = t->peer[m->peer].way.chunk_bytes, number = to->begin + to->used;
    assert(to->used < to->room && "a group has room for its largest set of messages");
    to->used++;
    to->pending += m->bytes / most + (m->bytes % most > 0);
    t->message[number] = *m;
    return number;
}

bpt_status bpt__transfers_send(bpt__transfers *t, uint32_t g, const void *data, size_t bytes,
                               uint32_t to, int tag) {
    if (bytes == 0) return BPT_OK;
    const message m = {.from = data, .bytes = bytes, .peer = to, .group = g, .tag = tag};
    append(t, &t->peer[to].to_send, add(t, &m));
    return begin_sends(t, &t->peer[to]);
}

bpt_status bpt__transfers_recv(bpt__transfers *t, uint32_t g, void *data, size_t bytes,
                               uint32_t from, int tag) {
    if (bytes == 0) return BPT_OK;
    const message m = {.to = data, .bytes = bytes, .peer = from, .group = g, .tag = tag};
    line *l = &t->peer[from].to_receive;
    const bool waits = find(t, l, tag) != NONE;
    const size_t number = add(t, &m);
    append(t, l, number);
    return waits ? BPT_OK : begin_receives(t, number);
}

/* ---- chunks end ---- */

static void tell(const bpt__transfers *t, const chunk *c) {
    if (!t->watch || !t->watch->note) return;
    const message *m = &t->message[c->message];
    const bpt_message told = {
        .sent = m->from != NULL,
        .peer = m->peer,
        .bytes = (size_t)c->bytes,
        .begin_ns = c->begin_ns,
        .end_ns = bpt_clock_ns(),
    };
    t->watch->note(t->watch->arg, &told);
}

/* Others begin in its place. */
static bpt_status end(bpt__transfers *t, const chunk *c) {
    message *m = &t->message[c->message];
    peer *p = &t->peer[m->peer];
    group *of = &t->group[m->group];
    of->fresh = --of->pending == 0;
    tell(t, c);
    if (m->from) {
        m->under_way--;
        p->in_flight--;
        return begin_sends(t, p);
    }
    if (m->under_way-- > p->way.ahead) p->beyond--;
    m->comes = true;
    return all_begun(m) ? BPT_OK : begin_receives(t, c->message);
}

/* Moves what is complete to where others may begin meanwhile, and closes the gaps. MPI has set the
 * requests of these to null, the last in the array perhaps among them. */
static void close_gaps(bpt__transfers *t, size_t n) {
    for (size_t i = 0; i < n; i++) t->complete[i] = t->chunk[t->index[i]];
    for (size_t i = 0; i < n; i++) {
        const size_t gap = (size_t)t->index[i];
        while (t->n_active > 0 && t->request[t->n_active - 1] == MPI_REQUEST_NULL) t->n_active--;
        if (gap >= t->n_active) continue;
        t->n_active--;
        t->request[gap] = t->request[t->n_active];
        t->chunk[gap] = t->chunk[t->n_active];
    }
}

/* MPI looks which are complete, and goes on with its messages only where none is. What that brings
 * is to be seen now, and not after a nap. */
static bpt_status look(bpt__transfers *t, int *n) {
    for (int i = 0; i < 2 && *n == 0; i++)
        BPT_TRY(bpt__mpi_check(
            MPI_Testsome((int)t->n_active, t->request, n, t->index, MPI_STATUSES_IGNORE),
            "complete messages"));
    return BPT_OK;
}

bpt_status bpt__transfers_poll(bpt__transfers *t, bool *moved, uint32_t *complete,
                               uint32_t *n_complete) {
    int n = 0;
    *n_complete = 0;
    BPT_TRY(look(t, &n));
    if (n == MPI_UNDEFINED || n == 0) return BPT_OK; /* nothing under way, or nothing complete */
    *moved = true;
    close_gaps(t, (size_t)n);
    for (int i = 0; i < n; i++) BPT_TRY(end(t, &t->complete[i]));
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
    for (; t->n_active > 0; t->n_active--) {
        MPI_Request *request = &t->request[t->n_active - 1];
        MPI_Cancel(request);
        MPI_Wait(request, MPI_STATUS_IGNORE);
    }
}
