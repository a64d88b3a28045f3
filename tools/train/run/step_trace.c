#include "tools/train/run/step_trace.h"

#include "base/clock.h"
#include "base/file.h"
#include "base/log.h"
#include "base/memory.h"
#include "outer/comm/message_watch.h"
#include "tools/train/options/option_texts.h"
#include "tools/train/run/trace_parts.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdatomic.h>
#include <stdio.h>
#include <unistd.h>

enum { SPANS = 1 << 16, LABEL_SIZE = 24 };

/* What ranks tell each other before any of them writes. */
typedef struct {
    uint64_t n_steps; /* recorded */
    uint64_t found;   /* whether there is a file of that name already */
} account;

struct bpt_step_trace {
    bpt_comm *comm;
    bpt_pool *pool;
    bpt_trace *spans;
    const char *path; /* borrowed from the options */
    char **parts;     /* shape [n_ranks]: the file of each rank until all are joined */
    char (*to)[LABEL_SIZE], (*from)[LABEL_SIZE]; /* shape [n_ranks]: "to rank 1" */
    account *accounts;                           /* shape [n_ranks] */
    uint32_t rank, n_ranks;
    uint64_t first, last; /* steps to record, of those that began here */
    uint64_t n_begun;     /* in this process: a job that goes on has made others before */
    uint64_t step, step_begin_ns;
    uint64_t n_steps; /* recorded */
    uint64_t n_most;  /* by any rank: one that is slow may have come to none */
    uint64_t origin_ns;
    bool records;
    bool watches; /* the messages */
    /* Those that end from here on are recorded; the MPI thread reads it, it orders nothing else, so
     * relaxed. */
    atomic_uint_least64_t records_from_ns;
};

static bpt_status agree(const bpt_step_trace *t, bpt_status status) {
    return t->comm ? bpt_comm_agree(t->comm, status) : status;
}

/* Ranks of one machine read one clock. */
static bpt_status choose_origin(bpt_step_trace *t) {
    uint64_t first_ns = bpt_clock_ns();
    t->origin_ns = first_ns;
    if (!t->comm) return BPT_OK;
    BPT_TRY(bpt_comm_broadcast(t->comm, 0, &first_ns, sizeof first_ns));
    if (bpt_comm_together(t->comm, t->rank, 0)) t->origin_ns = first_ns;
    return BPT_OK;
}

static bpt_status write_part(const bpt_step_trace *t) {
    char name[128] = "bpt-train";
    if (t->comm)
        snprintf(name, sizeof name, "rank %" PRIu32 " on %s", t->rank,
                 bpt_comm_host(t->comm, t->rank));
    const bpt_trace_process process = {t->rank, name, t->origin_ns};
    return bpt_trace_write(t->spans, &process, t->parts[t->rank]);
}

static bpt_status name_parts(bpt_step_trace *t, uint64_t process) {
    BPT_TRY(BPT_NEW("trace parts", t->n_ranks, &t->parts));
    for (uint32_t r = 0; r < t->n_ranks; r++)
        BPT_TRY(bpt_trace_part_name(t->path, process, r, &t->parts[r]));
    return BPT_OK;
}

static bpt_status name_peers(bpt_step_trace *t) {
    BPT_TRY(BPT_NEW("names of receivers", t->n_ranks, &t->to));
    BPT_TRY(BPT_NEW("names of senders", t->n_ranks, &t->from));
    for (uint32_t r = 0; r < t->n_ranks; r++) {
        snprintf(t->to[r], LABEL_SIZE, "to rank %" PRIu32, r);
        snprintf(t->from[r], LABEL_SIZE, "from rank %" PRIu32, r);
    }
    return BPT_OK;
}

bpt_status bpt_step_trace_try(const char *path) {
    BPT_TRY(bpt_trace_check_place(path));
    const bool existed = bpt_path_exists(path);
    const int file = open(path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0666);
    if (file < 0) return bpt_fail_write(errno, "write", path);
    (void)close(file);
    if (!existed) (void)unlink(path);
    return BPT_OK;
}

