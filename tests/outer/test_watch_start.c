/* The start of a job with a watch: who speaks while MPI connects, and a rank that has no memory for
 * its watch. Calls of MPI are replaced here. ctest: TIMEOUT=60 RANKS=2 */
#include "base/memory.h"
#include "outer/comm/launch.h"
#include "outer/comm/watch.h"

#include <mpi.h>
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

#define RANK_VARIABLE "OMPI_COMM_WORLD_RANK"

static uint32_t rank; /* as the launcher says */
static char told[512];

static void tell(const bpt_stall *stall) {
    snprintf(told, sizeof told, "%s", stall->text);
}

/* Takes long, and changes the environment meanwhile, as MPI does. */
int MPI_Init_thread(int *argc, char ***argv, int required, int *provided) {
    char before[16];
    snprintf(before, sizeof before, "%u", rank);
    setenv(RANK_VARIABLE, "7", 1);
    usleep(1600000);
    setenv(RANK_VARIABLE, before, 1);
    return PMPI_Init_thread(argc, argv, required, provided);
}

/* The last call before the watch is made: rank 1 has no memory from then on. */
int MPI_Comm_split_type(MPI_Comm comm, int type, int key, MPI_Info info, MPI_Comm *part) {
    const int code = PMPI_Comm_split_type(comm, type, key, info, part);
    if (rank == 1) bpt_memory_fail_at(0);
    return code;
}

static void test_no_memory_for_the_watch(void **state) {
    (void)state;
    const bpt_watch_options options = {.warning_s = 1, .exit_status = 1, .tell = tell};
    bpt_comm *comm = NULL;
    rank = bpt_launch_here().rank;
    const bpt_status status = bpt_comm_start_watched(&options, &comm);
    bpt_memory_fail_at(-1);
    assert_int_equal(status, rank == 1 ? BPT_ENOMEM : BPT_EPEER);
    assert_non_null(strstr(bpt_error_last()->text, rank == 1 ? "watch" : "another rank"));
    assert_null(comm);
    assert_int_equal(bpt_memory_live(), 0);

    char text[64];
    snprintf(text, sizeof text, "rank %u: MPI has not connected the 2 ranks after ", rank);
    assert_memory_equal(told, text, strlen(text)); /* how many seconds hangs on the machine */
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_no_memory_for_the_watch)};
    const int failed = cmocka_run_group_tests(tests, NULL, NULL);
    MPI_Finalize(); /* a start that failed leaves it as it is */
    return failed;
}
