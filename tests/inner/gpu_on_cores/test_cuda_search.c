/* The search for engines of cuDNN and algorithms of cuBLASLt, with libraries that are made up
 * (libraries/libraries.h): what may not run does not, what was chosen once is taken again, and
 * whatever fails is told or done without. */
#include "base/memory.h"
#include "inner/cuda/cuda_library.h"
#include "tests/inner/cuda_fixture.h"
#include "tests/inner/gpu_on_cores/libraries/libraries.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

/* Last: it needs those above, and defines fail and skip. */
#include <cmocka.h>

/* ---- a GPU that fails ---- */

enum { OUT_OF_MEMORY = 2, LAUNCH_FAILURE = 719 }; /* codes of CUDA's */

static struct {
    size_t most;        /* bytes that can be allocated at once; 0: any number */
    int64_t n_calls;    /* of CUDA's runtime, those below */
    int64_t fail_at;    /* the call with this number fails; -1: none */
    const char *failed; /* its name */
} gpu = {.fail_at = -1};

/* Milliseconds that engines take, either way; 0: as they do. */
static float times[LIBRARIES_N_ENGINES][2];

static int strike(const char *call) {
    const bool fails = gpu.n_calls++ == gpu.fail_at;
    if (fails) gpu.failed = call;
    return fails || libraries_on_cores.is_lost ? LAUNCH_FAILURE : 0;
}

#define MAY_FAIL(name, parameters, arguments)                                                      \
    int __real_##name parameters;                                                                  \
    int __wrap_##name parameters;                                                                  \
    int __wrap_##name parameters {                                                                 \
        const int real = __real_##name arguments, code = strike(#name);                            \
        return code ? code : real;                                                                 \
    }

MAY_FAIL(cudaMemsetAsync, (void *to, int value, size_t bytes, void *stream),
         (to, value, bytes, stream))
MAY_FAIL(cudaEventRecord, (void *event, void *stream), (event, stream))
MAY_FAIL(cudaStreamSynchronize, (void *stream), (stream))

MAY_FAIL(cudaEventCreate, (void **event), (event))
MAY_FAIL(cudaStreamCreateWithFlags, (void **stream, unsigned flags), (stream, flags))
MAY_FAIL(cudaDeviceGetAttribute, (int *value, int attribute, int device),
         (value, attribute, device))

int __real_cudaEventElapsedTime(float *ms, void *start, void *stop);
int __wrap_cudaEventElapsedTime(float *ms, void *start, void *stop);
int __wrap_cudaEventElapsedTime(float *ms, void *start, void *stop) {
    const int real = __real_cudaEventElapsedTime(ms, start, stop);
    const int code = strike("cudaEventElapsedTime");
    const float set = times[libraries_on_cores.last][libraries_on_cores.last_way];
    if (set > 0.0f) *ms = set;
    return code ? code : real;
}

int __real_cudaMalloc(void **at, size_t bytes);
int __wrap_cudaMalloc(void **at, size_t bytes);
int __wrap_cudaMalloc(void **at, size_t bytes) {
    if (gpu.most && bytes > gpu.most) return OUT_OF_MEMORY;
    const int code = strike("cudaMalloc");
    return code ? code : __real_cudaMalloc(at, bytes);
}

/* ---- what is searched for ---- */

enum { N = 2, C = 4, HEIGHT = 6, WIDTH = 5, K = 6, N_STEPS = 3, N_KINDS = 2 };

/* Either kind. */
typedef struct {
    bpt_cuda_conv *conv;
    bpt_cuda_product *product;
    bpt_value_type type;
} found;

static const bpt_cuda_conv_problem conv_problem = {
    .n = N,
    .c = C,
    .h = HEIGHT,
    .w = WIDTH,
    .k = K,
    .p = HEIGHT,
    .q = WIDTH,
    .groups = 1,
    .kernel = {3, 3},
    .stride = {1, 1},
    .pad = {1, 1},
    .dilation = {1, 1},
    .bias = true,
    .relu = true,
};
static const bpt_cuda_product_problem product_problem = {.n = N, .c = C, .k = K, .bias = true};

