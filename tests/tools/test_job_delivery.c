/* What a job asks its samples' delivery for, and how long it waits for the first of them. */
#include "base/log.h"
#include "outer/comm/watch.h"
#include "tests/tools/made_job.h"
#include "tools/train/job/job_parts.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

/* Last: it needs those above, and defines fail and skip. */
#include <cmocka.h>

/* ---- a delivery, and other ranks: ld --wrap ---- */

enum { N_RANKS = 3, MAX_TURNS = 8 };

/* What there is at each turn of comparing notes. */
typedef struct {
    uint64_t n_kept; /* samples that have come to the own rank */
    bool here;       /* all that it needs */
    bool others;     /* likewise, of the others */
} turn;

static struct {
    bpt_delivery_options options;
    const turn *turns;
    unsigned n; /* turns so far */
    double waited_s[MAX_TURNS];
    bpt_status fails, stops;
    unsigned n_attached;
    const char *doing;
    char said[200];
} world;

bpt_status __wrap_bpt_delivery_open(bpt_comm *comm, const bpt_delivery_options *options,
                                    bpt_delivery **d);
uint64_t __wrap_bpt_delivery_found(const bpt_delivery *d);
bpt_status __wrap_bpt_delivery_await_first(bpt_delivery *d, double at_most_s, uint64_t *n_kept,
                                           bool *here);
