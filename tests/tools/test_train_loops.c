/* The loops of training: in which order a step is made, what ranks tell each other with it, and
 * what a meeting does. */
#include "base/clock.h"
#include "tests/tools/made_job.h"
#include "tools/train/job/checkpoint.h"
#include "tools/train/loop/train_loop.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

/* Last: it needs those above, and defines fail and skip. */
#include <cmocka.h>

/* ---- what is called: ld --wrap ---- */

enum { STEP_NS = 1000, LEARN_NS = 50, SUMS_NS = 7, REPLY_NS = 3 };

static struct {
    char calls[1000]; /* names, a blank behind each */
    uint64_t clock_ns, wait_begin_ns;
    bpt_report report; /* the last one */
    float applied, learnt;
    uint32_t met; /* reasons of the next answer */
    uint32_t wants;
    bool stops;       /* an evaluation */
    bpt_status saved; /* a checkpoint, within the next time */
    uint64_t save_ns;
    bool gradient_only;
    uint64_t told[2]; /* to servers */
} world;

static bpt_status call(const char *name) {
    assert_true(strlen(world.calls) + strlen(name) + 2 < sizeof world.calls);
    strcat(strcat(world.calls, name), " ");
    return BPT_OK;
}

static void assert_calls(const char *calls) {
    assert_string_equal(world.calls, calls);
    world.calls[0] = '\0';
}

bpt_status __wrap_bpt_job_step(bpt_job *job, bool gradient_only);
bpt_status __wrap_bpt_job_apply(bpt_job *job, float rate);
float __wrap_bpt_job_rate(const bpt_job *job);
uint32_t __wrap_bpt_job_wants(bpt_job *job);
void __wrap_bpt_job_note_reply(bpt_job *job, const bpt_reply *reply);
bpt_status __wrap_bpt_job_report(bpt_job *job);
bpt_status __wrap_bpt_job_report_rest(bpt_job *job);
bpt_status __wrap_bpt_job_evaluate(bpt_job *job, bool together, bool *stopped);
bpt_status __wrap_bpt_checkpoint_save(bpt_job *job);
bpt_status __wrap_bpt_checkpoint_forgo(const bpt_job *job, bpt_status failed);
void __wrap_bpt_train_say_ranks(bpt_job *job);
bpt_status __wrap_bpt_exchange_push(bpt_exchange *x, const bpt_report *report);
bpt_status __wrap_bpt_exchange_wait(bpt_exchange *x, bpt_reply *reply);
bpt_status __wrap_bpt_exchange_serve(bpt_exchange *x, uint32_t root, void *data, size_t bytes);
bpt_status __wrap_bpt_comm_broadcast(bpt_comm *comm, uint32_t root, void *data, size_t bytes);
bpt_status __wrap_bpt_gradient_sums_wait(bpt_gradient_sums *sums);
bpt_status __wrap_bpt_placed_learn(bpt_placed *p, float rate);
bpt_status __wrap_bpt_placed_gather(bpt_job *job);
void __wrap_bpt_step_trace_wait(bpt_step_trace *trace, const char *what, uint64_t begin_ns);
uint64_t __wrap_bpt_clock_ns(void);

bpt_status __wrap_bpt_job_step(bpt_job *job, bool gradient_only) {
    world.clock_ns += STEP_NS;
    world.gradient_only = gradient_only;
    job->count.steps++;
    job->count.unreported += job->batch;
    return call("step");
}

/* It goes on where the step behind it does. */
float __wrap_bpt_job_rate(const bpt_job *job) {
    return (float)(job->count.steps + 1);
}

bpt_status __wrap_bpt_job_apply(bpt_job *job, float rate) {
    (void)job;
    world.applied = rate;
    return call("apply");
}

uint32_t __wrap_bpt_job_wants(bpt_job *job) {
    (void)job;
    return world.wants;
}

void __wrap_bpt_job_note_reply(bpt_job *job, const bpt_reply *reply) {
    job->count.progress = reply->progress;
    (void)call("note");
}

bpt_status __wrap_bpt_job_report(bpt_job *job) {
    (void)job;
    return call("report");
}

