#include "tests/storage/augment_subject.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

bpt_augment subject_list(const char *text) {
    bpt_augment a;
    if (bpt_augment_parse(text, &a) == BPT_OK) return a;
    fprintf(stderr, "%s: %s\n", text, bpt_error_last()->text);
    exit(1);
}

bpt_random subject_stream(uint64_t id) {
    return bpt_random_stream(3, BPT_PURPOSE_TEST, id);
}

const uint8_t *subject_apply(const bpt_augment *augment, uint64_t id, uint32_t C, uint32_t H,
                             uint32_t W, const uint8_t *in, uint8_t *scratch) {
    bpt_random random = subject_stream(id);
    return bpt_augment_apply(augment, 0, &random, C, H, W, in, scratch, NULL);
}

void subject_noise(uint64_t id, uint8_t *pixels, size_t n) {
    bpt_random random = bpt_random_stream(4, BPT_PURPOSE_TEST, id);
    for (size_t i = 0; i < n; i++) pixels[i] = (uint8_t)bpt_random_u32(&random);
}

static int compare(const void *a, const void *b) {
    const double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

double subject_distance(double *values, size_t n, double low, double high) {
    double distance = 0;
    qsort(values, n, sizeof *values, compare);
    for (size_t i = 0; i < n; i++) {
        const double expected = (values[i] - low) / (high - low);
        distance = fmax(distance, fabs(expected - (double)i / (double)n));
        distance = fmax(distance, fabs(expected - (double)(i + 1) / (double)n));
    }
    return distance;
}

double subject_distance_between(double *a, double *b, size_t n) {
    double distance = 0;
    qsort(a, n, sizeof *a, compare);
    qsort(b, n, sizeof *b, compare);
    for (size_t i = 0, j = 0; i < n && j < n;) {
        const double at = fmin(a[i], b[j]);
        while (i < n && a[i] <= at) i++;
        while (j < n && b[j] <= at) j++;
        distance = fmax(distance, fabs((double)i - (double)j) / (double)n);
    }
    return distance;
}

double subject_far(size_t n) {
    return 1.95 / sqrt((double)n);
}
