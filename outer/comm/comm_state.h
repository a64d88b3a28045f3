/** @file outer/comm/comm_state.h
 * Inside of outer/: what comm_start.c (its life), comm.c (the calls), comm_thread.c (the thread),
 * message_watch.c, notice.c and watch.c share. */
#ifndef BPT_OUTER_COMM_STATE_H
#define BPT_OUTER_COMM_STATE_H

#include "outer/comm/comm_thread.h"
#include "outer/comm/doing.h"
#include "outer/comm/launch.h"
#include "outer/comm/watch.h"

#include <pthread.h>
#include <semaphore.h>
#include <stdatomic.h>

enum { BPT__LIBRARY_SIZE = 64 };

/** Nanoseconds that MPI has to end the job; as a rule mpirun ends the rank within one or two
 * seconds. */
#define BPT__ABORT_NS 5000000000u

/** Nanoseconds between two looks at what no message may tell of: the watch's, and notices'. */
#define BPT__TICK_NS 250000000u

/** Marks of the thread that makes the collective calls, read by the MPI thread; but for those that
 * are said to be another's. */
typedef struct bpt__marks {
    atomic_uint changes; /* counts those of the other two: release there, acquire in watch.c */
    atomic_int kind;     /* enum bpt__doing; relaxed, and so is `what` */
    _Atomic(const char *) what;
    atomic_uint pushes;         /* counts those that were begun */
    atomic_uint answered;       /* of these; the MPI thread's */
    _Atomic(const char *) push; /* what the latest is for */
    atomic_uint helps;          /* the helper's: begins and ends of what it is at, odd meanwhile */
    _Atomic(const char *) help; /* what that is, likewise */
    unsigned push_moves;        /* counts parts of pushes and of answers; the MPI thread's */
    unsigned wait_moves;        /* of what is waited for otherwise; likewise */
    const char *activity, *operation; /* the marking thread's: what it is at when it does not wait;
                                         NULL: no operation */
} bpt__marks;

typedef struct bpt__watch bpt__watch;

/** That a rank was told to stop: outer/comm/notice.h. */
typedef struct bpt__notice {
    bool (*_Atomic told)(void); /* of this rank; NULL: nobody is asked, and nothing heard */
    atomic_bool heard;          /* of another rank; orders nothing, so relaxed */
    bool passed;                /* to the others; the MPI thread's, and so is the next */
    uint64_t looked_ns;
} bpt__notice;

struct bpt_comm {
    pthread_t thread;
    uint32_t rank, size;           /* constant once the thread runs */
    char (*hosts)[BPT__HOST_SIZE]; /* [size], constant likewise */
    uint32_t *first_near;          /* [size], constant likewise: first rank of the same machine */
    bpt__way *ways;                /* [size], constant likewise: as of bpt__transfers_create() */
    int32_t *numbers;              /* [size], for bpt_comm_agree() and bpt_comm_any() */
    MPI_Comm collectives, messages;
    int thread_level;                 /* that MPI provides; constant likewise */
    char library[BPT__LIBRARY_SIZE];  /* "Open MPI v4.1.4"; constant likewise */
    const bpt_watch_options *watched; /* of the start only; NULL: there is no watch */
    bpt_launch launch;                /* who started this process, as the environment told before */
    bpt__watch *watch;                /* the MPI thread's; NULL: there is none */
    bpt__message_watch message_watch; /* likewise; of nobody at first */
    bpt__marks marks;
    bpt__notice notice;

    atomic_uint n_hurried;   /* threads between wait_begin and wait_end; a hint, so relaxed */
    atomic_uint n_expecting; /* likewise, expect_begin and expect_end */

    sem_t wake; /* the MPI thread sleeps on it; posted when there is something new to do */

    pthread_mutex_t mutex; /* guards all below; never held together with another */
    pthread_cond_t done;   /* everybody else: started, or a job finished */
    bool started, start_finished, stopping;
    int abort_status; /* 0: no abort asked for */
    bpt__job *submitted, **submitted_end;
    bpt_error error; /* of the start */
};

/** Sets the marks as they are at the start. */
void bpt__marks_begin(bpt__marks *marks);

/** @return whether there is anything to hear or to pass on */
bool bpt__notice_looks(const bpt_comm *comm);

/** Hears and passes on, if it is time to. */
void bpt__notice_tick(bpt_comm *comm);

/** Takes what has come and nobody hears any more, before MPI ends. */
void bpt__notice_end(bpt_comm *comm);

/** Body of the MPI thread. @param comm a bpt_comm */
void *bpt__comm_main(void *comm);

#endif
