/* What is foretold of ranks that train together, by hand and by what must hold for any cluster. */
#include "base/memory.h"
#include "tests/base/near.h"
#include "tools/plan/predict.h"
#include "tools/train/exchange/pace.h"
#include "tools/train/job/batch_cut.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

/* Last: it needs those above, and defines fail and skip. */
#include <cmocka.h>

enum { MOST = 8 };

static const bpt_way local = {BPT_UPDATE_LOCAL, BPT_PARTITION_EVEN},
                     agwu = {BPT_UPDATE_AGWU, BPT_PARTITION_IDPA},
                     sgwu = {BPT_UPDATE_SGWU, BPT_PARTITION_IDPA},
                     even = {BPT_UPDATE_ALLREDUCE, BPT_PARTITION_EVEN},
                     idpa = {BPT_UPDATE_ALLREDUCE, BPT_PARTITION_IDPA};

/* Two parts: half of the weights when two thirds of the step are over, the others at its end. */
static bpt_gradient_part halves[] = {{5e5, 2.0 / 3}, {5e5, 1}};

static const bpt_work megabyte = {
    .weight_bytes = 1e6,
    .gradient = {halves, 2},
    .batch = 64,
    .least_batch = 1,
    .epoch_samples = 64000,
    .total_samples = 640000,
};

typedef struct cluster {
    bpt_node nodes[MOST];
    const bpt_node *ranks[MOST];
    bpt_team team;
} cluster;

/* @param speeds images a second of each rank, in proportion to any batch */
static bpt_team team_of(cluster *c, const double *speeds, uint32_t n) {
    for (uint32_t r = 0; r < n; r++) {
        c->nodes[r] = (bpt_node){
            .name = "a", .count = 1, .threads = 1, .n_steps = 1, .steps = {{1, 1 / speeds[r]}}};
        c->ranks[r] = &c->nodes[r];
    }
    return (bpt_team){.nodes = c->ranks, .n = n};
}

static bpt_forecast forecast(bpt_way way, const bpt_team *team, const bpt_work *work) {
    bpt_plan_scratch scratch;
    bpt_forecast f;
    assert_true(bpt_way_suits(way, team, work));
    assert_int_equal(bpt_plan_scratch_make(team->n, &scratch), BPT_OK);
    bpt_predict(way, team, work, &scratch, &f);
    bpt_plan_scratch_free(&scratch);
    return f;
}

/* ---- one rank ---- */

static void test_alone(void **state) {
    (void)state;
    cluster c;
    const bpt_team team = team_of(&c, (double[]){100}, 1);
    bpt_forecast f = forecast(local, &team, &megabyte);
    assert_near(f.images_per_s, 100, 1e-9);
    assert_near(f.part, 1, 1e-12);
    assert_int_equal(f.limit, BPT_PLAN_COMPUTE);
    c.nodes[0].load_s_per_image = 0.01; /* as long as training on it, by a thread of its own */
    f = forecast(local, &team, &megabyte);
    assert_near(f.images_per_s, 50, 1e-9);
    assert_int_equal(f.limit, BPT_PLAN_DATA);
    c.nodes[0].threads = 4;
    assert_near(bpt_node_training_s(&c.nodes[0], 1), 0.0125, 1e-12);
    c.nodes[0].on_device = true;
    assert_near(bpt_node_training_s(&c.nodes[0], 1), 0.01, 1e-12);
    c.nodes[0].load_s_per_image = 0.1;
    assert_near(bpt_node_training_s(&c.nodes[0], 1), 0.1, 1e-12); /* one thread cannot be faster */
}

static void test_what_suits(void **state) {
    (void)state;
    cluster c;
    bpt_team team = team_of(&c, (double[]){1, 1, 1}, 3);
    bpt_work work = megabyte;
    work.batch = 3;
    assert_true(bpt_way_suits(even, &team, &work) && bpt_way_suits(agwu, &team, &work));
    assert_false(bpt_way_suits(local, &team, &work));
    work.batch = 2;
    assert_false(bpt_way_suits(even, &team, &work) || bpt_way_suits(idpa, &team, &work));
    assert_true(bpt_way_suits(agwu, &team, &work) && bpt_way_suits(sgwu, &team, &work));
    work.least_batch = 2;
    work.batch = 5;
    assert_true(bpt_way_suits(agwu, &team, &work));
    assert_false(bpt_way_suits(even, &team, &work) || bpt_way_suits(idpa, &team, &work));
    work.batch = 6;
    assert_true(bpt_way_suits(even, &team, &work) && bpt_way_suits(idpa, &team, &work));
    work.epoch_samples = 18;
    assert_true(bpt_way_suits(agwu, &team, &work) && bpt_way_suits(sgwu, &team, &work));
    work.epoch_samples = 17; /* a step of all is no more than an epoch */
    assert_false(bpt_way_suits(agwu, &team, &work) || bpt_way_suits(sgwu, &team, &work));
    assert_true(bpt_way_suits(even, &team, &work));
    work.epoch_samples = 5;
    assert_false(bpt_way_suits(even, &team, &work));
    work.batch = 1;
    assert_false(bpt_way_suits(agwu, &team, &work));
    work = megabyte;
    team.n = 1;
    assert_true(bpt_way_suits(local, &team, &work));
    assert_false(bpt_way_suits(agwu, &team, &work) || bpt_way_suits(even, &team, &work));
}

