/* What is asked of the MPI thread. Its start and its end are in comm_start.c. */
#include "outer/comm/comm.h"

#include "base/clock.h"
#include "base/memory.h"
#include "outer/comm/comm_state.h"

#include <limits.h>
#include <stdbool.h>
#include <time.h>
#include <unistd.h>

uint32_t bpt_comm_rank(const bpt_comm *c) {
    return c->rank;
}

uint32_t bpt_comm_size(const bpt_comm *c) {
    return c->size;
}

const char *bpt_comm_host(const bpt_comm *c, uint32_t rank) {
    return c->hosts[rank];
}

bool bpt_comm_together(const bpt_comm *c, uint32_t a, uint32_t b) {
    return c->first_near[a] == c->first_near[b];
}

const char *bpt_comm_library(const bpt_comm *c) {
    return c->library;
}

const char *bpt_comm_thread_level(const bpt_comm *c) {
    switch (c->thread_level) {
    case MPI_THREAD_SINGLE:
        return "single";
    case MPI_THREAD_FUNNELED:
        return "funneled";
    case MPI_THREAD_SERIALIZED:
        return "serialized";
    default:
        return "multiple";
    }
}

double bpt_comm_cpu_seconds(const bpt_comm *c) {
    clockid_t clock;
    struct timespec used = {0};
    if (pthread_getcpuclockid(c->thread, &clock) != 0 || clock_gettime(clock, &used) != 0) return 0;
    return (double)used.tv_sec + 1e-9 * (double)used.tv_nsec;
}

/* ---- collectives ---- */

static int post(bpt__collective *o) {
    const MPI_Comm world = o->comm->collectives;
    switch (o->kind) {
    case BPT__ALLGATHER:
        return MPI_Iallgather(o->mine, o->bytes, MPI_BYTE, o->data, o->bytes, MPI_BYTE, world,
                              &o->request);
    case BPT__BROADCAST:
        return MPI_Ibcast(o->data, o->bytes, MPI_BYTE, o->root, world, &o->request);
    case BPT__BARRIER:
        break;
    }
    return MPI_Ibarrier(world, &o->request);
}

static bpt_status poll_collective(bpt__job *job, bool *moved, bool *done) {
    static const char *const names[] = {"gather from all ranks", "broadcast", "pass a barrier"};
    bpt__collective *o = (bpt__collective *)job;
    if (!o->posted) {
        BPT_TRY(bpt__mpi_check(post(o), names[o->kind]));
        o->posted = true;
        *moved = true;
    }
    int complete = 0;
    BPT_TRY(bpt__mpi_check(MPI_Test(&o->request, &complete, MPI_STATUS_IGNORE), names[o->kind]));
    *done = complete != 0;
    return BPT_OK;
}

static bpt_status run(bpt__collective *o) {
    o->job.poll = poll_collective;
    bpt__comm_submit(o->comm, &o->job);
    return bpt__comm_join(o->comm, &o->job);
}

bpt_status bpt_comm_allgather(bpt_comm *c, const void *mine, size_t bytes, void *all) {
    if (bytes > INT_MAX)
        return bpt_fail(BPT_EUSAGE, "cannot gather %zu bytes a rank: at most %d", bytes, INT_MAX);
    bpt__collective o = {
        .comm = c, .kind = BPT__ALLGATHER, .mine = mine, .data = all, .bytes = (int)bytes};
    return run(&o);
}

bpt_status bpt_comm_table(bpt_comm *c, const char *what, const void *mine, size_t bytes,
                          void **all) {
    void *table = NULL;
    bpt_status status = bpt_comm_agree(c, bpt_alloc(what, c->size, bytes, &table));
    if (status == BPT_OK) status = bpt_comm_allgather(c, mine, bytes, table);
    if (status == BPT_OK)
        *all = table;
    else
        bpt_free(table);
    return status;
}

bpt_status bpt_comm_any(bpt_comm *c, bool mine, bool *any) {
    const int32_t number = mine;
    BPT_TRY(bpt_comm_allgather(c, &number, sizeof number, c->numbers));
    *any = false;
    for (uint32_t r = 0; r < c->size; r++) *any = *any || c->numbers[r];
    return BPT_OK;
}

bpt_status bpt_comm_broadcast(bpt_comm *c, uint32_t root, void *data, size_t bytes) {
    enum { PIECE = 1 << 30 };
    char *at = data;
    do {
        const size_t piece = bytes < PIECE ? bytes : PIECE;
        bpt__collective o = {
            .comm = c, .kind = BPT__BROADCAST, .data = at, .bytes = (int)piece, .root = (int)root};
        BPT_TRY(run(&o));
        at += piece;
        bytes -= piece;
    } while (bytes > 0);
    return BPT_OK;
}

bpt_status bpt__comm_hear(bpt_comm *c, bpt__collective *o, uint32_t root, void *data, size_t bytes,
                          bpt_status (*tend)(void *arg), void *arg) {
    *o = (bpt__collective){.job = {.poll = poll_collective},
                           .comm = c,
                           .kind = BPT__BROADCAST,
                           .data = data,
                           .bytes = (int)bytes,
                           .root = (int)root};
    bpt__comm_submit(c, &o->job);
    return bpt__comm_join_idly(c, &o->job, tend, arg);
}

bpt_status bpt_comm_barrier(bpt_comm *c) {
    bpt__collective o = {.comm = c, .kind = BPT__BARRIER};
    return run(&o);
}

bpt_status bpt_comm_agree(bpt_comm *c, bpt_status mine) {
    bpt_error error = {.status = mine};
    if (mine != BPT_OK) bpt_error_get(&error);
    const int32_t number = mine;
    BPT_TRY(bpt_comm_allgather(c, &number, sizeof number, c->numbers));
    uint32_t first = 0;
    while (first < c->size && c->numbers[first] == BPT_OK) first++;
    if (first == c->size) return BPT_OK;

    bpt_error theirs = error;
    BPT_TRY(bpt_comm_broadcast(c, first, &theirs, sizeof theirs));
    if (mine != BPT_OK) {
        (void)bpt_error_put(&error);
        return mine;
    }
    (void)bpt_fail(BPT_EPEER, "rank %u on %s failed: %.300s", first, c->hosts[first], theirs.text);
    if (theirs.hint[0]) bpt_hint("%s", theirs.hint);
    return BPT_EPEER;
}

void bpt_comm_abort(bpt_comm *c, int exit_status) {
    pthread_mutex_lock(&c->mutex);
    c->abort_status = exit_status;
    bpt__comm_wake(c);
    /* The thread ends the job, and by itself where MPI's abort hangs; but not where it is inside of
     * another call of MPI that does. */
    const struct timespec at = bpt_clock_timespec(bpt_clock_ns() + 2 * BPT__ABORT_NS);
    while (pthread_cond_clockwait(&c->done, &c->mutex, CLOCK_MONOTONIC, &at) == 0) continue;
    _exit(exit_status);
}
