/* The loops that merge weights: when a rank pushes what it has learnt, what it says with it, and
 * when it waits for the answer. */
#include "tools/train/exchange/exchange_cost.h"
#include "tools/train/exchange/momentum_of_all.h"
#include "tools/train/job/job.h"
#include "tools/train/loop/train_loop.h"
#include "tools/train/run/step_log.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

/* Last: it needs those above, and defines fail and skip. */
#include <cmocka.h>

enum { N = 3, BATCH = 8, STEP_NS = 1000, MOST = 4 };

/* ---- what is called: ld --wrap ---- */

static struct {
    char calls[2000]; /* names, a blank behind each */
    float weights[N]; /* of the network: a step adds 1 to each */
    float outbox[N], global[N];
    float pushed[MOST][N]; /* by each push */
    bpt_report reports[MOST];
    unsigned n_pushes;
    bool ready, once; /* answers are there at once; the first alone */
    bool called, asked;
    uint64_t progress; /* of the next answer */
    unsigned met_at; /* answer, from 1, that is of a meeting for the end; the one before calls it */
    unsigned n_answers;
} world;

static bpt_status call(const char *name) {
    assert_true(strlen(world.calls) + strlen(name) + 2 < sizeof world.calls);
    strcat(strcat(world.calls, name), " ");
    return BPT_OK;
}

bpt_status __wrap_bpt_job_step(bpt_job *job, bool gradient_only);
float __wrap_bpt_job_rate(const bpt_job *job);
uint32_t __wrap_bpt_job_wants(bpt_job *job);
bool __wrap_bpt_job_is_asked(bpt_job *job);
void __wrap_bpt_job_note_reply(bpt_job *job, const bpt_reply *reply);
bpt_status __wrap_bpt_job_note_shares(bpt_job *job);
bpt_status __wrap_bpt_job_report(bpt_job *job);
bpt_status __wrap_bpt_job_report_rest(bpt_job *job);
bpt_status __wrap_bpt_network_get(bpt_network *net, bpt_vector which, float *flat);
bpt_status __wrap_bpt_network_set(bpt_network *net, bpt_vector which, const float *flat);
float *__wrap_bpt_exchange_outbox(bpt_exchange *x);
bpt_status __wrap_bpt_exchange_push(bpt_exchange *x, const bpt_report *report);
bool __wrap_bpt_exchange_ready(const bpt_exchange *x);
bool __wrap_bpt_exchange_called(const bpt_exchange *x);
bpt_status __wrap_bpt_exchange_wait(bpt_exchange *x, bpt_reply *reply);
double __wrap_bpt_exchange_cost_read(const bpt_exchange_cost *cost);
void __wrap_bpt_exchange_cost_begin(bpt_exchange_cost *cost);
void __wrap_bpt_exchange_cost_copy(bpt_exchange_cost *cost);
void __wrap_bpt_exchange_cost_copied(bpt_exchange_cost *cost);
void __wrap_bpt_exchange_cost_steps_over(bpt_exchange_cost *cost);
bpt_status __wrap_bpt_momentum_of_all_take(bpt_momentum_of_all *m, bpt_answer_point here,
                                           bpt_network *network, const float *before,
                                           const float *now, float *scratch, size_t n);
bpt_shared_momentum __wrap_bpt_job_shared_momentum(const bpt_job *job);
double __wrap_bpt_job_epoch(const bpt_job *job);
double __wrap_bpt_schedule_highest(const bpt_schedule *schedule, double epoch);
bpt_sampler_state __wrap_bpt_feed_state(const bpt_feed *feed);
bpt_status __wrap_bpt_step_log_open(const bpt_run_folder *run, uint32_t rank, uint64_t first_pass,
                                    bpt_step_log **log);

bpt_status __wrap_bpt_job_step(bpt_job *job, bool gradient_only) {
    assert_false(gradient_only);
    job->count.steps++;
    job->count.samples += BATCH;
    job->count.unreported += BATCH;
    job->count.compute_ns += STEP_NS;
    job->rates += 2;
    for (int i = 0; i < N; i++) world.weights[i] += 1;
    return call("step");
}

