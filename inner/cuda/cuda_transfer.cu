#include "inner/cuda/cuda_device.cuh"
#include "inner/cuda/cuda_transfer_kernels.h"

enum way { IN, OUT, ADD };

/* @return the place in the canonical segment of native value @p i; -1: it is padding */
__device__ static int64_t canonical_place(const bpt_cuda_order &o, int64_t i) {
    if (o.taps == 0) return i;
    const int64_t channel = i % o.padded, row = i / o.padded; /* row: of [k, taps] */
    const int64_t tap = row % o.taps, k = row / o.taps;
    return channel < o.c ? (k * o.c + channel) * o.taps + tap : -1;
}

template <way WAY> __device__ static void move_value(float *canonical, float *native) {
    if constexpr (WAY == IN) *native = canonical ? *canonical : 0.0f;
    if (!canonical) return;
    if constexpr (WAY == OUT) *canonical = *native;
    if constexpr (WAY == ADD) *native += *canonical;
}

template <way WAY>
static __global__ void move(const bpt__transfer_range *ranges, const bpt_cuda_order *orders,
                            float *canonical, float *native) {
    const bpt__transfer_range range = ranges[blockIdx.x];
    const bpt_cuda_order o = orders[range.segment];
    for (int32_t i = (int32_t)threadIdx.x; i < range.count; i += BPT__THREADS) {
        const int64_t place = canonical_place(o, range.first + i);
        move_value<WAY>(place < 0 ? NULL : canonical + o.canonical + place,
                        native + o.native + range.first + i);
    }
}

/* @param first,n segments */
template <way WAY>
static bpt_status launch(bpt_cuda_stream stream, const bpt_cuda_transfer *t, size_t first, size_t n,
                         float *canonical, float *native) {
    const int32_t begin = t->first[first], end = t->first[first + n];
    if (begin == end) return BPT_OK;
    BPT__LAUNCH(move<WAY>, (unsigned)(end - begin), BPT__THREADS, stream, t->ranges + begin,
                t->orders, canonical, native);
    return BPT_OK;
}

bpt_status bpt_cuda_transfer_in(bpt_cuda_stream stream, const bpt_cuda_transfer *transfer,
                                size_t first, size_t n, const float *canonical, float *native) {
    return launch<IN>(stream, transfer, first, n, (float *)canonical, native);
}

bpt_status bpt_cuda_transfer_out(bpt_cuda_stream stream, const bpt_cuda_transfer *transfer,
                                 size_t first, size_t n, const float *native, float *canonical) {
    return launch<OUT>(stream, transfer, first, n, canonical, (float *)native);
}

bpt_status bpt_cuda_transfer_add(bpt_cuda_stream stream, const bpt_cuda_transfer *transfer,
                                 size_t first, size_t n, const float *canonical, float *native) {
    return launch<ADD>(stream, transfer, first, n, (float *)canonical, native);
}
