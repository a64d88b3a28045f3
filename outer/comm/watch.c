#include "base/clock.h"
#include "base/memory.h"
#include "outer/comm/comm_thread.h"
#include "outer/comm/stall.h"
#include "outer/comm/watch_state.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

/* Asked in good time before the limit; later where who was asked takes long. Who did not answer
 * before is not waited for as long again. */
static const double patience_s = 5, again_s = 1;

typedef struct {
    uint32_t answers; /* 0: asks */
    uint32_t serial;  /* of the question */
    bpt__activity at;
} message;

struct bpt__watch {
    bpt_watch_options options;
    bpt_comm *comm;
    MPI_Comm world;
    uint64_t looked_ns;
    /* Of this rank, when last looked. */
    unsigned changes, pushes, push_moves, wait_moves, helps;
    bool pushed;             /* a push was not answered */
    double thread_s, push_s; /* the thread has not changed, the push is not answered, for so long */
    double help_s;           /* its helper is at one thing for so long */
    double held_s, warned_s; /* what look_at_self() is at for so long; when last warned of */
    bool asked;
    double asked_s, ask_from_s; /* in held_s */
    uint32_t serial;            /* of the latest question */
    bpt__rank_view *views;      /* [size]: answers to it */
    bool *silent;               /* [size]: had not answered at the last verdict, nor since */
    message in;
    MPI_Request receiving;
    message *out; /* [2][size]: questions to, then answers to each rank */
    MPI_Request *sending;
    bool broken; /* MPI failed here, as it will where it matters more */
};

/* ---- limits ---- */

double bpt__watch_limit(const bpt_watch_options *options, double warned_s) {
    double limit = INFINITY;
    if (options->warning_s > 0) limit = warned_s > 0 ? 2 * warned_s : options->warning_s;
    if (options->timeout_s > 0 && options->timeout_s < limit) limit = options->timeout_s;
    return limit;
}

double bpt__watch_counted(uint64_t gap_ns) {
    const uint64_t most = 4ull * BPT__TICK_NS;
    return 1e-9 * (double)(gap_ns < most ? gap_ns : most);
}

/* ---- messages ---- */

static void check(bpt__watch *w, int code) {
    if (code != MPI_SUCCESS) w->broken = true;
}

/* What this rank is held up by: what its thread is at, or a push that is not answered, where the
 * thread waits for that or goes on without. A push of which parts still move holds nobody up. Or
 * what its helper is at, where that has taken longer: then it is no wait for others, and one that
 * seems to be has this for its cause. */
static bpt__activity look_at_self(const bpt__watch *w) {
    const bpt__marks *marks = &w->comm->marks;
    bpt__activity at = {
        .kind = (uint32_t)atomic_load_explicit(&marks->kind, memory_order_relaxed),
        .held_s = w->thread_s,
    };
    const char *what = atomic_load_explicit(&marks->what, memory_order_relaxed);
    if (w->pushed && (at.kind == BPT__WAITS || w->push_s > w->thread_s)) {
        if (at.kind != BPT__WAITS) what = atomic_load_explicit(&marks->push, memory_order_relaxed);
        at.kind = BPT__WAITS;
        at.held_s = w->push_s;
    }
    if (w->help_s > at.held_s) {
        what = atomic_load_explicit(&marks->help, memory_order_relaxed);
        at.kind = BPT__OWN;
        at.held_s = w->help_s;
    }
    snprintf(at.what, sizeof at.what, "%s", what);
    return at;
}

static void listen(bpt__watch *w) {
    check(w, MPI_Irecv(&w->in, sizeof w->in, MPI_BYTE, MPI_ANY_SOURCE, 0, w->world, &w->receiving));
}

/* Sends, unless the last message of this kind has not left. */
static void send(bpt__watch *w, uint32_t to, const message *m) {
    const size_t i = m->answers * w->comm->size + to;
    int left = 1;
    if (w->sending[i] != MPI_REQUEST_NULL)
        check(w, MPI_Test(&w->sending[i], &left, MPI_STATUS_IGNORE));
    if (!left || w->broken) return;
    w->out[i] = *m;
    check(w, MPI_Isend(&w->out[i], sizeof *m, MPI_BYTE, (int)to, 0, w->world, &w->sending[i]));
}

static void take(bpt__watch *w, uint32_t from) {
    if (!w->in.answers) {
        const message answer = {.answers = 1, .serial = w->in.serial, .at = look_at_self(w)};
        send(w, from, &answer);
    } else if (w->asked && w->in.serial == w->serial) {
        w->in.at.what[sizeof w->in.at.what - 1] = '\0';
        w->views[from] = (bpt__rank_view){.answered = true, .at = w->in.at};
        w->silent[from] = false;
    }
}

static void hear(bpt__watch *w) {
    for (uint32_t n = 0; n < 4 * w->comm->size && !w->broken; n++) {
        int here = 0;
        MPI_Status from;
        check(w, MPI_Test(&w->receiving, &here, &from));
        if (!here || w->broken) return;
        take(w, (uint32_t)from.MPI_SOURCE);
        listen(w);
    }
}

static void ask(bpt__watch *w) {
    const message question = {.serial = ++w->serial};
    w->asked = true;
    w->asked_s = w->held_s;
    for (uint32_t r = 0; r < w->comm->size; r++) {
        w->views[r].answered = false;
        if (r != w->comm->rank) send(w, r, &question);
    }
}

/* ---- verdict ---- */

/* @return for how long answers to a question are waited for: 0 if all are there */
static double patience(const bpt__watch *w) {
    double s = 0;
    for (uint32_t r = 0; r < w->comm->size; r++)
        if (!w->views[r].answered) s = fmax(s, w->silent[r] ? again_s : patience_s);
    return s;
}

