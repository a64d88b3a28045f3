/* What --check finds in a table of facts, and how it shows it. */
#include "tools/train/check/check_findings.h"
#include "tools/train/check/check_print.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Last: it needs those above, and defines fail and skip. */
#include <cmocka.h>

enum { MAX_FOUND = 16, N = 3 };

static bpt_check_finding found[MAX_FOUND];
static int n_found;

static void keep(void *arg, const bpt_check_finding *finding) {
    (void)arg;
    assert_true(n_found < MAX_FOUND);
    found[n_found++] = *finding;
}

static void allow(bpt_check_facts *f, int first, int n) {
    CPU_ZERO(&f->allowed);
    for (int i = first; i < first + n; i++) CPU_SET(i, &f->allowed);
    f->cores = (uint32_t)n;
}

/* Three hosts with four cores each, and nothing wrong. */
static void make_good(bpt_check_facts *ranks) {
    for (int r = 0; r < N; r++) {
        ranks[r] = (bpt_check_facts){
            .processors = 4,
            .quota = 4,
            .launched = true,
            .has_data = true,
            .data = 77,
            .data_place = {.kind = "ext4"},
            .has_run = true,
            .run_seen = true,
            .run_place = {.kind = "nfs", .network = true, .free_bytes = (uint64_t)50 << 30},
        };
        snprintf(ranks[r].host, sizeof ranks[r].host, "%c", 'a' + r);
        ranks[r].machine = (uint32_t)r;
        snprintf(ranks[r].library, sizeof ranks[r].library, "Open MPI v4.1.4");
        snprintf(ranks[r].thread_level, sizeof ranks[r].thread_level, "multiple");
        snprintf(ranks[r].network, sizeof ranks[r].network, "eth0");
        allow(&ranks[r], 0, 4);
    }
}

static void find(const bpt_check_facts *ranks, uint32_t n) {
    n_found = 0;
    bpt_check_find(ranks, n, keep, NULL);
}

/* Exactly one finding. */
static void assert_finds(const bpt_check_facts *ranks, uint32_t n, bool error, uint32_t rank,
                         const char *what) {
    find(ranks, n);
    assert_int_equal(n_found, 1);
    assert_int_equal(found[0].error, error);
    assert_int_equal(found[0].rank, rank);
    if (!strstr(found[0].what, what)) fail_msg("%s", found[0].what);
    assert_true(strlen(found[0].hint) > 0);
}

static void test_good(void **state) {
    (void)state;
    bpt_check_facts ranks[N];
    make_good(ranks);
    find(ranks, N);
    assert_int_equal(n_found, 0);
    find(ranks, 1);
    assert_int_equal(n_found, 0);
}

static void test_bound(void **state) {
    (void)state;
    bpt_check_facts ranks[N];
    make_good(ranks);
    allow(&ranks[1], 2, 1);
    assert_finds(ranks, N, false, 1, "bound to one core, and no rank may use 3 of the host's 4");
    assert_non_null(strstr(found[0].hint, "--bind-to none"));
    ranks[1].threads = 1; /* that is what it wants */
    find(ranks, N);
    assert_int_equal(n_found, 0);
    ranks[1].threads = 4;
    allow(&ranks[1], 0, 2);
    assert_finds(ranks, N, false, 1, "may use 2 cores for 4 threads");
    assert_non_null(strstr(found[0].hint, "--bind-to none"));
}

/* Nothing that mpirun could be told. */
static void test_bound_without_mpirun(void **state) {
    (void)state;
    bpt_check_facts ranks[N];
    make_good(ranks);
    ranks[0].launched = false;
    allow(&ranks[0], 2, 1);
    assert_finds(ranks, 1, false, 0, "bound to one core, and no rank may use 3 of the host's 4");
    assert_null(strstr(found[0].hint, "mpirun"));
    ranks[0].threads = 4;
    allow(&ranks[0], 0, 2);
    assert_finds(ranks, 1, false, 0, "may use 2 cores for 4 threads");
    assert_null(strstr(found[0].hint, "mpirun"));
    assert_non_null(strstr(found[0].hint, "lower --threads"));
}

static void test_quota(void **state) {
    (void)state;
    bpt_check_facts ranks[N];
    make_good(ranks);
    ranks[2].quota = 1;
    ranks[2].threads = 1;
    find(ranks, N);
    assert_int_equal(n_found, 0);
    ranks[2].threads = 2;
    assert_finds(ranks, N, false, 2, "has the time of 1 core for 2 threads");
    assert_non_null(strstr(found[0].hint, "--threads"));
}

