#include "outer/coordinator.h"

#include "base/memory.h"
#include "outer/idpa.h"
#include "outer/partition.h"

#include <string.h>

struct bpt_coordinator {
    bpt_coordinator_options options; /* .speed points to the copy below */
    uint64_t progress;
    uint64_t next_checkpoint, next_eval; /* in samples of progress; UINT64_MAX: never */
    uint32_t meet;                       /* reasons of the meeting that is called */
    uint32_t rounds;                     /* given out */

    /* One block each of [n_ranks], and for `given` of [n_rounds][n_ranks]. */
    uint32_t *given;
    uint32_t *covered; /* rounds that the rank's last whole pass covered */
    uint64_t *held;    /* samples in all rounds so far */
    uint64_t *share;   /* scratch of the next round */
    double *speed;     /* prior */
    double *sample_ns; /* measured, smoothed; 0 before the first measurement */
    double *tbar;      /* scratch of the next round */
};

uint64_t bpt_coordinator_next(uint64_t progress, uint64_t every) {
    return every > 0 ? (progress / every + 1) * every : UINT64_MAX;
}

static void set_thresholds(bpt_coordinator *c) {
    c->next_checkpoint = bpt_coordinator_next(c->progress, c->options.checkpoint_every);
    c->next_eval = bpt_coordinator_next(c->progress, c->options.eval_every);
}

/* ---- the partition ---- */

static uint32_t *given(const bpt_coordinator *c, uint32_t round) {
    return c->given + (size_t)round * c->options.n_ranks;
}

static void give(bpt_coordinator *c) {
    uint32_t *count = given(c, c->rounds);
    for (uint32_t j = 0; j < c->options.n_ranks; j++) {
        count[j] = (uint32_t)c->share[j];
        c->held[j] += c->share[j];
    }
    c->rounds++;
}

static uint64_t round_size(const bpt_coordinator *c) {
    return bpt_partition_round_size(c->options.n_samples, c->options.n_rounds, c->rounds);
}

static bpt_status give_first(bpt_coordinator *c) {
    BPT_TRY(bpt_idpa_first(round_size(c), c->speed, c->options.n_ranks, c->share));
    give(c);
    return BPT_OK;
}

static bool next_round_due(const bpt_coordinator *c) {
    if (c->rounds == 0 || c->rounds == c->options.n_rounds) return false;
    for (uint32_t j = 0; j < c->options.n_ranks; j++)
        if (c->covered[j] < c->rounds) return false;
    return true;
}

/* By measured times; where a rank has none, by the prior speeds of all, for the two have different
 * units. */
static bpt_status give_next(bpt_coordinator *c) {
    const uint32_t m = c->options.n_ranks;
    bool measured = true;
    for (uint32_t j = 0; j < m; j++) measured = measured && c->sample_ns[j] > 0;
    for (uint32_t j = 0; j < m; j++) c->tbar[j] = measured ? c->sample_ns[j] : 1 / c->speed[j];
    BPT_TRY(bpt_idpa_next(round_size(c), c->held, c->tbar, m, c->share));
    give(c);
    return BPT_OK;
}

/* ---- life ---- */

static bpt_status allocate(bpt_coordinator *c) {
    const uint32_t m = c->options.n_ranks;
    const size_t n_given = (size_t)c->options.n_rounds * m;
    BPT_TRY(BPT_NEW("table of rounds", n_given, &c->given));
    BPT_TRY(BPT_NEW("rounds covered", m, &c->covered));
    BPT_TRY(BPT_NEW("samples held", m, &c->held));
    BPT_TRY(BPT_NEW("shares", m, &c->share));
    BPT_TRY(BPT_NEW("speeds", m, &c->speed));
    BPT_TRY(BPT_NEW("times per sample", m, &c->sample_ns));
    return BPT_NEW("times per sample", m, &c->tbar);
}

static bpt_status check(const bpt_coordinator_options *o) {
    if (o->n_samples == 0) return BPT_OK;
    if (o->n_rounds >= 1 && o->n_rounds <= BPT_PARTITION_ROUNDS_MAX && o->n_samples <= UINT32_MAX &&
        o->n_samples / o->n_rounds >= o->n_ranks)
        return BPT_OK;
    return bpt_fail(BPT_EUSAGE, "%llu samples cannot be given to %u ranks in %u rounds",
                    (unsigned long long)o->n_samples, o->n_ranks, o->n_rounds);
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
    bpt_free(c->sample_ns);
    bpt_free(c->speed);
    bpt_free(c->share);
    bpt_free(c->held);
    bpt_free(c->covered);
    bpt_free(c->given);
    bpt_free(c);
}

void bpt_coordinator_copy(bpt_coordinator *to, const bpt_coordinator *from) {
    const size_t m = from->options.n_ranks;
    to->progress = from->progress;
    to->next_checkpoint = from->next_checkpoint;
    to->next_eval = from->next_eval;
    to->meet = from->meet;
    to->rounds = from->rounds;
    memcpy(to->given, from->given, from->rounds * m * sizeof *to->given);
    memcpy(to->covered, from->covered, m * sizeof *to->covered);
    memcpy(to->held, from->held, m * sizeof *to->held);
    memcpy(to->speed, from->speed, m * sizeof *to->speed);
    memcpy(to->sample_ns, from->sample_ns, m * sizeof *to->sample_ns);
}

/* ---- reports and directives ---- */

