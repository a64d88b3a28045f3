#include "tools/tune/search.h"

#include "base/clock.h"
#include "base/log.h"
#include "tools/interrupt.h"
#include "tools/tune/cut_costs.h"

#include <math.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

enum { MAX_ROUNDS = 60, MAX_STEPS = 1000 };

/* Comparisons whose time is kept for the last one, and that cuts count as: their costs take as long
 * as a comparison or two. */
enum { LAST_WEIGHT = 2, CUTS_WEIGHT = 3 };

/* Two networks that are alike differ by where their memory lies. */
static const double min_noise = 0.01;

/* A side of a round is long enough to average over the clock and the system's small interruptions;
 * with a loader, over the start of its threads too. */
static const double side_s = 0.1, loaded_side_s = 0.15;

/* ---- progress ---- */

/* The interval is one of the whole search: comparisons may all be shorter. */
static void show_progress(bpt_search *s, const char *what, size_t round) {
    const uint64_t now = bpt_clock_ns();
    const uint64_t interval_ns = isatty(STDERR_FILENO) ? 200000000 : 5000000000;
    char line[416];
    if (now - s->shown_ns < interval_ns) return;
    s->shown_ns = now;
    snprintf(line, sizeof line, "%s%s: round %zu, %.0f of %.0f s", s->prefix, what, round,
             s->budget.total - bpt_budget_left(&s->budget), s->budget.total);
    bpt_log_progress(line);
}

/* ---- a comparison ---- */

/* Seconds of a step, and their ratios, by round. */
typedef struct {
    double first_s[MAX_ROUNDS], second_s[MAX_ROUNDS], ratio[MAX_ROUNDS];
    size_t n;
} rounds;

static void drop_other(bpt_search *s) {
    bpt_contender_free(s->other);
    s->other = NULL;
}

static bpt_status build(bpt_search *s, const bpt_tuned_choices *choices, bpt_contender **c) {
    const uint64_t start_ns = bpt_clock_ns();
    BPT_TRY(bpt_contender_create(s->subject, choices, c));
    bpt_budget_note(&s->budget.build, bpt_clock_seconds_since(start_ns));
    return BPT_OK;
}

/* The side that goes first changes from round to round. */
static bpt_status run_round(bpt_search *s, bpt_contender *first, bpt_contender *second, rounds *r) {
    const uint64_t start_ns = bpt_clock_ns();
    const double steps = (double)s->steps;
    double first_s, second_s;
    BPT_TRY(bpt_interrupt_check("nothing is written", "run the same command again to start over"));
    if (r->n % 2) BPT_TRY(bpt_contender_run(second, s->steps, &second_s));
    BPT_TRY(bpt_contender_run(first, s->steps, &first_s));
    if (r->n % 2 == 0) BPT_TRY(bpt_contender_run(second, s->steps, &second_s));
    r->first_s[r->n] = first_s / steps;
    r->second_s[r->n] = second_s / steps;
    r->ratio[r->n++] = second_s / first_s;
    s->n_rounds++;
    bpt_budget_note(&s->budget.round, bpt_clock_seconds_since(start_ns));
    return BPT_OK;
}

static bpt_verdict judge(const rounds *r, double noise, bpt_spread *spread) {
    double sorted[MAX_ROUNDS];
    memcpy(sorted, r->ratio, r->n * sizeof *sorted);
    *spread = bpt_spread_of(sorted, r->n);
    return bpt_spread_judge(spread, noise);
}

/* Compares s->other with @p first until the share of time is over, or it is slower: nothing depends
 * on by how much. What looks faster at first has to stay so. */
static bpt_status compare(bpt_search *s, const char *what, bpt_contender *first, double share,
                          rounds *r) {
    const uint64_t start_ns = bpt_clock_ns();
    bpt_spread ratio;
    r->n = 0;
    while (r->n < MAX_ROUNDS && bpt_budget_has_round(&s->budget)) {
        BPT_TRY(run_round(s, first, s->other, r));
        show_progress(s, what, r->n);
        if (r->n < BPT_SPREAD_MIN) continue;
        if (bpt_clock_seconds_since(start_ns) + s->budget.round > share) break;
        if (judge(r, s->noise, &ratio) == BPT_SLOWER) break;
    }
    return BPT_OK;
}

/* ---- the default alone ---- */

