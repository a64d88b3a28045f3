/* Threads and cores of a rank on hosts that are made up: who shares them, and what is said where a
 * rank has too few. */
#include "base/log.h"
#include "base/memory.h"
#include "outer/comm/comm.h"
#include "scheduler/pool.h"
#include "tools/train/job/rank_threads.h"

#include <sched.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* Last: it needs those above, and defines fail and skip. */
#include <cmocka.h>

/* ---- a job: ld --wrap ---- */

enum { MAX_RANKS = 8 };

/* A rank: its host, the processors that it may use, and whether it is on a device. */
typedef struct {
    char host;
    unsigned first, end; /* processors [first, end) */
    bool on_device;
} rank_of;

/* What ranks tell each other. */
typedef struct {
    cpu_set_t set;
    bool on_device;
} told;

static struct {
    uint32_t n, own;
    rank_of ranks[MAX_RANKS];
    unsigned present, bound, quota; /* of the own host: logical processors; cores */
    char said[300];
    unsigned n_said;
} job;

static cpu_set_t set_of(const rank_of *r) {
    cpu_set_t set;
    CPU_ZERO(&set);
    for (unsigned i = r->first; i < r->end; i++) CPU_SET(i, &set);
    return set;
}

uint32_t __wrap_bpt_comm_rank(const bpt_comm *comm);
uint32_t __wrap_bpt_comm_size(const bpt_comm *comm);
bool __wrap_bpt_comm_together(const bpt_comm *comm, uint32_t a, uint32_t b);
const char *__wrap_bpt_comm_host(const bpt_comm *comm, uint32_t rank);
bpt_status __wrap_bpt_comm_table(bpt_comm *comm, const char *what, const void *mine, size_t bytes,
                                 void **all);
