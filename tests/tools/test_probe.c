/* What is measured of the machines of a job: by their clocks, and on clocks that only the test
 * moves; and what comes of it where one of the ranks fails. Run on one rank and on several. */
#include "base/memory.h"
#include "outer/comm/watch.h"
#include "outer/placement/link_speed.h"
#include "storage/loader/loader.h"
#include "tests/base/near.h"
#include "tests/storage/made_dataset.h"
#include "tools/plan/probe.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

/* Last: it needs those above, and defines fail and skip. */
#include <cmocka.h>

enum { COUNT = 40, MAX_RANKS = 4 };

static const double read_us = 7; /* of an image, where it is made up */

static const char plain[] =
    "name: small\n"
    "input: [1, 6, 6]\n"
    "classes: 3\n"
    "layers:\n"
    "  - conv: {name: conv1, filters: 4, kernel: 3}\n"
    "  - fc: {name: fc1, outputs: classes}\n";

static const char with_norm[] =
    "name: normed\n"
    "input: [1, 6, 6]\n"
    "classes: 3\n"
    "layers:\n"
    "  - conv: {name: conv1, filters: 4, kernel: 6}\n"
    "  - batchnorm: {name: bn1}\n"
    "  - fc: {name: fc1, outputs: classes}\n";

static bpt_comm *comm;
static uint32_t rank, n_ranks;
static made_place place;
static bpt_dataset *dataset;
static const bpt_split *split;
static bpt_model *model;

/* ---- a world that is made up: ld --wrap ---- */

/* While it is, on this thread alone: that of MPI has the real one. */
static _Thread_local bool made_up;

static struct {
    double now_s;                    /* the clock */
    double mpi_s, main_s, reading_s; /* processor time of the process's threads */
    double per_sample_s, of_two_s;   /* of a step: each sample, and if > 0 a step of two */
    double disturbed_s, disturbed_e; /* steps that begin between take ten times as long */
    uint64_t n_steps, n_barriers, n_copies, n_rounds, n_links;
    float samples; /* of the last step */
    float rate;
} world;

/* What fails on the last rank, counted from 0; -1: nothing does. */
static int fail_step, fail_copy, fail_batch;

static bool fails(int *at) {
    return *at >= 0 && rank == n_ranks - 1 && (*at)-- == 0;
}

uint64_t __real_bpt_clock_ns(void);
uint64_t __wrap_bpt_clock_ns(void);
double __real_bpt_clock_seconds_since(uint64_t since_ns);
double __wrap_bpt_clock_seconds_since(uint64_t since_ns);
bpt_status __real_bpt_network_train(bpt_network *net, const void *input, const int32_t *labels,
                                    float rate, float denominator, bpt_batch_result *result);
bpt_status __wrap_bpt_network_train(bpt_network *net, const void *input, const int32_t *labels,
                                    float rate, float denominator, bpt_batch_result *result);
bpt_status __real_bpt_network_get(bpt_network *net, bpt_vector which, float *flat);
bpt_status __wrap_bpt_network_get(bpt_network *net, bpt_vector which, float *flat);
bpt_status __real_bpt_network_set(bpt_network *net, bpt_vector which, const float *flat);
bpt_status __wrap_bpt_network_set(bpt_network *net, bpt_vector which, const float *flat);
bpt_status __real_bpt_loader_next(bpt_loader *loader, bpt_batch *batch);
bpt_status __wrap_bpt_loader_next(bpt_loader *loader, bpt_batch *batch);
bpt_status __real_bpt_comm_allgather(bpt_comm *c, const void *mine, size_t bytes, void *all);
bpt_status __wrap_bpt_comm_allgather(bpt_comm *c, const void *mine, size_t bytes, void *all);
bpt_status __real_bpt_comm_barrier(bpt_comm *c);
bpt_status __wrap_bpt_comm_barrier(bpt_comm *c);
double __real_bpt_comm_cpu_seconds(const bpt_comm *c);
double __wrap_bpt_comm_cpu_seconds(const bpt_comm *c);
bpt_status __real_bpt_comm_link_speeds(bpt_comm *c, double *bytes_per_s);
bpt_status __wrap_bpt_comm_link_speeds(bpt_comm *c, double *bytes_per_s);
const char *__real_bpt_comm_host(const bpt_comm *c, uint32_t r);
const char *__wrap_bpt_comm_host(const bpt_comm *c, uint32_t r);
int __real_clock_gettime(clockid_t clock, struct timespec *time);
int __wrap_clock_gettime(clockid_t clock, struct timespec *time);
size_t __real_bpt_memory_of_machine(void);
size_t __wrap_bpt_memory_of_machine(void);

