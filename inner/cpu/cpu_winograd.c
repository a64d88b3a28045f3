#include "inner/cpu/cpu_winograd.h"

#include "base/integers.h"
#include "base/memory.h"

#include <assert.h>
#include <string.h>

static bpt_status no_kernel(void) {
    return bpt_fail(BPT_EBACKEND, "there is no kernel of Winograd's algorithm for these layouts");
}

/* ---- geometry ---- */

/* What lies between transforms may take: little enough to stay in a cache. */
enum { CACHED_BYTES = 4 << 20 };

static bpt_winograd_image image(bpt_value_type type, int64_t channels, int64_t h, int64_t w,
                                int64_t lanes) {
    return (bpt_winograd_image){
        .type = type, .blocks = bpt_quotient_up(channels, lanes), .lanes = lanes, .h = h, .w = w};
}

/* As many, a power of two, as keep what lies between in a cache; no more, so that there are parts
 * for many workers.
 * @param in,out of one sample */
static int64_t most_samples(const bpt_winograd_image *in, const bpt_winograd_image *out) {
    const int64_t bytes = bpt_winograd_values(in->type) *
                          (bpt_winograd_matrix(in) * (int64_t)bpt_value_bytes(in->type) +
                           bpt_winograd_matrix(out) * (int64_t)sizeof(float));
    int64_t samples = 1;
    while (2 * samples * bytes <= CACHED_BYTES) samples *= 2;
    return samples;
}

/* Of one sample: windows of @p in for patches of @p out. */
static void cut_sample(bpt_winograd_image *in, bpt_winograd_image *out) {
    const int64_t patch = bpt_winograd_patch(out->type);
    in->rows = out->rows = bpt_quotient_up(out->h, patch);
    in->columns = out->columns = bpt_quotient_up(out->w, patch);
    in->n = out->n = in->there = out->there = 1;
}

/* One number for both passes, and for blocks of whatever lanes. */
int64_t bpt__winograd_product_samples(const bpt_conv_problem *p) {
    bpt_winograd_image x = image(p->type, p->c, p->h, p->w, BPT_WINOGRAD_MAX_LANES);
    bpt_winograd_image y = image(p->type, p->k, p->p, p->q, BPT_WINOGRAD_MAX_LANES);
    cut_sample(&x, &y);
    const int64_t forward = most_samples(&x, &y);
    cut_sample(&y, &x);
    const int64_t backward = most_samples(&y, &x);
    return bpt_smaller(forward, backward);
}

/* All products have as many rows, though in the last there may be fewer samples: as few as can be
 * are multiplied for nothing, unless there were many more products for it, which cost by
 * themselves what an eighth of the largest one does. */
static int64_t samples_of_products(int64_t n, int64_t most) {
    int64_t best = 1, least = INT64_MAX;
    for (int64_t samples = 1; samples <= most && samples <= n; samples++) {
        const int64_t cost = bpt_quotient_up(n, samples) * (8 * samples + most);
        if (cost > least) continue;
        best = samples;
        least = cost;
    }
    return best;
}

static void cut_patches(bpt__winograd *w, const bpt_conv_problem *p, const int64_t *pad) {
    bpt_winograd_image *in = &w->in, *out = &w->out;
    cut_sample(in, out);
    for (int i = 0; i < BPT__N_SPATIAL; i++) in->pad[i] = pad[i];
    w->n = p->n;
    in->n = out->n = samples_of_products(p->n, bpt__winograd_product_samples(p));
    w->n_products = bpt_quotient_up(p->n, in->n);
    w->n_ranges = 1;
}

static int64_t channels_of(const bpt_winograd_image *m) {
    return m->blocks * m->lanes;
}

/* ---- the matrix product ---- */

/* One of as many as there are transformed values. */
typedef struct {
    int64_t rows, columns;
    bool transposed;  /* in memory [columns][rows] */
    int64_t all_rows; /* in memory, of which these are a range */
} matrix;

static bpt_status layout_of(bpt_cpu *cpu, bpt_value_type type, matrix m, const bpt_layout **out) {
    const int64_t dims[] = {m.rows, m.columns};
    const int64_t strides[] = {m.transposed ? 1 : m.columns, m.transposed ? m.all_rows : 1};
    return bpt__layout_by_strides(cpu, type, dims, strides, 2, out);
}

