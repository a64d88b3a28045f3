/* Without mpirun: a world of one rank, and ending it from inside. ctest: TIMEOUT=30 */
#include "tests/outer/exchange_fixture.h"

#include <sys/wait.h>

#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

/* Last: it needs those above, and defines fail and skip. */
#include <cmocka.h>

/* In a child, before this process has any MPI. */
static int run_and_abort(int exit_status) {
    const pid_t child = fork();
    if (child == 0) {
        if (!freopen("/dev/null", "w", stderr)) _exit(1); /* Open MPI comments on aborts */
        start_mpi();
        bpt_comm_abort(comm, exit_status);
    }
    int status = 0;
    if (child < 0 || waitpid(child, &status, 0) != child || !WIFEXITED(status)) return -1;
    return WEXITSTATUS(status);
}

static int aborted_with;

static void test_abort(void **state) {
    (void)state;
    assert_int_equal(aborted_with, 4);
}

static void test_world_of_one(void **state) {
    (void)state;
    assert_int_equal(bpt_comm_size(comm), 1);
    assert_int_equal(bpt_comm_rank(comm), 0);
    assert_int_equal(bpt_comm_barrier(comm), BPT_OK);
    assert_int_equal(bpt_comm_agree(comm, BPT_OK), BPT_OK);
}

static void test_looks_for_no_networks(void **state) {
    (void)state;
    assert_non_null(getenv("OMPI_MCA_pml"));
    assert_string_equal(getenv("OMPI_MCA_pml"), "ob1");
}

static void test_exchange_with_oneself(void **state) {
    (void)state;
    fixture f;
    fixture_prepare(&f, &bpt_rule_agwu, 100, 30);
    fixture_start(&f);
    for (bpt_reply reply = {0}; !reply.met; reply = fixture_wait(&f)) fixture_push(&f, 10, 0);
    assert_int_equal(f.pushes, 4); /* three to get there, one for the meeting */
    fixture_end(&f);
}

static volatile sig_atomic_t signals;

static void count_signal(int number) {
    (void)number;
    signals++;
}

/* A signal to the process interrupts the main thread, never the one that serves. */
static void test_signals_reach_this_thread(void **state) {
    (void)state;
    struct sigaction act = {.sa_handler = count_signal}, before;
    sigaction(SIGUSR1, &act, &before);
    for (int i = 1; i <= 10; i++) {
        kill(getpid(), SIGUSR1);
        while (signals < i) usleep(100);
        assert_int_equal(bpt_comm_barrier(comm), BPT_OK);
    }
    sigaction(SIGUSR1, &before, NULL);
}

int main(void) {
    unsetenv("OMPI_MCA_pml"); /* of all tests */
    aborted_with = run_and_abort(4);
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_abort),
        cmocka_unit_test(test_world_of_one),
        cmocka_unit_test(test_looks_for_no_networks),
        cmocka_unit_test(test_exchange_with_oneself),
        cmocka_unit_test(test_signals_reach_this_thread),
    };
    return RUN_WITH_MPI(tests);
}
