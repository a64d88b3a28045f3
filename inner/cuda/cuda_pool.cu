/* Pooling in [N, H, W, C]: a thread computes one channel of a pixel, or two, four or eight
 * neighbouring ones.
 *
 * The backward pass gathers: each pixel of x looks at the windows that it is in, so that nothing is
 * added by several threads at once. */
#include "inner/cuda/cuda_device.cuh"
#include "inner/cuda/cuda_windows.h"

/* Rows or columns. Numbers of pixels of one fit an int: its divisions are a multiple faster. */
struct axis {
    int size, windows; /* of x, of y */
    int kernel, stride, pad;
};

/* A layer, as kernels take it. */
struct pooling {
    int64_t n, c;
    axis rows, columns;
    bool counts_padding;
};

/* [first, end) */
struct range {
    int first, end;
};

static __device__ int start_of(const axis &axis, int window) {
    return window * axis.stride - axis.pad;
}

/* The part of a window that lies on the input. */
static __device__ range inside(const axis &axis, int window) {
    const int first = start_of(axis, window), end = first + axis.kernel;
    return {first > 0 ? first : 0, end < axis.size ? end : axis.size};
}

/* The windows that number @p i of the input is in. */
static __device__ range windows_of(const axis &axis, int i) {
    const int last = (i + axis.pad) / axis.stride;
    const int before = i + axis.pad - axis.kernel; /* a window that starts there ends before i */
    return {before < 0 ? 0 : before / axis.stride + 1,
            last + 1 < axis.windows ? last + 1 : axis.windows};
}

/* A pixel of x or y. */
struct place {
    int64_t sample;
    int row, column;
};

static __device__ place place_of(int64_t pixel, int rows, int columns) {
    const int64_t row = pixel / columns; /* of all samples' */
    return {row / rows, (int)(row % rows), (int)(pixel % columns)};
}

/* @return number of the pixel in a column of a row of a sample */
static __device__ int64_t pixel_of(int64_t sample, int row, int column, int rows, int columns) {
    return (sample * rows + row) * columns + column;
}

/* What an average of a window divides by. */
static __device__ float divisor(const pooling &pool, const range &rows, const range &columns) {
    if (pool.counts_padding) return (float)pool.rows.kernel * (float)pool.columns.kernel;
    return (float)(rows.end - rows.first) * (float)(columns.end - columns.first);
}

/* ---- forward ---- */

/* @param Index of a value in its window, row-major; chosen: NULL, or like y */
template <typename T, typename Index, int WIDTH>
static __device__ void maximum(const pooling &pool, const T *x, int64_t pixel, int64_t channel,
                               T *y, Index *chosen) {
    const place at = place_of(pixel, pool.rows.windows, pool.columns.windows);
    const range rows = inside(pool.rows, at.row), columns = inside(pool.columns, at.column);
    const int top = start_of(pool.rows, at.row), left = start_of(pool.columns, at.column);
    bpt__pack<T, WIDTH> most = {};
    bpt__pack<Index, WIDTH> won = {};
    bool first = true;
    for (int h = rows.first; h < rows.end; h++)
        for (int w = columns.first; w < columns.end; w++, first = false) {
            const int64_t from = pixel_of(at.sample, h, w, pool.rows.size, pool.columns.size);
            const bpt__pack<T, WIDTH> values = bpt__read<WIDTH>(x + from * pool.c + channel);
            const Index index = (Index)((h - top) * pool.columns.kernel + w - left);
            for (int i = 0; i < WIDTH; i++) {
                const float value = bpt__from(values.at[i]);
                /* a NaN wins: it is to be seen */
                if (first || value > bpt__from(most.at[i]) || value != value) {
                    most.at[i] = values.at[i];
                    won.at[i] = index;
                }
            }
        }
    bpt__write<WIDTH>(y + pixel * pool.c + channel, most);
    if (chosen) bpt__write<WIDTH>(chosen + pixel * pool.c + channel, won);
}

