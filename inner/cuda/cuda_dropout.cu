#include "base/random.h"
#include "inner/cuda/cuda_device.cuh"
#include "inner/cuda/cuda_step.h"

/* Four numbers of the generator that base/random.h names: of one counter of a stream. */
struct numbers {
    uint32_t at[4];
};

/* @param id of the stream; counter: how many fours were drawn before */
static __device__ numbers draw(uint64_t seed, uint64_t id, uint32_t counter) {
    uint32_t a = counter, b = BPT_PURPOSE_DROPOUT, c = (uint32_t)id, d = (uint32_t)(id >> 32);
    uint32_t key = (uint32_t)seed, other_key = (uint32_t)(seed >> 32);
    for (int round = 0; round < 10; round++) {
        const uint64_t from_a = (uint64_t)a * 0xD2511F53, from_c = (uint64_t)c * 0xCD9E8D57;
        a = (uint32_t)(from_c >> 32) ^ b ^ key;
        b = (uint32_t)from_c;
        c = (uint32_t)(from_a >> 32) ^ d ^ other_key;
        d = (uint32_t)from_a;
        key += 0x9E3779B9;
        other_key += 0xBB67AE85;
    }
    return {{a, b, c, d}};
}

/* What a layer does in every step. */
struct mask {
    uint64_t layer;
    uint32_t dropped; /* numbers below this are */
    float scale;      /* of the rest */
};

static __device__ uint64_t stream_of(const mask &how, const bpt_cuda_step *step, int64_t sample) {
    const uint64_t number = step->first_sample + (uint64_t)sample;
    return how.layer << 52 | (step->step & 0xFFFFFFF) << 24 | (number & 0xFFFFFF);
}

/* Samples of one pixel: a row is a sample, its channels are in the order of their numbers, so a
 * thread has a use for all that it draws. */
template <typename T>
static __global__ void drop_packs(mask how, const bpt_cuda_step *step, int64_t n, int64_t c,
                                  const T *x, T *y) {
    for (int64_t sample = bpt__row(); sample < n; sample += bpt__row_step()) {
        const uint64_t id = stream_of(how, step, sample);
        for (int64_t i = threadIdx.x * 4; i < c; i += blockDim.x * 4) {
            const numbers drawn = draw(step->seed, id, (uint32_t)(i / 4));
            float value[4];
            bpt__load<4>(x + sample * c + i, value);
            for (int j = 0; j < 4; j++)
                value[j] = drawn.at[j] < how.dropped ? 0.0f : value[j] * how.scale;
            bpt__store<4>(value, y + sample * c + i);
        }
    }
}

/* Any sample, a row is a pixel: neighbouring channels' numbers are far from each other, and each
 * value draws the four that its own is among. */
template <typename T>
static __global__ void drop_values(mask how, const bpt_cuda_step *step, int64_t n, int64_t c,
                                   int64_t pixels, const T *x, T *y) {
    for (int64_t row = bpt__row(); row < n * pixels; row += bpt__row_step()) {
        const int64_t pixel = row % pixels;
        const uint64_t id = stream_of(how, step, row / pixels);
        for (int64_t channel = threadIdx.x; channel < c; channel += blockDim.x) {
            const int64_t i = channel * pixels + pixel, at = row * c + channel;
            const numbers drawn = draw(step->seed, id, (uint32_t)(i / 4));
            const uint32_t low = i % 2 ? drawn.at[1] : drawn.at[0];
            const uint32_t high = i % 2 ? drawn.at[3] : drawn.at[2];
            const uint32_t number = i % 4 < 2 ? low : high;
            bpt__to(number < how.dropped ? 0.0f : bpt__from(x[at]) * how.scale, y + at);
        }
    }
}

template <typename T>
static bpt_status run(bpt_cuda_stream stream, mask how, const bpt_cuda_step *step, int64_t n,
                      int64_t c, int64_t pixels, const void *from, void *to) {
    const T *x = (const T *)from;
    T *y = (T *)to;
    if (pixels == 1 && c % 4 == 0) {
        const bpt__row_grid grid = bpt__over_rows(n, c / 4);
        BPT__LAUNCH(drop_packs<T>, grid.blocks, grid.threads, stream, how, step, n, c, x, y);
    } else {
        const bpt__row_grid grid = bpt__over_rows(n * pixels, c);
        BPT__LAUNCH(drop_values<T>, grid.blocks, grid.threads, stream, how, step, n, c, pixels, x,
                    y);
    }
    return BPT_OK;
}

bpt_status bpt_cuda_dropout(bpt_cuda_stream stream, const bpt_cuda_step *step, uint64_t layer,
                            double rate, int64_t n, int64_t c, int64_t pixels, bpt_value_type type,
                            const void *x, void *y) {
    const mask how = {layer, (uint32_t)(rate * 0x1p32), (float)(1.0 / (1.0 - rate))};
    return type == BPT_BF16 ? run<bpt_bf16>(stream, how, step, n, c, pixels, x, y)
                            : run<float>(stream, how, step, n, c, pixels, x, y);
}
