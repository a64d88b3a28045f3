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

enum { N = 3, BATCH = 8, STEP_NS = 1000, ANSWER_NS = 70, BORDER_NS = 400, MOST = 4 };

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
    uint64_t progress, gain; /* of the first answer; what each one more has on top */
    unsigned met_at; /* answer, from 1, that is of a meeting for the end; the one before calls it */
    unsigned n_answers;
    uint64_t clock_ns, wait_begin_ns;
    double cost_s; /* of every exchange */
    unsigned n_costs_begun;
    float evaluated;           /* weights of the last evaluation */
    bool synchronous;          /* as the momentum of all was told */
    bpt_pace_span spans[MOST]; /* by each answer */
    bpt_pace pace;             /* that they are noted in */
    bpt_status log_closed, rested;
} world;

static bpt_status call(const char *name) {
    assert_true(strlen(world.calls) + strlen(name) + 2 < sizeof world.calls);
    strcat(strcat(world.calls, name), " ");
    return BPT_OK;
}

static bpt_model model;

bpt_status __wrap_bpt_job_step(bpt_job *job, bool gradient_only);
float __wrap_bpt_job_rate(const bpt_job *job);
uint32_t __wrap_bpt_job_wants(bpt_job *job);
bool __wrap_bpt_job_is_asked(bpt_job *job);
void __wrap_bpt_job_note_reply(bpt_job *job, const bpt_reply *reply);
bpt_status __wrap_bpt_job_note_shares(bpt_job *job);
bpt_status __wrap_bpt_job_report(bpt_job *job);
bpt_status __wrap_bpt_job_report_rest(bpt_job *job);
bpt_status __wrap_bpt_network_get_learned(bpt_network *net, bpt_vector which, float *flat);
bpt_status __wrap_bpt_network_set_learned(bpt_network *net, bpt_vector which, const float *flat);
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
bpt_status __wrap_bpt_step_log_close(bpt_step_log *log);
bpt_status __wrap_bpt_job_evaluate(bpt_job *job, bool together, bool *stopped);
bool __real_bpt_pace_note(bpt_pace *pace, const bpt_pace_span *span);
bool __wrap_bpt_pace_note(bpt_pace *pace, const bpt_pace_span *span);
void __wrap_bpt_step_trace_wait(bpt_step_trace *trace, const char *what, uint64_t begin_ns);
uint64_t __wrap_bpt_clock_ns(void);
bpt_network *__wrap_bpt_placed_head(const bpt_placed *p);
const bpt_model *__wrap_bpt_placed_head_model(const bpt_placed *p);
bpt_status __wrap_bpt_placed_serve(const bpt_job *job);
bpt_status __wrap_bpt_placed_rest(bpt_placed *p);
bpt_status __wrap_bpt_placed_gather(bpt_job *job);
bpt_relay_stats __wrap_bpt_placed_stats(const bpt_placed *p);