bpt_status __wrap_bpt_job_report_rest(bpt_job *job) {
    (void)job;
    return call("rest");
}

bpt_status __wrap_bpt_job_evaluate(bpt_job *job, bool together, bool *stopped) {
    assert_true(together && job->eval_due);
    *stopped = world.stops;
    return call("evaluate");
}

bpt_status __wrap_bpt_checkpoint_save(bpt_job *job) {
    (void)job;
    world.clock_ns += world.save_ns;
    (void)call("save");
    return world.saved;
}

bpt_status __wrap_bpt_checkpoint_forgo(const bpt_job *job, bpt_status failed) {
    (void)job;
    assert_int_equal(failed, world.saved);
    (void)call("forgo");
    return failed == BPT_ENOSPC ? BPT_OK : failed;
}

void __wrap_bpt_train_say_ranks(bpt_job *job) {
    (void)job;
    (void)call("ranks");
}

bpt_status __wrap_bpt_exchange_push(bpt_exchange *x, const bpt_report *report) {
    (void)x;
    world.report = *report;
    return call("push");
}

bpt_status __wrap_bpt_exchange_wait(bpt_exchange *x, bpt_reply *reply) {
    (void)x;
    world.clock_ns += REPLY_NS;
    *reply = (bpt_reply){.progress = 100, .met = world.met};
    return call("answer");
}

bpt_status __wrap_bpt_exchange_serve(bpt_exchange *x, uint32_t root, void *data, size_t bytes) {
    (void)x;
    assert_true(root == 0 && bytes == sizeof world.told);
    memcpy(data, world.told, bytes);
    return call("serve");
}

bpt_status __wrap_bpt_comm_broadcast(bpt_comm *comm, uint32_t root, void *data, size_t bytes) {
    (void)comm;
    assert_true(root == 0 && bytes == sizeof world.told);
    memcpy(world.told, data, bytes);
    return call("tell");
}

bpt_status __wrap_bpt_gradient_sums_wait(bpt_gradient_sums *sums) {
    (void)sums;
    world.clock_ns += SUMS_NS;
    return call("sums");
}

bpt_status __wrap_bpt_placed_learn(bpt_placed *p, float rate) {
    (void)p;
    world.clock_ns += LEARN_NS;
    world.learnt = rate;
    return call("learn");
}

bpt_status __wrap_bpt_placed_gather(bpt_job *job) {
    (void)job;
    return call("gather");
}

void __wrap_bpt_step_trace_wait(bpt_step_trace *trace, const char *what, uint64_t begin_ns) {
    (void)trace;
    assert_string_equal(what, "gradients");
    world.wait_begin_ns = begin_ns;
}

uint64_t __wrap_bpt_clock_ns(void) {
    return world.clock_ns;
}

/* ---- steps ---- */

static bpt_job job_with(bpt_update_choice update, uint32_t n_ranks) {
    bpt_job job = made_job_of(&made.options, update, 0, n_ranks, 0);
    memset(&world, 0, sizeof world);
    job.total_samples = 100;
    job.next_eval = job.next_checkpoint = UINT64_MAX;
    return job;
}

/* Of gradients: at the rate of before the step; what is waited for is no part of it. */
static void test_gradients(void **state) {
    (void)state;
    bpt_job job = job_with(BPT_UPDATE_ALLREDUCE, 2);
    world.met = BPT_MEET_END;
    world.wants = BPT_MEET_CHECKPOINT;
    job.count.unreported = 77;
    assert_int_equal(bpt_train_gradients(&job), BPT_OK);
    assert_calls("step push sums answer apply note report rest ");
    assert_true(world.gradient_only);
    assert_true(world.applied == 1);
    assert_int_equal(job.count.unreported, MADE_BATCH); /* of this step alone */
    assert_int_equal(job.count.wait_ns, SUMS_NS + REPLY_NS);
    assert_int_equal(world.wait_begin_ns, STEP_NS);
    assert_int_equal(world.report.samples, MADE_BATCH);
    assert_true(world.report.quality == 1 && world.report.wants == BPT_MEET_CHECKPOINT);
    assert_int_equal(job.count.compute_ns, 0);
    assert_int_equal(bpt_train_gradients(&job), BPT_OK); /* it is over already */
    assert_calls("");
}

