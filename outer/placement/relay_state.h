/** @file outer/placement/relay_state.h
 * Inside of outer/: what relay.c (the threads that call it) and relay_messages.c (the MPI thread)
 * share. */
#ifndef BPT_OUTER_RELAY_STATE_H
#define BPT_OUTER_RELAY_STATE_H

#include "outer/comm/comm_thread.h"
#include "outer/comm/transfers.h"
#include "outer/placement/relay.h"

#include <pthread.h>

/** Header of a batch; its labels and values follow. */
typedef struct bpt__relay_up {
    uint64_t seed, step, first_sample;
    float denominator, rate;
} bpt__relay_up;

enum { BPT__RELAY_TEXT_SIZE = 204 };

/** Header of an answer; the gradient follows. */
typedef struct bpt__relay_down {
    bpt_relay_result result;
    int32_t status; /* BPT_OK, or why there is none */
    char text[BPT__RELAY_TEXT_SIZE];
} bpt__relay_down;

/** A batch of this rank: nobody's, the MPI thread's, answered. */
enum bpt__relay_phase { BPT__RELAY_IDLE, BPT__RELAY_SENT, BPT__RELAY_ANSWERED };

/** A worker's place at the server, in the order of its states: a batch is awaited, is here, is the
 * server's; its answer is for the MPI thread, is under way. */
enum bpt__relay_slot_state {
    BPT__RELAY_SLOT_LISTENS,
    BPT__RELAY_SLOT_ARRIVED,
    BPT__RELAY_SLOT_TAKEN,
    BPT__RELAY_SLOT_ANSWERED,
    BPT__RELAY_SLOT_SENDING,
};

typedef struct bpt__relay_slot {
    void *values; /* borrowed: where the batch arrives */
    int32_t *labels;
    enum bpt__relay_slot_state state;
    bpt__relay_up up;
    bpt__relay_down down;
    const void *gradient; /* of the answer */
} bpt__relay_slot;

struct bpt_relay {
    bpt__job job; /* first: the MPI thread is given this */
    bpt_comm *comm;
    uint32_t m, rank, server;
    size_t sample_bytes;
    bool own_thread;
    char waits_at[48];         /* what a worker waits at, for people */
    uint32_t *samples;         /* [m] */
    bpt__transfers *transfers; /* MPI thread. Groups: at the server those of worker w, w; m is this
                                * rank's own batch and its answer */
    uint32_t *complete;        /* MPI thread: scratch, a place a group */
    bool listens;              /* MPI thread: the server has begun to */
    bool posted;               /* MPI thread: the own batch is under way */

    pthread_mutex_t mutex;  /* guards all below; never held together with another, nor in a call of
                             * MPI */
    pthread_cond_t changed; /* any of it */
    enum bpt__relay_phase phase;
    bpt__relay_up up; /* these five: MPI thread's while SENT, else the training thread's */
    const void *values;
    const int32_t *labels;
    void *gradient;
    bpt__relay_down down;
    bpt__relay_slot *slots; /* server: [m]; values and labels of one that LISTENS are MPI's */
    uint32_t *arrived;      /* server: ring of workers in the order of their batches, [m] */
    uint32_t first_arrived, n_arrived;
    bool stopped, ending, failed;
    bpt_error error; /* once failed */
    bpt_relay_stats stats;
};

/** @return groups of transfers */
static inline uint32_t bpt__relay_groups(const bpt_relay *r) {
    return r->m + 1;
}

/** @return bytes of the values of a rank's batch, and of their gradient */
static inline size_t bpt__relay_values_bytes(const bpt_relay *r, uint32_t worker) {
    return r->samples[worker] * r->sample_bytes;
}

/** Makes r->transfers. @return BPT_OK, BPT_ENOMEM */
bpt_status bpt__relay_transfers(bpt_relay *r);

/** Poll function of the relay's job. */
bpt_status bpt__relay_poll(bpt__job *job, bool *moved, bool *done);

/** A batch is in its place; mutex held. */
void bpt__relay_arrive(bpt_relay *r, uint32_t worker);

#endif
