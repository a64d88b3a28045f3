/* What --placement auto decides by: of ranks that are made up, whose layers take as long, and whose
 * links and memory are, as a test says. */
#include "base/memory.h"
#include "inner/models/model_part.h"
#include "outer/comm/watch.h"
#include "outer/placement/layer_placement.h"
#include "outer/placement/link_speed.h"
#include "tests/base/near.h"
#include "tests/tools/made_job.h"
#include "tools/train/job/checkpoint.h"
#include "tools/train/job/job_parts.h"
#include "tools/train/job/layer_choice.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

/* Last: it needs those above, and defines fail and skip. */
#include <cmocka.h>

/* Rank 0 is the test's own. */
enum { N_RANKS = 3, MAX_LAYERS = 8 };

static size_t n_layers; /* of the model */

/* ---- the other ranks: ld --wrap ---- */

static double speeds[N_RANKS];
static const double batches[N_RANKS] = {8, 16, 11}; /* 35 / 3 on average */
static const double memories[N_RANKS] = {1e6, 5e6, 2e6};
static double links[N_RANKS];
static double measured_memory; /* by the test's own rank */
static double measured_s;      /* likewise; of all layers */
static unsigned n_steps;       /* that it has trained */
static const char *doing;
static unsigned others_fail_at; /* agreement, from 1; 0: none */
static unsigned n_agreements;
static bpt_status agreed;         /* on, last */
static const uint64_t *broadcast; /* what rank 0 tells; NULL: the test's own rank is that one */

/* Seconds of a layer on a rank: the slowest of the first is rank 1, of the others rank 2. */
static double seconds(uint32_t rank, size_t layer) {
    static const double of_rank[N_RANKS] = {3, 2, 4};
    return layer == 0 ? 10 - of_rank[rank] : of_rank[rank] * (double)(layer + 1);
}

size_t __wrap_bpt_memory_of_machine(void);
bpt_status __wrap_bpt_comm_agree(bpt_comm *comm, bpt_status mine);
bpt_status __wrap_bpt_comm_allgather(bpt_comm *comm, const void *mine, size_t bytes, void *all);
bpt_status __wrap_bpt_comm_broadcast(bpt_comm *comm, uint32_t root, void *data, size_t bytes);
bpt_status __wrap_bpt_comm_link_speeds(bpt_comm *comm, double *bytes_per_s);
void __wrap_bpt_comm_doing(bpt_comm *comm, const char *what);
const char *__wrap_bpt_comm_host(const bpt_comm *comm, uint32_t rank);
bpt_status __wrap_bpt__job_speeds(bpt_job *job, double *of_ranks);
bpt_status __real_bpt_network_train(bpt_network *net, const void *input, const int32_t *labels,
                                    float rate, float denominator, bpt_batch_result *result);
bpt_status __wrap_bpt_network_train(bpt_network *net, const void *input, const int32_t *labels,
                                    float rate, float denominator, bpt_batch_result *result);

size_t __wrap_bpt_memory_of_machine(void) {
    return 1000000000;
}

bpt_status __wrap_bpt_comm_agree(bpt_comm *comm, bpt_status mine) {
    (void)comm;
    assert_int_equal(agreed, BPT_OK); /* nothing is done together any more */
    if (++n_agreements == others_fail_at) agreed = BPT_EPEER;
    return agreed = mine != BPT_OK ? mine : agreed;
}

bpt_status __wrap_bpt_comm_allgather(bpt_comm *comm, const void *mine, size_t bytes, void *all) {
    const double *own = mine;
    double *of_ranks = all;
    (void)comm;
    assert_int_equal(agreed, BPT_OK);
    assert_string_equal(doing, "the choice of --placement");
    assert_int_equal(bytes, (n_layers + 2) * sizeof *own);
    measured_s = 0;
    for (size_t i = 0; i < n_layers; i++) measured_s += own[i];
    measured_memory = own[n_layers];
    assert_near(own[n_layers + 1], MADE_BATCH, 0);
    for (uint32_t r = 0; r < N_RANKS; r++) {
        double *of_rank = of_ranks + r * (n_layers + 2);
        for (size_t i = 0; i < n_layers; i++) of_rank[i] = seconds(r, i);
        of_rank[n_layers] = memories[r];
        of_rank[n_layers + 1] = batches[r];
    }
    return BPT_OK;
}

