/** @file tests/storage/augment_subject.h
 * Augmentations under test: images to change, streams to draw from, and how far apart two
 * distributions are.
 *
 * Threads: the test's thread. */
#ifndef BPT_TESTS_STORAGE_AUGMENT_SUBJECT_H
#define BPT_TESTS_STORAGE_AUGMENT_SUBJECT_H

#include "storage/augmentations/augment.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/** @return the list; ends the test program if it is refused */
bpt_augment subject_list(const char *text);

/** @return the stream that subject_apply() draws from, to draw the same */
bpt_random subject_stream(uint64_t id);

/** Does what the list says to an image, with the choices of stream @p id.
 * @param in      shape [C,H,W]
 * @param scratch shape [2,C,H,W]
 * @return as bpt_augment_apply() */
const uint8_t *subject_apply(const bpt_augment *augment, uint64_t id, uint32_t C, uint32_t H,
                             uint32_t W, const uint8_t *in, uint8_t *scratch);

/** Fills in noise, another for each @p id.
 * @param pixels shape [n] */
void subject_noise(uint64_t id, uint8_t *pixels, size_t n);

/** Kolmogorov and Smirnov: @return how far values are from being uniform in [low, high]
 * @param values shape [n]; sorted afterwards */
double subject_distance(double *values, size_t n, double low, double high);

/** @return how far apart the distributions are that two samples come from
 * @param a, b shape [n]; sorted afterwards */
double subject_distance_between(double *a, double *b, size_t n);

/** @return what subject_distance() of @p n values exceeds once in a thousand times */
double subject_far(size_t n);

#endif