uint64_t __wrap_bpt_clock_ns(void) {
    return made_up ? (uint64_t)(world.now_s * 1e9) : __real_bpt_clock_ns();
}

double __wrap_bpt_clock_seconds_since(uint64_t since_ns) {
    return made_up ? (world.now_s * 1e9 - (double)since_ns) / 1e9
                   : __real_bpt_clock_seconds_since(since_ns);
}

/* The first two of each size take long, and do not count. */
static void move_clock(float samples) {
    static unsigned n_of_size;
    n_of_size = samples == world.samples ? n_of_size + 1 : 0;
    world.samples = samples;
    double seconds = world.per_sample_s * (double)samples;
    if (samples == 2 && world.of_two_s > 0) seconds = world.of_two_s;
    if (n_of_size < 2) seconds *= 100;
    if (world.now_s >= world.disturbed_s && world.now_s < world.disturbed_e) seconds *= 10;
    world.now_s += seconds;
}

bpt_status __wrap_bpt_network_train(bpt_network *net, const void *input, const int32_t *labels,
                                    float rate, float denominator, bpt_batch_result *result) {
    world.n_steps++;
    world.rate = rate;
    if (fails(&fail_step)) return bpt_fail(BPT_EBACKEND, "the planted fault of a step");
    if (!made_up) return __real_bpt_network_train(net, input, labels, rate, denominator, result);
    move_clock(denominator);
    return BPT_OK;
}

bpt_status __wrap_bpt_network_get(bpt_network *net, bpt_vector which, float *flat) {
    assert_int_equal(which, BPT_VECTOR_WEIGHTS);
    if (fails(&fail_copy)) return bpt_fail(BPT_EBACKEND, "the planted fault of a copy");
    world.now_s += world.n_copies++ % 5 < 2 ? 5 : 1.0 / 64;
    return __real_bpt_network_get(net, which, flat);
}

bpt_status __wrap_bpt_network_set(bpt_network *net, bpt_vector which, const float *flat) {
    assert_int_equal(which, BPT_VECTOR_WEIGHTS);
    world.now_s += 2.0 / 64;
    return __real_bpt_network_set(net, which, flat);
}

/* What this thread computes is no reading. */
static void compute(double seconds) {
    struct timespec now;
    double end = 0;
    do {
        clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
        const double at = (double)now.tv_sec + 1e-9 * (double)now.tv_nsec;
        if (end == 0) end = at + seconds;
        if (at >= end) return;
    } while (true);
}

bpt_status __wrap_bpt_loader_next(bpt_loader *loader, bpt_batch *batch) {
    BPT_TRY(__real_bpt_loader_next(loader, batch));
    if (fails(&fail_batch)) return bpt_fail(BPT_ECORRUPT, "the planted fault of a batch");
    if (made_up) {
        world.now_s += 0.3;
        world.reading_s += read_us * 1e-6 * batch->n;
        world.main_s += 0.02;
        world.mpi_s += 0.01;
    } else {
        compute(0.02);
    }
    return BPT_OK;
}

int __wrap_clock_gettime(clockid_t clock, struct timespec *time) {
    const bool of_all = clock == CLOCK_PROCESS_CPUTIME_ID;
    if (!made_up || (!of_all && clock != CLOCK_THREAD_CPUTIME_ID))
        return __real_clock_gettime(clock, time);
    const double s = world.main_s + (of_all ? world.mpi_s + world.reading_s : 0);
    *time =
        (struct timespec){.tv_sec = (time_t)s, .tv_nsec = (long)(1e9 * (s - (double)(time_t)s))};
    return 0;
}

/* Nanoseconds of the MPI thread for a byte. */
static double message_ns(uint32_t of_rank) {
    return 0.25 * (of_rank + 1);
}

/* The first that goes round is slow, for connections are made. */
bpt_status __wrap_bpt_comm_allgather(bpt_comm *c, const void *mine, size_t bytes, void *all) {
    if (bytes > 10000) {
        const double cost_ns = world.n_rounds++ == 0 ? 1000 : message_ns(rank);
        world.mpi_s += 1e-9 * cost_ns * 2 * (n_ranks - 1) * (double)bytes;
    }
    return __real_bpt_comm_allgather(c, mine, bytes, all);
}

