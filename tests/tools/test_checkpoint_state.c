/* What a checkpoint says of the job that wrote it: every difference that makes another job of the
 * one that goes on is found and named, and where there is none the job is the same to the bit. */
#include "base/memory.h"
#include "tests/tools/made_job.h"
#include "tools/train/job/checkpoint_state.h"
#include "tools/train/job/job_parts.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

/* Last: it needs those above, and defines fail and skip. */
#include <cmocka.h>

/* ---- time that passes, and a feed: ld --wrap ---- */

double __wrap_bpt_comm_cpu_seconds(const bpt_comm *comm);
double __wrap_bpt_clock_seconds_since(uint64_t since_ns);

double __wrap_bpt_comm_cpu_seconds(const bpt_comm *comm) {
    (void)comm;
    return 0;
}

double __wrap_bpt_clock_seconds_since(uint64_t since_ns) {
    (void)since_ns;
    return 3;
}

static const bpt_sampler_state sampler = {
    .pass = 6, .position = 5, .rounds = 4, .covered = 2, .next_rounds = 3};

bpt_sampler_state __wrap_bpt_feed_state(const bpt_feed *feed);
uint64_t __wrap_bpt_feed_wait_ns(const bpt_feed *feed);

bpt_sampler_state __wrap_bpt_feed_state(const bpt_feed *feed) {
    (void)feed;
    return sampler;
}

uint64_t __wrap_bpt_feed_wait_ns(const bpt_feed *feed) {
    (void)feed;
    return 0;
}

/* ---- a job that may differ ---- */

enum { N_RANKS = 3, MOST = 8192 };

/* Of rank 1 of three; without an exchange and a feed. */
typedef struct {
    bpt_train_options options;
    bpt_model model;
    bpt_job job;
} made_side;

static bpt_pool *pool;

static void open_side(made_side *s) {
    s->options = made.options;
    s->options.batch_size = N_RANKS * MADE_BATCH;
    s->options.train_split = "train";
    s->options.idpa_rounds = "7";
    s->options.placement = "off";
    s->job = made_job_of(&s->options, BPT_UPDATE_ALLREDUCE, 1, N_RANKS, 0);
    s->model = *made.model;
    s->job.model = &s->model;
    s->job.total_samples = 5000;
    s->job.first_sample = MADE_BATCH;
    s->job.dataset_identity = 11;
    s->job.model_identity = 12;
    s->job.eval_due = true;
    s->job.count = (bpt_counters){.progress = 480, .steps = 20, .samples = 160, .compute_ns = 9};
}

static void make_network(made_side *s) {
    assert_int_equal(bpt_network_create(made.model, MADE_BATCH, BPT_F32,
                                        bpt_train_learning(&s->options, 1), pool, &s->job.network),
                     BPT_OK);
}

static void close_side(made_side *s) {
    bpt_network_free(s->job.network);
}

/* @param[out] text shape [MOST] */
static void write_state(const bpt_job *job, char *text) {
    bpt_json_writer w = {0};
    const char *line;
    size_t length;
    bpt_checkpoint_put_state(job, &w);
    assert_int_equal(bpt_json_end_text(&w, &line, &length), BPT_OK);
    assert_true(length < MOST);
    memcpy(text, line, length + 1);
    bpt_json_free(&w);
}

/* @return the status; close_checkpoint() */
static bpt_status read_state(const bpt_job *job, const char *text, bpt_checkpoint *c) {
    *c = (bpt_checkpoint){0};
    assert_int_equal(bpt_json_parse("state", text, strlen(text), &c->state), BPT_OK);
    return bpt_checkpoint_get_state(job, "rank-1.json", c);
}

static void close_checkpoint(bpt_checkpoint *c) {
    bpt_json_doc_free(c->state);
}

/* Takes a number or a text out, as of a version that did not write it. */
static void take_out(char *text, const char *key) {
    char quoted[64];
    snprintf(quoted, sizeof quoted, "\"%s\":", key);
    char *const begin = strstr(text, quoted);
    assert_non_null(begin);
    char *const end = strchr(begin, ',') + 1;
    memmove(begin, end, strlen(end) + 1);
}

