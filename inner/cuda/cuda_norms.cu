/* Norms of segments: squares of a range, summed over the ranges of a segment, these over the
 * segments, each in one order; and what follows from them, as inner/optimizers/optimizer.c has it.
 */
#include "inner/cuda/cuda_fours.cuh"

constexpr int FIND_THREADS = 1024; /* of the one block that goes on from the ranges' sums */

__device__ static double squares_of(float4 x) {
    const double a = (double)x.x, b = (double)x.y, c = (double)x.z, d = (double)x.w;
    return (a * a + b * b) + (c * c + d * d);
}

static __global__ void __launch_bounds__(BPT__UPDATE_THREADS) sum_squares(bpt__update_plan p) {
    const bpt__update_range range = p.ranges[blockIdx.x];
    const bpt__update_segment segment = p.segments[range.segment];
    const bool weights = p.wants_weights && segment.decays;
    bpt__squares_pair sum = {0.0, 0.0};
    if (segment.running > 0.0f) return;
    for (int i = 0; i < BPT__UPDATE_FOURS; i++) {
        const int at = bpt__four(i), n = range.count - at;
        if (n <= 0) break;
        sum.gradient += squares_of(bpt__read_four(p.gradients + range.begin + at, n));
        if (weights) sum.weights += squares_of(bpt__read_four(p.weights + range.begin + at, n));
    }
    sum.gradient = bpt__block_sum(sum.gradient);
    sum.weights = bpt__block_sum(sum.weights);
    if (threadIdx.x == 0) p.of_ranges[blockIdx.x] = sum;
}

/* A warp a segment. */
__device__ static void sum_segments(const bpt__update_plan &p) {
    const int lane = (int)threadIdx.x % BPT__WARP, warp = (int)threadIdx.x / BPT__WARP;
    for (int s = warp; s < p.n_segments; s += FIND_THREADS / BPT__WARP) {
        const bpt__update_segment segment = p.segments[s];
        bpt__squares_pair sum = {0.0, 0.0};
        if (!(segment.running > 0.0f)) {
#pragma unroll 4
            for (int i = lane; i < segment.n; i += BPT__WARP) {
                const bpt__squares_pair of_range = p.of_ranges[segment.first + i];
                sum.gradient += of_range.gradient;
                sum.weights += of_range.weights;
            }
        }
        sum.gradient = bpt__warp_sum(sum.gradient);
        sum.weights = bpt__warp_sum(sum.weights);
        if (lane == 0) p.of_segments[s] = sum;
    }
    __syncthreads();
}

/* bpt_clip_scale() of the whole gradient; to each thread. */
__device__ static float find_clip(const bpt__update_plan &p) {
    double sum = 0.0;
    if (p.clip_norm == 0.0) return 1.0f;
    for (int s = (int)threadIdx.x; s < p.n_segments; s += FIND_THREADS)
        sum += p.of_segments[s].gradient;
    const double scale = p.clip_norm / (sqrt(bpt__block_sum(sum)) + 1e-6);
    return scale >= 1.0 ? 1.0f : (float)scale; /* no number stays none */
}

/* bpt_step_scale() */
__device__ static float find_step(double limit, double rate, double weights, double gradient) {
    const double most = limit * weights, step = rate * gradient;
    return weights == 0.0 || step <= most ? 1.0f : (float)(most / step);
}

/* The trust of LARS. */
__device__ static float find_trust(const bpt__update_plan &p, double weights, double gradient) {
    if (weights == 0.0 || gradient == 0.0) return 1.0f;
    return (float)(p.eta * weights / (gradient + p.decay * weights));
}

static __global__ void __launch_bounds__(FIND_THREADS)
    find_scales(bpt__update_plan p, const bpt_cuda_step *step) {
    sum_segments(p);
    const float clip = find_clip(p);
    for (int s = (int)threadIdx.x; s < p.n_segments; s += FIND_THREADS) {
        const double weights = sqrt(p.of_segments[s].weights);
        const double gradient = (double)clip * sqrt(p.of_segments[s].gradient);
        bpt__update_scale scale = {clip, 1.0f};
        if (p.segments[s].decays && p.step_limit != 0.0)
            scale.gradient = clip * find_step(p.step_limit, (double)step->rate, weights, gradient);
        if (p.segments[s].decays && p.trusts) scale.trust = find_trust(p, weights, gradient);
        p.scales[s] = scale;
    }
}

extern "C" bpt_status bpt__update_measure(bpt_cuda_stream stream, const bpt__update_plan *plan,
                                          const bpt_cuda_step *step) {
    if (plan->n_ranges == 0) return BPT_OK;
    BPT__LAUNCH(sum_squares, plan->n_ranges, BPT__UPDATE_THREADS, stream, *plan);
    BPT__LAUNCH(find_scales, 1, FIND_THREADS, stream, *plan, step);
    return BPT_OK;
}