bpt_status __wrap_bpt_comm_barrier(bpt_comm *c) {
    const bpt_status status = __real_bpt_comm_barrier(c);
    world.now_s += world.n_barriers++ % 5 == 1 ? 3 : 8e-5;
    return status;
}

double __wrap_bpt_comm_cpu_seconds(const bpt_comm *c) {
    return made_up ? world.mpi_s : __real_bpt_comm_cpu_seconds(c);
}

bpt_status __wrap_bpt_comm_link_speeds(bpt_comm *c, double *bytes_per_s) {
    if (!made_up) return __real_bpt_comm_link_speeds(c, bytes_per_s);
    const double disturbed = world.n_links++ % 3 == 1 ? 1 : 0.3;
    for (uint32_t r = 0; r < n_ranks; r++) bytes_per_s[r] = 1e8 * (r + 1) * disturbed;
    return BPT_OK;
}

const char *__wrap_bpt_comm_host(const bpt_comm *c, uint32_t r) {
    static const char *const names[MAX_RANKS] = {"a", "b", "a", "a"};
    return made_up ? names[r] : __real_bpt_comm_host(c, r);
}

static size_t machine_bytes = SIZE_MAX;
size_t __wrap_bpt_memory_of_machine(void) {
    return made_up ? machine_bytes : __real_bpt_memory_of_machine();
}

/* ---- what is measured ---- */

static bpt_probe_subject subject_of(int64_t batch) {
    return (bpt_probe_subject){
        .model = model,
        .dataset = dataset,
        .split = split,
        .batch = batch,
        .precision = BPT_PRECISION_FP32,
        .learning = {.momentum = 0.9},
        .device = "cpu",
        .threads = 2,
        .seconds = 0.05,
    };
}

static bpt_cluster measure(const bpt_probe_subject *subject) {
    bpt_cluster c = {.model.name = "kept"};
    if (bpt_probe_run(comm, subject, &c) != BPT_OK) fail_msg("%s", bpt_error_last()->text);
    assert_int_equal(c.n_nodes, n_ranks);
    assert_string_equal(c.model.name, "kept");
    assert_true(world.rate == 0);
    return c;
}

/* Begins a world in which a sample takes 10 ms of a step. */
static void make_up(void) {
    memset(&world, 0, sizeof world);
    world.per_sample_s = 0.01;
    made_up = true;
}

static void assert_samples(const bpt_node *n, const double *samples, uint32_t n_samples) {
    assert_int_equal(n->n_steps, n_samples);
    for (uint32_t i = 0; i < n_samples; i++) assert_near(n->steps[i].samples, samples[i], 0);
}

static void assert_figures(const bpt_node *n) {
    static const double sizes[] = {1, 2, 4, 8};
    assert_int_equal(n->count, 1);
    assert_int_equal(n->threads, 2);
    assert_samples(n, sizes, 4);
    for (uint32_t i = 0; i < n->n_steps; i++) {
        assert_true(n->steps[i].seconds > 0 && n->steps[i].seconds < 60);
        assert_true(i == 0 || n->steps[i].seconds >= n->steps[i - 1].seconds);
    }
    assert_near(n->memory_bytes, (double)bpt_memory_of_machine() / n_ranks, 1);
    assert_near(n->link_bytes_per_s, 0, 0); /* there is one host */
    assert_true((n->message_s_per_byte > 0) == (n_ranks > 1));
    assert_true(n->copy_s > 0 && n->copy_s < 60);
    assert_true(n->load_s_per_image > 0 && n->load_s_per_image * 8 < 0.01);
}

/* All ranks are told the same. */
static void assert_agreed(const bpt_cluster *c) {
    bpt_node nodes[MAX_RANKS], all[MAX_RANKS][MAX_RANKS];
    double latencies[MAX_RANKS];
    memset(nodes, 0, sizeof nodes);
    memcpy(nodes, c->nodes, c->n_nodes * sizeof *nodes);
    for (uint32_t r = 0; r < n_ranks; r++) nodes[r].name = NULL;
    assert_int_equal(bpt_comm_allgather(comm, nodes, sizeof nodes, all), BPT_OK);
    for (uint32_t r = 0; r < n_ranks; r++) assert_memory_equal(all[r], nodes, sizeof nodes);
    assert_int_equal(bpt_comm_allgather(comm, &c->latency_s, sizeof c->latency_s, latencies),
                     BPT_OK);
    for (uint32_t r = 0; r < n_ranks; r++) assert_true(latencies[r] == c->latency_s);
}

