/** @file inner/onnx/onnx.h
 * A model with its weights as an ONNX file, which runtimes for many machines and languages compute:
 * docs/formats.md says what it takes and gives.
 *
 * Every layer is what its kind is in evaluation, in floats; what is computed together here
 * (bpt_fusion) is apart. The weights are not copied: the file is a list of parts.
 *
 * Threads: one. */
#ifndef BPT_INNER_ONNX_H
#define BPT_INNER_ONNX_H

#include "base/file.h"
#include "base/status.h"
#include "inner/models/model.h"
#include "inner/weights/safetensors.h"

#include <stddef.h>

/** What a file written by bpt begins with: the version of the format, and who wrote it. */
extern const char bpt_onnx_head[];
enum { BPT_ONNX_HEAD_BYTES = 7 };

/** What is to be in the file. */
typedef struct bpt_onnx_source {
    const bpt_model *model; /* a whole one */
    const float *weights;   /* flat, as model->segments say; bpt_segments_check() finds no fault */
    const float *scale,
        *shift;             /* shape [C]: a pixel is seen by the network as pixel * scale + shift */
    const char *input_text; /* what the input is, for people */
    const bpt_metadata *metadata; /* "metadata_props", shape [n_metadata] */
    size_t n_metadata;
} bpt_onnx_source;

typedef struct bpt_onnx bpt_onnx;

/** Makes all of the file but the weights, of which no value is looked at.
 * @param source its weights are borrowed while @p onnx lives, and not read here; the rest is copied
 * @param[out] onnx caller owns, bpt_onnx_free()
 * @return BPT_OK, BPT_EUSAGE (a kind of layer has no form in ONNX; the file would have 2^31 bytes
 * or more, which no program reads), BPT_ENOMEM */
bpt_status bpt_onnx_create(const bpt_onnx_source *source, bpt_onnx **onnx);

/** @return what the file consists of, one behind the other, for bpt_file_write_parts(); shape [*n],
 * valid while @p onnx is */
const bpt_bytes *bpt_onnx_parts(const bpt_onnx *onnx, size_t *n);

void bpt_onnx_free(bpt_onnx *onnx);

#endif
