/** @file tests/inner/gradient_cases.h
 * The models whose gradients are tested, and how near to double precision they must be.
 *
 * Every function ends the running test where something fails.
 *
 * Threads: one; the test's own. */
#ifndef TESTS_INNER_GRADIENT_CASES_H
#define TESTS_INNER_GRADIENT_CASES_H

#include "tests/inner/net_fixture.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef struct gradient_case {
    const char *name;
    const char *text;       /* NULL: the built-in model of that name, with another input */
    int64_t channels, size; /* of that input */
    bool large;             /* for few batches */
    bool draws;             /* random numbers: training and evaluation differ */
    bool batch_statistics;  /* samples depend on each other: likewise */
    const char *small;      /* the same layers with fewer weights; NULL: text has few */
} gradient_case;

extern const gradient_case gradient_cases[];
extern const size_t gradient_n_cases;

/** @return the case itself; net_close() */
net_fixture gradient_open(const gradient_case *c, int64_t batch);

/** Likewise, with activations of a type. */
net_fixture gradient_open_typed(const gradient_case *c, int64_t batch, bpt_value_type type);

/** @return the case with few enough weights to move each of them; net_close() */
net_fixture gradient_open_small(const gradient_case *c, int64_t batch);

/** Opens a case and runs a check for each of its layers that can be the first to learn, of a large
 * model for some of them. @param check is to freeze what is before @p layer: nothing is yet, or
 * what is before another one */
void gradient_each_first(const gradient_case *c, int64_t batch, bpt_value_type type,
                         void (*check)(net_fixture *f, size_t layer, bpt_value_type type));

/** Compares the gradient of every segment with one in double precision. Large enough to judge is
 * what does not cancel too far: at least a tenth of the root mean square, over the segment, of the
 * sums of absolute terms, by which errors of fp32 go. |g - ref| is at most 1e-4 |ref| for every
 * value that is large enough, and for a smaller one what it is for the smallest of those. Of the
 * whole segment, ||g - ref|| is at most 1e-5 ||ref||, if that is large enough likewise.
 * @param gradient,ref,terms flat; the last two as from ref_network() */
void gradient_check(const net_fixture *f, const float *gradient, const double *ref,
                    const double *terms);

/** A sort of test, run for every case. */
typedef struct gradient_sort {
    const char *name;
    void (*run)(void **state); /* *state is the gradient_case */
} gradient_sort;

/** Runs each sort for each case. @return what main() returns */
int gradient_run(const char *group, const gradient_sort *sorts, size_t n_sorts);

#endif
