/* What is said of ranks at the end: the table, and whom the job would do better without; of ranks,
 * hosts and times that are made up. */
#include "base/log.h"
#include "outer/comm/comm.h"
#include "tools/train/report/rank_table.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

/* Last: it needs those above, and defines fail and skip. */
#include <cmocka.h>

enum { N_RANKS = 3, MAX_LINES = 8 };

/* ---- what is said, and where: ld --wrap ---- */

static char lines[MAX_LINES][1024];
static unsigned n_lines;
static const char *hosts[N_RANKS];

void __wrap_bpt_log(bpt_log_level level, const char *format, ...)
    __attribute__((format(printf, 2, 3)));
const char *__wrap_bpt_comm_host(const bpt_comm *comm, uint32_t rank);

void __wrap_bpt_log(bpt_log_level level, const char *format, ...) {
    va_list values;
    (void)level;
    assert_true(n_lines < MAX_LINES);
    va_start(values, format);
    (void)vsnprintf(lines[n_lines++], sizeof *lines, format, values);
    va_end(values);
}

const char *__wrap_bpt_comm_host(const bpt_comm *comm, uint32_t rank) {
    (void)comm;
    assert_true(rank < N_RANKS);
    return hosts[rank];
}

static bpt_job job_of(bpt_update_choice update, uint32_t n_workers, uint32_t n_servers) {
    n_lines = 0;
    memcpy(hosts, (const char *[]){"a", "node2", "c"}, sizeof hosts);
    return (bpt_job){.n_ranks = n_workers + n_servers,
                     .n_workers = n_workers,
                     .n_servers = n_servers,
                     .update = update};
}

/* ---- the table ---- */

/* In two seconds, and with evaluations, judging and waiting in the time that it is busy. */
static const bpt_rank_summary quick = {
    .count = {.samples = 300,
              .steps = 10,
              .submissions = 1,
              .compute_ns = 1200000000,
              .step_ns = 1000000000,
              .path_ns = 900000000,
              .work_ns = 950000000,
              .wait_ns = 600000000,
              .data_wait_ns = 200000000,
              .eval_ns = 140000000,
              .quality_ns = 60000000},
    .seconds = 2,
    .solo = 200,
    .threads = 1,
};

static void test_table(void **state) {
    (void)state;
    const bpt_job job = job_of(BPT_UPDATE_AGWU, 2, 1);
    bpt_rank_summary ranks[N_RANKS] = {quick, quick};
    ranks[1].count.samples = 100;
    ranks[1].count.steps = 0;
    ranks[1].solo = 100;
    (void)snprintf(ranks[1].device, sizeof ranks[1].device, "cuda:0 (NVIDIA)");
    bpt_rank_table_say(&job, ranks);
    assert_int_equal(n_lines, 5);
    assert_string_equal(lines[0],
                        "rank  host   device     img/s     alone   share  efficiency  waited    "
                        "data  limit");
    assert_string_equal(lines[1],
                        "   0  a      cpu          150       200   75.0%        0.75   30.0%   "
                        "10.0%  messages");
    assert_string_equal(lines[2],
                        "   1  node2  cuda:0        50       100   25.0%        0.50   30.0%   "
                        "10.0%  -");
    assert_string_equal(lines[3],
                        "   2  c      server         -         -       -           -       -       "
                        "-  -");
    assert_string_equal(lines[4], "together 0.67 of the sum of what each does alone");
    /* Of one whose speed alone is not known there is none of all together. */
    ranks[1].solo = 0;
    n_lines = 0;
    bpt_rank_table_say(&job, ranks);
    assert_int_equal(n_lines, 4);
    assert_string_equal(lines[2],
                        "   1  node2  cuda:0        50         -   25.0%           -   30.0%   "
                        "10.0%  -");
}

static void test_one_rank(void **state) {
    (void)state;
    bpt_rank_summary rank = quick;
    n_lines = 0;
    bpt_rank_limit_say(&rank);
    assert_int_equal(n_lines, 1);
    assert_non_null(strstr(lines[0], "limited by waiting for messages"));
    assert_non_null(strstr(lines[0],
                           "(of its time: in steps 50.0%, waiting for data 10.0%, for messages "
                           "30.0%, between steps 10.0%)"));
    rank.count.steps = 0;
    bpt_rank_limit_say(&rank);
    assert_int_equal(n_lines, 1);
    assert_string_equal(bpt_rank_limit(&rank), "");
    assert_true(bpt_rank_images_per_s(&quick.count) == 250);
}

/* ---- who costs more than it brings ---- */

static bpt_rank_summary worker(uint64_t samples, double compute_s, double comm_s, double seconds) {
    return (bpt_rank_summary){.count = {.samples = samples,
                                        .submissions = 50,
                                        .compute_ns = (uint64_t)(compute_s * 1e9),
                                        .comm_cpu_ns = (uint64_t)(comm_s * 1e9)},
                              .seconds = seconds,
                              .threads = 1};
}

/* @return the warning, "" where there is none; of jobs without speeds alone */
static const char *warning(const bpt_job *job, const bpt_rank_summary *ranks) {
    n_lines = 0;
    bpt_rank_table_say(job, ranks);
    assert_true(n_lines == 1 + job->n_ranks || n_lines == 2 + job->n_ranks);
    return n_lines == 2 + job->n_ranks ? lines[1 + job->n_ranks] : "";
}

/* In step all wait for the slowest; less than a fiftieth is not worth a word. */
static void test_all_wait(void **state) {
    (void)state;
    const bpt_job job = job_of(BPT_UPDATE_ALLREDUCE, 3, 0);
    bpt_rank_summary ranks[] = {worker(100, 1, 0, 2), worker(100, 2, 0, 2), worker(100, 1, 0, 2)};
    assert_string_equal(
        warning(&job, ranks),
        "rank 1 on node2 costs more than it brings: all wait for it, without it the "
        "job would take 25% less time; mpirun --host a,c leaves it out");
    ranks[1] = worker(100, 1.5 / 0.97, 0, 2);
    assert_non_null(strstr(warning(&job, ranks), " 3% less time"));
    ranks[1] = worker(100, 1.5 / 0.985, 0, 2);
    assert_string_equal(warning(&job, ranks), "");
    ranks[1] = worker(100, 2, 0, 2);
    char name[300];
    memset(name, 'n', sizeof name - 1);
    name[sizeof name - 1] = '\0';
    hosts[0] = hosts[2] = name;
    assert_non_null(strstr(warning(&job, ranks),
                           "; mpirun --host LIST, or a --hostfile, without it leaves it out"));
}

/* Where nobody waits it is the time that the others spend on its pushes: by the first, half of its
 * on the pushes of both. */
static void test_nobody_waits(void **state) {
    (void)state;
    const bpt_job job = job_of(BPT_UPDATE_AGWU, 2, 0);
    bpt_rank_summary ranks[] = {worker(1000, 10, 1.02, 10), worker(5, 10, 1.02, 10)};
    assert_string_equal(warning(&job, ranks),
                        "rank 1 on node2 costs more than it brings: without it the others would do "
                        "5 img/s more than now, by what they spend on its pushes; mpirun --host a "
                        "leaves it out");
    ranks[0].threads = 4; /* the others go on */
    assert_string_equal(warning(&job, ranks), "");
    ranks[0] = worker(1000, 10, 0.2, 10);
    assert_string_equal(warning(&job, ranks), ""); /* half an image of a hundred a second */
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_table),
        cmocka_unit_test(test_one_rank),
        cmocka_unit_test(test_all_wait),
        cmocka_unit_test(test_nobody_waits),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
