#include "outer/comm/clock_offset.h"

#include "outer/comm/comm_thread.h"
#include "outer/comm/transfers.h"

#include <string.h>
#include <time.h>

enum { ROUNDS = 12 };

typedef struct {
    bpt__job job; /* first: the MPI thread is given this */
    MPI_Comm world;
    uint32_t rank, size;
    uint32_t other; /* rank 0: who is asked; elsewhere: rank 0 */
    int round;
    bool posted, received;
    MPI_Request request[2]; /* receive, send */
    double sent_s, theirs_s, mine_s;
    bpt_clock_offset *offsets;
} exchange;

static double time_of_day_s(void) {
    struct timespec now;
    clock_gettime(CLOCK_REALTIME, &now);
    return (double)now.tv_sec + 1e-9 * (double)now.tv_nsec;
}

static bpt_status post_receive(exchange *e) {
    return bpt__mpi_check(MPI_Irecv(&e->theirs_s, 1, MPI_DOUBLE, (int)e->other, BPT__TAG_CLOCKS,
                                    e->world, &e->request[0]),
                          "receive a time");
}

static bpt_status post_send(exchange *e) {
    e->mine_s = time_of_day_s();
    return bpt__mpi_check(MPI_Isend(&e->mine_s, 1, MPI_DOUBLE, (int)e->other, BPT__TAG_CLOCKS,
                                    e->world, &e->request[1]),
                          "send a time");
}

static bpt_status post(exchange *e) {
    e->posted = true;
    e->request[0] = e->request[1] = MPI_REQUEST_NULL;
    BPT_TRY(post_receive(e));
    if (e->rank != 0) return BPT_OK; /* sends when it has received */
    e->sent_s = time_of_day_s();
    return post_send(e);
}

static void note(exchange *e) {
    const double back_s = time_of_day_s();
    bpt_clock_offset *best = &e->offsets[e->other];
    const double error_s = (back_s - e->sent_s) / 2;
    if (e->round > 0 && error_s >= best->error_s) return;
    *best =
        (bpt_clock_offset){.ahead_s = e->theirs_s - (e->sent_s + back_s) / 2, .error_s = error_s};
}

/* One message there and back is done. @return whether that was the last */
static bool advance(exchange *e) {
    if (e->rank == 0) note(e);
    e->posted = e->received = false;
    if (++e->round < ROUNDS) return false;
    if (e->rank != 0) return true;
    e->round = 0;
    return ++e->other == e->size;
}

static bpt_status poll(bpt__job *job, bool *moved, bool *done) {
    exchange *e = (exchange *)job;
    if (!e->posted) {
        BPT_TRY(post(e));
        *moved = true;
    }
    int here = e->received, left = 0;
    if (!here)
        BPT_TRY(
            bpt__mpi_check(MPI_Test(&e->request[0], &here, MPI_STATUS_IGNORE), "receive a time"));
    if (!here) return BPT_OK;
    if (!e->received) {
        e->received = *moved = true;
        if (e->rank != 0) BPT_TRY(post_send(e));
    }
    BPT_TRY(bpt__mpi_check(MPI_Test(&e->request[1], &left, MPI_STATUS_IGNORE), "send a time"));
    if (!left) return BPT_OK;
    *moved = true;
    *done = advance(e);
    return BPT_OK;
}

bpt_status bpt_comm_clock_offsets(bpt_comm *c, bpt_clock_offset *offsets) {
    exchange e = {
        .job.poll = poll,
        .world = bpt__comm_messages(c),
        .rank = bpt_comm_rank(c),
        .size = bpt_comm_size(c),
        .other = bpt_comm_rank(c) == 0 ? 1 : 0,
        .offsets = offsets,
    };
    memset(offsets, 0, e.size * sizeof *offsets);
    BPT_TRY(bpt_comm_barrier(c)); /* all are here: what is measured is the way, not the start */
    if (e.size == 1) return BPT_OK;
    bpt__comm_submit(c, &e.job);
    return bpt__comm_join(c, &e.job);
}
