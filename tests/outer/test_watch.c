/* A rank that comes late to a barrier is named by one of those that wait for it, and once, with the
 * thread of it that hangs; a wait of which parts still move is not told of; and the clocks of ranks
 * on one host are one clock.
 * ctest: TIMEOUT=120 RANKS=2,4 */
#include "base/clock.h"
#include "outer/clock_offset.h"
#include "outer/comm_thread.h"
#include "outer/watch.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* Last: it needs those above, and defines fail and skip. */
#include <cmocka.h>

static bpt_comm *comm;

/* By the MPI thread; counted last. */
static char told_text[512];
static bool told_ends;
static atomic_int n_told;
static char flag[64]; /* a file that is made when somebody has told */

static void tell(const bpt_stall *stall) {
    snprintf(told_text, sizeof told_text, "%s", stall->text);
    told_ends = stall->ends;
    atomic_fetch_add(&n_told, 1);
    FILE *file = fopen(flag, "w");
    if (file) fclose(file);
}

static void share_flag(void) {
    snprintf(flag, sizeof flag, "/tmp/bpt-watch-XXXXXX");
    if (bpt_comm_rank(comm) == 0) {
        const int fd = mkstemp(flag);
        assert_true(fd >= 0 && close(fd) == 0 && unlink(flag) == 0);
    }
    assert_int_equal(bpt_comm_broadcast(comm, 0, flag, sizeof flag), BPT_OK);
}

/* The last rank comes when it has been named. */
static void test_late_rank(void **state) {
    (void)state;
    const uint32_t rank = bpt_comm_rank(comm), last = bpt_comm_size(comm) - 1;
    share_flag();
    bpt_comm_doing(comm, "a test");
    while (rank == last && access(flag, F_OK) != 0) usleep(10000);
    assert_int_equal(bpt_comm_barrier(comm), BPT_OK);
    if (rank == 0) {
        char named[100];
        snprintf(named, sizeof named, " for rank %u on %s (", last, bpt_comm_host(comm, last));
        assert_int_equal(unlink(flag), 0);
        assert_true(atomic_load(&n_told) >= 1); /* more where the machine is slow */
        assert_non_null(strstr(told_text, "rank 0 on "));
        assert_non_null(strstr(told_text, " s at a test for "));
        assert_non_null(strstr(told_text, named));
        assert_false(told_ends);
    }
    if (rank == last) assert_int_equal(atomic_load(&n_told), 0);
}

/* The last rank's own thread gets on, but one that helps it does not: what that is at is named. */
static void test_late_helper(void **state) {
    (void)state;
    const uint32_t rank = bpt_comm_rank(comm), last = bpt_comm_size(comm) - 1;
    share_flag();
    if (rank == last) {
        usleep(300000); /* it is not the one that speaks */
        bpt__comm_help_begin(comm, "a disk");
    }
    while (rank == last && access(flag, F_OK) != 0) {
        bpt_comm_doing(comm, "a test");
        usleep(10000);
    }
    if (rank == last) bpt__comm_help_end(comm);
    assert_int_equal(bpt_comm_barrier(comm), BPT_OK);
    if (rank != 0) return;
    char named[100];
    snprintf(named, sizeof named, " for rank %u on %s (waiting for a disk for ", last,
             bpt_comm_host(comm, last));
    assert_int_equal(unlink(flag), 0);
    assert_non_null(strstr(told_text, named));
}

/* A job of which a part moves at every look, for as long as three warnings would take. */
typedef struct moving {
    bpt__job job;
    uint64_t begin_ns;
    unsigned parts;
} moving;

static bpt_status move_on(bpt__job *job, bool *moved, bool *done) {
    moving *m = (moving *)job;
    bpt__comm_wait_moves(comm);
    m->parts++;
    *moved = false;
    *done = bpt_clock_seconds_since(m->begin_ns) > 3;
    return BPT_OK;
}

static void test_moving_wait(void **state) {
    (void)state;
    moving m = {.job.poll = move_on};
    assert_int_equal(bpt_comm_barrier(comm), BPT_OK);
    const int before = atomic_load(&n_told);
    m.begin_ns = bpt_clock_ns();
    bpt__comm_submit(comm, &m.job);
    assert_int_equal(bpt__comm_join(comm, &m.job), BPT_OK);
    assert_true(m.parts > 3);
    assert_int_equal(atomic_load(&n_told), before);
    assert_int_equal(bpt_comm_barrier(comm), BPT_OK);
}

static void test_clock_offsets(void **state) {
    (void)state;
    bpt_clock_offset offsets[16];
    for (int round = 0; round < 3; round++) {
        memset(offsets, 1, sizeof offsets);
        assert_int_equal(bpt_comm_clock_offsets(comm, offsets), BPT_OK);
        for (uint32_t r = 0; r < bpt_comm_size(comm); r++) {
            if (r > 0 && bpt_comm_rank(comm) == 0) assert_true(offsets[r].error_s > 0);
            assert_true(fabs(offsets[r].ahead_s) <= offsets[r].error_s + 1e-6);
        }
    }
    assert_int_equal(bpt_comm_barrier(comm), BPT_OK); /* it leaves nothing under way */
}

static void test_names(void **state) {
    (void)state;
    static const char *const levels[] = {"funneled", "serialized", "multiple"};
    bool known = false;
    for (int i = 0; i < 3; i++) known = known || !strcmp(bpt_comm_thread_level(comm), levels[i]);
    assert_true(known);
    assert_true(strlen(bpt_comm_library(comm)) > 0);
    assert_null(strchr(bpt_comm_library(comm), ','));
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_late_rank),   cmocka_unit_test(test_late_helper),
        cmocka_unit_test(test_moving_wait), cmocka_unit_test(test_clock_offsets),
        cmocka_unit_test(test_names),
    };
    const bpt_watch_options options = {.warning_s = 1, .exit_status = 1, .tell = tell};
    if (bpt_comm_start_watched(&options, &comm) != BPT_OK) return 1;
    const int failed = cmocka_run_group_tests(tests, NULL, NULL);
    bpt_comm_stop(comm);
    return failed;
}
