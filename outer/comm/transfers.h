/** @file outer/comm/transfers.h
 * Inside of outer/: messages under way, in groups that complete as a whole.
 *
 * A large message travels in chunks, so that its progress can be seen (the MPI thread polls soon
 * while chunks complete) and no count leaves an int. Both ends cut alike, by whether they are on
 * one host, and MPI keeps the order of chunks with the same source and tag.
 *
 * Few chunks are with MPI at a time, whatever the size of messages: for each receiver so many, and
 * of each message to come so many receives. The others begin as these complete, so that a poll
 * looks at no more than may have completed.
 *
 * Between hosts a chunk is as large as MPI sends without asking the receiver first. Where it asks,
 * the answer stands in line behind all data that goes the other way, and two ranks that send to
 * each other take turns instead of filling both directions of the link. What comes before its
 * receive is begun MPI keeps, and copies once more. In the memory of one host nothing stands in
 * line: MPI asks, and the receiver copies, so chunks are large and there are more of them for it to
 * find.
 *
 * Threads: the MPI thread only, except create and free. */
#ifndef BPT_OUTER_TRANSFERS_H
#define BPT_OUTER_TRANSFERS_H

#include "base/status.h"
#include "outer/comm/message_watch.h"

#include <mpi.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/** How messages go to a rank and come from it; chunks are alike on both ends. */
typedef struct bpt__way {
    size_t chunk_bytes; /* at least 1, below 2^31; the last of a message may be smaller */
    uint32_t in_flight; /* chunks for the rank that MPI has at a time, at least 1 */
    uint32_t ahead;     /* receives of each message that are begun before it comes, at least 1 */
    uint32_t beyond;    /* more of them, of all messages from the rank that do come */
} bpt__way;

extern const bpt__way bpt__way_memory;  /* for ranks of one host */
extern const bpt__way bpt__way_network; /* for others */

/** Tags of bpt__comm_messages(), of which MPI promises 0 to 32767: each user's first, and how many
 * it has. What needs more than there are is refused at create. */
enum {
    BPT__TAG_EXCHANGE = 0, /* two for each shard */
    BPT__TAGS_EXCHANGE = 1 << 14,
    BPT__TAG_RELAY = BPT__TAG_EXCHANGE + BPT__TAGS_EXCHANGE, /* there and back */
    BPT__TAGS_RELAY = 16,
    BPT__TAG_SCATTER = BPT__TAG_RELAY + BPT__TAGS_RELAY, /* there and back for each slot */
    BPT__TAGS_SCATTER = 16,
    BPT__TAG_LINKS = BPT__TAG_SCATTER + BPT__TAGS_SCATTER, /* one for each turn */
    BPT__TAGS_LINKS = 16,
    BPT__TAG_CLOCKS = BPT__TAG_LINKS + BPT__TAGS_LINKS,
    BPT__TAG_REDUCTION = BPT__TAG_CLOCKS + 1, /* two for each bucket */
    BPT__TAGS_REDUCTION = 32768 - BPT__TAG_REDUCTION,
};

typedef struct bpt__transfers bpt__transfers;

/** Who is told of each chunk. */
typedef struct bpt__message_watch {
    bpt_message_note *note; /* NULL: nobody */
    void *arg;
} bpt__message_watch;

/** Makes room for groups.
 * @param ways of each rank of @p comm; copied, shape [n_ranks]
 * @param room messages that each group may hold at once, shape [n_groups]
 * @param watch borrowed, looked at when a chunk is complete; NULL: nobody is told
 * @param[out] t caller owns, bpt__transfers_free()
 * @return BPT_OK, BPT_ENOMEM */
bpt_status bpt__transfers_create(MPI_Comm comm, const bpt__way *ways, uint32_t n_ranks,
                                 const size_t *room, uint32_t n_groups,
                                 const bpt__message_watch *watch, bpt__transfers **t);
void bpt__transfers_free(bpt__transfers *t);

/** Starts to send or receive. @p data stays untouched (unread) until the group is complete. A
 * message of no bytes is none.
 *
 * Messages for one rank leave in the order of these calls, whatever their group, and so do those
 * that come from one rank with one tag: their chunks begin here or in a later poll. Of other
 * messages that come none waits for another. So a rank must not hold back the receive of a message
 * until it has got a later one of the same sender: all users post receives before anything that
 * makes the other side send, but for the sums of outer/exchange/reduction.c, which says at
 * receive_answers() why that is safe.
 * @return BPT_OK, BPT_ECOMM */
bpt_status bpt__transfers_send(bpt__transfers *t, uint32_t group, const void *data, size_t bytes,
                               uint32_t to, int tag);
bpt_status bpt__transfers_recv(bpt__transfers *t, uint32_t group, void *data, size_t bytes,
                               uint32_t from, int tag);

/** Looks what has completed.
 * @param[out] moved  set to true if anything has
 * @param[out] complete   groups without anything under way since now, shape [n_groups], ascending
 * @param[out] n_complete how many
 * @return BPT_OK, BPT_ECOMM */
bpt_status bpt__transfers_poll(bpt__transfers *t, bool *moved, uint32_t *complete,
                               uint32_t *n_complete);

/** @return chunks of group @p g that are not complete, begun or not */
uint32_t bpt__transfers_pending(const bpt__transfers *t, uint32_t g);

/** Takes back what has not completed: receives of messages that nobody sends. */
void bpt__transfers_cancel(bpt__transfers *t);

#endif
