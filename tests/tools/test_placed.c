/* A network in two parts, with messages and a log that are made up: what a rank tells the host with
 * a batch, what it waits for, and what the host makes of batches, and of what fails. */
#include "base/clock.h"
#include "base/memory.h"
#include "inner/models/model_part.h"
#include "inner/network/network_border.h"
#include "tests/base/near.h"
#include "tests/tools/made_job.h"
#include "tools/train/job/placed.h"
#include "tools/train/run/border_log.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

/* Last: it needs those above, and defines fail and skip. */
#include <cmocka.h>

/* ---- what is called: ld --wrap ---- */

enum { N_RANKS = 2, NEXT_NS = 500, ANSWER_NS = 30, MOST_VALUES = 60000 };

static struct {
    uint64_t clock_ns;
    size_t others_bytes; /* of a sample at the border of the other rank; 0: as of this one */
    bpt_parting parting; /* of the plan of memory */
    bpt_status fits, log_closed, log_updated;
    /* On the host: where batches arrive. */
    void *values[N_RANKS];
    int32_t *labels[N_RANKS];
    size_t sample_bytes;
    bool own_thread;
    uint32_t n_next;     /* batches that were taken */
    uint32_t n_there;    /* agwu: that there are, of workers in turn */
    atomic_bool idle;    /* no batch is left to the host, or it has refused one */
    atomic_bool stopped; /* it is not to wait for more */
    uint32_t n_answered, n_refused;
    bpt_relay_result answer; /* the last one */
    bpt_status refused_with;
    /* Of the rank's own batch. */
    bpt_relay_note note;
    void *gradient;
    const char *waited_for;
    uint64_t wait_begin_ns;
} world;

bpt_status __wrap_bpt_comm_agree(bpt_comm *comm, bpt_status mine);
bpt_status __wrap_bpt_comm_allgather(bpt_comm *comm, const void *mine, size_t bytes, void *all);
const char *__wrap_bpt_comm_host(const bpt_comm *comm, uint32_t rank);
bpt_status __wrap_bpt_memory_plan_check(const bpt_job *job);
bpt_status __wrap_bpt_relay_create(bpt_comm *comm, const bpt_relay_options *options, bpt_relay **r);
bpt_status __wrap_bpt_relay_destroy(bpt_relay *r);
bpt_status __wrap_bpt_relay_send(bpt_relay *r, const bpt_relay_note *note, const void *values,
                                 const int32_t *labels, void *gradient);
bpt_status __wrap_bpt_relay_wait(bpt_relay *r, bpt_relay_result *result);
bpt_status __wrap_bpt_relay_next(bpt_relay *r, uint32_t *worker, bpt_relay_note *note);
bpt_status __wrap_bpt_relay_answer(bpt_relay *r, uint32_t worker, const bpt_relay_result *result,
                                   const void *gradient);
bpt_status __wrap_bpt_relay_refuse(bpt_relay *r, uint32_t worker, const void *gradient);
void __wrap_bpt_relay_stop(bpt_relay *r);
bpt_status __wrap_bpt_border_log_open(const bpt_run_folder *run, uint32_t host, const char *layer,
                                      bpt_border_log **log);
bpt_status __wrap_bpt_border_log_update(bpt_border_log *log, uint32_t worker, uint64_t step,
                                        float rate);
bpt_status __wrap_bpt_border_log_close(bpt_border_log *log);
void __wrap_bpt_step_trace_wait(bpt_step_trace *trace, const char *what, uint64_t begin_ns);
uint64_t __wrap_bpt_clock_ns(void);

bpt_status __wrap_bpt_comm_agree(bpt_comm *comm, bpt_status mine) {
    (void)comm;
    return mine;
}

/* Samples of a step, and bytes of one at the border. */
bpt_status __wrap_bpt_comm_allgather(bpt_comm *comm, const void *mine, size_t bytes, void *all) {
    uint64_t(*sides)[2] = all;
    (void)comm;
    assert_int_equal(bytes, sizeof *sides);
    for (int r = 0; r < N_RANKS; r++) memcpy(sides[r], mine, bytes);
    if (world.others_bytes > 0) sides[1][1] = world.others_bytes;
    return BPT_OK;
}

const char *__wrap_bpt_comm_host(const bpt_comm *comm, uint32_t rank) {
    (void)comm, (void)rank;
    return "made-up";
}