float __wrap_bpt_job_rate(const bpt_job *job) {
    (void)job;
    return 2;
}

uint32_t __wrap_bpt_job_wants(bpt_job *job) {
    (void)job;
    return BPT_MEET_CHECKPOINT;
}

bool __wrap_bpt_job_is_asked(bpt_job *job) {
    (void)job;
    return world.asked;
}

void __wrap_bpt_job_note_reply(bpt_job *job, const bpt_reply *reply) {
    job->count.progress = reply->progress;
}

bpt_status __wrap_bpt_job_note_shares(bpt_job *job) {
    (void)job;
    return BPT_OK;
}

bpt_status __wrap_bpt_job_report(bpt_job *job) {
    (void)job;
    return BPT_OK;
}

bpt_status __wrap_bpt_job_report_rest(bpt_job *job) {
    (void)job;
    return BPT_OK;
}

bpt_status __wrap_bpt_network_get(bpt_network *net, bpt_vector which, float *flat) {
    (void)net, (void)which;
    memcpy(flat, world.weights, sizeof world.weights);
    return BPT_OK;
}

bpt_status __wrap_bpt_network_set(bpt_network *net, bpt_vector which, const float *flat) {
    (void)net, (void)which;
    memcpy(world.weights, flat, sizeof world.weights);
    return BPT_OK;
}

float *__wrap_bpt_exchange_outbox(bpt_exchange *x) {
    (void)x;
    return world.outbox;
}

bpt_status __wrap_bpt_exchange_push(bpt_exchange *x, const bpt_report *report) {
    (void)x;
    assert_true(world.n_pushes < MOST);
    memcpy(world.pushed[world.n_pushes], world.outbox, sizeof world.outbox);
    world.reports[world.n_pushes++] = *report;
    return call("push");
}

bool __wrap_bpt_exchange_ready(const bpt_exchange *x) {
    (void)x;
    return world.ready && (!world.once || world.n_answers == 0);
}

bool __wrap_bpt_exchange_called(const bpt_exchange *x) {
    (void)x;
    return world.called;
}

bpt_status __wrap_bpt_exchange_wait(bpt_exchange *x, bpt_reply *reply) {
    (void)x;
    *reply = (bpt_reply){.values = world.global, .progress = world.progress};
    if (++world.n_answers == world.met_at) reply->met = BPT_MEET_END;
    world.called = world.n_answers + 1 == world.met_at;
    return call("land");
}

double __wrap_bpt_exchange_cost_read(const bpt_exchange_cost *cost) {
    (void)cost;
    return 0;
}

void __wrap_bpt_exchange_cost_begin(bpt_exchange_cost *cost) {
    (void)cost;
}

void __wrap_bpt_exchange_cost_copy(bpt_exchange_cost *cost) {
    (void)cost;
}

void __wrap_bpt_exchange_cost_copied(bpt_exchange_cost *cost) {
    (void)cost;
}

void __wrap_bpt_exchange_cost_steps_over(bpt_exchange_cost *cost) {
    (void)cost;
}

bpt_status __wrap_bpt_momentum_of_all_take(bpt_momentum_of_all *m, bpt_answer_point here,
                                           bpt_network *network, const float *before,
                                           const float *now, float *scratch, size_t n) {
    (void)m, (void)here, (void)network, (void)before, (void)now, (void)scratch;
    assert_int_equal(n, N);
    return BPT_OK;
}

bpt_shared_momentum __wrap_bpt_job_shared_momentum(const bpt_job *job) {
    (void)job;
    return (bpt_shared_momentum){0};
}

double __wrap_bpt_job_epoch(const bpt_job *job) {
    (void)job;
    return 0;
}

double __wrap_bpt_schedule_highest(const bpt_schedule *schedule, double epoch) {
    (void)schedule, (void)epoch;
    return 2;
}

