/* What crosses the border of a network that is spread: every value and gradient comes where it
 * belongs, step after step, whoever hosts, whoever has how many samples. ctest: TIMEOUT=60
 * RANKS=1,2,3,4 */
#include "outer/crossing.h"
#include "tests/outer/exchange_fixture.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

enum { STEPS = 5 };

static float value_of(int step, uint64_t sample, size_t i) {
    return (float)(step * 100003 + (int)sample * 1009 + (int)(i % 997));
}

/* One rank's memory, and the host's of all. */
typedef struct memory {
    float *values, *gradients, *all_gradients;
    int32_t *labels;
} memory;

static memory reserve(uint64_t own, uint64_t all, size_t n) {
    const memory mem = {calloc(own * n + 1, sizeof(float)), calloc(own * n + 1, sizeof(float)),
                        calloc(all * n + 1, sizeof(float)), calloc(own + 1, sizeof(int32_t))};
    assert_true(mem.values && mem.gradients && mem.all_gradients && mem.labels);
    return mem;
}

static void release(memory mem) {
    free(mem.values);
    free(mem.gradients);
    free(mem.all_gradients);
    free(mem.labels);
}

static void fill(memory mem, int step, uint64_t first, uint64_t end, size_t n) {
    for (uint64_t s = first; s < end; s++) {
        mem.labels[s - first] = (int32_t)(step * 1000 + (int)s);
        for (size_t i = 0; i < n; i++) mem.values[(s - first) * n + i] = value_of(step, s, i);
    }
}

/* The host checks what it has got, and sends back its negative. */
static void host(bpt_crossing *c, memory mem, int step, uint64_t all, size_t n) {
    bpt_crossing_batch batch;
    assert_int_equal(bpt_crossing_collect(c, &batch), BPT_OK);
    assert_int_equal(batch.n_samples, all);
    const float *values = batch.values;
    for (uint64_t s = 0; s < all; s++) {
        assert_int_equal(batch.labels[s], step * 1000 + (int)s);
        for (size_t i = 0; i < n; i++) {
            assert_true(values[s * n + i] == value_of(step, s, i));
            mem.all_gradients[s * n + i] = -values[s * n + i];
        }
    }
    bpt_crossing_return(c, (bpt_crossing_note){{step, 0.5, -1, 1e300}});
}

/* @param all samples of a step; 0 but on the host */
static void assert_stats(const bpt_crossing *c, uint64_t own, uint64_t all, size_t n) {
    const bpt_crossing_stats stats = bpt_crossing_stats_of(c);
    const uint64_t there = 4 * n + 4, back = 4 * n;
    assert_int_equal(stats.steps, STEPS);
    assert_int_equal(stats.sent_bytes, STEPS * (own * there + all * back));
    assert_int_equal(stats.received_bytes, STEPS * (own * back + all * there));
    assert_int_equal(stats.local_sent_bytes, all ? STEPS * own * (there + back) : 0);
}

static void run(uint32_t host_rank, const uint64_t *first, size_t n) {
    const uint32_t rank = bpt_comm_rank(comm), m = bpt_comm_size(comm);
    const uint64_t own = first[rank + 1] - first[rank], all = first[m];
    const memory mem = reserve(own, all, n);
    const bpt_crossing_options options = {.host = host_rank,
                                          .value_bytes = n * sizeof(float),
                                          .first = first,
                                          .values = mem.values,
                                          .gradients = mem.gradients,
                                          .all_gradients = mem.all_gradients};
    bpt_crossing *c;
    assert_int_equal(bpt_crossing_create(comm, &options, &c), BPT_OK);
    for (int step = 0; step < STEPS; step++) {
        fill(mem, step, first[rank], first[rank + 1], n);
        bpt_crossing_send(c, mem.labels);
        if (rank == host_rank) host(c, mem, step, all, n);
        bpt_crossing_note note;
        assert_int_equal(bpt_crossing_wait(c, &note), BPT_OK);
        assert_true(note.number[0] == step && note.number[3] == 1e300);
        for (uint64_t s = 0; s < own; s++)
            for (size_t i = 0; i < n; i++)
                assert_true(mem.gradients[s * n + i] == -value_of(step, first[rank] + s, i));
    }
    assert_stats(c, own, rank == host_rank ? all : 0, n);
    assert_int_equal(bpt_crossing_destroy(c), BPT_OK);
    release(mem);
}

static void test_even(void **state) {
    (void)state;
    const uint64_t first[] = {0, 4, 8, 12, 16};
    for (uint32_t h = 0; h < bpt_comm_size(comm); h++) run(h, first, 37);
}

/* One rank has no sample at all. */
static void test_uneven(void **state) {
    (void)state;
    const uint64_t first[] = {0, 3, 3, 4, 11};
    for (uint32_t h = 0; h < bpt_comm_size(comm); h++) run(h, first, 5);
}

/* Messages of many chunks. */
static void test_large(void **state) {
    (void)state;
    const uint64_t first[] = {0, 2, 5, 6, 8};
    run(bpt_comm_size(comm) - 1, first, 400000);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_even),
        cmocka_unit_test(test_uneven),
        cmocka_unit_test(test_large),
    };
    return RUN_WITH_MPI(tests);
}
