/* What the exchange of a job is made from, and what its shards are placed by: of ranks, speeds,
 * links and checkpoints that are made up. */
#include "base/memory.h"
#include "base/text.h"
#include "outer/placement/link_speed.h"
#include "outer/placement/placement.h"
#include "tests/base/near.h"
#include "tests/tools/made_job.h"
#include "tools/train/job/agreement.h"
#include "tools/train/job/checkpoint.h"
#include "tools/train/job/job_parts.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

/* Last: it needs those above, and defines fail and skip. */
#include <cmocka.h>

/* ---- what is called: ld --wrap ---- */

enum { MOST_RANKS = 4, BATCH_SIZE = 20 };

static const double speeds[MOST_RANKS] = {10, 20, 40, 80};
static const double links[MOST_RANKS] = {1e6, 2e6, 3e6, 4e6};
static const double rooms[MOST_RANKS] = {0.3, 0.4, 0.5, 0.6};
static const double parts[MOST_RANKS] = {0.1, 0.2, 0.3, 0.4};

static struct {
    uint32_t n_ranks;
    bpt_checkpoint checkpoint; /* there is one if it has a path */
    unsigned n_linked, n_placed, n_made, n_broadcast;
    bpt_place_inputs placed;
    double speed[MOST_RANKS], bytes_per_s[MOST_RANKS], largest[MOST_RANKS];
    bpt_exchange_options made;
    bpt_coordinator_options coordinator;
    float velocity;
    double part[MOST_RANKS];
} world;

bpt_status __wrap_bpt_comm_agree(bpt_comm *comm, bpt_status mine);
bpt_status __wrap_bpt_comm_broadcast(bpt_comm *comm, uint32_t root, void *data, size_t bytes);
bpt_status __wrap_bpt_comm_allgather(bpt_comm *comm, const void *mine, size_t bytes, void *all);
const char *__wrap_bpt_comm_host(const bpt_comm *comm, uint32_t rank);
bpt_status __wrap_bpt_comm_link_speeds(bpt_comm *comm, double *bytes_per_s);
bpt_status __wrap_bpt_memory_plan_make(const bpt_job *job, bpt_memory_plan *plan);
double __wrap_bpt_memory_plan_hosts(const bpt_job *job, const bpt_memory_plan *plan);
bpt_status __wrap_bpt__job_settle(bpt_job *job, bool *found, bpt_checkpoint *c);
bpt_status __wrap_bpt__job_begin_run(bpt_job *job, bool anew);
bpt_status __wrap_bpt__job_speeds(bpt_job *job, double *of_ranks);
bpt_status __wrap_bpt_job_set_weights(bpt_job *job, const float *weights);
bpt_status __wrap_bpt_run_folder_entry(const bpt_run_folder *run, const char *name, char **out);
bpt_status __wrap_bpt_checkpoint_open(const bpt_job *job, bool *found, bpt_checkpoint *c);
void __wrap_bpt_checkpoint_close(bpt_checkpoint *c);
bpt_status __wrap_bpt_checkpoint_read(const bpt_checkpoint *c, bpt_job *job, float *weights);
bpt_status __wrap_bpt_checkpoint_velocity(const bpt_checkpoint *c, const bpt_job *job,
                                          float *velocity);
bpt_status __wrap_bpt_agree_on_checkpoint(const bpt_job *job, const char *path);
void __wrap_bpt_place_shards(const bpt_place_inputs *in, double *part);
bpt_status __wrap_bpt_exchange_create(bpt_comm *comm, const bpt_exchange_options *options,
                                      bpt_exchange **x);

bpt_status __wrap_bpt_comm_agree(bpt_comm *comm, bpt_status mine) {
    (void)comm;
    return mine;
}

bpt_status __wrap_bpt_comm_broadcast(bpt_comm *comm, uint32_t root, void *data, size_t bytes) {
    (void)comm, (void)data;
    assert_int_equal(root, 0);
    assert_int_equal(bytes, made.model->segments.n_elements * sizeof(float));
    world.n_broadcast++;
    return BPT_OK;
}

bpt_status __wrap_bpt_comm_allgather(bpt_comm *comm, const void *mine, size_t bytes, void *all) {
    (void)comm;
    assert_int_equal(bytes, sizeof(double));
    assert_near(*(const double *)mine, rooms[0], 0);
    memcpy(all, rooms, world.n_ranks * bytes);
    return BPT_OK;
}

