/* Who watches messages is told of all that are received from then on, and of none once the watch
 * has ended. ctest: TIMEOUT=60 RANKS=1,2,3 */
#include "base/clock.h"
#include "outer/comm/message_watch.h"
#include "outer/exchange/reduction.h"
#include "tests/outer/exchange_fixture.h"

#include <semaphore.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

enum { N = 3 << 17 }; /* as many for each of the ranks, whatever shards are aligned to */

/* Written by the MPI thread, read where nothing is under way. */
typedef struct {
    uint64_t received, sent, n;
    uint64_t after_ns;
    bool wrong;
} tally;

static void count(void *arg, const bpt_message *m) {
    tally *t = arg; /* asserts belong to the test's own thread */
    *(m->sent ? &t->sent : &t->received) += m->bytes;
    t->n++;
    t->wrong = t->wrong || m->begin_ns > m->end_ns || m->end_ns < t->after_ns || m->bytes == 0 ||
               m->peer >= bpt_comm_size(comm);
}

static void summed(void *context, uint32_t bucket, bpt_status status) {
    (void)bucket;
    (void)status; /* stats_get() has it */
    sem_post(context);
}

/* All that is to be received of it is there when this returns; what was sent may be seen to be
 * complete later. */
static void step(bpt_reduction *r, sem_t *done) {
    bpt_reduction_give(r, 0);
    bpt_reduction_wait_begin(r);
    while (sem_wait(done) != 0) {
    }
    bpt_reduction_wait_end(r);
}

static void test_while_it_is_watched(void **state) {
    (void)state;
    enum { STEPS = 4 };
    const size_t begin[] = {0, N};
    sem_t done;
    bpt_reduction *r;
    bpt_reduction_stats stats;
    assert_int_equal(sem_init(&done, 0, 0), 0);
    const bpt_reduction_options options = {1, begin, summed, &done};
    assert_int_equal(bpt_reduction_create(comm, &options, &r), BPT_OK); /* before the watch */
    tally t = {0};
    step(r, &done);
    t.after_ns = bpt_clock_ns();
    bpt_comm_watch_messages(comm, count, &t);
    assert_int_equal(bpt_comm_barrier(comm), BPT_OK); /* nobody's next step comes earlier */
    step(r, &done);
    step(r, &done);
    bpt_comm_watch_messages(comm, NULL, NULL);
    assert_int_equal(bpt_comm_barrier(comm), BPT_OK);
    const tally watched = t;
    step(r, &done);
    bpt_reduction_stats_get(r, &stats);
    const uint64_t m = bpt_comm_size(comm); /* what stays on the rank is in the counts */
    assert_int_equal(watched.received, stats.received_bytes / STEPS * 2 / m * (m - 1));
    assert_int_equal(watched.sent > 0, m > 1);
    assert_false(watched.wrong);
    assert_int_equal(t.n, watched.n);
    assert_int_equal(bpt_reduction_destroy(r), BPT_OK);
    sem_destroy(&done);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_while_it_is_watched)};
    return RUN_WITH_MPI(tests);
}
