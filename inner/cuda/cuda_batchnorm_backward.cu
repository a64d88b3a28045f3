/* Three kernels: sums of each block's rows, those of the batch, the gradient of x. With M values of
 * a channel and x^ = (x - mean) * inverse:
 *   dbias = sum dy,  dweight = sum dy x^,  dx = scale (dy - dbias / M - x^ dweight / M). */
#include "inner/cuda/cuda_batchnorm.cuh"

/* How it is known where the ReLU has let something pass. */
typedef enum mask {
    MASK_NONE,
    MASK_X, /* by what forward has made of x */
    MASK_Y, /* by y: something was added */
} mask;

typedef struct channel_slopes {
    const float *mean, *inverse, *weight, *bias;
    const float *weight_gradient, *bias_gradient;
    int64_t pixels;
    const bpt_cuda_step *step;
} channel_slopes;

/* What a thread keeps of its channels to find the mask. */
template <int WIDTH> struct masker {
    float mean[WIDTH], scale[WIDTH], bias[WIDTH];

    __device__ masker(const channel_slopes &s, int64_t channel, bool by_x) {
        float inverse[WIDTH];
        bpt__load<WIDTH>(s.mean + channel, mean);
        bpt__load<WIDTH>(s.inverse + channel, inverse);
        bpt__load<WIDTH>(s.weight + channel, scale);
        if (by_x) bpt__load<WIDTH>(s.bias + channel, bias);
#pragma unroll
        for (int i = 0; i < WIDTH; i++) scale[i] = bpt__scale(scale[i], inverse[i]);
    }

    template <mask MASK> __device__ bool passes(int i, float x, float y) const {
        if (MASK == MASK_X) return bpt__normalise(x, mean[i], scale[i], bias[i]) > 0.0f;
        return MASK == MASK_NONE || y > 0.0f;
    }
};

/* ---- sums ---- */

/* Sums of dy and of dy * (x - mean). @param d_added NULL: not wanted */
template <typename T, int WIDTH, int UNROLL, mask MASK>
__global__ void __launch_bounds__(BPT__COLUMN_THREADS, BPT__GRADIENT_BLOCKS)
    sum_gradients(bpt__columns g, channel_slopes s, const T *x, const T *y, const T *dy, T *d_added,
                  float2 *partials) {
    __shared__ bpt__block_sums<WIDTH> sums;
    const bpt__column<WIDTH> at(g);
    const int64_t stride = g.down * g.c;
    float all[WIDTH] = {0}, all_x[WIDTH] = {0};
    if (at.there) {
        const masker<WIDTH> m(s, at.channel, MASK == MASK_X);
        bpt__walk<UNROLL>(g, at.row, false, [&](auto n, int64_t row) {
            const int64_t from = row * g.c + at.channel;
            bpt__pack<T, WIDTH> in[n.value], grad[n.value];
            [[maybe_unused]] bpt__pack<T, WIDTH> out[n.value];
            bpt__read_rows<WIDTH, n.value>(dy + from, stride, grad);
            bpt__read_rows<WIDTH, n.value>(x + from, stride, in);
            if constexpr (MASK == MASK_Y) bpt__read_rows<WIDTH, n.value>(y + from, stride, out);
#pragma unroll
            for (int i = 0; i < WIDTH; i++) {
                float sum = 0.0f, sum_x = 0.0f;
#pragma unroll
                for (int u = 0; u < n.value; u++) {
                    const float value = bpt__from(in[u].at[i]);
                    float of_y = 0.0f;
                    if constexpr (MASK == MASK_Y) of_y = bpt__from(out[u].at[i]);
                    if (!m.template passes<MASK>(i, value, of_y)) grad[u].at[i] = T(0);
                    const float d = bpt__from(grad[u].at[i]);
                    sum += d;
                    sum_x = fmaf(d, value - m.mean[i], sum_x);
                }
                all[i] += sum;
                all_x[i] += sum_x;
            }
            if (!d_added) return;
#pragma unroll
            for (int u = 0; u < n.value; u++)
                bpt__write<WIDTH>(d_added + from + u * stride, grad[u]);
        });
    }
    bpt__write_sums<WIDTH>(g, all, all_x, &sums, partials);
}