const char *__wrap_bpt_comm_host(const bpt_comm *comm, uint32_t rank) {
    (void)comm, (void)rank;
    return "made-up";
}

bpt_status __wrap_bpt_comm_link_speeds(bpt_comm *comm, double *bytes_per_s) {
    (void)comm;
    memcpy(bytes_per_s, links, world.n_ranks * sizeof *links);
    world.n_linked++;
    return BPT_OK;
}

bpt_status __wrap_bpt_memory_plan_make(const bpt_job *job, bpt_memory_plan *plan) {
    (void)job;
    *plan = (bpt_memory_plan){0};
    return BPT_OK;
}

double __wrap_bpt_memory_plan_hosts(const bpt_job *job, const bpt_memory_plan *plan) {
    (void)job, (void)plan;
    return rooms[0];
}

bpt_status __wrap_bpt__job_settle(bpt_job *job, bool *found, bpt_checkpoint *c) {
    (void)job, (void)found, (void)c;
    return BPT_OK;
}

bpt_status __wrap_bpt__job_begin_run(bpt_job *job, bool anew) {
    (void)job;
    assert_int_equal(anew, !world.checkpoint.path);
    return BPT_OK;
}

bpt_status __wrap_bpt__job_speeds(bpt_job *job, double *of_ranks) {
    (void)job;
    memcpy(of_ranks, speeds, world.n_ranks * sizeof *speeds);
    return BPT_OK;
}

bpt_status __wrap_bpt_job_set_weights(bpt_job *job, const float *weights) {
    (void)job, (void)weights;
    return BPT_OK;
}

bpt_status __wrap_bpt_run_folder_entry(const bpt_run_folder *run, const char *name, char **out) {
    (void)run;
    return bpt_strdup(name, out);
}

bpt_status __wrap_bpt_checkpoint_open(const bpt_job *job, bool *found, bpt_checkpoint *c) {
    (void)job;
    *found = world.checkpoint.path != NULL;
    *c = world.checkpoint;
    return BPT_OK;
}

void __wrap_bpt_checkpoint_close(bpt_checkpoint *c) {
    (void)c;
}

bpt_status __wrap_bpt_checkpoint_read(const bpt_checkpoint *c, bpt_job *job, float *weights) {
    (void)c, (void)job;
    memset(weights, 0, made.model->segments.n_elements * sizeof *weights);
    return BPT_OK;
}

bpt_status __wrap_bpt_checkpoint_velocity(const bpt_checkpoint *c, const bpt_job *job,
                                          float *velocity) {
    (void)c, (void)job;
    velocity[0] = 3;
    return BPT_OK;
}

bpt_status __wrap_bpt_agree_on_checkpoint(const bpt_job *job, const char *path) {
    (void)job, (void)path;
    return BPT_OK;
}

void __wrap_bpt_place_shards(const bpt_place_inputs *in, double *part) {
    const size_t bytes = in->n_ranks * sizeof(double);
    world.n_placed++;
    world.placed = *in;
    memcpy(world.speed, in->speed, bytes);
    memcpy(world.largest, in->largest, bytes);
    if (in->bytes_per_s) memcpy(world.bytes_per_s, in->bytes_per_s, bytes);
    memcpy(part, parts, bytes);
}

/* What comes after it is not tried here. */
bpt_status __wrap_bpt_exchange_create(bpt_comm *comm, const bpt_exchange_options *options,
                                      bpt_exchange **x) {
    (void)comm, (void)x;
    world.n_made++;
    world.made = *options;
    world.coordinator = *options->coordinator;
    if (options->velocity) world.velocity = options->velocity[0];
    if (options->part) memcpy(world.part, options->part, sizeof world.part);
    return bpt_fail(BPT_EIO, "no exchange");
}

/* ---- jobs ---- */

static bpt_train_options options;

