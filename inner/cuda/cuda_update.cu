/* One block of threads a range; its gradients are read once and stay in registers while they are
 * looked at, so that a range is updated as a whole or not at all. */
#include "inner/cuda/cuda_fours.cuh"

/* What the values of a segment have in common, rounded as on the CPU. */
typedef struct factors {
    float rate, scale, trust, decay, momentum;
    float kept, root, beta1, new1, beta2, new2, eps; /* of AdamW, with a corrected rate */
} factors;

__device__ static factors find_factors(const bpt__update_plan &p, const bpt_cuda_step *step,
                                       bpt__update_scale scale, bool decays) {
    factors f = {};
    f.rate = step->rate;
    f.scale = scale.gradient;
    f.trust = scale.trust;
    f.decay = decays ? (float)p.decay : 0.0f;
    f.momentum = (float)p.momentum;
    if (p.rule != BPT__UPDATE_ADAMW) return f;
    const double t = (double)step->updates, rate = (double)step->rate;
    f.kept = decays ? (float)(1.0 - rate * p.decay) : 1.0f;
    f.rate = (float)(rate / (1.0 - pow(p.beta1, t)));
    f.root = (float)sqrt(1.0 - pow(p.beta2, t));
    f.beta1 = (float)p.beta1;
    f.new1 = (float)(1.0 - p.beta1);
    f.beta2 = (float)p.beta2;
    f.new2 = (float)(1.0 - p.beta2);
    f.eps = (float)p.eps;
    return f;
}

/* inner/optimizers/: one value. The trust is 1 but for LARS. */
template <bpt__update_rule RULE>
__device__ static float update_value(const factors &f, float w, float g, float *first,
                                     float *second) {
    if constexpr (RULE == BPT__UPDATE_ADAMW) {
        const float d = f.scale * g;
        *first = f.beta1 * *first + f.new1 * d;
        *second = f.beta2 * *second + f.new2 * (d * d);
        return f.kept * w - f.rate * (*first / (sqrtf(*second) / f.root + f.eps));
    }
    const float d = f.trust * (f.scale * g + f.decay * w);
    if constexpr (RULE == BPT__UPDATE_PLAIN) return w - f.rate * d;
    *first = f.momentum * *first + d;
    return w - f.rate * (RULE == BPT__UPDATE_NESTEROV ? d + f.momentum * *first : *first);
}

template <bpt__update_rule RULE>
__device__ static float4 update_four(const bpt__update_plan &p, const factors &f, int64_t at, int n,
                                     float4 w, float4 g) {
    constexpr bool has_first = RULE != BPT__UPDATE_PLAIN, has_second = RULE == BPT__UPDATE_ADAMW;
    float4 a = {}, b = {};
    if constexpr (has_first) a = bpt__read_four(p.state[0] + at, n);
    if constexpr (has_second) b = bpt__read_four(p.state[1] + at, n);
    w.x = update_value<RULE>(f, w.x, g.x, &a.x, &b.x);
    w.y = update_value<RULE>(f, w.y, g.y, &a.y, &b.y);
    w.z = update_value<RULE>(f, w.z, g.z, &a.z, &b.z);
    w.w = update_value<RULE>(f, w.w, g.w, &a.w, &b.w);
    if constexpr (has_first) bpt__write_four(a, n, p.state[0] + at);
    if constexpr (has_second) bpt__write_four(b, n, p.state[1] + at);
    return w;
}

__device__ static float4 follow(float part, float4 w, float4 g) {
    return float4{w.x - part * g.x, w.y - part * g.y, w.z - part * g.z, w.w - part * g.w};
}

/* Values from the range's end on are 0 for this: w is, and so are g and the states, where AdamW
 * makes 0 / (0 + eps) of them. */
template <bpt__update_rule RULE>
__device__ static bool update_range(const bpt__update_plan &p, const bpt__update_range &range,
                                    const bpt__update_segment &segment, const factors &f,
                                    const float4 g[BPT__UPDATE_FOURS]) {
    const bool copies = segment.has_copy && p.copies;
    bool finite = true;
#pragma unroll
    for (int i = 0; i < BPT__UPDATE_FOURS; i++) {
        const int n = range.count - bpt__four(i);
        if (n <= 0) break;
        const int64_t at = range.begin + bpt__four(i);
        float4 w = bpt__read_four(p.weights + at, n);
        w = segment.running > 0.0f ? follow(segment.running, w, g[i])
                                   : update_four<RULE>(p, f, at, n, w, g[i]);
        bpt__write_four(w, n, p.weights + at);
        if (copies) bpt__narrow_four(w, n, p.copies + at);
        finite = finite && bpt__finite_four(w);
    }
    return finite;
}