/* Two ranks on a host of two cores, one each: nothing is lost. */
static void test_bound_to_all(void **state) {
    (void)state;
    bpt_check_facts ranks[N];
    make_good(ranks);
    for (int r = 0; r < 2; r++) {
        ranks[r].machine = 0;
        ranks[r].processors = 2;
        allow(&ranks[r], r, 1);
    }
    find(ranks, 2);
    assert_int_equal(n_found, 0);
    allow(&ranks[1], 0, 1); /* both on the same one */
    find(ranks, 2);
    assert_int_equal(n_found, 2);
}

static void test_more_ranks_than_processors(void **state) {
    (void)state;
    bpt_check_facts ranks[N];
    make_good(ranks);
    for (int r = 1; r < N; r++) {
        ranks[r].machine = 1;
        ranks[r].processors = 1;
        allow(&ranks[r], 0, 1);
        ranks[r].threads = 1;
    }
    assert_finds(ranks, N, false, 1,
                 "is one of 2 ranks on its host, which share the time of 1 processor");
    for (int r = 1; r < N; r++) {
        ranks[r].processors = 2;
        allow(&ranks[r], 0, 2);
    }
    find(ranks, N);
    assert_int_equal(n_found, 0);
    ranks[1].quota = ranks[2].quota = 1; /* a container with the time of one */
    assert_finds(ranks, N, false, 1,
                 "is one of 2 ranks on its host, which share the time of 1 processor");
    ranks[2].serves = true;
    find(ranks, N);
    assert_int_equal(n_found, 0);
}

static void test_libraries(void **state) {
    (void)state;
    bpt_check_facts ranks[N];
    make_good(ranks);
    strcpy(ranks[1].library, "Open MPI v4.1.6");
    assert_finds(ranks, N, false, 1, "Open MPI v4.1.6");
}

static void test_clocks(void **state) {
    (void)state;
    bpt_check_facts ranks[N];
    make_good(ranks);
    ranks[1].clock_ahead_s = -3.25;
    assert_finds(ranks, N, false, 1, "3.2 s behind");
    ranks[1].clock_ahead_s = 1.5;
    assert_finds(ranks, N, false, 1, "1.5 s ahead of");
    ranks[1].clock_error_s = 1; /* not known so well */
    find(ranks, N);
    assert_int_equal(n_found, 0);
}

static void test_files(void **state) {
    (void)state;
    bpt_check_facts ranks[N];
    make_good(ranks);
    for (int r = 0; r < N; r++) ranks[r].model = 5;
    find(ranks, N);
    assert_int_equal(n_found, 0);
    ranks[2].model = 6;
    assert_finds(ranks, N, true, 2, "another model than rank 0 on a");
    ranks[2].model = 0; /* and the others' are alike */
    strcpy(ranks[2].model_refusal.what, "no file m.yaml");
    strcpy(ranks[2].model_refusal.hint, "copy it");
    assert_finds(ranks, N, true, 2, "no file m.yaml");
    assert_string_equal(found[0].hint, "copy it");
    ranks[2].model = 5;
    ranks[0].model = 0; /* the first that has one is what the others are held to */
    ranks[0].model_refusal = ranks[2].model_refusal;
    ranks[2].model_refusal = (bpt_check_refusal){0};
    assert_finds(ranks, N, true, 0, "no file m.yaml");
    make_good(ranks);
    strcpy(ranks[1].tuned_refusal.what, "t.yaml is no such file");
    strcpy(ranks[1].tuned_refusal.hint, "leave it out");
    assert_finds(ranks, 2, true, 1, "t.yaml");
}

static void test_bridges(void **state) {
    (void)state;
    bpt_check_facts ranks[N];
    make_good(ranks);
    strcpy(ranks[2].network, "eth0, docker0");
    assert_finds(ranks, N, false, 2, "docker0");
    static const char *const others[] = {"virbr0", "br-1a2b", "lxcbr0",
                                         "lxdbr0", "podman1", "cni0"};
    for (size_t i = 0; i < sizeof others / sizeof *others; i++) {
        strcpy(ranks[2].network, others[i]);
        assert_finds(ranks, N, false, 2, others[i]);
    }
    strcpy(ranks[2].network, "eth0, bond0, br0"); /* a bridge of one's own is no bad sign */
    find(ranks, N);
    assert_int_equal(n_found, 0);
}

static void test_data(void **state) {
    (void)state;
    bpt_check_facts ranks[N];
    make_good(ranks);
    ranks[1].data = 78;
    assert_finds(ranks, N, true, 1, "has another dataset than rank 0 on a");
    make_good(ranks);
    ranks[0].data = 78; /* rank 0 is the odd one */
    assert_finds(ranks, N, true, 0, "has another dataset than rank 1 on b");
    make_good(ranks);
    ranks[2].data = 0;
    strcpy(ranks[2].data_refusal.what, "/data is not there");
    assert_finds(ranks, N, true, 2, "/data is not there");
    assert_string_equal(found[0].hint, "the dataset has to be at the same path on every host");
    find(ranks + 2, 1); /* alone, or as all others: it may not have been made yet */
    assert_int_equal(n_found, 1);
    assert_non_null(strstr(found[0].hint, "bpt-ingest makes one"));
    for (int r = 0; r < N; r++) ranks[r].has_data = false;
    find(ranks, N);
    assert_int_equal(n_found, 0);
}

