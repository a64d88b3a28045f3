#include "outer/comm/comm_thread.h"

#include "base/clock.h"
#include "base/log.h"
#include "base/memory.h"
#include "outer/comm/comm_state.h"
#include "outer/comm/nap.h"
#include "outer/comm/watch_state.h"

#include <sys/prctl.h>

#include <assert.h>
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

bpt_status bpt__mpi_check(int code, const char *what) {
    if (code == MPI_SUCCESS) return BPT_OK;
    char reason[MPI_MAX_ERROR_STRING] = "";
    int length = 0;
    if (MPI_Error_string(code, reason, &length) != MPI_SUCCESS) reason[0] = '\0';
    return bpt_fail(BPT_ECOMM, "MPI cannot %s: %s", what, reason);
}

MPI_Comm bpt__comm_messages(const bpt_comm *c) {
    return c->messages;
}

bpt_status bpt__comm_transfers(const bpt_comm *c, const size_t *room, uint32_t n_groups,
                               bpt__transfers **t) {
    return bpt__transfers_create(c->messages, c->ways, c->size, room, n_groups, &c->message_watch,
                                 t);
}

/* ---- the end of the job ---- */

static void *end_anyway(void *exit_status) {
    const struct timespec time = bpt_clock_timespec(BPT__ABORT_NS);
    nanosleep(&time, NULL);
    _exit(*(const int *)exit_status);
}

_Noreturn void bpt__end_job(int exit_status) {
    static int status; /* outlives this call */
    pthread_t timer;
    status = exit_status;
    (void)pthread_create(&timer, NULL, end_anyway, &status);
    MPI_Abort(MPI_COMM_WORLD, exit_status);
    _exit(exit_status); /* should MPI ever return from it: the promise is to end */
}

/* ---- asking the thread ---- */

void bpt__comm_submit(bpt_comm *c, bpt__job *job) {
    job->next = NULL;
    job->finished = false;
    pthread_mutex_lock(&c->mutex);
    *c->submitted_end = job;
    c->submitted_end = &job->next;
    pthread_mutex_unlock(&c->mutex);
    bpt__comm_wake(c);
}

bpt_status bpt__comm_join(bpt_comm *c, bpt__job *job) {
    bpt__comm_wait_begin(c, NULL);
    pthread_mutex_lock(&c->mutex);
    while (!job->finished) pthread_cond_wait(&c->done, &c->mutex);
    pthread_mutex_unlock(&c->mutex);
    bpt__comm_wait_end(c);
    return job->error.status == BPT_OK ? BPT_OK : bpt_error_put(&job->error);
}

typedef struct copying {
    bpt__job job; /* first: the MPI thread is given this */
    const bpt__copy *copies;
    size_t n;
} copying;

static bpt_status copy(bpt__job *job, bool *moved, bool *done) {
    const copying *c = (const copying *)(const void *)job;
    for (size_t i = 0; i < c->n; i++)
        memcpy(c->copies[i].to, c->copies[i].from, c->copies[i].bytes);
    *moved = *done = true;
    return BPT_OK;
}

void bpt__comm_copy(bpt_comm *c, const bpt__copy *copies, size_t n) {
    copying what = {.job.poll = copy, .copies = copies, .n = n};
    bpt__comm_submit(c, &what.job);
    (void)bpt__comm_join(c, &what.job); /* it cannot fail */
}

/* @return whether it is done; waits for that no longer than told */
static bool await_job(bpt_comm *c, const bpt__job *job, uint64_t at_most_ns) {
    const uint64_t until = bpt_clock_ns() + at_most_ns;
    const struct timespec at = bpt_clock_timespec(until);
    int timed_out = 0;
    pthread_mutex_lock(&c->mutex);
    while (!job->finished && timed_out == 0)
        timed_out = pthread_cond_clockwait(&c->done, &c->mutex, CLOCK_MONOTONIC, &at);
    const bool finished = job->finished;
    pthread_mutex_unlock(&c->mutex);
    return finished;
}