/* @param bytes that it takes of the worker's scratch memory; 0: it is somewhere else */
static bpt_status add_matrix(bpt_kernel *k, int dnnl_arg, const bpt__md *md, size_t bytes) {
    bpt__winograd *w = k->winograd;
    dnnl_exec_arg_t *arg = &w->args[w->n_args];
    BPT__DNNL_TRY(dnnl_memory_create(&arg->memory, md, k->cpu->engine, DNNL_MEMORY_NONE));
    arg->arg = dnnl_arg;
    assert(k->scratch_bytes % BPT_ALIGNMENT == 0); /* whole cache lines before */
    w->in_scratch[w->n_args] = bytes > 0;
    w->offsets[w->n_args++] = k->scratch_bytes;
    k->scratch_bytes += bytes;
    return BPT_OK;
}

static bpt_status add_matrices(bpt_kernel *k, const matrix *m, const bpt_layout *const *layouts,
                               bool other_is_given) {
    static const int args[] = {DNNL_ARG_SRC, DNNL_ARG_WEIGHTS, DNNL_ARG_DST};
    bpt__winograd *w = k->winograd;
    const bpt__md *own =
        dnnl_primitive_desc_query_md(k->pd, dnnl_query_exec_arg_md, DNNL_ARG_SCRATCHPAD);
    for (int i = 0; i < BPT__N_MATRICES; i++) {
        const bpt_value_type type = layouts[i]->type;
        const bool given = i == BPT__OTHER_FACTOR && other_is_given;
        w->steps[i] =
            (size_t)bpt_winograd_plane(type, m[i].all_rows * m[i].columns) * bpt_value_bytes(type);
        const size_t all = (size_t)bpt_winograd_values(w->in.type) * w->steps[i];
        BPT_TRY(add_matrix(k, args[i], layouts[i]->md, given ? 0 : all));
    }
    if (!own || dnnl_memory_desc_get_size(own) == 0) return BPT_OK;
    return add_matrix(k, DNNL_ARG_SCRATCHPAD, own, dnnl_memory_desc_get_size(own));
}

/* Each matrix has a product of its own: of all at once oneDNN takes slower kernels where they do
 * not lie side by side.
 * @param type of the factors, floats are multiplied to floats and so is bfloat16
 * @param m factors and product; @param adds to what the product's memory holds, else overwrites it
 * @param[out] layouts of the matrices */
static bpt_status describe_product(bpt_cpu *cpu, bpt_value_type type, const matrix *m, bool adds,
                                   const bpt_layout **layouts, dnnl_primitive_desc_t *pd) {
    for (int i = 0; i < BPT__N_MATRICES; i++)
        BPT_TRY(layout_of(cpu, i == BPT__PRODUCT ? BPT_F32 : type, m[i], &layouts[i]));
    BPT__DNNL_TRY(dnnl_matmul_primitive_desc_create(pd, cpu->engine, layouts[0]->md, layouts[1]->md,
                                                    NULL, layouts[2]->md,
                                                    adds ? cpu->attr_sum : cpu->attr));
    return BPT_OK;
}

bpt_status bpt__winograd_has_products(bpt_cpu *cpu, bpt_value_type type, bool *has) {
    enum { N = 64 };
    *has = true;
    /* Of data; of weights, at once, in several products, in ranges. */
    for (int kind = 0; kind < 4; kind++) {
        const matrix m[] = {
            {N, N, kind > 0, kind == 3 ? 2 * N : N}, {N, N, false, N}, {N, N, false, N}};
        const bpt_layout *layouts[BPT__N_MATRICES];
        dnnl_primitive_desc_t pd;
        BPT_TRY(describe_product(cpu, type, m, kind == 2, layouts, &pd));
        if (strncmp(bpt__implementation(pd), "ref", 3) == 0) *has = false;
        dnnl_primitive_desc_destroy(pd);
    }
    return BPT_OK;
}

/* @param other_is_given the second factor is an operand of the kernel, else in scratch memory */
static bpt_status create_product(bpt_cpu *cpu, const bpt__winograd *plan, const matrix *m,
                                 bool adds, bool other_is_given, bpt_kernel **out) {
    const bpt_layout *layouts[BPT__N_MATRICES];
    dnnl_primitive_desc_t pd;
    BPT_TRY(describe_product(cpu, plan->in.type, m, adds, layouts, &pd));
    BPT_TRY(bpt__kernel_new(cpu, pd, plan, out));
    return add_matrices(*out, m, layouts, other_is_given);
}