unsigned __wrap_bpt_pool_bound_cores(void);
unsigned __wrap_bpt_pool_quota_cores(void);
int __wrap_sched_getaffinity(pid_t pid, size_t size, cpu_set_t *set);
long __wrap_sysconf(int name);
void __wrap_bpt_log(bpt_log_level level, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

uint32_t __wrap_bpt_comm_rank(const bpt_comm *comm) {
    (void)comm;
    return job.own;
}

uint32_t __wrap_bpt_comm_size(const bpt_comm *comm) {
    (void)comm;
    return job.n;
}

bool __wrap_bpt_comm_together(const bpt_comm *comm, uint32_t a, uint32_t b) {
    (void)comm;
    return job.ranks[a].host == job.ranks[b].host;
}

const char *__wrap_bpt_comm_host(const bpt_comm *comm, uint32_t rank) {
    (void)comm, (void)rank;
    return "made-up";
}

bpt_status __wrap_bpt_comm_table(bpt_comm *comm, const char *what, const void *mine, size_t bytes,
                                 void **all) {
    (void)comm, (void)what;
    told *table;
    assert_int_equal(bytes, sizeof *table);
    assert_int_equal(BPT_NEW("affinities", job.n, &table), BPT_OK);
    for (uint32_t r = 0; r < job.n; r++)
        table[r] = (told){set_of(&job.ranks[r]), job.ranks[r].on_device};
    const told *own = mine;
    assert_true(CPU_EQUAL(&own->set, &table[job.own].set));
    assert_int_equal(own->on_device, job.ranks[job.own].on_device);
    *all = table;
    return BPT_OK;
}

unsigned __wrap_bpt_pool_bound_cores(void) {
    return job.bound;
}

unsigned __wrap_bpt_pool_quota_cores(void) {
    return job.quota;
}

int __wrap_sched_getaffinity(pid_t pid, size_t size, cpu_set_t *set) {
    assert_true(pid == 0 && size == sizeof *set);
    *set = set_of(&job.ranks[job.own]);
    return 0;
}

long __wrap_sysconf(int name) {
    assert_int_equal(name, _SC_NPROCESSORS_ONLN);
    return job.present;
}

void __wrap_bpt_log(bpt_log_level level, const char *format, ...) {
    va_list values;
    assert_int_equal(level, BPT_LOG_WARN);
    va_start(values, format);
    (void)vsnprintf(job.said, sizeof job.said, format, values);
    va_end(values);
    job.n_said++;
}

/* ---- hosts ---- */

/* A host of two threads a core, whose ranks may use what @p ranks say.
 * @param cores of the own rank's processors */
static void set_job(const rank_of *ranks, uint32_t n, uint32_t own, unsigned present,
                    unsigned cores) {
    memset(&job, 0, sizeof job);
    memcpy(job.ranks, ranks, n * sizeof *ranks);
    job.n = n;
    job.own = own;
    job.present = present;
    job.bound = cores;
    job.quota = BPT_MAX_WORKERS;
}

static void assert_chosen(unsigned wanted, uint32_t n_workers, unsigned threads, unsigned cores,
                          unsigned on_host) {
    unsigned chosen = 0, own = 0, ranks = 0, again = 0;
    const bool on_device = job.ranks[job.own].on_device;
    job.n_said = 0;
    assert_int_equal(
        bpt_rank_threads_choose(NULL, wanted, n_workers, on_device, &chosen, &own, &ranks), BPT_OK);
    assert_int_equal(chosen, threads);
    assert_int_equal(own, cores);
    assert_int_equal(ranks, on_host);
    assert_int_equal(bpt_rank_threads_cores(NULL, n_workers, on_device, &again), BPT_OK);
    assert_int_equal(again, cores);
}

/* Those that may use the same processors share them, and nobody else does. */
static void test_sharing(void **state) {
    (void)state;
    static const rank_of same[] = {
        {'a', 0, 16, false}, {'a', 0, 16, false}, {'b', 0, 16, false}, {'a', 0, 16, false}};
    set_job(same, 4, 1, 16, 8);
    assert_chosen(0, 4, 2, 2, 3);
    assert_chosen(0, 3, 4, 4, 3); /* one of them serves */
    assert_chosen(7, 4, 7, 2, 3);
    assert_int_equal(job.n_said, 0);
    job.own = 3;
    assert_chosen(0, 3, 1, 1, 3);
    job.own = 2;
    assert_chosen(0, 4, 8, 8, 1);
    static const rank_of apart[] = {{'a', 0, 8, false}, {'a', 8, 16, false}, {'a', 8, 16, false}};
    set_job(apart, 3, 0, 16, 4);
    assert_chosen(0, 3, 4, 4, 3);
    job.own = 1;
    assert_chosen(0, 3, 2, 2, 3);
    job.quota = 3; /* of processor time, for all of the host */
    assert_chosen(0, 3, 1, 1, 3);
    job.own = 2;
    assert_chosen(5, 2, 1, 1, 3); /* it serves */
}

/* A rank on a device has a core for itself, of those that it may use. */
static void test_devices(void **state) {
    (void)state;
    static const rank_of ranks[] = {{'a', 0, 16, true},
                                    {'a', 0, 16, false},
                                    {'a', 16, 32, true},
                                    {'a', 0, 16, false},
                                    {'b', 0, 16, true}};
    set_job(ranks, 5, 1, 32, 7);
    assert_chosen(0, 5, 3, 3, 4); /* 6 for two */
    job.quota = 8;
    assert_chosen(0, 5, 3, 3, 4); /* 6 for two */
    job.quota = 7;
    assert_chosen(0, 5, 2, 2, 4); /* 5 for two */
    job.quota = 1;
    assert_chosen(0, 5, 1, 1, 4);
    job.own = 0;
    assert_chosen(0, 5, 1, 1, 4);
    assert_chosen(3, 5, 3, 1, 4);
    assert_int_equal(job.n_said, 0);
    set_job(ranks, 2, 1, 32, 1); /* one core, and one of time, for both */
    job.quota = 1;
    assert_chosen(0, 2, 1, 1, 2);
    job.bound = 8;
    assert_chosen(0, 2, 1, 1, 2);
}

/* ---- what is said ---- */

static void assert_said(const char *text) {
    assert_int_equal(job.n_said, 1);
    assert_string_equal(job.said, text);
}

/* Bound to a core while others are idle, by a launcher that can be told, or by whatever it was. */
static void test_bound_ranks(void **state) {
    (void)state;
    static const rank_of one[] = {{'a', 0, 2, false}, {'a', 2, 4, false}};
    set_job(one, 2, 1, 16, 1);
    assert_chosen(0, 2, 1, 1, 2);
    assert_said(
        "rank 1 on made-up is bound to 1 core and wants 8 threads: what started it allows no more "
        "(taskset, a container, or srun without --cpu-bind=none)");
    assert_int_equal(setenv("OMPI_COMM_WORLD_SIZE", "2", true), 0);
    static const rank_of bound[] = {{'a', 0, 2, false}, {'a', 2, 4, false}};
    set_job(bound, 2, 1, 16, 1);
    assert_chosen(0, 2, 1, 1, 2);
    assert_said(
        "rank 1 on made-up is bound to 1 core and wants 8 threads: give mpirun the option "
        "--bind-to none (or --map-by slot:PE=8)");
    assert_chosen(5, 2, 5, 1, 2);
    assert_said(
        "rank 1 on made-up is bound to 1 core and wants 5 threads: give mpirun the option "
        "--bind-to none (or --map-by slot:PE=5)");
    assert_chosen(2, 2, 2, 1, 2); /* of its core's two */
    assert_int_equal(job.n_said, 0);
    job.present = 4; /* then none is idle */
    assert_chosen(0, 2, 1, 1, 2);
    assert_int_equal(job.n_said, 0);
    job.present = 5;
    assert_chosen(0, 2, 1, 1, 2);
    assert_int_equal(job.n_said, 1);
    job.ranks[2] = (rank_of){'a', 4, 5, false}; /* which serves */
    job.n = 3;
    assert_chosen(0, 2, 1, 1, 3);
    assert_true(job.n_said == 1 && strstr(job.said, " wants 2 threads: "));
    job.ranks[1].on_device = true;
    assert_chosen(0, 2, 1, 1, 3);
    assert_int_equal(job.n_said, 0);
    static const rank_of two_cores[] = {{'a', 0, 4, false}};
    set_job(two_cores, 1, 0, 16, 2);
    assert_chosen(0, 1, 2, 2, 1); /* somebody has meant it */
    assert_int_equal(job.n_said, 0);
    assert_chosen(6, 1, 6, 2, 1);
    assert_said(
        "rank 0 on made-up is bound to 2 cores and wants 6 threads: give mpirun the option "
        "--bind-to none (or --map-by slot:PE=6)");
}

/* More threads than the host has processors: there is nothing that mpirun could be told. */
static void test_small_hosts(void **state) {
    (void)state;
    static const rank_of ranks[] = {{'a', 0, 4, false}};
    set_job(ranks, 1, 0, 4, 2);
    assert_chosen(4, 1, 4, 2, 1);
    assert_int_equal(job.n_said, 0);
    assert_chosen(5, 1, 5, 2, 1);
    assert_said(
        "rank 0 on made-up is to run 5 threads, and the host has 2 cores: threads that "
        "share one take turns (0 chooses as many as there are cores)");
    assert_chosen(0, 1, 2, 2, 1);
    assert_int_equal(job.n_said, 0);
    job.bound = 1;
    assert_chosen(5, 1, 5, 1, 1);
    assert_true(job.n_said == 1 && strstr(job.said, "has 1 core: "));
}

/* ---- what is reckoned with before ---- */

static void test_before_a_job(void **state) {
    (void)state;
    job.bound = 8;
    job.quota = 6;
    assert_int_equal(bpt_rank_threads_expected(0, 1), 6);
    assert_int_equal(bpt_rank_threads_expected(0, 2), 3);
    assert_int_equal(bpt_rank_threads_expected(5, 2), 5);
    assert_int_equal(bpt_rank_threads_expected(BPT_MAX_WORKERS + 1, 2), BPT_MAX_WORKERS);
    const double one = bpt_rank_threads_speed(1); /* of a clock that changes */
    assert_true(one > 0 && bpt_rank_threads_speed(64) > 4 * one);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_sharing),      cmocka_unit_test(test_devices),
        cmocka_unit_test(test_bound_ranks),  cmocka_unit_test(test_small_hosts),
        cmocka_unit_test(test_before_a_job),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