static bpt_status create(bpt_cuda_library *library, bool product, bpt_cuda_conv_step step,
                         bpt_value_type type, found *f) {
    *f = (found){NULL, NULL, type};
    if (product) {
        bpt_cuda_product_problem p = product_problem;
        p.type = type;
        return bpt_cuda_product_create(library, &p, step, &f->product);
    }
    bpt_cuda_conv_problem p = conv_problem;
    p.type = type;
    return bpt_cuda_conv_create(library, &p, step, &f->conv);
}

static void release(found *f) {
    bpt_cuda_conv_free(f->conv);
    bpt_cuda_product_free(f->product);
}

/* As many as all of these problems take, of each operand. */
static const size_t most_values = (size_t)N * HEIGHT * WIDTH * K;
static float *host;         /* shape [most_values] */
static void *a[2], *b[2];   /* on the GPU, of either type */
static void *bias;          /* of floats */
static void *out, *working; /* poisoned before a run */
static size_t working_bytes;

static bpt_status run(bpt_cuda_library *library, const found *f) {
    assert_true(bpt_cuda_library_workspace(library) <= working_bytes);
    bpt_cuda_library_use(library, working);
    const void *x = a[f->type], *y = b[f->type];
    if (f->product) return bpt_cuda_product_run(cuda_stream(), f->product, x, y, bias, out);
    return bpt_cuda_conv_run(cuda_stream(), f->conv, x, y, bias, out);
}

/* @return what comes of it, shape [most_values], as the GPU left it; free() */
static float *values(bpt_cuda_library *library, const found *f) {
    float *to = calloc(most_values, sizeof *to);
    assert_non_null(to);
    cuda_ok(bpt_cuda_set(cuda_stream(), out, 0xFF, most_values * sizeof *to));
    cuda_ok(run(library, f));
    cuda_download(out, to, most_values * sizeof *to);
    return to;
}

/* ---- one library ---- */

static bpt_cuda_library *open_library(bool tf32) {
    bpt_cuda_library *library;
    cuda_ok(bpt_cuda_library_open(tf32, &library));
    return library;
}

static void reset(void) {
    assert_int_equal(libraries_on_cores.n_live, 0);
    libraries_on_cores = (libraries_state){.fail_at = -1, .loses_gpu = -1, .only = -1};
    gpu.most = 0;
    gpu.n_calls = 0;
    gpu.fail_at = -1;
    gpu.failed = NULL;
    memset(times, 0, sizeof times);
}

static void create_all(bpt_cuda_library *library, bool product, bpt_value_type type) {
    for (int step = 0; step < N_STEPS; step++) {
        found f;
        cuda_ok(create(library, product, (bpt_cuda_conv_step)step, type, &f));
        release(&f);
    }
}

/* ---- what may not run ---- */

static bool has_run(enum libraries_engine engine) {
    return libraries_on_cores.runs[engine] > 0;
}

static void check_engines(bool product, bpt_value_type type, bool tf32) {
    reset();
    bpt_cuda_library *library = open_library(tf32);
    create_all(library, product, type);
    assert_false(has_run(LIBRARIES_UNSTABLE));
    assert_false(has_run(LIBRARIES_UNBUILT));
    assert_false(has_run(LIBRARIES_HUGE));
    assert_int_equal(has_run(LIBRARIES_TENSOR), tf32 || type == BPT_BF16);
    assert_int_equal(has_run(LIBRARIES_WINOGRAD), !product && type == BPT_BF16);
    assert_true(has_run(LIBRARIES_FAILING)); /* and is passed over */
    assert_true(has_run(LIBRARIES_ROOMY));
    assert_true(has_run(LIBRARIES_PLAIN));
    bpt_cuda_library_free(library);
    reset();
}

static void test_engines(void **state) {
    (void)state;
    for (int kind = 0; kind < N_KINDS; kind++) {
        check_engines(kind, BPT_F32, false);
        check_engines(kind, BPT_F32, true);
        check_engines(kind, BPT_BF16, false);
    }
}

