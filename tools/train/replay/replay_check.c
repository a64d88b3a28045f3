/* The updates of each shard are gone through as the shard's host made them, without the weights:
 * all that it wrote beside an update follows from the order of the updates and from which pushes
 * were for a meeting. */
#include "tools/train/replay/replay_check.h"

#include "base/memory.h"
#include "outer/rules/staleness.h"
#include "outer/rules/update_rule.h"

#include <inttypes.h>
#include <math.h>
#include <string.h>

/* ---- errors ---- */

static bpt_status wrong(const bpt_replay_facts *f, const char *kind, uint32_t rank, size_t line,
                        const char *field, uint64_t is, uint64_t expected) {
    return bpt_fail(BPT_EDATA,
                    "%s/exchange/%s.rank-%" PRIu32 ".jsonl, line %zu: \"%s\" is %" PRIu64
                    ", by what happened before it is %" PRIu64,
                    f->run, kind, rank, line, field, is, expected);
}

static bpt_status ends_early(const bpt_replay_facts *f, const char *kind, uint32_t rank,
                             size_t n_lines, const char *what, uint64_t number) {
    return bpt_fail(BPT_EDATA,
                    "%s/exchange/%s.rank-%" PRIu32 ".jsonl ends after line %zu: %s %" PRIu64
                    " is missing",
                    f->run, kind, rank, n_lines, what, number);
}

/* ---- the steps of a worker ---- */

/* @param rounds of those logged, 0 for none */
static uint64_t held(const bpt_replay_logs *l, uint32_t rank, uint32_t rounds) {
    return rounds ? l->workers[rank].held[(size_t)(rounds - 1) * l->n_workers + rank] : 0;
}

/* Passes follow each other without a gap, until the last step. */
static bpt_status check_passes(const bpt_replay_logs *l, const bpt_replay_facts *f, uint32_t rank) {
    const bpt_replay_worker *w = &l->workers[rank];
    const uint64_t wanted = w->pushes[w->n_pushes - 1].pushed_at * f->batch;
    uint64_t taken = 0;
    for (size_t p = 0; p < w->n_passes; p++) {
        const bpt_replay_pass *pass = &w->passes[p];
        if (taken >= wanted) return wrong(f, "steps", rank, pass->line, "pass", p, p - 1);
        const uint64_t n = held(l, rank, pass->rounds);
        if (n == 0) return wrong(f, "steps", rank, pass->line, "rounds", pass->rounds, w->n_rounds);
        taken += n;
    }
    return taken >= wanted ? BPT_OK : ends_early(f, "steps", rank, w->n_lines, "pass", w->n_passes);
}

/* All ranks are told the same shares, and know of all when they meet at the end. */
static bpt_status check_shares(const bpt_replay_logs *l, const bpt_replay_facts *f, uint32_t rank) {
    const bpt_replay_worker *first = &l->workers[0], *w = &l->workers[rank];
    if (w->n_rounds < first->n_rounds)
        return ends_early(f, "steps", rank, w->n_lines, "round", w->n_rounds);
    if (w->n_rounds > first->n_rounds)
        return ends_early(f, "steps", 0, first->n_lines, "round", first->n_rounds);
    for (size_t a = 0; a < w->n_rounds; a++) {
        const size_t at = a * l->n_workers, bytes = l->n_workers * sizeof *w->held;
        if (memcmp(w->held + at, first->held + at, bytes) == 0) continue;
        return bpt_fail(BPT_EDATA,
                        "%s/exchange/steps.rank-%" PRIu32
                        ".jsonl, line %zu: \"held\" of round %zu "
                        "differs from that of rank 0",
                        f->run, rank, w->round_lines[a], a);
    }
    return BPT_OK;
}

static bpt_status check_steps(const bpt_replay_logs *l, const bpt_replay_facts *f, uint32_t rank) {
    const bpt_replay_worker *w = &l->workers[rank];
    if (w->n_pushes == 0 || !w->pushes[w->n_pushes - 1].met)
        return ends_early(f, "steps", rank, w->n_lines, "the meeting at the end, push",
                          w->n_pushes + 1);
    BPT_TRY(check_shares(l, f, rank));
    return check_passes(l, f, rank);
}

/* ---- the updates of a shard ---- */

typedef struct {
    const bpt_replay_logs *logs;
    const bpt_replay_facts *facts;
    uint32_t shard, rank; /* the host's */
    bpt_clocks clocks;
    uint64_t *base;    /* version last sent to each worker; shape [m] */
    uint64_t *taken;   /* pushes of each worker that are applied; shape [m] */
    double *quality;   /* shape [m] */
    double *gamma;     /* shape [m] */
    uint64_t progress; /* samples */
    uint32_t n_met;
} host;

static bpt_status open_host(host *h, uint32_t shard) {
    const uint32_t m = h->logs->n_workers;
    h->shard = shard;
    h->rank = h->logs->first_host + shard;
    h->clocks = (bpt_clocks){.n_workers = m, .bound = h->facts->max_staleness};
    BPT_TRY(BPT_NEW("clocks", m, &h->clocks.clock));
    BPT_TRY(BPT_NEW("active workers", m, &h->clocks.active));
    BPT_TRY(BPT_NEW("bases", m, &h->base));
    BPT_TRY(BPT_NEW("pushes taken", m, &h->taken));
    BPT_TRY(BPT_NEW("qualities", m, &h->quality));
    BPT_TRY(BPT_NEW("gammas", m, &h->gamma));
    bpt_clocks_level(&h->clocks);
    return BPT_OK;
}

