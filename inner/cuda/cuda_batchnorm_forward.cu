/* Three kernels: means and deviations of each block's rows, those of the batch, the values. */
#include "inner/cuda/cuda_batchnorm.cuh"

/* ---- mean and variance ---- */

/* A thread's rows: it sums distances to the first of them, so that squares are not much larger than
 * what is left of them when the mean's is taken off. */
template <typename T, int WIDTH, int UNROLL>
__global__ void __launch_bounds__(BPT__COLUMN_THREADS, BPT__MOMENTS_BLOCKS)
    sum_moments(bpt__columns whole, int64_t pixels, const bpt_cuda_step *step, const T *x,
                float2 *partials) {
    __shared__ bpt__block_sums<WIDTH> sums;
    __shared__ int counts[BPT__COLUMN_THREADS]; /* rows of each of the block's `down` */
    const bpt__columns g = bpt__there(whole, UNROLL, pixels, step);
    const bpt__column<WIDTH> at(g);
    const int64_t first = (int64_t)blockIdx.y * g.down * UNROLL + at.row;
    const int64_t stride = g.down * g.c;
    float shift[WIDTH] = {0}, mean[WIDTH] = {0}, square[WIDTH] = {0};
    int count = 0;
    if (at.there && first < g.rows) {
        bpt__load<WIDTH>(x + first * g.c + at.channel, shift);
        bpt__walk<UNROLL>(g, at.row, false, [&](auto n, int64_t row) {
            bpt__pack<T, WIDTH> in[n.value];
            bpt__read_rows<WIDTH, n.value>(x + row * g.c + at.channel, stride, in);
            count += n.value;
#pragma unroll
            for (int i = 0; i < WIDTH; i++) {
                float sum = 0.0f, of_squares = 0.0f;
#pragma unroll
                for (int u = 0; u < n.value; u++) {
                    const float d = bpt__from(in[u].at[i]) - shift[i];
                    sum += d;
                    of_squares = fmaf(d, d, of_squares);
                }
                mean[i] += sum;
                square[i] += of_squares;
            }
        });
        const float part = 1.0f / (float)count;
#pragma unroll
        for (int i = 0; i < WIDTH; i++) {
            square[i] -= mean[i] * (mean[i] * part);
            mean[i] = fmaf(mean[i], part, shift[i]);
        }
    }
    bpt__store<WIDTH>(mean, sums.first + threadIdx.x * WIDTH);
    bpt__store<WIDTH>(square, sums.second + threadIdx.x * WIDTH);
    if (threadIdx.x % g.across == 0) counts[threadIdx.x / g.across] = count;
    __syncthreads();

    /* The block's, about the mean of its first row. */
    const int channels = g.across * WIDTH;
    const double2 sum = bpt__sum_rows<WIDTH>(g, &sums, [&](int r, int channel) {
        const int i = r * channels + channel;
        const double d = (double)sums.first[i] - (double)sums.first[channel];
        return double2{counts[r] * d, (double)sums.second[i] + counts[r] * d * d};
    });
    const double rows = (double)bpt__rows_of_block(g, UNROLL, blockIdx.y);
    if ((int)threadIdx.x >= channels) return;
    const double move = rows > 0.0 ? sum.x / rows : 0.0;
    bpt__write_partial<WIDTH>(g, (double)sums.first[threadIdx.x] + move, sum.y - sum.x * move,
                              partials);
}

typedef struct statistics {
    float eps;
    int64_t pixels;
    const bpt_cuda_step *step;
    const float *running_mean, *running_variance;
    float *mean, *inverse, *mean_gradient, *variance_gradient;
} statistics;

