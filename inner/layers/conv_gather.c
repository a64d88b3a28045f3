#include "inner/layers/conv_gather.h"

#include "base/integers.h"
#include "inner/cuts/cuts.h"

#include <string.h>

/* ---- the rule ---- */

bool bpt_conv_suits_gather(const bpt_conv_problem *batch) {
    const bpt_conv_problem *p = batch;
    const int64_t weights = p->k * p->c * p->r * p->s;
    const int64_t activations = p->n * (p->c * p->h * p->w + p->k * p->p * p->q);
    return p->groups == 1 && !p->winograd && weights >= activations &&
           bpt_conv_gather_filters(p) < p->k;
}

/* Of a second-level cache, which holds some activations as well. */
enum { RANGE_BYTES = 640 << 10 };

/* Products of 128 columns are a sixth faster than narrow ones in bfloat16 (docs/decisions.md), if
 * they stay in the cache. Of four ranges at least, as many as there are chunks. */
static int64_t fast_filters(const bpt_conv_problem *batch) {
    enum { FAST = 128, N_RANGES = 4 };
    const int64_t row = batch->c * (int64_t)sizeof(float);
    int64_t filters = batch->k / N_RANGES < FAST ? batch->k / N_RANGES : FAST;
    if (batch->type != BPT_BF16) return 0;
    if (filters > RANGE_BYTES / row) filters = RANGE_BYTES / row;
    return filters / BPT_CUT_LANES * BPT_CUT_LANES;
}

int64_t bpt_conv_gather_filters(const bpt_conv_problem *batch) {
    const int64_t block = batch->c * batch->r * batch->s * BPT_CUT_LANES * (int64_t)sizeof(float);
    const int64_t cached = (block < RANGE_BYTES ? RANGE_BYTES / block : 1) * BPT_CUT_LANES;
    const int64_t fast = fast_filters(batch);
    return cached > fast ? cached : fast;
}

/* ---- kernels ---- */

/* gradient [C, filters] = source' [C, outputs] x gradient of these outputs [outputs, filters] */
static bpt_status create_tap(bpt_builder *b, const bpt_conv_problem *p, int64_t filters, int64_t r,
                             int64_t s, bpt_kernel **out) {
    const int64_t rows = bpt_tap_span_of(p, 0, r).n, columns = bpt_tap_span_of(p, 1, s).n;
    const int64_t n = rows * columns * p->n;
    *out = NULL;
    if (n == 0) return BPT_OK;
    return bpt_cpu_matmul(b->cpu, (bpt_matrix){p->c, n, bpt_tap_channel(p, s), 1, p->type},
                          (bpt_matrix){n, filters, filters, 1, p->type},
                          (bpt_matrix){p->c, filters, filters, 1, BPT_F32}, false, out);
}

static bool is_fast(const bpt_kernel *k) {
    return !k || strncmp(bpt_kernel_implementation(k), "ref", 3) != 0;
}

/* @param[out] fast whether no product would be made by plain loops */
static bpt_status create_range(bpt_builder *b, const bpt_conv_problem *p, bpt_conv_range *range,
                               bool *fast) {
    const size_t n_taps = (size_t)(p->r * p->s);
    BPT_TRY(BPT_BUILDER_NEW(b, n_taps, &range->taps));
    for (int64_t r = 0; r < p->r; r++)
        for (int64_t s = 0; s < p->s; s++) {
            bpt_kernel **tap = &range->taps[r * p->s + s];
            BPT_TRY(create_tap(b, p, range->filters.n, r, s, tap));
            *fast = *fast && is_fast(*tap);
        }
    return BPT_OK;
}

static bpt_status create_ranges(bpt_builder *b, bpt_conv_gather *g) {
    const int64_t k = g->batch.k, filters = bpt_conv_gather_filters(&g->batch);
    const size_t n = (size_t)(bpt_quotient_up(k, filters));
    bool fast = true;
    BPT_TRY(BPT_BUILDER_NEW(b, n, &g->ranges));
    for (size_t i = 0; i < n && fast; i++) {
        const int64_t first = (int64_t)i * filters, left = k - first;
        g->ranges[i].filters = (bpt_tap_filters){first, left < filters ? left : filters};
        BPT_TRY(create_range(b, &g->batch, &g->ranges[i], &fast));
    }
    if (fast) g->n = n;
    return BPT_OK;
}

static bpt_status lanes_of(bpt_builder *b, const bpt_kernel *forward, const bpt_conv_problem *p,
                           int64_t *lanes) {
    BPT_TRY(bpt_cpu_conv_lanes(b->cpu, p, bpt_kernel_layout(forward, BPT_SLOT_SRC),
                               bpt_kernel_layout(forward, BPT_SLOT_DST), lanes));
    if (*lanes && (p->c % *lanes != 0 || p->k % *lanes != 0)) *lanes = 0;
    return BPT_OK;
}