bpt_status __wrap_bpt_memory_plan_check(const bpt_job *job) {
    world.parting = job->parting;
    return world.fits;
}

bpt_status __wrap_bpt_relay_create(bpt_comm *comm, const bpt_relay_options *options,
                                   bpt_relay **r) {
    (void)comm;
    world.sample_bytes = options->sample_bytes;
    world.own_thread = options->own_thread;
    for (int i = 0; i < N_RANKS; i++) {
        assert_int_equal(options->samples[i], MADE_BATCH);
        if (!options->values) continue;
        world.values[i] = options->values[i];
        world.labels[i] = options->labels[i];
        memset(world.values[i], 0, MADE_BATCH * options->sample_bytes);
        memset(world.labels[i], 0, MADE_BATCH * sizeof(int32_t));
    }
    *r = (bpt_relay *)&world;
    return BPT_OK;
}

bpt_status __wrap_bpt_relay_destroy(bpt_relay *r) {
    (void)r;
    return BPT_OK;
}

bpt_status __wrap_bpt_relay_send(bpt_relay *r, const bpt_relay_note *note, const void *values,
                                 const int32_t *labels, void *gradient) {
    (void)r, (void)values, (void)labels;
    world.note = *note;
    world.gradient = gradient;
    return BPT_OK;
}

bpt_status __wrap_bpt_relay_wait(bpt_relay *r, bpt_relay_result *result) {
    (void)r;
    world.clock_ns += ANSWER_NS;
    memset(world.gradient, 0, MADE_BATCH * world.sample_bytes);
    *result = (bpt_relay_result){.loss_sum = 4, .n_correct = 3, .n_samples = 8};
    return BPT_OK;
}

static void await(const atomic_bool *flag) {
    while (!atomic_load(flag)) nanosleep(&(struct timespec){.tv_nsec = 1000000}, NULL);
}

/* Under allreduce one for each rank; under agwu so many, then it is waited for the end. */
bpt_status __wrap_bpt_relay_next(bpt_relay *r, uint32_t *worker, bpt_relay_note *note) {
    (void)r;
    *note = (bpt_relay_note){.seed = 1, .denominator = MADE_BATCH, .rate = 0.1f};
    if (world.own_thread && world.n_next == world.n_there) {
        atomic_store(&world.idle, true);
        await(&world.stopped);
        *worker = BPT_RELAY_NOBODY;
        return BPT_OK;
    }
    world.clock_ns += NEXT_NS;
    *worker = world.n_next++ % N_RANKS;
    return BPT_OK;
}

bpt_status __wrap_bpt_relay_answer(bpt_relay *r, uint32_t worker, const bpt_relay_result *result,
                                   const void *gradient) {
    (void)r, (void)worker, (void)gradient;
    world.n_answered++;
    world.answer = *result;
    return BPT_OK;
}

bpt_status __wrap_bpt_relay_refuse(bpt_relay *r, uint32_t worker, const void *gradient) {
    (void)r, (void)worker, (void)gradient;
    world.n_refused++;
    world.refused_with = bpt_error_last()->status;
    atomic_store(&world.idle, true);
    return BPT_OK;
}

void __wrap_bpt_relay_stop(bpt_relay *r) {
    (void)r;
    atomic_store(&world.stopped, true);
}

bpt_status __wrap_bpt_border_log_open(const bpt_run_folder *run, uint32_t host, const char *layer,
                                      bpt_border_log **log) {
    (void)run, (void)host;
    assert_string_equal(layer, "fc1");
    *log = NULL;
    return BPT_OK;
}

bpt_status __wrap_bpt_border_log_update(bpt_border_log *log, uint32_t worker, uint64_t step,
                                        float rate) {
    (void)log, (void)worker, (void)step, (void)rate;
    return world.log_updated == BPT_OK ? BPT_OK : bpt_fail(world.log_updated, "no room");
}

bpt_status __wrap_bpt_border_log_close(bpt_border_log *log) {
    (void)log;
    return world.log_closed;
}

void __wrap_bpt_step_trace_wait(bpt_step_trace *trace, const char *what, uint64_t begin_ns) {
    (void)trace;
    world.waited_for = what;
    world.wait_begin_ns = begin_ns;
}

uint64_t __wrap_bpt_clock_ns(void) {
    return world.clock_ns;
}

/* ---- a job ---- */

