/* Sums over all ranks, bucket by bucket: right and the same everywhere, in whatever order and by
 * whichever thread buckets are given. ctest: TIMEOUT=60 RANKS=1,2,3,4 */
#include "base/memory.h"
#include "base/random.h"
#include "outer/comm/comm_state.h"
#include "outer/exchange/reduction.h"
#include "tests/outer/exchange_fixture.h"

#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

enum { MAX_BUCKETS = 8 };

static struct {
    pthread_mutex_t mutex;
    pthread_cond_t changed;
    uint32_t summed[MAX_BUCKETS]; /* times */
    bpt_status status;
    bool other_context;
} seen = {.mutex = PTHREAD_MUTEX_INITIALIZER, .changed = PTHREAD_COND_INITIALIZER};

static void note(void *context, uint32_t bucket, bpt_status status) {
    pthread_mutex_lock(&seen.mutex); /* asserts belong to the test's own thread */
    seen.other_context = seen.other_context || context != &seen;
    seen.summed[bucket]++;
    if (status != BPT_OK) seen.status = status;
    pthread_cond_signal(&seen.changed);
    pthread_mutex_unlock(&seen.mutex);
}

static void await(uint32_t n_buckets, uint32_t times) {
    pthread_mutex_lock(&seen.mutex);
    for (uint32_t b = 0; b < n_buckets; b++)
        while (seen.summed[b] < times) pthread_cond_wait(&seen.changed, &seen.mutex);
    pthread_mutex_unlock(&seen.mutex);
}

/* Powers of two apart, so that another order of sums would show in the last bits. */
static float value_of(uint32_t rank, uint32_t step, size_t i) {
    return (1.0F + (float)((i * 31 + step) % 97) / 97) / (float)(1u << (7 * rank));
}

typedef struct giver {
    bpt_reduction *r;
    const uint32_t *order;
    uint32_t begin, end;
} giver;

static void *give(void *argument) {
    const giver *g = argument;
    for (uint32_t i = g->begin; i < g->end; i++) bpt_reduction_give(g->r, g->order[i]);
    return NULL;
}

/* Half of the buckets by another thread, in an order of this rank's own. */
static void one_step(bpt_reduction *r, const size_t *begin, uint32_t n_buckets, uint32_t step) {
    const uint32_t rank = bpt_comm_rank(comm), m = bpt_comm_size(comm);
    float *vector = bpt_reduction_vector(r);
    uint32_t order[MAX_BUCKETS];
    pthread_t thread;
    bpt_random_permutation(rank, BPT_PURPOSE_TEST, step, order, n_buckets);
    for (size_t i = 0; i < begin[n_buckets]; i++) vector[i] = value_of(rank, step, i);
    giver other = {r, order, 0, n_buckets / 2}, self = {r, order, n_buckets / 2, n_buckets};
    assert_int_equal(pthread_create(&thread, NULL, give, &other), 0);
    give(&self);
    bpt_reduction_wait_begin(r);
    await(n_buckets, step + 1);
    bpt_reduction_wait_end(r);
    assert_int_equal(pthread_join(thread, NULL), 0);
    for (size_t i = 0; i < begin[n_buckets]; i++) {
        float sum = value_of(0, step, i);
        for (uint32_t j = 1; j < m; j++) sum += value_of(j, step, i);
        assert_true(vector[i] == sum);
    }
}

static uint64_t sum_over_ranks(uint64_t mine) {
    uint64_t all[16], sum = 0;
    assert_int_equal(bpt_comm_allgather(comm, &mine, sizeof mine, all), BPT_OK);
    for (uint32_t j = 0; j < bpt_comm_size(comm); j++) sum += all[j];
    return sum;
}

static void run(const size_t *begin, uint32_t n_buckets) {
    enum { STEPS = 4 };
    bpt_reduction *r;
    bpt_reduction_stats stats;
    memset(seen.summed, 0, sizeof seen.summed);
    assert_int_equal(bpt_comm_barrier(comm), BPT_OK); /* the marks are the MPI thread's */
    const unsigned moves = comm->marks.wait_moves;
    const bpt_reduction_options options = {n_buckets, begin, note, &seen};
    assert_int_equal(bpt_reduction_create(comm, &options, &r), BPT_OK);
    for (uint32_t step = 0; step < STEPS; step++) one_step(r, begin, n_buckets, step);
    bpt_reduction_stats_get(r, &stats);
    assert_int_equal(stats.buckets, STEPS * n_buckets);
    const uint64_t all = STEPS * bpt_comm_size(comm) * 8 * begin[n_buckets];
    assert_int_equal(sum_over_ranks(stats.sent_bytes), all);
    assert_int_equal(sum_over_ranks(stats.received_bytes), all);
    assert_int_equal(comm->marks.wait_moves != moves, bpt_comm_size(comm) > 1);
    assert_int_equal(bpt_reduction_destroy(r), BPT_OK);
    assert_int_equal(seen.status, BPT_OK);
    assert_false(seen.other_context);
}

