/* How fast a rank is by itself: of a network whose steps take what the test says, on a clock that
 * only they move. */
#include "base/clock.h"
#include "outer/comm/watch.h"
#include "tests/base/near.h"
#include "tools/synthetic.h"
#include "tools/train/job/calibrate.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

/* Last: it needs those above, and defines fail and skip. */
#include <cmocka.h>

/* ---- the world ---- */

static struct {
    double now_s, first_s, step_s; /* the first step takes longer */
    double told_s;                 /* --calibrate of rank 0 */
    unsigned n_steps, n_prepared;
    float denominator;
} world;

uint64_t __wrap_bpt_clock_ns(void);
double __wrap_bpt_clock_seconds_since(uint64_t since_ns);

uint64_t __wrap_bpt_clock_ns(void) {
    return (uint64_t)(world.now_s * 1e9);
}

double __wrap_bpt_clock_seconds_since(uint64_t since_ns) {
    return world.now_s - (double)since_ns * 1e-9;
}

bpt_status bpt_network_gradient(bpt_network *net, const void *input, const int32_t *labels,
                                float denominator, bpt_batch_result *result) {
    (void)net, (void)input, (void)labels, (void)result;
    world.now_s += world.n_steps++ == 0 ? world.first_s : world.step_s;
    world.denominator = denominator;
    return BPT_OK;
}

bpt_status bpt_network_set(bpt_network *net, bpt_vector which, const float *flat) {
    (void)net, (void)flat;
    assert_int_equal(which, BPT_VECTOR_WEIGHTS);
    world.n_prepared++;
    return BPT_OK;
}

void bpt_network_set_next(bpt_network *net, const void *input) {
    (void)net, (void)input;
    fail_msg("there is no device");
}

void bpt_segments_initialise(const bpt_segments *s, uint64_t seed, float *weights) {
    (void)s, (void)seed, (void)weights;
}

bpt_status bpt_synthetic_make(const bpt_model *model, int64_t n, uint64_t seed, bool as_images,
                              bpt_synthetic *batch) {
    (void)model, (void)seed, (void)as_images, (void)batch;
    assert_int_equal(n, 8);
    return BPT_OK;
}

void bpt_synthetic_release(bpt_synthetic *batch) {
    (void)batch;
}

bool bpt_job_is_server(const bpt_job *job) {
    return job->rank >= job->n_workers;
}

void bpt_comm_doing(bpt_comm *comm, const char *what) {
    (void)comm, (void)what;
}

bpt_status bpt_comm_agree(bpt_comm *comm, bpt_status mine) {
    (void)comm;
    return mine;
}

bpt_status bpt_comm_broadcast(bpt_comm *comm, uint32_t root, void *data, size_t bytes) {
    (void)comm;
    assert_int_equal(root, 0);
    assert_int_equal(bytes, sizeof world.told_s);
    *(double *)data = world.told_s;
    return BPT_OK;
}

bpt_status bpt_comm_allgather(bpt_comm *comm, const void *mine, size_t bytes, void *all) {
    (void)comm;
    assert_int_equal(bytes, sizeof(double));
    *(double *)all = *(const double *)mine;
    return BPT_OK;
}

/* ---- tests ---- */

/* @return what is measured where rank 0 says so many seconds, and this rank another number */
static double measure(double told_s, uint32_t n_workers) {
    bpt_model model = {0};
    const bpt_train_options o = {.calibrate = 100, .batch_size = 16};
    bpt_job job = {.options = &o,
                   .model = &model,
                   .n_ranks = 2,
                   .n_workers = n_workers,
                   .rank = 1,
                   .batch = 8};
    double images_per_s = -1;
    world.now_s = 5;
    world.n_steps = world.n_prepared = 0;
    world.told_s = told_s;
    assert_int_equal(bpt_calibrate(&job, &images_per_s), BPT_OK);
    return images_per_s;
}

/* Samples of this rank's steps, each 8 of a batch of 16, by the seconds that they take. The first,
 * which touches memory for the first time, is none of them. */
static void test_speed(void **state) {
    (void)state;
    world.first_s = 3;
    world.step_s = 0.25;
    assert_near(measure(1, 2), 8 / 0.25, 1e-6);
    assert_int_equal(world.n_steps, 1 + 4);
    assert_int_equal(world.n_prepared, 1);
    assert_true(world.denominator == 8);
    assert_near(measure(0.6, 2), 8 / 0.25, 1e-6);
    assert_int_equal(world.n_steps, 1 + 3); /* for at least so long */
}

static void test_one_long_step(void **state) {
    (void)state;
    world.first_s = world.step_s = 2;
    assert_near(measure(0.001, 2), 4, 1e-6);
    assert_int_equal(world.n_steps, 1 + 1);
}

static void test_nothing_to_measure(void **state) {
    (void)state;
    world.first_s = world.step_s = 1;
    assert_true(measure(0, 2) == 0);
    assert_true(measure(1, 1) == 0); /* a server */
    assert_int_equal(world.n_steps, 0);
    assert_int_equal(world.n_prepared, 0);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_speed),
        cmocka_unit_test(test_one_long_step),
        cmocka_unit_test(test_nothing_to_measure),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
