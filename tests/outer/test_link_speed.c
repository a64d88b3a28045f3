/* Speeds of links: ranks of one machine have none between them, whatever its name is. Who measures
 * with whom is in test_link_pairs, what comes of it in tests/cluster. ctest: TIMEOUT=60 RANKS=1,2,4
 */
#include "base/memory.h"
#include "outer/comm/comm_state.h"
#include "outer/placement/link_speed.h"
#include "tests/outer/exchange_fixture.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

static void test_one_host_has_no_links(void **state) {
    (void)state;
    double speed[16];
    assert_true(bpt_comm_size(comm) <= 16);
    for (int again = 0; again < 2; again++) {
        for (int r = 0; r < 16; r++) speed[r] = -1;
        assert_int_equal(bpt_comm_link_speeds(comm, speed), BPT_OK);
        for (uint32_t r = 0; r < bpt_comm_size(comm); r++) assert_true(speed[r] == 0);
    }
}

/* What tells machines apart is what MPI reaches through memory, not their names. */
static void test_names_are_no_machines(void **state) {
    (void)state;
    double speed[16];
    const uint32_t m = bpt_comm_size(comm);
    for (uint32_t r = 0; r < m; r++) snprintf(comm->hosts[r], BPT__HOST_SIZE, "host-%u", r);
    assert_int_equal(bpt_comm_link_speeds(comm, speed), BPT_OK);
    for (uint32_t r = 0; r < m; r++) assert_true(speed[r] == 0);

    for (uint32_t r = 0; r < m; r++) strcpy(comm->hosts[r], "localhost");
    for (uint32_t r = 0; r < m; r++) comm->first_near[r] = r; /* each on a machine of its own */
    assert_int_equal(bpt_comm_link_speeds(comm, speed), BPT_OK);
    for (uint32_t r = 0; r < m; r++) assert_true(m == 1 ? speed[r] == 0 : speed[r] > 0);
    memset(comm->first_near, 0, m * sizeof *comm->first_near);
}

/* The n-th allocation of every rank fails, n = 0, 1, 2, ... until none does. */
static void test_no_memory(void **state) {
    (void)state;
    const uint64_t live = bpt_memory_live();
    double speed[16];
    bpt_status status = BPT_ENOMEM;
    int n = 0;
    for (; status != BPT_OK; n++) {
        bpt_memory_fail_at(n);
        status = bpt_comm_link_speeds(comm, speed);
        bpt_memory_fail_at(-1);
        assert_true(status == BPT_OK || status == BPT_ENOMEM || status == BPT_EPEER);
        assert_int_equal(bpt_memory_live(), live);
    }
    assert_int_equal(n, 3);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_one_host_has_no_links),
        cmocka_unit_test(test_names_are_no_machines),
        cmocka_unit_test(test_no_memory),
    };
    return RUN_WITH_MPI(tests);
}