/* Better to hear now that something cannot be written. */
static bpt_status try_files(const bpt_step_trace *t) {
    if (t->rank == 0) BPT_TRY(bpt_step_trace_try(t->path));
    BPT_TRY(write_part(t));
    (void)unlink(t->parts[t->rank]);
    return BPT_OK;
}

static bpt_status reserve(bpt_step_trace *t, uint64_t process) {
    BPT_TRY(name_parts(t, process));
    BPT_TRY(BPT_NEW("accounts of steps", t->n_ranks, &t->accounts));
    const unsigned n_workers = t->pool ? bpt_pool_n_workers(t->pool) : 1;
    BPT_TRY(bpt_trace_create(n_workers, SPANS, &t->spans));
    BPT_TRY(name_peers(t));
    bpt_trace_parts_sweep(t->path, process);
    return try_files(t);
}

static void record(bpt_step_trace *t, bool records) {
    /* Of steps in a row the first one's begin counts: what ends between two of them is recorded. */
    if (!records || !t->records)
        atomic_store_explicit(&t->records_from_ns, records ? t->step_begin_ns : UINT64_MAX,
                              memory_order_relaxed);
    t->records = records;
    if (t->pool) bpt_pool_set_trace(t->pool, records ? t->spans : NULL);
}

/* On the MPI thread. */
static void note_message(void *arg, const bpt_message *m) {
    const bpt_step_trace *t = arg;
    if (m->end_ns < atomic_load_explicit(&t->records_from_ns, memory_order_relaxed)) return;
    const bpt_task_info info = m->sent ? (bpt_task_info){"send", t->to[m->peer]}
                                       : (bpt_task_info){"receive", t->from[m->peer]};
    bpt_trace_add_message(t->spans, info, m->bytes, m->begin_ns, m->end_ns);
}

static void watch_messages(bpt_step_trace *t, bool watches) {
    if (!t->comm || watches == t->watches) return;
    t->watches = watches;
    bpt_comm_watch_messages(t->comm, watches ? note_message : NULL, t);
}

/* Between ranks all goes through agree(): none waits for one that failed. */
static bpt_status open_together(bpt_step_trace *t) {
    uint64_t process = (uint64_t)getpid();
    BPT_TRY(choose_origin(t));
    if (t->comm) BPT_TRY(bpt_comm_broadcast(t->comm, 0, &process, sizeof process));
    BPT_TRY(agree(t, reserve(t, process)));
    record(t, false);
    if (t->pool) watch_messages(t, true);
    return BPT_OK;
}

bpt_status bpt_step_trace_open(const bpt_train_options *options, bpt_comm *comm, bpt_pool *pool,
                               bpt_step_trace **out) {
    *out = NULL;
    if (!options->trace) return BPT_OK;
    bpt_step_trace *t = NULL;
    bpt_status status = BPT_NEW("step trace", 1, &t);
    if (comm) status = bpt_comm_agree(comm, status);
    if (status != BPT_OK) {
        bpt_free(t); /* there, if it was another rank that failed */
        return status;
    }
    t->comm = comm;
    t->pool = pool;
    t->path = options->trace;
    t->n_ranks = 1;
    if (comm) {
        t->rank = bpt_comm_rank(comm);
        t->n_ranks = bpt_comm_size(comm);
    }
    status = bpt_trace_steps_parse(options->trace_steps, &t->first, &t->last);
    if (status == BPT_OK) status = open_together(t);
    if (status != BPT_OK) {
        bpt_step_trace_close(t);
        return status;
    }
    *out = t;
    return BPT_OK;
}

void bpt_step_trace_close(bpt_step_trace *t) {
    if (!t) return;
    record(t, false);
    watch_messages(t, false);
    bpt_trace_free(t->spans);
    bpt_free(t->accounts);
    bpt_free(t->to);
    bpt_free(t->from);
    for (uint32_t r = 0; t->parts && r < t->n_ranks; r++) bpt_free(t->parts[r]);
    bpt_free(t->parts);
    bpt_free(t);
}