bpt_status __wrap_bpt_comm_broadcast(bpt_comm *comm, uint32_t root, void *data, size_t bytes) {
    (void)comm;
    assert_int_equal(root, 0);
    if (!broadcast) return BPT_OK;
    assert_int_equal(bytes, 2 * sizeof *broadcast);
    memcpy(data, broadcast, bytes);
    return BPT_OK;
}

bpt_status __wrap_bpt_comm_link_speeds(bpt_comm *comm, double *bytes_per_s) {
    (void)comm;
    memcpy(bytes_per_s, links, sizeof links);
    return BPT_OK;
}

void __wrap_bpt_comm_doing(bpt_comm *comm, const char *what) {
    (void)comm;
    doing = what;
}

const char *__wrap_bpt_comm_host(const bpt_comm *comm, uint32_t rank) {
    (void)comm, (void)rank;
    return "made-up";
}

bpt_status __wrap_bpt__job_speeds(bpt_job *job, double *of_ranks) {
    (void)job;
    assert_int_equal(agreed, BPT_OK);
    memcpy(of_ranks, speeds, sizeof speeds);
    return BPT_OK;
}

bpt_status __wrap_bpt_network_train(bpt_network *net, const void *input, const int32_t *labels,
                                    float rate, float denominator, bpt_batch_result *result) {
    n_steps++;
    return __real_bpt_network_train(net, input, labels, rate, denominator, result);
}

/* ---- what is asked, and what comes of it ---- */

static struct {
    unsigned n;
    bpt_placement_job job;
    bpt_placed_layer layers[MAX_LAYERS];
    size_t cut; /* the answer */
} asked;

static struct {
    unsigned n;
    size_t border;
    uint32_t host;
} opened;

bpt_placement __wrap_bpt_placement_choose(const bpt_placement_job *job);
bpt_status __wrap_bpt_placed_open(bpt_job *job, size_t border, uint32_t host);

bpt_placement __wrap_bpt_placement_choose(const bpt_placement_job *job) {
    asked.n++;
    asked.job = *job;
    assert_true(job->n_layers <= MAX_LAYERS);
    memcpy(asked.layers, job->layers, job->n_layers * sizeof *job->layers);
    return (bpt_placement){.cut = asked.cut, .reason = "as the test says"};
}

bpt_status __wrap_bpt_placed_open(bpt_job *job, size_t border, uint32_t host) {
    (void)job;
    opened.n++;
    opened.border = border;
    opened.host = host;
    return BPT_OK;
}

/* ---- jobs ---- */

static bpt_train_options options_with(const char *placement) {
    bpt_train_options o = made.options;
    o.placement = placement;
    o.batch_size = MADE_BATCH;
    return o;
}

/* With a network; close_job(). */
static bpt_job open_job(const bpt_train_options *o, bpt_update_choice update, bpt_model *model) {
    bpt_job job = made_job_of(o, update, 0, N_RANKS, 0);
    job.model = model;
    job.pace.least = 5;
    n_layers = model->n_layers;
    assert_int_equal(bpt_pool_open("fifo", 1, &job.pool), BPT_OK);
    assert_int_equal(bpt_network_create(model, MADE_BATCH, BPT_F32, bpt_train_learning(o, 1),
                                        job.pool, &job.network),
                     BPT_OK);
    assert_int_equal(BPT_NEW("flat vector", model->segments.n_elements, &job.flat), BPT_OK);
    asked.n = opened.n = 0;
    asked.cut = BPT_PLACEMENT_NONE;
    memset(links, 0, sizeof links);
    memcpy(speeds, (const double[N_RANKS]){2, 9, 4}, sizeof speeds);
    n_agreements = others_fail_at = 0;
    agreed = BPT_OK;
    broadcast = NULL;
    return job;
}