bpt_sampler_state __wrap_bpt_feed_state(const bpt_feed *feed) {
    (void)feed;
    return (bpt_sampler_state){.covered = 6};
}

bpt_status __wrap_bpt_step_log_open(const bpt_run_folder *run, uint32_t rank, uint64_t first_pass,
                                    bpt_step_log **log) {
    (void)run, (void)rank, (void)first_pass;
    *log = NULL;
    return BPT_OK;
}

/* ---- a job of two ranks, of which this one has a quarter of the data ---- */

static bpt_partition *shares, *small_share;
static bpt_model model;
static float flat[N];
static bpt_train_options options;

static int set_up(void **state) {
    static const uint32_t held[] = {25, 75}, small[] = {2, 98};
    options.momentum = 0.5;
    options.max_staleness = -1;
    model.segments.n_elements = N;
    (void)state;
    if (bpt_partition_create((bpt_order){0}, 100, 2, 1, &shares) != BPT_OK ||
        bpt_partition_create((bpt_order){0}, 100, 2, 1, &small_share) != BPT_OK)
        return -1;
    return bpt_partition_allot(shares, held) == BPT_OK &&
                   bpt_partition_allot(small_share, small) == BPT_OK
               ? 0
               : -1;
}

static int tear_down(void **state) {
    (void)state;
    bpt_partition_free(small_share);
    bpt_partition_free(shares);
    return 0;
}

static bpt_job job_of(bpt_update_choice update, uint64_t every) {
    memset(&world, 0, sizeof world);
    world.met_at = 2;
    for (int i = 0; i < N; i++) {
        world.weights[i] = 10;
        world.global[i] = 100;
    }
    return (bpt_job){
        .options = &options,
        .n_ranks = 2,
        .n_workers = 2,
        .update = update,
        .model = &model,
        .shares = shares,
        .flat = flat,
        .batch = BATCH,
        .total_samples = 100000,
        .next_eval = UINT64_MAX,
        .next_checkpoint = UINT64_MAX,
        .pace = {.least = every, .most = every, .limit = every, .every = every},
    };
}

static void assert_calls(const char *calls) {
    assert_string_equal(world.calls, calls);
}

/* ---- tests ---- */

/* What was learnt since the weights of all came, or, under easgd, the weights; and of how many
 * samples and steps. */
static void test_what_is_pushed(void **state) {
    (void)state;
    static const struct {
        bpt_update_choice update;
        float pushed;
    } cases[] = {{BPT_UPDATE_AGWU, 3}, {BPT_UPDATE_EASGD, 13}};
    for (int c = 0; c < 2; c++) {
        bpt_job job = job_of(cases[c].update, 3);
        job.count.samples = 500; /* by the job before */
        job.count.steps = 60;
        job.count.compute_ns = 77;
        job.terms.elasticity = 0.3;
        world.ready = true;
        assert_int_equal(bpt_train_asynchronous(&job), BPT_OK);
        assert_calls("step step step push step land push land ");
        const bpt_report *const report = &world.reports[0];
        for (int i = 0; i < N; i++) assert_true(world.pushed[0][i] == cases[c].pushed);
        assert_int_equal(report->samples, 3 * BATCH);
        assert_int_equal(report->busy_ns, 3 * STEP_NS);
        assert_true(report->quality == 1);
        assert_true(report->rates == 3 * 2 / 0.5);
        assert_int_equal(report->covered, 6);
        assert_int_equal(report->wants, BPT_MEET_CHECKPOINT);
        assert_int_equal(world.reports[1].samples, BATCH); /* of the step since */
        assert_int_equal(world.reports[1].busy_ns, STEP_NS);
        assert_true(world.reports[1].rates == 2 / 0.5);
        for (int i = 0; i < N; i++) assert_true(world.weights[i] == 100); /* all meet */
    }
}

/* What was learnt since a push is kept, on top of the weights of all; the next one counts from it.
 */
