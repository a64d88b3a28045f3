/* What --update auto decides by, and how that is measured: of ranks and with a clock of the test's
 * own. */
#include "base/clock.h"
#include "base/log.h"
#include "base/memory.h"
#include "outer/comm/watch.h"
#include "tools/train/job/batch_cut.h"
#include "tools/train/job/update_choice.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

/* Last: it needs those above, and defines fail and skip. */
#include <cmocka.h>

enum { MAX_RANKS = 4 };

static bpt_step_costs even_costs(const double *images_per_s, uint32_t n, uint64_t batch,
                                 double exchange_s) {
    uint64_t cut[MAX_RANKS + 1];
    for (uint32_t r = 0; r <= n; r++) cut[r] = batch * r / n;
    return bpt_allreduce_costs(images_per_s, n, cut, exchange_s);
}

static bpt_step_costs costs_by_speed(const double *images_per_s, uint32_t n, uint64_t batch,
                                     double exchange_s) {
    uint64_t cut[MAX_RANKS + 1];
    bpt_batch_cut(images_per_s, n, batch, cut);
    return bpt_allreduce_costs(images_per_s, n, cut, exchange_s);
}

static bool prefers(const double *images_per_s, uint32_t n, uint64_t batch, double exchange_s) {
    const bpt_step_costs costs = even_costs(images_per_s, n, batch, exchange_s);
    return bpt_prefers_allreduce(&costs);
}

static bool prefers_by_speed(const double *images_per_s, uint32_t n, uint64_t batch,
                             double exchange_s) {
    const bpt_step_costs costs = costs_by_speed(images_per_s, n, batch, exchange_s);
    return bpt_prefers_allreduce(&costs);
}

/* Two ranks of 400 images a second, 128 images a step: 160 ms, and an exchange of 40. */
static void test_costs(void **state) {
    (void)state;
    const bpt_step_costs costs = even_costs((const double[]){400, 400}, 2, 128, 0.04);
    assert_true(fabs(costs.compute_s - 0.16) < 1e-12);
    assert_true(costs.exchange_s == 0.04);
    assert_true(fabs(costs.part - 128 / 0.2 / 800) < 1e-12);
}

/* 4 : 1, and 130 images: 104 and 26, 260 ms on both, where even parts would take 650. */
static void test_costs_by_speed(void **state) {
    (void)state;
    const bpt_step_costs costs = costs_by_speed((const double[]){400, 100}, 2, 130, 0.04);
    assert_true(fabs(costs.compute_s - 0.26) < 1e-12);
    assert_true(fabs(costs.part - 130 / 0.3 / 500) < 1e-12);
    assert_true(fabs(even_costs((const double[]){400, 100}, 2, 130, 0.04).compute_s - 0.65) <
                1e-12);
}

static void test_equal_machines(void **state) {
    (void)state;
    assert_true(prefers((const double[]){400, 400}, 2, 128, 0.03));
    assert_true(prefers((const double[]){400, 380, 410, 390}, 4, 128, 0.005));
    assert_true(prefers((const double[]){400, 400}, 2, 128, 0.04));  /* just enough */
    assert_false(prefers((const double[]){400, 400}, 2, 128, 0.05)); /* a slow network */
    assert_false(prefers((const double[]){400, 400}, 2, 32, 0.03));  /* short steps */
}

static void test_unequal_machines(void **state) {
    (void)state;
    assert_false(prefers((const double[]){400, 100}, 2, 128, 1e-6));
    assert_false(prefers((const double[]){400, 200, 100, 100}, 4, 128, 1e-6));
    assert_false(prefers((const double[]){400, 400, 400, 200}, 4, 128, 1e-6));
    assert_true(prefers((const double[]){400, 360}, 2, 128, 1e-6));
}

/* Where batches are cut by speed only the network counts, and what whole samples leave. */
static void test_unequal_machines_by_speed(void **state) {
    (void)state;
    assert_true(prefers_by_speed((const double[]){400, 100}, 2, 128, 1e-6));
    assert_true(prefers_by_speed((const double[]){400, 200, 100, 100}, 4, 128, 1e-6));
    assert_false(prefers_by_speed((const double[]){400, 100}, 2, 128, 0.1));
    assert_false(prefers_by_speed((const double[]){400, 10}, 2, 2, 1e-6));
}

/* ---- measuring: ld --wrap ---- */

static struct {
    uint64_t clock_ns;
    unsigned n_barriers, n_broadcasts;
    size_t bytes;    /* of a broadcast */
    double others_s; /* of a broadcast on the slowest of the others; half of it on the rest */
    uint32_t slowest;
    bpt_status others, agreed; /* what the others come with, and what was agreed on last */
    const char *doing;
    char said[400];
} world;