static void test_figures(void **state) {
    (void)state;
    const bpt_probe_subject subject = subject_of(8);
    bpt_cluster c = measure(&subject);
    for (uint32_t r = 0; r < n_ranks; r++) assert_figures(&c.nodes[r]);
    assert_true((c.latency_s > 0) == (n_ranks > 1));
    for (uint32_t r = 0; r < n_ranks; r++) {
        char name[300];
        snprintf(name, sizeof name, r ? "%s.%u" : "%s", bpt_comm_host(comm, 0), r);
        assert_string_equal(c.nodes[r].name, name);
    }
    assert_agreed(&c);
    bpt_probe_free(&c);
    assert_null(c.nodes);
}

static void test_other_optimisers(void **state) {
    (void)state;
    bpt_probe_subject subject = subject_of(1);
    subject.seconds = 0.01;
    subject.learning = (bpt_learning){.optimizer = &bpt_optimizer_adamw,
                                      .beta1 = 0.9,
                                      .beta2 = 0.999,
                                      .eps = 1e-8,
                                      .decay = 0.01,
                                      .clip_norm = 1};
    bpt_cluster c = measure(&subject);
    bpt_probe_free(&c);
    subject.learning = (bpt_learning){.optimizer = &bpt_optimizer_lars,
                                      .momentum = 0.9,
                                      .eta = 0.01,
                                      .step_limit = 0.01,
                                      .label_smoothing = 0.1};
    c = measure(&subject);
    bpt_probe_free(&c);
}

static void test_without_a_dataset(void **state) {
    (void)state;
    static const double sizes[] = {1, 3};
    bpt_probe_subject subject = subject_of(3);
    subject.dataset = NULL;
    subject.split = NULL;
    make_up();
    bpt_cluster c = measure(&subject);
    made_up = false;
    for (uint32_t r = 0; r < n_ranks; r++) {
        assert_near(c.nodes[r].load_s_per_image, 0, 0);
        assert_samples(&c.nodes[r], sizes, 2);
    }
    bpt_probe_free(&c);
}

/* A batch norm over one pixel learns nothing from one sample. */
static void test_least_batch(void **state) {
    (void)state;
    static const double sizes[] = {2, 5};
    bpt_probe_subject subject = subject_of(5);
    bpt_model *normed;
    assert_int_equal(bpt_model_parse("m", with_norm, strlen(with_norm), NULL, &normed), BPT_OK);
    subject.model = normed;
    make_up();
    bpt_cluster c = measure(&subject);
    assert_samples(&c.nodes[0], sizes, 2);
    bpt_probe_free(&c);
    subject.batch = 1;
    assert_int_equal(bpt_probe_run(comm, &subject, &c), BPT_EUSAGE);
    made_up = false;
    assert_non_null(strstr(bpt_error_last()->text, "batch norm bn1 has one value a channel"));
    assert_string_equal(bpt_error_last()->hint, "raise --batch-size");
    bpt_probe_free(&c);
    bpt_model_free(normed);
}

/* ---- on a clock of the test's own ---- */

static double step_s(const bpt_cluster *c, uint32_t i) {
    return c->nodes[rank].steps[i].seconds;
}

/* Neither first steps nor what disturbs some count. */
static void test_steps(void **state) {
    (void)state;
    bpt_probe_subject subject = subject_of(8);
    subject.dataset = NULL;
    subject.seconds = 4;
    make_up();
    world.disturbed_s = 16; /* which the first two have taken; 1.5 s of 4 */
    world.disturbed_e = 17.5;
    bpt_cluster c = measure(&subject);
    made_up = false;
    for (uint32_t i = 0; i < 4; i++) assert_near(step_s(&c, i), 0.01 * (1 << i), 1e-6);
    bpt_probe_free(&c);
}

/* Of one sample, which takes so many seconds. */
static uint64_t count_steps(double one_s, double seconds) {
    bpt_probe_subject subject = subject_of(1);
    subject.dataset = NULL;
    subject.seconds = seconds;
    make_up();
    world.per_sample_s = one_s;
    bpt_cluster c = measure(&subject);
    made_up = false;
    assert_near(step_s(&c, 0), one_s, 1e-6);
    bpt_probe_free(&c);
    return world.n_steps;
}

