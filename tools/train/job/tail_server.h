/** @file tools/train/job/tail_server.h
 * The host's side of a network in two parts under agwu: a thread that trains the tail, batch by
 * batch, in the order in which they arrive, and notes that order. Each worker gets the gradient of
 * the tail's weights as they are when its batch is at its turn; nobody's waits for another's.
 *
 * Threads: begin and end are called by the one that trains. Between them the tail is the server's
 * while any batch is not answered; when every rank has its answer, as at a meeting, it rests, and
 * others may read and write its vectors. */
#ifndef BPT_TOOLS_TAIL_SERVER_H
#define BPT_TOOLS_TAIL_SERVER_H

#include "inner/network/network.h"
#include "outer/placement/relay.h"
#include "tools/train/run/border_log.h"

typedef struct bpt_tail_server bpt_tail_server;

/** What it works with; all of it borrowed. */
typedef struct bpt_tail_work {
    bpt_network *tail;   /* of one rank's batch; its pool is the server's alone */
    bpt_relay *relay;    /* with a thread of its own for the server */
    bpt_border_log *log; /* closed after the end */
    void *const *values; /* where batches arrive, as in bpt_relay_options; their gradients are
                          * answered from there */
    int32_t *const *labels;
} bpt_tail_work;

/** Starts the thread.
 * @param[out] server caller owns, bpt_tail_server_end()
 * @return BPT_OK, BPT_ENOMEM, BPT_EIO (no thread to be had) */
bpt_status bpt_tail_server_begin(const bpt_tail_work *work, bpt_tail_server **server);

/** Ends it, once all batches are answered, or after an error. NULL is allowed. */
void bpt_tail_server_end(bpt_tail_server *server);

#endif
