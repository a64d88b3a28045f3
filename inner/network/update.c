/* From the gradients of the chunks to new weights. A segment is cut into ranges that fit in cache;
 * a range is summed over the chunks in their order, then updated, in one task. Where an update
 * needs norms, of the segment (LARS, a limited step) or of the whole gradient (clipping), it is a
 * task of its own, and the range is measured by the one that sums it; where gradients were set,
 * by one that does nothing else. */
#include "inner/loops/vector_loops.h"
#include "inner/network/network_private.h"

#include <math.h>

enum { RANGE_FLOATS = 16 * 1024 };

typedef struct {
    bpt_network *net;
    bpt_ref weights, gradient;
    bpt_ref state[BPT_MAX_STATES];
    bpt_ref partial; /* number 1; number 0 is in the gradient */
    size_t partial_stride;
    size_t n_partials; /* number 0 included */
    size_t n;          /* floats */
    bpt_segment_role role;
    const bpt_squares *squares; /* of the segment; NULL unless updates need norms */
    bpt_squares *part;          /* of the range, among those */
} range_task;

static void sum_partials(const range_task *r) {
    const bpt_blocks *blocks = &r->net->blocks;
    float *sum = bpt_at(blocks, r->gradient);
    for (size_t i = 1; i < r->n_partials; i++)
        bpt_sum_add(sum, bpt_at(blocks, bpt_ref_plus(r->partial, (i - 1) * r->partial_stride)),
                    r->n);
}

static bool check(const range_task *r, bpt_ref result, atomic_bool *flag) {
    if (bpt__all_finite(bpt_at(&r->net->blocks, result), r->n)) return true;
    atomic_store_explicit(flag, true, memory_order_relaxed);
    return false;
}

static bool is_measured(const range_task *r) {
    return r->squares && !(r->role.running > 0.0f);
}

/* Squares of floats add up in a double to what is finite if and only if all of them are. */
static bool gradient_is_finite(const range_task *r) {
    if (!is_measured(r)) return check(r, r->gradient, &r->net->bad_gradient);
    if (isfinite(r->squares->gradient)) return true;
    atomic_store_explicit(&r->net->bad_gradient, true, memory_order_relaxed);
    return false;
}

static bpt_status run_reduce(void *arg, unsigned worker) {
    (void)worker;
    const range_task *r = arg;
    sum_partials(r);
    check(r, r->gradient, &r->net->bad_gradient);
    return BPT_OK;
}

static void measure(const range_task *r) {
    const bpt_blocks *blocks = &r->net->blocks;
    r->part->gradient = bpt_sum_of_squares(bpt_at(blocks, r->gradient), r->n);
    if (r->role.decays && bpt_learning_wants_weight_norms(&r->net->learning))
        r->part->weights = bpt_sum_of_squares(bpt_at(blocks, r->weights), r->n);
}

static bpt_status run_measure(void *arg, unsigned worker) {
    (void)worker;
    measure(arg);
    return BPT_OK;
}

/* What is no number is found by who applies it. */
static bpt_status run_sum(void *arg, unsigned worker) {
    (void)worker;
    const range_task *r = arg;
    sum_partials(r);
    if (is_measured(r)) measure(r);
    return BPT_OK;
}

static float trust_of(const range_task *r) {
    const bpt_learning *l = &r->net->learning;
    if (!l->optimizer->trust || !r->role.decays) return 1.0f;
    return l->optimizer->trust(l, sqrt(r->squares->weights),
                               (double)r->net->clip_scale * sqrt(r->squares->gradient));
}

static float scale_of(const range_task *r) {
    const bpt_network *net = r->net;
    const double limit = net->learning.step_limit;
    if (limit == 0.0 || !r->role.decays) return net->clip_scale;
    const double gradient = (double)net->clip_scale * sqrt(r->squares->gradient);
    return net->clip_scale *
           bpt_step_scale(limit, (double)net->step.rate, sqrt(r->squares->weights), gradient);
}