static void test_number_of_steps(void **state) {
    (void)state;
    const double one_s = 1.0 / 64;
    assert_int_equal(count_steps(one_s, 160 * one_s), 2 + 160); /* eight chunks of 20 */
    assert_int_equal(count_steps(one_s, 0.4), 2 + 4 * 7);       /* none is shorter than 0.1 s */
    assert_int_equal(count_steps(one_s / 8, 0.4), 3 + 4 * 52);  /* one more is warm of short ones */
    assert_int_equal(count_steps(3, 0.4), 2 + 1);
}

/* A step of two samples takes no more than one of four. */
static void test_order(void **state) {
    (void)state;
    bpt_probe_subject subject = subject_of(8);
    subject.dataset = NULL;
    subject.seconds = 0.8;
    make_up();
    world.of_two_s = 0.06;
    bpt_cluster c = measure(&subject);
    made_up = false;
    assert_near(step_s(&c, 0), 0.01, 1e-6);
    assert_near(step_s(&c, 1), 0.04, 1e-6);
    assert_near(step_s(&c, 2), 0.04, 1e-6);
    assert_near(step_s(&c, 3), 0.08, 1e-6);
    bpt_probe_free(&c);
}

/* Copies, of which some take long; links and messages of each rank; reading; a machine that does
 * not tell its memory. */
static void test_what_moves(void **state) {
    (void)state;
    bpt_probe_subject subject = subject_of(2);
    subject.seconds = 100;
    make_up();
    world.per_sample_s = 10; /* there is no need of many steps */
    bpt_cluster c = measure(&subject);
    made_up = false;
    for (uint32_t r = 0; r < n_ranks; r++) {
        const bpt_node *n = &c.nodes[r];
        assert_near(n->copy_s, 3.0 / 64, 1e-6);
        assert_near(n->memory_bytes, 0, 0);
        assert_near(n->link_bytes_per_s, n_ranks > 1 ? 1e8 * (r + 1) : 0, 0);
        assert_near(n->message_s_per_byte, n_ranks > 1 ? 1e-9 * message_ns(r) : 0, 1e-14);
        assert_near(n->load_s_per_image, 1e-6 * read_us, 1e-9);
    }
    const double doublings = n_ranks > 2 ? 2 : 1; /* of 3 or 4 ranks */
    assert_near(c.latency_s, n_ranks > 1 ? 8e-5 / doublings : 0, 1e-8);
    bpt_probe_free(&c);
}

/* Machines that share a name, too. */
static void test_names(void **state) {
    (void)state;
    static const char *const names[MAX_RANKS] = {"a", "b", "a.1", "a.2"};
    const bpt_probe_subject subject = subject_of(1);
    make_up();
    bpt_cluster c = measure(&subject);
    made_up = false;
    for (uint32_t r = 0; r < n_ranks; r++) assert_string_equal(c.nodes[r].name, names[r]);
    bpt_probe_free(&c);
}

/* ---- where the last rank fails ---- */

/* @return what the last rank has come to; the others hear of it, and nothing is left */
static bpt_status measure_in_vain(const bpt_probe_subject *subject, const char *says) {
    bpt_status each[MAX_RANKS];
    bpt_cluster c = {0};
    const uint64_t live = bpt_memory_live();
    make_up();
    const bpt_status mine = bpt_probe_run(comm, subject, &c);
    made_up = false;
    bpt_memory_fail_at(-1);
    bpt_probe_free(&c);
    assert_int_equal(bpt_memory_live(), live);
    assert_int_equal(bpt_comm_allgather(comm, &mine, sizeof mine, each), BPT_OK);
    const bpt_status last = each[n_ranks - 1];
    if (rank < n_ranks - 1) assert_int_equal(mine, last == BPT_OK ? BPT_OK : BPT_EPEER);
    if (last != BPT_OK && !strstr(bpt_error_last()->text, says))
        fail_msg("%s: %s", says, bpt_error_last()->text);
    return last;
}

static void test_a_step_fails(void **state) {
    (void)state;
    const bpt_probe_subject subject = subject_of(2);
    for (int at = 0; at < 18; at += 3) { /* warm ones, and others, of both sizes */
        fail_step = at;
        assert_int_equal(measure_in_vain(&subject, "the planted fault of a step"), BPT_EBACKEND);
    }
    fail_step = -1;
    assert_int_equal(measure_in_vain(&subject, ""), BPT_OK);
}

static void test_a_copy_fails(void **state) {
    (void)state;
    const bpt_probe_subject subject = subject_of(2);
    for (int at = 0; at < 2; at++) {
        fail_copy = at;
        assert_int_equal(measure_in_vain(&subject, "the planted fault of a copy"), BPT_EBACKEND);
    }
    fail_copy = -1;
}

