#include "inner/cuda/cuda_bias.h"
#include "inner/cuda/cuda_columns.cuh"
#include "inner/cuda/cuda_values.h"

/* Rows at once, and blocks on a processor. */
constexpr int UNROLL = 4, BLOCKS = 2;

template <typename T, int WIDTH>
__global__ void __launch_bounds__(BPT__COLUMN_THREADS)
    add_bias(bpt__columns g, T *y, const float *bias, bool relu) {
    const bpt__column<WIDTH> at(g);
    const int64_t stride = g.down * g.c;
    float shift[WIDTH];
    if (!at.there) return;
    bpt__load<WIDTH>(bias + at.channel, shift);
    bpt__walk<UNROLL>(g, at.row, true, [&](auto n, int64_t row) {
        T *const to = y + row * g.c + at.channel;
        bpt__pack<T, WIDTH> in[n.value];
        bpt__read_rows<WIDTH, n.value>(to, stride, in);
#pragma unroll
        for (int u = 0; u < n.value; u++) {
            float out[WIDTH];
#pragma unroll
            for (int i = 0; i < WIDTH; i++) {
                out[i] = bpt__from(in[u].at[i]) + shift[i];
                if (relu && out[i] < 0.0f) out[i] = 0.0f; /* no number stays none */
            }
            bpt__store<WIDTH>(out, to + u * stride);
        }
    });
}

/* @param y NULL: without the ReLU, and dx is not written */
template <typename T, int WIDTH, bool RELU>
__global__ void __launch_bounds__(BPT__COLUMN_THREADS)
    sum_bias(bpt__columns g, const T *y, const T *dy, T *dx, float2 *partials) {
    __shared__ bpt__block_sums<WIDTH> sums;
    const bpt__column<WIDTH> at(g);
    const int64_t stride = g.down * g.c;
    const float none[WIDTH] = {0};
    float all[WIDTH] = {0};
    if (at.there)
        bpt__walk<UNROLL>(g, at.row, false, [&](auto n, int64_t row) {
            const int64_t from = row * g.c + at.channel;
            bpt__pack<T, WIDTH> grad[n.value];
            [[maybe_unused]] bpt__pack<T, WIDTH> out[n.value];
            bpt__read_rows<WIDTH, n.value>(dy + from, stride, grad);
            if constexpr (RELU) bpt__read_rows<WIDTH, n.value>(y + from, stride, out);
#pragma unroll
            for (int i = 0; i < WIDTH; i++) {
                float sum = 0.0f;
#pragma unroll
                for (int u = 0; u < n.value; u++) {
                    if constexpr (RELU)
                        if (!(bpt__from(out[u].at[i]) > 0.0f)) grad[u].at[i] = T(0);
                    sum += bpt__from(grad[u].at[i]);
                }
                all[i] += sum;
            }
            if constexpr (RELU)
#pragma unroll
                for (int u = 0; u < n.value; u++)
                    bpt__write<WIDTH>(dx + from + u * stride, grad[u]);
        });
    bpt__write_sums<WIDTH>(g, all, none, &sums, partials);
}

static __global__ void __launch_bounds__(BPT__SUM_THREADS)
    find_bias(bpt__columns g, const float2 *partials, float *bias_gradient) {
    const int64_t c = bpt__sum_channel();
    const double2 sum = bpt__sum_blocks(g, partials, [](int64_t, float2 of_block) {
        return double2{(double)of_block.x, 0.0};
    });
    if (threadIdx.x < BPT__SUM_ACROSS && c < g.c) bias_gradient[c] = (float)sum.x;
}

extern "C" bpt_status bpt_cuda_bias(bpt_cuda_stream stream, void *y, const float *bias, bool relu,
                                    bpt_value_type type, int64_t rows, int64_t c) {
    if (rows == 0 || c == 0) return BPT_OK;
    const bpt__columns g = bpt__cut_columns(rows, c, UNROLL, BLOCKS);
    return bpt__for_columns(type, c, [&](auto value, auto width) -> bpt_status {
        using T = decltype(value);
        BPT__LAUNCH(add_bias<T, decltype(width)::value>, bpt__column_grid(g), BPT__COLUMN_THREADS,
                    stream, g, (T *)y, bias, relu);
        return BPT_OK;
    });
}

extern "C" size_t bpt_cuda_bias_workspace(int64_t rows, int64_t c) {
    return c == 0 ? 0 : bpt__partial_bytes(bpt__cut_columns(rows, c, UNROLL, BLOCKS));
}

extern "C" bpt_status bpt_cuda_bias_backward(bpt_cuda_stream stream, const void *y, const void *dy,
                                             bpt_value_type type, int64_t rows, int64_t c, void *dx,
                                             float *bias_gradient, void *workspace) {
    if (c == 0) return BPT_OK;
    if (!bias_gradient)
        return y ? bpt_cuda_relu_backward(stream, y, dy, type, rows * c, dx) : BPT_OK;
    const bpt__columns g = bpt__cut_columns(rows, c, UNROLL, BLOCKS);
    float2 *const partials = (float2 *)workspace;
    BPT_TRY(bpt__for_columns(type, c, [&](auto value, auto width) -> bpt_status {
        using T = decltype(value);
        constexpr int W = decltype(width)::value;
        const dim3 grid = bpt__column_grid(g);
        if (y)
            BPT__LAUNCH(sum_bias<T, W, true>, grid, BPT__COLUMN_THREADS, stream, g, (const T *)y,
                        (const T *)dy, (T *)dx, partials);
        else
            BPT__LAUNCH(sum_bias<T, W, false>, grid, BPT__COLUMN_THREADS, stream, g,
                        (const T *)NULL, (const T *)dy, (T *)NULL, partials);
        return BPT_OK;
    }));
    BPT__LAUNCH(find_bias, bpt__sum_grid(c), BPT__SUM_THREADS, stream, g, partials, bias_gradient);
    return BPT_OK;
}