size_t bpt_step_trace_bytes(const bpt_train_options *options, unsigned n_workers) {
    return options->trace ? bpt_trace_bytes(n_workers, SPANS) : 0;
}

void bpt_step_trace_begin(bpt_step_trace *t, uint64_t step) {
    if (!t) return;
    t->step = step;
    t->step_begin_ns = bpt_clock_ns();
    t->n_begun++;
    record(t, t->n_begun >= t->first && t->n_begun <= t->last);
}

void bpt_step_trace_end(bpt_step_trace *t) {
    if (!t || !t->records) return;
    t->n_steps++;
    bpt_trace_add(t->spans, 0, (bpt_task_info){.kind = "step"}, t->step, t->step_begin_ns,
                  bpt_clock_ns());
}

void bpt_step_trace_wait(bpt_step_trace *t, const char *what, uint64_t begin_ns) {
    if (!t || !t->records) return;
    bpt_trace_add(t->spans, 0, (bpt_task_info){"wait", what}, t->step, begin_ns, bpt_clock_ns());
}

void bpt_step_trace_pause(bpt_step_trace *t) {
    if (t) record(t, false);
}

static bpt_status join(const bpt_step_trace *t) {
    size_t n_joined;
    BPT_TRY(bpt_trace_join((const char *const *)t->parts, t->n_ranks, t->path, &n_joined));
    if (n_joined < t->n_ranks)
        bpt_warn("%s has %zu of %" PRIu32 " ranks: the others lie on their own disks, like %s",
                 t->path, n_joined, t->n_ranks, t->parts[t->n_ranks - 1]);
    if (t->n_most == 0) return BPT_OK; /* that it is empty was told */
    bpt_info("trace of %" PRIu64 " step%s in %s: open it at ui.perfetto.dev", t->n_most,
             t->n_most == 1 ? "" : "s", t->path);
    return BPT_OK;
}

/* @param[out] found whether rank 0, which writes the file, finds one there */
static bpt_status take_account(bpt_step_trace *t, bool *found) {
    const account mine = {t->n_steps, bpt_path_exists(t->path)};
    t->accounts[0] = mine;
    if (t->comm) BPT_TRY(bpt_comm_allgather(t->comm, &mine, sizeof mine, t->accounts));
    for (uint32_t r = 0; r < t->n_ranks; r++)
        if (t->accounts[r].n_steps > t->n_most) t->n_most = t->accounts[r].n_steps;
    *found = t->accounts[0].found != 0;
    return BPT_OK;
}

static void warn_of_nothing(const bpt_step_trace *t, bool stays) {
    char why[96] = "no step was made";
    if (t->n_begun > 0)
        snprintf(why, sizeof why, "the run ended before step %" PRIu64 "%s", t->first,
                 t->step > t->n_begun ? ", counted from where it went on" : "");
    bpt_warn("the trace is empty: %s%s%s%s", why, stays ? "; " : "", stays ? t->path : "",
             stays ? " stays as it was" : "");
}

bpt_status bpt_step_trace_write(bpt_step_trace *t) {
    bool found;
    if (!t) return BPT_OK;
    record(t, false);
    watch_messages(t, false);
    BPT_TRY(take_account(t, &found));
    const bool stays = found && t->n_most == 0; /* it is worth more than an empty one */
    if (t->n_most == 0 && t->rank == 0) warn_of_nothing(t, stays);
    if (stays) return BPT_OK;
    if (bpt_trace_lost(t->spans))
        bpt_warn("the trace lost its %" PRIu64 " oldest spans: choose fewer steps",
                 bpt_trace_lost(t->spans));
    bpt_status status = agree(t, write_part(t));
    if (status == BPT_OK) status = agree(t, t->rank == 0 ? join(t) : BPT_OK);
    if (status != BPT_OK) (void)unlink(t->parts[t->rank]);
    return status;
}