static void close_job(bpt_job *job) {
    bpt_free(job->flat);
    bpt_network_free(job->network);
    bpt_pool_free(job->pool);
}

/* ---- measuring ---- */

/* Each layer counts as on the slowest rank, and on the fastest one, which is the host, by the
 * sample for a mean batch. */
static void test_layers(void **state) {
    (void)state;
    const bpt_train_options o = options_with("auto");
    bpt_job job = open_job(&o, BPT_UPDATE_AGWU, made.model);
    n_steps = 0;
    assert_int_equal(bpt_layer_choice_make(&job, NULL), BPT_OK);
    assert_true(asked.n == 1 && opened.n == 0);
    assert_true(measured_s > 0 && measured_s < 60);
    assert_int_equal(n_steps, 2); /* the second counts */
    assert_string_equal(doing, "the start");
    assert_int_equal(asked.job.n_layers, n_layers);
    uint64_t parameters = 0;
    for (size_t i = 0; i < n_layers; i++) {
        const bpt_layer *l = &made.model->layers[i];
        assert_string_equal(asked.layers[i].name, l->name);
        assert_int_equal(asked.layers[i].values, l->out.c * l->out.h * l->out.w);
        assert_near(asked.layers[i].worker_s, seconds(i == 0 ? 1 : 2, i), 1e-12);
        assert_near(asked.layers[i].server_s, seconds(1, i) * 35 / 3 / 16, 1e-12);
        parameters += asked.layers[i].parameters;
    }
    assert_int_equal(asked.layers[0].parameters, 16 * 9 + 16);
    assert_int_equal(asked.layers[1].parameters, 0);
    assert_int_equal(parameters, made.model->segments.n_elements);
    assert_true(asked.layers[0].border && !asked.layers[n_layers - 1].border);
    close_job(&job);
}

/* Of an optimiser that has no steps behind it, whatever was tried. */
static void test_nothing_is_learnt(void **state) {
    (void)state;
    bpt_train_options o = options_with("auto");
    o.optimizer = 1; /* with two vectors of state */
    bpt_job job = open_job(&o, BPT_UPDATE_AGWU, made.model);
    assert_int_equal(bpt_network_n_states(job.network), 2);
    assert_int_equal(bpt_layer_choice_make(&job, NULL), BPT_OK);
    assert_int_equal(asked.job.copies, 3 + 2);
    assert_int_equal(bpt_network_updates(job.network), 0);
    for (int s = 0; s < 2; s++) {
        assert_int_equal(
            bpt_network_get(job.network, (bpt_vector)(BPT_VECTOR_STATE_0 + s), job.flat), BPT_OK);
        for (size_t i = 0; i < made.model->segments.n_elements; i++) assert_true(job.flat[i] == 0);
    }
    close_job(&job);
}

static void test_job(void **state) {
    (void)state;
    bpt_train_options o = options_with("auto");
    bpt_job job = open_job(&o, BPT_UPDATE_AGWU, made.model);
    assert_int_equal(bpt_layer_choice_make(&job, NULL), BPT_OK);
    assert_int_equal(asked.job.n_workers, N_RANKS);
    assert_int_equal(asked.job.batch, 12);
    assert_int_equal(asked.job.steps_per_exchange, 5);
    assert_true(asked.job.overlaps);
    assert_int_equal(asked.job.value_bytes, 4);
    assert_int_equal(asked.job.label_bytes, 4);
    assert_int_equal(asked.job.copies, 3 + 1);
    assert_near(asked.job.server_bytes, memories[1], 0);
    const bpt_memory_plan plan = made_plan(&job);
    assert_near(measured_memory, 1e9 - (double)(plan.total - plan.network.total), 0);
    job.update = BPT_UPDATE_ALLREDUCE;
    assert_int_equal(bpt_layer_choice_make(&job, NULL), BPT_OK);
    assert_int_equal(asked.job.steps_per_exchange, 1);
    assert_false(asked.job.overlaps);
    o.precision = BPT_PRECISION_BF16;
    assert_int_equal(bpt_layer_choice_make(&job, NULL), BPT_OK);
    assert_int_equal(asked.job.value_bytes, 2);
    close_job(&job);
}

