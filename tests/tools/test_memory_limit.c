/* What of a job's plan of memory fits a machine, what is named where it does not, and the table: on
 * a machine of a made-up size. */
#include "inner/models/model_part.h"
#include "tests/base/near.h"
#include "tests/tools/made_job.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Last: it needs those above, and defines fail and skip. */
#include <cmocka.h>

static size_t machine_bytes;

size_t __wrap_bpt_memory_of_machine(void);

size_t __wrap_bpt_memory_of_machine(void) {
    return machine_bytes;
}

/* ---- what fits ---- */

static const char *remedy_of(const bpt_job *job, size_t limit) {
    static char remedy[BPT_MEMORY_REMEDY_SIZE];
    const bpt_memory_plan plan = made_plan(job);
    assert_true(plan.total > limit);
    assert_int_equal(bpt_memory_plan_remedy(job, &plan, limit, remedy), BPT_OK);
    return remedy;
}

/* What a rank takes with another --batch-size. */
static size_t bytes_with(bpt_job job, uint32_t batch, uint64_t batch_all) {
    job.batch = batch;
    job.batch_all = batch_all;
    return made_plan(&job).total;
}

static void assert_names(const bpt_job *job, size_t limit, unsigned batch) {
    char wanted[BPT_MEMORY_REMEDY_SIZE];
    snprintf(wanted, sizeof wanted, "the largest that fits is --batch-size %u", batch);
    assert_string_equal(remedy_of(job, limit), wanted);
}

/* One that takes just what there is fits, down to a single sample. */
static void test_largest_batch(void **state) {
    (void)state;
    bpt_job job = made_job_alone(&made.options);
    job.batch = 500;
    job.batch_all = 500;
    for (uint32_t batch = 1; batch < 500; batch = 1 + 3 * batch) {
        const size_t limit = bytes_with(job, batch, batch);
        assert_names(&job, limit, batch);
        assert_names(&job, bytes_with(job, batch + 1, batch + 1) - 1, batch);
    }
    assert_string_equal(remedy_of(&job, bytes_with(job, 1, 1) - 1), "not even one sample fits");
    assert_names(&job, bytes_with(job, 500, 500) - 1, 499);
}

/* Of a batch of all ranks: even parts, of which a rank may have the larger; not fewer samples than
 * ranks. */
static void test_largest_batch_of_all(void **state) {
    (void)state;
    bpt_job job = made_job_of(&made.options, BPT_UPDATE_ALLREDUCE, 0, 4, 0);
    job.batch = 100;
    job.batch_all = 400;
    for (uint32_t part = 1; part < 100; part += 7)
        assert_names(&job, bytes_with(job, part, 4 * part), 4 * part);
    assert_string_equal(remedy_of(&job, bytes_with(job, 1, 4) - 1), "not even one sample fits");
}

/* One that is cut by speed is taken to be cut alike, and the others have one sample each at least.
 */
static void test_largest_batch_by_speed(void **state) {
    (void)state;
    bpt_job job = made_job_of(&made.options, BPT_UPDATE_ALLREDUCE, 0, 4, 0);
    job.partition = BPT_PARTITION_IDPA;
    job.batch = 300;
    job.batch_all = 400;
    assert_names(&job, bytes_with(job, 30, 40), 40); /* of 41 it has 31 */
    assert_names(&job, bytes_with(job, 31, 42), 41); /* 30.75, and of 42 31.5 */
    assert_names(&job, bytes_with(job, 1, 4), 4);    /* and not three, of 5 two */
    assert_names(&job, bytes_with(job, 2, 5), 5);    /* of 6 three, and not 4.5 */
    job.batch = 396;
    assert_names(&job, bytes_with(job, 7, 10), 10);
}

/* It is the largest that every rank has room for, with the layers of all too, once it is parted. */
static void check_parts(bpt_update_choice update, unsigned named) {
    bpt_job job = made_job_of(&made.options, update, 0, 4, 0), host;
    assert_int_equal(bpt_model_find_border(made.model, "fc1", &job.parting.border), BPT_OK);
    job.parting.stage = BPT_PARTING_BEFORE;
    job.batch = 100;
    job.batch_all = 400;
    host = job;
    host.parting = (bpt_parting){BPT_PARTING_DONE, true, job.parting.border};
    assert_true(bytes_with(host, 20, 80) > bytes_with(job, 20, 80));
    assert_names(&job, bytes_with(host, 20, 80), named);
}