static size_t border;
static size_t n_head; /* elements of the first part */
static float pixels[MADE_BATCH * MADE_VALUES], flat[MOST_VALUES];
static int32_t labels[MADE_BATCH];
static const bpt_batch batch = {
    .input = pixels, .pixels = pixels, .labels = labels, .n = MADE_BATCH};

/* Rank 0 of two. */
static bpt_job begin(bpt_update_choice update) {
    memset(&world, 0, sizeof world);
    bpt_job job = made_job_of(&made.options, update, 0, N_RANKS, 0);
    assert_int_equal(bpt_pool_open("fifo", 1, &job.pool), BPT_OK);
    assert_int_equal(bpt_network_create(made.model, MADE_BATCH, BPT_F32,
                                        bpt_train_learning(&made.options, 1), job.pool,
                                        &job.network),
                     BPT_OK);
    return job;
}

static void end(bpt_job *job) {
    bpt_placed_close(job->placed);
    bpt_network_free(job->network);
    bpt_pool_free(job->pool);
}

static bpt_job open_job(bpt_update_choice update, uint32_t host) {
    bpt_job job = begin(update);
    assert_int_equal(bpt_placed_open(&job, border, host), BPT_OK);
    bpt_segments_initialise(&made.model->segments, 1, flat);
    assert_int_equal(bpt_placed_set(job.placed, BPT_VECTOR_WEIGHTS, flat), BPT_OK);
    return job;
}

/* ---- a step ---- */

enum { DENOMINATOR = 16 };

static uint64_t step(bpt_job *job) {
    const bpt_draw draw = {.seed = 7, .step = 5, .first_sample = 24};
    bpt_batch_result result;
    uint64_t wait_ns = 77;
    world.clock_ns = 1000;
    assert_int_equal(
        bpt_placed_step(job->placed, &batch, draw, 0.5f, DENOMINATOR, &result, &wait_ns), BPT_OK);
    assert_near(result.loss_sum, 4, 0);
    assert_true(result.n_correct == 3 && result.n_samples == 8);
    assert_true(world.note.seed == 7 && world.note.step == 5 && world.note.first_sample == 24);
    assert_true(world.note.denominator == DENOMINATOR);
    assert_string_equal(world.waited_for, "border");
    return wait_ns;
}

/* The tail learns from the batches of all: under agwu from one after the other, each a part of what
 * the ranks advance by. A rank waits for its answer. */
static void test_a_step(void **state) {
    (void)state;
    bpt_job job = open_job(BPT_UPDATE_AGWU, 1);
    assert_true(world.own_thread);
    assert_int_equal(step(&job), ANSWER_NS);
    assert_int_equal(world.wait_begin_ns, 1000);
    assert_true(world.note.rate == 0.25f);
    assert_int_equal(bpt_network_updates(bpt_placed_head(job.placed)), 1);
    end(&job);
    job = open_job(BPT_UPDATE_ALLREDUCE, 1);
    assert_false(world.own_thread);
    assert_int_equal(step(&job), ANSWER_NS);
    assert_true(world.note.rate == 0.5f);
    assert_int_equal(bpt_network_updates(bpt_placed_head(job.placed)), 0); /* sums come first */
    assert_int_equal(bpt_placed_learn(job.placed, 0.5f), BPT_OK);
    assert_int_equal(bpt_placed_tail_updates(job.placed), 0);
    end(&job);
}

/* Under allreduce the host waits for the batches of all before, and answers each. */
static void test_a_step_of_the_host(void **state) {
    (void)state;
    bpt_job job = open_job(BPT_UPDATE_ALLREDUCE, 0);
    assert_int_equal(step(&job), N_RANKS * NEXT_NS + ANSWER_NS);
    assert_int_equal(world.wait_begin_ns, 1000 + N_RANKS * NEXT_NS);
    assert_int_equal(world.n_answered, N_RANKS);
    assert_int_equal(world.answer.n_samples, N_RANKS * MADE_BATCH);
    assert_int_equal(bpt_placed_tail_updates(job.placed), 0);
    assert_int_equal(bpt_placed_learn(job.placed, 0.5f), BPT_OK);
    assert_int_equal(bpt_placed_tail_updates(job.placed), 1);
    end(&job);
}

/* ---- the host under agwu ---- */

