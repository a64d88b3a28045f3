/* Softmax cross-entropy: as inner/network/loss.c has it, a block for a sample, then one block for
 * the sums over the batch. */
#include "inner/cuda/cuda_device.cuh"
#include "inner/cuda/cuda_step.h"

/* What the batch's kernel is told of a sample: 1 for a hit, 0 for none; or */
constexpr double MISSING = -1.0; /* it has no label */
constexpr double BAD = -2.0;     /* less its label, which is none of the classes */

/* What is given, as bpt_cuda_loss() says. */
template <typename T> struct batch {
    const T *logits;
    const int32_t *labels, *second;
    const float *parts;
    T *gradient;
    int64_t n, row, classes;
};

/* The target: (1 - smoothing) * ((1 - second_part) * one_hot(label) + second_part *
 * one_hot(second)) + smoothing / classes. */
struct target {
    int32_t label, second;
    double of_label, of_second, each;
    int32_t likelier; /* of the two labels: what counts as a hit */
    int32_t bad;      /* a label that is not below the classes, or -1 */
};

template <typename T>
static __device__ target target_of(const batch<T> &batch, const bpt_cuda_step *step,
                                   double smoothing, int64_t i) {
    const int32_t label = batch.labels[i];
    const bool is_mixed = step->trains && step->has_second && batch.second[i] >= 0;
    const int32_t second = is_mixed ? batch.second[i] : label;
    const double part = is_mixed ? (double)batch.parts[i] : 0.0;
    const double smoothed = step->trains ? smoothing : 0.0;
    return {
        label,
        second,
        (1.0 - smoothed) * (1.0 - part),
        (1.0 - smoothed) * part,
        smoothed / (double)batch.classes,
        part > 0.5 ? second : label,
        label >= batch.classes    ? label
        : second >= batch.classes ? second
                                  : -1,
    };
}

/* The largest logit, of equal ones the first. */
struct largest {
    float value;
    int32_t index;
};

static __device__ largest larger(largest a, largest b) {
    const bool is_b = b.value > a.value || (b.value == a.value && b.index < a.index);
    return is_b ? b : a;
}

/* @return that of all threads of the block, to each of them */
static __device__ largest block_largest(largest x) {
    __shared__ largest of_threads[BPT__THREADS];
    of_threads[threadIdx.x] = x;
    __syncthreads();
    for (unsigned half = BPT__THREADS / 2; half > 0; half /= 2) {
        if (threadIdx.x < half)
            of_threads[threadIdx.x] =
                larger(of_threads[threadIdx.x], of_threads[threadIdx.x + half]);
        __syncthreads();
    }
    x = of_threads[0];
    __syncthreads(); /* the next search may overwrite */
    return x;
}

/* Of only NaNs none is larger than another: the first then. */
template <typename T> static __device__ largest find_largest(const T *x, int64_t classes) {
    largest most = {-INFINITY, INT32_MAX};
    for (int64_t k = threadIdx.x; k < classes; k += BPT__THREADS)
        most = larger(most, {bpt__from(x[k]), (int32_t)k});
    most = block_largest(most);
    return most.index < INT32_MAX ? most : largest{bpt__from(x[0]), 0};
}

/* Sums over classes, of a whole sample. */
struct class_sums {
    double exponentials; /* of logits less the largest: nothing overflows */
    double below;        /* how far logits are below it; 0 unless wanted */
};

template <typename T>
static __device__ class_sums sum_classes(const T *x, int64_t classes, float most,
                                         bool wants_below) {
    class_sums sums = {0.0, 0.0};
    for (int64_t k = threadIdx.x; k < classes; k += BPT__THREADS) {
        const float value = bpt__from(x[k]);
        sums.exponentials += (double)expf(value - most);
        if (wants_below) sums.below += (double)most - (double)value;
    }
    sums.exponentials = bpt__block_sum(sums.exponentials);
    if (wants_below) sums.below = bpt__block_sum(sums.below);
    return sums;
}

/* Writes (softmax(x) - target) * scale: the difference in double, so that of a sample that is
 * learned digits are left. */
template <typename T>
static __device__ void write_gradient(const batch<T> &batch, const T *x, const target &target,
                                      float most, double sum, float scale, T *gradient) {
    for (int64_t k = threadIdx.x; k < batch.row; k += BPT__THREADS) {
        float value = 0.0f;
        if (k < batch.classes) {
            double difference = (double)expf(bpt__from(x[k]) - most) / sum - target.each;
            if (k == target.label) difference -= target.of_label;
            if (k == target.second) difference -= target.of_second;
            value = (float)difference * scale;
        }
        bpt__to(value, gradient + k);
    }
}