uint64_t __wrap_bpt_clock_ns(void);
double __wrap_bpt_clock_seconds_since(uint64_t start_ns);
bpt_status __wrap_bpt_comm_barrier(bpt_comm *comm);
bpt_status __wrap_bpt_comm_broadcast(bpt_comm *comm, uint32_t root, void *data, size_t bytes);
bpt_status __wrap_bpt_comm_table(bpt_comm *comm, const char *what, const void *mine, size_t bytes,
                                 void **all);
bpt_status __wrap_bpt_comm_agree(bpt_comm *comm, bpt_status mine);
void __wrap_bpt_comm_doing(bpt_comm *comm, const char *what);
const char *__wrap_bpt_comm_host(const bpt_comm *comm, uint32_t rank);
void __wrap_bpt_log(bpt_log_level level, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

uint64_t __wrap_bpt_clock_ns(void) {
    return world.clock_ns;
}

double __wrap_bpt_clock_seconds_since(uint64_t start_ns) {
    return (double)(world.clock_ns - start_ns) * 1e-9;
}

/* The others are waited for; that is no part of what is measured. */
bpt_status __wrap_bpt_comm_barrier(bpt_comm *comm) {
    (void)comm;
    assert_int_equal(world.agreed, BPT_OK);
    world.clock_ns += 5000000000;
    world.n_barriers++;
    return BPT_OK;
}

/* The first takes a second, later ones 10 ms. */
bpt_status __wrap_bpt_comm_broadcast(bpt_comm *comm, uint32_t root, void *data, size_t bytes) {
    (void)comm, (void)data;
    assert_int_equal(root, 0);
    assert_string_equal(world.doing, "the choice of --update");
    world.clock_ns += world.n_broadcasts++ ? 10000000 : 1000000000;
    world.bytes = bytes;
    return BPT_OK;
}

bpt_status __wrap_bpt_comm_table(bpt_comm *comm, const char *what, const void *mine, size_t bytes,
                                 void **all) {
    double *of_ranks;
    (void)comm, (void)what;
    assert_int_equal(bytes, sizeof *of_ranks);
    assert_int_equal(BPT_NEW("times", MAX_RANKS, &of_ranks), BPT_OK);
    of_ranks[0] = *(const double *)mine;
    for (uint32_t r = 1; r < MAX_RANKS; r++)
        of_ranks[r] = r == world.slowest ? world.others_s : world.others_s / 2;
    *all = of_ranks;
    return BPT_OK;
}

bpt_status __wrap_bpt_comm_agree(bpt_comm *comm, bpt_status mine) {
    (void)comm;
    return world.agreed = mine != BPT_OK ? mine : world.others;
}

void __wrap_bpt_comm_doing(bpt_comm *comm, const char *what) {
    (void)comm;
    world.doing = what;
}

const char *__wrap_bpt_comm_host(const bpt_comm *comm, uint32_t rank) {
    (void)comm, (void)rank;
    return "made-up";
}

void __wrap_bpt_log(bpt_log_level level, const char *format, ...) {
    va_list values;
    if (level != BPT_LOG_INFO) return;
    va_start(values, format);
    (void)vsnprintf(world.said, sizeof world.said, format, values);
    va_end(values);
}

enum { N_WEIGHTS = 1000 };

static bpt_status try_to_choose(const bpt_train_options *o, uint32_t rank, double *solo,
                                bpt_update_choice *update) {
    float flat[N_WEIGHTS];
    bpt_model model = {.segments = {.n_elements = N_WEIGHTS}};
    bpt_job job = {.options = o,
                   .rank = rank,
                   .n_ranks = MAX_RANKS,
                   .model = &model,
                   .solo = solo,
                   .flat = flat};
    const uint64_t live = bpt_memory_live();
    const bpt_status status = bpt_update_choose(&job, update);
    assert_true(bpt_memory_live() == live);
    return status;
}

static bpt_update_choice choose_by(uint32_t slowest, const bpt_train_options *o, uint32_t rank,
                                   double others_s, double *solo) {
    bpt_update_choice update = BPT_UPDATE_LOCAL;
    memset(&world, 0, sizeof world);
    world.others_s = others_s;
    world.slowest = slowest;
    assert_int_equal(try_to_choose(o, rank, solo, &update), BPT_OK);
    return update;
}

/* @param others_s what a broadcast takes on another rank */
static bpt_update_choice choose(const bpt_train_options *o, uint32_t rank, double others_s,
                                double *solo) {
    return choose_by(1, o, rank, others_s, solo);
}

static void assert_says(const char *text) {
    if (!strstr(world.said, text)) fail_msg("\"%s\" does not say \"%s\"", world.said, text);
}

/* Of 80 images on four ranks of 100 images a second 20 each take 200 ms; an exchange takes half as
 * long again as the broadcast of the slowest rank, of which the first does not count. */
static void test_measuring(void **state) {
    (void)state;
    double solo[MAX_RANKS] = {100, 100, 100, 100};
    const bpt_train_options o = {.batch_size = 80};
    assert_int_equal(choose(&o, 0, 0.001, solo), BPT_UPDATE_ALLREDUCE);
    assert_true(world.n_barriers == 2 && world.n_broadcasts == 2);
    assert_int_equal(world.bytes, N_WEIGHTS * sizeof(float));
    assert_says(
        "--update auto: allreduce, since allreduce would come to 0.93 of the sum of the "
        "ranks' speeds, which is at least 0.80: its steps would take 200 ms on the slowest "
        "rank, and 15 ms to exchange");
    assert_string_equal(world.doing, "the start");
    assert_int_equal(choose(&o, 0, 0.1, solo), BPT_UPDATE_AGWU);
    assert_says(
        "agwu, since allreduce would come to 0.57 of the sum of the ranks' speeds, which "
        "is less than 0.80: its steps would take 200 ms on the slowest rank, and 150 ms");
    assert_int_equal(choose(&o, 1, 0.1, solo), BPT_UPDATE_AGWU);
    assert_string_equal(world.said, ""); /* rank 0 says it */
    assert_int_equal(choose(&o, 1, 0.001, solo), BPT_UPDATE_ALLREDUCE);
}

/* Whichever rank it is that has the weights last. */
static void test_slowest_link(void **state) {
    (void)state;
    double solo[MAX_RANKS] = {100, 100, 100, 100};
    const bpt_train_options o = {.batch_size = 80};
    for (uint32_t slowest = 1; slowest < MAX_RANKS; slowest++) {
        assert_int_equal(choose_by(slowest, &o, 0, 0.1, solo), BPT_UPDATE_AGWU);
        assert_says("rank, and 150 ms to exchange");
    }
}

/* As --partition says: even parts, or by speed. */
static void test_cuts(void **state) {
    (void)state;
    double solo[MAX_RANKS] = {400, 100, 100, 200};
    bpt_train_options o = {.batch_size = 80};
    assert_int_equal(choose(&o, 0, 0.001, solo), BPT_UPDATE_AGWU);
    assert_says("its steps would take 200 ms on the slowest rank, and");
    o.partition = BPT_PARTITION_IDPA;
    assert_int_equal(choose(&o, 0, 0.001, solo), BPT_UPDATE_ALLREDUCE);
    assert_says("its steps would take 100 ms on the slowest rank, each batch cut by speed, and");
    double alike[MAX_RANKS] = {100, 100, 100, 100};
    o = (bpt_train_options){.batch_size = 82}; /* 20 for two ranks, 21 for the others */
    assert_int_equal(choose(&o, 0, 0.001, alike), BPT_UPDATE_ALLREDUCE);
    assert_says("its steps would take 210 ms on the slowest rank, and");
}

/* Without a sample for each rank nothing is measured. */
static void test_few_samples(void **state) {
    (void)state;
    double solo[MAX_RANKS] = {100, 100, 100, 100};
    bpt_train_options o = {.batch_size = 3};
    assert_int_equal(choose(&o, 0, 0.001, solo), BPT_UPDATE_AGWU);
    assert_int_equal(world.n_broadcasts, 0);
    assert_says("agwu, since allreduce cannot share a batch of 3 by 4 ranks");
    o.batch_size = 4;
    (void)choose(&o, 0, 0.001, solo);
    assert_int_equal(world.n_broadcasts, 2);
}

/* Nobody measures alone: where a rank has no memory all learn of it first. */
static void test_failures(void **state) {
    (void)state;
    double solo[MAX_RANKS] = {100, 100, 100, 100};
    const bpt_train_options o = {.batch_size = 80};
    bpt_update_choice update;
    memset(&world, 0, sizeof world);
    bpt_memory_fail_at(0);
    assert_int_equal(try_to_choose(&o, 0, solo, &update), BPT_ENOMEM);
    bpt_memory_fail_at(-1);
    assert_int_equal(world.agreed, BPT_ENOMEM);
    world.others = BPT_EPEER;
    assert_int_equal(try_to_choose(&o, 0, solo, &update), BPT_EPEER);
    assert_true(world.n_barriers == 0 && world.n_broadcasts == 0);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_costs),
        cmocka_unit_test(test_costs_by_speed),
        cmocka_unit_test(test_equal_machines),
        cmocka_unit_test(test_unequal_machines),
        cmocka_unit_test(test_unequal_machines_by_speed),
        cmocka_unit_test(test_measuring),
        cmocka_unit_test(test_slowest_link),
        cmocka_unit_test(test_cuts),
        cmocka_unit_test(test_few_samples),
        cmocka_unit_test(test_failures),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