/* The workspace that all share is large enough for each, whichever came last. */
static void test_workspace(void **state) {
    (void)state;
    for (int kind = 0; kind < N_KINDS; kind++) {
        found roomy, plain;
        reset();
        bpt_cuda_library *library = open_library(false);
        libraries_on_cores.only = LIBRARIES_ROOMY;
        cuda_ok(create(library, kind, BPT_CUDA_CONV_FORWARD, BPT_F32, &roomy));
        assert_int_equal(bpt_cuda_library_workspace(library), LIBRARIES_ROOM);
        libraries_on_cores.only = LIBRARIES_PLAIN;
        cuda_ok(create(library, kind, BPT_CUDA_CONV_BACKWARD_DATA, BPT_F32, &plain));
        assert_int_equal(bpt_cuda_library_workspace(library), LIBRARIES_ROOM);
        release(&roomy);
        release(&plain);
        bpt_cuda_library_free(library);
        reset();
    }
}

/* The search has told an algorithm that the bias begins as memory of a GPU does. */
static void test_place_of_bias(void **state) {
    (void)state;
    found f;
    reset();
    bpt_cuda_library *library = open_library(false);
    cuda_ok(create(library, true, BPT_CUDA_CONV_FORWARD, BPT_F32, &f));
    cuda_ok(run(library, &f));
    const float *elsewhere = (const float *)b[BPT_F32] + 4; /* 16 bytes */
    assert_int_equal(
        bpt_cuda_product_run(cuda_stream(), f.product, a[BPT_F32], b[BPT_F32], elsewhere, out),
        BPT_EBACKEND);
    cuda_ok(bpt_cuda_wait(cuda_stream()));
    release(&f);
    bpt_cuda_library_free(library);
    reset();
}

/* ---- which of those that may ---- */

static float value_at(const float *x, bpt_value_type type, size_t i) {
    return type == BPT_BF16 ? bpt_from_bf16(((const bpt_bf16 *)x)[i]) : x[i];
}

/* @return |x - y| / |y| of n values */
static double difference(const float *x, const float *y, bpt_value_type type, size_t n) {
    double sum = 0, norm = 0;
    for (size_t i = 0; i < n; i++) {
        const double to = (double)value_at(y, type, i), d = (double)value_at(x, type, i) - to;
        sum += d * d;
        norm += to * to;
    }
    return sqrt(sum / norm);
}

/* Of a convolution's results. */
static size_t count_values(bpt_cuda_conv_step step) {
    static const size_t counts[] = {(size_t)N * HEIGHT * WIDTH * K, (size_t)N * HEIGHT * WIDTH * C,
                                    (size_t)K * C * 3 * 3};
    return counts[step];
}

/* The engine that is the fastest, in its faster way, is what runs.
 * @param way bias and ReLU within, or gradients to be converted
 * @return its values; free() */
static float *run_fastest(bool product, bpt_cuda_conv_step step, bpt_value_type type,
                          enum libraries_engine engine, bool way) {
    found f;
    reset();
    for (int i = 0; i < LIBRARIES_N_ENGINES; i++)
        for (int j = 0; j < 2; j++) times[i][j] = i == (int)engine && j == way ? 1.0f : 2.0f;
    bpt_cuda_library *library = open_library(false);
    cuda_ok(create(library, product, step, type, &f));
    memset(libraries_on_cores.runs, 0, sizeof libraries_on_cores.runs);
    const uint64_t ns = product ? bpt_cuda_product_ns(f.product) : bpt_cuda_conv_ns(f.conv);
    assert_int_equal(ns, 1000000);
    float *got = values(library, &f);
    assert_int_equal(libraries_on_cores.runs[engine], 1);
    assert_int_equal(libraries_on_cores.last_way, way);
    release(&f);
    bpt_cuda_library_free(library);
    reset();
    return got;
}

/* Floats have the same bits either way; bfloat16 that is rounded before the bias, or before it is
 * converted, has not. */