/* The batch's, about the mean of the first block (Chan, Golub, LeVeque 1983). */
static __global__ void __launch_bounds__(BPT__SUM_THREADS)
    find_statistics(bpt__columns whole, int unroll, const float2 *partials, statistics s) {
    const bpt__columns g = bpt__there(whole, unroll, s.pixels, s.step);
    const int64_t c = bpt__sum_channel();
    const double first = c < g.c ? (double)partials[c].x : 0.0;
    const double2 sum = bpt__sum_blocks(g, partials, [&](int64_t block, float2 of_block) {
        const double n = (double)bpt__rows_of_block(g, unroll, block);
        const double d = (double)of_block.x - first;
        return double2{n * d, (double)of_block.y + n * d * d};
    });
    if (threadIdx.x >= BPT__SUM_ACROSS || c >= g.c) return;
    const double n = g.rows > 0 ? (double)g.rows : 1.0;
    const double mean = first + sum.x / n, rest = sum.y - sum.x * (sum.x / n);
    const double squares = rest < 0.0 ? 0.0 : rest; /* no number stays none */
    s.mean[c] = (float)mean;
    s.inverse[c] = (float)(1.0 / sqrt(squares / n + (double)s.eps));
    const double share = (double)s.step->n_samples / (double)s.step->denominator;
    const double known = (double)s.running_variance[c];
    const double unbiased = n > 1.0 ? squares / (n - 1.0) : known;
    s.mean_gradient[c] = (float)(share * ((double)s.running_mean[c] - mean));
    s.variance_gradient[c] = (float)(share * (known - unbiased));
}

/* ---- values ---- */

typedef struct channel_values {
    const float *mean, *weight, *bias;
    const float *inverse;  /* NULL: of the variance */
    const float *variance; /* running */
    float eps;
    bool relu;
} channel_values;

/* Merges of several ranks could take a variance below zero. One that is no number makes the scale
 * none, for the loss to tell. */
__device__ static float inverse_of(float variance, float eps) {
    const double v = (double)variance;
    return isfinite(v) ? (float)(1.0 / sqrt(fmax(v, 0.0) + (double)eps)) : nanf("");
}

template <int WIDTH>
__device__ static void load_scale(const channel_values &v, int64_t channel, float scale[WIDTH]) {
    float inverse[WIDTH];
    bpt__load<WIDTH>(v.weight + channel, scale);
    bpt__load<WIDTH>((v.inverse ? v.inverse : v.variance) + channel, inverse);
#pragma unroll
    for (int i = 0; i < WIDTH; i++)
        scale[i] = bpt__scale(scale[i], v.inverse ? inverse[i] : inverse_of(inverse[i], v.eps));
}

template <typename T, int WIDTH, int UNROLL, bool ADD>
__global__ void __launch_bounds__(BPT__COLUMN_THREADS, 2)
    normalise(bpt__columns g, channel_values v, const T *x, const T *added, T *y) {
    const bpt__column<WIDTH> at(g);
    const int64_t stride = g.down * g.c;
    float mean[WIDTH], scale[WIDTH], bias[WIDTH];
    if (!at.there) return;
    bpt__load<WIDTH>(v.mean + at.channel, mean);
    bpt__load<WIDTH>(v.bias + at.channel, bias);
    load_scale<WIDTH>(v, at.channel, scale);
    bpt__walk<UNROLL>(g, at.row, true, [&](auto n, int64_t row) {
        const int64_t from = row * g.c + at.channel;
        bpt__pack<T, WIDTH> in[n.value];
        [[maybe_unused]] bpt__pack<T, WIDTH> other[n.value];
        bpt__read_rows<WIDTH, n.value>(x + from, stride, in);
        if constexpr (ADD) bpt__read_rows<WIDTH, n.value>(added + from, stride, other);
#pragma unroll
        for (int u = 0; u < n.value; u++) {
            float out[WIDTH];
#pragma unroll
            for (int i = 0; i < WIDTH; i++) {
                out[i] = bpt__normalise(bpt__from(in[u].at[i]), mean[i], scale[i], bias[i]);
                if constexpr (ADD) out[i] += bpt__from(other[u].at[i]);
                if (v.relu && out[i] < 0.0f) out[i] = 0.0f; /* no number stays none */
            }
            bpt__store<WIDTH>(out, y + from + u * stride);
        }
    });
}

