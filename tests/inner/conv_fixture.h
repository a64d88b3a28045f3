/** @file tests/inner/conv_fixture.h
 * What tests of convolutions share.
 *
 * Threads: one; the test's own. */
#ifndef TESTS_INNER_CONV_FIXTURE_H
#define TESTS_INNER_CONV_FIXTURE_H

#include "inner/cpu/cpu.h"
#include "tests/inner/net_fixture.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/** @return a convolution of 3x3 of fp32 that keeps the size: pad 1, no strides, dilation, groups */
bpt_conv_problem conv_square(int64_t n, int64_t c, int64_t k, int64_t side);

/** @return whether there are kernels of AVX-512: those processors have some for bfloat16, native or
 * not */
bool conv_has_avx512(void);

/** @return whether a task of a convolution is one of its three steps */
bool conv_is_step(bpt_task_info info);

/** @return tasks of a layer of that kind, in all phases */
size_t conv_tasks(const net_fixture *f, const char *label, const char *kind);

/** @return whether one of a layer's three steps is done by oneDNN's kernels of matrix products,
 * which fit their order of sums to the part that they are given */
bool conv_is_of_products(const net_fixture *f, const char *label);

/** Whether a layer's tasks and its cut in the plan, of all three steps and in all tiles alike, are
 * of Winograd's algorithm. Ends the test where one is not as said. */
void conv_check_algorithm(const net_fixture *f, const char *label, bool winograd);

/** Compares the gradient with that of the double-precision reference: each value may differ by
 * @p absolute + @p relative of it. Ends the test where one differs by more. */
void conv_check_gradient(const net_fixture *f, double absolute, double relative);

#endif