template <typename T, int WIDTH>
static __device__ void average(const pooling &pool, const T *x, int64_t pixel, int64_t channel,
                               T *y) {
    const place at = place_of(pixel, pool.rows.windows, pool.columns.windows);
    const range rows = inside(pool.rows, at.row), columns = inside(pool.columns, at.column);
    float sum[WIDTH] = {}, value[WIDTH];
    for (int h = rows.first; h < rows.end; h++)
        for (int w = columns.first; w < columns.end; w++) {
            const int64_t from = pixel_of(at.sample, h, w, pool.rows.size, pool.columns.size);
            bpt__load<WIDTH>(x + from * pool.c + channel, value);
            for (int i = 0; i < WIDTH; i++) sum[i] += value[i];
        }
    for (int i = 0; i < WIDTH; i++) sum[i] /= divisor(pool, rows, columns);
    bpt__store<WIDTH>(sum, y + pixel * pool.c + channel);
}

/* Rows of the grid are pixels of y. */
template <typename T, typename Index, int WIDTH>
static __global__ void maxima(pooling pool, const T *x, T *y, Index *chosen) {
    const int64_t pixels = pool.n * pool.rows.windows * pool.columns.windows;
    for (int64_t pixel = bpt__row(); pixel < pixels; pixel += bpt__row_step())
        for (int64_t c = (int64_t)threadIdx.x * WIDTH; c < pool.c; c += blockDim.x * WIDTH)
            maximum<T, Index, WIDTH>(pool, x, pixel, c, y, chosen);
}

template <typename T, int WIDTH> static __global__ void averages(pooling pool, const T *x, T *y) {
    const int64_t pixels = pool.n * pool.rows.windows * pool.columns.windows;
    for (int64_t pixel = bpt__row(); pixel < pixels; pixel += bpt__row_step())
        for (int64_t c = (int64_t)threadIdx.x * WIDTH; c < pool.c; c += blockDim.x * WIDTH)
            average<T, WIDTH>(pool, x, pixel, c, y);
}

/* Sums over a block's y, one for each of its x: a tree, so in one order. All threads must take
 * part; y a power of two.
 * @return to the threads with y = 0 the sum */
static __device__ float sum_over_y(float x) {
    __shared__ float sums[BPT__THREADS];
    const unsigned at = threadIdx.y * blockDim.x + threadIdx.x;
    sums[at] = x;
    __syncthreads();
    for (unsigned half = blockDim.y / 2; half > 0; half /= 2) {
        if (threadIdx.y < half) sums[at] += sums[at + half * blockDim.x];
        __syncthreads();
    }
    x = sums[threadIdx.x];
    __syncthreads(); /* the next sum may overwrite */
    return x;
}

/* The mean of whole samples. A block takes a group of its x times WIDTH channels of a sample; its
 * y go over the pixels. */
template <typename T, int WIDTH>
static __global__ void whole_means(int64_t n, int64_t c, int64_t pixels, const T *x, T *y) {
    const int64_t group = (int64_t)blockDim.x * WIDTH, groups = (c + group - 1) / group;
    for (int64_t i = blockIdx.x; i < n * groups; i += gridDim.x) {
        const int64_t sample = i / groups, channel = i % groups * group + threadIdx.x * WIDTH;
        float sum[WIDTH] = {}, value[WIDTH];
        for (int64_t pixel = threadIdx.y; channel < c && pixel < pixels; pixel += blockDim.y) {
            bpt__load<WIDTH>(x + (sample * pixels + pixel) * c + channel, value);
            for (int j = 0; j < WIDTH; j++) sum[j] += value[j];
        }
        for (int j = 0; j < WIDTH; j++) sum[j] = sum_over_y(sum[j]) / (float)pixels;
        if (threadIdx.y == 0 && channel < c) bpt__store<WIDTH>(sum, y + sample * c + channel);
    }
}

template <typename T, int WIDTH>
static bpt_status run_whole_means(bpt_cuda_stream stream, const bpt_cuda_pool *pool, const void *x,
                                  void *y) {
    unsigned along = 1; /* packs of channels that a block takes */
    while (along < BPT__WARP && along * WIDTH < pool->c) along *= 2;
    const dim3 threads(along, BPT__THREADS / along);
    const int64_t group = (int64_t)along * WIDTH, groups = (pool->c + group - 1) / group;
    const unsigned blocks = bpt__blocks(pool->n * groups * BPT__THREADS);
    BPT__LAUNCH(whole_means<T, WIDTH>, blocks, threads, stream, pool->n, pool->c, pool->h * pool->w,
                (const T *)x, (T *)y);
    return BPT_OK;
}

