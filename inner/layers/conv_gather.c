#include "inner/layers/conv_gather.h"

#include <string.h>

/* ---- the rule ---- */

bool bpt_conv_suits_gather(const bpt_conv_problem *batch) {
    const bpt_conv_problem *p = batch;
    const int64_t weights = p->k * p->c * p->r * p->s;
    const int64_t activations = p->n * (p->c * p->h * p->w + p->k * p->p * p->q);
    return p->groups == 1 && !p->winograd && weights >= activations &&
           bpt_conv_gather_filters(p) < p->k;
}

int64_t bpt_conv_gather_filters(const bpt_conv_problem *batch) {
    enum { BYTES = 640 << 10 }; /* of a second-level cache, which holds some activations as well */
    const int64_t block = batch->c * batch->r * batch->s * BPT_CUT_LANES * (int64_t)sizeof(float);
    return (block < BYTES ? BYTES / block : 1) * BPT_CUT_LANES;
}

/* ---- kernels ---- */

static bpt_status create_kernel(bpt_builder *b, const bpt_conv_problem *p, int64_t lanes,
                                const bpt_layout *gradient, bpt_kernel **out) {
    const bpt_layout *src, *dst;
    bpt_kernel *forward; /* only describes */
    BPT_TRY(bpt_layout_of_lanes(b->cpu, p->type, (int64_t[]){p->n, p->c, p->h, p->w}, lanes, &src));
    BPT_TRY(bpt_layout_of_lanes(b->cpu, p->type, (int64_t[]){p->n, p->k, p->p, p->q}, lanes, &dst));
    BPT_TRY(bpt_cpu_conv_forward(b->cpu, p, src, NULL, dst, &forward));
    return bpt_cpu_conv_backward_weights(b->cpu, p, forward, gradient, out);
}

/* Bytes of an output channel in all samples. */
static size_t channel_bytes(const bpt_conv_problem *p) {
    return (size_t)(p->n * p->p * p->q) * bpt_value_bytes(p->type);
}

/* @param[out] fits whether there is a kernel of it as good as that of all filters, @p whole */
static bpt_status create_range(bpt_builder *b, const bpt_conv_problem *batch, int64_t lanes,
                               const bpt_kernel *whole, int64_t first, bpt_conv_piece *range,
                               bool *fits) {
    const int64_t filters = bpt_conv_gather_filters(batch), left = batch->k - first;
    int64_t dims[5];
    bpt_conv_problem *p = &range->part.problem;
    *p = *batch;
    p->k = left < filters ? left : filters;
    range->part.out[1] = range->part.weights[0] = first;
    bpt_conv_weight_dims(p, dims);
    range->dst = (size_t)first * channel_bytes(batch);
    range->bias = (size_t)first * sizeof(float);
    BPT_TRY(bpt_layout_part_with_gaps(b->cpu, bpt_kernel_layout(whole, BPT_SLOT_DIFF_WEIGHTS),
                                      range->part.weights, dims, &range->weights));
    *fits = range->weights.layout != NULL;
    if (!*fits) return BPT_OK;
    const bpt_status status = create_kernel(b, p, lanes, range->weights.layout, &range->kernel);
    *fits = status == BPT_OK;
    if (status == BPT_EBACKEND) return BPT_OK; /* it takes no such range */
    BPT_TRY(status);
    *fits = strcmp(bpt_kernel_implementation(range->kernel), bpt_kernel_implementation(whole)) == 0;
    return BPT_OK;
}

static bpt_status create_ranges(bpt_builder *b, const bpt_conv_problem *batch, int64_t lanes,
                                bpt_conv_gather *out, const bpt_layout **gradient) {
    const int64_t filters = bpt_conv_gather_filters(batch);
    const size_t n = (size_t)((batch->k + filters - 1) / filters);
    bpt_kernel *whole;
    bool fits = true;
    const bpt_status status = create_kernel(b, batch, lanes, NULL, &whole);
    if (status == BPT_EBACKEND) return BPT_OK; /* as below: the tiles have kernels of their own */
    BPT_TRY(status);
    BPT_TRY(bpt_builder_object(b, n * sizeof *out->ranges, (void **)&out->ranges));
    for (size_t i = 0; i < n && fits; i++)
        BPT_TRY(create_range(b, batch, lanes, whole, (int64_t)i * filters, &out->ranges[i], &fits));
    if (!fits) return BPT_OK;
    out->n = n;
    *gradient = bpt_kernel_layout(whole, BPT_SLOT_DIFF_WEIGHTS);
    return BPT_OK;
}

static bpt_status lanes_of(bpt_builder *b, const bpt_kernel *forward, const bpt_conv_problem *p,
                           int64_t *lanes) {
    BPT_TRY(bpt_cpu_conv_lanes(b->cpu, p, bpt_kernel_layout(forward, BPT_SLOT_SRC),
                               bpt_kernel_layout(forward, BPT_SLOT_DST), lanes));
    if (*lanes && (p->c % *lanes != 0 || p->k % *lanes != 0)) *lanes = 0;
    return BPT_OK;
}

