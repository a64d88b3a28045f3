/* Any call of CUDA's runtime may fail, once or from then on: each time an error that names the
 * call, and nothing of the GPU's or the host's memory stays behind. A gradient that failed once can
 * be computed again, to the same bits. ld --wrap counts the calls.
 *
 * ctest: gpu TIMEOUT=240 */
#include "base/memory.h"
#include "inner/device.h"
#include "tests/inner/cuda_fixture.h"
#include "tests/inner/given_share.h"
#include "tests/inner/net_fixture.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

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
    bool first_ahead;  /* it was to bring a batch that nobody waits for yet */
    bool ahead;        /* such a batch is being brought */
    bool pins_one;     /* calls that pin memory fail but for one */
    int n_pins;
} fault;

static void inject(int code, int64_t after, bool forever) {
    fault.code = code;
    fault.left = after;
    fault.forever = forever;
    fault.n_calls = fault.n_fired = 0;
    fault.first = NULL;
    fault.first_ahead = false;
}

/* @return the code that the call shall fail with, 0: none */
static int strike(const char *call) {
    if (fault.pins_one && strncmp(call, "cudaHost", strlen("cudaHost")) == 0)
        return fault.n_pins++ ? OUT_OF_MEMORY : 0;
    fault.n_calls++;
    if (fault.code == 0 || fault.left-- > 0) return 0;
    if (fault.left < -1 && !fault.forever) return 0;
    if (fault.n_fired++ == 0) {
        fault.first = call;
        fault.first_ahead = fault.ahead;
    }
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
MAY_FAIL(cudaFuncGetAttributes, (void *attributes, const void *kernel), (attributes, kernel))
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

/* What waits fails when it has waited. */
#define MAY_FAIL_BEHIND(name, parameters, arguments)                                               \
    int __real_##name parameters;                                                                  \
    int __wrap_##name parameters;                                                                  \
    int __wrap_##name parameters {                                                                 \
        const int real = __real_##name arguments, code = strike(#name);                            \
        return code ? code : real;                                                                 \
    }

MAY_FAIL_BEHIND(cudaEventSynchronize, (void *event), (event))
MAY_FAIL_BEHIND(cudaStreamSynchronize, (void *stream), (stream))

/* Launches are C++, and no names that ld --wrap is told (gpu_on_cores/grid.h). */
int gpu_on_cores_launch_fails(void);
int gpu_on_cores_launch_fails(void) {
    return strike("bpt__launch");
}

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

/* A batch that the GPU is to have before it is needed. */
void __real_bpt_cuda_feed_bring(void *feed, const void *batch);
void __wrap_bpt_cuda_feed_bring(void *feed, const void *batch);
void __wrap_bpt_cuda_feed_bring(void *feed, const void *batch) {
    fault.ahead = true;
    __real_bpt_cuda_feed_bring(feed, batch);
    fault.ahead = false;
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
    const char *on;           /* device */
    int64_t n_cores;          /* samples that are the cores'; 0: none, or as is measured */
    bool hands_out, pins_one; /* not what is handed out to */
    bpt_device *device;
    bpt_network *net;
    double losses; /* of all runs */
    bpt_status failed;
    char text[1024]; /* of the first failure */
} job;

static char path[] = "/tmp/bpt-faults-XXXXXX"; /* choices */
static net_fixture f;                          /* on cores: the model, weights and a batch */
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
    if (status != BPT_OK && !fault.forever) {
        status = run(j->net, &r);
        net_assert_ok(status);
    }
    if (status == BPT_OK) j->losses += r.loss_sum;
    return status;
}

static bpt_status gradient(bpt_network *net, bpt_batch_result *r) {
    t.n_taken = 0;
    bpt_network_set_next(net, f.pixels);
    return bpt_network_gradient(net, f.pixels, f.labels, BATCH, r);
}

static bpt_status evaluate(bpt_network *net, bpt_batch_result *r) {
    return bpt_network_evaluate(net, f.pixels, f.labels, r);
}

