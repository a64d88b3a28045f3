/** @file tools/eval/onnx_file.h
 * The file of bpt-eval --onnx: the network with its weights, and what somebody who computes it has
 * to know; docs/formats.md has all of it.
 *
 * Threads: the main one. */
#ifndef BPT_TOOLS_ONNX_FILE_H
#define BPT_TOOLS_ONNX_FILE_H

#include "inner/onnx/onnx.h"
#include "storage/dataset/dataset.h"

/** Where a network comes from. */
typedef struct bpt_onnx_origin {
    const bpt_model *model;
    const float *weights;       /* flat; borrowed while the file is made and written */
    const char *weights_path;   /* --weights */
    const char *data;           /* path of the dataset that it has learnt from */
    const bpt_dataset *dataset; /* that one: has the names of the classes */
    const bpt_split
        *split; /* --train-split: its mean and deviation are what the file normalises by */
} bpt_onnx_origin;

/** Tries whether a file can be made at @p path, before all is computed.
 * @return as bpt_result_file_try() */
bpt_status bpt_onnx_file_try(const char *path);

/** @param[out] onnx caller owns, bpt_onnx_free() @return as bpt_onnx_create() */
bpt_status bpt_onnx_file_create(const bpt_onnx_origin *origin, bpt_onnx **onnx);

/** Writes it, unless what is at @p path by now may not be replaced. @return as
 * bpt_result_file_try() and bpt_file_write() */
bpt_status bpt_onnx_file_write(const bpt_onnx *onnx, const char *path);

#endif