/* ---- differences ---- */

typedef void (*alteration)(made_side *s);

static void other_ranks(made_side *s) {
    s->job.n_ranks++, s->job.n_workers++;
}
static void other_servers(made_side *s) {
    s->job.n_servers++, s->job.n_workers--;
}
static void other_batch(made_side *s) {
    s->options.batch_size++;
}
static void other_seed(made_side *s) {
    s->options.seed++;
}
static void other_order(made_side *s) {
    s->options.order = BPT_ORDER_SEQUENTIAL;
}
static void other_held_out(made_side *s) {
    s->job.held_out = 5;
}
static void other_samples(made_side *s) {
    s->job.epoch_samples--;
}
static void other_epochs(made_side *s) {
    s->job.total_samples++;
}
static void other_velocity(made_side *s) {
    s->job.terms.momentum = 0.5;
}
static void other_height(made_side *s) {
    s->model.input.h++;
}
static void other_width(made_side *s) {
    s->model.input.w++;
}
static void other_data(made_side *s) {
    s->job.dataset_identity++;
}
static void other_model(made_side *s) {
    s->job.model_identity++;
}
static void other_split(made_side *s) {
    s->options.train_split = "twin";
}
static void other_partition(made_side *s) {
    s->job.partition = BPT_PARTITION_IDPA;
}
static void other_update(made_side *s) {
    s->job.update = BPT_UPDATE_AGWU;
}
static void other_momentum(made_side *s) {
    s->options.momentum = 0;
}
static void other_optimizer(made_side *s) {
    s->options.optimizer = 1;
}
static void other_placement(made_side *s) {
    s->options.placement = "fc1";
}

static const struct {
    alteration change;
    const char *what;
} changes[] = {
    {other_ranks, "the number of ranks"},
    {other_servers, "--servers"},
    {other_batch, "--batch-size"},
    {other_seed, "--seed"},
    {other_order, "--order"},
    {other_held_out, "--quality or --held-out"},
    {other_samples, "the number of training samples"},
    {other_epochs, "--epochs"},
    {other_velocity, "--server-momentum, 0 in one of the two,"},
    {other_height, "the size of the input, by --input-size, --model or --data,"},
    {other_width, "the size of the input, by --input-size, --model or --data,"},
    {other_data, "what --data holds"},
    {other_model, "what --model says"},
    {other_split, "--train-split"},
    {other_partition, "--partition"},
    {other_update, "--update"},
    {other_momentum, "--momentum, 0 in one of the two,"},
    {other_optimizer, "--optimizer"},
    {other_placement, "--placement"},
};

/* @param before what both are, beside which one is changed; NULL: nothing */
static void assert_differs(alteration before, alteration change, const char *what) {
    char text[MOST];
    made_side writes, reads;
    bpt_checkpoint c;
    open_side(&writes);
    open_side(&reads);
    if (before) before(&writes), before(&reads);
    if (change) change(&reads);
    make_network(&writes);
    make_network(&reads);
    write_state(&writes.job, text);
    assert_int_equal(read_state(&reads.job, text, &c), BPT_OK);
    assert_int_equal(c.exact, !what);
    if (what && strcmp(c.differs, what) != 0) fail_msg("%s, not %s, differs", c.differs, what);
    /* Of another job progress and time are taken over alone. */
    assert_int_equal(c.count.progress, 480);
    assert_int_equal(c.count.steps, what ? 0 : 20);
    assert_int_equal(c.count.compute_ns, what ? 0 : 9);
    assert_true(c.eval_due);
    close_checkpoint(&c);
    close_side(&reads);
    close_side(&writes);
}

static void test_differences(void **state) {
    (void)state;
    assert_differs(NULL, NULL, NULL);
    for (size_t i = 0; i < sizeof changes / sizeof *changes; i++)
        assert_differs(NULL, changes[i].change, changes[i].what);
}

