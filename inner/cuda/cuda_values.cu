#include "inner/cuda/cuda_device.cuh"
#include "inner/cuda/cuda_values.h"

/* ---- one value from one of each array ---- */

/* Calls op.at<WIDTH>(i), to compute WIDTH values from number i on, for all of them: many at a time,
 * and what is left of less than a pack one by one. */
template <typename Op> static __global__ void each_value(Op op, int64_t n) {
    const int64_t packs = n / BPT__WIDTH;
    for (int64_t i = bpt__thread(); i < packs; i += bpt__threads())
        op.template at<BPT__WIDTH>(i * BPT__WIDTH);
    const int64_t left = packs * BPT__WIDTH + bpt__thread();
    if (left < n) op.template at<1>(left);
}

template <typename Op> static bpt_status run_each(bpt_cuda_stream stream, Op op, int64_t n) {
    BPT__LAUNCH(each_value<Op>, bpt__blocks(n / BPT__WIDTH), BPT__THREADS, stream, op, n);
    return BPT_OK;
}

template <typename From, typename To> struct convert {
    const From *from;
    To *to;

    template <int WIDTH> __device__ void at(int64_t i) const {
        float x[WIDTH];
        bpt__load<WIDTH>(from + i, x);
        bpt__store<WIDTH>(x, to + i);
    }
};

bpt_status bpt_cuda_convert(bpt_cuda_stream stream, const void *from, bpt_value_type from_type,
                            void *to, bpt_value_type to_type, int64_t n) {
    if (from_type == to_type)
        return bpt_cuda_copy(stream, to, from, (size_t)n * bpt_value_bytes(to_type));
    if (to_type == BPT_BF16)
        return run_each(stream, convert<float, bpt_bf16>{(const float *)from, (bpt_bf16 *)to}, n);
    return run_each(stream, convert<bpt_bf16, float>{(const bpt_bf16 *)from, (float *)to}, n);
}

template <typename T> struct relu {
    const T *x;
    T *y;

    template <int WIDTH> __device__ void at(int64_t i) const {
        float value[WIDTH];
        bpt__load<WIDTH>(x + i, value);
        for (int j = 0; j < WIDTH; j++)
            if (value[j] <= 0.0f) value[j] = 0.0f; /* a NaN is not */
        bpt__store<WIDTH>(value, y + i);
    }
};

bpt_status bpt_cuda_relu(bpt_cuda_stream stream, const void *x, bpt_value_type type, int64_t n,
                         void *y) {
    if (type == BPT_BF16)
        return run_each(stream, relu<bpt_bf16>{(const bpt_bf16 *)x, (bpt_bf16 *)y}, n);
    return run_each(stream, relu<float>{(const float *)x, (float *)y}, n);
}

template <typename T> struct relu_backward {
    const T *y, *dy;
    T *dx;

    template <int WIDTH> __device__ void at(int64_t i) const {
        const bpt__pack<T, WIDTH> sign = bpt__read<WIDTH>(y + i);
        bpt__pack<T, WIDTH> gradient = bpt__read<WIDTH>(dy + i);
        for (int j = 0; j < WIDTH; j++)
            if (!(bpt__from(sign.at[j]) > 0.0f)) gradient.at[j] = 0;
        bpt__write<WIDTH>(dx + i, gradient);
    }
};

template <typename T>
static bpt_status run_relu_backward(bpt_cuda_stream stream, const void *y, const void *dy,
                                    int64_t n, void *dx) {
    return run_each(stream, relu_backward<T>{(const T *)y, (const T *)dy, (T *)dx}, n);
}

bpt_status bpt_cuda_relu_backward(bpt_cuda_stream stream, const void *y, const void *dy,
                                  bpt_value_type type, int64_t n, void *dx) {
    return type == BPT_BF16 ? run_relu_backward<bpt_bf16>(stream, y, dy, n, dx)
                            : run_relu_backward<float>(stream, y, dy, n, dx);
}

/* With TERMS, so that all are read before the first is added; with 0 of them, as many as there are.
 */
template <typename T, int TERMS> struct add {
    const T *terms[BPT_CUDA_MAX_TERMS];
    int n_terms;
    T *sum;

    template <int WIDTH> __device__ void at(int64_t i) const {
        float total[WIDTH], term[WIDTH];
        bpt__load<WIDTH>(terms[0] + i, total);
        for (int t = 1; t < (TERMS ? TERMS : n_terms); t++) {
            bpt__load<WIDTH>(terms[t] + i, term);
            for (int j = 0; j < WIDTH; j++) total[j] += term[j];
        }
        bpt__store<WIDTH>(total, sum + i);
    }
};

