#include "tests/ref/ref_learning.h"

#include "tests/ref/ref.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

void ref_nesterov_update(size_t n, double *w, double *v, const double *g, double rate,
                         double momentum, double decay) {
    for (size_t i = 0; i < n; i++) {
        const double d = g[i] + decay * w[i];
        v[i] = momentum * v[i] + d;
        w[i] -= rate * (d + momentum * v[i]);
    }
}

void ref_adamw_update(size_t n, double *w, double *m, double *v, const double *g, uint64_t t,
                      double rate, const bpt_learning *l) {
    for (size_t i = 0; i < n; i++) {
        w[i] -= rate * l->decay * w[i];
        m[i] = l->beta1 * m[i] + (1 - l->beta1) * g[i];
        v[i] = l->beta2 * v[i] + (1 - l->beta2) * g[i] * g[i];
        const double mean = m[i] / (1 - pow(l->beta1, (double)t));
        const double square = v[i] / (1 - pow(l->beta2, (double)t));
        w[i] -= rate * mean / (sqrt(square) + l->eps);
    }
}

double ref_norm(const double *x, size_t n) {
    double sum = 0.0;
    for (size_t i = 0; i < n; i++) sum += x[i] * x[i];
    return sqrt(sum);
}

void ref_lars_update(size_t n, double *w, double *v, const double *g, double norm, double rate,
                     const bpt_learning *l) {
    const double of_w = ref_norm(w, n);
    const double trust = of_w > 0 && norm > 0 ? l->eta * of_w / (norm + l->decay * of_w) : 1.0;
    for (size_t i = 0; i < n; i++) {
        v[i] = l->momentum * v[i] + trust * (g[i] + l->decay * w[i]);
        w[i] -= rate * v[i];
    }
}

/* Of one segment.
 * @param l    whose decay is 0 where the segment does not decay
 * @param norm of the gradient before its step was limited */
static void update_segment(const bpt_segment *s, const bpt_learning *l, uint64_t t, double rate,
                           double *w, double *const *states, const double *g, double norm) {
    const char *name = bpt_learning_optimizer(l)->name;
    double *a = states[0] + s->offset, *b = states[1] + s->offset;
    if (strcmp(name, "adamw") == 0)
        ref_adamw_update(s->count, w, a, b, g, t, rate, l);
    else if (strcmp(name, "lars") == 0 && s->role.decays)
        ref_lars_update(s->count, w, a, g, norm, rate, l);
    else if (l->nesterov)
        ref_nesterov_update(s->count, w, a, g, rate, l->momentum, l->decay);
    else
        ref_sgd_update(s->count, w, a, g, rate, l->momentum, l->decay);
}

static double clip_scale(const bpt_segments *s, double clip_norm, const double *g) {
    double sum = 0.0;
    for (size_t i = 0; i < s->n; i++) {
        const bpt_segment *segment = &s->items[i];
        const double norm = ref_norm(g + segment->offset, segment->count);
        if (segment->role.running == 0.0f) sum += norm * norm;
    }
    return clip_norm > 0.0 ? fmin(1.0, clip_norm / (sqrt(sum) + 1e-6)) : 1.0;
}

/* What the gradient of a segment is multiplied by. */
static double step_scale(const bpt_segment *s, double limit, double rate, const double *w,
                         const double *g) {
    const double of_w = ref_norm(w, s->count), of_g = ref_norm(g, s->count);
    if (limit == 0.0 || !s->role.decays || of_w == 0.0 || of_g == 0.0) return 1.0;
    return fmin(1.0, limit * of_w / (rate * of_g));
}

void ref_learning_update(const bpt_segments *s, const bpt_learning *l, uint64_t t, double rate,
                         double *w, double *const *states, const double *g) {
    const double scale = clip_scale(s, l->clip_norm, g);
    double *clipped = ref_zeros(s->n_elements);
    for (size_t i = 0; i < s->n_elements; i++) clipped[i] = scale * g[i];
    for (size_t i = 0; i < s->n; i++) {
        const bpt_segment *segment = &s->items[i];
        const size_t begin = segment->offset;
        bpt_learning of_segment = *l;
        if (!segment->role.decays) of_segment.decay = 0.0;
        const double norm = ref_norm(clipped + begin, segment->count);
        const double limited = step_scale(segment, l->step_limit, rate, w + begin, clipped + begin);
        for (size_t j = 0; j < segment->count; j++) clipped[begin + j] *= limited;
        if (segment->role.running == 0.0f)
            update_segment(segment, &of_segment, t, rate, w + begin, states, clipped + begin, norm);
        else
            for (size_t j = begin; j < begin + segment->count; j++)
                w[j] -= (double)segment->role.running * g[j];
    }
    free(clipped);
}

double ref_smoothed_loss(int64_t n, int64_t classes, const double *logits, const int32_t *labels,
                         double smoothing, double denominator, double *dlogits) {
    double loss = 0.0;
    for (int64_t i = 0; i < n; i++) {
        const double *x = logits + i * classes;
        double largest = x[0], sum = 0.0;
        for (int64_t k = 0; k < classes; k++) largest = fmax(largest, x[k]);
        for (int64_t k = 0; k < classes; k++) sum += exp(x[k] - largest);
        for (int64_t k = 0; k < classes; k++) {
            const double log_p = x[k] - largest - log(sum);
            const double target =
                (1 - smoothing) * (k == labels[i] ? 1.0 : 0.0) + smoothing / (double)classes;
            if (labels[i] >= 0) loss -= target * log_p;
            dlogits[i * classes + k] = labels[i] >= 0 ? (exp(log_p) - target) / denominator : 0.0;
        }
    }
    return loss;
}

static double mixed_target(int64_t k, int32_t label, int32_t second, float part) {
    const double p = second >= 0 ? (double)part : 0.0;
    return (1 - p) * (k == label ? 1.0 : 0.0) + p * (k == second ? 1.0 : 0.0);
}

double ref_mixed_loss(int64_t n, int64_t classes, const double *logits, const int32_t *labels,
                      const int32_t *seconds, const float *parts, double smoothing,
                      double denominator, double *dlogits) {
    double loss = 0.0;
    for (int64_t i = 0; i < n; i++) {
        const double *x = logits + i * classes;
        double sum = 0.0;
        for (int64_t k = 0; k < classes; k++) sum += exp(x[k] - x[0]);
        for (int64_t k = 0; k < classes; k++) {
            const double log_p = x[k] - x[0] - log(sum);
            const double target =
                (1 - smoothing) * mixed_target(k, labels[i], seconds[i], parts[i]) +
                smoothing / (double)classes;
            if (labels[i] >= 0) loss -= target * log_p;
            dlogits[i * classes + k] = labels[i] >= 0 ? (exp(log_p) - target) / denominator : 0.0;
        }
    }
    return loss;
}
