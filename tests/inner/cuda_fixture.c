#include "tests/inner/cuda_fixture.h"

#include "base/random.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Last: it needs those above, and defines fail and skip. */
#include <cmocka.h>

enum { SKIPPED = 77, GUARD = 256, POISON = 0xFF, MANY_VALUES = 100000 };

static bpt_cuda_stream stream;

int cuda_begin(void) {
    int n;
    if (bpt_cuda_count(&n) || (n && (bpt_cuda_use(0) || bpt_cuda_stream_create(&stream)))) {
        fprintf(stderr, "%s\n", bpt_error_last()->text);
        return 1;
    }
    if (n) return 0;
    fprintf(stderr, "skipped: no GPU\n");
    return SKIPPED;
}

void cuda_end(void) {
    bpt_cuda_stream_free(stream);
}

bpt_cuda_stream cuda_stream(void) {
    return stream;
}

bool cuda_leaves_out(size_t n_values) {
    return n_values > MANY_VALUES && getenv("BPT_SANITIZED") && getenv("BPT_GPUS_ON_CORES");
}

void cuda_ok(bpt_status status) {
    if (status) fail_msg("%s: %s", bpt_status_name(status), bpt_error_last()->text);
}

/* In front of what is given out lies how many bytes that are, for the check of those behind it. */
void *cuda_poisoned(size_t bytes) {
    void *at;
    cuda_ok(bpt_cuda_allocate(GUARD + bytes + GUARD, &at));
    cuda_ok(bpt_cuda_set(stream, at, POISON, GUARD + bytes + GUARD));
    cuda_ok(bpt_cuda_copy(stream, at, &bytes, sizeof bytes));
    cuda_ok(bpt_cuda_wait(stream));
    return (char *)at + GUARD;
}

void *cuda_upload(const void *host, size_t bytes) {
    void *at = cuda_poisoned(bytes);
    cuda_ok(bpt_cuda_copy(stream, at, host, bytes));
    cuda_ok(bpt_cuda_wait(stream));
    return at;
}

void *cuda_upload_values(bpt_value_type type, const float *host, size_t n) {
    if (type == BPT_F32) return cuda_upload(host, n * sizeof *host);
    bpt_bf16 *values = calloc(n + 1, sizeof *values);
    assert_non_null(values);
    for (size_t i = 0; i < n; i++) values[i] = bpt_to_bf16(host[i]);
    void *at = cuda_upload(values, n * sizeof *values);
    free(values);
    return at;
}

void cuda_free(void *at) {
    if (at) bpt_cuda_free((char *)at - GUARD);
}

static void check_guard(const char *at) {
    unsigned char behind[GUARD];
    size_t bytes;
    cuda_ok(bpt_cuda_copy(stream, &bytes, at - GUARD, sizeof bytes));
    cuda_ok(bpt_cuda_wait(stream));
    cuda_ok(bpt_cuda_copy(stream, behind, at + bytes, GUARD));
    cuda_ok(bpt_cuda_wait(stream));
    for (size_t i = 0; i < GUARD; i++)
        if (behind[i] != POISON) fail_msg("byte %zu behind %zu has been written", i, bytes);
}

void cuda_download(const void *at, void *host, size_t bytes) {
    cuda_ok(bpt_cuda_copy(stream, host, at, bytes));
    cuda_ok(bpt_cuda_wait(stream));
    check_guard(at);
}

float *cuda_download_values(bpt_value_type type, const void *at, size_t n) {
    float *values = calloc(n + 1, sizeof *values);
    void *raw = calloc(n + 1, sizeof *values);
    assert_non_null(values);
    assert_non_null(raw);
    cuda_download(at, raw, n * bpt_value_bytes(type));
    for (size_t i = 0; i < n; i++)
        values[i] =
            type == BPT_BF16 ? bpt_from_bf16(((const bpt_bf16 *)raw)[i]) : ((const float *)raw)[i];
    free(raw);
    return values;
}

float cuda_rounded(bpt_value_type type, float x) {
    return type == BPT_BF16 ? bpt_from_bf16(bpt_to_bf16(x)) : x;
}

float *cuda_random(bpt_value_type type, size_t n, uint64_t id) {
    bpt_random r = bpt_random_stream(20264, BPT_PURPOSE_TEST, id);
    float *values = calloc(n + 1, sizeof *values);
    assert_non_null(values);
    for (size_t i = 0; i < n; i++) values[i] = cuda_rounded(type, bpt_random_normal(&r));
    return values;
}

void cuda_compare(const char *what, bpt_value_type type, const float *values,
                  const double *reference, size_t n) {
    const double bound = type == BPT_BF16 ? 1e-2 : 1e-5;
    double difference = 0.0, norm = 0.0;
    size_t worst = 0;
    for (size_t i = 0; i < n; i++) {
        const double d = fabs((double)values[i] - reference[i]);
        if (!(d <= fabs((double)values[worst] - reference[worst]))) worst = i;
        difference += d * d;
        norm += reference[i] * reference[i];
    }
    if (!(sqrt(difference) <= bound * sqrt(norm)))
        fail_msg("%s: off by %g of %g; worst is value %zu of %zu: %.9g, not %.9g", what,
                 sqrt(difference), sqrt(norm), worst, n, (double)values[worst], reference[worst]);
}
