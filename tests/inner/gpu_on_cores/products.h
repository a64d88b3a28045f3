/** @file tests/inner/gpu_on_cores/products.h
 * Convolutions and products of inner/cuda/cuda_library.h on cores, by oneDNN's product of floats.
 *
 * Threads: any. They allocate, and end the process where there is no memory. */
#ifndef TESTS_INNER_GPU_ON_CORES_PRODUCTS_H
#define TESTS_INNER_GPU_ON_CORES_PRODUCTS_H

#include "inner/cuda/cuda_library.h"

/** @param a,b,bias,out as bpt_cuda_conv_run() takes them */
void gpu_on_cores_conv(const bpt_cuda_conv_problem *problem, bpt_cuda_conv_step step, const void *a,
                       const void *b, const float *bias, void *out);

/** Rows of C [m, n] = A B + beta C; 'T': a factor is given transposed; lda, ldb, ldc: floats from
 * one row to the next. */
void gpu_on_cores_multiply(char ta, char tb, int64_t m, int64_t n, int64_t k, const float *a,
                           int64_t lda, const float *b, int64_t ldb, float beta, float *c,
                           int64_t ldc);

/** @return values as floats; free() */
float *gpu_on_cores_read(bpt_value_type type, const void *from, int64_t n);
void gpu_on_cores_write(bpt_value_type type, const float *from, int64_t n, void *to);

/** A fully connected layer is a convolution of one pixel.
 * @param a,b,bias,out as bpt_cuda_product_run() takes them */
void gpu_on_cores_product(const bpt_cuda_product_problem *problem, bpt_cuda_conv_step step,
                          const void *a, const void *b, const float *bias, void *out);

#endif