void __wrap_bpt_delivery_attach(bpt_delivery *d, bpt_feed *feed);
bpt_sampler_state __wrap_bpt_feed_state(const bpt_feed *feed);
bpt_status __wrap_bpt_comm_agree(bpt_comm *comm, bpt_status mine);
bpt_status __wrap_bpt_comm_allgather(bpt_comm *comm, const void *mine, size_t bytes, void *all);
void __wrap_bpt_comm_doing(bpt_comm *comm, const char *what);
bpt_status __wrap_bpt__job_stop_if_told(bpt_job *job);
void __wrap_bpt_log(bpt_log_level level, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

bpt_status __wrap_bpt_delivery_open(bpt_comm *comm, const bpt_delivery_options *options,
                                    bpt_delivery **d) {
    (void)comm;
    world.options = *options;
    *d = NULL;
    return BPT_OK;
}

uint64_t __wrap_bpt_delivery_found(const bpt_delivery *d) {
    (void)d;
    return 5;
}

bpt_status __wrap_bpt_delivery_await_first(bpt_delivery *d, double at_most_s, uint64_t *n_kept,
                                           bool *here) {
    (void)d;
    assert_true(world.n < MAX_TURNS);
    world.waited_s[world.n] = at_most_s;
    *n_kept = world.turns[world.n].n_kept;
    *here = world.turns[world.n].here;
    return world.fails;
}

void __wrap_bpt_delivery_attach(bpt_delivery *d, bpt_feed *feed) {
    (void)d, (void)feed;
    world.n_attached++;
}

bpt_sampler_state __wrap_bpt_feed_state(const bpt_feed *feed) {
    (void)feed;
    return (bpt_sampler_state){.pass = 7};
}

bpt_status __wrap_bpt_comm_agree(bpt_comm *comm, bpt_status mine) {
    (void)comm;
    return mine;
}

/* What ranks tell: samples kept, found, and whether they wait. */
bpt_status __wrap_bpt_comm_allgather(bpt_comm *comm, const void *mine, size_t bytes, void *all) {
    const turn *t = &world.turns[world.n++];
    uint64_t(*of_ranks)[3] = all;
    const uint64_t *own = mine;
    (void)comm;
    assert_int_equal(bytes, sizeof *of_ranks);
    assert_int_equal(own[2], !t->here);
    memcpy(of_ranks[0], mine, bytes);
    for (int r = 1; r < N_RANKS; r++) {
        of_ranks[r][0] = 10;
        of_ranks[r][1] = 0;
        of_ranks[r][2] = r == 2 && !t->others;
    }
    return BPT_OK;
}

void __wrap_bpt_comm_doing(bpt_comm *comm, const char *what) {
    (void)comm;
    world.doing = what;
}

bpt_status __wrap_bpt__job_stop_if_told(bpt_job *job) {
    (void)job;
    return world.stops;
}

void __wrap_bpt_log(bpt_log_level level, const char *format, ...) {
    va_list values;
    assert_int_equal(level, BPT_LOG_INFO);
    va_start(values, format);
    (void)vsnprintf(world.said, sizeof world.said, format, values);
    va_end(values);
}

/* ---- what is asked for ---- */

static bpt_train_options scattering(void) {
    bpt_train_options o = made.options;
    o.data_mode = BPT_DATA_SCATTER;
    return o;
}

static bpt_status open_delivery(bpt_job *job, const turn *turns) {
    memset(&world, 0, sizeof world);
    world.turns = turns;
    job->shape.input = (bpt_shape){.c = 3, .h = 4, .w = 5};
    return bpt__job_open_delivery(job);
}

static const turn at_once[] = {{0, true, true}};

/* Parts of the test split go side by side, without a gap, whatever is left over. */
static void test_parts_of_the_test_split(void **state) {
    (void)state;
    const bpt_train_options o = scattering();
    for (uint32_t n_workers = 1; n_workers <= 7; n_workers++) {
        uint32_t next = 0;
        for (uint32_t r = 0; r < n_workers; r++) {
            bpt_job job = made_job_of(&o, BPT_UPDATE_AGWU, r, n_workers + 2, 2);
            made_job_give_data(&job);
            const bpt_record_range part = bpt_job_test_part(&job);
            assert_int_equal(part.first, next);
            assert_true(part.count == MADE_TEST / n_workers ||
                        part.count == MADE_TEST / n_workers + 1);
            next += part.count;
        }
        assert_int_equal(next, MADE_TEST);
    }
}

static void test_what_is_asked_for(void **state) {
    (void)state;
    bpt_train_options o = scattering();
    o.order = BPT_ORDER_SEQUENTIAL;
    bpt_job job = made_job_of(&o, BPT_UPDATE_AGWU, 1, 4, 1);
    made_job_give_data(&job);
    job.scratch_identity = 99;
    job.first_sample = 8;
    job.total_samples = 1000;
    job.count.progress = 400;
    assert_int_equal(open_delivery(&job, at_once), BPT_OK);
    const bpt_delivery_options *asked = &world.options;
    assert_int_equal(asked->rank, 1);
    assert_int_equal(asked->record_bytes, 3 * 4 * 5);
    assert_true(asked->train == &made.train && asked->test == &made.test);
    assert_int_equal(asked->identity, 99);
    assert_int_equal(asked->order.kind, BPT_ORDER_SEQUENTIAL);
    assert_true(asked->test_part.first == 100 && asked->test_part.count == 100);
    assert_int_equal(asked->batch_all, 24);
    assert_int_equal(asked->first_sample, 8);
    assert_int_equal(asked->steps, 25); /* 600 samples */
    assert_true(asked->batch == MADE_BATCH && asked->prefetch == 5);
    assert_int_equal(asked->start.pass, 7);
    job.count.progress = 401;
    assert_int_equal(open_delivery(&job, at_once), BPT_OK);
    assert_int_equal(asked->steps, 25);
    job.count.progress = 399;
    assert_int_equal(open_delivery(&job, at_once), BPT_OK);
    assert_int_equal(asked->steps, 26);
    job.count.progress = 1100;
    assert_int_equal(open_delivery(&job, at_once), BPT_OK);
    assert_int_equal(asked->steps, 0);
    job = made_job_of(&o, BPT_UPDATE_AGWU, 3, 4, 1); /* a server has no part, and no feed */
    made_job_give_data(&job);
    assert_int_equal(open_delivery(&job, at_once), BPT_OK);
    assert_true(asked->test_part.count == 0 && asked->start.pass == 0);
    job = made_job_of(&made.options, BPT_UPDATE_AGWU, 1, 4, 1); /* which opens the dataset itself */
    assert_int_equal(open_delivery(&job, at_once), BPT_OK);
    assert_int_equal(world.n, 0);
}

/* ---- waiting ---- */

/* Until all have what they need; for a second at a time, and without end while nothing comes to
 * anybody. */
static void test_waiting(void **state) {
    (void)state;
    static const turn turns[] = {
        {1, false, false}, {1, false, false}, {2, false, true}, {2, true, false}, {2, true, true}};
    const bpt_train_options o = scattering();
    bpt_job job = made_job_of(&o, BPT_UPDATE_AGWU, 0, N_RANKS, 0);
    made_job_give_data(&job);
    job.batch_all = 1;
    assert_int_equal(open_delivery(&job, turns), BPT_OK);
    assert_int_equal(world.n, 5);
    const bool ends[] = {true, true, false, true, false};
    for (unsigned i = 0; i < 5; i++) {
        if (ends[i])
            assert_true(world.waited_s[i] == 1);
        else
            assert_true(isinf(world.waited_s[i]));
    }
    assert_string_equal(world.said,
                        "22 samples have come from rank 0 to begin with; 5 from before "
                        "are not sent again");
    assert_int_equal(world.n_attached, 1);
    assert_string_equal(world.doing, "the start");
}

static void test_ends_of_waiting(void **state) {
    (void)state;
    static const turn turns[] = {{1, false, false}};
    const bpt_train_options o = scattering();
    bpt_job job = made_job_of(&o, BPT_UPDATE_AGWU, 0, N_RANKS, 0);
    made_job_give_data(&job);
    memset(&world, 0, sizeof world);
    world.turns = turns;
    world.fails = BPT_EPEER;
    assert_int_equal(bpt__job_open_delivery(&job), BPT_EPEER);
    world.fails = BPT_OK;
    world.stops = BPT_ESTOPPED;
    assert_int_equal(bpt__job_open_delivery(&job), BPT_ESTOPPED);
    assert_true(world.n == 0 && world.n_attached == 0);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_parts_of_the_test_split),
        cmocka_unit_test(test_what_is_asked_for),
        cmocka_unit_test(test_waiting),
        cmocka_unit_test(test_ends_of_waiting),
    };
    return cmocka_run_group_tests(tests, made_set_up, made_tear_down);
}