static void in_blocks(made_side *s) {
    s->options.order = BPT_ORDER_BLOCKS;
}
static void other_block(made_side *s) {
    s->options.order_block++;
}
static void by_idpa(made_side *s) {
    s->job.update = BPT_UPDATE_AGWU, s->job.partition = BPT_PARTITION_IDPA;
}
static void other_rounds(made_side *s) {
    s->options.idpa_rounds = "8";
}
static void free_rounds(made_side *s) {
    s->options.idpa_rounds = "auto";
}
static void other_gamma(made_side *s) {
    s->options.gamma = BPT_GAMMA_LAG;
}
static void placement_auto(made_side *s) {
    s->options.placement = "auto";
}

/* Some options count beside others alone, and what is left open is no other job. */
static void test_differences_beside_others(void **state) {
    (void)state;
    assert_differs(NULL, other_block, NULL);
    assert_differs(in_blocks, other_block, "--order-block");
    assert_differs(NULL, other_rounds, NULL);
    assert_differs(by_idpa, other_rounds, "--idpa-rounds");
    assert_differs(by_idpa, free_rounds, NULL);
    assert_differs(NULL, other_gamma, NULL);
    assert_differs(by_idpa, other_gamma, "--gamma");
    assert_differs(NULL, placement_auto, NULL);
}

/* ---- the order of samples ---- */

static bool has_same_order(const made_side *writes, const made_side *reads) {
    char text[MOST];
    bpt_checkpoint c;
    write_state(&writes->job, text);
    assert_int_equal(read_state(&reads->job, text, &c), BPT_OK);
    const bool same = c.same_order;
    close_checkpoint(&c);
    return same;
}

/* Whichever of the two was first. */
static bool same_order(alteration before, alteration change) {
    made_side a, b;
    open_side(&a);
    open_side(&b);
    if (before) before(&a), before(&b);
    if (change) change(&b);
    make_network(&a);
    make_network(&b);
    const bool same = has_same_order(&a, &b);
    assert_int_equal(has_same_order(&b, &a), same);
    close_side(&b);
    close_side(&a);
    return same;
}

/* Where no rank has a part of the data to itself, all draw from one order, however many there are;
 * it is another one by its seed, its kind, its blocks and the number of samples. */
static void test_orders(void **state) {
    (void)state;
    assert_true(same_order(NULL, NULL));
    assert_true(same_order(NULL, other_ranks));
    assert_true(same_order(NULL, other_batch));
    assert_true(same_order(in_blocks, other_ranks));
    assert_false(same_order(NULL, other_seed));
    assert_false(same_order(NULL, other_order));
    assert_false(same_order(in_blocks, other_block));
    assert_false(same_order(NULL, other_samples));
    assert_false(same_order(NULL, other_update));
    assert_true(same_order(by_idpa, NULL));
    assert_false(same_order(by_idpa, other_ranks));
}

/* ---- checkpoints of earlier versions ---- */

/* What they did not write was not there, or is not known: neither makes another job. */
static void test_earlier_versions(void **state) {
    (void)state;
    static const char *const absent[] = {"servers",      "order",       "held_out", "velocities",
                                         "input_height", "input_width", "dataset",  "model",
                                         "train_split",  "cuts",        "device",   "precision",
                                         "placement",    "first_sample"};
    static const char *const needed[] = {
        "ranks",    "batch_size",       "seed",   "train_samples", "total_samples",
        "rounds",   "optimizer_states", "update", "rule",          "partition",
        "optimizer"};
    char text[MOST];
    made_side s;
    bpt_checkpoint c;
    open_side(&s);
    make_network(&s);
    write_state(&s.job, text);
    for (size_t i = 0; i < sizeof absent / sizeof *absent; i++) {
        take_out(text, absent[i]);
        assert_int_equal(read_state(&s.job, text, &c), BPT_OK);
        if (!c.exact) fail_msg("without \"%s\" %s differs", absent[i], c.differs);
        assert_true(c.same_cuts && c.same_device && c.same_precision);
        assert_int_equal(c.first_sample, MADE_BATCH);
        assert_int_equal(c.batch, MADE_BATCH);
        close_checkpoint(&c);
    }
    for (size_t i = 0; i < sizeof needed / sizeof *needed; i++) {
        write_state(&s.job, text);
        take_out(text, needed[i]);
        assert_int_equal(read_state(&s.job, text, &c), BPT_EDATA);
        close_checkpoint(&c);
    }
    close_side(&s);
}

