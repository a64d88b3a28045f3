/** @file outer/comm/message_watch.h
 * Tells of the messages between ranks as they complete: for a trace.
 *
 * Large messages are told of in the chunks in which they travel (outer/comm/transfers.h).
 * Collective calls, which training makes none of in its steps, are not told of.
 *
 * Threads: the one that makes the collective calls (outer/comm/comm.h). */
#ifndef BPT_OUTER_MESSAGE_WATCH_H
#define BPT_OUTER_MESSAGE_WATCH_H

#include "outer/comm/comm.h"

#include <stdbool.h>

typedef struct bpt_message {
    bool sent;     /* else received */
    uint32_t peer; /* the other rank */
    size_t bytes;
    uint64_t begin_ns; /* reading of bpt_clock_ns() when it was given to MPI: of one that is
                        * received, before it was sent as a rule */
    uint64_t end_ns;   /* when it was seen to be complete */
} bpt_message;

/** Is told of a message, on the MPI thread. May not wait. @param message borrowed for the call */
typedef void bpt_message_note(void *arg, const bpt_message *message);

/** From when this returns on, @p note is told of each message of this rank that completes, instead
 * of who was told before.
 * @param note NULL: nobody is any more, and no call is under way
 * @param arg  borrowed until then */
void bpt_comm_watch_messages(bpt_comm *comm, bpt_message_note *note, void *arg);

#endif
