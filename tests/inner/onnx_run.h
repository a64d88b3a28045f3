/** @file tests/inner/onnx_run.h
 * Computes an ONNX model by plain loops in double precision, as ONNX's own text ("Operator
 * Schemas", version 13) defines each operator: nothing of bpt's network is used.
 *
 * Every function ends the running test where something is not as the text demands: an operator, an
 * attribute or a shape.
 *
 * Threads: one; the test's own. */
#ifndef TESTS_INNER_ONNX_RUN_H
#define TESTS_INNER_ONNX_RUN_H

#include "tests/inner/onnx_message.h"

#include <stdint.h>

/** @param n samples; @param input shape [n, the rest of the model's input]
 * @return the model's output, shape [n, the rest of it]; free() */
double *onnx_run(const onnx_model *model, int64_t n, const float *input);

#endif