/* The first figures of all: how many steps make a side, and what a round will take. */
static bpt_status measure_default(bpt_search *s) {
    const double wanted = s->subject->dataset ? loaded_side_s : side_s;
    double seconds[BPT_SPREAD_MIN];
    size_t n = 0;
    BPT_TRY(build(s, &s->standard, &s->incumbent));
    BPT_TRY(bpt_contender_run(s->incumbent, 1, &seconds[0]));
    s->steps = (uint64_t)fmin(fmax(ceil(wanted / seconds[0]), 1.0), MAX_STEPS);
    s->budget.round = 2.0 * seconds[0] * (double)s->steps;
    do {
        BPT_TRY(bpt_interrupt_check("nothing is written", "run the same command again"));
        BPT_TRY(bpt_contender_run(s->incumbent, s->steps, &seconds[n]));
        bpt_budget_note(&s->budget.round, 2.0 * seconds[n]);
        seconds[n++] /= (double)s->steps;
    } while (n < 3 && bpt_budget_has_round(&s->budget));
    s->standard_s = s->best_s = bpt_spread_of(seconds, n);
    return BPT_OK;
}

/* The default against itself: what differs here is noise. */
static bpt_status measure_noise(bpt_search *s, unsigned n_pending) {
    rounds r;
    bpt_spread ratio;
    s->noise = min_noise;
    const double share =
        bpt_budget_share(&s->budget, bpt_budget_left(&s->budget), n_pending, LAST_WEIGHT);
    if (share == 0.0) return BPT_OK;
    BPT_TRY(build(s, &s->standard, &s->other));
    BPT_TRY(compare(s, "the default against itself", s->incumbent, share, &r));
    if (r.n >= BPT_SPREAD_MIN) {
        judge(&r, 0.0, &ratio);
        s->noise = fmax(min_noise, fabs(ratio.median - 1.0));
        s->standard_s = s->best_s = bpt_spread_of(r.first_s, r.n);
    }
    drop_other(s);
    return BPT_OK;
}

/* ---- candidates ---- */

static void swap_contenders(bpt_search *s) {
    bpt_contender *c = s->incumbent;
    s->incumbent = s->other;
    s->other = c;
}

static bpt_status try_candidate(bpt_search *s, const bpt_tuned_choices *candidate, double share,
                                bpt_trial *trial) {
    rounds r;
    char what[96];
    const uint64_t start_ns = bpt_clock_ns();
    snprintf(what, sizeof what, "%s %s against %s", trial->option, trial->value, trial->against);
    const bpt_status built = build(s, candidate, &s->other);
    trial->too_large = candidate->cuts && bpt_cut_costs_too_large(built);
    if (trial->too_large) return BPT_OK;
    BPT_TRY(built);
    trial->alike = candidate->cuts && bpt_contender_n_cuts(s->other) == 0;
    if (trial->alike) {
        drop_other(s);
        return BPT_OK;
    }
    BPT_TRY(compare(s, what, s->incumbent, share - bpt_clock_seconds_since(start_ns), &r));
    trial->measured = r.n >= BPT_SPREAD_MIN;
    if (trial->measured) trial->verdict = judge(&r, s->noise, &trial->ratio);
    if (trial->verdict == BPT_FASTER) {
        swap_contenders(s);
        s->best = *candidate;
    }
    drop_other(s);
    return BPT_OK;
}

static unsigned count_candidates(const bpt_search *s) {
    int64_t values[BPT_MAX_CANDIDATES];
    unsigned n = 0;
    for (int k = 0; k < BPT_N_KNOBS; k++)
        n += (unsigned)bpt_knob_candidates((bpt_knob)k, &s->limits, values);
    return n;
}

static bpt_status turn_knob(bpt_search *s, bpt_knob knob, unsigned *n_pending) {
    int64_t values[BPT_MAX_CANDIDATES];
    const size_t n = bpt_knob_candidates(knob, &s->limits, values);
    for (size_t i = 0; i < n; i++) {
        bpt_trial *trial = &s->trials[s->n_trials++];
        bpt_tuned_choices candidate = s->best;
        bpt_knob_set(knob, values[i], &candidate);
        *trial = (bpt_trial){.option = bpt_knob_name(knob)};
        bpt_knob_text(knob, &candidate, trial->value, sizeof trial->value);
        bpt_knob_text(knob, &s->best, trial->against, sizeof trial->against);
        const double share =
            bpt_budget_share(&s->budget, bpt_budget_left(&s->budget), (*n_pending)--, LAST_WEIGHT);
        if (share > 0.0) BPT_TRY(try_candidate(s, &candidate, share, trial));
    }
    return BPT_OK;
}

/* ---- cuts ---- */

/* As many steps as a side has, unless these are very few or very many. */
static uint64_t steps_for_costs(const bpt_search *s) {
    enum { MIN_STEPS = 5, MAX_COST_STEPS = 20 };
    if (s->steps < MIN_STEPS) return MIN_STEPS;
    return s->steps < MAX_COST_STEPS ? s->steps : MAX_COST_STEPS;
}

