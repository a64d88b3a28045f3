/* Any call of CUDA's runtime may fail, once or from then on: each time an error that names the
 * call, and nothing of the GPU's or the host's memory stays behind. A gradient that failed once can
 * be computed again, to the same bits. ld --wrap counts the calls.
 *
 * ctest: gpu TIMEOUT=240 */
#include "base/memory.h"
#include "inner/device.h"
#include "tests/inner/cuda_fixture.h"
#include "tests/inner/net_fixture.h"

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

enum { BATCH = 5, SEED = 20291, N_RUNS = 4 };

/* ---- the failing calls ---- */

enum { OUT_OF_MEMORY = 2, LAUNCH_FAILURE = 719 }; /* codes of CUDA's */

static struct {
    int code;     /* what a call fails with; 0: none does */
    int64_t left; /* calls that still go well */
    bool forever; /* those after it fail as well */
    int64_t n_calls, n_fired;
    const char *first; /* name of the call that failed first */
} fault;

static void inject(int code, int64_t after, bool forever) {
    fault.code = code;
    fault.left = after;
    fault.forever = forever;
    fault.n_calls = fault.n_fired = 0;
}

/* @return the code that the call shall fail with, 0: none */
static int strike(const char *call) {
    fault.n_calls++;
    if (fault.code == 0 || fault.left-- > 0) return 0;
    if (fault.left < -1 && !fault.forever) return 0;
    if (fault.n_fired++ == 0) fault.first = call;
    return fault.code;
}

#define MAY_FAIL(name, parameters, arguments)                                                      \
    int __real_##name parameters;                                                                  \
    int __wrap_##name parameters;                                                                  \
    int __wrap_##name parameters {                                                                 \
        const int code = strike(#name);                                                            \
        return code ? code : __real_##name arguments;                                              \
    }

MAY_FAIL(cudaSetDevice, (int device), (device))
MAY_FAIL(cudaInitDevice, (int device, unsigned of_device, unsigned flags),
         (device, of_device, flags))
MAY_FAIL(cudaDeviceGetStreamPriorityRange, (int *least, int *greatest), (least, greatest))
MAY_FAIL(cudaMemGetInfo, (size_t * free_bytes, size_t *all), (free_bytes, all))
MAY_FAIL(cudaMalloc, (void **at, size_t bytes), (at, bytes))
MAY_FAIL(cudaHostAlloc, (void **at, size_t bytes, unsigned flags), (at, bytes, flags))
MAY_FAIL(cudaHostRegister, (void *at, size_t bytes, unsigned flags), (at, bytes, flags))
MAY_FAIL(cudaMemcpyAsync, (void *to, const void *from, size_t bytes, int kind, void *stream),
         (to, from, bytes, kind, stream))
MAY_FAIL(cudaMemsetAsync, (void *to, int value, size_t bytes, void *stream),
         (to, value, bytes, stream))
MAY_FAIL(cudaStreamCreateWithFlags, (void **stream, unsigned flags), (stream, flags))
MAY_FAIL(cudaStreamCreateWithPriority, (void **stream, unsigned flags, int priority),
         (stream, flags, priority))
MAY_FAIL(cudaStreamWaitEvent, (void *stream, void *event, unsigned flags), (stream, event, flags))
MAY_FAIL(cudaStreamBeginCapture, (void *stream, int mode), (stream, mode))
MAY_FAIL(cudaEventCreate, (void **event), (event))
MAY_FAIL(cudaEventCreateWithFlags, (void **event, unsigned flags), (event, flags))
MAY_FAIL(cudaEventRecord, (void *event, void *stream), (event, stream))
MAY_FAIL(cudaEventElapsedTime, (float *ms, void *start, void *stop), (ms, start, stop))
MAY_FAIL(cudaGraphInstantiate, (void **exec, void *graph, unsigned long long flags),
         (exec, graph, flags))
MAY_FAIL(cudaGraphLaunch, (void *exec, void *stream), (exec, stream))

/* What waits fails when it has waited, and what a launch has left is told after it. */
#define MAY_FAIL_BEHIND(name, parameters, arguments)                                               \
    int __real_##name parameters;                                                                  \
    int __wrap_##name parameters;                                                                  \
    int __wrap_##name parameters {                                                                 \
        const int real = __real_##name arguments, code = strike(#name);                            \
        return code ? code : real;                                                                 \
    }

MAY_FAIL_BEHIND(cudaEventSynchronize, (void *event), (event))
MAY_FAIL_BEHIND(cudaStreamSynchronize, (void *stream), (stream))
MAY_FAIL_BEHIND(cudaGetLastError, (void), ())

