#include "outer/exchange/coordinator.h"

#include "base/memory.h"
#include "outer/data/idpa.h"
#include "outer/data/partition.h"
#include "outer/data/speed.h"

#include <math.h>
#include <string.h>

struct bpt_coordinator {
    bpt_coordinator_options options; /* .speed points to the copy below */
    uint64_t progress;
    uint64_t next_checkpoint, next_eval; /* in samples of progress; UINT64_MAX: never */
    uint32_t meet;                       /* reasons of the meeting that is called */
    uint32_t rounds;                     /* of the partition so far */
    uint32_t *table;                     /* samples held after each: [rounds][n_ranks] */
    size_t table_capacity;               /* numbers */

    /* One block each of [n_ranks]. */
    uint32_t *covered;   /* rounds that the rank's last whole pass covered */
    uint64_t *held;      /* samples after the latest round */
    uint64_t *share;     /* scratch of the next round */
    double *speed;       /* prior */
    bpt_speed *measured; /* since the job began */
    double *tbar;        /* scratch of the next round: time per sample, or what it is one over */
};

uint64_t bpt_coordinator_next(uint64_t progress, uint64_t every) {
    return every > 0 ? (progress / every + 1) * every : UINT64_MAX;
}

static void set_thresholds(bpt_coordinator *c) {
    c->next_checkpoint = bpt_coordinator_next(c->progress, c->options.checkpoint_every);
    c->next_eval = bpt_coordinator_next(c->progress, c->options.eval_every);
}

/* ---- the partition ---- */

/* Adds a round after which the ranks hold what the scratch says. */
static bpt_status add_round(bpt_coordinator *c) {
    const size_t m = c->options.n_ranks, n = (size_t)c->rounds * m;
    BPT_TRY(BPT_GROW("table of rounds", n + m, &c->table, &c->table_capacity));
    for (uint32_t j = 0; j < m; j++) {
        c->held[j] = c->share[j];
        c->table[n + j] = (uint32_t)c->share[j];
    }
    c->rounds++;
    return BPT_OK;
}

/* Samples in the next round. */
static uint64_t round_size(const bpt_coordinator *c) {
    const bpt_coordinator_options *o = &c->options;
    return bpt_partition_given(o->n_samples, o->n_rounds, c->rounds + 1) -
           bpt_partition_given(o->n_samples, o->n_rounds, c->rounds);
}

static bpt_status give_first(bpt_coordinator *c) {
    BPT_TRY(bpt_idpa_first(round_size(c), c->speed, c->options.n_ranks, c->share));
    return add_round(c);
}

static bool all_measured(const bpt_coordinator *c) {
    for (uint32_t j = 0; j < c->options.n_ranks; j++)
        if (!(bpt_speed_sample_ns(&c->measured[j]) > 0)) return false;
    return true;
}

/* By measured times; where a rank has none, by the prior speeds of all, for the two have different
 * units. */
static bpt_status give_next(bpt_coordinator *c) {
    const uint32_t m = c->options.n_ranks;
    const bool measured = all_measured(c);
    for (uint32_t j = 0; j < m; j++)
        c->tbar[j] = measured ? bpt_speed_sample_ns(&c->measured[j]) : 1 / c->speed[j];
    BPT_TRY(bpt_idpa_next(round_size(c), c->held, c->tbar, m, c->share));
    for (uint32_t j = 0; j < m; j++) c->share[j] += c->held[j];
    return add_round(c);
}

static bool all_settled(const bpt_coordinator *c) {
    for (uint32_t j = 0; j < c->options.n_ranks; j++)
        if (!bpt_speed_settled(&c->measured[j])) return false;
    return true;
}

static bool drifted(const bpt_coordinator *c) {
    for (uint32_t j = 0; j < c->options.n_ranks; j++) {
        const double held = (double)c->held[j], should = (double)c->share[j];
        if (fabs(should - held) > c->options.rebalance * held + 1) return true; /* 1: rounding */
    }
    return false;
}