static void optimise(const range_task *r) {
    bpt_network *net = r->net;
    const float trust = trust_of(r), scale = scale_of(r);
    if (!isfinite(scale * trust)) { /* by way of a norm, from another range */
        atomic_store_explicit(&net->bad_gradient, true, memory_order_relaxed);
        return;
    }
    bpt_update_range range = {
        .w = bpt_at(&net->blocks, r->weights),
        .g = bpt_at(&net->blocks, r->gradient),
        .n = r->n,
        .rate = net->step.rate,
        .decays = r->role.decays,
        .scale = scale,
        .trust = trust,
        .update = net->updates,
    };
    for (size_t i = 0; i < bpt_network_n_states(net); i++)
        range.state[i] = bpt_at(&net->blocks, r->state[i]);
    net->learning.optimizer->update(&net->learning, &range);
}

/* What is no number is not applied: the weights stay those that led to it, to be looked at. */
static bpt_status run_apply(void *arg, unsigned worker) {
    (void)worker;
    const range_task *r = arg;
    const bpt_blocks *blocks = &r->net->blocks;
    if (!gradient_is_finite(r)) return BPT_OK;
    if (r->role.running > 0.0f)
        bpt_running_update(bpt_at(blocks, r->weights), bpt_at(blocks, r->gradient), r->n,
                           r->role.running);
    else
        optimise(r);
    check(r, r->weights, &r->net->bad_weight);
    return BPT_OK;
}

static bpt_status run_update(void *arg, unsigned worker) {
    sum_partials(arg);
    return run_apply(arg, worker);
}

/* ---- planning ---- */

/* A segment while its updates are planned. */
typedef struct {
    const bpt_weight_plan *weights;
    range_task *tasks;  /* shape [n] */
    bpt_squares *parts; /* of these; shape [n] */
    size_t n;
    bpt_deps known; /* tasks after which its norms are known, or else its sums */
} segment_plan;

static range_task describe(bpt_network *net, size_t segment, size_t begin, size_t n) {
    const bpt_builder *b = &net->builder;
    const bpt_weight_plan *w = &b->weights[segment];
    const size_t bytes = begin * sizeof(float);
    range_task r = {
        .net = net,
        .weights = bpt_ref_plus(w->master, bytes),
        .gradient = bpt_ref_plus(w->gradient, bytes),
        .partial = bpt_ref_plus(w->partials, bytes),
        .partial_stride =
            w->n_partials > 2 ? bpt_builder_partial(b, segment, 2).offset - w->partials.offset : 0,
        .n_partials = w->n_partials,
        .n = n,
        .role = w->segment->role,
        .squares = net->wants_norms ? &net->squares[segment] : NULL,
    };
    for (int i = 0; i < BPT_MAX_STATES; i++)
        r.state[i] = bpt_ref_in((bpt_block)(BPT_BLOCK_STATE_0 + i), r.weights.offset);
    return r;
}

/* Cuts a segment, and plans the sums of its ranges. */
static bpt_status plan_reduces(bpt_network *net, size_t segment, segment_plan *p) {
    bpt_builder *b = &net->builder;
    const bpt_weight_plan *w = &b->weights[segment];
    const size_t n = bpt_layout_bytes(w->layout) / sizeof(float);
    net->reduces[segment].first = (uint32_t)b->n_tasks;
    p->weights = w;
    p->n = (n + RANGE_FLOATS - 1) / RANGE_FLOATS;
    BPT_TRY(BPT_BUILDER_NEW(b, p->n, &p->tasks));
    BPT_TRY(BPT_BUILDER_NEW(b, p->n, &p->parts));
    net->reduces[segment].n = (uint32_t)p->n;
    for (size_t i = 0; i < p->n; i++) {
        const size_t begin = i * RANGE_FLOATS;
        const size_t count = n - begin < RANGE_FLOATS ? n - begin : RANGE_FLOATS;
        p->tasks[i] = describe(net, segment, begin, count);
        p->tasks[i].part = &p->parts[i];
        BPT_TRY(bpt_builder_task(b, BPT_PHASE_REDUCE, run_reduce, &p->tasks[i],
                                 (bpt_task_info){"reduce", w->segment->name}, (bpt_places){0},
                                 w->written, NULL));
    }
    return BPT_OK;
}