bpt_status bpt__comm_join_idly(bpt_comm *c, bpt__job *job, bpt_status (*tend)(void *arg),
                               void *arg) {
    const uint64_t every_ns = 500000000;
    bpt_status status = BPT_OK;
    bpt__comm_idle_begin(c);
    while (status == BPT_OK && !await_job(c, job, every_ns)) status = tend(arg);
    bpt__comm_wait_end(c);
    if (status != BPT_OK) return status;
    return job->error.status == BPT_OK ? BPT_OK : bpt_error_put(&job->error);
}

void bpt__comm_wake(bpt_comm *c) {
    sem_post(&c->wake);
}

/* ---- marks ---- */

static void mark(bpt__marks *marks, enum bpt__doing kind, const char *what) {
    atomic_store_explicit(&marks->what, what, memory_order_relaxed);
    atomic_store_explicit(&marks->kind, (int)kind, memory_order_relaxed);
    atomic_fetch_add_explicit(&marks->changes, 1, memory_order_release);
}

static void mark_work(bpt__marks *marks) {
    if (marks->operation)
        mark(marks, BPT__OWN, marks->operation);
    else
        mark(marks, BPT__BUSY, marks->activity);
}

void bpt__marks_begin(bpt__marks *marks) {
    marks->activity = "the start";
    mark_work(marks);
}

void bpt_comm_doing(bpt_comm *c, const char *what) {
    c->marks.activity = what;
    mark_work(&c->marks);
}

void bpt_comm_operation_begin(bpt_comm *c, const char *what) {
    c->marks.operation = what;
    mark_work(&c->marks);
}

void bpt_comm_operation_end(bpt_comm *c) {
    c->marks.operation = NULL;
    mark_work(&c->marks);
}

void bpt__comm_got_on(bpt_comm *c) {
    mark_work(&c->marks);
}

void bpt__comm_push_begin(bpt_comm *c, const char *what) {
    atomic_store_explicit(&c->marks.push, what, memory_order_relaxed);
    atomic_fetch_add_explicit(&c->marks.pushes, 1, memory_order_release);
}

void bpt__comm_push_end(bpt_comm *c) {
    const unsigned pushes = atomic_load_explicit(&c->marks.pushes, memory_order_acquire);
    atomic_store_explicit(&c->marks.answered, pushes, memory_order_relaxed);
}

void bpt__comm_push_moves(bpt_comm *c) {
    c->marks.push_moves++;
}

void bpt__comm_expect_begin(bpt_comm *c) {
    atomic_fetch_add_explicit(&c->n_expecting, 1, memory_order_relaxed);
    bpt__comm_wake(c);
}

void bpt__comm_expect_end(bpt_comm *c) {
    atomic_fetch_sub_explicit(&c->n_expecting, 1, memory_order_relaxed);
}

void bpt__comm_wait_moves(bpt_comm *c) {
    c->marks.wait_moves++;
}

void bpt__comm_help_begin(bpt_comm *c, const char *what) {
    atomic_store_explicit(&c->marks.help, what, memory_order_relaxed);
    atomic_fetch_add_explicit(&c->marks.helps, 1, memory_order_release);
}

void bpt__comm_help_end(bpt_comm *c) {
    atomic_fetch_add_explicit(&c->marks.helps, 1, memory_order_release);
}

static void hurry(bpt_comm *c) {
    atomic_fetch_add_explicit(&c->n_hurried, 1, memory_order_relaxed);
    bpt__comm_wake(c);
}

void bpt__comm_wait_begin(bpt_comm *c, const char *what) {
    mark(&c->marks, BPT__WAITS, what ? what : c->marks.activity);
    hurry(c);
}

void bpt__comm_own_begin(bpt_comm *c, const char *what) {
    mark(&c->marks, BPT__OWN, what);
    hurry(c);
}

