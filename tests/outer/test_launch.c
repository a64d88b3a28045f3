/* What the environment says about the launcher, and when a world is split. */
#include "outer/comm/launch.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

/* Last: it needs those above, and defines fail and skip. */
#include <cmocka.h>

typedef struct {
    const char *name, *value;
} variable;

static const variable *environment; /* ends with a NULL name */

static const char *look_up(const char *name) {
    for (const variable *v = environment; v->name; v++)
        if (strcmp(v->name, name) == 0) return v->value;
    return NULL;
}

static bpt_launch read_from(const variable *variables) {
    environment = variables;
    return bpt_launch_read(look_up);
}

#define READ(...) read_from((const variable[]){__VA_ARGS__, {NULL, NULL}})

static void test_nobody(void **state) {
    (void)state;
    const bpt_launch launch = READ({"HOME", "/root"});
    assert_null(launch.launcher);
    assert_int_equal(launch.rank, 0);
    assert_int_equal(launch.size, 1);
    assert_int_equal(launch.on_host, 1);
    assert_false(launch.connects);
    assert_false(bpt_launch_is_split(&launch, 1));
}

static void test_open_mpi(void **state) {
    (void)state;
    const bpt_launch launch = READ({"OMPI_COMM_WORLD_SIZE", "6"}, {"OMPI_COMM_WORLD_RANK", "4"},
                                   {"OMPI_COMM_WORLD_LOCAL_SIZE", "2"}, {"PMIX_RANK", "4"});
    assert_int_equal(launch.rank, 4);
    assert_int_equal(launch.size, 6);
    assert_int_equal(launch.on_host, 2);
    assert_true(launch.connects && launch.is_mpirun);
    assert_false(bpt_launch_is_split(&launch, 6));
    assert_true(bpt_launch_is_split(&launch, 1));
}

static void test_sizes(void **state) {
    (void)state;
    static const struct {
        const char *text;
        uint32_t size;
    } rows[] = {{"1", 1}, {"2", 2}, {"9", 9}, {"10", 10}, {"98", 98}, {"4294967295", UINT32_MAX}};
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        const bpt_launch launch = READ({"PMI_SIZE", rows[i].text});
        assert_int_equal(launch.size, rows[i].size);
        assert_int_equal(launch.rank, 0);
        assert_int_equal(launch.on_host, 1);
        assert_true(launch.connects);
        assert_int_equal(bpt_launch_is_split(&launch, 1), rows[i].size > 1);
    }
}

static void test_pmi(void **state) {
    (void)state;
    const bpt_launch launch = READ({"PMI_SIZE", "3"}, {"PMI_RANK", "2"}, {"MPI_LOCALNRANKS", "3"});
    assert_int_equal(launch.rank, 2);
    assert_int_equal(launch.size, 3);
    assert_int_equal(launch.on_host, 3);
    assert_true(launch.connects);
    assert_true(bpt_launch_is_split(&launch, 1));
}

/* Slurm alone says how many there are, and leaves nothing for MPI; with PMIx it does. */
static void test_slurm(void **state) {
    (void)state;
    bpt_launch launch = READ({"SLURM_STEP_NUM_TASKS", "8"}, {"SLURM_PROCID", "5"});
    assert_int_equal(launch.rank, 5);
    assert_int_equal(launch.size, 8);
    assert_false(launch.connects);
    assert_true(bpt_launch_is_split(&launch, 1));
    launch = READ({"SLURM_STEP_NUM_TASKS", "8"}, {"SLURM_PROCID", "5"}, {"PMIX_RANK", "5"});
    assert_true(launch.connects);
    assert_false(bpt_launch_is_split(&launch, 8));
    /* A batch script of many tasks runs a program of one. */
    launch = READ({"SLURM_NTASKS", "8"}, {"SLURM_PROCID", "0"});
    assert_null(launch.launcher);
    assert_false(bpt_launch_is_split(&launch, 1));
}

/* mpirun inside of a job of Slurm: what started the process last counts. */
static void test_nested(void **state) {
    (void)state;
    const bpt_launch launch = READ({"SLURM_STEP_NUM_TASKS", "4"}, {"SLURM_PROCID", "3"},
                                   {"OMPI_COMM_WORLD_SIZE", "1"}, {"OMPI_COMM_WORLD_RANK", "0"});
    assert_int_equal(launch.size, 1);
    assert_int_equal(launch.rank, 0);
    assert_false(bpt_launch_is_split(&launch, 1));
}

static void test_pmix_alone(void **state) {
    (void)state;
    const bpt_launch launch = READ({"PMIX_RANK", "7"});
    assert_int_equal(launch.rank, 7);
    assert_int_equal(launch.size, 1);
    assert_true(launch.connects);
}

static void test_nonsense(void **state) {
    (void)state;
    static const char *const values[] = {"",    "-3", "+3", " 3",         "0",
                                         "two", "2x", "2a", "4294967296", "99999999999999999999"};
    for (size_t i = 0; i < sizeof values / sizeof *values; i++) {
        const bpt_launch launch = READ({"PMI_SIZE", values[i]}, {"SLURM_STEP_NUM_TASKS", "2"});
        assert_int_equal(launch.size, 2); /* of the next kind that makes sense */
        assert_string_equal(launch.launcher, "srun");
        assert_false(launch.is_mpirun);
    }
}

static void test_refusal(void **state) {
    (void)state;
    const bpt_launch launch = READ({"PMI_SIZE", "3"}, {"PMI_RANK", "2"});
    assert_int_equal(bpt_launch_check(&launch, 3, "Open MPI v4.1.4"), BPT_OK);
    assert_int_equal(bpt_launch_check(&launch, 1, "Open MPI v4.1.4"), BPT_EUSAGE);
    assert_non_null(strstr(bpt_error_last()->text, "started 3 processes"));
    assert_non_null(strstr(bpt_error_last()->text, "Open MPI v4.1.4"));
    assert_non_null(strstr(bpt_error_last()->hint, "mpirun"));
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_nobody),     cmocka_unit_test(test_open_mpi),
        cmocka_unit_test(test_sizes),      cmocka_unit_test(test_pmi),
        cmocka_unit_test(test_slurm),      cmocka_unit_test(test_nested),
        cmocka_unit_test(test_pmix_alone), cmocka_unit_test(test_nonsense),
        cmocka_unit_test(test_refusal),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
