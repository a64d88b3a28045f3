/** @file tests/inner/onnx_message.h
 * Reads an ONNX file, by the numbers of onnx.proto alone: nothing of inner/onnx/ is used.
 *
 * Every function ends the running test where something is not as it has to be: a field that is not
 * known is an error too, since bpt writes no others.
 *
 * Threads: one; the test's own. */
#ifndef TESTS_INNER_ONNX_MESSAGE_H
#define TESTS_INNER_ONNX_MESSAGE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { ONNX_NAME = 256, ONNX_DIMS = 8, ONNX_INPUTS = 64, ONNX_ATTRIBUTES = 8, ONNX_ENTRIES = 16 };

typedef struct onnx_tensor {
    char name[ONNX_NAME];
    int64_t dims[ONNX_DIMS];
    int n_dims;
    int64_t type;       /* 1: float, 7: int64 */
    const uint8_t *raw; /* in the file, little-endian; shape [raw_bytes] */
    size_t raw_bytes;
} onnx_tensor;

typedef struct onnx_attribute {
    char name[ONNX_NAME];
    int64_t type; /* 1: f, 2: i, 7: ints */
    float f;
    int64_t i, ints[ONNX_DIMS];
    int n_ints;
} onnx_attribute;

typedef struct onnx_node {
    char op[ONNX_NAME], name[ONNX_NAME], output[ONNX_NAME];
    char inputs[ONNX_INPUTS][ONNX_NAME];
    int n_inputs;
    onnx_attribute attributes[ONNX_ATTRIBUTES];
    int n_attributes;
} onnx_node;

/** What goes in or comes out. */
typedef struct onnx_info {
    char name[ONNX_NAME], text[ONNX_NAME];
    int64_t type, dims[ONNX_DIMS]; /* -1: a name stands there */
    char dim_name[ONNX_NAME];
    int n_dims;
} onnx_info;

typedef struct onnx_entry {
    char key[ONNX_NAME], value[ONNX_NAME];
} onnx_entry;

typedef struct onnx_model {
    int64_t format, operators;
    char producer[ONNX_NAME], version[ONNX_NAME], graph[ONNX_NAME];
    onnx_info input, output;
    onnx_node *nodes; /* in the order of the file; shape [n_nodes] */
    size_t n_nodes;
    onnx_tensor *tensors; /* shape [n_tensors] */
    size_t n_tensors;
    onnx_entry entries[ONNX_ENTRIES];
    int n_entries;
} onnx_model;

/** @param file shape [size]; borrowed while the model is used @return onnx_free() */
onnx_model *onnx_read(const uint8_t *file, size_t size);
void onnx_free(onnx_model *model);

/** @return the attribute, NULL: there is none */
const onnx_attribute *onnx_find(const onnx_node *node, const char *name);

#endif