/* Polls come as soon as where somebody waits: others wait for what an idle rank serves. */
void bpt__comm_idle_begin(bpt_comm *c) {
    bpt__comm_idle_again(c);
    hurry(c);
}

void bpt__comm_idle_again(bpt_comm *c) {
    mark(&c->marks, BPT__IDLES, c->marks.activity);
}

void bpt__comm_wait_end(bpt_comm *c) {
    atomic_fetch_sub_explicit(&c->n_hurried, 1, memory_order_relaxed);
    mark_work(&c->marks);
}

/* ---- the thread ---- */

/* Whether MPI reaches a rank through memory: not by names of hosts, which several may share.
 * @param near shape [size], zeroed */
static bpt_status find_near(bpt_comm *c, const int *ranks, int *near) {
    MPI_Comm shared;
    MPI_Group all, here;
    const int n = (int)c->size;
    BPT_TRY(bpt__mpi_check(
        MPI_Comm_split_type(c->collectives, MPI_COMM_TYPE_SHARED, 0, MPI_INFO_NULL, &shared),
        "find the ranks of this host"));
    int code = MPI_Comm_group(c->collectives, &all);
    if (code == MPI_SUCCESS) {
        code = MPI_Comm_group(shared, &here);
        if (code == MPI_SUCCESS) {
            code = MPI_Group_translate_ranks(all, n, ranks, here, near);
            MPI_Group_free(&here);
        }
        MPI_Group_free(&all);
    }
    MPI_Comm_free(&shared);
    return bpt__mpi_check(code, "tell the ranks of this host");
}

static bpt_status gather_near(bpt_comm *c, const int *near) {
    uint32_t mine = 0, n_near = 0;
    while (near[mine] == MPI_UNDEFINED) mine++; /* this rank itself at the latest */
    BPT_TRY(bpt__mpi_check(MPI_Allgather(&mine, sizeof mine, MPI_BYTE, c->first_near, sizeof mine,
                                         MPI_BYTE, c->collectives),
                           "gather which ranks are together"));
    for (uint32_t r = 0; r < c->size; r++) {
        const bool together = c->first_near[r] == mine;
        c->ways[r] = together ? bpt__way_memory : bpt__way_network;
        n_near += together;
    }
    bpt_debug("messages to %u of %u ranks go through memory", n_near, c->size);
    return BPT_OK;
}

/* A rank without memory for it lets the others know before they meet. */
static bpt_status meet_memory(const bpt_comm *c, bpt_status mine) {
    int good = mine == BPT_OK, all_good = 0;
    bpt_error error;
    bpt_error_get(&error);
    BPT_TRY(bpt__mpi_check(MPI_Allreduce(&good, &all_good, 1, MPI_INT, MPI_LAND, c->collectives),
                           "meet at the start"));
    if (!good) return bpt_error_put(&error);
    return all_good ? BPT_OK : bpt_fail(BPT_EPEER, "another rank has no memory to start with");
}

static bpt_status gather_names(bpt_comm *c) {
    char mine[BPT__HOST_SIZE] = "";
    if (gethostname(mine, sizeof mine - 1) != 0) strcpy(mine, "unknown");
    return bpt__mpi_check(
        MPI_Allgather(mine, sizeof mine, MPI_BYTE, c->hosts, sizeof mine, MPI_BYTE, c->collectives),
        "gather the host names");
}

