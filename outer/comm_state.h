/** @file outer/comm_state.h
 * Inside of outer/: what comm.c (the calls) and comm_thread.c (the thread) share. */
#ifndef BPT_OUTER_COMM_STATE_H
#define BPT_OUTER_COMM_STATE_H

#include "outer/comm_thread.h"

#include <pthread.h>
#include <semaphore.h>
#include <stdatomic.h>

enum { BPT__HOST_SIZE = 64 };

struct bpt_comm {
    pthread_t thread;
    uint32_t rank, size;           /* constant once the thread runs */
    char (*hosts)[BPT__HOST_SIZE]; /* [size], constant likewise */
    int32_t *statuses;             /* [size], for bpt_comm_agree() */
    MPI_Comm collectives, messages;

    atomic_uint n_hurried; /* threads between hurry_begin and hurry_end; a hint, so relaxed */

    sem_t wake; /* the MPI thread sleeps on it; posted when there is something new to do */

    pthread_mutex_t mutex; /* guards all below; never held together with another */
    pthread_cond_t done;   /* everybody else: started, or a job finished */
    bool started, start_finished, stopping;
    int abort_status; /* 0: no abort asked for */
    bpt__job *submitted, **submitted_end;
    bpt_error error; /* of the start */
};

/** Body of the MPI thread. @param comm a bpt_comm */
void *bpt__comm_main(void *comm);

#endif