static bpt_job begin(bpt_update_choice update, bpt_partition_choice partition, uint32_t n_ranks,
                     uint32_t n_servers) {
    memset(&world, 0, sizeof world);
    world.n_ranks = n_ranks;
    options = made.options;
    options.batch_size = BATCH_SIZE;
    options.idpa_rounds = "2";
    options.rebalance = 0.25;
    bpt_job job = made_job_of(&options, update, 0, n_ranks, n_servers);
    job.partition = partition;
    job.total_samples = 3000;
    job.eval_every = 500;
    job.checkpoint_every = 700;
    job.pace.least = 5;
    job.pace.most = 9;
    assert_int_equal(BPT_NEW("flat vector", made.model->segments.n_elements, &job.flat), BPT_OK);
    assert_int_equal(BPT_NEW("speeds", n_ranks, &job.solo), BPT_OK);
    for (uint32_t r = 0; r < job.n_workers; r++) job.solo[r] = speeds[r];
    return job;
}

static void open_state(bpt_job *job) {
    assert_int_equal(bpt__job_open_state(job), BPT_EIO);
    assert_int_equal(world.n_made, 1);
    bpt_partition_free(job->shares);
    bpt_free(job->statistics);
    bpt_free(job->solo);
    bpt_free(job->flat);
}

/* ---- where shards are placed ---- */

/* @return bytes a second of the first so many ranks, each of which pushes every 5 steps of 20 */
static double pushed(uint32_t n_workers) {
    double all = 0;
    for (uint32_t r = 0; r < n_workers; r++) all += speeds[r];
    return all / (5 * BATCH_SIZE) * (double)(made.model->segments.n_elements * sizeof(float));
}

static void assert_of_ranks(const double *values, const double *expected, uint32_t n) {
    for (uint32_t r = 0; r < n; r++) assert_near(values[r], expected[r], 0);
}

static void test_places(void **state) {
    (void)state;
    bpt_job job = begin(BPT_UPDATE_AGWU, BPT_PARTITION_IDPA, 3, 0);
    open_state(&job);
    assert_int_equal(world.n_placed, 1);
    assert_int_equal(world.placed.n_ranks, 3);
    assert_of_ranks(world.speed, speeds, 3);
    assert_of_ranks(world.bytes_per_s, links, 3);
    assert_of_ranks(world.largest, rooms, 3);
    assert_near(world.placed.pushed_bytes_per_s, pushed(3), 1e-6);
    assert_false(world.placed.apart || world.placed.in_rounds || world.placed.guessed);
    assert_of_ranks(world.part, parts, 3);
    job = begin(BPT_UPDATE_SGWU, BPT_PARTITION_IDPA, 3, 0);
    open_state(&job);
    assert_true(world.placed.in_rounds);
}

/* Servers are placed by what they are themselves; pushed is what the others push. */
static void test_places_of_servers(void **state) {
    (void)state;
    bpt_job job = begin(BPT_UPDATE_AGWU, BPT_PARTITION_IDPA, 4, 2);
    open_state(&job);
    assert_int_equal(world.placed.n_ranks, 2);
    assert_of_ranks(world.speed, speeds + 2, 2);
    assert_of_ranks(world.bytes_per_s, links + 2, 2);
    assert_of_ranks(world.largest, rooms + 2, 2);
    assert_near(world.placed.pushed_bytes_per_s, pushed(2), 1e-6);
    assert_true(world.placed.apart);
    assert_int_equal(world.made.n_servers, 2);
}

/* By guesses no links are measured; equal shares have equal shards, and sums have none. */
static void test_places_of_none(void **state) {
    (void)state;
    static const struct {
        bpt_update_choice update;
        bpt_partition_choice partition;
    } none[] = {{BPT_UPDATE_AGWU, BPT_PARTITION_EVEN},
                {BPT_UPDATE_SGWU, BPT_PARTITION_EVEN},
                {BPT_UPDATE_ALLREDUCE, BPT_PARTITION_IDPA}};
    bpt_job job = begin(BPT_UPDATE_AGWU, BPT_PARTITION_IDPA, 3, 0);
    job.solo[0] = 0;
    open_state(&job);
    assert_true(world.n_placed == 1 && world.n_linked == 0);
    assert_true(world.placed.guessed && !world.placed.bytes_per_s);
    for (size_t i = 0; i < sizeof none / sizeof *none; i++) {
        job = begin(none[i].update, none[i].partition, 3, 0);
        open_state(&job);
        assert_true(world.n_placed == 0 && world.n_linked == 0);
        assert_null(world.made.part);
        assert_null(world.coordinator.speed);
        assert_near(world.coordinator.rebalance, 0, 0);
    }
}