static void check_fastest(bool product, bpt_cuda_conv_step step, bpt_value_type type, bool way) {
    static const enum libraries_engine engines[] = {LIBRARIES_PLAIN, LIBRARIES_ROOMY};
    const bpt_value_type out_type = step == BPT_CUDA_CONV_BACKWARD_WEIGHTS ? BPT_F32 : type;
    float *expected = run_fastest(product, step, type, LIBRARIES_PLAIN, product && way);
    for (size_t i = 0; i < sizeof engines / sizeof *engines; i++) {
        float *got = run_fastest(product, step, type, engines[i], way);
        if (type == BPT_F32 || !way)
            assert_memory_equal(got, expected, most_values * sizeof *got);
        else if (!(difference(got, expected, out_type, count_values(step)) <= 1e-2))
            fail_msg("step %d: other values the other way", (int)step);
        free(got);
    }
    free(expected);
}

static void test_fastest(void **state) {
    (void)state;
    for (int i = 0; i < N_STEPS; i++) {
        const bpt_cuda_conv_step step = (bpt_cuda_conv_step)i;
        const bool forward = step == BPT_CUDA_CONV_FORWARD;
        check_fastest(false, step, BPT_F32, false);
        if (forward) check_fastest(false, step, BPT_F32, true);
        check_fastest(false, step, BPT_BF16, false);
        if (step != BPT_CUDA_CONV_BACKWARD_DATA) check_fastest(false, step, BPT_BF16, true);
        check_fastest(true, step, BPT_F32, forward); /* a bias of floats is within if it can be */
        check_fastest(true, step, BPT_BF16, false);
    }
}

/* ---- what is known ---- */

static char *choices_of(const bpt_cuda_library *library) {
    char *text;
    cuda_ok(bpt_cuda_library_write_choices(library, "a GPU", &text));
    return text;
}

static void read_choices(bpt_cuda_library *library, const char *text) {
    bpt_yaml *doc;
    const char *unlike;
    cuda_ok(bpt_yaml_parse("choices.yaml", text, strlen(text), &doc));
    cuda_ok(bpt_cuda_library_read_choices(library, "a GPU", doc, bpt_yaml_root(doc), &unlike));
    assert_null(unlike);
    bpt_yaml_free(doc);
}

static int count_runs(void) {
    int n = 0;
    for (int i = 0; i < LIBRARIES_N_ENGINES; i++) n += libraries_on_cores.runs[i];
    return n;
}

/* Creates a step in a library that has read what another chose for it.
 * @param n_forgotten engines that were there then
 * @return how often engines have run until it was created */
static int create_again(bool product, bpt_cuda_conv_step step, int n_forgotten) {
    found f;
    reset();
    bpt_cuda_library *library = open_library(false);
    cuda_ok(create(library, product, step, BPT_F32, &f));
    float *before = values(library, &f);
    char *text = choices_of(library);
    assert_int_equal(bpt_cuda_library_measured(library), 1);
    release(&f);
    bpt_cuda_library_free(library);

    reset();
    libraries_on_cores.n_forgotten = n_forgotten;
    library = open_library(false);
    read_choices(library, text);
    cuda_ok(create(library, product, step, BPT_F32, &f));
    const int n_runs = count_runs();
    assert_int_equal(bpt_cuda_library_measured(library), n_runs > 0);
    float *after = values(library, &f);
    assert_memory_equal(after, before, most_values * sizeof *after);
    release(&f);
    bpt_cuda_library_free(library);
    reset();
    bpt_free(text);
    free(before);
    free(after);
    return n_runs;
}

static void test_known(void **state) {
    (void)state;
    for (int kind = 0; kind < N_KINDS; kind++)
        for (int step = 0; step < N_STEPS; step++)
            assert_int_equal(create_again(kind, (bpt_cuda_conv_step)step, 0), 0);
}

/* Another library than the one that the choice was made with has fewer engines. */
static void test_known_is_gone(void **state) {
    (void)state;
    for (int kind = 0; kind < N_KINDS; kind++)
        for (int step = 0; step < N_STEPS; step++)
            assert_true(create_again(kind, (bpt_cuda_conv_step)step, LIBRARIES_PLAIN) > 0);
}

/* ---- what fails ---- */