/* ---- backward ---- */

/* Adds the gradients of the windows that have chosen pixel @p at. */
template <typename T, typename Index, int WIDTH>
static __device__ void gather_chosen(const pooling &pool, const T *dy, const Index *chosen,
                                     const place &at, int64_t channel, float sum[WIDTH]) {
    const range p = windows_of(pool.rows, at.row), q = windows_of(pool.columns, at.column);
    for (int i = p.first; i < p.end; i++)
        for (int j = q.first; j < q.end; j++) {
            const int r = at.row - start_of(pool.rows, i);
            const int s = at.column - start_of(pool.columns, j);
            const int64_t from = pixel_of(at.sample, i, j, pool.rows.windows, pool.columns.windows);
            const bpt__pack<Index, WIDTH> won = bpt__read<WIDTH>(chosen + from * pool.c + channel);
            float gradient[WIDTH];
            bpt__load<WIDTH>(dy + from * pool.c + channel, gradient);
            for (int k = 0; k < WIDTH; k++)
                if (won.at[k] == (Index)(r * pool.columns.kernel + s)) sum[k] += gradient[k];
        }
}

/* Adds the parts of the windows that pixel @p at is in. */
template <typename T, int WIDTH>
static __device__ void gather_parts(const pooling &pool, const T *dy, const place &at,
                                    int64_t channel, float sum[WIDTH]) {
    const range p = windows_of(pool.rows, at.row), q = windows_of(pool.columns, at.column);
    for (int i = p.first; i < p.end; i++)
        for (int j = q.first; j < q.end; j++) {
            const float part = 1.0f / divisor(pool, inside(pool.rows, i), inside(pool.columns, j));
            const int64_t from = pixel_of(at.sample, i, j, pool.rows.windows, pool.columns.windows);
            float gradient[WIDTH];
            bpt__load<WIDTH>(dy + from * pool.c + channel, gradient);
            for (int k = 0; k < WIDTH; k++) sum[k] += gradient[k] * part;
        }
}

/* Rows of the grid are pixels of x. @param chosen NULL: averages */
template <typename T, typename Index, int WIDTH>
static __global__ void gather(pooling pool, const T *dy, const Index *chosen, T *dx) {
    const int64_t pixels = pool.n * pool.rows.size * pool.columns.size;
    for (int64_t pixel = bpt__row(); pixel < pixels; pixel += bpt__row_step()) {
        const place at = place_of(pixel, pool.rows.size, pool.columns.size);
        for (int64_t c = (int64_t)threadIdx.x * WIDTH; c < pool.c; c += blockDim.x * WIDTH) {
            float sum[WIDTH] = {};
            if (chosen)
                gather_chosen<T, Index, WIDTH>(pool, dy, chosen, at, c, sum);
            else
                gather_parts<T, WIDTH>(pool, dy, at, c, sum);
            bpt__store<WIDTH>(sum, dx + pixel * pool.c + c);
        }
    }
}

/* ---- the choice of a kernel ---- */

/* Whether places in a window are bytes; else they are 32 bits. */
static bool has_small_windows(const bpt_cuda_pool *pool) {
    return pool->kernel[0] * pool->kernel[1] <= UINT8_MAX + 1;
}

static bool is_whole(const bpt_cuda_pool *pool) {
    return pool->p == 1 && pool->q == 1 && pool->pad[0] == 0 && pool->pad[1] == 0 &&
           pool->kernel[0] == pool->h && pool->kernel[1] == pool->w;
}

static axis axis_of(const bpt_cuda_pool *pool, int which, int64_t size, int64_t windows) {
    return {(int)size, (int)windows, (int)pool->kernel[which], (int)pool->stride[which],
            (int)pool->pad[which]};
}

