/** @file tests/bench/figures.h
 * What benches say of repeated measurements.
 *
 * Threads: any. */
#ifndef BPT_TESTS_BENCH_FIGURES_H
#define BPT_TESTS_BENCH_FIGURES_H

#include <stddef.h>

typedef struct figures {
    double least, median, largest; /* median of an even number: the mean of the two in the middle */
} figures;

/** @param values shape [n], n at least 1; sorted by this */
figures figures_of(double *values, size_t n);

#endif