/* Layers that are placed here learn meanwhile; all weights are brought together where ranks meet.
 */
static void test_gradients_of_placed_layers(void **state) {
    (void)state;
    bpt_job job = job_with(BPT_UPDATE_ALLREDUCE, 2);
    job.placed = (bpt_placed *)&world; /* it is not looked into */
    world.met = BPT_MEET_END;
    assert_int_equal(bpt_train_gradients(&job), BPT_OK);
    assert_calls("step push learn sums answer apply note report gather rest ");
    assert_true(world.learnt == 1);
    assert_int_equal(job.count.wait_ns, SUMS_NS + REPLY_NS);
    assert_int_equal(job.count.step_ns, LEARN_NS);
    assert_int_equal(job.count.compute_ns, LEARN_NS);
    assert_int_equal(world.wait_begin_ns, STEP_NS + LEARN_NS);
}

/* A rank by itself is its own coordinator. */
static void test_local(void **state) {
    (void)state;
    bpt_job job = job_with(BPT_UPDATE_LOCAL, 1);
    job.total_samples = 4 * MADE_BATCH;
    job.eval_every = job.next_eval = 2 * MADE_BATCH;
    job.checkpoint_every = job.next_checkpoint = MADE_BATCH;
    assert_int_equal(bpt_train_local(&job), BPT_OK);
    assert_calls("step report save step report evaluate save step report save step report rest ");
    assert_false(world.gradient_only);
    assert_int_equal(job.count.progress, 4 * MADE_BATCH);
    assert_int_equal(job.count.unreported, 0);
    assert_int_equal(job.next_eval, 6 * MADE_BATCH);
    assert_int_equal(job.next_checkpoint, 5 * MADE_BATCH);
    job.total_samples = 10 * MADE_BATCH;
    world.wants = BPT_MEET_STOP;
    assert_int_equal(bpt_train_local(&job), BPT_ESTOPPED);
    assert_calls("step report rest save ranks ");
}

/* ---- meetings ---- */

static bpt_status meet(bpt_job *job, uint32_t reasons, bool over) {
    bool is_over = !over;
    const bpt_status status = bpt_train_meet(job, reasons, &is_over);
    assert_int_equal(is_over, over);
    return status;
}

static void test_meetings(void **state) {
    (void)state;
    bpt_train_options o = made.options;
    bpt_job job = job_with(BPT_UPDATE_ALLREDUCE, 2);
    job.options = &o;
    job.checkpoint_clock.every_ns = 1000;
    assert_int_equal(meet(&job, 0, false), BPT_OK);
    assert_int_equal(job.checkpoint_clock.due_ns, 0);
    assert_calls("");
    assert_int_equal(meet(&job, BPT_MEET_EVAL | BPT_MEET_CHECKPOINT, false), BPT_OK);
    assert_calls("evaluate save ");
    assert_int_equal(job.checkpoint_clock.due_ns, world.clock_ns + 1000);
    assert_int_equal(meet(&job, BPT_MEET_END | BPT_MEET_EVAL | BPT_MEET_CHECKPOINT, true), BPT_OK);
    assert_calls("rest ");
    /* A stop does not wait for an evaluation: it stays due. */
    job.eval_due = false;
    assert_int_equal(meet(&job, BPT_MEET_EVAL | BPT_MEET_STOP, false), BPT_ESTOPPED);
    assert_calls("rest save ranks ");
    assert_true(job.eval_due);
    assert_string_equal(bpt_error_last()->hint, "go on with the same command and --resume auto");
    o.force = true;
    world.stops = true; /* while it is evaluated */
    assert_int_equal(meet(&job, BPT_MEET_EVAL, false), BPT_ESTOPPED);
    assert_calls("evaluate rest save ranks ");
    assert_string_equal(bpt_error_last()->hint,
                        "go on with the same command and --resume auto in place of --force");
}

