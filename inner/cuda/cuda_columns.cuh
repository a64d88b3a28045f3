/** @file inner/cuda/cuda_columns.cuh
 * Walks over [rows, c] in which a thread keeps its channels: what belongs to a channel (a scale, a
 * running sum) stays in registers. And sums over the rows, in one order for given sizes: a thread's
 * in float, those of a block's threads and of all blocks in double.
 *
 * Channels are taken in groups of WIDTH. A block has room for `across` neighbouring groups times
 * `down` rows; blockIdx.x says which groups, blockIdx.y which rows. A thread takes UNROLL rows at
 * once, so that as many reads are under way. Only for .cu files. */
#ifndef BPT_INNER_CUDA_CUDA_COLUMNS_CUH
#define BPT_INNER_CUDA_CUDA_COLUMNS_CUH

#include "inner/cuda/cuda.h"
#include "inner/cuda/cuda_device.cuh"

constexpr int BPT__COLUMN_THREADS = 512;
constexpr int BPT__MAX_ACROSS = 32;
constexpr int BPT__MAX_HELPERS = 16;

typedef struct bpt__columns {
    int64_t rows, c;
    int64_t steps;    /* runs of down * UNROLL rows, the last one may be cut */
    int across, down; /* across * down is at most BPT__COLUMN_THREADS; other threads idle */
    unsigned tiles;   /* of channels: gridDim.x */
    unsigned blocks; /* that share a tile's rows: gridDim.y; at most as many as steps, at least 1 */
} bpt__columns;

/** @return the current GPU's processors, 132 without one */
static inline int bpt__processors(void) {
    int device = 0, n = 0;
    if (cudaGetDevice(&device) == cudaSuccess &&
        cudaDeviceGetAttribute(&n, cudaDevAttrMultiProcessorCount, device) == cudaSuccess && n > 0)
        return n;
    cudaGetLastError();
    return 132;
}

/** @return values that a thread takes at once */
static inline int bpt__column_width(int64_t c) {
    return c % BPT__WIDTH == 0 ? BPT__WIDTH : 1;
}

/** @param c above 0; @param unroll rows at once; @param per_processor blocks that fit there */
static inline bpt__columns bpt__cut_columns(int64_t rows, int64_t c, int unroll,
                                            int per_processor) {
    const int64_t groups = c / bpt__column_width(c);
    const int64_t tiles = (groups + BPT__MAX_ACROSS - 1) / BPT__MAX_ACROSS;
    const int64_t across = (groups + tiles - 1) / tiles, down = BPT__COLUMN_THREADS / across;
    const int64_t steps = (rows + down * unroll - 1) / (down * unroll);
    int64_t blocks = (int64_t)bpt__processors() * per_processor / tiles;
    if (blocks > steps) blocks = steps;
    if (blocks < 1) blocks = 1;
    return bpt__columns{rows, c, steps, (int)across, (int)down, (unsigned)tiles, (unsigned)blocks};
}

static inline dim3 bpt__column_grid(const bpt__columns &g) {
    return dim3(g.tiles, g.blocks);
}

/** @return bytes of the partial sums of all blocks: shape [blocks][c] of pairs */
static inline size_t bpt__partial_bytes(const bpt__columns &g) {
    return (size_t)g.blocks * (size_t)g.c * sizeof(float2);
}

/** Calls @p f with a value of the type in memory and with a width, as far as channels allow. */
template <typename F>
static inline bpt_status bpt__for_columns(bpt_value_type type, int64_t c, const F &f) {
    const bool wide = bpt__column_width(c) == BPT__WIDTH;
    if (type == BPT_BF16)
        return wide ? f(bpt_bf16(), bpt__number<BPT__WIDTH>()) : f(bpt_bf16(), bpt__number<1>());
    return wide ? f(float(), bpt__number<BPT__WIDTH>()) : f(float(), bpt__number<1>());
}

/** Where a thread is. */
template <int WIDTH> struct bpt__column {
    int row;         /* of the block's `down` */
    int64_t channel; /* its first */
    bool there;      /* else it has nothing to do but to take part in sums */

    __device__ explicit bpt__column(const bpt__columns &g) {
        const int t = (int)threadIdx.x;
        row = t / g.across;
        channel = ((int64_t)blockIdx.x * g.across + t % g.across) * WIDTH;
        there = row < g.down && channel < g.c;
    }
};

/** Calls @p f with the number of rows to take at once (as a type) and the first of them; the next
 * ones are g.down apart.
 * @param backwards begins with the last rows: what a walk before has read last is still in the
 * second-level cache */
template <int UNROLL, typename F>
__device__ inline void bpt__walk(const bpt__columns &g, int row, bool backwards, const F &f) {
    const int64_t run = (int64_t)g.down * UNROLL;
    for (int64_t i = blockIdx.y; i < g.steps; i += gridDim.y) {
        const int64_t begin = (backwards ? g.steps - 1 - i : i) * run;
        if (begin + run <= g.rows) {
            f(bpt__number<UNROLL>(), begin + row);
            continue;
        }
#pragma unroll 1
        for (int64_t r = begin + row; r < g.rows; r += g.down) f(bpt__number<1>(), r);
    }
}

/** Reads @p N rows, all of them before any is used. */
template <int WIDTH, int N, typename T>
__device__ inline void bpt__read_rows(const T *from, int64_t stride, bpt__pack<T, WIDTH> x[N]) {
#pragma unroll
    for (int u = 0; u < N; u++) x[u] = bpt__read<WIDTH>(from + u * stride);
}

