/* What kernels of Winograd's algorithm do. */
#include "inner/cpu/cpu_winograd.h"
#include "inner/loops/vector_loops.h"

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

/* @param given the other factor's matrices if those are not in scratch memory
 * @param skip bytes from the first factor's matrices to the rows that are multiplied */
static bpt_status multiply(const bpt_kernel *k, unsigned worker, void *given, size_t skip) {
    const bpt__winograd *w = k->winograd;
    if (w->n_args > BPT__N_MATRICES)
        BPT_TRY(set(k, BPT__N_MATRICES, scratch(k, worker, BPT__N_MATRICES)));
    for (int64_t v = 0; v < bpt_winograd_values(w->in.type); v++) {
        for (int i = 0; i < BPT__N_MATRICES; i++)
            BPT_TRY(set(k, i,
                        first_matrix(k, worker, i, given) + (size_t)v * w->steps[i] +
                            (i == BPT__FACTOR ? skip : 0)));
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
        BPT_TRY(multiply(k, worker, operand(k, BPT_SLOT_WEIGHTS), 0));
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

/* Of the samples of product i.
 * @param x,dy where the operands of all samples begin */
static void transform_factors(const bpt_kernel *k, unsigned worker, int64_t i, const char *x,
                              const char *dy) {
    const bpt__winograd *w = k->winograd;
    const bpt_winograd_image in = of_product(w, &w->in, i), out = of_product(w, &w->out, i);
    bpt_winograd_windows(&in, x + (size_t)i * image_bytes(&w->in), scratch(k, worker, BPT__FACTOR));
    clear_missing(k, worker, &in);
    bpt_winograd_gradients(&out, dy + (size_t)i * image_bytes(&w->out),
                           scratch(k, worker, BPT__OTHER_FACTOR));
}

/* Products of some samples each, summed. */
static bpt_status sum_products(const bpt_kernel *k, unsigned worker, const char *x, const char *dy,
                               float *dw) {
    const bpt__winograd *w = k->winograd;
    const int64_t filters = w->filters.all_inputs * w->filters.all_outputs;
    float *product = scratch(k, worker, BPT__PRODUCT);
    const int64_t all = bpt_winograd_values(w->in.type) * bpt_winograd_plane(BPT_F32, filters);
    memset(product, 0, (size_t)all * sizeof *product);
    for (int64_t i = 0; i < w->n_products; i++) {
        transform_factors(k, worker, i, x, dy);
        BPT_TRY(multiply(k, worker, NULL, 0));
    }
    bpt_winograd_filter_gradients(&w->filters, product, dw);
    return BPT_OK;
}

/* The product of all samples, one range of input channels after the other. */
static bpt_status product_by_ranges(const bpt_kernel *k, unsigned worker, const char *x,
                                    const char *dy, float *dw) {
    const bpt__winograd *w = k->winograd;
    const int64_t channels = w->filters.all_inputs / w->n_ranges;
    transform_factors(k, worker, 0, x, dy);
    for (int64_t first = 0; first < w->filters.inputs; first += channels) {
        const int64_t left = w->filters.inputs - first;
        bpt_winograd_filters range = w->filters;
        range.inputs = left < channels ? left : channels;
        range.all_inputs = channels;
        BPT_TRY(multiply(k, worker, NULL, (size_t)first * bpt_value_bytes(w->in.type)));
        bpt_winograd_filter_gradients(&range, scratch(k, worker, BPT__PRODUCT),
                                      dw + first * range.input_stride);
    }
    return BPT_OK;
}

bpt_status bpt__winograd_run_weights(bpt_kernel *k, unsigned worker) {
    const bpt__winograd *w = k->winograd;
    const char *x = operand(k, w->in_slot), *dy = operand(k, w->out_slot);
    float *bias = operand(k, BPT_SLOT_DIFF_BIAS), *dw = operand(k, BPT_SLOT_DIFF_WEIGHTS);
    if (bias) sum_bias(&w->out, w->n, dy, w->filters.outputs, bias);
    return w->n_products > 1 ? sum_products(k, worker, x, dy, dw)
                             : product_by_ranges(k, worker, x, dy, dw);
}

/* ---- filters ---- */

bpt_status bpt__winograd_run_filters(bpt_kernel *k, unsigned worker) {
    (void)worker;
    const bpt__winograd *w = k->winograd;
    bpt_winograd_transform_filters(&w->filters, w->turned, operand(k, BPT_SLOT_SRC),
                                   operand(k, BPT_SLOT_DST));
    return BPT_OK;
}
