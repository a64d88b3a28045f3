/* Which shares of the cores are tried, and which is taken, by steps that are made up: what they
 * take, on a clock of the test's own, and which networks cannot be had.
 *
 * ctest: cpu TIMEOUT=30 */
#include "base/clock.h"
#include "inner/mixed/mixed_trial.h"
#include "tests/inner/net_fixture.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

/* Last: it needs those above, and defines fail and skip. */
#include <cmocka.h>

enum { BATCH = 64, MOST_TRIED = 8, N_WARM = 3, N_TIMED = 9, MS = 1000000 };

static const char text[] =
    "{name: t, input: [1, 2, 2], classes: 3, layers: [fc: {outputs: classes}]}";
static const char normed[] = /* of one sample nothing is learnt */
    "{name: t, input: [1, 2, 2], classes: 3, layers: [fc: {outputs: 4}, batchnorm, "
    "fc: {outputs: classes}]}";

/* ---- what is made up ---- */

/* Who computes a step. */
typedef enum doer { ALL, DEVICE, CORES } doer;

/* Milliseconds of a step of so many samples, as far as a side has any. */
typedef struct side {
    double start, sample;
} side;

typedef struct tried {
    int64_t batch, n_cores;
    unsigned n_steps;
} tried;

static struct {
    side device, cores;
    double exchange; /* of steps that both compute */
    double beside;   /* what a side by itself takes, of a network of both; 0: no longer */
    bool uneven;     /* a third of the device's alone take five times as long */
    tried fails;     /* networks of that batch and share: */
    bpt_status at_once, in_step;

    tried all[MOST_TRIED];
    size_t n_tried, n_made;
    uint64_t now_ns;
    int at; /* steps of the network at hand, of this doer */
    doer doer;
    int64_t batch;
    bool forward_only;
} world;

static bpt_device_kind kind;
static bpt_device fast = {.kind = &kind, .name = "test:0"};

static bool is_at_hand(tried t) {
    const tried *now = &world.all[world.n_tried - 1];
    return t.batch == now->batch && t.n_cores == now->n_cores;
}

static double ms_of(side s, int64_t n) {
    return n > 0 ? s.start + s.sample * (double)n : 0.0;
}

/* The first steps of each kind take ten times as long: they are not to count. */
static void pass(doer by, double ms) {
    static const int uneven[N_TIMED] = {1, 1, 5, 1, 5, 1, 1, 5, 1};
    if (by != world.doer) world.at = 0;
    world.doer = by;
    const int at = world.at++;
    assert_true(at < N_WARM + N_TIMED);
    if (at < N_WARM)
        ms *= 10.0;
    else if (world.uneven && world.all[world.n_tried - 1].n_cores == 0)
        ms *= uneven[at - N_WARM];
    world.now_ns += (uint64_t)(ms * MS);
}

bpt_status __wrap_bpt__mixed_make(bpt_mixed_device *device, const bpt_device_wish *wish,
                                  int64_t n_cores, bpt_mixed_network *m,
                                  bpt_network_memory *memory);
void __wrap_bpt__mixed_unmake(bpt_mixed_network *m);
bpt_status __wrap_bpt__mixed_network_set(bpt_device_network *net, bpt_vector which, size_t first,
                                         const float *flat);
bpt_status __wrap_bpt__mixed_network_begin(bpt_device_network *net, bpt_device_work work,
                                           const bpt_device_run *run);
bpt_status __wrap_bpt__mixed_network_end(bpt_device_network *net, bpt_device_work work,
                                         bpt_device_outcome *outcome);
bpt_status __wrap_bpt_network_gradient(bpt_network *net, const void *input, const int32_t *labels,
                                       float denominator, bpt_batch_result *r);
bpt_status __wrap_bpt_network_evaluate(bpt_network *net, const void *input, const int32_t *labels,
                                       bpt_batch_result *r);
uint64_t __real_bpt_clock_ns(void);
uint64_t __wrap_bpt_clock_ns(void);

bpt_status __wrap_bpt__mixed_make(bpt_mixed_device *device, const bpt_device_wish *wish,
                                  int64_t n_cores, bpt_mixed_network *m,
                                  bpt_network_memory *memory) {
    assert_true(world.n_tried < MOST_TRIED);
    assert_true(n_cores >= 0 && n_cores <= wish->batch);
    *m = (bpt_mixed_network){.device = device, .wish = *wish, .n_cores = n_cores};
    *memory = (bpt_network_memory){0};
    world.all[world.n_tried++] = (tried){wish->batch, n_cores, 0};
    world.n_made++;
    world.at = 0;
    world.doer = ALL;
    return is_at_hand(world.fails) && world.at_once != BPT_OK ? bpt_fail(world.at_once, "made up")
                                                              : BPT_OK;
}

