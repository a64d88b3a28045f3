#include "outer/link_speed.h"

#include "base/clock.h"
#include "base/memory.h"
#include "outer/comm_thread.h"

#include <string.h>

/* What a pair sends: twice to get its connection going, then what is timed. The other turn's end
 * starts it, so both begin at about the same time. */
static const int turn_bytes[] = {1 << 18, 1 << 18, 1 << 20};
enum { TURNS = 3, MOST_BYTES = 1 << 20 };

typedef struct {
    bpt__job job; /* first: the MPI thread is given this */
    const bpt_comm *comm;
    MPI_Comm world;
    uint32_t rank, size;
    uint32_t bit; /* the pair's: the other is rank XOR bit */
    int turn;
    bool posted;
    MPI_Request request[2];
    char *in, *out; /* [MOST_BYTES] */
    uint64_t start_ns;
    double best; /* bytes a second */
} probe;

/* Goes to the next bit, from this one on, that makes a pair of two hosts. @return false: no more */
static bool find_pair(probe *p) {
    for (; p->bit < p->size; p->bit <<= 1) {
        const uint32_t other = p->rank ^ p->bit;
        if (other < p->size &&
            strcmp(bpt_comm_host(p->comm, other), bpt_comm_host(p->comm, p->rank)) != 0)
            return true;
    }
    return false;
}

static bpt_status post(probe *p) {
    const int other = (int)(p->rank ^ p->bit), bytes = turn_bytes[p->turn];
    p->posted = true;
    p->start_ns = bpt_clock_ns();
    BPT_TRY(
        bpt__mpi_check(MPI_Irecv(p->in, bytes, MPI_BYTE, other, p->turn, p->world, &p->request[0]),
                       "receive from a link"));
    return bpt__mpi_check(
        MPI_Isend(p->out, bytes, MPI_BYTE, other, p->turn, p->world, &p->request[1]),
        "send on a link");
}

static void end_turn(probe *p) {
    p->posted = false;
    if (++p->turn < TURNS) return;
    const double speed = turn_bytes[TURNS - 1] / bpt_clock_seconds_since(p->start_ns);
    if (speed > p->best) p->best = speed;
    p->turn = 0;
    p->bit <<= 1;
}

static bpt_status poll(bpt__job *job, bool *moved, bool *done) {
    probe *p = (probe *)job;
    if (!p->posted) {
        *moved = true;
        *done = !find_pair(p);
        return *done ? BPT_OK : post(p);
    }
    int complete = 0;
    BPT_TRY(bpt__mpi_check(MPI_Testall(2, p->request, &complete, MPI_STATUSES_IGNORE),
                           "complete a turn on a link"));
    if (!complete) return BPT_OK;
    *moved = true;
    end_turn(p);
    return BPT_OK;
}

static bpt_status measure(bpt_comm *c, double *best) {
    char *block = NULL;
    bpt_status status = BPT_NEW("what a link is measured by", 2 * MOST_BYTES, &block);
    status =
        bpt_comm_agree(c, status); /* all are here, too: a late one would be slow to the other */
    if (status != BPT_OK) goto out;
    probe p = {
        .job.poll = poll,
        .comm = c,
        .world = bpt__comm_messages(c),
        .rank = bpt_comm_rank(c),
        .size = bpt_comm_size(c),
        .bit = 1,
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

bpt_status bpt_comm_link_speeds(bpt_comm *c, double *bytes_per_s) {
    double best = 0;
    BPT_TRY(measure(c, &best));
    return bpt_comm_allgather(c, &best, sizeof best, bytes_per_s);
}