/* ---- launches ---- */

template <typename T, int WIDTH, bool ADD>
static bpt_status launch_normalise(bpt_cuda_stream stream, const bpt_cuda_batchnorm *bn,
                                   const channel_values &v, const void *x, const void *added,
                                   void *y) {
    constexpr int unroll = bpt__unroll<T>(ADD ? 2 : 4);
    const bpt__columns g = bpt__cut_columns(bn->rows, bn->c, unroll, 2);
    BPT__LAUNCH(normalise<T, WIDTH, unroll, ADD>, bpt__column_grid(g), BPT__COLUMN_THREADS, stream,
                g, v, (const T *)x, (const T *)added, (T *)y);
    return BPT_OK;
}

static bpt_status put_values(bpt_cuda_stream stream, const bpt_cuda_batchnorm *bn,
                             const channel_values &v, const void *x, const void *added, void *y) {
    return bpt__for_columns(bn->type, bn->c, [&](auto value, auto width) -> bpt_status {
        using T = decltype(value);
        return bn->add
                   ? launch_normalise<T, decltype(width)::value, true>(stream, bn, v, x, added, y)
                   : launch_normalise<T, decltype(width)::value, false>(stream, bn, v, x, added, y);
    });
}

static bpt_status put_statistics(bpt_cuda_stream stream, const bpt_cuda_batchnorm *bn,
                                 const void *x, float2 *partials, const statistics &s) {
    return bpt__for_columns(bn->type, bn->c, [&](auto value, auto width) -> bpt_status {
        using T = decltype(value);
        constexpr int unroll = bpt__unroll<T>(BPT__MOMENTS_UNROLL);
        const bpt__columns g = bpt__cut_columns(bn->rows, bn->c, unroll, BPT__MOMENTS_BLOCKS);
        BPT__LAUNCH(sum_moments<T, decltype(width)::value, unroll>, bpt__column_grid(g),
                    BPT__COLUMN_THREADS, stream, g, s.pixels, s.step, (const T *)x, partials);
        BPT__LAUNCH(find_statistics, bpt__sum_grid(g.c), BPT__SUM_THREADS, stream, g, unroll,
                    partials, s);
        return BPT_OK;
    });
}

extern "C" bpt_status
bpt_cuda_batchnorm_forward(bpt_cuda_stream stream, const bpt_cuda_batchnorm *bn,
                           const bpt_cuda_step *step, const bpt_cuda_batchnorm_memory *memory,
                           const void *x, const void *added, const float *weight, const float *bias,
                           const float *running_mean, const float *running_variance, void *y,
                           float *mean_gradient, float *variance_gradient) {
    if (bn->c == 0) return BPT_OK;
    const statistics s = {bn->eps,         bn->pixels,       step,
                          running_mean,    running_variance, memory->mean,
                          memory->inverse, mean_gradient,    variance_gradient};
    const channel_values v = {memory->mean, weight, bias, memory->inverse, NULL, bn->eps, bn->relu};
    BPT_TRY(put_statistics(stream, bn, x, (float2 *)memory->workspace, s));
    return put_values(stream, bn, v, x, added, y);
}

extern "C" bpt_status bpt_cuda_batchnorm_evaluate(bpt_cuda_stream stream,
                                                  const bpt_cuda_batchnorm *bn, const void *x,
                                                  const void *added, const float *weight,
                                                  const float *bias, const float *running_mean,
                                                  const float *running_variance, void *y) {
    if (bn->c == 0) return BPT_OK;
    const channel_values v = {running_mean,     weight,  bias,    NULL,
                              running_variance, bn->eps, bn->relu};
    return put_values(stream, bn, v, x, added, y);
}