static void test_reading_fails(void **state) {
    (void)state;
    const bpt_probe_subject subject = subject_of(2);
    for (int at = 0; at < 2; at++) {
        fail_batch = at;
        assert_int_equal(measure_in_vain(&subject, "the planted fault of a batch"), BPT_ECORRUPT);
    }
    fail_batch = -1;
}

static void test_no_such_device(void **state) {
    (void)state;
    bpt_probe_subject subject = subject_of(2);
    if (rank == n_ranks - 1) subject.device = "abacus";
    assert_int_equal(measure_in_vain(&subject, "abacus"), BPT_EUSAGE);
}

/* Before any of it is touched. What the system does not tell is no bound. */
static void test_too_little_memory(void **state) {
    (void)state;
    const bpt_probe_subject subject = subject_of(2);
    if (rank == n_ranks - 1) machine_bytes = 4;
    assert_int_equal(measure_in_vain(&subject, "a network of 2 samples a step needs"), BPT_EUSAGE);
    machine_bytes = SIZE_MAX;
    assert_int_equal(measure_in_vain(&subject, ""), BPT_OK);
}

/* @return whether it is refused, where the last rank lacks memory for allocation number @p n */
static bool lacks_memory(int n) {
    const bpt_probe_subject subject = subject_of(2);
    if (rank == n_ranks - 1) bpt_memory_fail_at(n);
    const bpt_status status = measure_in_vain(&subject, "");
    if (status != BPT_OK && status != BPT_ENOMEM)
        fail_msg("%d: %s: %s", n, bpt_status_name(status), bpt_error_last()->text);
    return status == BPT_ENOMEM;
}

/* Where it is not known what a rank may use, for want of memory, it does with less. */
static void test_lack_of_memory(void **state) {
    (void)state;
    enum { LAST = 24 }; /* in which links are measured, and the cluster is made */
    const bpt_probe_subject subject = subject_of(2);
    const uint64_t before = bpt_memory_allocations();
    assert_int_equal(measure_in_vain(&subject, ""), BPT_OK);
    const int end = (int)(bpt_memory_allocations() - before);
    int each[MAX_RANKS], n_tries = 0, n_refused = 0;
    assert_int_equal(bpt_comm_allgather(comm, &end, sizeof end, each), BPT_OK);
    const int last = each[n_ranks - 1];
    for (int n = 0; n < last - LAST; n += 1 + n / 12, n_tries++) n_refused += lacks_memory(n);
    for (int n = last - LAST; n < last; n++, n_tries++) n_refused += lacks_memory(n);
    assert_true(n_tries > 60 && n_refused >= n_tries - 2);
}

/* ---- all of it ---- */

static int set_up(void **state) {
    (void)state;
    const bpt_writer_options o = made_options("train", 1, 6, 6);
    fail_step = fail_copy = fail_batch = -1;
    place = made_place_create();
    return made_split(place.dataset, &o, 1, COUNT) != BPT_OK ||
           bpt_dataset_open(place.dataset, &dataset) != BPT_OK ||
           bpt_dataset_find(dataset, "train", &split) != BPT_OK ||
           bpt_model_parse("small", plain, strlen(plain), NULL, &model) != BPT_OK;
}

static int tear_down(void **state) {
    (void)state;
    bpt_model_free(model);
    bpt_dataset_close(dataset);
    made_place_remove(&place);
    return 0;
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_figures),
        cmocka_unit_test(test_other_optimisers),
        cmocka_unit_test(test_without_a_dataset),
        cmocka_unit_test(test_least_batch),
        cmocka_unit_test(test_steps),
        cmocka_unit_test(test_number_of_steps),
        cmocka_unit_test(test_order),
        cmocka_unit_test(test_what_moves),
        cmocka_unit_test(test_names),
        cmocka_unit_test(test_a_step_fails),
        cmocka_unit_test(test_a_copy_fails),
        cmocka_unit_test(test_reading_fails),
        cmocka_unit_test(test_no_such_device),
        cmocka_unit_test(test_too_little_memory),
        cmocka_unit_test(test_lack_of_memory),
    };
    if (bpt_comm_start(&comm) != BPT_OK) return 1;
    rank = bpt_comm_rank(comm);
    n_ranks = bpt_comm_size(comm);
    const int failed = cmocka_run_group_tests(tests, set_up, tear_down);
    bpt_comm_stop(comm);
    return failed;
}