/* One that nobody asked for, and has no room, ends no job: unless somebody asks for it as well. */
static void test_checkpoints_that_fail(void **state) {
    (void)state;
    bpt_job job = job_with(BPT_UPDATE_ALLREDUCE, 2);
    assert_int_equal(meet(&job, BPT_MEET_CHECKPOINT_IF_ROOM, false), BPT_OK);
    assert_calls("save ");
    world.saved = BPT_ENOSPC;
    assert_int_equal(meet(&job, BPT_MEET_CHECKPOINT_IF_ROOM, false), BPT_OK);
    assert_calls("save forgo ");
    assert_int_equal(meet(&job, BPT_MEET_CHECKPOINT_IF_ROOM | BPT_MEET_CHECKPOINT, false),
                     BPT_ENOSPC);
    assert_int_equal(meet(&job, BPT_MEET_CHECKPOINT_IF_ROOM | BPT_MEET_STOP, false), BPT_ENOSPC);
    assert_calls("save rest save ");
    world.saved = BPT_EIO;
    assert_int_equal(meet(&job, BPT_MEET_CHECKPOINT_IF_ROOM, false), BPT_EIO);
    assert_calls("save forgo ");
}

/* Whatever a checkpoint was made for, the next one by time comes so much later. */
static void test_checkpoints_put_the_clock_off(void **state) {
    (void)state;
    static const uint64_t minute = 60000000000;
    bpt_job job = job_with(BPT_UPDATE_ALLREDUCE, 2);
    job.checkpoint_clock = bpt_checkpoint_clock_begin(10, 0);
    world.clock_ns = 9 * minute;
    assert_int_equal(meet(&job, BPT_MEET_CHECKPOINT, false), BPT_OK);
    assert_false(bpt_checkpoint_clock_due(&job.checkpoint_clock, 19 * minute - 1));
    assert_true(bpt_checkpoint_clock_due(&job.checkpoint_clock, 19 * minute));
    world.save_ns = minute; /* a hundredth of the time at most */
    assert_int_equal(meet(&job, BPT_MEET_CHECKPOINT, false), BPT_OK);
    assert_false(bpt_checkpoint_clock_due(&job.checkpoint_clock, 110 * minute - 1));
    assert_true(bpt_checkpoint_clock_due(&job.checkpoint_clock, 110 * minute));
}

/* Servers hear of a meeting from the workers, where there is a reason, and of nothing else. */
static void test_servers(void **state) {
    (void)state;
    bpt_job worker = job_with(BPT_UPDATE_AGWU, 2);
    worker.n_servers = 1;
    worker.count.progress = 55;
    assert_int_equal(meet(&worker, 0, false), BPT_OK);
    assert_calls("");
    assert_int_equal(meet(&worker, BPT_MEET_CHECKPOINT, false), BPT_OK);
    assert_calls("tell save ");
    assert_true(world.told[0] == 55 && world.told[1] == BPT_MEET_CHECKPOINT);
    bpt_job server = made_job_of(&made.options, BPT_UPDATE_AGWU, 2, 3, 1);
    server.total_samples = 100;
    world.told[1] = BPT_MEET_END;
    assert_int_equal(bpt_train_serve(&server), BPT_OK);
    assert_calls("serve rest ");
    assert_int_equal(server.count.progress, 55);
}

/* What was due at the checkpoint is made up for. */
static void test_catching_up(void **state) {
    (void)state;
    bpt_job job = job_with(BPT_UPDATE_LOCAL, 1);
    assert_int_equal(bpt_train_catch_up(&job), BPT_OK);
    assert_calls("");
    job.eval_due = true;
    assert_int_equal(bpt_train_catch_up(&job), BPT_OK);
    assert_calls("evaluate ");
    job.count.progress = job.total_samples; /* the end has its own */
    assert_int_equal(bpt_train_catch_up(&job), BPT_OK);
    assert_calls("");
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_gradients),
        cmocka_unit_test(test_gradients_of_placed_layers),
        cmocka_unit_test(test_local),
        cmocka_unit_test(test_meetings),
        cmocka_unit_test(test_servers),
        cmocka_unit_test(test_catching_up),
        cmocka_unit_test(test_checkpoints_that_fail),
        cmocka_unit_test(test_checkpoints_put_the_clock_off),
    };
    return cmocka_run_group_tests(tests, made_set_up, made_tear_down);
}