/* A capture that fails ends all the same, and leaves no graph. */
int cudaGraphDestroy(void *graph);
int __real_cudaStreamEndCapture(void *stream, void **graph);
int __wrap_cudaStreamEndCapture(void *stream, void **graph);
int __wrap_cudaStreamEndCapture(void *stream, void **graph) {
    const int real = __real_cudaStreamEndCapture(stream, graph),
              code = strike("cudaStreamEndCapture");
    if (code == 0) return real;
    if (*graph) cudaGraphDestroy(*graph);
    *graph = NULL;
    return code;
}

/* ---- what is tried ---- */

/* What gradients are handed out to. */
typedef struct {
    size_t *begin; /* shape [n + 1] */
    uint32_t n, n_taken;
    float *flat;
} taker;

/* All that a job does with a network, and what came of it. */
typedef struct {
    const char *on; /* device */
    bool hands_out;
    bpt_device *device;
    bpt_network *net;
    double losses; /* of all runs */
    bpt_status failed;
    char text[1024]; /* of the first failure */
} job;

static net_fixture f; /* on cores: the model, weights and a batch */
static taker t;

static void take(void *context, uint32_t part) {
    (void)part;
    ((taker *)context)->n_taken++;
}

static bpt_status note(job *j, bpt_status status) {
    if (status == BPT_OK || j->failed != BPT_OK) return status;
    j->failed = status;
    snprintf(j->text, sizeof j->text, "%s", bpt_error_last()->text);
    assert_int_equal(bpt_error_last()->status, status);
    return status;
}

/* A run that changes no weights: after a failure that is over it has the same result. */
static bpt_status twice(job *j, bpt_status (*run)(bpt_network *, bpt_batch_result *)) {
    bpt_batch_result r;
    bpt_status status = note(j, run(j->net, &r));
    if (status != BPT_OK && !fault.forever && fault.n_fired > 0) status = run(j->net, &r);
    if (status == BPT_OK) j->losses += r.loss_sum;
    return status;
}

static bpt_status gradient(bpt_network *net, bpt_batch_result *r) {
    t.n_taken = 0;
    BPT_TRY(bpt_network_gradient(net, f.pixels, f.labels, BATCH, r));
    return BPT_OK;
}

static bpt_status evaluate(bpt_network *net, bpt_batch_result *r) {
    return bpt_network_evaluate(net, f.pixels, f.labels, r);
}

static bpt_status step(job *j) {
    bpt_batch_result r;
    BPT_TRY(twice(j, gradient));
    if (j->hands_out) assert_int_equal(t.n_taken, t.n);
    BPT_TRY(note(j, bpt_network_apply(j->net, 0.01f)));
    BPT_TRY(note(j, bpt_network_train(j->net, f.pixels, f.labels, 0.01f, BATCH, &r)));
    j->losses += r.loss_sum;
    return twice(j, evaluate);
}

static bpt_status run(job *j) {
    const bpt_learning learning = {.momentum = 0.9, .decay = 0.01};
    const bpt_gradient_parts parts = {t.n, t.begin, t.flat, take, &t};
    float *weights = net_floats(f.n_weights);
    bpt_status status;
    BPT_TRY_GOTO(status, note(j, bpt_device_open(j->on, false, &j->device)), done);
    BPT_TRY_GOTO(status,
                 note(j, bpt_network_create_on(j->device, f.model, BATCH, BPT_BF16, learning,
                                               f.pool, &j->net)),
                 done);
    BPT_TRY_GOTO(status, note(j, bpt_network_set(j->net, BPT_VECTOR_WEIGHTS, f.weights)), done);
    if (j->hands_out) BPT_TRY_GOTO(status, note(j, bpt_network_hand_out(j->net, &parts)), done);
    for (int i = 0; i < N_RUNS; i++) /* task by task, measured, captured, replayed */
        BPT_TRY_GOTO(status, step(j), done);
    status = note(j, bpt_network_get(j->net, BPT_VECTOR_WEIGHTS, weights));
done:
    free(weights);
    return status;
}

static void end(job *j) {
    bpt_network_free(j->net);
    bpt_device_close(j->device);
    j->net = NULL;
    j->device = NULL;
}

static bool is_on_cores(void) {
    return getenv("BPT_GPUS_ON_CORES") != NULL;
}

/* Of a GPU that others do not use: one of cores. A card's memory goes to its programs as well. */
static size_t free_bytes(void) {
    size_t bytes = 0;
    if (is_on_cores()) net_assert_ok(bpt_cuda_free_bytes(&bytes));
    return bytes;
}

