/** @file tests/ref/ref_learning.h
 * Optimisers, clipping, smoothed and mixed labels in double precision, formula by formula.
 *
 * Threads: any. */
#ifndef TESTS_REF_REF_LEARNING_H
#define TESTS_REF_REF_LEARNING_H

#include "inner/optimizers/optimizer.h"
#include "inner/weights/segments.h"

#include <stddef.h>
#include <stdint.h>

/** d = g + decay * w;  v = momentum * v + d;  w = w - rate * (d + momentum * v)
 * @param w,v,g shape [n] */
void ref_nesterov_update(size_t n, double *w, double *v, const double *g, double rate,
                         double momentum, double decay);

/** PyTorch's AdamW: w = w - rate * decay * w;  m = beta1 m + (1 - beta1) g;
 * v = beta2 v + (1 - beta2) g^2;
 * w = w - rate * (m / (1 - beta1^t)) / (sqrt(v / (1 - beta2^t)) + eps)
 * @param t number of the update, from 1
 * @param l beta1, beta2, eps, decay are read */
void ref_adamw_update(size_t n, double *w, double *m, double *v, const double *g, uint64_t t,
                      double rate, const bpt_learning *l);

/** One whole segment: v = momentum * v + trust * (g + decay * w);  w = w - rate * v, with
 * trust = eta |w| / (norm + decay |w|), or 1 where a norm is 0
 * @param norm of g, before its step was limited
 * @param l    momentum, decay, eta are read */
void ref_lars_update(size_t n, double *w, double *v, const double *g, double norm, double rate,
                     const bpt_learning *l);

/** @return the Euclidean norm of x, shape [n] */
double ref_norm(const double *x, size_t n);

/** Clips, limits the step of each segment, then updates all segments as @p l says; running
 * statistics follow their gradient. The trust of lars is that of the gradient before its step is
 * limited.
 * @param w,g     flat
 * @param states  as the optimiser's table has them; flat; shape [BPT_MAX_STATES]
 * @param t       number of the update, from 1 */
void ref_learning_update(const bpt_segments *s, const bpt_learning *l, uint64_t t, double rate,
                         double *w, double *const *states, const double *g);

/** ref_softmax_loss() with the target (1 - smoothing) * one_hot + smoothing / classes. */
double ref_smoothed_loss(int64_t n, int64_t classes, const double *logits, const int32_t *labels,
                         double smoothing, double denominator, double *dlogits);

/** ref_softmax_loss() with the target (1 - smoothing) * ((1 - part) * one_hot(label) +
 * part * one_hot(second)) + smoothing / classes.
 * @param seconds, parts shape [n]; a second label of -1: that sample has none */
double ref_mixed_loss(int64_t n, int64_t classes, const double *logits, const int32_t *labels,
                      const int32_t *seconds, const float *parts, double smoothing,
                      double denominator, double *dlogits);

#endif
