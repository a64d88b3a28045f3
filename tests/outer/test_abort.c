/* The end of a job where MPI does not bring it about. ctest: TIMEOUT=60 */
#include "outer/comm.h"

#include <sys/wait.h>

#include <mpi.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <unistd.h>

/* Last: it needs those above, and defines fail and skip. */
#include <cmocka.h>

int __wrap_MPI_Abort(MPI_Comm comm, int status);

int __wrap_MPI_Abort(MPI_Comm comm, int status) {
    (void)comm;
    (void)status;
    for (;;) pause();
}

static void test_ends_by_itself(void **state) {
    (void)state;
    const pid_t child = fork(); /* before there is MPI here */
    if (child == 0) {
        bpt_comm *comm;
        if (bpt_comm_start(&comm) != BPT_OK) _exit(99);
        bpt_comm_abort(comm, 3);
    }
    int status;
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_true(WIFEXITED(status));
    assert_int_equal(WEXITSTATUS(status), 3);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_ends_by_itself)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