void __wrap_bpt__mixed_unmake(bpt_mixed_network *m) {
    (void)m;
    world.n_made--;
}

bpt_status __wrap_bpt__mixed_network_set(bpt_device_network *net, bpt_vector which, size_t first,
                                         const float *flat) {
    (void)net;
    assert_int_equal(which, BPT_VECTOR_WEIGHTS);
    assert_int_equal(first, 0);
    assert_non_null(flat);
    return BPT_OK;
}

/* Weights stay as they are, and the next batch is there. */
static void check_run(const bpt_device_run *run) {
    assert_true(run->rate == 0.0f);
    assert_true(run->denominator == (float)world.batch);
    assert_ptr_equal(run->next, run->input);
    for (int64_t i = 0; i < world.batch; i++) assert_in_range(run->labels[i], 0, 2);
}

bpt_status __wrap_bpt__mixed_network_begin(bpt_device_network *net, bpt_device_work work,
                                           const bpt_device_run *run) {
    const bpt_mixed_network *m = bpt__mixed(net);
    const double device = ms_of(world.device, m->wish.batch - m->n_cores),
                 cores = ms_of(world.cores, m->n_cores);
    assert_int_equal(work, world.forward_only ? BPT_DEVICE_EVALUATE : BPT_DEVICE_TRAIN);
    check_run(run);
    world.all[world.n_tried - 1].n_steps++;
    pass(ALL, (device > cores ? device : cores) + (device > 0 && cores > 0 ? world.exchange : 0.0));
    return BPT_OK;
}

bpt_status __wrap_bpt__mixed_network_end(bpt_device_network *net, bpt_device_work work,
                                         bpt_device_outcome *outcome) {
    (void)net;
    (void)work;
    *outcome = (bpt_device_outcome){0};
    return is_at_hand(world.fails) && world.in_step != BPT_OK ? bpt_fail(world.in_step, "made up")
                                                              : BPT_OK;
}

/* One side of a network that both have. */
static void pass_alone(doer by, side s, int64_t n) {
    pass(by, ms_of(s, n) * (world.beside > 0 ? world.beside : 1.0));
}

static bpt_status begin_device(bpt_device_network *net, bpt_device_work work,
                               const bpt_device_run *run) {
    const tried *now = &world.all[world.n_tried - 1];
    (void)net;
    assert_int_equal(work, world.forward_only ? BPT_DEVICE_EVALUATE : BPT_DEVICE_GRADIENT);
    check_run(run);
    pass_alone(DEVICE, world.device, now->batch - now->n_cores);
    return BPT_OK;
}

static bpt_status end_device(bpt_device_network *net, bpt_device_work work,
                             bpt_device_outcome *outcome) {
    (void)net;
    (void)work;
    *outcome = (bpt_device_outcome){0};
    return BPT_OK;
}

bpt_status __wrap_bpt_network_gradient(bpt_network *net, const void *input, const int32_t *labels,
                                       float denominator, bpt_batch_result *r) {
    (void)net;
    (void)r;
    assert_true(input && labels && !world.forward_only);
    assert_true(denominator == (float)world.batch);
    pass_alone(CORES, world.cores, world.all[world.n_tried - 1].n_cores);
    return BPT_OK;
}

bpt_status __wrap_bpt_network_evaluate(bpt_network *net, const void *input, const int32_t *labels,
                                       bpt_batch_result *r) {
    (void)net;
    (void)r;
    assert_true(input && labels && world.forward_only);
    pass_alone(CORES, world.cores, world.all[world.n_tried - 1].n_cores);
    return BPT_OK;
}

uint64_t __wrap_bpt_clock_ns(void) {
    return world.n_tried ? world.now_ns : __real_bpt_clock_ns();
}

/* ---- a trial ---- */

static void forget(void) {
    memset(&world, 0, sizeof world);
}

/* @return samples of the cores; what is made up stays until forget() */
static bpt_status find(const char *model, int64_t batch, int64_t *n_cores) {
    bpt_mixed_device device = {.fast = &fast};
    bpt_model *m = net_parse(model);
    const bpt_device_wish wish = {.model = m, .batch = batch, .forward_only = world.forward_only};
    kind = (bpt_device_kind){.begin = begin_device, .end = end_device};
    world.batch = batch;
    world.n_tried = 0;
    world.now_ns = 1;
    const bpt_status status = bpt__mixed_find_share(&device, &wish, n_cores);
    assert_int_equal(world.n_made, 0);
    bpt_model_free(m);
    return status;
}

