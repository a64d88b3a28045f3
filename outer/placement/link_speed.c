#include "outer/placement/link_speed.h"

#include "base/clock.h"
#include "base/memory.h"
#include "outer/comm/comm_thread.h"
#include "outer/comm/transfers.h"
#include "outer/placement/link_pairs.h"

#include <assert.h>

/* What a pair sends: twice to get its connection going, then what is timed. The other turn's end
 * starts it, so both begin at about the same time. In chunks as weights go
 * (outer/comm/transfers.h): of one large message both would wait in turn for the other's leave. */
static const int turn_bytes[] = {1 << 18, 1 << 18, 1 << 20};
enum { TURNS = 3, MOST_BYTES = 1 << 20, MOST_CHUNKS = 64 };
_Static_assert((int)TURNS <= BPT__TAGS_LINKS, "each turn has a tag");

typedef struct {
    bpt__job job; /* first: the MPI thread is given this */
    MPI_Comm world;
    const uint32_t *first; /* as in link_pairs.h */
    uint32_t rank, size;
    uint32_t round, n_rounds;
    uint32_t other; /* of the pair */
    int turn;
    int n_requests; /* of the turn under way; 0: there is none */
    MPI_Request request[2 * MOST_CHUNKS];
    char *in, *out; /* [MOST_BYTES] */
    uint64_t start_ns;
    double best; /* bytes a second */
} probe;

/* Goes to the next round, from this one on, in which this rank has a partner. @return false: there
 * is none */
static bool find_pair(probe *p) {
    for (; p->round < p->n_rounds; p->round++) {
        p->other = bpt__link_partner(p->first, p->size, p->round, p->rank);
        if (p->other != p->rank) return true;
    }
    return false;
}

static bpt_status post_chunks(probe *p, char *data, bool receive) {
    const int most = (int)bpt__way_network.chunk_bytes, bytes = turn_bytes[p->turn];
    const int other = (int)p->other, tag = BPT__TAG_LINKS + p->turn;
    for (int at = 0; at < bytes; at += most) {
        const int n = bytes - at < most ? bytes - at : most;
        MPI_Request *request = &p->request[p->n_requests++];
        const int code = receive ? MPI_Irecv(data + at, n, MPI_BYTE, other, tag, p->world, request)
                                 : MPI_Isend(data + at, n, MPI_BYTE, other, tag, p->world, request);
        BPT_TRY(bpt__mpi_check(code, receive ? "receive from a link" : "send on a link"));
    }
    return BPT_OK;
}

static bpt_status post(probe *p) {
    assert(turn_bytes[p->turn] <= MOST_CHUNKS * (int)bpt__way_network.chunk_bytes);
    p->start_ns = bpt_clock_ns();
    BPT_TRY(post_chunks(p, p->in, true));
    return post_chunks(p, p->out, false);
}

static void end_turn(probe *p) {
    p->n_requests = 0;
    if (++p->turn < TURNS) return;
    const double speed = turn_bytes[TURNS - 1] / bpt_clock_seconds_since(p->start_ns);
    if (speed > p->best) p->best = speed;
    p->turn = 0;
    p->round++;
}

static bpt_status poll(bpt__job *job, bool *moved, bool *done) {
    probe *p = (probe *)job;
    if (p->n_requests == 0) {
        *moved = true;
        *done = !find_pair(p);
        return *done ? BPT_OK : post(p);
    }
    int complete = 0;
    BPT_TRY(bpt__mpi_check(MPI_Testall(p->n_requests, p->request, &complete, MPI_STATUSES_IGNORE),
                           "complete a turn on a link"));
    if (!complete) return BPT_OK;
    *moved = true;
    end_turn(p);
    return BPT_OK;
}

/* All are here, too: a late one would be slow to the other. */
static bpt_status measure(bpt_comm *c, const uint32_t *first, double *best) {
    char *block = NULL;
    bpt_status status = BPT_NEW("what a link is measured by", 2 * MOST_BYTES, &block);
    status = bpt_comm_agree(c, status);
    if (status != BPT_OK) goto out;
    probe p = {
        .job.poll = poll,
        .world = bpt__comm_messages(c),
        .first = first,
        .rank = bpt_comm_rank(c),
        .size = bpt_comm_size(c),
        .n_rounds = bpt__link_rounds(first, bpt_comm_size(c)),
        .in = block,
        .out = block + MOST_BYTES,
    };
    bpt__comm_submit(c, &p.job);
    status = bpt__comm_join(c, &p.job);
    *best = p.best;
out:
    bpt_free(block);
    return status;
}

static void find_hosts(const bpt_comm *c, uint32_t *first) {
    for (uint32_t r = 0; r < bpt_comm_size(c); r++)
        for (first[r] = 0; !bpt_comm_together(c, first[r], r);) first[r]++;
}

bpt_status bpt_comm_link_speeds(bpt_comm *c, double *bytes_per_s) {
    double best = 0;
    uint32_t *first = NULL;
    bpt_status status = bpt_comm_agree(c, BPT_NEW("hosts of ranks", bpt_comm_size(c), &first));
    if (status != BPT_OK) goto out;
    find_hosts(c, first);
    status = measure(c, first, &best);
    if (status == BPT_OK) status = bpt_comm_allgather(c, &best, sizeof best, bytes_per_s);
    if (status == BPT_OK) bpt__link_share(first, bpt_comm_size(c), bytes_per_s);
out:
    bpt_free(first);
    return status;
}