static void test_run_folder(void **state) {
    (void)state;
    bpt_check_facts ranks[N];
    make_good(ranks);
    ranks[2].run_seen = false;
    assert_finds(ranks, N, true, 2, "does not see the run folder's place of rank 0");
    make_good(ranks);
    ranks[0].run_place.free_bytes = 3 << 20;
    assert_finds(ranks, N, true, 0, "is full: 3.1 MB are free");
    ranks[0].run_place.free_bytes = 300 << 20;
    assert_finds(ranks, N, false, 0, "is nearly full: 315 MB are free");
    ranks[0].run_need = (bpt_run_need){.least = 400 << 20, .most = 400 << 20};
    assert_finds(ranks, N, true, 0, "has room for 314.6 MB, the weights take 419.4 MB");
    ranks[0].run_place.free_bytes = 3 << 20; /* what is needed says more than that it is full */
    assert_finds(ranks, N, true, 0, "has room for 3.1 MB, the weights take 419.4 MB");
    ranks[0].run_place.free_bytes = 300 << 20;
    ranks[0].run_frees = 50 << 20;
    assert_finds(ranks, N, true, 0, "room for 367.0 MB with what is removed, the weights take");
    ranks[0].run_frees = 200 << 20;
    assert_finds(ranks, N, false, 0, "is nearly full: 524 MB are free with what is removed");
    ranks[0].run_frees = (uint64_t)2 << 30;
    find(ranks, N);
    assert_int_equal(n_found, 0);
    ranks[0].run_need = (bpt_run_need){1, (uint64_t)1 << 30, (uint64_t)60 << 30, false};
    assert_finds(ranks, N, false, 0, "room for 2462.1 MB with what is removed, checkpoints and");
    assert_string_equal(found[0].hint, "make room meanwhile");
    ranks[0].run_need.fewer = true;
    assert_finds(ranks, N, false, 0, "checkpoints and weights take");
    assert_string_equal(found[0].hint, "make room meanwhile, or lower --checkpoint-keep");
    ranks[0].run_need.least = (uint64_t)55 << 30;
    assert_finds(ranks, N, true, 0, "the weights and a checkpoint take 59055.8 MB");
    ranks[0].run_finished = true; /* nothing is written: the other ranks need not even see it */
    ranks[1].run_seen = ranks[2].run_seen = false;
    find(ranks, N);
    assert_int_equal(n_found, 0);
    make_good(ranks);
    strcpy(ranks[0].run_refusal.what, "cannot write to /x");
    strcpy(ranks[0].run_refusal.hint, "name another");
    ranks[1].run_seen = ranks[2].run_seen = false; /* of course: one finding for one cause */
    assert_finds(ranks, N, true, 0, "cannot write to /x");
}

static void test_stage(void **state) {
    (void)state;
    bpt_check_facts ranks[N];
    make_good(ranks);
    for (int r = 0; r < N; r++) {
        ranks[r].has_stage = true;
        ranks[r].stage_need = 100 << 20;
        ranks[r].stage_place = (bpt_file_system){.kind = "xfs", .free_bytes = 300 << 20};
    }
    find(ranks, N);
    assert_int_equal(n_found, 0);
    ranks[1].stage_place.free_bytes = 99 << 20;
    assert_finds(ranks, N, true, 1, "has room for 103.8 MB, 104.9 MB are to be copied");
    ranks[2].machine = 1; /* ranks of one host share a copy: the first of them speaks */
    ranks[2].stage_place.free_bytes = 99 << 20;
    assert_finds(ranks, N, true, 1, "has room for 103.8 MB, 104.9 MB are to be copied");
    ranks[1].has_stage = false;
    assert_finds(ranks, N, true, 2, "has room for 103.8 MB, 104.9 MB are to be copied");
    ranks[2].stage_place = (bpt_file_system){.kind = "nfs", .network = true, .free_bytes = 1 << 30};
    assert_finds(ranks, N, false, 2, "its copy of the dataset is on a network file system (nfs)");
    strcpy(ranks[2].stage_error, "cannot write to /s");
    assert_finds(ranks, N, true, 2, "cannot write to /s");
}

/* Rank 0 has the dataset, the others have room for what it gives them. */
static void make_scattered(bpt_check_facts *ranks) {
    make_good(ranks);
    for (int r = 1; r < N; r++) {
        ranks[r].has_data = false;
        ranks[r].has_scratch = true;
        ranks[r].scratch_even = 100 << 20;
        ranks[r].scratch_most = 280 << 20;
        ranks[r].scratch_place = (bpt_file_system){.kind = "xfs", .free_bytes = 300 << 20};
    }
}