/* The slowest counts of those that were measured. */
static void test_links(void **state) {
    (void)state;
    static const struct {
        double links[N_RANKS], slowest;
    } cases[] = {
        {{0, 0, 0}, 4e9}, {{2e9, 0, 1e9}, 1e9}, {{1e9, 2e9, 3e9}, 1e9}, {{9e9, 0, 8e9}, 4e9}};
    const bpt_train_options o = options_with("auto");
    bpt_job job = open_job(&o, BPT_UPDATE_AGWU, made.model);
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        memcpy(links, cases[i].links, sizeof links);
        assert_int_equal(bpt_layer_choice_make(&job, NULL), BPT_OK);
        assert_near(asked.job.bytes_per_s, cases[i].slowest, 0);
    }
    close_job(&job);
}

static const char norms[] =
    "name: norms\n"
    "input: [1, 12, 12]\n"
    "classes: 4\n"
    "layers:\n"
    "  - conv: {name: conv1, filters: 4, kernel: 3}\n"
    "  - conv: {name: conv2, filters: 4, kernel: 3}\n"
    "  - batchnorm: {name: norm2}\n"
    "  - relu: {name: relu2}\n"
    "  - fc: {name: fc1, outputs: classes}\n";

/* In step, batch norms stay with the ranks. */
static void test_batch_norms(void **state) {
    (void)state;
    bpt_model *model;
    bpt_train_options o = options_with("auto");
    assert_int_equal(bpt_model_parse("norms", norms, sizeof norms - 1, NULL, &model), BPT_OK);
    bpt_job job = open_job(&o, BPT_UPDATE_AGWU, model);
    assert_int_equal(bpt_layer_choice_make(&job, NULL), BPT_OK);
    for (size_t i = 0; i < 4; i++) assert_true(asked.layers[i].border);
    job.update = BPT_UPDATE_ALLREDUCE;
    assert_int_equal(bpt_layer_choice_make(&job, NULL), BPT_OK);
    for (size_t i = 0; i < 4; i++) assert_int_equal(asked.layers[i].border, i >= 2);
    o.placement = "norm2";
    assert_int_equal(bpt_layer_choice_make(&job, NULL), BPT_EUSAGE);
    close_job(&job);
    o.update = BPT_UPDATE_AUTO; /* which may come to allreduce */
    assert_int_equal(bpt_layer_choice_check(&o, model), BPT_EUSAGE);
    o.update = BPT_UPDATE_AGWU;
    assert_int_equal(bpt_layer_choice_check(&o, model), BPT_OK);
    o.update = BPT_UPDATE_SGWU; /* which places none: a file may name what another model has */
    o.placement = "none of these";
    assert_int_equal(bpt_layer_choice_check(&o, model), BPT_OK);
    bpt_model_free(model);
}

/* Which layer cannot be is said with those that can. */
static void test_hints(void **state) {
    (void)state;
    bpt_train_options o = options_with("conv1");
    o.update = BPT_UPDATE_AGWU;
    assert_int_equal(bpt_layer_choice_check(&o, made.model), BPT_EUSAGE);
    assert_string_equal(
        bpt_error_last()->text,
        "--placement conv1: model made cannot be parted before layer conv1: it is the first one");
    assert_string_equal(bpt_error_last()->hint, "it can be parted before relu1, fc1, relu2, fc2");
}

/* ---- what comes of it ---- */

static void assert_opened(size_t border, uint32_t host) {
    assert_int_equal(opened.n, 1);
    assert_int_equal(opened.border, border);
    assert_int_equal(opened.host, host);
    opened.n = 0;
}

