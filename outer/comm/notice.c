#include "outer/comm/notice.h"

#include "base/clock.h"
#include "outer/comm/comm_state.h"

/* Among collective calls, which never meet messages with tags. */
enum { TAG = 0 };

typedef bool stop_question(void);

static stop_question *question(const bpt_comm *c) {
    return atomic_load_explicit(&c->notice.told, memory_order_acquire);
}

static bool told_here(const bpt_comm *c) {
    stop_question *told = question(c);
    return told && told();
}

void bpt_comm_pass_stop(bpt_comm *c, bool (*told)(void)) {
    atomic_store_explicit(&c->notice.told, told, memory_order_release);
    bpt__comm_wake(c); /* it may sleep for as long as there is nothing to look after */
}

bool bpt_comm_stop_told(const bpt_comm *c) {
    return told_here(c) || atomic_load_explicit(&c->notice.heard, memory_order_relaxed);
}

bool bpt__notice_looks(const bpt_comm *c) {
    return c->size > 1 && question(c);
}

/* ---- the MPI thread's ---- */

/* Where MPI fails it fails also where it matters more, and is told of there. */
static void tell_others(bpt_comm *c) {
    c->notice.passed = true;
    for (uint32_t r = 0; r < c->size; r++) {
        MPI_Request sent;
        if (r == c->rank ||
            MPI_Isend(NULL, 0, MPI_BYTE, (int)r, TAG, c->collectives, &sent) != MPI_SUCCESS)
            continue;
        MPI_Request_free(&sent); /* of no bytes: nothing of this rank's is still needed */
    }
}

static void take_all(bpt_comm *c) {
    for (;;) {
        int here = 0;
        MPI_Status from;
        if (MPI_Iprobe(MPI_ANY_SOURCE, TAG, c->collectives, &here, &from) != MPI_SUCCESS || !here)
            return;
        MPI_Recv(NULL, 0, MPI_BYTE, from.MPI_SOURCE, TAG, c->collectives, MPI_STATUS_IGNORE);
        atomic_store_explicit(&c->notice.heard, true, memory_order_relaxed);
    }
}

void bpt__notice_tick(bpt_comm *c) {
    bpt__notice *n = &c->notice;
    if (!bpt__notice_looks(c)) return;
    const uint64_t now = bpt_clock_ns();
    if (now - n->looked_ns < BPT__TICK_NS) return;
    n->looked_ns = now;
    take_all(c);
    if (!n->passed && told_here(c)) tell_others(c);
}

void bpt__notice_end(bpt_comm *c) {
    if (bpt__notice_looks(c)) take_all(c);
}
