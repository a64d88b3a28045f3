/* A rank that comes late to a barrier is named by one of those that wait for it, and once, with the
 * thread of it that hangs; a wait of which parts still move is not told of; and the clocks of ranks
 * on one host are one clock.
 * ctest: TIMEOUT=120 RANKS=2,4 */
#include "base/clock.h"
#include "outer/comm/clock_offset.h"
#include "outer/comm/comm_thread.h"
#include "outer/comm/watch.h"

#include <math.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* Last: it needs those above, and defines fail and skip. */
#include <cmocka.h>

static bpt_comm *comm;

/* What the MPI thread is told to tell. On a slow machine that is more than a test asks for: of
 * ranks that are only late, or before they are. */
typedef struct account {
    char wanted[160]; /* part of the text that names whom a test is about; "": nobody */
    char flag[64];    /* a file that is made when rank 0 has told one that does */
    char text[512];   /* the last one that does */
    bool ends;
    unsigned n_wanted, n; /* texts that do, and all */
} account;

static account told;
static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER; /* guards it */

static void tell(const bpt_stall *stall) {
    pthread_mutex_lock(&mutex);
    told.n++;
    if (told.wanted[0] && strstr(stall->text, told.wanted)) {
        told.n_wanted++;
        snprintf(told.text, sizeof told.text, "%s", stall->text);
        told.ends = stall->ends;
        FILE *file = bpt_comm_rank(comm) == 0 ? fopen(told.flag, "w") : NULL;
        if (file) fclose(file);
    }
    pthread_mutex_unlock(&mutex);
}

/* @param flag shape [sizeof told.flag] */
static void share_flag(char *flag) {
    strcpy(flag, "/tmp/bpt-watch-XXXXXX");
    if (bpt_comm_rank(comm) == 0) {
        const int fd = mkstemp(flag);
        assert_true(fd >= 0 && close(fd) == 0 && unlink(flag) == 0);
    }
    assert_int_equal(bpt_comm_broadcast(comm, 0, flag, sizeof told.flag), BPT_OK);
}

/* @param how the last rank is to be named, what stands behind its host
 * @param[out] flag shape [sizeof told.flag] */
static void want(const char *how, char *flag) {
    const uint32_t last = bpt_comm_size(comm) - 1;
    share_flag(flag);
    pthread_mutex_lock(&mutex);
    snprintf(told.wanted, sizeof told.wanted, " for rank %u on %.64s %s", last,
             bpt_comm_host(comm, last), how);
    told.n_wanted = 0;
    strcpy(told.flag, flag);
    pthread_mutex_unlock(&mutex);
    assert_int_equal(bpt_comm_barrier(comm), BPT_OK); /* all want it */
}

/* @return what has been told of whom was wanted */
static account end_wanting(void) {
    pthread_mutex_lock(&mutex);
    const account a = told;
    told.wanted[0] = '\0';
    pthread_mutex_unlock(&mutex);
    if (bpt_comm_rank(comm) == 0) assert_int_equal(unlink(a.flag), 0);
    return a;
}

/* The last rank comes when it has been named. */
static void test_late_rank(void **state) {
    (void)state;
    char flag[sizeof told.flag];
    const uint32_t rank = bpt_comm_rank(comm), last = bpt_comm_size(comm) - 1;
    bpt_comm_doing(comm, "a test");
    want("(", flag);
    while (rank == last && access(flag, F_OK) != 0) usleep(10000);
    assert_int_equal(bpt_comm_barrier(comm), BPT_OK);
    const account a = end_wanting();
    if (rank == 0) {
        assert_true(a.n_wanted >= 1); /* more where the machine is slow */
        assert_non_null(strstr(a.text, "rank 0 on "));
        assert_non_null(strstr(a.text, " s at a test for "));
        assert_false(a.ends);
    }
    if (rank == last) assert_int_equal(a.n_wanted, 0);
}

/* The last rank's own thread gets on, but one that helps it does not: what that is at is named. */
static void test_late_helper(void **state) {
    (void)state;
    char flag[sizeof told.flag];
    const uint32_t rank = bpt_comm_rank(comm), last = bpt_comm_size(comm) - 1;
    want("(waiting for a disk for ", flag);
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
    (void)end_wanting();
}

/* A job of which a part moves at every look, for as long as three warnings would take. */
typedef struct moving {
    bpt__job job;
    uint64_t begin_ns;
    unsigned parts, n_told; /* at its begin */
    bool told;
} moving;

/* On the MPI thread, which tells: nothing that it was about to tell before is counted. */
static unsigned count_told(void) {
    pthread_mutex_lock(&mutex);
    const unsigned n = told.n;
    pthread_mutex_unlock(&mutex);
    return n;
}

static bpt_status move_on(bpt__job *job, bool *moved, bool *done) {
    moving *m = (moving *)job;
    bpt__comm_wait_moves(comm);
    if (m->parts++ == 0) m->n_told = count_told();
    *moved = false;
    *done = bpt_clock_seconds_since(m->begin_ns) > 3;
    m->told = count_told() != m->n_told;
    return BPT_OK;
}

static void test_moving_wait(void **state) {
    (void)state;
    moving m = {.job.poll = move_on};
    assert_int_equal(bpt_comm_barrier(comm), BPT_OK);
    m.begin_ns = bpt_clock_ns();
    bpt__comm_submit(comm, &m.job);
    assert_int_equal(bpt__comm_join(comm, &m.job), BPT_OK);
    assert_true(m.parts > 3);
    assert_false(m.told);
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