/* What was tried, and what was taken: "64/0 4/4 64/16: 16". */
static void expect_of(const char *model, int64_t batch, const char *wanted) {
    char said[200];
    int64_t n_cores = -1;
    size_t n = 0;
    net_assert_ok(find(model, batch, &n_cores));
    for (size_t i = 0; i < world.n_tried; i++)
        n += (size_t)snprintf(said + n, sizeof said - n, "%s%d/%d", i ? " " : "",
                              (int)world.all[i].batch, (int)world.all[i].n_cores);
    snprintf(said + n, sizeof said - n, ": %d", (int)n_cores);
    assert_string_equal(said, wanted);
    forget();
}

static void expect(const char *wanted) {
    expect_of(text, BATCH, wanted);
}

static void make_up(side device, side cores, double exchange) {
    forget();
    world.device = device;
    world.cores = cores;
    world.exchange = exchange;
}

/* ---- what is tried ---- */

static void test_what_is_faster_is_taken(void **state) {
    (void)state;
    make_up((side){0, 1}, (side){0, 3}, 0); /* 64 alone, 48 together */
    expect("64/0 4/4 64/16: 16");
    make_up((side){0, 1}, (side){0, 3}, 0);
    world.forward_only = true;
    expect("64/0 4/4 64/16: 16");
    make_up((side){0, 1}, (side){0, 1000}, 0); /* hopeless: nothing of both is tried */
    expect("64/0 4/4: 0");
    make_up((side){0, 1}, (side){0, 0.1}, 100); /* the cores by themselves */
    expect("64/0 4/4 64/64 64/59: 64");
    make_up((side){0, 1}, (side){0, 0.6}, 20); /* together 44, which is less than 64 */
    expect("64/0 4/4 64/64 64/40: 64");
    make_up((side){0, 1}, (side){0, 0.001}, 0); /* one tile of the device's would be longer */
    expect("64/0 4/4 64/64: 64");
    make_up((side){0, 1}, (side){0, 1}, 0);
    expect("64/0 4/4 64/64 64/32: 32");
}

/* All of them where some take less than twice as long, and no others. */
static void test_the_cores_alone_are_tried_if_there_is_hope(void **state) {
    (void)state;
    make_up((side){0, 1}, (side){0, 1.9}, 0);
    expect("64/0 4/4 64/64 64/22: 22");
    make_up((side){0, 1}, (side){0, 2.1}, 0);
    expect("64/0 4/4 64/20: 20");
    make_up((side){0, 1}, (side){5, 0.5}, 0); /* by four samples each would seem to take 1.75 */
    expect("64/0 4/4 64/64 64/39: 39");
}

/* What takes more than 98 % of the time is no gain. */
static void test_small_gains_are_none(void **state) {
    (void)state;
    make_up((side){0, 1}, (side){0, 3}, 14); /* 62 of 64 */
    expect("64/0 4/4 64/16: 16");
    make_up((side){0, 1}, (side){0, 3}, 15); /* 63 */
    expect("64/0 4/4 64/16: 0");
    make_up((side){0, 1}, (side){0, 62}, 0); /* 63 of 64 are foreseen: not tried */
    expect("64/0 4/4: 0");
    make_up((side){0, 1}, (side){0, 0.99}, 100); /* all of the cores' take 63.4 */
    expect("64/0 4/4 64/64 64/32: 0");
}

/* The first three steps of each network are no measure; nor are some that take longer. */
static void test_times(void **state) {
    (void)state;
    int64_t n_cores;
    make_up((side){0, 1}, (side){0, 3}, 15); /* 63, not of 320 */
    world.uneven = true;
    net_assert_ok(find(text, BATCH, &n_cores));
    assert_int_equal(n_cores, 0);
    assert_int_equal(world.all[0].n_steps, N_WARM + 4); /* half a second is enough */
    assert_int_equal(world.all[1].n_steps, N_WARM + N_TIMED);
    make_up((side){0, 100}, (side){0, 1e6}, 0); /* of long ones two */
    net_assert_ok(find(text, BATCH, &n_cores));
    assert_int_equal(world.all[0].n_steps, N_WARM + 2);
    forget();
}

