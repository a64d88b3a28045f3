/* How the MPI thread is started and ended. */
#include "base/clock.h"
#include "base/memory.h"
#include "base/thread.h"
#include "outer/comm/comm_state.h"
#include "outer/comm/launch.h"
#include "outer/comm/watch_state.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

static bpt_status create_thread(bpt_comm *c) {
    const int code = bpt_thread_start(&c->thread, bpt__comm_main, c);
    if (code != 0) return bpt_fail(BPT_ENOMEM, "cannot create the MPI thread: %s", strerror(code));
    return BPT_OK;
}

static void release(bpt_comm *c) {
    pthread_cond_destroy(&c->done);
    pthread_mutex_destroy(&c->mutex);
    sem_destroy(&c->wake);
    bpt_free(c->numbers);
    bpt_free(c->first_near);
    bpt_free(c->ways);
    bpt_free(c->hosts);
    bpt_free(c);
}

/* MPI asks hwloc for all devices, and where its plugin for displays is installed that one calls on
 * X servers: a name look-up for each, seconds where there is no name server. */
static void skip_displays(void) {
    setenv("HWLOC_COMPONENTS", "-gl", 0);
}

/* A process that no mpirun has started would start a server of Open MPI, to be able to start
 * others. It starts none; and one such server was seen to take all memory of a machine. */
static void start_no_server(void) {
    setenv("OMPI_MCA_ess_singleton_isolated", "1", 0);
}

/* Nor folders for files shared with other processes, of which there are none. The first of them is
 * that of all jobs of a user: a job that ends removes it as soon as it is empty, and one that just
 * starts is ended by MPI where that happens between its making that folder and the next in it. */
static void make_no_folders(const bpt_launch *launch) {
    if (!launch->connects) setenv("OMPI_MCA_orte_create_session_dirs", "0", 0);
}

/* Nor networks: to look for fast ones takes Open MPI 0.2 s of the 0.23 that its start takes. ob1 is
 * what it uses where there is none. */
static void look_for_no_networks(const bpt_launch *launch) {
    if (!launch->connects) setenv("OMPI_MCA_pml", "ob1", 0);
}

/* ---- waiting for MPI ---- */

/* Nobody can be asked yet: the job is ended by the lowest rank that is there. */
static bool is_to_end(const bpt_launch *launch, const bpt_watch_options *watch, double waited_s) {
    enum { TURN_S = 5, MAX_TURNS = 4 };
    const double turn_s = TURN_S * (launch->rank < MAX_TURNS ? launch->rank : MAX_TURNS);
    return watch->timeout_s > 0 && waited_s >= watch->timeout_s + turn_s;
}

/* Ranks 0 and 1 warn for all, since one of them may be the one that is missing. While a rank waits
 * for its turn to end the job it warns no more than else. */
static bool is_to_tell(const bpt_launch *launch, const bpt_watch_options *watch, double waited_s,
                       double told_s) {
    enum { SPEAKERS = 2 };
    bpt_watch_options warning = *watch;
    warning.timeout_s = 0;
    return is_to_end(launch, watch, waited_s) ||
           (launch->rank < SPEAKERS && waited_s >= bpt__watch_limit(&warning, told_s));
}

static void tell(const bpt_launch *launch, const bpt_watch_options *watch, double waited_s) {
    char text[128];
    const bpt_stall stall = {
        .ends = is_to_end(launch, watch, waited_s),
        .text = text,
        .hint =
            "a rank has not started or has ended already, or the ranks have no network in common: "
            "name one with --mca btl_tcp_if_include and --mca oob_tcp_if_include, as "
            "192.168.1.0/24",
    };
    snprintf(text, sizeof text, "rank %u: MPI has not connected the %u rank%s after %.0f s",
             launch->rank, launch->size, launch->size == 1 ? "" : "s", waited_s);
    watch->tell(&stall);
    if (stall.ends) _exit(watch->exit_status); /* MPI has not started: there is nothing to abort */
}

static void wait_a_little(bpt_comm *c) {
    const uint64_t until = bpt_clock_ns() + BPT__TICK_NS;
    const struct timespec at = bpt_clock_timespec(until);
    (void)pthread_cond_clockwait(&c->done, &c->mutex, CLOCK_MONOTONIC, &at);
}

/* With the mutex held, which is given back while it tells. */
static void await_watched(bpt_comm *c, const bpt_watch_options *watch) {
    double waited_s = 0, told_s = 0;
    uint64_t looked_ns = bpt_clock_ns();
    while (!c->start_finished) {
        wait_a_little(c);
        const uint64_t now = bpt_clock_ns();
        waited_s += bpt__watch_counted(now - looked_ns);
        looked_ns = now;
        if (c->start_finished || !is_to_tell(&c->launch, watch, waited_s, told_s)) continue;
        pthread_mutex_unlock(&c->mutex);
        tell(&c->launch, watch, waited_s);
        told_s = waited_s;
        pthread_mutex_lock(&c->mutex);
    }
}

static void await_start(bpt_comm *c) {
    pthread_mutex_lock(&c->mutex);
    if (c->watched) await_watched(c, c->watched);
    while (!c->start_finished) pthread_cond_wait(&c->done, &c->mutex);
    pthread_mutex_unlock(&c->mutex);
}

/* ---- life ---- */

bpt_status bpt_comm_start_watched(const bpt_watch_options *options, bpt_comm **comm) {
    bpt_comm *c = NULL;
    const bpt_launch launch = bpt_launch_here(); /* while nobody changes the environment */
    skip_displays();
    start_no_server();
    make_no_folders(&launch);
    look_for_no_networks(&launch);
    BPT_TRY(BPT_NEW("communication", 1, &c));
    sem_init(&c->wake, 0, 0);
    pthread_mutex_init(&c->mutex, NULL);
    pthread_cond_init(&c->done, NULL);
    c->submitted_end = &c->submitted;
    c->watched = options;
    c->launch = launch;
    bpt__marks_begin(&c->marks);

    bpt_status status = create_thread(c);
    if (status == BPT_OK) {
        await_start(c);
        c->watched = NULL; /* the caller's; the watch has a copy */
        if (!c->started) {
            pthread_join(c->thread, NULL);
            status = bpt_error_put(&c->error);
        }
    }
    if (status == BPT_OK)
        *comm = c;
    else
        release(c);
    return status;
}

bpt_status bpt_comm_start(bpt_comm **comm) {
    return bpt_comm_start_watched(NULL, comm);
}

void bpt_comm_stop(bpt_comm *c) {
    if (!c) return;
    if (c->watch && c->size > 1) { /* MPI's own end has no watch */
        bpt_comm_doing(c, "the end");
        (void)bpt_comm_barrier(c);
    }
    pthread_mutex_lock(&c->mutex);
    c->stopping = true;
    pthread_mutex_unlock(&c->mutex);
    bpt__comm_wake(c);
    pthread_join(c->thread, NULL);
    release(c);
}