/* The fastest rank is the host; a job that goes on bit for bit has the one that it had. */
static void test_host(void **state) {
    (void)state;
    bpt_train_options o = options_with("auto");
    size_t fc1, fc2;
    assert_int_equal(bpt_model_find_border(made.model, "fc1", &fc1), BPT_OK);
    assert_int_equal(bpt_model_find_border(made.model, "fc2", &fc2), BPT_OK);
    bpt_job job = open_job(&o, BPT_UPDATE_AGWU, made.model);
    asked.cut = fc2;
    assert_int_equal(bpt_layer_choice_make(&job, NULL), BPT_OK);
    assert_opened(fc2, 1);
    o.placement = "fc1";
    asked.n = 0;
    assert_int_equal(bpt_layer_choice_make(&job, NULL), BPT_OK);
    assert_opened(fc1, 1);
    bpt_checkpoint c = {.exact = true, .placement = "fc2", .placement_host = 2};
    assert_int_equal(bpt_layer_choice_make(&job, &c), BPT_OK);
    assert_opened(fc2, 2);
    c.placement = "";
    assert_int_equal(bpt_layer_choice_make(&job, &c), BPT_OK);
    assert_int_equal(opened.n, 0);
    c.placement = "fc2";
    c.exact = false;
    assert_int_equal(bpt_layer_choice_make(&job, &c), BPT_OK);
    assert_opened(fc1, 1);
    assert_int_equal(asked.n, 0);     /* none of these measures */
    memset(speeds, 0, sizeof speeds); /* nor was the speed of a rank before */
    assert_int_equal(bpt_layer_choice_make(&job, NULL), BPT_OK);
    assert_opened(fc1, 0);
    close_job(&job);
}

/* Rank 0 decides, and the others do as it says. */
static void test_another_rank(void **state) {
    (void)state;
    const bpt_train_options o = options_with("auto");
    size_t fc2;
    assert_int_equal(bpt_model_find_border(made.model, "fc2", &fc2), BPT_OK);
    bpt_job job = open_job(&o, BPT_UPDATE_AGWU, made.model);
    job.rank = 2;
    broadcast = (const uint64_t[]){fc2, 1};
    assert_int_equal(bpt_layer_choice_make(&job, NULL), BPT_OK);
    assert_int_equal(asked.n, 0);
    assert_opened(fc2, 1);
    broadcast = (const uint64_t[]){BPT_PLACEMENT_NONE, 1};
    assert_int_equal(bpt_layer_choice_make(&job, NULL), BPT_OK);
    assert_int_equal(opened.n, 0);
    close_job(&job);
}

/* What fails on a rank ends it on all, before they do anything together, and leaves nothing. */
static void test_failures(void **state) {
    (void)state;
    const bpt_train_options o = options_with("auto");
    bpt_job job = open_job(&o, BPT_UPDATE_AGWU, made.model);
    assert_int_equal(bpt_model_find_border(made.model, "fc2", &asked.cut), BPT_OK);
    const uint64_t live = bpt_memory_live();
    bpt_status status = BPT_ENOMEM;
    int n = 0;
    for (; status == BPT_ENOMEM; n++) {
        agreed = BPT_OK;
        bpt_memory_fail_at(n);
        status = bpt_layer_choice_make(&job, NULL);
        bpt_memory_fail_at(-1);
        assert_int_equal(agreed, status);
        assert_true(bpt_memory_live() == live);
    }
    assert_int_equal(status, BPT_OK);
    assert_true(n > 5);
    assert_opened(asked.cut, 1);
    for (others_fail_at = 1; others_fail_at <= 4; others_fail_at++) { /* what all agree on */
        agreed = BPT_OK;
        n_agreements = 0;
        assert_int_equal(bpt_layer_choice_make(&job, NULL), BPT_EPEER);
        assert_int_equal(opened.n, 0);
        assert_true(bpt_memory_live() == live);
    }
    close_job(&job);
}