/* Whether drifted() may be true of shares that are rounded; every report asks. */
static bool may_have_drifted(const bpt_coordinator *c) {
    const uint32_t m = c->options.n_ranks;
    double sum = 0;
    for (uint32_t j = 0; j < m; j++) sum += c->tbar[j];
    for (uint32_t j = 0; j < m; j++) {
        const double held = (double)c->held[j];
        const double should = (double)c->options.n_samples * (c->tbar[j] / sum);
        if (fabs(should - held) > c->options.rebalance * held) return true;
    }
    return false;
}

/* Everything is given out: moves samples where a share no longer fits its rank's speed. */
static bpt_status rebalance(bpt_coordinator *c) {
    const uint32_t m = c->options.n_ranks;
    if (!all_settled(c)) return BPT_OK;
    for (uint32_t j = 0; j < m; j++) c->tbar[j] = 1 / bpt_speed_sample_ns(&c->measured[j]);
    if (!may_have_drifted(c)) return BPT_OK;
    BPT_TRY(bpt_idpa_first(c->options.n_samples, c->tbar, m, c->share));
    return drifted(c) ? add_round(c) : BPT_OK;
}

static bool all_covered(const bpt_coordinator *c) {
    for (uint32_t j = 0; j < c->options.n_ranks; j++)
        if (c->covered[j] < c->rounds) return false;
    return true;
}

static bpt_status next_round(bpt_coordinator *c) {
    if (c->rounds == 0 || !all_covered(c)) return BPT_OK;
    if (c->rounds < c->options.n_rounds) return give_next(c);
    return c->options.rebalance > 0 ? rebalance(c) : BPT_OK;
}

/* ---- life ---- */

static bpt_status allocate(bpt_coordinator *c) {
    const uint32_t m = c->options.n_ranks;
    BPT_TRY(BPT_NEW("rounds covered", m, &c->covered));
    BPT_TRY(BPT_NEW("samples held", m, &c->held));
    BPT_TRY(BPT_NEW("shares", m, &c->share));
    BPT_TRY(BPT_NEW("speeds", m, &c->speed));
    BPT_TRY(BPT_NEW("measured speeds", m, &c->measured));
    return BPT_NEW("times per sample", m, &c->tbar);
}

static bpt_status check(const bpt_coordinator_options *o) {
    return o->n_samples > 0 ? bpt_partition_check(o->n_samples, o->n_ranks, o->n_rounds) : BPT_OK;
}

bpt_status bpt_coordinator_create(const bpt_coordinator_options *options,
                                  bpt_coordinator **coordinator) {
    BPT_TRY(check(options));
    bpt_coordinator *c = NULL;
    bpt_status status = BPT_OK;
    BPT_TRY(BPT_NEW("coordinator", 1, &c));
    c->options = *options;
    BPT_TRY_GOTO(status, allocate(c), err_free);
    for (uint32_t j = 0; j < options->n_ranks; j++)
        c->speed[j] = options->speed ? options->speed[j] : 1;
    c->options.speed = c->speed;
    c->progress = options->progress;
    set_thresholds(c);
    if (options->n_samples > 0) BPT_TRY_GOTO(status, give_first(c), err_free);
    *coordinator = c;
    return BPT_OK;
err_free:
    bpt_coordinator_free(c);
    return status;
}

void bpt_coordinator_free(bpt_coordinator *c) {
    if (!c) return;
    bpt_free(c->tbar);
    bpt_free(c->measured);
    bpt_free(c->speed);
    bpt_free(c->share);
    bpt_free(c->held);
    bpt_free(c->covered);
    bpt_free(c->table);
    bpt_free(c);
}