/* ---- forward and backward data: windows x filters ---- */

static bpt_status transformed(bpt_cpu *cpu, const bpt__winograd *w, bpt__filters filters,
                              const bpt_layout **out) {
    const int64_t dims[] = {bpt_winograd_values(w->in.type), channels_of(&w->in),
                            channels_of(&w->out)};
    return bpt__layout_of_filters(cpu, w->in.type, dims, filters, out);
}

/* @param weights as bpt_cpu_conv_forward() says */
static bpt_status create_data(bpt_cpu *cpu, const bpt__winograd *plan, bpt__filters filters,
                              const bpt_layout *weights, bpt_kernel **out) {
    const bpt_winograd_image *in = &plan->in;
    const int64_t patches = in->n * in->rows * in->columns;
    const int64_t from = channels_of(in), to = channels_of(&plan->out);
    const matrix m[] = {
        {patches, from, false, patches}, {from, to, false, from}, {patches, to, false, patches}};
    const bpt_layout *own;
    BPT_TRY(transformed(cpu, plan, filters, &own));
    if (weights && !bpt_layout_equal(weights, own)) return no_kernel();
    BPT_TRY(create_product(cpu, plan, m, false, true, out));
    return bpt__kernel_operand(*out, BPT_SLOT_WEIGHTS, own);
}

bpt_status bpt__winograd_forward(bpt_cpu *cpu, const bpt_conv_problem *p, const bpt_layout *src,
                                 const bpt_layout *weights, const bpt_layout *dst,
                                 bpt_kernel **out) {
    const bpt_layout *bias;
    int64_t lanes;
    BPT_TRY(bpt_cpu_conv_lanes(cpu, p, src, dst, &lanes));
    if (!lanes || (p->type == BPT_BF16 && lanes != BPT_WINOGRAD_MAX_LANES)) return no_kernel();
    bpt__winograd plan = {.run = bpt__winograd_run_data,
                          .in = image(p->type, p->c, p->h, p->w, lanes),
                          .out = image(p->type, p->k, p->p, p->q, lanes),
                          .in_slot = BPT_SLOT_SRC,
                          .out_slot = BPT_SLOT_DST,
                          .n_bias = p->k,
                          .relu = p->relu};
    cut_patches(&plan, p, p->pad);
    BPT_TRY(create_data(cpu, &plan, BPT__FILTERS_TRANSFORMED, weights, out));
    BPT_TRY(bpt__kernel_operand(*out, BPT_SLOT_SRC, src));
    BPT_TRY(bpt__kernel_operand(*out, BPT_SLOT_DST, dst));
    if (!p->bias) return BPT_OK;
    BPT_TRY(bpt_layout_plain(cpu, BPT_F32, &p->k, 1, &bias));
    return bpt__kernel_operand(*out, BPT_SLOT_BIAS, bias);
}

/* The full convolution with filters that are turned: what the forward pass padded is cut off. */
bpt_status bpt__winograd_backward_data(bpt_cpu *cpu, const bpt_conv_problem *p,
                                       const bpt_kernel *forward, const bpt_layout *weights,
                                       bpt_kernel **out) {
    const bpt__winograd *f = forward->winograd;
    const int64_t pad[] = {p->r - 1 - p->pad[0], p->s - 1 - p->pad[1]};
    bpt__winograd plan = {.run = bpt__winograd_run_data,
                          .in = image(p->type, p->k, p->p, p->q, f->in.lanes),
                          .out = image(p->type, p->c, p->h, p->w, f->in.lanes),
                          .in_slot = BPT_SLOT_DIFF_DST,
                          .out_slot = BPT_SLOT_DIFF_SRC};
    cut_patches(&plan, p, pad);
    BPT_TRY(create_data(cpu, &plan, BPT__FILTERS_TURNED, weights, out));
    BPT_TRY(bpt__kernel_operand(*out, BPT_SLOT_DIFF_DST, forward->layouts[BPT_SLOT_DST]));
    return bpt__kernel_operand(*out, BPT_SLOT_DIFF_SRC, forward->layouts[BPT_SLOT_SRC]);
}