static void test_largest_batch_in_parts(void **state) {
    (void)state;
    check_parts(BPT_UPDATE_AGWU, 20);
    check_parts(BPT_UPDATE_ALLREDUCE, 80);
}

static void test_other_remedies(void **state) {
    (void)state;
    bpt_job job = made_job_of(&made.options, BPT_UPDATE_AGWU, 2, 3, 1);
    bpt_device device = {.name = "made up"};
    char remedy[BPT_MEMORY_REMEDY_SIZE];
    assert_string_equal(remedy_of(&job, 1000), "give more --servers");
    job = made_job_alone(&made.options);
    job.device = &device;
    bpt_memory_plan plan = made_plan(&job);
    const size_t without_cores = plan.total;
    const bpt_network_memory on_cores = {.total = 1 << 20};
    bpt_memory_plan_add(&plan, &on_cores);
    assert_int_equal(bpt_memory_plan_remedy(&job, &plan, without_cores, remedy), BPT_OK);
    assert_string_equal(remedy, "--device cuda leaves the cores out");
    assert_int_equal(bpt_memory_plan_remedy(&job, &plan, without_cores - 1, remedy), BPT_OK);
    assert_string_equal(remedy, "the largest that fits is --batch-size 7");
}

static void assert_refused(const bpt_job *job, double needs_gb, const char *says,
                           const char *hint) {
    char wanted[120], left[32];
    assert_int_equal(bpt_memory_plan_check(job), BPT_EUSAGE);
    snprintf(wanted, sizeof wanted, "%s %.1f GB of memory, ", says, needs_gb);
    assert_non_null(strstr(bpt_error_last()->text, wanted));
    snprintf(left, sizeof left, " %.1f GB", (double)bpt_memory_plan_limit(job) * 1e-9);
    assert_non_null(strstr(bpt_error_last()->text + strlen(wanted), left));
    snprintf(wanted, sizeof wanted, "%s; --dry-run shows what takes the memory", hint);
    assert_string_equal(bpt_error_last()->hint, wanted);
}

static double gigabytes(const bpt_job *job) {
    return (double)made_plan(job).total * 1e-9;
}

/* Ranks of a machine have even parts of its memory. */
static void test_refusals(void **state) {
    (void)state;
    bpt_job job = made_job_alone(&made.options);
    job.batch = job.batch_all = 200000;
    assert_true(gigabytes(&job) > 3);
    machine_bytes = made_plan(&job).total;
    assert_int_equal(bpt_memory_plan_check(&job), BPT_OK);
    machine_bytes = bytes_with(job, 50001, 50001) - 1;
    assert_refused(&job, gigabytes(&job), "200000 samples a step need",
                   "the largest that fits is --batch-size 50000");
    assert_null(strstr(bpt_error_last()->text, " for each rank on it"));
    machine_bytes *= 2;
    job.ranks_on_host = 2;
    assert_int_equal(bpt_memory_plan_limit(&job), machine_bytes / 2);
    assert_refused(&job, gigabytes(&job), "200000 samples a step need",
                   "the largest that fits is --batch-size 50000");
    assert_non_null(strstr(bpt_error_last()->text, " GB for each rank on it"));
    job.batch = job.batch_all = 1;
    machine_bytes = 1000;
    assert_refused(&job, 0, "1 sample a step needs", "not even one sample fits");
    job = made_job_of(&made.options, BPT_UPDATE_AGWU, 100000, 100001, 1); /* a vector for each */
    assert_true(gigabytes(&job) > 3);
    assert_refused(&job, gigabytes(&job), "a server needs", "give more --servers");
}