/* ---- messages that cost nothing ---- */

static void test_for_nothing(void **state) {
    (void)state;
    cluster c;
    const double speeds[] = {100, 200, 300};
    const bpt_team team = team_of(&c, speeds, 3);
    bpt_work work = megabyte;
    work.batch = 60;
    assert_near(forecast(agwu, &team, &work).part, 1, 1e-9);
    assert_near(forecast(sgwu, &team, &work).part, 1, 1e-9); /* 2, 4 and 6 steps */
    assert_near(forecast(idpa, &team, &work).part, 1, 1e-9); /* 10, 20 and 30 samples */
    const bpt_forecast f = forecast(even, &team, &work);     /* 20 samples of the slowest */
    assert_near(f.images_per_s, 300, 1e-9);
    assert_near(f.part, 0.5, 1e-9);
    assert_int_equal(f.limit, BPT_PLAN_SLOWEST);
    assert_int_equal(forecast(agwu, &team, &work).limit, BPT_PLAN_COMPUTE);
}

/* Steps of a rank with a fixed part: a small share of a batch is dear. */
static void test_small_steps(void **state) {
    (void)state;
    cluster c;
    const bpt_team team = team_of(&c, (double[]){1, 1}, 2);
    for (int r = 0; r < 2; r++) {
        c.nodes[r].n_steps = 2;
        c.nodes[r].steps[0] = (bpt_step_time){32, 0.2};
        c.nodes[r].steps[1] = (bpt_step_time){64, 0.3};
    }
    const bpt_forecast f = forecast(even, &team, &megabyte);
    assert_near(f.images_per_s, 64 / 0.2, 1e-9);
    assert_near(f.part, 0.75, 1e-9);
}

/* The batch is cut by what ranks do with a part of about that size, or evenly but for a sample. */
static void test_cuts(void **state) {
    (void)state;
    cluster c;
    bpt_work work = megabyte;
    uint64_t cut[3];
    bpt_team team = team_of(&c, (double[]){1, 160}, 2);
    c.nodes[0].n_steps = 2;
    c.nodes[0].steps[0] = (bpt_step_time){32, 0.2};
    c.nodes[0].steps[1] = (bpt_step_time){64, 0.3};
    bpt_batch_cut((double[]){160, 160}, 2, 64, cut);
    assert_int_equal(cut[1], 32);
    assert_near(forecast(idpa, &team, &megabyte).images_per_s, 64 / 0.2, 1e-9);
    team = team_of(&c, (double[]){100, 100, 100}, 3);
    work.batch = 65;
    const bpt_forecast f = forecast(even, &team, &work);
    assert_near(f.images_per_s, 65 / 0.22, 1e-9);
    assert_near(f.sent_bytes_per_s, 4e6 / 3 / 0.22, 1e-3); /* two thirds, and as much of sums */
}

/* ---- sums of gradients ---- */

/* Ranks of 32 samples in 0.32 s; half of the weights go to the other, and half come back: a
 * megabyte each way in all. */
static void test_gradients_on_links(void **state) {
    (void)state;
    cluster c;
    bpt_team team = team_of(&c, (double[]){100, 100}, 2);
    for (int r = 0; r < 2; r++) c.nodes[r].link_bytes_per_s = 1e7;
    /* 0.05 s a part: the first one is over before the second is there */
    assert_near(64 / forecast(even, &team, &megabyte).images_per_s, 0.32 + 0.05, 1e-9);
    team.latency_s = 0.01; /* there and back */
    assert_near(64 / forecast(even, &team, &megabyte).images_per_s, 0.32 + 0.05 + 0.02, 1e-9);
    team.latency_s = 0;
    c.nodes[1].link_bytes_per_s = 1e6; /* 0.5 s a part: the second one waits for the first */
    const bpt_forecast f = forecast(even, &team, &megabyte);
    assert_near(64 / f.images_per_s, 0.32 * 2 / 3 + 1, 1e-9);
    assert_int_equal(f.limit, BPT_PLAN_MESSAGES);
    assert_near(f.sent_bytes_per_s, 1e6 / (0.32 * 2 / 3 + 1), 1e-3);
}

