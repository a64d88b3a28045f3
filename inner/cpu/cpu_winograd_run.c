/* What kernels of Winograd's algorithm do. */
#include "inner/cpu/cpu_winograd.h"
#include "inner/vector_loops.h"

#include <string.h>

/* @return where an operand of the kernel is */
static void *operand(const bpt_kernel *k, bpt_slot slot) {
    void *where = NULL;
    const int arg = k->arg_of_slot[slot];
    if (arg >= 0) dnnl_memory_get_data_handle(k->args[arg].memory, &where);
    return where;
}

/* @return where a matrix of the product is in the worker's scratch memory */
static void *scratch(const bpt_kernel *k, unsigned worker, int matrix) {
    return (void *)(k->cpu->scratch[worker] + k->winograd->offsets[matrix]);
}

/* @param given where the first matrix is of those that are not in scratch memory */
static char *first_matrix(const bpt_kernel *k, unsigned worker, int matrix, void *given) {
    return k->winograd->in_scratch[matrix] ? scratch(k, worker, matrix) : given;
}

static bpt_status set(const bpt_kernel *k, int arg, char *where) {
    BPT__DNNL_TRY(dnnl_memory_set_data_handle(k->winograd->args[arg].memory, where));
    return BPT_OK;
}

/* @param given the other factor's matrices if those are not in scratch memory */
static bpt_status multiply(const bpt_kernel *k, unsigned worker, void *given) {
    const bpt__winograd *w = k->winograd;
    if (w->n_args > BPT__N_MATRICES)
        BPT_TRY(set(k, BPT__N_MATRICES, scratch(k, worker, BPT__N_MATRICES)));
    for (int64_t v = 0; v < bpt_winograd_values(w->in.type); v++) {
        for (int i = 0; i < BPT__N_MATRICES; i++)
            BPT_TRY(set(k, i, first_matrix(k, worker, i, given) + (size_t)v * w->steps[i]));
        BPT__DNNL_TRY(
            dnnl_primitive_execute(k->primitive, k->cpu->streams[worker], w->n_args, w->args));
    }
    return BPT_OK;
}

/* @return the image of product i's samples */
static bpt_winograd_image of_product(const bpt__winograd *w, const bpt_winograd_image *m,
                                     int64_t i) {
    bpt_winograd_image part = *m;
    const int64_t left = w->n - i * m->n;
    part.there = left < m->n ? left : m->n;
    return part;
}

/* Of a product of all its samples. */
static size_t image_bytes(const bpt_winograd_image *m) {
    return (size_t)(m->n * m->blocks * m->lanes * m->h * m->w) * bpt_value_bytes(m->type);
}

bpt_status bpt__winograd_run_data(bpt_kernel *k, unsigned worker) {
    const bpt__winograd *w = k->winograd;
    const float *bias = operand(k, BPT_SLOT_BIAS);
    const char *x = operand(k, w->in_slot);
    char *y = operand(k, w->out_slot);
    for (int64_t i = 0; i < w->n_products; i++) {
        const bpt_winograd_image in = of_product(w, &w->in, i), out = of_product(w, &w->out, i);
        bpt_winograd_windows(&in, x, scratch(k, worker, BPT__FACTOR));
        BPT_TRY(multiply(k, worker, operand(k, BPT_SLOT_WEIGHTS)));
        bpt_winograd_results(&out, scratch(k, worker, BPT__PRODUCT), bias, w->n_bias, w->relu, y);
        x += image_bytes(&w->in);
        y += image_bytes(&w->out);
    }
    return BPT_OK;
}

/* ---- backward weights ---- */

/* @param n samples; @param bias shape [outputs] */
static void sum_bias(const bpt_winograd_image *m, int64_t n, const char *dy, int64_t outputs,
                     float *bias) {
    const int64_t block = m->h * m->w * m->lanes * (int64_t)bpt_value_bytes(m->type);
    for (int64_t b = 0; b < m->blocks; b++) {
        double sums[BPT_MAX_SUM_LANES] = {0};
        for (int64_t i = 0; i < n; i++)
            bpt_sum_lanes(m->type, dy + (i * m->blocks + b) * block, m->h, m->w * m->lanes, m->w,
                          m->lanes, sums);
        for (int64_t l = 0; l < m->lanes && b * m->lanes + l < outputs; l++)
            bias[b * m->lanes + l] = (float)sums[l];
    }
}

/* Patches of samples that are not there add nothing: what a product before has left of them is
 * multiplied by zeros. */
static void clear_missing(const bpt_kernel *k, unsigned worker, const bpt_winograd_image *in) {
    const int64_t there = in->there * in->rows * in->columns * in->blocks * in->lanes;
    const size_t size = bpt_value_bytes(in->type);
    char *matrix = scratch(k, worker, BPT__FACTOR);
    for (int64_t v = 0; v < bpt_winograd_values(in->type) && in->there < in->n; v++)
        memset(matrix + (size_t)v * k->winograd->steps[BPT__FACTOR] + (size_t)there * size, 0,
               (size_t)(bpt_winograd_matrix(in) - there) * size);
}

bpt_status bpt__winograd_run_weights(bpt_kernel *k, unsigned worker) {
    const bpt__winograd *w = k->winograd;
    const char *x = operand(k, w->in_slot), *dy = operand(k, w->out_slot);
    float *bias = operand(k, BPT_SLOT_DIFF_BIAS), *product = scratch(k, worker, BPT__PRODUCT);
    const int64_t filters = w->in.blocks * w->out.blocks * w->in.lanes * w->out.lanes;
    if (bias) sum_bias(&w->out, w->n, dy, w->filters.outputs, bias);
    if (w->n_products > 1) /* each adds to it */
        memset(product, 0,
               (size_t)(bpt_winograd_values(w->in.type) * bpt_winograd_plane(BPT_F32, filters)) *
                   sizeof *product);
    for (int64_t i = 0; i < w->n_products; i++) {
        const bpt_winograd_image in = of_product(w, &w->in, i), out = of_product(w, &w->out, i);
        bpt_winograd_windows(&in, x, scratch(k, worker, BPT__FACTOR));
        clear_missing(k, worker, &in);
        bpt_winograd_gradients(&out, dy, scratch(k, worker, BPT__OTHER_FACTOR));
        BPT_TRY(multiply(k, worker, NULL));
        x += image_bytes(&w->in);
        dy += image_bytes(&w->out);
    }
    bpt_winograd_filter_gradients(&w->filters, product, operand(k, BPT_SLOT_DIFF_WEIGHTS));
    return BPT_OK;
}

/* ---- filters ---- */

bpt_status bpt__winograd_run_filters(bpt_kernel *k, unsigned worker) {
    (void)worker;
    const bpt__winograd *w = k->winograd;
    bpt_winograd_transform_filters(&w->filters, w->turned, operand(k, BPT_SLOT_SRC),
                                   operand(k, BPT_SLOT_DST));
    return BPT_OK;
}
