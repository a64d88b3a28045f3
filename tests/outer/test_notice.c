/* A rank that is told to stop while all are at their own work: the others hear of it, once it is
 * told and not before; a rank alone hears of itself. A call of MPI is replaced here.
 * ctest: TIMEOUT=60 RANKS=1,2,4 */
#include "base/clock.h"
#include "outer/comm/notice.h"

#include <mpi.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <unistd.h>

/* Last: it needs those above, and defines fail and skip. */
#include <cmocka.h>

static bpt_comm *comm;
static atomic_bool told;
static atomic_uint n_sent; /* notices */

int MPI_Isend(const void *data, int n, MPI_Datatype type, int to, int tag, MPI_Comm world,
              MPI_Request *request) {
    atomic_fetch_add(&n_sent, n == 0);
    return PMPI_Isend(data, n, type, to, tag, world, request);
}

static bool is_told(void) {
    return atomic_load(&told);
}

static void test_notice(void **state) {
    (void)state;
    const uint32_t last = bpt_comm_size(comm) - 1;
    assert_false(bpt_comm_stop_told(comm));
    bpt_comm_pass_stop(comm, is_told);
    usleep(600000); /* two looks: nothing is heard of what nobody was told */
    assert_false(bpt_comm_stop_told(comm));
    assert_int_equal(bpt_comm_barrier(comm), BPT_OK);
    if (bpt_comm_rank(comm) == last) {
        atomic_store(&told, true);
        assert_true(bpt_comm_stop_told(comm)); /* of itself at once */
    }
    const uint64_t begin_ns = bpt_clock_ns();
    while (!bpt_comm_stop_told(comm)) { /* no call of the ranks meanwhile */
        assert_true(bpt_clock_seconds_since(begin_ns) < 30);
        usleep(10000);
    }
    assert_int_equal(bpt_comm_barrier(comm), BPT_OK); /* which no notice is taken for */
    assert_true(bpt_comm_stop_told(comm));            /* for good */
    usleep(600000);                                   /* two looks: each was told once */
    assert_int_equal(atomic_load(&n_sent), bpt_comm_rank(comm) == last ? last : 0);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_notice)};
    if (bpt_comm_start(&comm) != BPT_OK) return 1;
    const int failed = cmocka_run_group_tests(tests, NULL, NULL);
    bpt_comm_stop(comm);
    return failed;
}
