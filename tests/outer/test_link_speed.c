/* Speeds of links: ranks of one host have none between them. Between hosts: tests/cluster. ctest:
 * TIMEOUT=60 RANKS=1,2,4 */
#include "outer/link_speed.h"
#include "tests/outer/exchange_fixture.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

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

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_one_host_has_no_links)};
    return RUN_WITH_MPI(tests);
}
