/* Collectives of the MPI thread. ctest: TIMEOUT=30 RANKS=1,2,4 */
#include "base/clock.h"
#include "base/memory.h"
#include "outer/comm/comm_state.h"
#include "outer/comm/transfers.h"
#include "tests/outer/exchange_fixture.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

/* Last: it needs those above, and defines fail and skip. */
#include <cmocka.h>

static char network[64] = "none"; /* that was named before the start */

static void test_world(void **state) {
    (void)state;
    char host[64] = "";
    gethostname(host, sizeof host - 1);
    assert_true(bpt_comm_rank(comm) < bpt_comm_size(comm));
    for (uint32_t r = 0; r < bpt_comm_size(comm); r++)
        assert_string_equal(bpt_comm_host(comm, r), host);
    for (uint32_t r = 0; r < bpt_comm_size(comm); r++) { /* all are on this machine */
        assert_true(bpt_comm_together(comm, r, bpt_comm_rank(comm)));
        assert_int_equal(comm->ways[r].chunk_bytes, bpt__way_memory.chunk_bytes);
        assert_int_equal(comm->ways[r].in_flight, bpt__way_memory.in_flight);
    }
    const char *now = getenv("OMPI_MCA_pml"); /* which network is used is for mpirun to say */
    assert_string_equal(now ? now : "none", network);
    bpt_comm *second = NULL;
    assert_int_equal(bpt_comm_start(&second), BPT_EUSAGE);
    assert_null(second);
}

static void test_allgather(void **state) {
    (void)state;
    const uint32_t m = bpt_comm_size(comm), rank = bpt_comm_rank(comm);
    for (uint32_t round = 0; round < 50; round++) {
        const uint32_t mine[2] = {rank, round * rank};
        uint32_t all[16][2];
        assert_int_equal(bpt_comm_allgather(comm, mine, sizeof mine, all), BPT_OK);
        for (uint32_t r = 0; r < m; r++) {
            assert_int_equal(all[r][0], r);
            assert_int_equal(all[r][1], round * r);
        }
    }
    assert_int_equal(bpt_comm_allgather(comm, NULL, (size_t)1 << 31, NULL), BPT_EUSAGE);
}

/* Where one rank lacks the memory for it no other goes on to wait. */
static void test_table(void **state) {
    (void)state;
    const uint32_t m = bpt_comm_size(comm), rank = bpt_comm_rank(comm);
    const uint32_t mine[2] = {rank, 7};
    uint32_t(*all)[2] = NULL;
    if (rank == m - 1) bpt_memory_fail_at(0);
    const bpt_status status = bpt_comm_table(comm, "a table", mine, sizeof mine, (void **)&all);
    bpt_memory_fail_at(-1);
    assert_int_equal(status, rank == m - 1 ? BPT_ENOMEM : BPT_EPEER);
    assert_null(all);
    assert_int_equal(bpt_comm_table(comm, "a table", mine, sizeof mine, (void **)&all), BPT_OK);
    for (uint32_t r = 0; r < m; r++) {
        assert_int_equal(all[r][0], r);
        assert_int_equal(all[r][1], 7);
    }
    bpt_free(all);
}

static void test_any(void **state) {
    (void)state;
    const uint32_t m = bpt_comm_size(comm), rank = bpt_comm_rank(comm);
    bool any = true;
    assert_int_equal(bpt_comm_any(comm, false, &any), BPT_OK);
    assert_false(any);
    for (uint32_t r = 0; r < m; r++) {
        assert_int_equal(bpt_comm_any(comm, rank == r, &any), BPT_OK);
        assert_true(any);
    }
}

static void test_broadcast_from_each_rank(void **state) {
    (void)state;
    const uint32_t m = bpt_comm_size(comm), rank = bpt_comm_rank(comm);
    enum { N = 100000 };
    uint32_t *data = calloc(N, sizeof *data);
    for (uint32_t root = 0; root < m; root++) {
        for (uint32_t i = 0; i < N; i++) data[i] = rank == root ? i * (root + 1) : 0;
        assert_int_equal(bpt_comm_broadcast(comm, root, data, N * sizeof *data), BPT_OK);
        for (uint32_t i = 0; i < N; i++) assert_true(data[i] == i * (root + 1));
    }
    assert_int_equal(bpt_comm_broadcast(comm, 0, data, 0), BPT_OK);
    free(data);
}

static void test_barrier_waits_for_the_last(void **state) {
    (void)state;
    const uint32_t m = bpt_comm_size(comm), rank = bpt_comm_rank(comm);
    if (rank == m - 1) nanosleep(&(struct timespec){.tv_nsec = 50000000}, NULL);
    const uint64_t entered = bpt_clock_ns();
    assert_int_equal(bpt_comm_barrier(comm), BPT_OK);
    const uint64_t left = bpt_clock_ns();
    uint64_t all_entered[16]; /* one host: one clock */
    assert_int_equal(bpt_comm_allgather(comm, &entered, sizeof entered, all_entered), BPT_OK);
    for (uint32_t r = 0; r < m; r++) assert_true(left >= all_entered[r]);
}

static void test_agree(void **state) {
    (void)state;
    const uint32_t m = bpt_comm_size(comm), rank = bpt_comm_rank(comm);
    assert_int_equal(bpt_comm_agree(comm, BPT_OK), BPT_OK);
    for (uint32_t bad = 0; bad < m; bad++) {
        bpt_status mine = BPT_OK;
        if (rank == bad) {
            mine = bpt_fail(BPT_ENOSPC, "cannot write ckpt-%u: no space", bad);
            bpt_hint("free some space");
        }
        const bpt_status status = bpt_comm_agree(comm, mine);
        assert_int_equal(status, rank == bad ? BPT_ENOSPC : BPT_EPEER);
        char expected[256];
        if (rank == bad)
            snprintf(expected, sizeof expected, "cannot write ckpt-%u: no space", bad);
        else
            snprintf(expected, sizeof expected,
                     "rank %u on %s failed: cannot write ckpt-%u: no space", bad,
                     bpt_comm_host(comm, bad), bad);
        assert_string_equal(bpt_error_last()->text, expected);
        assert_string_equal(bpt_error_last()->hint, "free some space");
    }
}

/* All fail, each for its own reason: each keeps its own. */
static void test_agree_where_all_failed(void **state) {
    (void)state;
    char text[64];
    snprintf(text, sizeof text, "reason %u", bpt_comm_rank(comm));
    assert_int_equal(bpt_comm_agree(comm, bpt_fail(BPT_EDATA, "%s", text)), BPT_EDATA);
    assert_string_equal(bpt_error_last()->text, text);
}

int main(void) {
    if (getenv("OMPI_MCA_pml")) snprintf(network, sizeof network, "%s", getenv("OMPI_MCA_pml"));
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_world),
        cmocka_unit_test(test_allgather),
        cmocka_unit_test(test_table),
        cmocka_unit_test(test_any),
        cmocka_unit_test(test_broadcast_from_each_rank),
        cmocka_unit_test(test_barrier_waits_for_the_last),
        cmocka_unit_test(test_agree),
        cmocka_unit_test(test_agree_where_all_failed),
    };
    return RUN_WITH_MPI(tests);
}