static bpt_status gather_hosts(bpt_comm *c) {
    int *ranks = NULL, *near = NULL;
    bpt_status status = BPT_NEW("host names", c->size, &c->hosts);
    if (status == BPT_OK) status = BPT_NEW("numbers of ranks", c->size, &c->numbers);
    if (status == BPT_OK) status = BPT_NEW("ranks of machines", c->size, &c->first_near);
    if (status == BPT_OK) status = BPT_NEW("ways to ranks", c->size, &c->ways);
    if (status == BPT_OK) status = BPT_NEW("ranks", c->size, &ranks);
    if (status == BPT_OK) status = BPT_NEW("ranks of this host", c->size, &near);
    status = meet_memory(c, status);
    for (uint32_t r = 0; status == BPT_OK && r < c->size; r++) ranks[r] = (int)r;
    if (status == BPT_OK) status = gather_names(c);
    if (status == BPT_OK) status = find_near(c, ranks, near);
    if (status == BPT_OK) status = gather_near(c, near);
    bpt_free(near);
    bpt_free(ranks);
    return status;
}

/* "Open MPI v4.1.4, package: ...": what comes before the comma. */
static void name_library(bpt_comm *c) {
    char text[MPI_MAX_LIBRARY_VERSION_STRING] = "";
    int length = 0;
    if (MPI_Get_library_version(text, &length) != MPI_SUCCESS) strcpy(text, "unknown");
    text[strcspn(text, ",\n")] = '\0';
    snprintf(c->library, sizeof c->library, "%.63s", text);
}

static bpt_status start_watch(bpt_comm *c) {
    bpt_status status = meet_memory(c, bpt__watch_create(c->watched, c, &c->watch));
    if (status == BPT_OK) status = bpt__watch_begin(c->watch);
    if (status == BPT_OK) return BPT_OK;
    bpt__watch_free(c->watch);
    c->watch = NULL;
    return status;
}

static bpt_status start(bpt_comm *c) {
    int was_initialised = 0, given = 0, rank = 0, size = 0;
    BPT_TRY(bpt__mpi_check(MPI_Initialized(&was_initialised), "tell its state"));
    if (was_initialised) return bpt_fail(BPT_EUSAGE, "MPI can be started once in a process only");
    BPT_TRY(bpt__mpi_check(MPI_Init_thread(NULL, NULL, MPI_THREAD_FUNNELED, &given), "start"));
    c->thread_level = given;
    if (given < MPI_THREAD_FUNNELED)
        return bpt_fail(BPT_ECOMM, "this MPI library allows no threads (level %d)", given);
    BPT_TRY(bpt__mpi_check(MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN),
                           "return errors"));
    BPT_TRY(bpt__mpi_check(MPI_Comm_rank(MPI_COMM_WORLD, &rank), "tell the rank"));
    BPT_TRY(bpt__mpi_check(MPI_Comm_size(MPI_COMM_WORLD, &size), "count the ranks"));
    BPT_TRY(bpt__mpi_check(MPI_Comm_dup(MPI_COMM_WORLD, &c->collectives), "copy the world"));
    BPT_TRY(bpt__mpi_check(MPI_Comm_dup(MPI_COMM_WORLD, &c->messages), "copy the world"));
    c->rank = (uint32_t)rank;
    c->size = (uint32_t)size;
    name_library(c);
    BPT_TRY(gather_hosts(c));
    return c->watched ? start_watch(c) : BPT_OK;
}

static void finish_job(bpt_comm *c, bpt__job *job, bpt_status status) {
    if (status != BPT_OK) bpt_error_get(&job->error);
    job->error.status = status;
    pthread_mutex_lock(&c->mutex);
    job->finished = true;
    pthread_cond_broadcast(&c->done);
    pthread_mutex_unlock(&c->mutex);
}

/* @return whether anything moved. A finished job is unlinked first: its owner may be gone at once.
 */
static bool poll_jobs(bpt_comm *c, bpt__job **jobs) {
    bool any_moved = false;
    for (bpt__job **link = jobs; *link;) {
        bpt__job *job = *link;
        bool moved = false, done = false;
        const bpt_status status = job->poll(job, &moved, &done);
        any_moved = any_moved || moved || done || status != BPT_OK;
        if (done || status != BPT_OK) {
            *link = job->next;
            finish_job(c, job, status);
        } else {
            link = &job->next;
        }
    }
    return any_moved;
}