static void check_error(bpt_status status, bpt_status expected, const char *text,
                        const char *more) {
    assert_int_equal(status, expected);
    const char *said = bpt_error_last()->text;
    if (!strstr(said, text) || !strstr(said, more))
        fail_msg("neither %s nor %s: %s", text, more, said);
}

/* What was wrong with the engine is told, not what came of it for those behind it. */
static void test_lost(void **state) {
    (void)state;
    static const char *const texts[N_KINDS] = {
        "since engine 4 of cuDNN for the forward pass of a convolution was tried: ",
        "since algorithm 2 of cuBLASLt for the forward pass of a fully connected layer was "
        "tried: "};
    for (int kind = 0; kind < N_KINDS; kind++) {
        found f;
        reset();
        libraries_on_cores.loses_gpu = LIBRARIES_ROOMY;
        bpt_cuda_library *library = open_library(false);
        const bpt_status status = create(library, kind, BPT_CUDA_CONV_FORWARD, BPT_F32, &f);
        check_error(status, BPT_EBACKEND, texts[kind], "in cudaStreamSynchronize(");
        assert_true(bpt_error_last()->hint[0]);
        assert_int_equal(libraries_on_cores.runs[LIBRARIES_ROOMY], 1);
        assert_int_equal(libraries_on_cores.runs[LIBRARIES_PLAIN], 0);
        assert_int_equal(bpt_cuda_library_measured(library), 0);
        bpt_cuda_library_free(library);
        reset();
    }
}

static void test_refused(void **state) {
    (void)state;
    static const char *const texts[N_KINDS] = {"cuDNN has no engine for the input's gradient of",
                                               "cuBLASLt has no algorithm for step 1 of"};
    for (int kind = 0; kind < N_KINDS; kind++) {
        found f;
        reset();
        libraries_on_cores.only = LIBRARIES_UNBUILT;
        bpt_cuda_library *library = open_library(false);
        const bpt_status status = create(library, kind, BPT_CUDA_CONV_BACKWARD_DATA, BPT_F32, &f);
        check_error(status, BPT_EBACKEND, texts[kind], "EXECUTION_FAILED");
        bpt_cuda_library_free(library);
        reset();
    }
}

/* Where there is no room for the workspace of some, the others are measured; where there is none
 * at all it is the GPU's memory that is full. */
static void test_little_memory(void **state) {
    (void)state;
    for (int kind = 0; kind < N_KINDS; kind++) {
        found f;
        reset();
        bpt_cuda_library *library = open_library(false);
        gpu.most = LIBRARIES_ROOM;
        cuda_ok(create(library, kind, BPT_CUDA_CONV_FORWARD, BPT_F32, &f));
        assert_false(has_run(LIBRARIES_ROOMY));
        release(&f);
        gpu.most = 1;
        check_error(create(library, kind, BPT_CUDA_CONV_BACKWARD_DATA, BPT_F32, &f), BPT_EFULL,
                    "cudaMalloc(", "cudaErrorMemoryAllocation");
        bpt_cuda_library_free(library);
        reset();
    }
}

static size_t free_bytes(void) {
    size_t bytes;
    cuda_ok(bpt_cuda_free_bytes(&bytes));
    return bytes;
}

/* By its name, in the words of the library whose call it was, or where it has waited in vain by
 * what was tried before. */
static bool tells(const char *text, const char *call) {
    const bool of_library = strncmp(call, "cuda", strlen("cuda")) != 0;
    const bool waited = strcmp(call, "cudaStreamSynchronize") == 0;
    return strstr(text, call) || (of_library && strstr(text, "_STATUS_EXECUTION_FAILED")) ||
           (waited && strstr(text, "the GPU runs nothing any more since "));
}

/* @param[out] all the calls that there were until the step had been created
 * @return whether it was */
