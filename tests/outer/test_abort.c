/* The end of a job where MPI does not bring it about. ctest: TIMEOUT=60 */
#include "outer/comm/comm_thread.h"

#include <sys/wait.h>

#include <mpi.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <unistd.h>

/* Last: it needs those above, and defines fail and skip. */
#include <cmocka.h>

enum { PATIENCE_S = 30 }; /* a child that does not end is ended by a signal */

int __wrap_MPI_Abort(MPI_Comm comm, int status);

int __wrap_MPI_Abort(MPI_Comm comm, int status) {
    (void)comm;
    (void)status;
    for (;;) pause();
}

static bpt_comm *start_in_child(void) {
    bpt_comm *comm;
    alarm(PATIENCE_S);
    if (bpt_comm_start(&comm) != BPT_OK) _exit(99);
    return comm;
}

/* As a call of MPI that does not come back. */
_Noreturn static bpt_status hang(bpt__job *job, bool *moved, bool *done) {
    (void)job;
    (void)moved;
    (void)done;
    for (;;) pause();
}

static void abort_with_stuck_thread(void) {
    static bpt__job job = {.poll = hang};
    bpt_comm *comm = start_in_child();
    bpt__comm_submit(comm, &job);
    usleep(200000); /* the thread is in it by then, or will be before it takes another order */
    bpt_comm_abort(comm, 5);
}

static void assert_ended(pid_t child, int exit_status) {
    int status;
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_true(WIFEXITED(status));
    assert_int_equal(WEXITSTATUS(status), exit_status);
}

/* Both at once: each takes its seconds. */
static void test_ends_by_itself(void **state) {
    (void)state;
    const pid_t aborting = fork(); /* before there is MPI here */
    if (aborting == 0) bpt_comm_abort(start_in_child(), 3);
    const pid_t stuck = fork();
    if (stuck == 0) abort_with_stuck_thread();
    assert_ended(aborting, 3);
    assert_ended(stuck, 5);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_ends_by_itself)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