static void append_submitted(bpt_comm *c, bpt__job **jobs) {
    while (*jobs) jobs = &(*jobs)->next;
    *jobs = c->submitted;
    c->submitted = NULL;
    c->submitted_end = &c->submitted;
}

/* @return whether it was woken */
static bool sleep_for(bpt_comm *c, uint64_t ns) {
    const uint64_t until = bpt_clock_ns() + ns;
    const struct timespec at = bpt_clock_timespec(until);
    return sem_clockwait(&c->wake, CLOCK_MONOTONIC, &at) == 0;
}

/* @return whether it was woken */
static bool nap(bpt_comm *c, uint64_t moved_ns, bpt__lateness *late) {
    const bool waited_for = atomic_load_explicit(&c->n_hurried, memory_order_relaxed) > 0;
    const uint64_t begin_ns = bpt_clock_ns();
    const bool expected = atomic_load_explicit(&c->n_expecting, memory_order_relaxed) > 0;
    const enum bpt__haste haste = waited_for ? BPT__HURRIED : expected ? BPT__EXPECTING : BPT__CALM;
    const uint64_t nap_ns = bpt__nap_ns(begin_ns - moved_ns, haste, late);
    if (sleep_for(c, nap_ns)) return true;
    if (haste == BPT__CALM) bpt__lateness_add(late, nap_ns, bpt_clock_ns() - begin_ns);
    return false;
}

/* Sleeps as long as may be. @return whether it was woken */
static bool rest(bpt_comm *c, bool moved, bool has_jobs, uint64_t moved_ns, bpt__lateness *late) {
    if (moved) return sem_trywait(&c->wake) == 0;
    if (has_jobs) return nap(c, moved_ns, late);
    if (c->watch || bpt__notice_looks(c)) return sleep_for(c, BPT__TICK_NS);
    return sem_wait(&c->wake) == 0;
}

/* Takes over what was asked for. @return false if the thread is to end */
static bool take_orders(bpt_comm *c, bpt__job **jobs) {
    pthread_mutex_lock(&c->mutex);
    const bool stopping = c->stopping;
    const int abort_status = c->abort_status;
    append_submitted(c, jobs);
    pthread_mutex_unlock(&c->mutex);
    if (abort_status != 0) bpt__end_job(abort_status);
    return !stopping;
}

static void serve(bpt_comm *c) {
    bpt__job *jobs = NULL;
    bool moved = false;
    uint64_t moved_ns = 0;
    bpt__lateness late = {0};
    for (;;) {
        const bool woken = rest(c, moved, jobs != NULL, moved_ns, &late);
        if (woken && !take_orders(c, &jobs)) break;
        moved = poll_jobs(c, &jobs);
        bpt__watch_tick(c->watch);
        bpt__notice_tick(c);
        if (moved || woken) moved_ns = bpt_clock_ns();
    }
    assert(!jobs && "the communication is stopped while something is under way");
}

void *bpt__comm_main(void *argument) {
    bpt_comm *c = argument;
    prctl(PR_SET_TIMERSLACK, 5000ul); /* ns: the default of 50 us exceeds the shortest nap */
    const bpt_status status = start(c);
    pthread_mutex_lock(&c->mutex);
    if (status != BPT_OK) bpt_error_get(&c->error);
    c->started = status == BPT_OK;
    c->start_finished = true;
    pthread_cond_broadcast(&c->done);
    pthread_mutex_unlock(&c->mutex);
    if (status != BPT_OK) return NULL;

    serve(c);
    bpt__watch_end(c->watch);
    bpt__notice_end(c);
    MPI_Comm_free(&c->messages);
    MPI_Comm_free(&c->collectives);
    MPI_Finalize();
    bpt__watch_free(c->watch); /* not before: what it has sent may be under way until then */
    return NULL;
}
