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
    const char *small;      /* the same layers with fewer weights; NULL: text has few */
} gradient_case;

extern const gradient_case gradient_cases[];
extern const size_t gradient_n_cases;

/** @return the case itself; net_close() */
net_fixture gradient_open(const gradient_case *c, int64_t batch);

/** @return the case with few enough weights to move each of them; net_close() */
net_fixture gradient_open_small(const gradient_case *c, int64_t batch);

/** Compares the gradient of every segment with one in double precision: |g - ref| / |ref| of the
 * whole segment is at most 1e-5; that of each value is at most 1e-4 where the value is large enough
 * to judge, at least a tenth of the segment's root mean square. Smaller values are sums of fp32
 * terms that cancel, and are as exact as one of a tenth: within 1e-5 of the root mean square. Where
 * all of ref is 0, so is all of g.
 * @param gradient,ref flat, in the order of the model's segments */
void gradient_check(const net_fixture *f, const float *gradient, const double *ref);

/** A sort of test, run for every case. */
typedef struct gradient_sort {
    const char *name;
    void (*run)(void **state); /* *state is the gradient_case */
} gradient_sort;

/** Runs each sort for each case. @return what main() returns */
int gradient_run(const char *group, const gradient_sort *sorts, size_t n_sorts);

#endif