bpt_status bpt__conv_gather_create(bpt_builder *b, const bpt_conv_problem *chunk,
                                   const bpt_kernel *forward, bpt_conv_gather *out,
                                   const bpt_layout **gradient) {
    const int64_t dims[] = {chunk->k, chunk->c, chunk->r, chunk->s};
    *out = (bpt_conv_gather){.batch = *chunk};
    out->batch.n = b->batch;
    if (!bpt_conv_suits_gather(&out->batch)) return BPT_OK;
    BPT_TRY(lanes_of(b, forward, chunk, &out->lanes));
    if (!out->lanes) return BPT_OK;
    BPT_TRY(create_ranges(b, out));
    return bpt_layout_weights_of_lanes(b->cpu, dims, out->lanes, gradient);
}

/* ---- gathering ---- */

typedef struct {
    const bpt_blocks *blocks;
    const bpt_conv_problem *batch;
    bpt_tap_tile tile;
    bpt_tap_filters filters; /* of the gradient */
    bpt_ref from, to, bias;
} gather_task;

static bpt_status run_source(void *arg, unsigned worker) {
    (void)worker;
    const gather_task *t = arg;
    bpt_tap_gather_source(t->batch, t->tile, bpt_at(t->blocks, t->from), bpt_at(t->blocks, t->to));
    return BPT_OK;
}

static bpt_status run_gradient(void *arg, unsigned worker) {
    (void)worker;
    const gather_task *t = arg;
    const void *dy = bpt_at(t->blocks, t->from);
    bpt_tap_gather_gradient(t->batch, t->tile, t->filters, dy, bpt_at(t->blocks, t->to));
    if (t->batch->bias)
        bpt_tap_sum_bias(t->batch, t->tile, t->filters, dy, bpt_at(t->blocks, t->bias));
    return BPT_OK;
}

static bpt_status plan_gather(bpt_builder *b, const char *label, bpt_task_fn fn, gather_task task,
                              bpt_deps after, bpt_deps *done) {
    gather_task *own;
    BPT_TRY(BPT_BUILDER_NEW(b, 1, &own));
    *own = task;
    return bpt_builder_task(b, BPT_PHASE_BACKWARD, fn, own, (bpt_task_info){"gather", label},
                            BPT_PLACES(task.from, task.to, task.bias), after, done);
}

static gather_task task_of(const bpt_builder *b, const bpt_conv_gather *g, size_t c, bpt_ref from,
                           bpt_ref to) {
    const bpt_tap_tile chunk = {b->chunk_start[c], bpt_builder_chunk_samples(b, c), g->lanes};
    return (gather_task){
        .blocks = b->blocks, .batch = &g->batch, .tile = chunk, .from = from, .to = to};
}

/* Behind the gradients, though the values are there long before: so they are held no longer. */
static bpt_status gather_source(bpt_builder *b, const bpt_conv_gather *g,
                                const bpt_conv_gather_operands *o, size_t c, bpt_ref source,
                                bpt_deps *done) {
    bpt_deps values, after;
    BPT_TRY(bpt_deps_of_chunk(b, o->in->value_ready, c, &values));
    BPT_TRY(bpt_deps_of_chunk(b, o->out->grad_ready, c, &after));
    BPT_TRY(bpt_deps_join(b, values, after, &after));
    return plan_gather(b, o->label, run_source,
                       task_of(b, g, c, o->in->value[b->chunk_tile[c]], source), after, done);
}

static bpt_status gather_gradient(bpt_builder *b, const bpt_conv_gather *g,
                                  const bpt_conv_gather_operands *o, const bpt_conv_range *range,
                                  size_t c, bpt_ref gradient, bpt_deps *done) {
    gather_task task = task_of(b, g, c, o->out->grad[b->chunk_tile[c]], gradient);
    bpt_deps after;
    task.filters = range->filters;
    if (o->bias) task.bias = bpt_ref_plus(o->bias[c], (size_t)range->filters.first * sizeof(float));
    BPT_TRY(bpt_deps_of_chunk(b, o->out->grad_ready, c, &after));
    return plan_gather(b, o->label, run_gradient, task, after, done);
}

/* ---- products ---- */

typedef struct {
    const bpt_blocks *blocks;
    const bpt_conv_gather *gather;
    const bpt_conv_range *range;
    bpt_ref product, weights;
} range_task;

static bpt_status run_range(void *arg, unsigned worker) {
    const range_task *t = arg;
    const bpt_conv_problem *p = &t->gather->batch;
    const float *product = bpt_at(t->blocks, t->product);
    float *dw = bpt_at(t->blocks, t->weights);
    for (int64_t tap = 0; tap < p->r * p->s; tap++) {
        bpt_kernel *k = t->range->taps[tap];
        if (k) BPT_TRY(bpt_kernel_run(k, worker));
        bpt_tap_store(p, t->gather->lanes, t->range->filters, tap, k ? product : NULL, dw);
    }
    return BPT_OK;
}

static bpt_ref value_ref(const bpt_conv_problem *p, bpt_ref ref, int64_t values) {
    return bpt_ref_plus(ref, (size_t)values * bpt_value_bytes(p->type));
}