template <typename T> static __device__ void write_zeros(int64_t n, T *gradient) {
    for (int64_t k = threadIdx.x; k < n; k += BPT__THREADS) gradient[k] = 0;
}

/* All threads of a block.
 * @param[out] hit 1 or 0; @return the loss; both to each thread */
template <typename T>
static __device__ double sample_loss(const batch<T> &batch, const target &target, int64_t i,
                                     float scale, double *hit) {
    const T *x = batch.logits + i * batch.row;
    const largest most = find_largest(x, batch.classes);
    const double of_label = (double)most.value - (double)bpt__from(x[target.label]);
    const double of_second = (double)most.value - (double)bpt__from(x[target.second]);
    const class_sums sums = sum_classes(x, batch.classes, most.value, target.each > 0.0);
    double loss = log(sums.exponentials) + target.of_label * of_label;
    if (target.of_second > 0.0) loss += target.of_second * of_second;
    if (target.each > 0.0) loss += target.each * sums.below;
    if (batch.gradient)
        write_gradient(batch, x, target, most.value, sums.exponentials, scale,
                       batch.gradient + i * batch.row);
    *hit = most.index == target.likelier ? 1.0 : 0.0;
    return loss;
}

/* @param losses shape [2, n]: losses, and hits or what is in their place */
template <typename T>
static __global__ void sample_losses(batch<T> batch, const bpt_cuda_step *step, double smoothing,
                                     double *losses) {
    const float scale = 1.0f / step->denominator;
    for (int64_t i = blockIdx.x; i < batch.n; i += gridDim.x) {
        const target target = target_of(batch, step, smoothing, i);
        double loss = 0.0, hit = MISSING;
        if (target.bad >= 0) hit = BAD - (double)target.bad;
        if (target.bad < 0 && target.label >= 0)
            loss = sample_loss(batch, target, i, scale, &hit);
        else if (batch.gradient) /* not 0 times something: that may be NaN here */
            write_zeros(batch.row, batch.gradient + i * batch.row);
        if (threadIdx.x > 0) continue;
        losses[i] = loss;
        losses[batch.n + i] = hit;
    }
}

/* One block. */
static __global__ void batch_loss(const double *losses, int64_t n, bpt_cuda_outcome *outcome) {
    __shared__ int bad_label;
    double loss = 0.0, hits = 0.0, samples = 0.0;
    if (threadIdx.x == 0) bad_label = 0;
    __syncthreads();
    for (int64_t i = threadIdx.x; i < n; i += BPT__THREADS) {
        const double hit = losses[n + i];
        if (hit <= BAD) atomicMax(&bad_label, (int)fmin(BAD - hit, INT32_MAX - 1.0) + 1);
        if (hit < 0.0) continue;
        loss += losses[i];
        hits += hit;
        samples += 1.0;
    }
    loss = bpt__block_sum(loss);
    hits = bpt__block_sum(hits);
    samples = bpt__block_sum(samples);
    if (threadIdx.x > 0) return;
    outcome->loss_sum = loss;
    outcome->n_correct = (uint64_t)hits;
    outcome->n_samples = (uint64_t)samples;
    outcome->bad_label = bad_label;
    outcome->bad_loss = !isfinite(loss);
}

template <typename T>
static bpt_status run(bpt_cuda_stream stream, const batch<T> &batch, const bpt_cuda_step *step,
                      double smoothing, double *losses, bpt_cuda_outcome *outcome) {
    const unsigned blocks = bpt__blocks(batch.n * BPT__THREADS);
    BPT__LAUNCH(sample_losses<T>, blocks, BPT__THREADS, stream, batch, step, smoothing, losses);
    BPT__LAUNCH(batch_loss, 1, BPT__THREADS, stream, losses, batch.n, outcome);
    return BPT_OK;
}

bpt_status bpt_cuda_loss(bpt_cuda_stream stream, const bpt_cuda_step *step, const void *logits,
                         bpt_value_type type, int64_t n, int64_t row, int64_t classes,
                         const int32_t *labels, const int32_t *second, const float *parts,
                         double smoothing, double *losses, void *gradient,
                         bpt_cuda_outcome *outcome) {
    if (type == BPT_BF16) {
        const batch<bpt_bf16> all = {(const bpt_bf16 *)logits, labels, second, parts,
                                     (bpt_bf16 *)gradient,     n,      row,    classes};
        return run(stream, all, step, smoothing, losses, outcome);
    }
    const batch<float> all = {(const float *)logits, labels, second, parts,
                              (float *)gradient,     n,      row,    classes};
    return run(stream, all, step, smoothing, losses, outcome);
}
