/* Winograd's transforms of filters, and of their gradients. */
#include "base/clones.h"
#include "inner/loops/winograd_transforms.h"

/* Filters of one channel of the first dimension of u and eight of the second, as
 * [3][3][FILTER_LANES]. */
typedef struct {
    int64_t first, second;               /* channels */
    int64_t first_stride, second_stride; /* in floats of w */
    int64_t rows, columns;               /* with spare channels */
    bool turned;
} filter_order;

enum { FILTER_LANES = 8, FILTER_VALUES = FILTER * FILTER };

static filter_order order_of(const bpt_winograd_filters *f, bool turned) {
    if (turned)
        return (filter_order){
            f->outputs,    f->inputs, f->output_stride, f->input_stride, f->all_outputs,
            f->all_inputs, true};
    return (filter_order){
        f->inputs,      f->outputs, f->input_stride, f->output_stride, f->all_inputs,
        f->all_outputs, false};
}

INLINE void collect(const filter_order *o, const float *restrict w, int64_t a, int64_t b,
                    float *restrict out) {
    for (int l = 0; l < FILTER_LANES; l++) {
        const bool spare = a >= o->first || b + l >= o->second;
        const float *from = spare ? NULL : w + a * o->first_stride + (b + l) * o->second_stride;
        for (int i = 0; i < FILTER_VALUES; i++)
            out[i * FILTER_LANES + l] = spare ? 0.0f : from[o->turned ? FILTER_VALUES - 1 - i : i];
    }
}

INLINE void transform_filters(transform *one, bpt_value_type type, int window,
                              const filter_order *o, const float *restrict w, void *restrict u) {
    enum { L = FILTER_LANES };
    const int64_t plane = bpt_winograd_plane(type, o->rows * o->columns);
    int64_t at = 0;
    for (int64_t a = 0; a < o->rows; a++)
        for (int64_t b = 0; b < o->columns; b += L, at += L) {
            float x[FILTER_VALUES * L], out[MAX_WINDOW * MAX_WINDOW * L];
            collect(o, w, a, b, x);
            in_both(one, L, FILTER, window, x, FILTER * L, L, out, L);
            for (int i = 0; i < window * window; i++)
                put(type, out + i * L, L, bpt_place_at(type, u, at + i * plane));
        }
}

BPT_CLONES void bpt_winograd_transform_filters(const bpt_winograd_filters *f, bool turned,
                                               const float *restrict w, void *restrict u) {
    const filter_order o = order_of(f, turned);
    if (f->type == BPT_BF16)
        transform_filters(transform_small_filter, BPT_BF16, 4, &o, w, u);
    else
        transform_filters(transform_filter, BPT_F32, 6, &o, w, u);
}

INLINE void scatter(const filter_order *o, const float *restrict x, int64_t a, int64_t b,
                    float *restrict dw) {
    for (int64_t l = 0; l < FILTER_LANES && b + l < o->second; l++) {
        float *to = dw + a * o->first_stride + (b + l) * o->second_stride;
        for (int i = 0; i < FILTER_VALUES; i++) to[i] = x[i * FILTER_LANES + l];
    }
}

INLINE void filter_gradients(transform *one, int window, const filter_order *o,
                             const float *restrict du, float *restrict dw) {
    enum { L = FILTER_LANES };
    const int64_t plane = bpt_winograd_plane(BPT_F32, o->rows * o->columns);
    for (int64_t a = 0; a < o->first; a++)
        for (int64_t b = 0; b < o->columns; b += L, du += L) {
            float x[FILTER_VALUES * L];
            in_both(one, L, window, FILTER, du, window * plane, plane, x, L);
            scatter(o, x, a, b, dw);
        }
}

BPT_CLONES void bpt_winograd_filter_gradients(const bpt_winograd_filters *f,
                                              const float *restrict du, float *restrict dw) {
    const filter_order o = order_of(f, false);
    if (f->type == BPT_BF16)
        filter_gradients(transform_small_filter_gradient, 4, &o, du, dw);
    else
        filter_gradients(transform_filter_gradient, 6, &o, du, dw);
}
