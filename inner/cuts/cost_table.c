#include "inner/cuts/cost_table.h"

#include "base/memory.h"

static bool same_pair(const int64_t *a, const int64_t *b) {
    return a[0] == b[0] && a[1] == b[1];
}

static bool same_problem(const bpt_conv_problem *a, const bpt_conv_problem *b) {
    return a->c == b->c && a->h == b->h && a->w == b->w && a->k == b->k && a->p == b->p &&
           a->q == b->q && a->r == b->r && a->s == b->s && same_pair(a->stride, b->stride) &&
           same_pair(a->pad, b->pad) && same_pair(a->dilation, b->dilation) &&
           a->groups == b->groups && a->type == b->type && a->winograd == b->winograd;
}

static bpt_cost *find(const bpt_cost_table *t, bpt_conv_step step, const bpt_conv_problem *problem,
                      bpt_cut cut) {
    for (size_t i = 0; i < t->n; i++) {
        bpt_cost *c = &t->costs[i];
        if (c->step == step && c->cut.samples == cut.samples && c->cut.channels == cut.channels &&
            c->cut.rows == cut.rows && same_problem(&c->problem, problem))
            return c;
    }
    return NULL;
}

bpt_status bpt_cost_table_add(bpt_cost_table *t, const bpt_cost *cost) {
    bpt_cost *known = find(t, cost->step, &cost->problem, cost->cut);
    if (!known) {
        BPT_TRY(BPT_GROW("cost table", t->n + 1, &t->costs, &t->capacity));
        known = &t->costs[t->n++];
    }
    *known = *cost;
    return BPT_OK;
}

bpt_status bpt_cost_table_merge(bpt_cost_table *t, const bpt_cost_table *more) {
    for (size_t i = 0; i < more->n; i++) {
        const bpt_cost *c = &more->costs[i], *known = find(t, c->step, &c->problem, c->cut);
        if (!known || c->ns < known->ns) BPT_TRY(bpt_cost_table_add(t, c));
    }
    return BPT_OK;
}

void bpt_cost_table_clear(bpt_cost_table *t) {
    bpt_free(t->costs);
    *t = (bpt_cost_table){0};
}

/* A time that no number holds is longer than any other. */
static uint64_t times(uint64_t ns, uint64_t n) {
    uint64_t product;
    return __builtin_mul_overflow(ns, n, &product) ? UINT64_MAX : product;
}

uint64_t bpt_cost_table_find(const bpt_cost_table *t, bpt_conv_step step,
                             const bpt_conv_problem *problem, bpt_cut cut) {
    const bpt_cost *c = find(t, step, problem, cut);
    if (c) return c->ns;
    if (cut.channels > 1 || cut.rows > 1) return 0;
    c = find(t, step, problem, (bpt_cut){1, 1, 1});
    return c ? times(c->ns, (uint64_t)cut.samples) : 0;
}

/* ---- the choice ---- */

typedef struct {
    const int64_t *samples; /* of each, shape [n] */
    size_t n;
    int64_t largest;
} chunk_list;

/* What is known of a way to do a step on all chunks. */
typedef struct {
    uint64_t ns; /* until all is done; 0: not known */
    size_t parts;
} outlook;

/* All parts count as the largest: as many rounds as the workers need to take each once. */
static outlook expect(const bpt_cost_table *t, bpt_conv_step step, const bpt_conv_problem *problem,
                      const chunk_list *chunks, bpt_cut cut) {
    const uint64_t ns = bpt_cost_table_find(t, step, problem, bpt_cut_normal(cut, chunks->largest));
    outlook o = {0};
    for (size_t i = 0; i < chunks->n; i++) o.parts += bpt_cut_parts(cut, chunks->samples[i]);
    o.ns = times(ns, (o.parts + (size_t)t->workers - 1) / (size_t)t->workers);
    return o;
}

static bool is_sooner(outlook a, outlook b) {
    return a.ns != 0 && (a.ns < b.ns || (a.ns == b.ns && a.parts < b.parts));
}

/* @return whether a cut that is sooner than the usual one is so by the margin; usual / 100 *
 * percent without an overflow */
static bool is_gain(const bpt_cost_table *t, outlook usual, outlook cut) {
    const uint64_t percent = (uint64_t)t->margin_percent;
    return usual.ns - cut.ns >= usual.ns / 100 * percent + usual.ns % 100 * percent / 100;
}

static bool is_candidate(bpt_conv_step step, bpt_cut cut, bool rows, int64_t largest_chunk) {
    if (rows ? cut.channels > 1 : cut.rows > 1) return false;
    return step != BPT_CONV_BACKWARD_WEIGHTS || bpt_cut_partials(cut, largest_chunk) == 1;
}

/* @return what the step takes, cut in the best way or, if that is all that is known, as usual */
static uint64_t choose_step(const bpt_cost_table *t, bpt_conv_step step,
                            const bpt_conv_problem *problem, const chunk_list *chunks, bool rows,
                            bpt_cut *cut) {
    const outlook usual = expect(t, step, problem, chunks, *cut);
    outlook best = usual;
    if (usual.ns == 0) return 0;
    for (size_t i = 0; i < t->n; i++) {
        const bpt_cost *c = &t->costs[i];
        if (c->step != step || !same_problem(&c->problem, problem)) continue;
        if (!is_candidate(step, c->cut, rows, chunks->largest)) continue;
        const outlook o = expect(t, step, problem, chunks, c->cut);
        if (!is_sooner(o, best) || !is_gain(t, usual, o)) continue;
        best = o;
        *cut = c->cut;
    }
    return best.ns;
}

static uint64_t choose_steps(const bpt_cost_table *t, const bpt_conv_problem *problem,
                             const chunk_list *chunks, bool backward_data, bool rows,
                             bpt_cut *cuts) {
    uint64_t ns = 0;
    for (int step = 0; step < BPT_N_CONV_STEPS; step++) {
        if (step == BPT_CONV_BACKWARD_DATA && !backward_data) continue;
        const uint64_t of_step =
            choose_step(t, (bpt_conv_step)step, problem, chunks, rows, &cuts[step]);
        if (__builtin_add_overflow(ns, of_step, &ns)) ns = UINT64_MAX;
    }
    return ns;
}

void bpt_cost_table_choose(const bpt_cost_table *t, const bpt_conv_problem *problem,
                           const int64_t *chunks, size_t n_chunks, bool backward_data,
                           bpt_cut *cuts) {
    chunk_list list = {chunks, n_chunks, 0};
    bpt_cut by_rows[BPT_N_CONV_STEPS];
    for (size_t i = 0; i < n_chunks; i++)
        if (chunks[i] > list.largest) list.largest = chunks[i];
    for (int step = 0; step < BPT_N_CONV_STEPS; step++) by_rows[step] = cuts[step];
    const uint64_t of_channels = choose_steps(t, problem, &list, backward_data, false, cuts);
    if (problem->winograd) return; /* cut along rows, all its steps would be direct ones */
    const uint64_t of_rows = choose_steps(t, problem, &list, backward_data, true, by_rows);
    if (of_rows >= of_channels) return;
    for (int step = 0; step < BPT_N_CONV_STEPS; step++) cuts[step] = by_rows[step];
}