/* What the MPI thread does is taken from the threads that train, on so many cores as there are of
 * these, and no message is faster than it. */
static void test_gradients_in_the_thread(void **state) {
    (void)state;
    cluster c;
    const bpt_team team = team_of(&c, (double[]){100, 100}, 2);
    c.nodes[0].message_s_per_byte = 1e-7; /* two megabytes, there and back: 0.2 s */
    assert_near(64 / forecast(even, &team, &megabyte).images_per_s, 0.32 + 0.2, 1e-9);
    c.nodes[0].on_device = true; /* the last part is still to come: 0.1 s */
    assert_near(64 / forecast(even, &team, &megabyte).images_per_s, 0.32 + 0.1, 1e-9);
    c.nodes[0].on_device = false;
    c.nodes[0].threads = 4; /* likewise */
    assert_near(64 / forecast(even, &team, &megabyte).images_per_s, 0.32 + 0.1, 1e-9);
    c.nodes[1].copy_s = 0.03;
    assert_near(64 / forecast(even, &team, &megabyte).images_per_s, 0.32 + 0.13, 1e-9);
}

static void test_walk(void **state) {
    (void)state;
    bpt_gradient_part parts[] = {{1, 0.5}, {2, 0.75}, {1, 1}};
    const bpt_gradient_schedule s = {parts, 3};
    assert_near(bpt_gradient_walk(&s, 8, 0, 0), 8, 1e-12);
    assert_near(bpt_gradient_walk(&s, 8, 1, 0), 9, 1e-12);  /* 5; 6 to 8; 8 to 9 */
    assert_near(bpt_gradient_walk(&s, 8, 3, 0), 16, 1e-12); /* 4 to 7, 13, 16 */
    assert_near(bpt_gradient_walk(&s, 8, 3, 1), 17, 1e-12);
    for (double slow = 0; slow < 10;
         slow += 0.5) { /* neither computing nor bytes can be left out */
        const double t = bpt_gradient_walk(&s, 8, slow, 0);
        assert_true(t >= 8 && t >= 4 * slow && t <= 8 + 4 * slow);
    }
}

/* ---- exchanges of weights ---- */

/* Two like ranks host a half each: half a megabyte there, and half of what the other pushes back,
 * each way, in 0.64 s of a step. */
static void test_exchanges_cost(void **state) {
    (void)state;
    cluster c;
    bpt_team team = team_of(&c, (double[]){100, 100}, 2);
    bpt_work work = megabyte;
    work.total_samples = 64 * 2 * 16 * 2; /* exchanges after two steps */
    work.epoch_samples = 64 * 2 * 16 * 2;
    for (int r = 0; r < 2; r++) c.nodes[r].message_s_per_byte = 1e-8;
    /* two megabytes of messages: 0.02 s for 1.28 s of steps */
    bpt_forecast f = forecast(agwu, &team, &work);
    assert_near(f.every, 2, 1e-12);
    assert_near(f.part, 1.28 / 1.3, 1e-9);
    assert_near(f.sent_bytes_per_s, 1e6 / 1.3, 1e-3);
    for (int r = 0; r < 2; r++) c.nodes[r].copy_s = 0.01; /* twice, and both pushes to a half */
    assert_near(forecast(agwu, &team, &work).part, 1.28 / (1.3 + 0.03), 1e-9);
    for (int r = 0; r < 2; r++) c.nodes[r].threads = 4;
    assert_near(forecast(agwu, &team, &work).part, 1.28 / (1.3 + 0.03 / 4), 1e-9);
    for (int r = 0; r < 2; r++) c.nodes[r].on_device = true;
    assert_near(forecast(agwu, &team, &work).part, 1.28 / 1.3, 1e-9);
}

