#include "tests/bench/figures.h"

#include <stdlib.h>

static int compare(const void *a, const void *b) {
    const double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

figures figures_of(double *values, size_t n) {
    qsort(values, n, sizeof *values, compare);
    return (figures){values[0], (values[(n - 1) / 2] + values[n / 2]) / 2, values[n - 1]};
}
