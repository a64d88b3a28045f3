#include "outer/message_watch.h"

#include "outer/comm_state.h"

typedef struct change {
    bpt__job job; /* first: the MPI thread is given this */
    bpt_comm *comm;
    bpt__message_watch watch;
} change;

static bpt_status apply(bpt__job *job, bool *moved, bool *done) {
    const change *c = (const change *)(const void *)job;
    c->comm->message_watch = c->watch;
    *moved = *done = true;
    return BPT_OK;
}

void bpt_comm_watch_messages(bpt_comm *comm, bpt_message_note *note, void *arg) {
    change c = {.job.poll = apply, .comm = comm, .watch = {note, arg}};
    bpt__comm_submit(comm, &c.job);
    (void)bpt__comm_join(comm, &c.job); /* apply() does not fail */
}
