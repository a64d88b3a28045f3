/* What tasks say that they touch of the activations' memory is all that they read and write there:
 * by that, others are put into the same place.
 *
 * ctest: cpu TIMEOUT=120 */
#include "base/checksum.h"
#include "inner/network/network_private.h"
#include "tests/inner/net_fixture.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

/* Last: it needs those above, and defines fail and skip. */
#include <cmocka.h>

enum { SEED = 20275, BATCH = 9, N_WORKERS = 8 }; /* so that some chunks have tiles */

static const unsigned TRAINING =
    BPT_PHASE_FORWARD | BPT_PHASE_TRAINING | BPT_PHASE_LOSS | BPT_PHASE_BACKWARD | BPT_PHASE_REDUCE;
static const unsigned EVALUATION = BPT_PHASE_FORWARD | BPT_PHASE_INFERENCE | BPT_PHASE_LOSS;

/* Batch norms that add and rectify, an activation that several read, and one whose gradient is that
 * of a sum. */
static const char joined[] =
    "{name: t, input: [3, 8, 8], classes: 5, layers: ["
    "conv: {name: a, filters: 32, kernel: 3, pad: 1}, batchnorm, relu: {name: r}, "
    "conv: {name: b, filters: 48, kernel: 3, pad: 1, bias: false}, relu, "
    "conv: {name: g, filters: 32, groups: 2, kernel: 3, pad: 1}, batchnorm: {name: n}, "
    "add: {name: s, input: [n, r]}, relu: {name: q}, "
    "conv: {name: c, filters: 32, kernel: 3, stride: 2, pad: 1}, relu: {name: u}, "
    "conv: {name: d, input: q, filters: 32, kernel: 1, stride: 2}, batchnorm: {name: m}, "
    "add: {name: v, input: [u, m]}, concat: {name: j, input: [v, d]}, batchnorm, "
    "fc: {name: f, outputs: 70}, relu, fc: {outputs: classes}]}";

/* Weights' gradients from what is gathered of the whole batch. */
static const char gathered[] =
    "{name: t, input: [3, 4, 3], classes: 5, layers: ["
    "conv: {name: a, filters: 256, kernel: 1}, relu, "
    "conv: {name: b, filters: 80, kernel: 3, pad: 1}, relu, fc: {outputs: classes}]}";

static const bpt_block results[] = {BPT_BLOCK_GRADIENTS, BPT_BLOCK_PARTIALS};
enum { N_RESULTS = sizeof results / sizeof *results };

/* Channels that fill no block, but so many that kernels take blocks. */
static const char spare[] =
    "{name: t, input: [3, 8, 8], classes: 5, layers: ["
    "conv: {name: a, filters: 28, kernel: 3, pad: 1}, batchnorm, relu, "
    "conv: {name: b, filters: 44, kernel: 3, pad: 1}, batchnorm, "
    "conv: {name: c, filters: 28, kernel: 3}, fc: {outputs: classes}]}";

/* The memory of activations, and which of its bytes a task has to do with. */
typedef struct {
    char *memory, *before, *own;
    size_t n;
} picture;

static void own(const bpt_network *net, picture *p, bpt_ref where) {
    if (where.buffer == 0) return;
    const bpt_buffer *b = &net->blocks.buffers[where.buffer];
    memset(p->own + b->place, 1, b->bytes);
}

static void own_all(const bpt_network *net, picture *p, const bpt_step_task *task) {
    memset(p->own, 0, p->n);
    for (int slot = 0; task->kernel && slot < BPT_N_SLOTS; slot++)
        own(net, p, bpt_kernel_operand(task->kernel, (bpt_slot)slot));
    for (size_t i = 0; i < task->touches.n; i++) own(net, p, task->touches.refs[i]);
}

/* Puts something else in the place of all that the task has nothing to do with. */
static void spoil_others(picture *p) {
    static const float other = 1e3f;
    memcpy(p->before, p->memory, p->n);
    for (size_t i = 0; i < p->n; i++)
        if (!p->own[i]) p->memory[i] = ((const char *)&other)[i % sizeof other];
}