static pooling pooling_of(const bpt_cuda_pool *pool) {
    return {pool->n, pool->c, axis_of(pool, 0, pool->h, pool->p),
            axis_of(pool, 1, pool->w, pool->q), pool->kind == BPT_CUDA_AVERAGE};
}

template <typename T, int WIDTH>
static bpt_status forward(bpt_cuda_stream stream, const bpt_cuda_pool *pool, const void *from,
                          void *to, void *chosen) {
    const pooling how = pooling_of(pool);
    const T *x = (const T *)from;
    T *y = (T *)to;
    const bpt__row_grid grid =
        bpt__over_rows(pool->n * pool->p * pool->q, (pool->c + WIDTH - 1) / WIDTH);
    if (pool->kind != BPT_CUDA_MAX && is_whole(pool))
        return run_whole_means<T, WIDTH>(stream, pool, from, to);
    if (pool->kind != BPT_CUDA_MAX)
        BPT__LAUNCH(averages<T, WIDTH>, grid.blocks, grid.threads, stream, how, x, y);
    else if (has_small_windows(pool))
        BPT__LAUNCH(maxima<T, uint8_t, WIDTH>, grid.blocks, grid.threads, stream, how, x, y,
                    (uint8_t *)chosen);
    else
        BPT__LAUNCH(maxima<T, int32_t, WIDTH>, grid.blocks, grid.threads, stream, how, x, y,
                    (int32_t *)chosen);
    return BPT_OK;
}

template <typename T, int WIDTH>
static bpt_status backward(bpt_cuda_stream stream, const bpt_cuda_pool *pool, const void *dy,
                           const void *chosen, void *to) {
    const pooling how = pooling_of(pool);
    const T *from = (const T *)dy;
    T *dx = (T *)to;
    const bpt__row_grid grid =
        bpt__over_rows(pool->n * pool->h * pool->w, (pool->c + WIDTH - 1) / WIDTH);
    if (pool->kind != BPT_CUDA_MAX) chosen = NULL;
    if (has_small_windows(pool))
        BPT__LAUNCH(gather<T, uint8_t, WIDTH>, grid.blocks, grid.threads, stream, how, from,
                    (const uint8_t *)chosen, dx);
    else
        BPT__LAUNCH(gather<T, int32_t, WIDTH>, grid.blocks, grid.threads, stream, how, from,
                    (const int32_t *)chosen, dx);
    return BPT_OK;
}

size_t bpt_cuda_pool_bytes(const bpt_cuda_pool *pool) {
    const size_t values = (size_t)pool->n * (size_t)pool->p * (size_t)pool->q * (size_t)pool->c;
    if (pool->kind != BPT_CUDA_MAX) return 0;
    return values * (has_small_windows(pool) ? sizeof(uint8_t) : sizeof(int32_t));
}

/* Calls @p f with a value of the type in memory and the number of channels that a thread takes.
 * Most of its work is to find its windows, whatever it takes, so it takes as many as divide them.
 */
template <typename F> static bpt_status for_packs(const bpt_cuda_pool *pool, const F &f) {
    const auto of_type = [&](auto value) -> bpt_status {
        if (pool->c % BPT__WIDTH == 0) return f(value, bpt__number<BPT__WIDTH>());
        if (pool->c % 4 == 0) return f(value, bpt__number<4>());
        return pool->c % 2 == 0 ? f(value, bpt__number<2>()) : f(value, bpt__number<1>());
    };
    return pool->type == BPT_BF16 ? of_type(bpt_bf16()) : of_type(float());
}

bpt_status bpt_cuda_pool_forward(bpt_cuda_stream stream, const bpt_cuda_pool *pool, const void *x,
                                 void *y, void *chosen) {
    return for_packs(pool, [&](auto value, auto width) {
        return forward<decltype(value), decltype(width)::value>(stream, pool, x, y, chosen);
    });
}

bpt_status bpt_cuda_pool_backward(bpt_cuda_stream stream, const bpt_cuda_pool *pool, const void *dy,
                                  const void *chosen, void *dx) {
    return for_packs(pool, [&](auto value, auto width) {
        return backward<decltype(value), decltype(width)::value>(stream, pool, dy, chosen, dx);
    });
}