static bool try_with(bool product, bpt_cuda_conv_step step, int64_t library_call, int64_t cuda_call,
                     const float *expected, int64_t all[2]) {
    const size_t free_before = free_bytes();
    const uint64_t allocations = bpt_memory_live();
    bpt_cuda_library *library;
    found f;
    reset();
    libraries_on_cores.fail_at = library_call;
    gpu.fail_at = cuda_call;
    bpt_status status = bpt_cuda_library_open(false, &library);
    const bool opened = status == BPT_OK;
    if (opened) status = create(library, product, step, BPT_F32, &f);
    const char *failed = library_call < 0 ? gpu.failed : libraries_on_cores.failed;
    all[0] = libraries_on_cores.n_calls;
    all[1] = gpu.n_calls;
    libraries_on_cores.fail_at = gpu.fail_at = -1;
    if (status == BPT_OK) {
        float *got = values(library, &f);
        if (expected && memcmp(got, expected, most_values * sizeof *got) != 0)
            fail_msg("other bits since %s has failed", failed ? failed : "nothing");
        free(got);
        release(&f);
    } else {
        assert_non_null(failed);
        assert_int_equal(bpt_error_last()->status, status);
        if (status != BPT_EBACKEND || !tells(bpt_error_last()->text, failed))
            fail_msg("%s has failed: %s", failed, bpt_error_last()->text);
    }
    if (opened) bpt_cuda_library_free(library);
    assert_int_equal(libraries_on_cores.n_live, 0);
    assert_int_equal(free_bytes(), free_before);
    assert_int_equal(bpt_memory_live(), allocations);
    return status == BPT_OK;
}

static void check_calls(bool product, bpt_cuda_conv_step step) {
    found f;
    int64_t all[2], unused[2];
    int n_told = 0;
    reset();
    bpt_cuda_library *library = open_library(false);
    cuda_ok(create(library, product, step, BPT_F32, &f));
    float *expected = values(library, &f);
    release(&f);
    bpt_cuda_library_free(library);
    assert_true(try_with(product, step, -1, -1, expected, all));
    for (int64_t i = 0; i < all[0]; i++)
        n_told += !try_with(product, step, i, -1, expected, unused);
    for (int64_t i = 0; i < all[1]; i++)
        n_told += !try_with(product, step, -1, i, expected, unused);
    assert_true(n_told > 0 && n_told < all[0] + all[1]);
    free(expected);
    print_message("%s, step %d: %d of %d calls are not done without\n",
                  product ? "product" : "convolution", (int)step, n_told, (int)(all[0] + all[1]));
}

/* Any call fails once: another engine does it, with the same bits of floats, or the call is told.
 */
static void test_calls(void **state) {
    (void)state;
    for (int kind = 0; kind < N_KINDS; kind++)
        for (int step = 0; step < N_STEPS; step++) check_calls(kind, (bpt_cuda_conv_step)step);
    reset();
}

/* ---- setting up ---- */

static int set_up(void **state) {
    (void)state;
    host = cuda_random(BPT_F32, most_values, 1);
    for (int type = 0; type < 2; type++) {
        a[type] = cuda_upload_values((bpt_value_type)type, host, most_values);
        b[type] = cuda_upload_values((bpt_value_type)type, host, most_values);
    }
    bias = cuda_upload(host, K * sizeof *host);
    out = cuda_poisoned(most_values * sizeof *host);
    working_bytes = 2 * LIBRARIES_ROOM;
    working = cuda_poisoned(working_bytes);
    return 0;
}

static int tear_down(void **state) {
    (void)state;
    cuda_free(working);
    cuda_free(out);
    cuda_free(bias);
    for (int type = 0; type < 2; type++) {
        cuda_free(b[type]);
        cuda_free(a[type]);
    }
    free(host);
    return 0;
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_engines),       cmocka_unit_test(test_workspace),
        cmocka_unit_test(test_place_of_bias), cmocka_unit_test(test_fastest),
        cmocka_unit_test(test_known),         cmocka_unit_test(test_known_is_gone),
        cmocka_unit_test(test_lost),          cmocka_unit_test(test_refused),
        cmocka_unit_test(test_little_memory), cmocka_unit_test(test_calls),
    };
    const int skipped = cuda_begin();
    if (skipped) return skipped;
    const int failed = cmocka_run_group_tests(tests, set_up, tear_down);
    cuda_end();
    return failed;
}