/* ---- backward weights: windows' x patches' gradients ---- */

/* Where the product, transformed filters, is larger than both factors of all samples, these are
 * made at once, and of the product one range of input channels after the other is made and turned
 * back, each as large as stays in a cache. Elsewhere products of some samples are summed. Ranges
 * are alike, so there are as many as divide the blocks of channels. */
static void cut_product(bpt__winograd *w) {
    bpt_winograd_image in = w->in, out = w->out;
    in.n = out.n = w->n;
    const int64_t size = (int64_t)bpt_value_bytes(in.type);
    const int64_t product = channels_of(&in) * channels_of(&out) * (int64_t)sizeof(float);
    if (size * (bpt_winograd_matrix(&in) + bpt_winograd_matrix(&out)) > product) return;
    w->in.n = w->out.n = w->n;
    w->n_products = 1;
    const int64_t bytes = bpt_winograd_values(in.type) * product;
    while (w->n_ranges < in.blocks &&
           (in.blocks % w->n_ranges != 0 || bytes / w->n_ranges > CACHED_BYTES))
        w->n_ranges++;
}

bpt_status bpt__winograd_backward_weights(bpt_cpu *cpu, const bpt_conv_problem *p,
                                          const bpt_kernel *forward, const bpt_layout *weights,
                                          bpt_kernel **out) {
    bpt__winograd plan = *forward->winograd;
    const bpt_layout *plain, *bias;
    const int64_t filter = p->r * p->s;
    plan.run = bpt__winograd_run_weights;
    plan.out_slot = BPT_SLOT_DIFF_DST;
    plan.n_args = 0;
    cut_product(&plan);
    plan.filters = (bpt_winograd_filters){
        p->type, p->k, p->c, p->c * filter, filter, channels_of(&plan.out), channels_of(&plan.in)};
    BPT_TRY(bpt_cpu_conv_plain_weights(cpu, p, &plain));
    if (weights && !bpt_layout_equal(weights, plain)) return no_kernel();
    const int64_t patches = plan.in.n * plan.in.rows * plan.in.columns;
    const int64_t c = channels_of(&plan.in), k = channels_of(&plan.out), range = c / plan.n_ranges;
    const matrix m[] = {
        {range, patches, true, c}, {patches, k, false, patches}, {range, k, false, range}};
    BPT_TRY(create_product(cpu, &plan, m, plan.n_products > 1, false, out));
    BPT_TRY(bpt__kernel_operand(*out, BPT_SLOT_SRC, forward->layouts[BPT_SLOT_SRC]));
    BPT_TRY(bpt__kernel_operand(*out, BPT_SLOT_DIFF_DST, forward->layouts[BPT_SLOT_DST]));
    BPT_TRY(bpt__kernel_operand(*out, BPT_SLOT_DIFF_WEIGHTS, plain));
    if (!p->bias) return BPT_OK;
    BPT_TRY(bpt_layout_plain(cpu, BPT_F32, &p->k, 1, &bias));
    return bpt__kernel_operand(*out, BPT_SLOT_DIFF_BIAS, bias);
}

/* ---- filters ---- */

bpt_status bpt__winograd_reorder(bpt_cpu *cpu, const bpt_layout *from, const bpt_layout *to,
                                 bpt_kernel **out) {
    dnnl_dims_t dims, strides;
    assert(from->type == BPT_F32);
    const bool turned = to->filters == BPT__FILTERS_TURNED;
    const int64_t inputs = to->dims[turned ? 2 : 1], outputs = to->dims[turned ? 1 : 2];
    bpt__winograd plan = {.run = bpt__winograd_run_filters, .turned = turned};
    if (!bpt__md_strides(from->md, dims, strides) || strides[2] != dims[3] || strides[3] != 1)
        return no_kernel();
    plan.filters =
        (bpt_winograd_filters){to->type, dims[0], dims[1], strides[0], strides[1], outputs, inputs};
    BPT_TRY(bpt__kernel_new(cpu, NULL, &plan, out));
    BPT_TRY(bpt__kernel_operand(*out, BPT_SLOT_SRC, from));
    return bpt__kernel_operand(*out, BPT_SLOT_DST, to);
}