/* Memory that cannot be pinned is done without. */
static const char *call_that_is_told(const job *j) {
    return strcmp(fault.first, "cudaHostRegister") == 0 && !strstr(j->text, fault.first)
               ? "cuda"
               : fault.first;
}

static void check_text(const job *j, int code) {
    const bool fits = code == OUT_OF_MEMORY ? j->failed == BPT_ENOMEM || j->failed == BPT_EUSAGE
                                            : j->failed == BPT_EBACKEND;
    if (!fits) fail_msg("status %s: %s", bpt_status_name(j->failed), j->text);
    if (j->failed == BPT_EUSAGE) return; /* in the words of who has too little memory */
    if (!strstr(j->text, "CUDA: ") || !strstr(j->text, call_that_is_told(j)) ||
        !strstr(j->text, "inner/cuda/"))
        fail_msg("%s failed, and call or file are not told: %s", fault.first, j->text);
}

/* What the cores beside a GPU take is measured: bits hang on it, and which calls there are. */
static bool is_alone(const job *j) {
    return strcmp(j->on, "cuda") == 0;
}

static bool is_like(const job *j, const job *whole) {
    const double bound = is_alone(j) ? 0 : 0.01;
    return fabs(j->losses - whole->losses) <= bound * fabs(whole->losses);
}

/* @return whether the call was reached */
static bool try(const job *whole, int code, int64_t after, bool forever) {
    job j = {.on = whole->on, .hands_out = whole->hands_out};
    const uint64_t live = bpt_memory_live();
    const size_t before = free_bytes();
    inject(code, after, forever);
    const bpt_status status = run(&j);
    const bool fired = fault.n_fired > 0;
    end(&j);
    fault.code = 0;
    if (bpt_memory_live() != live || free_bytes() != before)
        fail_msg("call %lld, code %d: %lld allocations and %lld bytes of the GPU are left: %s",
                 (long long)after, code, (long long)(bpt_memory_live() - live),
                 (long long)(before - free_bytes()), j.text);
    if (j.failed != BPT_OK) check_text(&j, code);
    if (!fired) assert_int_equal(j.failed, BPT_OK);
    if (status == BPT_OK && !is_like(&j, whole))
        fail_msg("call %lld, code %d: losses %.17g instead of %.17g: %s", (long long)after, code,
                 j.losses, whole->losses, j.text);
    return fired;
}

/* Sanitizers, which look for other faults and are several times as slow, see every third call; on a
 * card it is the libraries of each trial that take their time. */
static int64_t stride(void) {
#ifdef __SANITIZE_ADDRESS__
    return 3;
#else
    return is_on_cores() ? 1 : 23;
#endif
}

static void check(const char *on, bool hands_out) {
    job j = {.on = on, .hands_out = hands_out};
    inject(0, 0, false);
    net_assert_ok(run(&j));
    const int64_t n_calls = fault.n_calls;
    end(&j);
    for (int64_t trial = 0; trial * stride() < n_calls; trial++) {
        const int code = trial % 2 ? LAUNCH_FAILURE : OUT_OF_MEMORY;
        const bool reached = try(&j, code, trial * stride(), trial % 3 == 0);
        assert_true(reached || !is_alone(&j));
    }
    assert_false(try(&j, LAUNCH_FAILURE, n_calls + 1000, false));
    print_message("%lld calls\n", (long long)n_calls);
}

static void test_without_parts(void **state) {
    (void)state;
    check("cuda", false);
}

static void test_parts(void **state) {
    (void)state;
    check("cuda", true);
}

static void test_beside_cores(void **state) {
    (void)state;
    check("cuda+cpu", false);
}

/* ---- setting up ---- */

static void open_subject(void) {
    f = net_open(net_tiny, BATCH, (net_options){.n_workers = 1, .seed = SEED});
    const bpt_segments *s = &f.model->segments;
    t = (taker){.n = (uint32_t)s->n, .flat = net_floats(f.n_weights)};
    t.begin = calloc(s->n + 1, sizeof *t.begin);
    assert_non_null(t.begin);
    for (size_t i = 0; i < s->n; i++) t.begin[i] = s->items[i].offset;
    t.begin[s->n] = f.n_weights;
}

static int set_up(void **state) {
    (void)state;
    open_subject();
    return 0;
}

static int tear_down(void **state) {
    (void)state;
    free(t.begin);
    free(t.flat);
    net_close(&f);
    return 0;
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_without_parts),
        cmocka_unit_test(test_parts),
        cmocka_unit_test(test_beside_cores),
    };
    const int skipped = cuda_begin();
    if (skipped) return skipped;
    const int failed = cmocka_run_group_tests(tests, set_up, tear_down);
    cuda_end();
    return failed;
}
