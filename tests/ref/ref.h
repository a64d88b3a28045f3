/** @file tests/ref/ref.h
 * What every kernel is compared with: plain loops in double precision over plain NCHW arrays,
 * written to be read beside the formula and never to be fast.
 *
 * Outputs are overwritten, not added to. Letters as in inner/layers/layer.h. Out of memory ends the
 * program.
 *
 * Threads: any. */
#ifndef TESTS_REF_REF_H
#define TESTS_REF_REF_H

#include <stddef.h>
#include <stdint.h>

/* ---- arrays ---- */

/** @return zeros, shape [n]; caller owns, free() */
double *ref_zeros(size_t n);

/** @return a copy of floats as doubles, shape [n]; caller owns, free() */
double *ref_doubles(const float *x, size_t n);

/** @return max |x - ref| / max |ref|: the error relative to the largest value; 0 for n = 0.
 * Infinite if x holds a NaN, or if @p ref is all zero and @p x is not */
double ref_error(const float *x, const double *ref, size_t n);

/* ---- windows: convolution and pooling ---- */

/** Rows come first in every pair. */
typedef struct ref_window {
    int64_t n, c, h, w; /* input */
    int64_t k;          /* output channels of a convolution; unused by pooling */
    int64_t r, s;       /* kernel */
    int64_t stride[2], pad[2];
    int64_t dilation[2]; /* 0 counts as 1 */
    int64_t groups;      /* 0 counts as 1; convolution alone */
    int64_t p, q;        /* output, if it is not what the functions below say; pooling alone */
} ref_window;

/** @return output rows: floor((H + 2 pad - extent of the kernel) / stride) + 1 */
int64_t ref_window_p(const ref_window *a);
/** @return output columns */
int64_t ref_window_q(const ref_window *a);

/** y[n,k,p,q] = bias[k] + sum over c,r,s of
 *              x[n, c + C/G group(k), p*stride+r*dilation-pad, q*stride+s*dilation-pad]
 * weight[k,c,r,s] with group(k) = k / (K/G).
 * @param x shape [N,C,H,W]; @param weight shape [K,C/G,R,S]; @param bias shape [K] or NULL
 * @param y shape [N,K,P,Q] */
void ref_conv_forward(const ref_window *a, const double *x, const double *weight,
                      const double *bias, double *y);
/** @param dy shape [N,K,P,Q]; @param dx shape [N,C,H,W] */
void ref_conv_backward_data(const ref_window *a, const double *dy, const double *weight,
                            double *dx);
/** @param dweight shape [K,C,R,S] */
void ref_conv_backward_weight(const ref_window *a, const double *x, const double *dy,
                              double *dweight);
/** @param dbias shape [K] */
void ref_conv_backward_bias(const ref_window *a, const double *dy, double *dbias);

/** The largest value of each window; padding never wins, of equal values the first in row-major
 * order does.
 * @param y shape [N,C,P,Q]
 * @param winner index into @p x of each output's value, shape [N,C,P,Q]; may be NULL */
void ref_maxpool_forward(const ref_window *a, const double *x, double *y, int64_t *winner);
/** @param dx shape [N,C,H,W] */
void ref_maxpool_backward(const ref_window *a, const int64_t *winner, const double *dy, double *dx);

/** The mean of each window. @param include_pad whether padding counts, as zeros */
void ref_avgpool_forward(const ref_window *a, int include_pad, const double *x, double *y);
void ref_avgpool_backward(const ref_window *a, int include_pad, const double *dy, double *dx);

/* ---- fully connected: y[n,k] = bias[k] + sum over c of x[n,c] weight[k,c] ---- */

typedef struct ref_fc {
    int64_t n, c, k;
} ref_fc;

/** @param bias shape [K] or NULL */
void ref_fc_forward(const ref_fc *a, const double *x, const double *weight, const double *bias,
                    double *y);
void ref_fc_backward_data(const ref_fc *a, const double *dy, const double *weight, double *dx);
void ref_fc_backward_weight(const ref_fc *a, const double *x, const double *dy, double *dweight);
void ref_fc_backward_bias(const ref_fc *a, const double *dy, double *dbias);

/* ---- elementwise ---- */

void ref_relu_forward(size_t n, const double *x, double *y);
/** dx = dy where x > 0, else 0. @param x input or output of forward: either gives the same */
void ref_relu_backward(size_t n, const double *x, const double *dy, double *dx);

/* ---- normalisation: x, y [N, C, M] with M pixels ---- */

/** Batch normalisation by the moments of those samples whose label is not below zero.
 * @param mean,var of each channel, biased; shape [C]
 * @return values of a channel that took part */
double ref_moments(int64_t n, int64_t c, int64_t m, const double *x, const int32_t *labels,
                   double *mean, double *var);
/** y = (x - mean) / sqrt(var + eps) * weight + bias */
void ref_batchnorm_forward(int64_t n, int64_t c, int64_t m, const double *x, const double *mean,
                           const double *var, double eps, const double *weight, const double *bias,
                           double *y);
/** The gradients where mean and var are the batch's. @param dx 0 for samples that are not there */
void ref_batchnorm_backward(int64_t n, int64_t c, int64_t m, const double *x, const int32_t *labels,
                            const double *mean, const double *var, double eps, const double *weight,
                            const double *dy, double *dx, double *dweight, double *dbias);

/** y = x / (k + alpha / size * sum of x^2 over size channels)^beta; channels outside are zeros */
typedef struct ref_lrn {
    int64_t n, c, m, size;
    double alpha, beta, k;
} ref_lrn;
void ref_lrn_forward(const ref_lrn *a, const double *x, double *y);
void ref_lrn_backward(const ref_lrn *a, const double *x, const double *dy, double *dx);

/* ---- loss and update ---- */

/** Softmax cross-entropy, natural logarithm. A label of -1 counts for nothing.
 * @param logits shape [N, classes]; @param labels shape [N]
 * @param denominator what the summed gradient is divided by
 * @param dlogits gradient, shape [N, classes]; may be NULL
 * @return the loss, summed over samples (not divided) */
double ref_softmax_loss(int64_t n, int64_t classes, const double *logits, const int32_t *labels,
                        double denominator, double *dlogits);

/** v = momentum * v + (g + decay * w);  w = w - rate * v   (PyTorch's SGD)
 * @param w,v,g shape [n] */
void ref_sgd_update(size_t n, double *w, double *v, const double *g, double rate, double momentum,
                    double decay);

#endif
