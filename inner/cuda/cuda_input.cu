#include "base/images.h"
#include "inner/cuda/cuda_device.cuh"
#include "inner/cuda/cuda_input.h"

/* ---- where the channels of a pixel come from ---- */

/* An image as floats. */
struct float_pixel {
    const float *first;
    int64_t plane;

    __device__ float channel(int64_t c) const {
        return first[c * plane];
    }
};

struct float_batch {
    int64_t c, plane;
    const float *pixels;

    __device__ void open(const bpt_cuda_step *step) {
        pixels = (const float *)step->batch;
    }
    __device__ float_pixel find(int64_t sample, int32_t pixel) const {
        return {pixels + sample * c * plane + pixel, plane};
    }
};

/* Where an image is black, first is NULL; where there is none, scale is. */
struct byte_pixel {
    const uint8_t *first;
    int64_t plane;
    const float *scale, *shift;

    __device__ float channel(int64_t c) const {
        if (!scale) return 0.0f;
        const float x = first ? (float)first[c * plane] : 0.0f;
        return __fadd_rn(__fmul_rn(x, scale[c]), shift[c]);
    }
};

struct byte_batch {
    int64_t c, plane;
    int32_t w;
    size_t shifts_at, moves_at, pixels_at;
    const uint8_t *pixels;
    const bpt_image_move *moves; /* NULL: none is moved */
    const float *scale, *shift;
    int64_t n;

    __device__ void open(const bpt_cuda_step *step) {
        const uint8_t *batch = (const uint8_t *)step->batch;
        pixels = batch + pixels_at;
        moves = step->has_moves ? (const bpt_image_move *)(batch + moves_at) : NULL;
        scale = (const float *)batch;
        shift = (const float *)(batch + shifts_at);
        n = step->n_images;
    }
    __device__ byte_pixel find(int64_t sample, int32_t pixel) const {
        const uint8_t *image = pixels + sample * c * plane;
        if (sample >= n) return {NULL, plane, NULL, NULL};
        if (!moves) return {image + pixel, plane, scale, shift};
        const bpt_image_move m = moves[sample];
        const int32_t y = pixel / w, x = pixel % w;
        if (y < m.y.begin || y >= m.y.end || x < m.x.begin || x >= m.x.end)
            return {NULL, plane, scale, shift};
        const int64_t row = m.y.first + m.y.step * y;
        return {image + row * w + m.x.first + m.x.step * x, plane, scale, shift};
    }
};

/* ---- taking them ---- */

/* A thread takes all channels of a pixel: neighbours read neighbours of each channel. Samples go
 * over the grid's y. */
template <typename Batch, typename T, int WIDTH>
static __global__ void take(Batch batch, const bpt_cuda_step *step, int64_t n, int64_t padded,
                            T *to) {
    batch.open(step);
    for (int64_t sample = blockIdx.y; sample < n; sample += gridDim.y)
        for (int64_t i = bpt__thread(); i < batch.plane; i += bpt__threads()) {
            const auto pixel = batch.find(sample, (int32_t)i);
            T *y = to + (sample * batch.plane + i) * padded;
            for (int64_t first = 0; first < padded; first += WIDTH) {
                float value[WIDTH];
                for (int k = 0; k < WIDTH; k++)
                    value[k] = first + k < batch.c ? pixel.channel(first + k) : 0.0f;
                bpt__store<WIDTH>(value, y + first);
            }
        }
}

template <typename Batch, typename T>
static bpt_status run(bpt_cuda_stream stream, Batch batch, const bpt_cuda_step *step, int64_t n,
                      int64_t padded, T *to) {
    const unsigned max_y = 65535; /* of a grid, in CUDA */
    const dim3 grid(bpt__blocks(batch.plane), n < 1 ? 1 : n < max_y ? (unsigned)n : max_y);
    if (padded % 8 == 0)
        BPT__LAUNCH(take<Batch, T, 8>, grid, BPT__THREADS, stream, batch, step, n, padded, to);
    else if (padded % 4 == 0)
        BPT__LAUNCH(take<Batch, T, 4>, grid, BPT__THREADS, stream, batch, step, n, padded, to);
    else
        BPT__LAUNCH(take<Batch, T, 1>, grid, BPT__THREADS, stream, batch, step, n, padded, to);
    return BPT_OK;
}

template <typename Batch>
static bpt_status run_typed(bpt_cuda_stream stream, Batch batch, const bpt_cuda_step *step,
                            int64_t n, int64_t padded, bpt_value_type type, void *to) {
    return type == BPT_BF16 ? run(stream, batch, step, n, padded, (bpt_bf16 *)to)
                            : run(stream, batch, step, n, padded, (float *)to);
}

bpt_status bpt_cuda_input_take(bpt_cuda_stream stream, const bpt_cuda_input *in,
                               const bpt_cuda_step *step, int64_t padded, bpt_value_type type,
                               void *to) {
    const int64_t plane = in->h * in->w;
    if (!in->images) {
        const float_batch floats = {in->c, plane, NULL};
        return run_typed(stream, floats, step, in->n, padded, type, to);
    }
    const byte_batch bytes = {in->c, plane, (int32_t)in->w, in->shifts, in->moves, in->pixels,
                              NULL,  NULL,  NULL,           NULL,       0};
    return run_typed(stream, bytes, step, in->n, padded, type, to);
}