bpt_status bpt__conv_gather_create(bpt_builder *b, const bpt_conv_problem *tile,
                                   const bpt_kernel *forward, bpt_conv_gather *out,
                                   const bpt_layout **gradient) {
    bpt_conv_problem batch = *tile;
    int64_t lanes;
    *out = (bpt_conv_gather){0};
    batch.n = b->batch;
    if (!bpt_conv_suits_gather(&batch)) return BPT_OK;
    BPT_TRY(lanes_of(b, forward, tile, &lanes));
    if (!lanes) return BPT_OK;
    BPT_TRY(create_ranges(b, &batch, lanes, out, gradient));
    if (!out->n) return BPT_OK;
    const size_t bytes = bpt_value_bytes(batch.type);
    BPT_TRY(bpt_builder_workspace(b, (size_t)(batch.n * batch.c * batch.h * batch.w) * bytes,
                                  &out->src));
    return bpt_builder_workspace(b, (size_t)batch.k * channel_bytes(&batch), &out->dst);
}

/* ---- tasks ---- */

/* Behind the gradients, though the values are there long before: so they are held no longer. */
static bpt_status copy_source(bpt_builder *b, const bpt_conv_gather *g,
                              const bpt_conv_gather_operands *o, size_t t, bpt_deps *done) {
    const bpt_conv_problem *p = &g->ranges[0].part.problem;
    const size_t bytes = (size_t)(p->c * p->h * p->w) * bpt_value_bytes(p->type);
    const bpt_sample_run from = {o->in->value[t], bytes};
    const bpt_sample_run to = {bpt_ref_plus(g->src, (size_t)b->tile_start[t] * bytes), bytes};
    bpt_deps after;
    BPT_TRY(bpt_deps_join(b, o->in->value_ready[t], o->out->grad_ready[t], &after));
    return bpt_builder_copy_samples(b, BPT_PHASE_BACKWARD, (bpt_task_info){"gather", o->label}, t,
                                    from, to, bytes, 0, after, done);
}

static bpt_status copy_gradient(bpt_builder *b, const bpt_conv_gather *g,
                                const bpt_conv_gather_operands *o, size_t i, size_t t,
                                bpt_deps *done) {
    const bpt_conv_piece *range = &g->ranges[i];
    const bpt_conv_problem *p = &range->part.problem;
    const size_t channel = channel_bytes(p) / (size_t)p->n; /* of one sample */
    const size_t first = (size_t)range->part.out[1], bytes = (size_t)p->k * channel;
    const size_t stride = (size_t)o->out->shape.c * channel;
    const bpt_sample_run from = {bpt_ref_plus(o->out->grad[t], first * channel), stride};
    const bpt_sample_run to = {bpt_ref_plus(g->dst, range->dst + (size_t)b->tile_start[t] * bytes),
                               bytes};
    return bpt_builder_copy_samples(b, BPT_PHASE_BACKWARD, (bpt_task_info){"gather", o->label}, t,
                                    from, to, bytes, 0, o->out->grad_ready[t], done);
}

static bpt_status plan_range(bpt_builder *b, const bpt_conv_gather *g,
                             const bpt_conv_gather_operands *o, size_t i, bpt_deps after,
                             bpt_deps *done) {
    const bpt_conv_piece *range = &g->ranges[i];
    bpt_kernel *k = range->kernel;
    bpt_kernel_bind(k, BPT_SLOT_SRC, g->src);
    bpt_kernel_bind(k, BPT_SLOT_DIFF_DST, bpt_ref_plus(g->dst, range->dst));
    bpt_kernel_bind(k, BPT_SLOT_DIFF_WEIGHTS, bpt_ref_plus(o->weights, range->weights.offset));
    if (range->part.problem.bias)
        bpt_kernel_bind(k, BPT_SLOT_DIFF_BIAS, bpt_ref_plus(o->bias, range->bias));
    return bpt_builder_kernel(b, BPT_PHASE_BACKWARD, k,
                              (bpt_task_info){"backward weights", o->label}, after, done);
}

bpt_status bpt__conv_gather_plan(bpt_builder *b, bpt_conv_gather *g,
                                 const bpt_conv_gather_operands *o, bpt_deps *copied,
                                 bpt_deps *done) {
    bpt_deps *gathered; /* of each range */
    BPT_TRY(bpt_builder_object(b, g->n * sizeof *gathered, (void **)&gathered));
    for (size_t t = 0; t < b->n_tiles; t++) {
        bpt_deps source, gradient;
        BPT_TRY(copy_source(b, g, o, t, &source));
        copied[t] = source;
        for (size_t i = 0; i < g->n; i++) {
            BPT_TRY(copy_gradient(b, g, o, i, t, &gradient));
            BPT_TRY(bpt_deps_join(b, copied[t], gradient, &copied[t]));
            BPT_TRY(bpt_deps_join(b, gathered[i], source, &gathered[i]));
            BPT_TRY(bpt_deps_join(b, gathered[i], gradient, &gathered[i]));
        }
    }
    *done = (bpt_deps){0};
    for (size_t i = 0; i < g->n; i++) {
        bpt_deps written;
        BPT_TRY(plan_range(b, g, o, i, gathered[i], &written));
        BPT_TRY(bpt_deps_join(b, *done, written, done));
    }
    return BPT_OK;
}