/* Cuts are measured one after the other, what promises most first, for as long as there is time for
 * the next one. The whole, which tiles as usual are taken from, comes first and last, so that a
 * machine that has become faster or slower meanwhile makes no gain.
 * @param[out] n how many were measured */
static bpt_status measure_cuts(bpt_search *s, double share, size_t *n) {
    static const bpt_cut tried[] = {{0, 1, 1}, {1, 2, 1}, {1, 1, 2}, {1, 1, 1},
                                    {1, 4, 1}, {1, 1, 4}, {1, 8, 1}, {0, 1, 1}};
    const uint64_t start_ns = bpt_clock_ns(), n_steps = steps_for_costs(s);
    double expected = s->budget.build + (double)n_steps * s->standard_s.median;
    for (*n = 0; *n < sizeof tried / sizeof *tried; ++*n) {
        const uint64_t begin_ns = bpt_clock_ns();
        if (bpt_clock_seconds_since(start_ns) + 1.5 * expected > share) break;
        show_progress(s, "parts of convolutions", *n + 1);
        BPT_TRY(bpt_cut_costs_measure(s->subject, &s->best, tried[*n], n_steps, &s->cuts));
        bpt_budget_note(&expected, bpt_clock_seconds_since(begin_ns));
    }
    return BPT_OK;
}

/* The costs say which cuts should be sooner, a comparison whether a step is. */
static bpt_status try_cuts(bpt_search *s) {
    const double left = bpt_budget_left(&s->budget);
    const double share = CUTS_WEIGHT * bpt_budget_share(&s->budget, left, CUTS_WEIGHT, LAST_WEIGHT);
    const double compares = fmax(share / 2.0, bpt_budget_fewest(&s->budget));
    size_t n;
    bpt_trial *trial = &s->trials[s->n_trials++];
    bpt_tuned_choices candidate = s->best;
    *trial = (bpt_trial){.option = "cuts", .value = "by costs", .against = "as usual"};
    s->cuts.workers = s->best.threads;
    s->cuts.margin_percent = bpt_cut_costs_margin(s->noise);
    BPT_TRY(measure_cuts(s, fmin(share, left - bpt_budget_fewest(&s->budget)) - compares, &n));
    if (n < 2) return BPT_OK; /* nothing to compare with */
    candidate.cuts = &s->cuts;
    return try_candidate(s, &candidate, compares, trial);
}

/* ---- the last word ---- */

/* What won several comparisons may owe some of it to chance: the best and a default that is built
 * anew are compared once more. */
static bpt_status confirm(bpt_search *s) {
    rounds r = {.n = 0};
    const double share = bpt_budget_share(&s->budget, bpt_budget_left(&s->budget), 1, 0);
    if (share > 0.0) {
        BPT_TRY(build(s, &s->standard, &s->other));
        swap_contenders(s);
        BPT_TRY(compare(s, "the best against the default", s->incumbent, share, &r));
        swap_contenders(s);
    }
    if (r.n >= BPT_SPREAD_MIN && judge(&r, s->noise, &s->gain) == BPT_FASTER) {
        s->standard_s = bpt_spread_of(r.first_s, r.n);
        s->best_s = bpt_spread_of(r.second_s, r.n);
        return BPT_OK;
    }
    s->best = s->standard;
    if (s->other) swap_contenders(s); /* costs of the default's tasks */
    s->lacks_costs = !s->other;
    return BPT_OK;
}

static bool is_default(const bpt_search *s) {
    for (int k = 0; k < BPT_N_KNOBS; k++)
        if (bpt_knob_differs((bpt_knob)k, &s->best, &s->standard)) return false;
    return !s->best.cuts;
}

bpt_status bpt_search_run(bpt_search *s) {
    unsigned n_pending = count_candidates(s) + CUTS_WEIGHT;
    s->shown_ns = bpt_clock_ns();
    s->standard = s->best = bpt_knob_defaults(&s->limits);
    BPT_TRY(measure_default(s));
    BPT_TRY(measure_noise(s, n_pending + 1));
    for (int k = 0; k < BPT_N_KNOBS; k++) BPT_TRY(turn_knob(s, (bpt_knob)k, &n_pending));
    BPT_TRY(try_cuts(s));
    if (!is_default(s)) BPT_TRY(confirm(s));
    bpt_log_progress_end();
    return BPT_OK;
}

const bpt_task_costs *bpt_search_costs(const bpt_search *s) {
    return s->lacks_costs ? NULL : bpt_contender_costs(s->incumbent);
}

void bpt_search_release(bpt_search *s) {
    bpt_contender_free(s->incumbent);
    bpt_contender_free(s->other);
    s->incumbent = s->other = NULL;
    bpt_cost_table_clear(&s->cuts);
}