/* Where exchanges take more than a fiftieth of the steps they become rarer. */
static void test_exchanges_become_rarer(void **state) {
    (void)state;
    cluster c;
    const bpt_team team = team_of(&c, (double[]){100, 100}, 2);
    bpt_work work = megabyte;
    work.epoch_samples = work.total_samples = 64000000;
    for (int r = 0; r < 2; r++) c.nodes[r].message_s_per_byte = 1e-7;
    /* 0.2 s, a fiftieth of 10 s: 15.6 steps */
    const bpt_forecast f = forecast(agwu, &team, &work);
    assert_near(f.every, 16, 1e-12);
    assert_near(f.part, 16 * 0.64 / (16 * 0.64 + 0.2), 1e-9);
    assert_false(f.links_are_full);
    for (int r = 0; r < 2; r++) c.nodes[r].threads = 4; /* of which a step takes four times */
    assert_near(forecast(agwu, &team, &work).every, 4, 1e-12);
}

/* Links that carry less make exchanges rarer, and nobody slower. */
static void test_full_links(void **state) {
    (void)state;
    cluster c;
    const bpt_team team = team_of(&c, (double[]){100, 100}, 2);
    for (int r = 0; r < 2; r++) c.nodes[r].link_bytes_per_s = 1e6 / (4 * 0.64) * 2;
    bpt_forecast f = forecast(agwu, &team, &megabyte);
    assert_false(f.links_are_full);
    assert_near(f.every, 4, 1e-12);
    for (int r = 0; r < 2; r++) c.nodes[r].link_bytes_per_s = 1e6 / (4 * 0.64) / 2.5;
    f = forecast(agwu, &team, &megabyte);
    assert_true(f.links_are_full);
    assert_near(f.every, 10, 1e-12);
    assert_near(f.part, 1, 1e-9);
}

/* Rounds of four steps: half a megabyte each way, and then again, on the slower link. */
static void test_rounds(void **state) {
    (void)state;
    cluster c;
    bpt_team team = team_of(&c, (double[]){100, 100}, 2);
    c.nodes[0].link_bytes_per_s = 1e6;
    bpt_forecast f = forecast(sgwu, &team, &megabyte);
    assert_near(f.images_per_s, 8 * 64 / (4 * 0.64 + 1), 1e-9);
    assert_near(f.sent_bytes_per_s, 1e6 / (4 * 0.64 + 1), 1e-3); /* half pushed, half answered */
    assert_int_equal(f.limit, BPT_PLAN_MESSAGES);
    team.latency_s = 0.1;
    c.nodes[0].copy_s = 0.05; /* twice, and two pushes to a half */
    f = forecast(sgwu, &team, &megabyte);
    assert_near(f.images_per_s, 8 * 64 / (4 * 0.64 + 1.2 + 0.15), 1e-9);
    team = team_of(&c, (double[]){100, 300}, 2); /* 2 and 6 steps of 0.64 and 0.21 s */
    f = forecast(sgwu, &team, &megabyte);
    assert_near(f.images_per_s, 8 * 64 / (2 * 0.64), 1e-9);
}

/* Shards by speed: two thirds on the first, which answers both others and pushes a third. */
static void test_rounds_of_unlike_ranks(void **state) {
    (void)state;
    cluster c;
    const bpt_team team = team_of(&c, (double[]){400, 100, 100}, 3); /* 8, 2 and 2 steps */
    const double compute_s = 8 * 64 / 400.0;
    for (int r = 0; r < 3; r++) c.nodes[r].link_bytes_per_s = 1e8;
    bpt_forecast f = forecast(sgwu, &team, &megabyte);
    assert_near(f.images_per_s, 12 * 64 / (compute_s + 2 * 0.04 / 3), 1e-9);
    assert_near(f.sent_bytes_per_s, 5e6 / 3 / (compute_s + 2 * 0.04 / 3), 1e-3);
    for (int r = 0; r < 3; r++) c.nodes[r].link_bytes_per_s = 0;
    c.nodes[0].message_s_per_byte = 1e-6;
    f = forecast(sgwu, &team, &megabyte);
    assert_near(f.images_per_s, 12 * 64 / (compute_s + 2 * 5.0 / 3), 1e-9);
}

/* A round has a step of each at least. */
static void test_slowest_of_a_round(void **state) {
    (void)state;
    cluster c;
    const bpt_team team = team_of(&c, (double[]){100, 1}, 2);
    const bpt_forecast f = forecast(sgwu, &team, &megabyte);
    assert_near(f.images_per_s, 9 * 64 / 64.0, 1e-9);
    assert_int_equal(f.limit, BPT_PLAN_SLOWEST);
}