static void measure(bpt_coordinator *c, uint32_t rank, const bpt_report *report) {
    const double weight = 0.25; /* of a new measurement: a slow-down shows within a few reports */
    if (report->samples == 0 || report->busy_ns == 0) return;
    const double now = (double)report->busy_ns / (double)report->samples;
    double *smooth = &c->sample_ns[rank];
    *smooth = *smooth > 0 ? (1 - weight) * *smooth + weight * now : now;
}

bpt_status bpt_coordinator_report(bpt_coordinator *c, uint32_t rank, const bpt_report *report) {
    c->progress += report->samples;
    c->covered[rank] = report->covered;
    measure(c, rank, report);

    c->meet |= report->wants;
    if (c->progress >= c->next_checkpoint) c->meet |= BPT_MEET_CHECKPOINT;
    if (c->progress >= c->next_eval) c->meet |= BPT_MEET_EVAL;
    if (c->options.total_samples > 0 && c->progress >= c->options.total_samples)
        c->meet |= BPT_MEET_END;
    return next_round_due(c) ? give_next(c) : BPT_OK;
}

bpt_directive bpt_coordinator_directive(const bpt_coordinator *c) {
    return (bpt_directive){
        .progress = c->progress,
        .meet = c->meet,
        .rounds = c->rounds,
        .count = c->rounds > 0 ? given(c, c->rounds - 1) : NULL,
    };
}

uint32_t bpt_coordinator_met(bpt_coordinator *c) {
    const uint32_t reasons = c->meet;
    c->meet = 0;
    set_thresholds(c);
    return reasons;
}

double bpt_coordinator_sample_ns(const bpt_coordinator *c, uint32_t rank) {
    return c->sample_ns[rank];
}

const uint32_t *bpt_coordinator_round(const bpt_coordinator *c, uint32_t round) {
    return given(c, round);
}

/* ---- state ---- */

void bpt_coordinator_save(const bpt_coordinator *c, bpt_json_writer *w, const char *key) {
    const uint32_t m = c->options.n_ranks;
    bpt_json_open_object(w, key);
    bpt_json_put_u64(w, "ranks", m);
    bpt_json_put_u64(w, "samples", c->options.n_samples);
    bpt_json_put_u64(w, "progress", c->progress);
    bpt_json_open_array(w, "rounds");
    for (uint32_t a = 0; a < c->rounds; a++) {
        bpt_json_open_array(w, NULL);
        for (uint32_t j = 0; j < m; j++) bpt_json_put_u64(w, NULL, given(c, a)[j]);
        bpt_json_close_array(w);
    }
    bpt_json_close_array(w);
    bpt_json_open_array(w, "covered");
    for (uint32_t j = 0; j < m; j++) bpt_json_put_u64(w, NULL, c->covered[j]);
    bpt_json_close_array(w);
    bpt_json_open_array(w, "sample_ns");
    for (uint32_t j = 0; j < m; j++) bpt_json_put_real(w, NULL, c->sample_ns[j]);
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
    const bpt_json *count = NULL;
    BPT_TRY(per_rank(c, doc, round, NULL, &count));
    const uint64_t size = round_size(c);
    uint64_t sum = 0;
    for (uint32_t j = 0; j < c->options.n_ranks; j++) {
        BPT_TRY(bpt_json_get_u64(doc, bpt_json_at(count, j), NULL, 0, size, &c->share[j]));
        sum += c->share[j];
    }
    if (sum != size)
        return bpt_fail(BPT_EDATA, "saved round %u of the data gives out %llu samples, not %llu",
                        c->rounds, (unsigned long long)sum, (unsigned long long)size);
    give(c);
    return BPT_OK;
}

static bpt_status load_rounds(bpt_coordinator *c, const bpt_json_doc *doc, const bpt_json *state) {
    const bpt_json *rounds = NULL;
    BPT_TRY(bpt_json_get_array(doc, state, "rounds", &rounds));
    const size_t n = bpt_json_size(rounds);
    if (c->options.n_samples > 0 ? n < 1 || n > c->options.n_rounds : n > 0)
        return bpt_fail(BPT_EDATA, "%zu saved rounds of data where there are at most %u", n,
                        c->options.n_rounds);
    c->rounds = 0;
    memset(c->held, 0, c->options.n_ranks * sizeof *c->held);
    for (size_t a = 0; a < n; a++) BPT_TRY(load_round(c, doc, bpt_json_at(rounds, a)));
    return BPT_OK;
}

bpt_status bpt_coordinator_load(bpt_coordinator *c, const bpt_json_doc *doc,
                                const bpt_json *state) {
    const uint32_t m = c->options.n_ranks;
    const uint64_t n_samples = c->options.n_samples;
    uint64_t number = 0;
    BPT_TRY(bpt_json_get_u64(doc, state, "ranks", m, m, &number));
    BPT_TRY(bpt_json_get_u64(doc, state, "samples", n_samples, n_samples, &number));
    BPT_TRY(bpt_json_get_u64(doc, state, "progress", 0, UINT64_MAX, &c->progress));
    BPT_TRY(load_rounds(c, doc, state));
    const bpt_json *covered = NULL, *sample_ns = NULL;
    BPT_TRY(per_rank(c, doc, state, "covered", &covered));
    BPT_TRY(per_rank(c, doc, state, "sample_ns", &sample_ns));
    for (uint32_t j = 0; j < m; j++) {
        BPT_TRY(bpt_json_get_u64(doc, bpt_json_at(covered, j), NULL, 0, c->rounds, &number));
        c->covered[j] = (uint32_t)number;
        BPT_TRY(bpt_json_get_real(doc, bpt_json_at(sample_ns, j), NULL, &c->sample_ns[j]));
    }
    c->meet = 0;
    set_thresholds(c);
    return BPT_OK;
}