bpt_status bpt_coordinator_copy(bpt_coordinator *to, const bpt_coordinator *from) {
    const size_t m = from->options.n_ranks, n = from->rounds * m;
    BPT_TRY(BPT_GROW("table of rounds", n, &to->table, &to->table_capacity));
    to->progress = from->progress;
    to->next_checkpoint = from->next_checkpoint;
    to->next_eval = from->next_eval;
    to->meet = from->meet;
    to->rounds = from->rounds;
    if (n > 0) memcpy(to->table, from->table, n * sizeof *to->table);
    memcpy(to->covered, from->covered, m * sizeof *to->covered);
    memcpy(to->held, from->held, m * sizeof *to->held);
    memcpy(to->measured, from->measured, m * sizeof *to->measured);
    return BPT_OK;
}

/* ---- reports and directives ---- */

bpt_status bpt_coordinator_report(bpt_coordinator *c, uint32_t rank, const bpt_report *report) {
    c->progress += report->samples;
    c->covered[rank] = report->covered;
    bpt_speed_measure(&c->measured[rank], (bpt_timing){report->samples, report->busy_ns});

    c->meet |= report->wants;
    if (c->progress >= c->next_checkpoint) c->meet |= BPT_MEET_CHECKPOINT;
    if (c->progress >= c->next_eval) c->meet |= BPT_MEET_EVAL;
    if (c->options.total_samples > 0 && c->progress >= c->options.total_samples)
        c->meet |= BPT_MEET_END;
    return next_round(c);
}

bpt_directive bpt_coordinator_directive(const bpt_coordinator *c) {
    return (bpt_directive){
        .progress = c->progress,
        .meet = c->meet,
        .rounds = c->rounds,
        .held = c->rounds > 0 ? bpt_coordinator_round(c, c->rounds - 1) : NULL,
    };
}

uint32_t bpt_coordinator_met(bpt_coordinator *c) {
    const uint32_t reasons = c->meet;
    c->meet = 0;
    set_thresholds(c);
    return reasons;
}

const uint32_t *bpt_coordinator_round(const bpt_coordinator *c, uint32_t round) {
    return c->table + (size_t)round * c->options.n_ranks;
}

/* ---- state ---- */

/* What is known of a rank's speed, as one measurement: the rest of it is measured again. */
static bpt_timing timed(const bpt_coordinator *c, uint32_t rank) {
    const bpt_speed *s = &c->measured[rank];
    return s->n > 0 ? s->window : s->next;
}

void bpt_coordinator_save(const bpt_coordinator *c, bpt_json_writer *w, const char *key) {
    const uint32_t m = c->options.n_ranks;
    bpt_json_open_object(w, key);
    bpt_json_put_u64(w, "ranks", m);
    bpt_json_put_u64(w, "samples", c->options.n_samples);
    bpt_json_put_u64(w, "progress", c->progress);
    bpt_json_open_array(w, "rounds");
    for (uint32_t a = 0; a < c->rounds; a++) {
        bpt_json_open_array(w, NULL);
        for (uint32_t j = 0; j < m; j++) bpt_json_put_u64(w, NULL, bpt_coordinator_round(c, a)[j]);
        bpt_json_close_array(w);
    }
    bpt_json_close_array(w);
    bpt_json_open_array(w, "covered");
    for (uint32_t j = 0; j < m; j++) bpt_json_put_u64(w, NULL, c->covered[j]);
    bpt_json_close_array(w);
    bpt_json_open_array(w, "timed_samples");
    for (uint32_t j = 0; j < m; j++) bpt_json_put_u64(w, NULL, timed(c, j).samples);
    bpt_json_close_array(w);
    bpt_json_open_array(w, "timed_ns");
    for (uint32_t j = 0; j < m; j++) bpt_json_put_u64(w, NULL, timed(c, j).busy_ns);
    bpt_json_close_array(w);
    bpt_json_close_object(w);
}