/* Nothing is measured, or placed, where no layers can be. */
static void test_where_it_cannot_be(void **state) {
    (void)state;
    static const bpt_update_choice updates[] = {BPT_UPDATE_SGWU, BPT_UPDATE_EASGD,
                                                BPT_UPDATE_LOCAL};
    bpt_train_options o = options_with("auto");
    bpt_job job = open_job(&o, BPT_UPDATE_AGWU, made.model);
    size_t border;
    o.placement = "off";
    assert_int_equal(bpt_layer_choice_make(&job, NULL), BPT_OK);
    o.placement = "fc1";
    assert_true(bpt_layer_choice_is_named(&job, &border));
    assert_int_equal(bpt_layer_choice_check_devices(&job), BPT_OK);
    job.any_device = true;
    assert_int_equal(bpt_layer_choice_make(&job, NULL), BPT_OK);
    assert_false(bpt_layer_choice_is_named(&job, &border));
    assert_int_equal(bpt_layer_choice_check_devices(&job), BPT_EUSAGE);
    const bpt_checkpoint c = {.exact = true, .placement = "fc2", .placement_host = 2};
    assert_int_equal(bpt_layer_choice_make(&job, &c), BPT_EUSAGE);
    assert_int_equal(agreed, BPT_EUSAGE);
    agreed = BPT_OK;
    /* One of another job, or of whole networks, is none of parts. */
    const bpt_checkpoint others[] = {{.placement = "fc2", .placement_host = 2},
                                     {.exact = true, .placement = ""}};
    for (size_t i = 0; i < 2; i++)
        assert_int_equal(bpt_layer_choice_make(&job, &others[i]), BPT_OK);
    o.placement = "auto";
    assert_int_equal(bpt_layer_choice_check_devices(&job), BPT_OK);
    job.any_device = false;
    assert_false(bpt_layer_choice_is_named(&job, &border));
    for (size_t i = 0; i < sizeof updates / sizeof *updates; i++) {
        job.update = updates[i];
        assert_int_equal(bpt_layer_choice_make(&job, NULL), BPT_OK);
    }
    job.update = BPT_UPDATE_AGWU;
    job.n_ranks = 1;
    assert_int_equal(bpt_layer_choice_make(&job, NULL), BPT_OK);
    assert_true(asked.n == 0 && opened.n == 0);
    close_job(&job);
}

/* A named layer wants cores of a job whose update can place it, or may come to do so. */
static void test_who_wants_cores(void **state) {
    (void)state;
    static const struct {
        bpt_update_choice update;
        const char *placement;
        uint32_t n_ranks;
        bool wants;
    } cases[] = {
        {BPT_UPDATE_DEFAULT, "fc1", 2, true},     {BPT_UPDATE_AUTO, "fc1", 2, true},
        {BPT_UPDATE_ALLREDUCE, "fc1", 2, true},   {BPT_UPDATE_AGWU, "fc1", 2, true},
        {BPT_UPDATE_SGWU, "fc1", 2, false},       {BPT_UPDATE_EASGD, "fc1", 2, false},
        {BPT_UPDATE_AGWU, "fc1", 1, false},       {BPT_UPDATE_DEFAULT, "fc1", 1, false},
        {BPT_UPDATE_ALLREDUCE, "auto", 2, false}, {BPT_UPDATE_ALLREDUCE, "off", 2, false},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        bpt_train_options o = options_with(cases[i].placement);
        o.update = cases[i].update;
        assert_int_equal(bpt_layer_choice_wants_cores(&o, cases[i].n_ranks), cases[i].wants);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_layers),
        cmocka_unit_test(test_nothing_is_learnt),
        cmocka_unit_test(test_job),
        cmocka_unit_test(test_links),
        cmocka_unit_test(test_batch_norms),
        cmocka_unit_test(test_hints),
        cmocka_unit_test(test_host),
        cmocka_unit_test(test_another_rank),
        cmocka_unit_test(test_failures),
        cmocka_unit_test(test_where_it_cannot_be),
        cmocka_unit_test(test_who_wants_cores),
    };
    return cmocka_run_group_tests(tests, made_set_up, made_tear_down);
}