static void test_what_is_kept(void **state) {
    (void)state;
    bpt_job job = job_of(BPT_UPDATE_AGWU, 2);
    world.ready = true;
    world.met_at = 3;
    assert_int_equal(bpt_train_asynchronous(&job), BPT_OK);
    assert_calls("step step push step land step push step land push land ");
    assert_int_equal(world.reports[1].samples, 2 * BATCH);
    for (int i = 0; i < N; i++) {
        assert_true(world.pushed[1][i] == 2); /* a step of before the answer, and one since */
        assert_true(world.pushed[2][i] == 1);
        assert_true(world.weights[i] == 100); /* they met */
    }
    assert_int_equal(job.count.unreported, 0);
}

/* Nobody waits for an answer, but where staleness has a bound, or at the end. */
static void test_waiting(void **state) {
    (void)state;
    bpt_job job = job_of(BPT_UPDATE_AGWU, 2);
    job.total_samples = 161; /* of all; a quarter is 40.25: the sixth step may be the last */
    assert_int_equal(bpt_train_asynchronous(&job), BPT_OK);
    assert_calls("step step push step step step step land push land ");
    job = job_of(BPT_UPDATE_AGWU, 2);
    job.total_samples = 160;
    assert_int_equal(bpt_train_asynchronous(&job), BPT_OK);
    assert_calls("step step push step step step land push land ");
    job = job_of(BPT_UPDATE_AGWU, 2);
    job.total_samples = 210;
    job.count.progress = 80; /* when it began */
    assert_int_equal(bpt_train_asynchronous(&job), BPT_OK);
    assert_calls("step step push step step step land push land ");
    job = job_of(BPT_UPDATE_AGWU, 2);
    job.total_samples = 100;
    world.ready = world.once = true;
    world.met_at = 3; /* of the third step the answer did not know */
    assert_int_equal(bpt_train_asynchronous(&job), BPT_OK);
    assert_calls("step step push step land step push step step land push land ");
    options.max_staleness = 0;
    job = job_of(BPT_UPDATE_AGWU, 2);
    assert_int_equal(bpt_train_asynchronous(&job), BPT_OK);
    assert_calls("step step push step step land push land ");
    options.max_staleness = -1;
}

/* Where a meeting is called a push is for it, and waited for; who is asked pushes at once. */
static void test_calls(void **state) {
    (void)state;
    bpt_job job = job_of(BPT_UPDATE_AGWU, 50);
    world.called = true;
    world.met_at = 1;
    assert_int_equal(bpt_train_asynchronous(&job), BPT_OK);
    assert_calls("step push land ");
    job = job_of(BPT_UPDATE_AGWU, 50);
    world.asked = world.ready = true;
    assert_int_equal(bpt_train_asynchronous(&job), BPT_OK);
    assert_calls("step push step land push land ");
}

/* In rounds a rank makes as many steps as its share, --sync-every on average. */
static void test_rounds(void **state) {
    (void)state;
    bpt_job job = job_of(BPT_UPDATE_SGWU, 4);
    assert_int_equal(bpt_train_synchronous(&job), BPT_OK);
    assert_calls("step step push land step step push land "); /* of eight of both */
    job = job_of(BPT_UPDATE_SGWU, 1);
    job.shares = small_share; /* of hardly a step: it makes one */
    world.met_at = 1;
    assert_int_equal(bpt_train_synchronous(&job), BPT_OK);
    assert_calls("step push land ");
    job = job_of(BPT_UPDATE_SGWU, 1);
    job.count.progress = job.total_samples;
    assert_int_equal(bpt_train_synchronous(&job), BPT_OK);
    assert_calls("");
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_what_is_pushed), cmocka_unit_test(test_what_is_kept),
        cmocka_unit_test(test_waiting),        cmocka_unit_test(test_calls),
        cmocka_unit_test(test_rounds),
    };
    return cmocka_run_group_tests(tests, set_up, tear_down);
}