static __global__ void __launch_bounds__(BPT__SUM_THREADS)
    find_gradients(bpt__columns g, const float2 *partials, const float *inverse,
                   float *weight_gradient, float *bias_gradient) {
    const int64_t c = bpt__sum_channel();
    const double2 sum = bpt__sum_blocks(g, partials, [](int64_t, float2 of_block) {
        return double2{(double)of_block.x, (double)of_block.y};
    });
    if (threadIdx.x >= BPT__SUM_ACROSS || c >= g.c) return;
    bias_gradient[c] = (float)sum.x;
    weight_gradient[c] = (float)(sum.y * (double)inverse[c]);
}

/* ---- gradient of x ---- */

/* Factors of (x - mean) and constants. */
template <int WIDTH>
__device__ static void load_slopes(const channel_slopes &s, int64_t channel, int64_t rows,
                                   const float scale[WIDTH], float slope[WIDTH],
                                   float constant[WIDTH]) {
    const float part = rows > 0 ? 1.0f / (float)rows : 0.0f;
    float inverse[WIDTH];
    bpt__load<WIDTH>(s.inverse + channel, inverse);
    bpt__load<WIDTH>(s.weight_gradient + channel, slope);
    bpt__load<WIDTH>(s.bias_gradient + channel, constant);
#pragma unroll
    for (int i = 0; i < WIDTH; i++) {
        slope[i] *= -scale[i] * inverse[i] * part;
        constant[i] *= -scale[i] * part;
    }
}

template <typename T, int WIDTH, int UNROLL, mask MASK>
__global__ void __launch_bounds__(BPT__COLUMN_THREADS, BPT__GRADIENT_BLOCKS)
    pass_back(bpt__columns g, channel_slopes s, const T *x, const T *y, const T *dy, T *dx) {
    const bpt__column<WIDTH> at(g);
    const int64_t stride = g.down * g.c, rows = bpt__rows_there(g, s.pixels, s.step);
    if (!at.there) return;
    const masker<WIDTH> m(s, at.channel, MASK == MASK_X);
    float slope[WIDTH], constant[WIDTH];
    load_slopes<WIDTH>(s, at.channel, rows, m.scale, slope, constant);
    bpt__walk<UNROLL>(g, at.row, true, [&](auto n, int64_t row) {
        const int64_t from = row * g.c + at.channel;
        bpt__pack<T, WIDTH> in[n.value], grad[n.value];
        [[maybe_unused]] bpt__pack<T, WIDTH> out[n.value];
        bpt__read_rows<WIDTH, n.value>(dy + from, stride, grad);
        bpt__read_rows<WIDTH, n.value>(x + from, stride, in);
        if constexpr (MASK == MASK_Y) bpt__read_rows<WIDTH, n.value>(y + from, stride, out);
#pragma unroll
        for (int u = 0; u < n.value; u++) {
            const bool is_there = row + u * g.down < rows;
            float result[WIDTH];
#pragma unroll
            for (int i = 0; i < WIDTH; i++) {
                const float value = bpt__from(in[u].at[i]);
                float of_y = 0.0f;
                if constexpr (MASK == MASK_Y) of_y = bpt__from(out[u].at[i]);
                const bool passes = m.template passes<MASK>(i, value, of_y);
                const float d = passes ? bpt__from(grad[u].at[i]) : 0.0f;
                const float rest = fmaf(value - m.mean[i], slope[i], constant[i]);
                result[i] = is_there ? fmaf(d, m.scale[i], rest) : 0.0f;
            }
            bpt__store<WIDTH>(result, dx + from + u * stride);
        }
    });
}

/* ---- launches ---- */

/* A layer's backward pass, with types forgotten. */
typedef struct pass {
    bpt_cuda_stream stream;
    const bpt_cuda_batchnorm *bn;
    channel_slopes slopes;
    const void *x, *y, *dy;
    void *dx, *d_added;
    float2 *partials;
    float *weight_gradient, *bias_gradient;
} pass;

template <typename T> static bpt__columns cut(const bpt_cuda_batchnorm *bn) {
    return bpt__cut_columns(bn->rows, bn->c, bpt__unroll<T>(BPT__GRADIENT_UNROLL),
                            BPT__GRADIENT_BLOCKS);
}