/* A rank whose link is slow hosts nothing. */
static void test_shards_go_by_links(void **state) {
    (void)state;
    cluster c;
    const bpt_team team = team_of(&c, (double[]){100, 100, 100}, 3);
    for (int r = 0; r < 3; r++) c.nodes[r].link_bytes_per_s = 1e9;
    c.nodes[0].link_bytes_per_s = 1e6 / (4 * 0.64) / 10; /* its own pushes fill it ten times */
    const bpt_forecast f = forecast(agwu, &team, &megabyte);
    assert_true(f.links_are_full);
    assert_near(f.every, 40, 1);
}

/* What exchanges begin with is what bpt-train begins with. */
static void test_pace(void **state) {
    (void)state;
    cluster c;
    const bpt_team team = team_of(&c, (double[]){100, 100}, 2);
    bpt_work work = megabyte;
    work.epoch_samples = work.total_samples = 64000000;
    for (int shared = 0; shared < 2; shared++) {
        work.shared_momentum = shared;
        for (int r = 0; r < 2; r++) c.nodes[r].message_s_per_byte = 1e-5; /* as rarely as can be */
        const bpt_pace_run run = {.epoch_samples = work.epoch_samples,
                                  .total_samples = work.total_samples,
                                  .batch_all = 2 * 64,
                                  .n_workers = 2,
                                  .shared_momentum = shared};
        assert_near(forecast(agwu, &team, &work).every, (double)bpt_pace_begin("auto", run).most,
                    1e-9);
        for (int r = 0; r < 2; r++) c.nodes[r].message_s_per_byte = 0;
        assert_near(forecast(agwu, &team, &work).every, (double)bpt_pace_begin("auto", run).least,
                    1e-9);
    }
    for (int r = 0; r < 2; r++) c.nodes[r].load_s_per_image = 0.01;
    assert_int_equal(forecast(agwu, &team, &work).limit, BPT_PLAN_DATA);
}

/* ---- what holds for any cluster ---- */

static double any(uint64_t *state, double least, double most) {
    *state = *state * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
    return least * pow(most / least, (double)(*state >> 11) * 0x1p-53);
}

static void test_any_cluster(void **state) {
    (void)state;
    const bpt_way ways[] = {agwu, sgwu, even, idpa};
    uint64_t draw = 1;
    for (int i = 0; i < 500; i++) {
        cluster c;
        double speeds[MOST];
        const uint32_t n = 2 + (uint32_t)i % (MOST - 1);
        for (uint32_t r = 0; r < n; r++) speeds[r] = any(&draw, 10, 1000);
        bpt_team team = team_of(&c, speeds, n);
        for (int w = 0; w < 4; w++) {
            const double before = forecast(ways[w], &team, &megabyte).images_per_s;
            for (uint32_t r = 0; r < n; r++) {
                c.nodes[r].message_s_per_byte = any(&draw, 1e-10, 1e-8);
                c.nodes[r].copy_s = any(&draw, 1e-5, 1e-3);
                c.nodes[r].link_bytes_per_s = any(&draw, 1e6, 1e9);
            }
            team.latency_s = any(&draw, 1e-5, 1e-3);
            const bpt_forecast f = forecast(ways[w], &team, &megabyte);
            assert_true(f.images_per_s > 0 && isfinite(f.images_per_s));
            assert_true(f.part > 0 && f.part < 1 + 1e-9);
            assert_true(f.images_per_s <= before * (1 + 1e-9));
            for (uint32_t r = 0; r < n; r++) {
                c.nodes[r].message_s_per_byte = c.nodes[r].copy_s = 0;
                c.nodes[r].link_bytes_per_s = 0;
            }
            team.latency_s = 0;
        }
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_alone),
        cmocka_unit_test(test_what_suits),
        cmocka_unit_test(test_for_nothing),
        cmocka_unit_test(test_small_steps),
        cmocka_unit_test(test_cuts),
        cmocka_unit_test(test_gradients_on_links),
        cmocka_unit_test(test_gradients_in_the_thread),
        cmocka_unit_test(test_walk),
        cmocka_unit_test(test_exchanges_cost),
        cmocka_unit_test(test_exchanges_become_rarer),
        cmocka_unit_test(test_full_links),
        cmocka_unit_test(test_rounds),
        cmocka_unit_test(test_rounds_of_unlike_ranks),
        cmocka_unit_test(test_slowest_of_a_round),
        cmocka_unit_test(test_shards_go_by_links),
        cmocka_unit_test(test_pace),
        cmocka_unit_test(test_any_cluster),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
