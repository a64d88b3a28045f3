/** @file inner/cuda/cuda_choices.h
 * Which engine of cuDNN or algorithm of cuBLASLt was chosen for a step of a layer. Measured anew,
 * another one may win, whose sums have another order; kept, a process computes with the bits of the
 * one before it, and starts sooner.
 *
 * A choice is a place in a list that the library gives: of its heuristics, or of all engines. The
 * list is the same for the same problem, GPU and version of the library, however many of its
 * entries were tried; but cuDNN leaves engines out that it compiles when they are first used, where
 * libnvrtc cannot be loaded: a process that has it and one that has not may take unlike ones for
 * one place. They are as right, and have other last bits.
 *
 * Threads: one at a time. */
#ifndef BPT_INNER_CUDA_CUDA_CHOICES_H
#define BPT_INNER_CUDA_CUDA_CHOICES_H

#include "base/status.h"
#include "base/yaml.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { BPT__CHOICE_KEY_SIZE = 160 };

typedef struct bpt__choice {
    char key[BPT__CHOICE_KEY_SIZE]; /* of the problem */
    int64_t way;                    /* in which the step is done */
    int64_t list, place;            /* which list, and the entry's number there */
    int64_t ns;                     /* that it took, measured by itself */
    bool used;                      /* in this process: others are not written again */
} bpt__choice;

/** What a choice depends on beside its problem. */
typedef struct bpt__choice_terms {
    const char *gpu;
    int64_t cudnn, cublaslt; /* versions */
    bool tf32;
} bpt__choice_terms;

/** All zero: empty. */
typedef struct bpt__choices {
    bpt__choice *items; /* shape [n] */
    size_t n, capacity;
} bpt__choices;

void bpt__choices_clear(bpt__choices *choices);

/** @return that of a problem, which counts as used from then on; NULL if there is none. Valid until
 * the next one is noted */
const bpt__choice *bpt__choices_find(bpt__choices *choices, const char *key);

/** Adds a choice as used, or puts it in the place of another one for its problem.
 * @return BPT_OK, BPT_ENOMEM */
bpt_status bpt__choices_note(bpt__choices *choices, const bpt__choice *choice);

/** Writes those that were used. @param[out] text YAML; caller owns, bpt_free() @return BPT_OK,
 * BPT_ENOMEM */
bpt_status bpt__choices_write(const bpt__choices *choices, const bpt__choice_terms *terms,
                              char **text);

/** Adds what a file holds. @param map of it, or the part of it, that holds choices
 * @param[out] unlike NULL, or what it is of and @p terms are not, for people ("another card"):
 *                    nothing is added then
 * @return BPT_OK, BPT_EUSAGE (not such a file: names file and line), BPT_ENOMEM */
bpt_status bpt__choices_read(bpt__choices *choices, const bpt_yaml *doc, const bpt_yaml_node *map,
                             const bpt__choice_terms *terms, const char **unlike);

#endif