template <typename T, int TERMS>
static bpt_status run_add(bpt_cuda_stream stream, const void *const *terms, int n_terms, int64_t n,
                          void *sum) {
    add<T, TERMS> op = {{}, n_terms, (T *)sum};
    for (int t = 0; t < n_terms; t++) op.terms[t] = (const T *)terms[t];
    return run_each(stream, op, n);
}

bpt_status bpt_cuda_add(bpt_cuda_stream stream, const void *const *terms, int n_terms,
                        bpt_value_type type, int64_t n, void *sum) {
    if (type == BPT_BF16)
        return n_terms == 2 ? run_add<bpt_bf16, 2>(stream, terms, n_terms, n, sum)
                            : run_add<bpt_bf16, 0>(stream, terms, n_terms, n, sum);
    return n_terms == 2 ? run_add<float, 2>(stream, terms, n_terms, n, sum)
                        : run_add<float, 0>(stream, terms, n_terms, n, sum);
}

template <typename T> struct check_finite {
    const T *x;
    int *bad;

    template <int WIDTH> __device__ void at(int64_t i) const {
        float value[WIDTH];
        bool finite = true;
        bpt__load<WIDTH>(x + i, value);
        for (int j = 0; j < WIDTH; j++) finite = finite && isfinite(value[j]);
        if (!finite) *bad = 1; /* whoever writes it, writes that */
    }
};

bpt_status bpt_cuda_check_finite(bpt_cuda_stream stream, const void *x, bpt_value_type type,
                                 int64_t n, int *bad) {
    if (type == BPT_BF16)
        return run_each(stream, check_finite<bpt_bf16>{(const bpt_bf16 *)x, bad}, n);
    return run_each(stream, check_finite<float>{(const float *)x, bad}, n);
}

/* ---- other orders ---- */

/* @param from,to at the first channel of the first row */
template <typename T, int WIDTH>
static __global__ void copy_channels(const T *from, int64_t from_c, T *to, int64_t to_c, int64_t n,
                                     int64_t n_zeros, int64_t rows) {
    for (int64_t row = bpt__row(); row < rows; row += bpt__row_step())
        for (int64_t i = (int64_t)threadIdx.x * WIDTH; i < n + n_zeros; i += blockDim.x * WIDTH) {
            bpt__pack<T, WIDTH> values = {};
            if (i < n) values = bpt__read<WIDTH>(from + row * from_c + i);
            bpt__write<WIDTH>(to + row * to_c + i, values);
        }
}

template <typename T, int WIDTH>
static bpt_status run_copy_channels(bpt_cuda_stream stream, const T *from, int64_t from_c, T *to,
                                    int64_t to_c, int64_t n, int64_t n_zeros, int64_t rows) {
    const bpt__row_grid grid = bpt__over_rows(rows, (n + n_zeros) / WIDTH);
    BPT__LAUNCH(copy_channels<T, WIDTH>, grid.blocks, grid.threads, stream, from, from_c, to, to_c,
                n, n_zeros, rows);
    return BPT_OK;
}

template <typename T>
static bpt_status choose_copy_channels(bpt_cuda_stream stream, const void *from, int64_t from_c,
                                       int64_t from_first, void *to, int64_t to_c, int64_t to_first,
                                       int64_t n, int64_t n_zeros, int64_t rows) {
    const T *source = (const T *)from + from_first;
    T *target = (T *)to + to_first;
    const int64_t odd = from_c | from_first | to_c | to_first | n | n_zeros;
    if (odd % BPT__WIDTH == 0)
        return run_copy_channels<T, BPT__WIDTH>(stream, source, from_c, target, to_c, n, n_zeros,
                                                rows);
    return run_copy_channels<T, 1>(stream, source, from_c, target, to_c, n, n_zeros, rows);
}

bpt_status bpt_cuda_copy_channels(bpt_cuda_stream stream, const void *from, int64_t from_c,
                                  int64_t from_first, void *to, int64_t to_c, int64_t to_first,
                                  int64_t n, int64_t n_zeros, bpt_value_type type, int64_t rows) {
    return type == BPT_BF16 ? choose_copy_channels<bpt_bf16>(stream, from, from_c, from_first, to,
                                                             to_c, to_first, n, n_zeros, rows)
                            : choose_copy_channels<float>(stream, from, from_c, from_first, to,
                                                          to_c, to_first, n, n_zeros, rows);
}
