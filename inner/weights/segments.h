/** @file inner/weights/segments.h
 * The weights of a network as one flat vector of floats with a table of named segments.
 *
 * The canonical order of values inside a segment is row-major over its dimensions; what other
 * ranks, files and tests see is always this order, whatever layout a device computes in.
 *
 * Threads: read-only after the model is built. */
#ifndef BPT_INNER_SEGMENTS_H
#define BPT_INNER_SEGMENTS_H

#include "base/status.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { BPT_NAME_SIZE = 64, BPT_MAX_DIMS = 4 };

/** How a segment begins and what changes it. */
typedef struct bpt_segment_role {
    int64_t fan_in; /* inputs of one output: He initialisation; 0: starts at .initial */
    float initial;
    bool decays;   /* whether weight decay applies (weights yes, biases no) */
    float running; /* > 0: a running statistic, not trained: each update takes this part of its
                    * gradient from it, whatever the optimiser and the learning rate */
    bool variance; /* not below 0 */
} bpt_segment_role;

/** One tensor of weights. */
typedef struct bpt_segment {
    char name[BPT_NAME_SIZE]; /* "conv1.weight" */
    size_t offset;            /* of its first value in the flat vector, in floats */
    size_t count;             /* values: the product of dims */
    int n_dims;
    int64_t dims[BPT_MAX_DIMS]; /* conv weight: K, C, R, S; fc weight: K, C; bias: K */
    bpt_segment_role role;
} bpt_segment;

/** The table. Segments lie one behind the other without gaps. */
typedef struct bpt_segments {
    bpt_segment *items; /* shape [n] */
    size_t n, capacity;
    size_t n_elements; /* floats in the flat vector */
    size_t n_before;   /* of a part of a model: segments of the whole one before these */
} bpt_segments;

/** Adds a segment at the end.
 * @param name "<layer>.<tensor>"; @param dims shape [n_dims], each at least 1
 * @return BPT_OK, BPT_ENOMEM, BPT_EUSAGE (too large) */
bpt_status bpt_segments_add(bpt_segments *s, const char *name, const int64_t *dims, int n_dims,
                            bpt_segment_role role);

void bpt_segments_clear(bpt_segments *s);

/** Fills the flat vector with He's initial weights: normal with variance 2 / fan_in (He, Zhang,
 * Ren, Sun 2015, eq. 10), or the role's initial value where fan_in is 0. Each segment has its own
 * random stream, by its number in the whole model.
 * @param weights shape [n_elements] */
void bpt_segments_initialise(const bpt_segments *s, uint64_t seed, float *weights);

/** Checks values that come from a file: all finite, no variance below 0.
 * @param path names the file in the error; @param weights shape [n_elements]
 * @return BPT_OK, BPT_EDATA (names file and segment; with hint) */
bpt_status bpt_segments_check(const bpt_segments *s, const char *path, const float *weights);

/** Makes values ready for others to read: a variance below 0 becomes 0, which evaluations take it
 * for. It is there where deltas of several ranks have each taken away nearly the whole of it.
 * @param weights shape [n_elements] */
void bpt_segments_settle(const bpt_segments *s, float *weights);

#endif