bpt_status __wrap_bpt_job_step(bpt_job *job, bool gradient_only) {
    assert_false(gradient_only);
    job->count.steps++;
    job->count.samples += BATCH;
    job->count.unreported += BATCH;
    job->count.compute_ns += STEP_NS;
    job->rates += 2;
    world.clock_ns += STEP_NS;
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

bpt_status __wrap_bpt_network_get_learned(bpt_network *net, bpt_vector which, float *flat) {
    (void)net, (void)which;
    memcpy(flat, world.weights, sizeof world.weights);
    return BPT_OK;
}

bpt_status __wrap_bpt_network_set_learned(bpt_network *net, bpt_vector which, const float *flat) {
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
    *reply = (bpt_reply){.values = world.global,
                         .progress = world.progress + world.n_answers * world.gain};
    world.clock_ns += ANSWER_NS;
    if (++world.n_answers == world.met_at) reply->met = BPT_MEET_END;
    world.called = world.n_answers + 1 == world.met_at;
    return call("land");
}

double __wrap_bpt_exchange_cost_read(const bpt_exchange_cost *cost) {
    (void)cost;
    return world.cost_s;
}

void __wrap_bpt_exchange_cost_begin(bpt_exchange_cost *cost) {
    (void)cost;
    world.n_costs_begun++;
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
    (void)here, (void)network, (void)before, (void)now, (void)scratch;
    assert_int_equal(n, N);
    world.synchronous = m->synchronous;
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

bpt_status __wrap_bpt_step_log_close(bpt_step_log *log) {
    (void)log;
    return world.log_closed;
}

bpt_status __wrap_bpt_job_evaluate(bpt_job *job, bool together, bool *stopped) {
    (void)job;
    assert_false(together);
    *stopped = false;
    world.evaluated = world.weights[0];
    return call("evaluate");
}

bool __wrap_bpt_pace_note(bpt_pace *pace, const bpt_pace_span *span) {
    assert_true(world.n_answers >= 1 && world.n_answers <= MOST);
    world.pace = *pace;
    world.spans[world.n_answers - 1] = *span;
    return __real_bpt_pace_note(pace, span);
}

void __wrap_bpt_step_trace_wait(bpt_step_trace *trace, const char *what, uint64_t begin_ns) {
    (void)trace;
    assert_string_equal(what, "weights");
    world.wait_begin_ns = begin_ns;
}

uint64_t __wrap_bpt_clock_ns(void) {
    return world.clock_ns;
}

bpt_network *__wrap_bpt_placed_head(const bpt_placed *p) {
    (void)p;
    return NULL;
}

const bpt_model *__wrap_bpt_placed_head_model(const bpt_placed *p) {
    (void)p;
    return &model;
}

bpt_status __wrap_bpt_placed_serve(const bpt_job *job) {
    (void)job;
    return call("serve");
}

bpt_status __wrap_bpt_placed_rest(bpt_placed *p) {
    (void)p;
    (void)call("rest");
    return world.rested;
}

bpt_status __wrap_bpt_placed_gather(bpt_job *job) {
    (void)job;
    return call("gather");
}

/* Each step waits for the layers of another rank. */
bpt_relay_stats __wrap_bpt_placed_stats(const bpt_placed *p) {
    (void)p;
    return (bpt_relay_stats){.wait_ns = world.clock_ns / STEP_NS * BORDER_NS};
}

/* ---- a job of two ranks, of which this one has a quarter of the data ---- */

static bpt_partition *shares, *small_share;
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
    job = job_of(BPT_UPDATE_EASGD, 2); /* drawn 3 times as far as to 100 */
    job.terms.elasticity = 0.75;
    world.ready = true;
    world.met_at = 3;
    assert_int_equal(bpt_train_asynchronous(&job), BPT_OK);
    assert_true(world.pushed[0][0] == 12 && world.pushed[1][0] == 13 + 3 * 88 + 1);
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

/* One that evaluates with its first answer. */
static bpt_job evaluating_job(bpt_update_choice update) {
    bpt_job job = job_of(update, 2);
    world.ready = true;
    world.met_at = 3;
    world.progress = job.next_eval = 40;
    job.eval_every = 25;
    return job;
}

/* Rank 0 evaluates the weights of all by itself, once each time it is due; not in rounds, where all
 * meet for it, as they do where layers are placed, nor at the end, which has its own. */
static void test_evaluations(void **state) {
    (void)state;
    bpt_job job = evaluating_job(BPT_UPDATE_AGWU);
    assert_int_equal(bpt_train_asynchronous(&job), BPT_OK);
    assert_calls("step step push step land evaluate step push step land push land ");
    assert_true(world.evaluated == 100); /* without the step since the push */
    assert_int_equal(job.next_eval, 50);
    for (int i = 0; i < 4; i++) {
        job = evaluating_job(BPT_UPDATE_AGWU);
        if (i == 0) job.rank = 1;
        if (i == 1) job.placed = (bpt_placed *)&world; /* it is not looked into */
        if (i == 2) job.next_eval = 41;
        if (i == 3) job.total_samples = 40;
        assert_int_equal(bpt_train_asynchronous(&job), BPT_OK);
        assert_null(strstr(world.calls, "evaluate"));
    }
    job = evaluating_job(BPT_UPDATE_SGWU);
    assert_int_equal(bpt_train_synchronous(&job), BPT_OK);
    assert_null(strstr(world.calls, "evaluate"));
}

/* What an exchange cost is set against the steps since the one before; a span with an evaluation in
 * it tells of none. */
static void test_pace(void **state) {
    (void)state;
    bpt_job job = evaluating_job(BPT_UPDATE_AGWU);
    world.met_at = 4;
    world.gain = 10;
    world.cost_s = 0.5;
    job.eval_every = 1000;
    job.total_samples = 1000;
    job.count.steps = 60; /* by the job before */
    job.count.progress = 30;
    job.pace.follows = true;
    assert_int_equal(bpt_train_asynchronous(&job), BPT_OK);
    assert_calls(
        "step step push step land evaluate step push step land step push step land push "
        "land ");
    static const bpt_pace_span spans[] = {
        {.steps = 3, .exchange_s = 0, .progress = 10, .left = 960},
        {.steps = 2, .exchange_s = 0.5, .progress = 0, .left = 950},
        {.steps = 2, .exchange_s = 0.5, .progress = 10, .left = 940},
        {.steps = 0, .exchange_s = 0.5, .progress = 10, .left = 930},
    };
    for (int i = 0; i < 4; i++) {
        assert_int_equal(world.spans[i].steps, spans[i].steps);
        assert_int_equal(world.spans[i].progress, spans[i].progress);
        assert_int_equal(world.spans[i].left, spans[i].left);
        assert_true(world.spans[i].exchange_s == spans[i].exchange_s && world.spans[i].rate == 2);
    }
    assert_true(world.pace.follows && world.pace.highest == 2);
    /* One begins with the job, one at each answer, and one behind the meeting. */
    assert_int_equal(world.n_costs_begun, 1 + 4 + 1);
    assert_false(world.synchronous);
    job = job_of(BPT_UPDATE_SGWU, 4);
    job.pace.follows = true;
    assert_int_equal(bpt_train_synchronous(&job), BPT_OK);
    assert_false(world.pace.follows); /* it repeats bit for bit, whatever clocks say */
    assert_true(world.synchronous);
}

/* What is waited for is no work, but that layers at another rank keep a step waiting is. */
static void test_times(void **state) {
    (void)state;
    bpt_job job = job_of(BPT_UPDATE_AGWU, 2);
    world.ready = true;
    assert_int_equal(bpt_train_asynchronous(&job), BPT_OK);
    assert_calls("step step push step land push land ");
    assert_int_equal(job.count.wait_ns, 2 * ANSWER_NS);
    assert_int_equal(world.wait_begin_ns, 3 * STEP_NS + ANSWER_NS);
    job = job_of(BPT_UPDATE_AGWU, 2);
    job.placed = (bpt_placed *)&world; /* it is not looked into */
    world.ready = true;
    assert_int_equal(bpt_train_asynchronous(&job), BPT_OK);
    assert_calls("serve step step push step land push land gather rest ");
    assert_int_equal(world.reports[0].busy_ns, 2 * (STEP_NS + BORDER_NS));
    assert_int_equal(world.reports[1].busy_ns, STEP_NS + BORDER_NS);
}

/* Logs that cannot be written out are an error, for they are what a replay goes by. */
static void test_logs_that_cannot_be_closed(void **state) {
    (void)state;
    static const struct {
        bool placed;
        bpt_status log_closed, rested, all;
    } cases[] = {{false, BPT_ENOSPC, BPT_OK, BPT_ENOSPC},
                 {true, BPT_OK, BPT_ENOSPC, BPT_ENOSPC},
                 {true, BPT_EIO, BPT_ENOSPC, BPT_EIO}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        bpt_job job = job_of(BPT_UPDATE_AGWU, 2);
        job.placed = cases[i].placed ? (bpt_placed *)&world : NULL;
        world.ready = true;
        world.log_closed = cases[i].log_closed, world.rested = cases[i].rested;
        assert_int_equal(bpt_train_asynchronous(&job), cases[i].all);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_what_is_pushed),
        cmocka_unit_test(test_what_is_kept),
        cmocka_unit_test(test_waiting),
        cmocka_unit_test(test_calls),
        cmocka_unit_test(test_rounds),
        cmocka_unit_test(test_evaluations),
        cmocka_unit_test(test_pace),
        cmocka_unit_test(test_times),
        cmocka_unit_test(test_logs_that_cannot_be_closed),
    };
    return cmocka_run_group_tests(tests, set_up, tear_down);
}
