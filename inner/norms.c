/* Norms of weights and gradients, in one order whatever the number of threads: squares of a range,
 * summed over the ranges of a segment, these over the segments. */
#include "inner/network_private.h"
#include "inner/vector_loops.h"

#include <math.h>

typedef struct {
    const bpt_network *net;
    bpt_range range;
    bool wants_weights;
    bpt_squares sum;
} measure_task;

typedef struct {
    const measure_task *parts; /* shape [n] */
    size_t n;
    bpt_squares *sum;
} segment_task;

static bpt_status run_measure(void *arg, unsigned worker) {
    (void)worker;
    measure_task *m = arg;
    const bpt_blocks *blocks = &m->net->blocks;
    m->sum.gradient = bpt_sum_of_squares(bpt_at(blocks, m->range.gradient), m->range.n);
    if (m->wants_weights)
        m->sum.weights = bpt_sum_of_squares(bpt_at(blocks, m->range.weights), m->range.n);
    return BPT_OK;
}

static bpt_status run_segment(void *arg, unsigned worker) {
    (void)worker;
    const segment_task *s = arg;
    *s->sum = (bpt_squares){0};
    for (size_t i = 0; i < s->n; i++) {
        s->sum->weights += s->parts[i].sum.weights;
        s->sum->gradient += s->parts[i].sum.gradient;
    }
    return BPT_OK;
}

static bpt_status run_clip(void *arg, unsigned worker) {
    (void)worker;
    bpt_network *net = arg;
    double sum = 0.0;
    for (size_t s = 0; s < net->model->segments.n; s++) sum += net->squares[s].gradient;
    net->clip_scale = bpt_clip_scale(net->learning.clip_norm, sqrt(sum));
    return BPT_OK;
}

static bpt_status plan_measures(bpt_network *net, size_t segment, const bpt_range *ranges, size_t n,
                                measure_task *tasks, bpt_deps *done) {
    bpt_builder *b = &net->builder;
    const bpt_segment *s = b->weights[segment].segment;
    uint32_t *ids;
    BPT_TRY(bpt_builder_object(b, n * sizeof *ids, (void **)&ids));
    for (size_t i = 0; i < n; i++) {
        bpt_deps one;
        tasks[i] = (measure_task){
            .net = net,
            .range = ranges[i],
            .wants_weights = s->role.decays && bpt_learning_wants_weight_norms(&net->learning),
        };
        BPT_TRY(bpt_builder_task(b, BPT_PHASE_APPLY, run_measure, &tasks[i],
                                 (bpt_task_info){"measure", s->name}, (bpt_places){0},
                                 ranges[i].summed, &one));
        ids[i] = one.ids[0];
    }
    *done = (bpt_deps){ids, n};
    return BPT_OK;
}

bpt_status bpt__plan_squares(bpt_network *net, size_t segment, const bpt_range *ranges, size_t n,
                             bpt_deps *known) {
    bpt_builder *b = &net->builder;
    measure_task *parts;
    segment_task *task;
    bpt_deps measured;
    BPT_TRY(bpt_builder_object(b, n * sizeof *parts, (void **)&parts));
    BPT_TRY(bpt_builder_object(b, sizeof *task, (void **)&task));
    BPT_TRY(plan_measures(net, segment, ranges, n, parts, &measured));
    *task = (segment_task){parts, n, &net->squares[segment]};
    return bpt_builder_task(b, BPT_PHASE_APPLY, run_segment, task,
                            (bpt_task_info){"norm", b->weights[segment].segment->name},
                            (bpt_places){0}, measured, known);
}

bpt_status bpt__plan_clip(bpt_network *net, bpt_deps after, bpt_deps *known) {
    return bpt_builder_task(&net->builder, BPT_PHASE_APPLY, run_clip, net,
                            (bpt_task_info){"clip", "gradient"}, (bpt_places){0}, after, known);
}