/* @return whether all of a block's are finite, to each of its threads */
__device__ static bool read_gradients(const bpt__update_plan &p, const bpt__update_range &range,
                                      float4 g[BPT__UPDATE_FOURS]) {
    bool finite = true;
#pragma unroll
    for (int i = 0; i < BPT__UPDATE_FOURS; i++)
        g[i] = bpt__read_four(p.gradients + range.begin + bpt__four(i), range.count - bpt__four(i));
#pragma unroll
    for (int i = 0; i < BPT__UPDATE_FOURS; i++) finite = finite && bpt__finite_four(g[i]);
    return __syncthreads_and(finite);
}

__device__ static void tell(int32_t *where, int32_t number) {
    if (threadIdx.x == 0) atomicMax(where, number);
}

template <bpt__update_rule RULE>
__global__ void __launch_bounds__(BPT__UPDATE_THREADS)
    apply(bpt__update_plan p, const bpt_cuda_step *step, bpt_cuda_outcome *outcome) {
    __shared__ factors shared;
    const bpt__update_range range = p.ranges[blockIdx.x];
    const bpt__update_segment segment = p.segments[range.segment];
    bpt__update_scale scale = {1.0f, 1.0f};
    float4 g[BPT__UPDATE_FOURS];
    if (outcome->bad_loss || outcome->bad_label) return;
    if (p.scales && !(segment.running > 0.0f)) scale = p.scales[range.segment];
    if (threadIdx.x == 0) shared = find_factors(p, step, scale, segment.decays);
    if (!read_gradients(p, range, g)) { /* and a barrier */
        tell(&outcome->bad_gradient, range.segment + 1);
        return;
    }
    /* By way of a norm, from another range or too large a one. */
    if (!isfinite(scale.gradient * scale.trust)) {
        tell(&outcome->bad_norm, 1);
        return;
    }
    if (!__syncthreads_and(update_range<RULE>(p, range, segment, shared, g)))
        tell(&outcome->bad_weight, range.segment + 1);
}

static __global__ void __launch_bounds__(BPT__UPDATE_THREADS)
    look(bpt__update_plan p, bpt_cuda_outcome *outcome) {
    const bpt__update_range range = p.ranges[blockIdx.x];
    float4 g[BPT__UPDATE_FOURS];
    if (!read_gradients(p, range, g)) tell(&outcome->bad_gradient, range.segment + 1);
}

static __global__ void __launch_bounds__(BPT__UPDATE_THREADS) narrow(bpt__update_plan p) {
    const bpt__update_range range = p.ranges[blockIdx.x];
    if (!p.segments[range.segment].has_copy) return;
    for (int i = 0; i < BPT__UPDATE_FOURS; i++) {
        const int n = range.count - bpt__four(i);
        const int64_t at = range.begin + bpt__four(i);
        if (n > 0) bpt__narrow_four(bpt__read_four(p.weights + at, n), n, p.copies + at);
    }
}

/* ---- launches ---- */

template <bpt__update_rule RULE>
static bpt_status launch(bpt_cuda_stream stream, const bpt__update_plan *plan,
                         const bpt_cuda_step *step, bpt_cuda_outcome *outcome) {
    BPT__LAUNCH(apply<RULE>, plan->n_ranges, BPT__UPDATE_THREADS, stream, *plan, step, outcome);
    return BPT_OK;
}

extern "C" bpt_status bpt__update_apply(bpt_cuda_stream stream, const bpt__update_plan *plan,
                                        const bpt_cuda_step *step, bpt_cuda_outcome *outcome) {
    if (plan->n_ranges == 0) return BPT_OK;
    switch (plan->rule) {
    case BPT__UPDATE_PLAIN:
        return launch<BPT__UPDATE_PLAIN>(stream, plan, step, outcome);
    case BPT__UPDATE_MOMENTUM:
        return launch<BPT__UPDATE_MOMENTUM>(stream, plan, step, outcome);
    case BPT__UPDATE_NESTEROV:
        return launch<BPT__UPDATE_NESTEROV>(stream, plan, step, outcome);
    case BPT__UPDATE_ADAMW:
        return launch<BPT__UPDATE_ADAMW>(stream, plan, step, outcome);
    }
    return BPT_OK;
}

extern "C" bpt_status bpt__update_look(bpt_cuda_stream stream, const bpt__update_plan *plan,
                                       bpt_cuda_outcome *outcome) {
    if (plan->n_ranges == 0) return BPT_OK;
    BPT__LAUNCH(look, plan->n_ranges, BPT__UPDATE_THREADS, stream, *plan, outcome);
    return BPT_OK;
}

extern "C" bpt_status bpt__update_narrow(bpt_cuda_stream stream, const bpt__update_plan *plan) {
    const int32_t n = plan->n_ranges + plan->n_frozen_ranges;
    if (n == 0 || !plan->copies) return BPT_OK;
    BPT__LAUNCH(narrow, n, BPT__UPDATE_THREADS, stream, *plan);
    return BPT_OK;
}