/* Sum and update in one, and the update alone for gradients that were set. */
static bpt_status plan_direct(bpt_network *net, segment_plan *p) {
    bpt_builder *b = &net->builder;
    const char *label = p->weights->segment->name;
    bpt_deps all_done;
    BPT_TRY(bpt_deps_join(b, p->weights->written, p->weights->read, &all_done));
    for (size_t i = 0; i < p->n; i++) {
        BPT_TRY(bpt_builder_task(b, BPT_PHASE_UPDATE, run_update, &p->tasks[i],
                                 (bpt_task_info){"update", label}, (bpt_places){0}, all_done,
                                 NULL));
        BPT_TRY(bpt_builder_task(b, BPT_PHASE_APPLY, run_apply, &p->tasks[i],
                                 (bpt_task_info){"apply", label}, (bpt_places){0}, (bpt_deps){0},
                                 NULL));
    }
    return BPT_OK;
}

static bpt_status plan_after_norms(bpt_network *net, segment_plan *p) {
    bpt_builder *b = &net->builder;
    bpt_deps after;
    BPT_TRY(bpt_deps_join(b, p->known, p->weights->read, &after));
    for (size_t i = 0; i < p->n; i++)
        BPT_TRY(bpt_builder_task(b, BPT_PHASE_APPLY, run_apply, &p->tasks[i],
                                 (bpt_task_info){"apply", p->weights->segment->name},
                                 (bpt_places){0}, after, NULL));
    return BPT_OK;
}

/* One task a range.
 * @param[in,out] done  these are added */
static bpt_status plan_ranges(bpt_network *net, segment_plan *p, bpt_phase phase, bpt_task_fn fn,
                              const char *what, bpt_deps after, bpt_deps *done) {
    bpt_builder *b = &net->builder;
    uint32_t *ids;
    BPT_TRY(BPT_BUILDER_NEW(b, p->n, &ids));
    for (size_t i = 0; i < p->n; i++) {
        bpt_deps one;
        BPT_TRY(bpt_builder_task(b, phase, fn, &p->tasks[i],
                                 (bpt_task_info){what, p->weights->segment->name}, (bpt_places){0},
                                 after, &one));
        ids[i] = one.ids[0];
    }
    return bpt_deps_join(b, *done, (bpt_deps){ids, p->n}, done);
}

/* @param first segment that learns */
static bpt_status plan_norms(bpt_network *net, segment_plan *plans, size_t first, size_t n) {
    bpt_builder *b = &net->builder;
    bpt_deps all = {0};
    for (size_t s = first; s < n; s++) {
        segment_plan *p = &plans[s];
        BPT_TRY(plan_ranges(net, p, BPT_PHASE_SUM, run_sum, "sum", p->weights->written, &p->known));
        if (p->weights->segment->role.running > 0.0f) continue;
        BPT_TRY(plan_ranges(net, p, BPT_PHASE_SQUARES, run_measure, "measure", (bpt_deps){0},
                            &p->known));
        BPT_TRY(bpt__plan_squares(net, s, p->parts, p->n, p->known, &p->known));
        BPT_TRY(bpt_deps_join(b, all, p->known, &all));
    }
    if (net->learning.clip_norm == 0.0) return BPT_OK;
    BPT_TRY(bpt__plan_clip(net, all, &all));
    for (size_t s = first; s < n; s++)
        if (!(plans[s].weights->segment->role.running > 0.0f)) plans[s].known = all;
    return BPT_OK;
}

static void reserve_states(bpt_network *net) {
    for (size_t i = 0; i < bpt_network_n_states(net); i++)
        bpt_blocks_reserve(&net->blocks, (bpt_block)(BPT_BLOCK_STATE_0 + (int)i),
                           net->blocks.bytes[BPT_BLOCK_WEIGHTS]);
}

bpt_status bpt__plan_updates(bpt_network *net) {
    const size_t first = bpt_model_frozen_segments(net->model), n = net->model->segments.n;
    segment_plan *plans;
    reserve_states(net);
    BPT_TRY(BPT_BUILDER_NEW(&net->builder, n, &plans));
    BPT_TRY(BPT_BUILDER_NEW(&net->builder, n, &net->reduces));
    if (net->wants_norms) BPT_TRY(BPT_BUILDER_NEW(&net->builder, n, &net->squares));
    for (size_t s = first; s < n; s++) BPT_TRY(plan_reduces(net, s, &plans[s]));
    if (net->wants_norms) BPT_TRY(plan_norms(net, plans, first, n));
    for (size_t s = first; s < n; s++)
        BPT_TRY(net->wants_norms ? plan_after_norms(net, &plans[s]) : plan_direct(net, &plans[s]));
    return BPT_OK;
}