static void test_serving(void **state) {
    (void)state;
    bpt_job job = open_job(BPT_UPDATE_AGWU, 0);
    world.n_there = 5;
    assert_int_equal(bpt_placed_serve(&job), BPT_OK);
    await(&world.idle);
    assert_int_equal(bpt_placed_rest(job.placed), BPT_OK);
    assert_true(world.n_answered == 5 && world.n_refused == 0);
    assert_int_equal(bpt_placed_tail_updates(job.placed), 5);
    assert_int_equal(world.answer.n_samples, MADE_BATCH);
    end(&job);
}

/* Without the log there is no replay: whose batch it was hears of it, and who closes it. */
static void test_a_log_without_room(void **state) {
    (void)state;
    bpt_job job = open_job(BPT_UPDATE_AGWU, 0);
    world.n_there = 5;
    world.log_updated = BPT_ENOSPC;
    assert_int_equal(bpt_placed_serve(&job), BPT_OK);
    await(&world.idle);
    world.log_closed = BPT_ENOSPC;
    assert_int_equal(bpt_placed_rest(job.placed), BPT_ENOSPC);
    assert_true(world.n_answered == 0 && world.n_refused == 1); /* it has ended */
    assert_int_equal(world.refused_with, BPT_ENOSPC);
    end(&job);
}

/* ---- how it is opened ---- */

/* With the memory of what this rank has. */
static void test_memory(void **state) {
    (void)state;
    for (uint32_t host = 0; host < N_RANKS; host++) {
        bpt_job job = open_job(BPT_UPDATE_AGWU, host);
        assert_int_equal(world.parting.stage, BPT_PARTING_DONE);
        assert_int_equal(world.parting.host, host == 0);
        assert_int_equal(world.parting.border, border);
        end(&job);
        job = begin(BPT_UPDATE_AGWU);
        world.fits = BPT_EUSAGE;
        assert_int_equal(bpt_placed_open(&job, border, host), BPT_EUSAGE);
        assert_null(job.placed);
        end(&job);
    }
}

/* Ranks whose activations are of other types have no border in common. */
static void test_unlike_ranks(void **state) {
    (void)state;
    bpt_job job = begin(BPT_UPDATE_AGWU);
    world.others_bytes = 2;
    assert_int_equal(bpt_placed_open(&job, border, 0), BPT_EUSAGE);
    assert_string_equal(bpt_error_last()->text,
                        "rank 1 on made-up has activations of another type than rank 0: no network "
                        "can be in parts on both");
    end(&job);
}

/* Both parts of a vector are the host's, the first alone any other rank's. */
static void test_vectors(void **state) {
    (void)state;
    const size_t n = made.model->segments.n_elements;
    assert_true(n < MOST_VALUES);
    for (uint32_t host = 0; host < N_RANKS; host++) {
        bpt_job job = open_job(BPT_UPDATE_AGWU, host);
        for (size_t i = 0; i < n; i++) flat[i] = (float)(i + 1);
        assert_int_equal(bpt_placed_set(job.placed, BPT_VECTOR_STATE_0, flat), BPT_OK);
        for (size_t i = 0; i < n; i++) flat[i] = -1;
        assert_int_equal(bpt_placed_get(job.placed, BPT_VECTOR_STATE_0, flat), BPT_OK);
        for (size_t i = 0; i < n; i++)
            assert_true(flat[i] == (i < n_head || host == 0 ? (float)(i + 1) : 0));
        bpt_placed_set_updates(job.placed, 3, 9);
        assert_int_equal(bpt_network_updates(bpt_placed_head(job.placed)), 3);
        assert_int_equal(bpt_placed_tail_updates(job.placed), host == 0 ? 9 : 0);
        end(&job);
    }
}

static int set_up(void **state) {
    bpt_model *head;
    if (made_set_up(state) != 0 || bpt_model_find_border(made.model, "fc1", &border) != BPT_OK ||
        bpt_model_part(made.model, border, BPT_MODEL_HEAD, &head) != BPT_OK)
        return -1;
    n_head = head->segments.n_elements;
    bpt_model_free(head);
    return 0;
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_a_step),  cmocka_unit_test(test_a_step_of_the_host),
        cmocka_unit_test(test_serving), cmocka_unit_test(test_a_log_without_room),
        cmocka_unit_test(test_memory),  cmocka_unit_test(test_unlike_ranks),
        cmocka_unit_test(test_vectors),
    };
    return cmocka_run_group_tests(tests, set_up, made_tear_down);
}