template <typename T, int WIDTH, mask MASK> static bpt_status launch_sums(const pass *p) {
    const bpt__columns g = cut<T>(p->bn);
    BPT__LAUNCH(sum_gradients<T, WIDTH, bpt__unroll<T>(BPT__GRADIENT_UNROLL), MASK>,
                bpt__column_grid(g), BPT__COLUMN_THREADS, p->stream, g, p->slopes, (const T *)p->x,
                (const T *)p->y, (const T *)p->dy, (T *)p->d_added, p->partials);
    BPT__LAUNCH(find_gradients, bpt__sum_grid(g.c), BPT__SUM_THREADS, p->stream, g, p->partials,
                p->slopes.inverse, p->weight_gradient, p->bias_gradient);
    return BPT_OK;
}

template <typename T, int WIDTH, mask MASK> static bpt_status launch_data(const pass *p) {
    const bpt__columns g = cut<T>(p->bn);
    BPT__LAUNCH(pass_back<T, WIDTH, bpt__unroll<T>(BPT__GRADIENT_UNROLL), MASK>,
                bpt__column_grid(g), BPT__COLUMN_THREADS, p->stream, g, p->slopes, (const T *)p->x,
                (const T *)p->y, (const T *)p->dy, (T *)p->dx);
    return BPT_OK;
}

static bpt_status put_sums(const pass *p, mask by) {
    return bpt__for_columns(p->bn->type, p->bn->c, [&](auto value, auto width) -> bpt_status {
        using T = decltype(value);
        constexpr int W = decltype(width)::value;
        return by == MASK_NONE ? launch_sums<T, W, MASK_NONE>(p)
               : by == MASK_X  ? launch_sums<T, W, MASK_X>(p)
                               : launch_sums<T, W, MASK_Y>(p);
    });
}

static bpt_status put_data(const pass *p, mask by) {
    return bpt__for_columns(p->bn->type, p->bn->c, [&](auto value, auto width) -> bpt_status {
        using T = decltype(value);
        constexpr int W = decltype(width)::value;
        return by == MASK_NONE ? launch_data<T, W, MASK_NONE>(p)
               : by == MASK_X  ? launch_data<T, W, MASK_X>(p)
                               : launch_data<T, W, MASK_Y>(p);
    });
}

extern "C" size_t bpt_cuda_batchnorm_workspace(const bpt_cuda_batchnorm *bn) {
    const bool wide_type = bn->type == BPT_F32;
    if (bn->c == 0) return 0;
    const bpt__columns moments =
        bpt__cut_columns(bn->rows, bn->c,
                         wide_type ? bpt__unroll<float>(BPT__MOMENTS_UNROLL)
                                   : bpt__unroll<bpt_bf16>(BPT__MOMENTS_UNROLL),
                         BPT__MOMENTS_BLOCKS);
    const bpt__columns gradients = wide_type ? cut<float>(bn) : cut<bpt_bf16>(bn);
    const size_t forward = bpt__partial_bytes(moments), backward = bpt__partial_bytes(gradients);
    return forward > backward ? forward : backward;
}

extern "C" bpt_status
bpt_cuda_batchnorm_backward(bpt_cuda_stream stream, const bpt_cuda_batchnorm *bn,
                            const bpt_cuda_step *step, const bpt_cuda_batchnorm_memory *memory,
                            const void *x, const void *y, const void *dy, const float *weight,
                            const float *bias, void *dx, void *d_added, float *weight_gradient,
                            float *bias_gradient) {
    const mask by = !bn->relu ? MASK_NONE : bn->add ? MASK_Y : MASK_X;
    const bool same = by == MASK_NONE && d_added == dy; /* nothing to be written */
    const pass sums = {
        stream,
        bn,
        {memory->mean, memory->inverse, weight, bias, weight_gradient, bias_gradient, bn->pixels,
         step},
        x,
        y,
        dy,
        dx,
        same ? NULL : d_added,
        (float2 *)memory->workspace,
        weight_gradient,
        bias_gradient,
    };
    if (bn->c == 0) return BPT_OK;
    BPT_TRY(put_sums(&sums, by));
    if (!dx) return BPT_OK;
    pass data = sums;
    if (d_added) data.dy = d_added; /* is masked already */
    return put_data(&data, d_added ? MASK_NONE : by);
}
