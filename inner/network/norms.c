/* Norms of weights and gradients, in one order whatever the number of threads: squares of a range,
 * summed over the ranges of a segment, these over the segments. */
#include "inner/network/network_private.h"

#include <math.h>

typedef struct {
    const bpt_squares *parts; /* of its ranges, in order; shape [n] */
    size_t n;
    bpt_squares *sum;
} segment_task;

static bpt_status run_segment(void *arg, unsigned worker) {
    (void)worker;
    const segment_task *s = arg;
    *s->sum = (bpt_squares){0};
    for (size_t i = 0; i < s->n; i++) {
        s->sum->weights += s->parts[i].weights;
        s->sum->gradient += s->parts[i].gradient;
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

bpt_status bpt__plan_squares(bpt_network *net, size_t segment, const bpt_squares *parts, size_t n,
                             bpt_deps measured, bpt_deps *known) {
    bpt_builder *b = &net->builder;
    segment_task *task;
    BPT_TRY(BPT_BUILDER_NEW(b, 1, &task));
    *task = (segment_task){parts, n, &net->squares[segment]};
    return bpt_builder_task(b, BPT_PHASE_APPLY, run_segment, task,
                            (bpt_task_info){"norm", b->weights[segment].segment->name},
                            (bpt_places){0}, measured, known);
}

bpt_status bpt__plan_clip(bpt_network *net, bpt_deps after, bpt_deps *known) {
    return bpt_builder_task(&net->builder, BPT_PHASE_APPLY, run_clip, net,
                            (bpt_task_info){"clip", "gradient"}, (bpt_places){0}, after, known);
}