static void restore_others(picture *p, bpt_task_info info) {
    static const float other = 1e3f;
    for (size_t i = 0; i < p->n; i++) {
        if (p->own[i]) continue;
        if (p->memory[i] != ((const char *)&other)[i % sizeof other])
            fail_msg("%s %s writes to what it does not name", info.label, info.kind);
        p->memory[i] = p->before[i];
    }
}

/* With all weights' gradients, which have no buffers. */
static uint64_t checksum_of_own(const bpt_network *net, const picture *p) {
    uint64_t sum = 0;
    for (int i = 0; i < N_RESULTS; i++)
        sum = sum * 31 + bpt_checksum(net->blocks.base[results[i]], net->blocks.bytes[results[i]]);
    for (size_t i = 0, end; i < p->n; i = end) {
        for (end = i + 1; end < p->n && p->own[end] == p->own[i]; end++) continue;
        if (p->own[i]) sum = sum * 31 + bpt_checksum(p->memory + i, end - i);
    }
    return sum;
}

/* Runs the tasks of some phases in the order of the plan.
 * @param sums of what each task has touched, shape [n_tasks]: written, or compared with */
static void run(bpt_network *net, picture *p, unsigned phases, bool alone, uint64_t *sums) {
    const bpt_builder *b = &net->builder;
    memset(p->memory, 0xff, p->n); /* no numbers */
    for (int i = 0; i < N_RESULTS; i++)
        memset(net->blocks.base[results[i]], 0, net->blocks.bytes[results[i]]);
    for (size_t i = 0; i < b->n_tasks; i++) {
        const bpt_step_task *task = &b->tasks[i];
        if (!(task->phase & phases)) continue;
        own_all(net, p, task);
        if (alone) spoil_others(p);
        net_assert_ok(task->fn(task->arg, 0));
        if (alone) restore_others(p, task->info);
        const uint64_t sum = checksum_of_own(net, p);
        if (alone && sum != sums[i])
            fail_msg("%s %s reads what it does not name", task->info.label, task->info.kind);
        sums[i] = sum;
    }
}

static void check(const char *text, bpt_value_type type) {
    net_fixture f = net_open(
        text, BATCH, (net_options){.n_workers = N_WORKERS, .seed = SEED, .activations = type});
    bpt_network *net = f.net;
    picture p = {.memory = net->blocks.base[BPT_BLOCK_ACTIVATIONS],
                 .n = net->blocks.bytes[BPT_BLOCK_ACTIVATIONS]};
    bpt_batch_result result;
    uint64_t *sums = calloc(net->builder.n_tasks, sizeof *sums);
    p.before = malloc(p.n);
    p.own = malloc(p.n);
    assert_true(sums && p.before && p.own);
    assert_true(net->builder.n_tiles > net->builder.n_chunks);
    /* so that the caller's blocks are where they should be */
    net_assert_ok(bpt_network_evaluate(net, f.pixels, f.labels, &result));
    net->step.denominator = (float)BATCH;
    for (int trains = 0; trains < 2; trains++) {
        net->step.trains = trains;
        for (int alone = 0; alone < 2; alone++)
            run(net, &p, trains ? TRAINING : EVALUATION, alone, sums);
    }
    float *gradient = net_vector(&f, BPT_VECTOR_GRADIENTS);
    for (size_t i = 0; i < f.n_weights; i++) assert_true(isfinite(gradient[i]));
    free(gradient);
    free(p.own);
    free(p.before);
    free(sums);
    net_close(&f);
}

static void check_all(bpt_value_type type) {
    check(net_mixed, type);
    check(joined, type);
    check(gathered, type);
    check(spare, type);
}

static void test_floats(void **state) {
    (void)state;
    check_all(BPT_F32);
}

static void test_bf16(void **state) {
    (void)state;
    if (bpt_cpu_bf16() == BPT_BF16_NONE) skip();
    check_all(BPT_BF16);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_floats),
        cmocka_unit_test(test_bf16),
    };
    print_message("seed %d\n", (int)SEED);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