/* ---- the exchange ---- */

/* Evaluations are rank 0's alone where nobody waits, and has all weights. */
static void test_coordinator(void **state) {
    (void)state;
    bpt_job job = begin(BPT_UPDATE_AGWU, BPT_PARTITION_IDPA, 3, 0);
    open_state(&job);
    const bpt_coordinator_options *const c = &world.coordinator;
    assert_int_equal(c->n_ranks, 3);
    assert_int_equal(c->total_samples, 3000);
    assert_int_equal(c->checkpoint_every, 700);
    assert_int_equal(c->eval_every, 0);
    assert_int_equal(c->progress, 0);
    assert_int_equal(c->n_samples, MADE_TRAIN);
    assert_int_equal(c->n_rounds, 2);
    assert_non_null(c->speed);
    assert_near(c->rebalance, 0.25, 0);
    assert_int_equal(world.made.n_elements, made.model->segments.n_elements);
    job = begin(BPT_UPDATE_SGWU, BPT_PARTITION_EVEN, 4, 1);
    open_state(&job);
    assert_int_equal(c->n_ranks, 3);
    assert_int_equal(c->eval_every, 500);
    assert_int_equal(c->n_rounds, 1);
    job = begin(BPT_UPDATE_ALLREDUCE, BPT_PARTITION_EVEN, 3, 0);
    open_state(&job);
    assert_int_equal(c->eval_every, 500);
    assert_true(c->n_samples == 0 && c->n_rounds == 0);
    assert_int_equal(world.made.n_elements, 0); /* they travel as sums */
    assert_null(world.made.partition);
}

static void test_staleness(void **state) {
    (void)state;
    bpt_job job = begin(BPT_UPDATE_AGWU, BPT_PARTITION_EVEN, 2, 0);
    open_state(&job);
    assert_true(world.made.max_staleness == BPT_STALENESS_NONE);
    for (uint32_t bound = 0; bound < 3; bound += 2) {
        job = begin(BPT_UPDATE_AGWU, BPT_PARTITION_EVEN, 2, 0);
        options.max_staleness = bound;
        open_state(&job);
        assert_int_equal(world.made.max_staleness, bound);
    }
}

/* ---- going on ---- */

/* The job itself goes on from where its exchange was, with the velocity on all ranks; another one
 * has the weights and the progress. */
static void test_going_on(void **state) {
    (void)state;
    for (int exact = 0; exact < 2; exact++) {
        bpt_job job = begin(BPT_UPDATE_AGWU, BPT_PARTITION_IDPA, 3, 0);
        options.resume = "auto";
        job.terms.momentum = 0.5;
        world.checkpoint = (bpt_checkpoint){.path = "run/checkpoints/step-1",
                                            .exact = exact,
                                            .count = {.progress = 900, .seconds = 7},
                                            .state = (bpt_json_doc *)&world,
                                            .exchange = (const bpt_json *)&options};
        open_state(&job);
        assert_int_equal(job.count.progress, 900);
        assert_near(job.seconds_before, exact ? 0 : 7, 0);
        assert_int_equal(world.coordinator.progress, exact ? 0 : 900);
        assert_true(world.made.snapshot_doc == (exact ? world.checkpoint.state : NULL));
        assert_true(world.made.snapshot == (exact ? world.checkpoint.exchange : NULL));
        assert_int_equal(world.made.velocity != NULL, exact);
        assert_true(world.velocity == (exact ? 3 : 0));
        assert_int_equal(world.n_broadcast, exact ? 2 : 1);
    }
    bpt_job job = begin(BPT_UPDATE_AGWU, BPT_PARTITION_IDPA, 3, 0);
    options.resume = "auto";
    world.checkpoint = (bpt_checkpoint){.path = "run/checkpoints/step-1", .exact = true};
    open_state(&job);
    assert_null(world.made.velocity); /* there is no momentum */
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_places),         cmocka_unit_test(test_places_of_servers),
        cmocka_unit_test(test_places_of_none), cmocka_unit_test(test_coordinator),
        cmocka_unit_test(test_staleness),      cmocka_unit_test(test_going_on),
    };
    return cmocka_run_group_tests(tests, made_set_up, made_tear_down);
}