/* Each trial tells more of what samples take, until the share stays or three were tried. */
static void test_shares_are_put_right(void **state) {
    (void)state;
    make_up((side){48, 0.25}, (side){0, 1.9}, 0);
    expect("64/0 4/4 64/64 64/22 64/29: 29");
    make_up((side){48, 0.25}, (side){0, 1.9}, 6.5); /* 29 would take 63.25 */
    expect("64/0 4/4 64/64 64/22: 0");
    /* Of more and more samples each takes less, by what they have in common. */
    make_up((side){0, 1}, (side){20, 0.5}, 0);
    expect("64/0 4/4 64/9 64/17 64/24: 24");
    /* Less than either takes by itself: an exchange takes no less than no time. */
    make_up((side){0, 1}, (side){0, 3}, 0);
    world.beside = 2;
    expect("64/0 4/4 64/16: 16");
}

/* ---- what cannot be had ---- */

static void test_what_does_not_fit_is_done_without(void **state) {
    static const bpt_status none[] = {BPT_ENOMEM, BPT_EUSAGE, BPT_EFULL};
    (void)state;
    for (size_t i = 0; i < sizeof none / sizeof *none; i++) {
        make_up((side){0, 1}, (side){0, 1.5}, 0);
        world.fails = (tried){4, 4, 0};
        world.at_once = none[i];
        expect("64/0 4/4: 0");
        make_up((side){0, 1}, (side){0, 1.5}, 0);
        world.fails = (tried){64, 64, 0};
        world.at_once = none[i];
        expect("64/0 4/4 64/64 64/25: 25");
        make_up((side){0, 1}, (side){0, 0.001}, 0); /* hence all, but for that */
        world.fails = (tried){64, 64, 0};
        world.at_once = none[i];
        expect("64/0 4/4 64/64: 0");
        make_up((side){0, 1}, (side){0, 0.5}, 0);
        world.fails = (tried){64, 43, 0};
        world.at_once = none[i];
        expect("64/0 4/4 64/64 64/43: 64");
    }
}

static void test_errors(void **state) {
    static const tried each[] = {{64, 0, 0}, {4, 4, 0}, {64, 64, 0}, {64, 43, 0}};
    (void)state;
    for (size_t i = 0; i < sizeof each / sizeof *each; i++) {
        int64_t n_cores = -1;
        make_up((side){0, 1}, (side){0, 0.5}, 0);
        world.fails = each[i];
        world.in_step = BPT_EBACKEND;
        assert_int_equal(find(text, BATCH, &n_cores), BPT_EBACKEND);
        make_up((side){0, 1}, (side){0, 0.5}, 0);
        world.fails = each[i];
        world.in_step = BPT_ENUMERIC; /* of values that are made up: the device has all */
        assert_int_equal(find(text, BATCH, &n_cores), BPT_OK);
        assert_int_equal(n_cores, 0);
    }
    make_up((side){0, 1}, (side){0, 0.5}, 0);
    int64_t n_cores;
    world.fails = each[0];
    world.at_once = BPT_EUSAGE; /* without the device there is nothing to compare with */
    assert_int_equal(find(text, BATCH, &n_cores), BPT_EUSAGE);
    forget();
}

/* Of one sample the first trial is that of all; of tiles of two or more, each has as many. */
static void test_other_batches(void **state) {
    (void)state;
    make_up((side){0, 1}, (side){0, 0.9}, 0);
    expect_of(text, 1, "1/0 1/1: 1");
    make_up((side){0, 1}, (side){0, 1.1}, 0);
    expect_of(text, 1, "1/0 1/1: 0");
    make_up((side){0, 1}, (side){0, 3}, 0);
    expect_of(text, 128, "128/0 8/8 128/32: 32");
}

/* No side is left fewer samples than it can learn from. */
static void test_least(void **state) {
    (void)state;
    make_up((side){0, 1}, (side){0, 5}, 0);
    expect_of(text, 8, "8/0 1/1 8/1: 1");
    make_up((side){0, 1}, (side){0, 5}, 0);
    expect_of(normed, 8, "8/0 1/1: 0");
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_what_is_faster_is_taken),
        cmocka_unit_test(test_the_cores_alone_are_tried_if_there_is_hope),
        cmocka_unit_test(test_small_gains_are_none),
        cmocka_unit_test(test_times),
        cmocka_unit_test(test_shares_are_put_right),
        cmocka_unit_test(test_what_does_not_fit_is_done_without),
        cmocka_unit_test(test_errors),
        cmocka_unit_test(test_other_batches),
        cmocka_unit_test(test_least),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