/* What the plan leaves of the machine, half of it, is for more of the weights. */
static void test_what_a_rank_may_host(void **state) {
    (void)state;
    const size_t n = made.model->segments.n_elements;
    bpt_job job = made_job_of(&made.options, BPT_UPDATE_AGWU, 1, 4, 0);
    const size_t total = made_plan(&job).total, none = bpt_exchange_bytes(n, 4, 0, &job.terms);
    const size_t whole = bpt_exchange_bytes(n, 4, 1, &job.terms) - none;
    const bpt_memory_plan plan = made_plan(&job);
    machine_bytes = total;
    assert_near(bpt_memory_plan_hosts(&job, &plan), 0.25, 1e-12);
    machine_bytes = total - 1000;
    assert_near(bpt_memory_plan_hosts(&job, &plan), 0.25, 1e-12);
    machine_bytes = total + whole / 2;
    assert_near(bpt_memory_plan_hosts(&job, &plan), 0.5, 1e-3);
    machine_bytes = total + 100 * whole;
    assert_near(bpt_memory_plan_hosts(&job, &plan), 1, 1e-12);
    job.ranks_on_host = 2;
    machine_bytes = 2 * (total + whole / 2);
    assert_near(bpt_memory_plan_hosts(&job, &plan), 0.5, 1e-3);
    job = made_job_of(&made.options, BPT_UPDATE_AGWU, 1, 4, 2);
    assert_near(bpt_memory_plan_hosts(&job, &plan), 0, 0);
    job = made_job_of(&made.options, BPT_UPDATE_AGWU, 2, 4, 2);
    machine_bytes = made_plan(&job).total;
    const bpt_memory_plan of_server = made_plan(&job);
    assert_near(bpt_memory_plan_hosts(&job, &of_server), 0.5, 1e-12);
}

/* ---- the table ---- */

typedef void (*print_fn)(const void *what, FILE *out);

static void print_plan(const void *plan, FILE *out) {
    bpt_memory_plan_print(plan, out);
}

static void print_server(const void *plan, FILE *out) {
    bpt_memory_plan_print_server(plan, out);
}

static void print_device(const void *memory, FILE *out) {
    bpt_memory_plan_print_device(memory, out);
}

static void assert_printed(print_fn print, const void *what, const char *wanted) {
    char *printed = NULL;
    size_t size;
    FILE *out = open_memstream(&printed, &size);
    assert_non_null(out);
    print(what, out);
    fclose(out);
    assert_string_equal(printed, wanted);
    free(printed);
}

#define ROW(name, n) "  " name "               " #n "          0.0 MB\n"

/* Rows that a rank has nothing of are left out. */
static void test_table(void **state) {
    (void)state;
    bpt_memory_plan p = {
        .batch = 1, .batches = 17, .order = 18, .vectors = 19, .exchange = 20, .total = 90};
    assert_printed(print_plan, &p,
                   "memory of a rank, with 1 sample a step:\n" ROW("batches               ", 17)
                       ROW("order of samples      ", 18) ROW("vectors of weights    ", 19)
                           ROW("exchange              ", 20) ROW("total                 ", 90));
    assert_printed(print_server, &p,
                   "memory of a server:\n" ROW("vectors of weights    ", 19)
                       ROW("exchange              ", 20) ROW("total                 ", 90));
    p.network = (bpt_network_memory){11, 12, 13, 14, 15, 16, 81, 99};
    p.batch = 2;
    p.evaluation = 21;
    p.border = 22;
    p.delivery = 23;
    assert_printed(
        print_plan, &p,
        "memory of the rank with the layers of all, with 2 samples a step:\n" ROW(
            "parameters            ", 11) ROW("gradients             ", 12)
            ROW("optimiser state       ", 13) ROW("activations           ", 14)
                ROW("activation gradients  ", 15) ROW("workspaces            ", 16)
                    ROW("network to evaluate   ", 21) ROW("batches of all ranks  ", 22)
                        ROW("batches               ", 17) ROW("order of samples      ", 18)
                            ROW("samples given out     ", 23) ROW("vectors of weights    ", 19)
                                ROW("exchange              ", 20)
                                    ROW("total                 ", 90));
    assert_printed(print_device, &p.network,
                   "memory of the GPU:\n" ROW("parameters            ", 11)
                       ROW("gradients             ", 12) ROW("optimiser state       ", 13)
                           ROW("activations           ", 14) ROW("activation gradients  ", 15)
                               ROW("workspaces            ", 16) ROW("total                 ", 81));
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_largest_batch),
        cmocka_unit_test(test_largest_batch_of_all),
        cmocka_unit_test(test_largest_batch_by_speed),
        cmocka_unit_test(test_largest_batch_in_parts),
        cmocka_unit_test(test_other_remedies),
        cmocka_unit_test(test_refusals),
        cmocka_unit_test(test_what_a_rank_may_host),
        cmocka_unit_test(test_table),
    };
    return cmocka_run_group_tests(tests, made_set_up, made_tear_down);
}