static void test_scratch(void **state) {
    (void)state;
    bpt_check_facts ranks[N];
    make_scattered(ranks);
    find(ranks, N);
    assert_int_equal(n_found, 0);
    ranks[2].scratch_place.free_bytes = 99 << 20;
    assert_finds(ranks, N, true, 2, "has room for 103.8 MB of samples, even shares take 104.9 MB");
    ranks[2].scratch_there = 2 << 20; /* what is there needs no room */
    assert_finds(ranks, N, false, 2, "all that may be given to it takes 293.6 MB");
    make_scattered(ranks);
    ranks[1].scratch_place =
        (bpt_file_system){.kind = "nfs", .network = true, .free_bytes = 1u << 30};
    assert_finds(ranks, N, false, 1, "on a network file system (nfs)");
    make_scattered(ranks);
    strcpy(ranks[1].scratch_error, "scratch folder /s holds images of another dataset");
    assert_finds(ranks, N, true, 1, "images of another dataset");
    make_scattered(ranks);
    ranks[0].data = 0;
    strcpy(ranks[0].data_refusal.what, "/data is not there");
    assert_finds(ranks, N, true, 0, "/data is not there");
    assert_non_null(strstr(found[0].hint, "rank 0 has to have the dataset"));
}

/* Ranks of one host share its disk: one of them says so. */
static void test_scratch_of_one_host(void **state) {
    (void)state;
    bpt_check_facts ranks[N];
    make_scattered(ranks);
    ranks[2].machine = 1;
    assert_finds(ranks, N, false, 1, "given to it of each of its 2 ranks takes 587.2 MB");
    ranks[1].scratch_place.free_bytes = ranks[2].scratch_place.free_bytes = 150 << 20;
    assert_finds(ranks, N, true, 1, "even shares of each of its 2 ranks take 209.7 MB");
    ranks[2].machine = 2; /* of the same name */
    strcpy(ranks[2].host, ranks[1].host);
    find(ranks, N);
    for (int i = 0; i < n_found; i++) assert_null(strstr(found[i].what, "of its 2 ranks"));
}

static void test_print_scratch(void **state) {
    (void)state;
    bpt_check_facts ranks[N];
    make_scattered(ranks);
    char *text = NULL;
    size_t size = 0;
    FILE *out = open_memstream(&text, &size);
    assert_int_equal(bpt_check_print(ranks, N, out), 0);
    assert_int_equal(fclose(out), 0);
    assert_non_null(strstr(text, "  scratch                 run folder\n"));
    assert_non_null(strstr(text, "  xfs local, 0.3 GB free  nfs network, "));
    free(text);
    make_good(ranks);
    out = open_memstream(&text, &size);
    assert_int_equal(bpt_check_print(ranks, N, out), 0);
    assert_int_equal(fclose(out), 0);
    assert_null(strstr(text, "scratch"));
    free(text);
}

static void test_print(void **state) {
    (void)state;
    bpt_check_facts ranks[N];
    make_good(ranks);
    allow(&ranks[1], 2, 1);
    ranks[2].data = 0;
    strcpy(ranks[2].data_refusal.what, "/data is not there");
    char *text = NULL;
    size_t size = 0;
    FILE *out = open_memstream(&text, &size);
    assert_int_equal(bpt_check_print(ranks, N, out), 1);
    assert_int_equal(fclose(out), 0);
    assert_non_null(strstr(text, "rank  host  cores         mpi "));
    assert_non_null(strstr(text, "\n1     b     1 of 4 bound  multiple  eth0 "));
    assert_non_null(strstr(text, "\nwarning: rank 1 on b: is bound to one core"));
    assert_non_null(strstr(text, "\nerror: rank 2 on c: /data is not there. hint: "));
    assert_non_null(strstr(text, "\n3 ranks with Open MPI v4.1.4: 1 error, 1 warning\n"));
    free(text);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_good),
        cmocka_unit_test(test_bound_without_mpirun),
        cmocka_unit_test(test_bound),
        cmocka_unit_test(test_bound_to_all),
        cmocka_unit_test(test_quota),
        cmocka_unit_test(test_more_ranks_than_processors),
        cmocka_unit_test(test_libraries),
        cmocka_unit_test(test_clocks),
        cmocka_unit_test(test_bridges),
        cmocka_unit_test(test_files),
        cmocka_unit_test(test_data),
        cmocka_unit_test(test_run_folder),
        cmocka_unit_test(test_print),
        cmocka_unit_test(test_stage),
        cmocka_unit_test(test_scratch),
        cmocka_unit_test(test_print_scratch),
        cmocka_unit_test(test_scratch_of_one_host),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