static void close_host(host *h) {
    bpt_free(h->clocks.clock);
    bpt_free(h->clocks.active);
    bpt_free(h->base);
    bpt_free(h->taken);
    bpt_free(h->quality);
    bpt_free(h->gamma);
}

static const bpt_replay_push *latest_push(const host *h, uint32_t worker) {
    return &h->logs->workers[worker].pushes[h->taken[worker] - 1];
}

static bpt_status check_gamma(host *h, const bpt_replay_update *u, uint64_t version) {
    const bpt_update_inputs in = {.n_workers = h->logs->n_workers,
                                  .version = version - 1,
                                  .base = h->base,
                                  .quality = h->quality,
                                  .elasticity = h->facts->elasticity};
    h->facts->rule->weigh(&in, h->gamma);
    const double expected = h->gamma[u->worker];
    /* Another machine's exp() may differ in the last bits. */
    if (fabs(u->gamma - expected) <= 1e-12) return BPT_OK;
    return bpt_fail(BPT_EDATA,
                    "%s/exchange/updates.rank-%" PRIu32 ".jsonl, line %" PRIu64
                    ": \"gamma\" is %.17g, by what happened before it is %.17g",
                    h->facts->run, h->rank, version, u->gamma, expected);
}

/* Under a bound on staleness, pushes that wait count already, and no log says when they came: the
 * slowest worker may be one clock further. */
static bpt_status check_lead(const host *h, const bpt_replay_update *u, uint64_t version) {
    const uint64_t lead = bpt_clocks_lead(&h->clocks, u->worker);
    const bool bound = h->clocks.bound != BPT_STALENESS_NONE;
    if (u->lead == lead || (bound && u->lead + 1 == lead)) return BPT_OK;
    return wrong(h->facts, "updates", h->rank, version, "lead", u->lead, lead);
}

static bpt_status check_fields(host *h, const bpt_replay_update *u, uint64_t version) {
    const uint64_t base = h->base[u->worker], seq = h->taken[u->worker] + 1;
    if (u->seq != seq) return wrong(h->facts, "updates", h->rank, version, "seq", u->seq, seq);
    if (u->base != base) return wrong(h->facts, "updates", h->rank, version, "base", u->base, base);
    if (u->staleness != version - 1 - base)
        return wrong(h->facts, "updates", h->rank, version, "staleness", u->staleness,
                     version - 1 - base);
    return check_gamma(h, u, version);
}

/* An answer to the latest push of a worker. Shard 0 tells the progress with it. */
static bpt_status answer(host *h, uint32_t worker, uint64_t version) {
    const bpt_replay_push *push = latest_push(h, worker);
    h->base[worker] = version;
    if (h->shard != 0 || push->progress == h->progress) return BPT_OK;
    return wrong(h->facts, "steps", worker, push->line, "progress", push->progress, h->progress);
}

static bpt_status answer_meeting(host *h, uint64_t version) {
    for (uint32_t j = 0; j < h->logs->n_workers; j++) BPT_TRY(answer(h, j, version));
    bpt_clocks_level(&h->clocks);
    h->n_met = 0;
    return BPT_OK;
}

static bpt_status take(host *h, const bpt_replay_update *u, uint64_t version) {
    const bpt_replay_worker *w = &h->logs->workers[u->worker];
    uint64_t *taken = &h->taken[u->worker];
    if (*taken == w->n_pushes && u->seq == *taken + 1)
        return ends_early(h->facts, "steps", u->worker, w->n_lines, "push", u->seq);
    if (*taken == w->n_pushes || !h->clocks.active[u->worker])
        return bpt_fail(BPT_EDATA,
                        "%s/exchange/updates.rank-%" PRIu32 ".jsonl, line %" PRIu64
                        ": \"worker\" %" PRIu32 " had pushed nothing then",
                        h->facts->run, h->rank, version, u->worker);
    h->clocks.clock[u->worker]++;
    h->quality[u->worker] = u->quality;
    BPT_TRY(check_fields(h, u, version));
    BPT_TRY(check_lead(h, u, version));
    const uint64_t before = *taken ? w->pushes[*taken - 1].pushed_at : 0;
    const bpt_replay_push *push = &w->pushes[(*taken)++];
    h->progress += (push->pushed_at - before) * h->facts->batch;
    if (!push->met) return answer(h, u->worker, version);
    h->clocks.active[u->worker] = false;
    return ++h->n_met == h->logs->n_workers ? answer_meeting(h, version) : BPT_OK;
}

static bpt_status take_all(host *h) {
    const bpt_replay_shard *s = &h->logs->shards[h->shard];
    for (size_t i = 0; i < s->n; i++) BPT_TRY(take(h, &s->updates[i], i + 1));
    for (uint32_t j = 0; j < h->logs->n_workers; j++)
        if (h->taken[j] != h->logs->workers[j].n_pushes)
            return ends_early(h->facts, "updates", h->rank, s->n, "version", s->n + 1);
    return BPT_OK;
}

static bpt_status check_updates(const bpt_replay_logs *logs, const bpt_replay_facts *facts,
                                uint32_t shard) {
    host h = {.logs = logs, .facts = facts};
    bpt_status status = open_host(&h, shard);
    if (status == BPT_OK) status = take_all(&h);
    close_host(&h);
    return status;
}

bpt_status bpt_replay_logs_check(const bpt_replay_logs *logs, const bpt_replay_facts *facts) {
    for (uint32_t j = 0; j < logs->n_workers; j++) BPT_TRY(check_steps(logs, facts, j));
    for (uint32_t s = 0; s < logs->n_shards; s++) BPT_TRY(check_updates(logs, facts, s));
    return BPT_OK;
}