/* ---- sums ---- */

/** Rows that are a block's, of those that bpt__walk() goes over with @p unroll. */
__device__ inline int64_t bpt__rows_of_block(const bpt__columns &g, int unroll, int64_t block) {
    const int64_t run = (int64_t)g.down * unroll;
    if (block >= g.steps) return 0;
    const int64_t n = (g.steps - block + g.blocks - 1) / g.blocks;
    const bool has_last = (g.steps - 1 - block) % g.blocks == 0;
    return n * run - (has_last ? g.steps * run - g.rows : 0);
}

__device__ inline void bpt__add_pair(double2 *sum, double2 x) {
    sum->x += x.x;
    sum->y += x.y;
}

/** What the threads of a block leave for each other: value i of thread t at [t * WIDTH + i], which
 * is [row][channel of the tile]. */
template <int WIDTH> struct bpt__block_sums {
    alignas(16) float first[BPT__COLUMN_THREADS * WIDTH], second[BPT__COLUMN_THREADS * WIDTH];
    double2 of_helper[BPT__COLUMN_THREADS];
};

/** Sums over a block's rows. All of its threads take part, behind a barrier.
 * @param term of row r and channel of the tile
 * @return to thread i the sums of channel i of the tile; nothing of use to threads above */
template <int WIDTH, typename F>
__device__ inline double2 bpt__sum_rows(const bpt__columns &g, bpt__block_sums<WIDTH> *sums,
                                        const F &term) {
    const int channels = g.across * WIDTH, t = (int)threadIdx.x;
    const int helper = t / channels, channel = t % channels;
    const int n_helpers = min(BPT__MAX_HELPERS, BPT__COLUMN_THREADS / channels);
    double2 sum = {0.0, 0.0};
    if (helper < n_helpers) {
        for (int r = helper; r < g.down; r += n_helpers) bpt__add_pair(&sum, term(r, channel));
        sums->of_helper[t] = sum;
    }
    __syncthreads();
    if (helper > 0) return sum;
    for (int h = 1; h < n_helpers; h++)
        bpt__add_pair(&sum, sums->of_helper[h * channels + channel]);
    return sum;
}

/** Writes a block's pair of its thread's channel of the tile, if there is one. */
template <int WIDTH>
__device__ inline void bpt__write_partial(const bpt__columns &g, double first, double second,
                                          float2 *partials) {
    const int channels = g.across * WIDTH, t = (int)threadIdx.x;
    const int64_t channel = (int64_t)blockIdx.x * channels + t;
    if (t >= channels || channel >= g.c) return;
    partials[(int64_t)blockIdx.y * g.c + channel] = make_float2((float)first, (float)second);
}

/** A block's sums of two values of each thread's channels. All threads take part; the sums of those
 * that are not there are 0. */
template <int WIDTH>
__device__ inline void bpt__write_sums(const bpt__columns &g, const float first[WIDTH],
                                       const float second[WIDTH], bpt__block_sums<WIDTH> *sums,
                                       float2 *partials) {
    const int channels = g.across * WIDTH;
    bpt__store<WIDTH>(first, sums->first + threadIdx.x * WIDTH);
    bpt__store<WIDTH>(second, sums->second + threadIdx.x * WIDTH);
    __syncthreads();
    const double2 sum = bpt__sum_rows<WIDTH>(g, sums, [&](int r, int channel) {
        const int at = r * channels + channel;
        return double2{(double)sums->first[at], (double)sums->second[at]};
    });
    bpt__write_partial<WIDTH>(g, sum.x, sum.y, partials);
}

/* The kernels that sum over blocks: few channels a block, many threads each, as only the time of a
 * read counts. */
constexpr int BPT__SUM_ACROSS = 16, BPT__SUM_DOWN = 32;
constexpr int BPT__SUM_THREADS = BPT__SUM_ACROSS * BPT__SUM_DOWN;

static inline unsigned bpt__sum_grid(int64_t c) {
    return (unsigned)((c + BPT__SUM_ACROSS - 1) / BPT__SUM_ACROSS);
}

/** The channel of a thread of such a kernel. */
__device__ inline int64_t bpt__sum_channel(void) {
    return (int64_t)blockIdx.x * BPT__SUM_ACROSS + threadIdx.x % BPT__SUM_ACROSS;
}

/** Sums over the blocks of a channel. All threads take part.
 * @param term of a block and its pair
 * @return to threads below BPT__SUM_ACROSS the sums of bpt__sum_channel() */
template <typename F>
__device__ inline double2 bpt__sum_blocks(const bpt__columns &g, const float2 *partials,
                                          const F &term) {
    __shared__ double2 sums[BPT__SUM_THREADS];
    const int t = (int)threadIdx.x;
    const int64_t channel = bpt__sum_channel();
    double2 sum = {0.0, 0.0};
    if (channel < g.c) {
#pragma unroll 4
        for (unsigned b = t / BPT__SUM_ACROSS; b < g.blocks; b += BPT__SUM_DOWN)
            bpt__add_pair(&sum, term(b, partials[b * g.c + channel]));
    }
    sums[t] = sum;
    for (int half = BPT__SUM_THREADS / 2; half >= BPT__SUM_ACROSS; half /= 2) {
        __syncthreads();
        if (t < half) bpt__add_pair(&sums[t], sums[t + half]);
    }
    return sums[t]; /* of the threads below, their own doing */
}

#endif