/* Finds the array @p key of one item per rank. */
static bpt_status per_rank(const bpt_coordinator *c, const bpt_json_doc *doc, const bpt_json *state,
                           const char *key, const bpt_json **array) {
    BPT_TRY(bpt_json_get_array(doc, state, key, array));
    if (bpt_json_size(*array) == c->options.n_ranks) return BPT_OK;
    return bpt_fail(BPT_EDATA, "the saved coordinator's %s holds %zu items for %u ranks",
                    key ? key : "round", bpt_json_size(*array), c->options.n_ranks);
}

static bpt_status load_round(bpt_coordinator *c, const bpt_json_doc *doc, const bpt_json *round) {
    const bpt_coordinator_options *o = &c->options;
    const bpt_json *held = NULL;
    BPT_TRY(per_rank(c, doc, round, NULL, &held));
    for (uint32_t j = 0; j < o->n_ranks; j++)
        BPT_TRY(bpt_json_get_u64(doc, bpt_json_at(held, j), NULL, 0, o->n_samples, &c->share[j]));
    BPT_TRY(add_round(c));
    const uint32_t last = c->rounds - 1;
    return bpt_partition_check_round(o->n_samples, o->n_rounds, last,
                                     last > 0 ? bpt_coordinator_round(c, last - 1) : NULL,
                                     bpt_coordinator_round(c, last), o->n_ranks);
}

static bpt_status load_rounds(bpt_coordinator *c, const bpt_json_doc *doc, const bpt_json *state) {
    const bpt_json *rounds = NULL;
    BPT_TRY(bpt_json_get_array(doc, state, "rounds", &rounds));
    const size_t n = bpt_json_size(rounds);
    if ((c->options.n_samples > 0) != (n > 0))
        return bpt_fail(BPT_EDATA, "%zu saved rounds of data of %llu samples", n,
                        (unsigned long long)c->options.n_samples);
    c->rounds = 0;
    for (size_t a = 0; a < n; a++) BPT_TRY(load_round(c, doc, bpt_json_at(rounds, a)));
    return BPT_OK;
}

static bpt_status load_ranks(bpt_coordinator *c, const bpt_json_doc *doc, const bpt_json *state) {
    const bpt_json *covered = NULL, *samples = NULL, *ns = NULL;
    uint64_t number = 0;
    BPT_TRY(per_rank(c, doc, state, "covered", &covered));
    BPT_TRY(per_rank(c, doc, state, "timed_samples", &samples));
    BPT_TRY(per_rank(c, doc, state, "timed_ns", &ns));
    for (uint32_t j = 0; j < c->options.n_ranks; j++) {
        bpt_timing t = {0};
        BPT_TRY(bpt_json_get_u64(doc, bpt_json_at(covered, j), NULL, 0, c->rounds, &number));
        BPT_TRY(bpt_json_get_u64(doc, bpt_json_at(samples, j), NULL, 0, INT64_MAX, &t.samples));
        BPT_TRY(bpt_json_get_u64(doc, bpt_json_at(ns, j), NULL, 0, INT64_MAX, &t.busy_ns));
        c->covered[j] = (uint32_t)number;
        c->measured[j] = (bpt_speed){0};
        bpt_speed_measure(&c->measured[j], t);
    }
    return BPT_OK;
}

bpt_status bpt_coordinator_load(bpt_coordinator *c, const bpt_json_doc *doc,
                                const bpt_json *state) {
    const uint32_t m = c->options.n_ranks;
    const uint64_t n_samples = c->options.n_samples;
    uint64_t number;
    BPT_TRY(bpt_json_get_u64(doc, state, "ranks", m, m, &number));
    BPT_TRY(bpt_json_get_u64(doc, state, "samples", n_samples, n_samples, &number));
    BPT_TRY(bpt_json_get_u64(doc, state, "progress", 0, UINT64_MAX, &c->progress));
    BPT_TRY(load_rounds(c, doc, state));
    BPT_TRY(load_ranks(c, doc, state));
    c->meet = 0;
    set_thresholds(c);
    return BPT_OK;
}
