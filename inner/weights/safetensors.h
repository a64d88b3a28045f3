/** @file inner/weights/safetensors.h
 * Files of named float tensors in the safetensors format: 8 bytes little-endian header length, a
 * JSON header {"name": {"dtype": "F32", "shape": [...], "data_offsets": [from, to]}}, the data.
 *
 * Threads: any. */
#ifndef BPT_INNER_SAFETENSORS_H
#define BPT_INNER_SAFETENSORS_H

#include "base/status.h"
#include "inner/weights/segments.h"

/** One key of the header's "__metadata__" map. */
typedef struct bpt_metadata {
    const char *key, *value;
} bpt_metadata;

/** Writes a flat vector, whole or not at all (bpt_file_write()), without a copy of it. The header
 * is padded so that the data start at a multiple of 64 bytes. Metadata and tensors keep the given
 * order: the same input gives the same bytes.
 * @param values shape [s->n_elements]; @param metadata shape [n_metadata], may be NULL
 * @return BPT_OK, BPT_ENOSPC, BPT_EIO, BPT_ENOMEM */
bpt_status bpt_safetensors_write(const char *path, const bpt_segments *s, const float *values,
                                 const bpt_metadata *metadata, size_t n_metadata);

/** Reads a file into the flat vector of @p s, by name: the order in the file does not matter.
 * A missing tensor, another shape or type, a tensor too many, overlapping or overhanging offsets
 * are errors that name file and tensor; the hint lists what else is missing, of another shape or
 * too many.
 * Tensors called NAME.num_batches_tracked, by which PyTorch counts, are passed over.
 * @param[out] values shape [s->n_elements]; unspecified on error
 * @return BPT_OK, BPT_ENOENT, BPT_EDATA, BPT_EIO, BPT_ENOMEM */
bpt_status bpt_safetensors_read(const char *path, const bpt_segments *s, float *values);

/** The same but for some layers: their tensors may be missing in the file, be of any shape and
 * type, or be unknown to @p s, and their values stay as they are.
 * @param except names with commas between them; a name stands for all tensors "<name>...."; NULL:
 *               none
 * @param[in,out] values shape [s->n_elements]; unspecified on error
 * @param[out] n_alike where the file lacks tensors, has them in another shape or has too many: how
 *               many of @p s have theirs; else 0. NULL: nobody asks
 * @return likewise, and BPT_EUSAGE (neither file nor @p s has a tensor of such a name) */
bpt_status bpt_safetensors_read_except(const char *path, const bpt_segments *s, const char *except,
                                       float *values, size_t *n_alike);

/** @return whether a list of names, as @p except above, stands for the tensor of this name */
bool bpt_safetensors_excepts(const char *except, const char *tensor);

#endif