static void test_one_bucket(void **state) {
    (void)state;
    run((const size_t[]){0, 1000}, 1);
    run((const size_t[]){0, 3}, 1); /* most ranks have nothing to sum */
}

static void test_many_buckets(void **state) {
    (void)state;
    run((const size_t[]){0, 16, 48, 1600, 1616, 5008, 5008, 20000, 20001}, 8);
}

/* Pieces of several messages each. */
static void test_large_buckets(void **state) {
    (void)state;
    run((const size_t[]){0, 1600000, 3000000}, 2);
}

/* What is under way when it ends is summed all the same. */
static void test_end_before_all_is_summed(void **state) {
    (void)state;
    enum { N_BUCKETS = 2 };
    const size_t begin[] = {0, 1600000, 3000000};
    const bpt_reduction_options options = {N_BUCKETS, begin, note, &seen};
    bpt_reduction *r;
    memset(seen.summed, 0, sizeof seen.summed);
    assert_int_equal(bpt_reduction_create(comm, &options, &r), BPT_OK);
    for (uint32_t b = 0; b < N_BUCKETS; b++) bpt_reduction_give(r, b);
    assert_int_equal(bpt_reduction_destroy(r), BPT_OK);
    for (uint32_t b = 0; b < N_BUCKETS; b++) assert_int_equal(seen.summed[b], 1);
    assert_int_equal(seen.status, BPT_OK);
}

static void test_ranks_that_differ(void **state) {
    (void)state;
    const bool odd = bpt_comm_size(comm) > 1 && bpt_comm_rank(comm) == bpt_comm_size(comm) - 1;
    const bpt_reduction_options other_n = {1, (const size_t[]){0, odd ? 99 : 100}, note, &seen};
    const bpt_reduction_options other_buckets = {
        odd ? 2 : 1, (const size_t[]){0, odd ? 50 : 100, 100}, note, &seen};
    const uint64_t live = bpt_memory_live();
    bpt_reduction *r;
    if (bpt_comm_size(comm) == 1) return;
    assert_int_equal(bpt_reduction_create(comm, &other_n, &r), BPT_EUSAGE);
    assert_int_equal(bpt_reduction_create(comm, &other_buckets, &r), BPT_EUSAGE);
    assert_non_null(strstr(bpt_error_last()->text, "sums other buckets"));
    assert_int_equal(bpt_memory_live(), live);
}

/* Buckets have tags of messages, of which there are so many. */
static void test_too_many_buckets(void **state) {
    (void)state;
    size_t *begin = calloc(BPT_REDUCTION_BUCKETS + 2, sizeof *begin);
    bpt_reduction *r;
    assert_non_null(begin);
    for (size_t b = 0; b < BPT_REDUCTION_BUCKETS + 2; b++) begin[b] = b;
    bpt_reduction_options options = {BPT_REDUCTION_BUCKETS + 1, begin, note, &seen};
    assert_int_equal(bpt_reduction_create(comm, &options, &r), BPT_EUSAGE);
    assert_non_null(strstr(bpt_error_last()->text, "8001 buckets"));
    options.n_buckets--;
    assert_int_equal(bpt_reduction_create(comm, &options, &r), BPT_OK);
    assert_int_equal(bpt_reduction_destroy(r), BPT_OK);
    free(begin);
}

/* Two vectors: what is summed, and what the others send of it, of which pieces are aligned. */
static void test_bytes(void **state) {
    (void)state;
    assert_int_equal(bpt_reduction_bytes(1000, 2, 4), (1000 + 1000 + 2 * 4 * 16) * sizeof(float));
}

/* The n-th allocation of every rank fails, n = 0, 1, 2, ... until none does. */
static void test_no_memory(void **state) {
    (void)state;
    const bpt_reduction_options options = {2, (const size_t[]){0, 50, 100}, note, &seen};
    const uint64_t live = bpt_memory_live();
    bpt_reduction *r = NULL;
    int failures = 0;
    for (int64_t n = 0; !r; n++, failures++) {
        bpt_memory_fail_at(n);
        const bpt_status status = bpt_reduction_create(comm, &options, &r);
        bpt_memory_fail_at(-1);
        if (r) break;
        assert_true(status == BPT_ENOMEM || status == BPT_EPEER);
        assert_int_equal(bpt_memory_live(), live);
    }
    assert_true(failures > 8);
    assert_int_equal(bpt_reduction_destroy(r), BPT_OK);
    assert_int_equal(bpt_memory_live(), live);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_one_bucket),
        cmocka_unit_test(test_many_buckets),
        cmocka_unit_test(test_end_before_all_is_summed),
        cmocka_unit_test(test_large_buckets),
        cmocka_unit_test(test_ranks_that_differ),
        cmocka_unit_test(test_too_many_buckets),
        cmocka_unit_test(test_bytes),
        cmocka_unit_test(test_no_memory),
    };
    return RUN_WITH_MPI(tests);
}