static bpt_status step(job *j) {
    bpt_batch_result r;
    BPT_TRY(twice(j, gradient));
    if (j->hands_out) assert_int_equal(t.n_taken, t.n);
    BPT_TRY(note(j, bpt_network_apply(j->net, 0.01f)));
    bpt_network_set_next(j->net, f.pixels);
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
    if (j->n_cores) {
        const given_share share = {BATCH, j->n_cores, BPT_BF16, 1};
        give_share(&f, j->device, &share, path);
    }
    BPT_TRY_GOTO(status,
                 note(j, bpt_network_create_on(j->device, f.model, BATCH, BPT_BF16, learning,
                                               f.pool, &j->net)),
                 done);
    BPT_TRY_GOTO(status, note(j, bpt_network_set(j->net, BPT_VECTOR_WEIGHTS, f.weights)), done);
    if (j->hands_out) {
        fault.pins_one = j->pins_one; /* a few bytes, for the loss */
        fault.n_pins = 0;
        status = note(j, bpt_network_hand_out(j->net, &parts));
        fault.pins_one = false;
        if (status != BPT_OK) goto done;
    }
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

/* What GPUs of cores count; a card's are not asked (main). */
size_t gpu_on_cores_pinned(void) __attribute__((weak));
size_t gpu_on_cores_streams(void) __attribute__((weak));

/* What somebody holds. */
typedef struct {
    uint64_t allocations;
    size_t free_bytes, pinned, streams; /* of GPUs */
} holding;

static holding holding_now(void) {
    holding h = {bpt_memory_live(), 0, gpu_on_cores_pinned(), gpu_on_cores_streams()};
    net_assert_ok(bpt_cuda_free_bytes(&h.free_bytes));
    return h;
}

static void check_holding(const holding *before, int64_t call, int code) {
    const holding now = holding_now();
    if (memcmp(&now, before, sizeof now) != 0)
        fail_msg(
            "call %lld, code %d: left are %lld allocations, %lld bytes of the GPU, %lld "
            "pinned pieces, %lld streams",
            (long long)call, code, (long long)(now.allocations - before->allocations),
            (long long)(before->free_bytes - now.free_bytes),
            (long long)(now.pinned - before->pinned), (long long)(now.streams - before->streams));
}

/* Else what the cores take is measured: bits hang on it, and which calls there are. */
static bool is_alone(const job *j) {
    return strcmp(j->on, "cuda") == 0 || j->n_cores > 0;
}

/* Memory that cannot be pinned is done without, and so are batches that are there early, and cores
 * beside a GPU, which are tried with other calls. */
static bool is_done_without(const job *j) {
    return strcmp(fault.first, "cudaHostRegister") == 0 || fault.first_ahead || !is_alone(j);
}

static const char *call_that_is_told(const job *j) {
    return is_done_without(j) && !strstr(j->text, fault.first) ? "cuda" : fault.first;
}

/* The host's memory is not taken for the GPU's, nor the other way round. */
static bool is_status_of(const job *j, int code) {
    const bool hosts = strcmp(fault.first, "cudaHostAlloc") == 0;
    if (code != OUT_OF_MEMORY) return j->failed == BPT_EBACKEND;
    if (hosts && is_alone(j)) return j->failed == BPT_ENOMEM;
    return j->failed == BPT_EFULL || j->failed == BPT_EUSAGE || (hosts && j->failed == BPT_ENOMEM);
}

static void check_text(const job *j, int code) {
    if (!is_status_of(j, code)) fail_msg("status %s: %s", bpt_status_name(j->failed), j->text);
    if (j->failed == BPT_EUSAGE) return; /* in the words of who has too little memory */
    if (!strstr(j->text, "CUDA: ") || !strstr(j->text, call_that_is_told(j)) ||
        !strstr(j->text, "inner/cuda/"))
        fail_msg("%s failed, and call or file are not told: %s", fault.first, j->text);
}

static bool is_like(const job *j, const job *whole) {
    const double bound = is_alone(j) ? 0 : 0.01;
    return fabs(j->losses - whole->losses) <= bound * fabs(whole->losses);
}

/* @return whether the call was reached */
static bool try(const job *whole, int code, int64_t after, bool forever) {
    job j = {.on = whole->on, .n_cores = whole->n_cores, .hands_out = whole->hands_out};
    const holding before = holding_now();
    inject(code, after, forever);
    const bpt_status status = run(&j);
    const bool fired = fault.n_fired > 0;
    end(&j);
    fault.code = 0;
    check_holding(&before, after, code);
    if (!fired) assert_int_equal(j.failed, BPT_OK);
    if (j.failed != BPT_OK) check_text(&j, code);
    if (fault.first_ahead && !forever) assert_int_equal(j.failed, BPT_OK);
    if (fired && j.failed == BPT_OK && !is_done_without(&j))
        fail_msg("%s failed, and nobody was told", fault.first);
    if (status == BPT_OK && !is_like(&j, whole))
        fail_msg("call %lld, code %d: losses %.17g instead of %.17g: %s", (long long)after, code,
                 j.losses, whole->losses, j.text);
    return fired;
}

/* Sanitizers, which look for other faults and are several times as slow, see every third call. */
#ifdef __SANITIZE_ADDRESS__
enum { STRIDE = 3 };
#else
enum { STRIDE = 1 };
#endif

static void check(const char *on, int64_t n_cores, bool hands_out) {
    job j = {.on = on, .n_cores = n_cores, .hands_out = hands_out};
    inject(0, 0, false);
    net_assert_ok(run(&j));
    const int64_t n_calls = fault.n_calls;
    end(&j);
    for (int64_t trial = 0; trial * STRIDE < n_calls; trial++) {
        const int code = trial % 2 ? LAUNCH_FAILURE : OUT_OF_MEMORY;
        const bool reached = try(&j, code, trial * STRIDE, trial % 3 == 0);
        assert_true(reached || !is_alone(&j));
    }
    assert_false(try(&j, LAUNCH_FAILURE, n_calls + 1000, false));
    print_message("%lld calls\n", (long long)n_calls);
}

static void test_without_parts(void **state) {
    (void)state;
    check("cuda", 0, false);
}

static void test_parts(void **state) {
    (void)state;
    check("cuda", 0, true);
}

/* GPUs of cores are so slow that the cores take all: what fails is the trial of both. */
static void test_beside_cores(void **state) {
    (void)state;
    check("cuda+cpu", 0, false);
}

/* Both have samples in each step. */
static void test_share(void **state) {
    (void)state;
    check("cuda+cpu", 2, false);
}

/* Memory that the GPU cannot write by itself has the same in it. */
static void test_gradients_cannot_be_pinned(void **state) {
    (void)state;
    job pinned = {.on = "cuda", .hands_out = true}, none = pinned;
    float *gradient = net_floats(f.n_weights);
    none.pins_one = true;
    inject(0, 0, false);
    net_assert_ok(run(&pinned));
    end(&pinned);
    memcpy(gradient, t.flat, f.n_weights * sizeof *gradient);
    memset(t.flat, 0xFF, f.n_weights * sizeof *t.flat);
    const holding before = holding_now();
    net_assert_ok(run(&none));
    end(&none);
    check_holding(&before, -1, OUT_OF_MEMORY);
    assert_int_equal(fault.n_pins, 3); /* of the loss; neither what is given nor beside it */
    assert_true(none.losses == pinned.losses);
    net_assert_same_bits("gradients", t.flat, gradient, f.n_weights);
    free(gradient);
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
    const int fd = mkstemp(path);
    assert_true(fd >= 0);
    close(fd);
    open_subject();
    return 0;
}

static int tear_down(void **state) {
    (void)state;
    free(t.begin);
    free(t.flat);
    net_close(&f);
    unlink(path);
    return 0;
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_without_parts),
        cmocka_unit_test(test_parts),
        cmocka_unit_test(test_beside_cores),
        cmocka_unit_test(test_share),
        cmocka_unit_test(test_gradients_cannot_be_pinned),
    };
    if (!getenv("BPT_GPUS_ON_CORES")) {
        fprintf(stderr, "skipped: a card's libraries fail by themselves when its runtime does\n");
        return 77;
    }
    const int skipped = cuda_begin();
    if (skipped) return skipped;
    const int failed = cmocka_run_group_tests(tests, set_up, tear_down);
    cuda_end();
    return failed;
}