static void bind_tap(const bpt_conv_problem *p, const bpt_conv_range *range, int64_t tap,
                     bpt_ref source, bpt_ref gradient, bpt_ref product) {
    bpt_kernel *k = range->taps[tap];
    const int64_t r = tap / p->s, s = tap % p->s, filters = range->filters.n;
    const bpt_tap_span rows = bpt_tap_span_of(p, 0, r);
    const int64_t row = bpt_tap_span_of(p, 1, s).n * p->n; /* values of one channel or filter */
    if (!k) return;
    const int64_t first =
        bpt_tap_row(p, rows.first * p->stride[0] + r * p->dilation[0] - p->pad[0]);
    bpt_kernel_bind(k, BPT_SLOT_SRC, value_ref(p, source, bpt_tap_source(p, s) + first * row));
    bpt_kernel_bind(
        k, BPT_SLOT_WEIGHTS,
        value_ref(p, gradient, bpt_tap_gradient(p, filters, s) + rows.first * row * filters));
    bpt_kernel_bind(k, BPT_SLOT_DST, product);
}

static bpt_status plan_range(bpt_builder *b, const bpt_conv_gather *g,
                             const bpt_conv_gather_operands *o, const bpt_conv_range *range,
                             bpt_ref source, bpt_ref gradient, bpt_deps after, bpt_deps *done) {
    const bpt_conv_problem *p = &g->batch;
    range_task *task;
    bpt_ref product;
    BPT_TRY(BPT_BUILDER_NEW(b, 1, &task));
    BPT_TRY(bpt_builder_workspace(b, (size_t)(p->c * range->filters.n) * sizeof(float), &product));
    for (int64_t tap = 0; tap < p->r * p->s; tap++)
        bind_tap(p, range, tap, source, gradient, product);
    *task = (range_task){b->blocks, g, range, product, o->weights};
    return bpt_builder_task(b, BPT_PHASE_BACKWARD, run_range, task,
                            (bpt_task_info){"backward weights", o->label},
                            BPT_PLACES(source, gradient, product), after, done);
}

/* ---- all of it ---- */

/* What is gathered for a range. */
typedef struct {
    bpt_ref gradient;
    bpt_deps ready; /* with the source */
} gathered;

static bpt_status gather_sources(bpt_builder *b, const bpt_conv_gather *g,
                                 const bpt_conv_gather_operands *o, bpt_ref source,
                                 bpt_deps *copied, bpt_deps *ready) {
    *ready = (bpt_deps){0};
    for (size_t c = 0; c < b->n_chunks; c++) {
        BPT_TRY(gather_source(b, g, o, c, source, &copied[c]));
        BPT_TRY(bpt_deps_join(b, *ready, copied[c], ready));
    }
    return BPT_OK;
}

static bpt_status gather_gradients(bpt_builder *b, const bpt_conv_gather *g,
                                   const bpt_conv_gather_operands *o, const bpt_conv_range *range,
                                   bpt_deps *copied, gathered *out) {
    const bpt_conv_problem *p = &g->batch;
    const int64_t values = bpt_tap_gradient(p, range->filters.n, p->s);
    BPT_TRY(bpt_builder_workspace(b, (size_t)values * bpt_value_bytes(p->type), &out->gradient));
    for (size_t c = 0; c < b->n_chunks; c++) {
        bpt_deps done;
        BPT_TRY(gather_gradient(b, g, o, range, c, out->gradient, &done));
        BPT_TRY(bpt_deps_join(b, copied[c], done, &copied[c]));
        BPT_TRY(bpt_deps_join(b, out->ready, done, &out->ready));
    }
    return BPT_OK;
}

bpt_status bpt__conv_gather_plan(bpt_builder *b, const bpt_conv_gather *g,
                                 const bpt_conv_gather_operands *o, bpt_deps *copied,
                                 bpt_deps *done) {
    const size_t bytes =
        (size_t)bpt_tap_source(&g->batch, g->batch.s) * bpt_value_bytes(g->batch.type);
    bpt_ref source;
    bpt_deps ready;
    gathered *of_range;
    BPT_TRY(BPT_BUILDER_NEW(b, g->n, &of_range));
    BPT_TRY(bpt_builder_workspace(b, bytes, &source));
    BPT_TRY(gather_sources(b, g, o, source, copied, &ready));
    for (size_t i = 0; i < g->n; i++) {
        of_range[i].ready = ready;
        BPT_TRY(gather_gradients(b, g, o, &g->ranges[i], copied, &of_range[i]));
    }
    *done = (bpt_deps){0};
    for (size_t i = 0; i < g->n; i++) { /* apart, so that tasks of a kind stay together */
        bpt_deps written;
        BPT_TRY(plan_range(b, g, o, &g->ranges[i], source, of_range[i].gradient, of_range[i].ready,
                           &written));
        BPT_TRY(bpt_deps_join(b, *done, written, done));
    }
    return BPT_OK;
}