/* Where the rank is in the order of its samples comes back as it was. */
static void test_sampler(void **state) {
    (void)state;
    char text[MOST];
    made_side s;
    bpt_checkpoint c;
    open_side(&s);
    make_network(&s);
    s.job.feed = (bpt_feed *)&s; /* it is not looked into */
    write_state(&s.job, text);
    assert_int_equal(read_state(&s.job, text, &c), BPT_OK);
    assert_memory_equal(&c.sampler, &sampler, sizeof sampler);
    close_checkpoint(&c);
    close_side(&s);
}

/* Another precision is no other job, and is known; a server computes in none. */
static void test_precision(void **state) {
    (void)state;
    char text[MOST];
    made_side s;
    bpt_checkpoint c;
    open_side(&s);
    make_network(&s);
    write_state(&s.job, text);
    s.options.precision = BPT_PRECISION_BF16;
    assert_int_equal(read_state(&s.job, text, &c), BPT_OK);
    assert_true(c.exact && !c.same_precision);
    assert_string_equal(c.precision, "fp32");
    close_checkpoint(&c);
    s.job.rank = s.job.n_workers;
    assert_int_equal(read_state(&s.job, text, &c), BPT_OK);
    assert_true(c.same_precision && !c.precision);
    close_checkpoint(&c);
    write_state(&s.job, text);
    assert_null(strstr(text, "\"precision\""));
    close_side(&s);
}

/* The job that goes on takes the part of the batch that it had. */
static void test_cut(void **state) {
    (void)state;
    char text[MOST];
    made_side s;
    bpt_checkpoint c;
    open_side(&s);
    make_network(&s);
    s.job.first_sample = 5, s.job.batch = 13;
    write_state(&s.job, text);
    s.job.first_sample = 8, s.job.batch = 8;
    assert_int_equal(read_state(&s.job, text, &c), BPT_OK);
    assert_true(c.exact);
    assert_int_equal(c.first_sample, 5);
    assert_int_equal(c.batch, 13);
    close_checkpoint(&c);
    close_side(&s);
}

/* Of the batch of a job with the same ranks, which merged weights. */
static void test_batch(void **state) {
    (void)state;
    static const struct {
        bpt_update_choice update;
        uint32_t n_ranks;
        int64_t servers, batch;
    } cases[] = {{BPT_UPDATE_AGWU, N_RANKS, 0, N_RANKS * MADE_BATCH},
                 {BPT_UPDATE_AGWU, N_RANKS, 1, 0},
                 {BPT_UPDATE_AGWU, N_RANKS + 1, 0, 0},
                 {BPT_UPDATE_ALLREDUCE, N_RANKS, 0, 0}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        char text[MOST];
        made_side s;
        bpt_checkpoint c;
        int64_t batch = -1;
        open_side(&s);
        make_network(&s);
        s.job.update = cases[i].update;
        write_state(&s.job, text);
        assert_int_equal(read_state(&s.job, text, &c), BPT_OK);
        assert_int_equal(
            bpt_checkpoint_get_batch(c.state, cases[i].n_ranks, cases[i].servers, &batch), BPT_OK);
        assert_int_equal(batch, cases[i].batch);
        close_checkpoint(&c);
        close_side(&s);
    }
}

static int set_up(void **state) {
    return made_set_up(state) == 0 && bpt_pool_open("fifo", 1, &pool) == BPT_OK ? 0 : -1;
}

static int tear_down(void **state) {
    bpt_pool_free(pool);
    return made_tear_down(state);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_differences), cmocka_unit_test(test_differences_beside_others),
        cmocka_unit_test(test_orders),      cmocka_unit_test(test_earlier_versions),
        cmocka_unit_test(test_sampler),     cmocka_unit_test(test_precision),
        cmocka_unit_test(test_cut),         cmocka_unit_test(test_batch),
    };
    return cmocka_run_group_tests(tests, set_up, tear_down);
}
