/* From the gradients of the tiles to new weights. A segment is cut into ranges that fit in cache; a
 * range is summed over the tiles in their order, then updated, in one task. */
#include "inner/network_private.h"
#include "inner/sgd.h"

enum { RANGE_FLOATS = 16 * 1024 };

typedef struct {
    bpt_network *net;
    bpt_ref weights, momentum, gradient;
    bpt_ref partial; /* of the second tile */
    size_t partial_stride;
    size_t n_partials;
    size_t n; /* floats */
    float decay;
    float running; /* > 0: a running statistic */
} range_task;

static void sum_partials(const range_task *r) {
    const bpt_blocks *blocks = &r->net->blocks;
    float *sum = bpt_at(blocks, r->gradient);
    for (size_t i = 1; i < r->n_partials; i++)
        bpt_sum_add(sum, bpt_at(blocks, bpt_ref_plus(r->partial, (i - 1) * r->partial_stride)),
                    r->n);
}

static void check(const range_task *r, bpt_ref result) {
    if (!bpt__all_finite(bpt_at(&r->net->blocks, result), r->n))
        atomic_store_explicit(&r->net->not_finite, true, memory_order_relaxed);
}

static bpt_status run_reduce(void *arg, unsigned worker) {
    (void)worker;
    const range_task *r = arg;
    sum_partials(r);
    check(r, r->gradient);
    return BPT_OK;
}

static bpt_status run_apply(void *arg, unsigned worker) {
    (void)worker;
    const range_task *r = arg;
    const bpt_blocks *blocks = &r->net->blocks;
    float *w = bpt_at(blocks, r->weights);
    const float *g = bpt_at(blocks, r->gradient);
    if (r->running > 0.0f)
        bpt_running_update(w, g, r->n, r->running);
    else
        bpt_sgd_update(w, bpt_at(blocks, r->momentum), g, r->n, r->net->step.rate,
                       r->net->sgd.momentum, r->decay);
    check(r, r->weights);
    return BPT_OK;
}

static bpt_status run_update(void *arg, unsigned worker) {
    sum_partials(arg);
    return run_apply(arg, worker);
}

static bpt_status plan_range(bpt_network *net, const bpt_weight_plan *w, size_t begin, size_t n,
                             bpt_deps gradients_done, bpt_deps all_done) {
    bpt_builder *b = &net->builder;
    const size_t bytes = begin * sizeof(float);
    const size_t stride =
        w->n_partials > 2
            ? bpt_builder_partial(b, (size_t)(w - b->weights), 2).offset - w->partials.offset
            : 0;
    range_task *r;
    BPT_TRY(bpt_builder_object(b, sizeof *r, (void **)&r));
    *r = (range_task){
        .net = net,
        .weights = bpt_ref_plus(w->master, bytes),
        .momentum = {BPT_BLOCK_MOMENTUM, w->master.offset + bytes},
        .gradient = bpt_ref_plus(w->gradient, bytes),
        .partial = bpt_ref_plus(w->partials, bytes),
        .partial_stride = stride,
        .n_partials = w->n_partials,
        .n = n,
        .decay = w->segment->role.decays ? net->sgd.decay : 0.0f,
        .running = w->segment->role.running,
    };
    const char *label = w->segment->name;
    BPT_TRY(bpt_builder_task(b, BPT_PHASE_UPDATE, run_update, r, (bpt_task_info){"update", label},
                             all_done, NULL));
    BPT_TRY(bpt_builder_task(b, BPT_PHASE_REDUCE, run_reduce, r, (bpt_task_info){"reduce", label},
                             gradients_done, NULL));
    return bpt_builder_task(b, BPT_PHASE_APPLY, run_apply, r, (bpt_task_info){"apply", label},
                            (bpt_deps){0}, NULL);
}

bpt_status bpt__plan_updates(bpt_network *net) {
    bpt_builder *b = &net->builder;
    for (size_t s = 0; s < net->model->segments.n; s++) {
        const bpt_weight_plan *w = &b->weights[s];
        const size_t n = bpt_layout_bytes(w->layout) / sizeof(float);
        bpt_deps all_done;
        BPT_TRY(bpt_deps_join(b, w->written, w->read, &all_done));
        for (size_t begin = 0; begin < n; begin += RANGE_FLOATS) {
            const size_t count = n - begin < RANGE_FLOATS ? n - begin : RANGE_FLOATS;
            BPT_TRY(plan_range(net, w, begin, count, w->written, all_done));
        }
    }
    return BPT_OK;
}