static void tell(bpt__watch *w, double limit_s) {
    char text[BPT_ERROR_TEXT_SIZE];
    bpt_stall stall = {.text = text};
    stall.hint = bpt__stall_describe(w->views, w->comm->size, w->comm->rank, limit_s,
                                     w->comm->hosts, text, sizeof text);
    stall.ends = w->options.timeout_s > 0 && w->held_s >= w->options.timeout_s;
    w->options.tell(&stall);
    if (stall.ends) bpt__end_job(w->options.exit_status);
}

static void judge(bpt__watch *w, double limit_s) {
    w->views[w->comm->rank] = (bpt__rank_view){.answered = true, .at = look_at_self(w)};
    if (w->held_s < w->asked_s + patience(w)) return;
    for (uint32_t r = 0; r < w->comm->size; r++) w->silent[r] = !w->views[r].answered;
    w->asked = false;
    w->warned_s = w->held_s; /* here, or by the rank whose turn it is */
    w->ask_from_s = w->held_s + again_s;
    if (bpt__stall_is_mine(w->views, w->comm->size, w->comm->rank, limit_s)) tell(w, limit_s);
}

static void examine(bpt__watch *w) {
    const uint32_t kind = look_at_self(w).kind;
    const double limit_s = bpt__watch_limit(&w->options, w->warned_s);
    if (kind == BPT__BUSY || kind == BPT__IDLES || (kind == BPT__WAITS && w->comm->size == 1))
        return;
    if (!w->asked && w->held_s >= fmax(w->ask_from_s, fmax(limit_s / 2, limit_s - patience_s)))
        ask(w);
    if (w->asked && w->held_s >= limit_s) judge(w, limit_s);
}

static void notice_changes(bpt__watch *w, double passed_s) {
    const bpt__marks *marks = &w->comm->marks;
    const unsigned changes = atomic_load_explicit(&marks->changes, memory_order_acquire);
    const unsigned pushes = atomic_load_explicit(&marks->pushes, memory_order_acquire);
    const unsigned answered = atomic_load_explicit(&marks->answered, memory_order_relaxed);
    const bool waits = atomic_load_explicit(&marks->kind, memory_order_relaxed) == BPT__WAITS;
    const bool gets_on = changes != w->changes || (waits && marks->wait_moves != w->wait_moves);
    w->thread_s = gets_on ? 0 : w->thread_s + passed_s;
    w->pushed = pushes != answered;
    const bool moves = pushes != w->pushes || marks->push_moves != w->push_moves;
    w->push_s = w->pushed && !moves ? w->push_s + passed_s : 0;
    const unsigned helps = atomic_load_explicit(&marks->helps, memory_order_acquire);
    w->help_s = helps % 2 == 1 && helps == w->helps ? w->help_s + passed_s : 0;
    w->helps = helps;
    w->changes = changes;
    w->pushes = pushes;
    w->push_moves = marks->push_moves;
    w->wait_moves = marks->wait_moves;
    const double held_s = look_at_self(w).held_s;
    if (held_s < w->held_s) { /* it got on */
        w->warned_s = w->ask_from_s = 0;
        w->asked = false;
        memset(w->silent, 0, w->comm->size * sizeof *w->silent);
    }
    w->held_s = held_s;
}

void bpt__watch_tick(bpt__watch *w) {
    if (!w || w->broken) return;
    const uint64_t now = bpt_clock_ns();
    if (now - w->looked_ns < BPT__TICK_NS) return;
    notice_changes(w, bpt__watch_counted(now - w->looked_ns));
    w->looked_ns = now;
    hear(w);
    examine(w);
}

/* ---- life ---- */

static void release(bpt__watch *w) {
    bpt_free(w->sending);
    bpt_free(w->out);
    bpt_free(w->silent);
    bpt_free(w->views);
    bpt_free(w);
}

bpt_status bpt__watch_create(const bpt_watch_options *options, bpt_comm *c, bpt__watch **watch) {
    bpt__watch *w = NULL;
    bpt_status status;
    BPT_TRY(BPT_NEW("watch", 1, &w));
    w->options = *options;
    w->comm = c;
    w->receiving = MPI_REQUEST_NULL;
    BPT_TRY_GOTO(status, BPT_NEW("views of ranks", c->size, &w->views), err);
    BPT_TRY_GOTO(status, BPT_NEW("silent ranks", c->size, &w->silent), err);
    BPT_TRY_GOTO(status, BPT_NEW("messages of the watch", 2 * (size_t)c->size, &w->out), err);
    BPT_TRY_GOTO(status, BPT_NEW("requests of the watch", 2 * (size_t)c->size, &w->sending), err);
    for (uint32_t i = 0; i < 2 * c->size; i++) w->sending[i] = MPI_REQUEST_NULL;
    *watch = w;
    return BPT_OK;
err:
    release(w);
    return status;
}

bpt_status bpt__watch_begin(bpt__watch *w) {
    BPT_TRY(bpt__mpi_check(MPI_Comm_dup(MPI_COMM_WORLD, &w->world), "copy the world"));
    w->looked_ns = bpt_clock_ns();
    listen(w);
    return BPT_OK;
}

void bpt__watch_end(bpt__watch *w) {
    if (!w) return;
    if (w->receiving != MPI_REQUEST_NULL) {
        MPI_Cancel(&w->receiving);
        MPI_Wait(&w->receiving, MPI_STATUS_IGNORE);
    }
    for (uint32_t i = 0; i < 2 * w->comm->size; i++)
        if (w->sending[i] != MPI_REQUEST_NULL) MPI_Request_free(&w->sending[i]);
    MPI_Comm_free(&w->world);
}

void bpt__watch_free(bpt__watch *w) {
    if (w) release(w);
}
