/* Streams of indices: passes, allotments that arrive, resuming, and independence of the ranks. */
#include "base/memory.h"
#include "outer/data/sampler.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

/* Last: it needs those above, and defines fail and skip. */
#include <cmocka.h>

enum { N = 60, SEED = 5 };

/* Two ranks, two rounds of 30: rank 1 gets 10 in each. */
static bpt_partition *make_partition(void) {
    bpt_partition *p = NULL;
    assert_int_equal(bpt_partition_create((bpt_order){.seed = SEED}, N, 2, 2, &p), BPT_OK);
    assert_int_equal(bpt_partition_allot(p, (const uint32_t[]){20, 10}), BPT_OK);
    return p;
}

static bpt_sampler *make_local(const bpt_partition *p, uint32_t rank) {
    bpt_sampler *s = NULL;
    assert_int_equal(bpt_sampler_create_local((bpt_order){.seed = SEED}, rank, p, &s), BPT_OK);
    return s;
}

static bpt_sampler *make_global(uint64_t batch, uint64_t offset) {
    bpt_sampler *s = NULL;
    assert_int_equal(bpt_sampler_create_global((bpt_order){.seed = SEED}, N, batch, offset, &s),
                     BPT_OK);
    return s;
}

/* Asserts that @p index holds each sample of the first @p rounds rounds of @p rank once. */
static void assert_pass(const bpt_partition *p, uint32_t rank, uint32_t rounds,
                        const uint32_t *index) {
    int seen[N] = {0};
    uint32_t samples[N];
    const uint64_t held = bpt_partition_held(p, rank, rounds);
    assert_int_equal(bpt_partition_samples(p, rank, rounds, samples), BPT_OK);
    for (uint64_t i = 0; i < held; i++) seen[index[i]]++;
    for (uint64_t i = 0; i < held; i++) assert_int_equal(seen[samples[i]], 1);
}

static void test_passes(void **state) {
    (void)state;
    bpt_partition *p = make_partition();
    bpt_sampler *s = make_local(p, 1);
    uint32_t index[30], of_pass[30];
    assert_int_equal(bpt_sampler_next(s, 30, index, of_pass), BPT_OK); /* three passes of 10 */
    for (uint32_t i = 0; i < 30; i++) assert_int_equal(of_pass[i], i / 10);
    for (int pass = 0; pass < 3; pass++) assert_pass(p, 1, 1, index + 10 * pass);
    assert_memory_not_equal(index, index + 10, 10 * sizeof *index);
    assert_memory_not_equal(index + 10, index + 20, 10 * sizeof *index);
    const bpt_sampler_state at = bpt_sampler_state_get(s);
    assert_int_equal(at.pass, 3);
    assert_int_equal(at.position, 0);
    assert_int_equal(at.covered, 1);
    bpt_sampler_free(s);
    bpt_partition_free(p);
}

static void test_an_allotment_joins_at_the_next_pass(void **state) {
    (void)state;
    bpt_partition *p = make_partition();
    bpt_sampler *s = make_local(p, 1);
    uint32_t index[20];
    assert_int_equal(bpt_sampler_next(s, 4, index, NULL), BPT_OK);
    assert_int_equal(bpt_partition_allot(p, (const uint32_t[]){40, 20}), BPT_OK);
    assert_int_equal(bpt_sampler_next(s, 6, index + 4, NULL), BPT_OK);
    assert_pass(p, 1, 1, index);
    assert_int_equal(bpt_sampler_state_get(s).covered, 1);
    assert_int_equal(bpt_sampler_next(s, 20, index, NULL), BPT_OK);
    assert_pass(p, 1, 2, index);
    assert_int_equal(bpt_sampler_state_get(s).covered, 2);
    assert_int_equal(bpt_sampler_state_get(s).pass, 2);
    bpt_sampler_free(s);
    bpt_partition_free(p);
}

/* What is given out, but not at hand, waits for the pass after it has come. */
static void test_an_allotment_that_is_not_here_yet(void **state) {
    (void)state;
    bpt_partition *p = make_partition();
    bpt_sampler *s = make_local(p, 1);
    uint32_t index[20];
    bpt_sampler_admit(s, 1);
    assert_int_equal(bpt_partition_allot(p, (const uint32_t[]){40, 20}), BPT_OK);
    for (int pass = 0; pass < 2; pass++) {
        assert_int_equal(bpt_sampler_next(s, 10, index, NULL), BPT_OK);
        assert_pass(p, 1, 1, index);
        assert_int_equal(bpt_sampler_state_get(s).covered, 1);
    }
    assert_int_equal(bpt_sampler_next(s, 4, index, NULL), BPT_OK);
    bpt_sampler_admit(s, 2); /* it comes while a pass is under way */
    assert_int_equal(bpt_sampler_next(s, 6, index + 4, NULL), BPT_OK);
    assert_pass(p, 1, 1, index);
    assert_int_equal(bpt_sampler_next(s, 20, index, NULL), BPT_OK);
    assert_pass(p, 1, 2, index);
    assert_int_equal(bpt_sampler_state_get(s).covered, 2);
    bpt_sampler_free(s);
    bpt_partition_free(p);
}

/* The next pass was to cover what was known when it was prepared: the one after it covers all. */
static void test_a_pass_that_was_prepared(void **state) {
    (void)state;
    bpt_partition *p = make_partition();
    bpt_sampler *s = make_local(p, 1);
    uint32_t index[20];
    assert_int_equal(bpt_partition_allot(p, (const uint32_t[]){40, 20}), BPT_OK);
    const bpt_sampler_state one = {.pass = 1, .covered = 1, .next_rounds = 1};
    const bpt_sampler_state two = {.pass = 1, .covered = 1, .next_rounds = 2};
    const bpt_sampler_state three = {.pass = 1, .covered = 1, .next_rounds = 3};
    assert_int_equal(bpt_sampler_state_set(s, &three), BPT_EDATA);
    assert_int_equal(bpt_sampler_state_set(s, &one), BPT_OK);
    assert_int_equal(bpt_sampler_next(s, 10, index, NULL), BPT_OK);
    assert_pass(p, 1, 1, index);
    assert_int_equal(bpt_sampler_next(s, 20, index, NULL), BPT_OK);
    assert_pass(p, 1, 2, index);
    assert_int_equal(bpt_sampler_state_set(s, &two), BPT_OK);
    assert_int_equal(bpt_sampler_next(s, 20, index, NULL), BPT_OK);
    assert_pass(p, 1, 2, index);
    bpt_sampler_free(s);
    bpt_partition_free(p);
}

static const bpt_order orders[] = {{.seed = SEED},
                                   {.seed = SEED, .kind = BPT_ORDER_BLOCKS, .block = 3},
                                   {.seed = SEED, .kind = BPT_ORDER_SEQUENTIAL}};

/* Asserts that @p index is the order of a pass over @p samples. */
static void assert_order(const bpt_order *o, uint64_t id, uint32_t *samples, uint32_t n,
                         const uint32_t *index) {
    uint32_t scratch[2 * N];
    bpt_order_pass(o, id, samples, n, scratch);
    assert_memory_equal(index, samples, n * sizeof *index);
}

/* Of a rank's pass by (seed, rank, pass), of all by (seed, epoch); one at a time or many. */
static void test_order_of_passes(void **state) {
    (void)state;
    for (size_t o = 0; o < sizeof orders / sizeof *orders; o++) {
        bpt_partition *p = NULL;
        bpt_sampler *local = NULL, *global = NULL;
        uint32_t index[3 * N], samples[N];
        assert_int_equal(bpt_partition_create(orders[o], N, 2, 1, &p), BPT_OK);
        assert_int_equal(bpt_partition_allot(p, (const uint32_t[]){33, 27}), BPT_OK);
        assert_int_equal(bpt_sampler_create_local(orders[o], 1, p, &local), BPT_OK);
        assert_int_equal(bpt_sampler_next(local, 54, index, NULL), BPT_OK);
        for (uint64_t pass = 0; pass < 2; pass++) {
            assert_int_equal(bpt_partition_samples(p, 1, 1, samples), BPT_OK);
            assert_order(&orders[o], UINT64_C(1) << 32 | pass, samples, 27, index + 27 * pass);
        }
        assert_int_equal(bpt_sampler_create_global(orders[o], N, 1, 0, &global), BPT_OK);
        for (uint32_t i = 0; i < 3 * N; i++)
            assert_int_equal(bpt_sampler_next(global, 1, index + i, NULL), BPT_OK);
        for (uint64_t epoch = 0; epoch < 3; epoch++) {
            for (uint32_t i = 0; i < N; i++) samples[i] = i;
            assert_order(&orders[o], epoch, samples, N, index + N * epoch);
        }
        bpt_sampler_free(global);
        bpt_sampler_free(local);
        bpt_partition_free(p);
    }
}

/* Saved at any point and restored in a new stream: the same indices follow. */
static void check_resume(const bpt_partition *p) {
    for (int kind = 0; kind < 2; kind++)
        for (size_t step = 0; step < 40; step++) {
            bpt_sampler *a = kind ? make_global(7, 2) : make_local(p, 1);
            bpt_sampler *b = kind ? make_global(7, 2) : make_local(p, 1);
            uint32_t skipped[3], x[5], y[5];
            for (size_t i = 0; i < step; i++)
                assert_int_equal(bpt_sampler_next(a, 3, skipped, NULL), BPT_OK);
            const bpt_sampler_state at = bpt_sampler_state_get(a);
            assert_int_equal(bpt_sampler_state_set(b, &at), BPT_OK);
            assert_int_equal(bpt_sampler_next(a, 5, x, NULL), BPT_OK);
            assert_int_equal(bpt_sampler_next(b, 5, y, NULL), BPT_OK);
            assert_memory_equal(x, y, sizeof x);
            bpt_sampler_free(a);
            bpt_sampler_free(b);
        }
}

static void test_resume(void **state) {
    (void)state;
    bpt_partition *p = make_partition();
    check_resume(p);
    assert_int_equal(bpt_partition_allot(p, (const uint32_t[]){35, 25}), BPT_OK);
    check_resume(p);
    bpt_partition_free(p);
}

static void test_state_of_another_stream(void **state) {
    (void)state;
    bpt_partition *p = make_partition();
    bpt_sampler *s = make_local(p, 1), *g = make_global(7, 0);
    const bpt_sampler_state bad[] = {
        {.pass = 1, .position = 10, .rounds = 1}, /* beyond the pass */
        {.pass = 1, .position = 0, .rounds = 2},  /* a round not given out */
        {.pass = 1, .covered = 2},
        {.pass = 1, .position = 3}, /* inside of a pass that has not begun */
    };
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        assert_int_equal(bpt_sampler_state_set(s, &bad[i]), BPT_EDATA);
        assert_int_equal(bpt_sampler_state_set(g, &bad[i]), BPT_EDATA);
    }
    bpt_sampler_free(s);
    bpt_sampler_free(g);
    bpt_partition_free(p);
}

/* The ranks' parts of each batch together are the stream of one rank, whatever the shares. */
static void test_global_stream_for_any_ranks(void **state) {
    (void)state;
    enum { BATCH = 16, STEPS = 20 };
    static const uint32_t shares[][4] = {{16}, {8, 8}, {9, 4, 3}, {4, 4, 4, 4}};
    uint32_t expected[STEPS * BATCH], got[STEPS * BATCH], epochs[STEPS * BATCH];
    for (size_t c = 0; c < sizeof shares / sizeof shares[0]; c++) {
        uint32_t offset = 0;
        for (int r = 0; r < 4 && shares[c][r]; offset += shares[c][r++]) {
            bpt_sampler *s = make_global(BATCH, offset);
            for (int step = 0; step < STEPS; step++)
                assert_int_equal(bpt_sampler_next(s, shares[c][r], got + step * BATCH + offset,
                                                  epochs + step * BATCH + offset),
                                 BPT_OK);
            bpt_sampler_free(s);
        }
        if (c == 0) memcpy(expected, got, sizeof got);
        assert_memory_equal(got, expected, sizeof got);
        for (uint32_t i = 0; i < STEPS * BATCH; i++) assert_int_equal(epochs[i], i / N);
    }
    for (int epoch = 0; (epoch + 1) * N <= STEPS * BATCH; epoch++) {
        int seen[N] = {0};
        for (int i = 0; i < N; i++) seen[expected[epoch * N + i]]++;
        for (int i = 0; i < N; i++) assert_int_equal(seen[i], 1);
    }
}

static void test_wrong_use(void **state) {
    (void)state;
    bpt_sampler *s = NULL;
    uint32_t index[8];
    assert_int_equal(bpt_sampler_create_global((bpt_order){.seed = 1}, 0, 4, 0, &s), BPT_EUSAGE);
    assert_int_equal(bpt_sampler_create_global((bpt_order){.seed = 1}, 9, 4, 5, &s), BPT_EUSAGE);
    assert_int_equal(bpt_sampler_create_global((bpt_order){.seed = 1}, 9, 0, 0, &s), BPT_EUSAGE);
    assert_int_equal(bpt_sampler_create_global((bpt_order){.seed = 1}, UINT64_C(1) << 32, 4, 0, &s),
                     BPT_EUSAGE);
    assert_int_equal(bpt_sampler_create_global((bpt_order){.seed = 1}, 1, 1, 1, &s), BPT_OK);
    assert_int_equal(bpt_sampler_next(s, 0, index, NULL), BPT_OK); /* a part of nothing */
    bpt_sampler_free(s);
    s = make_global(7, 2);
    assert_int_equal(bpt_sampler_next(s, 6, index, NULL), BPT_EUSAGE);
    bpt_sampler_free(s);

    bpt_partition *p = NULL;
    assert_int_equal(bpt_partition_create((bpt_order){.seed = SEED}, N, 2, 2, &p), BPT_OK);
    s = make_local(p, 1);
    assert_int_equal(bpt_sampler_next(s, 1, index, NULL), BPT_EUSAGE);
    assert_int_equal(bpt_partition_allot(p, (const uint32_t[]){30, 0}), BPT_OK);
    assert_int_equal(bpt_sampler_next(s, 1, index, NULL), BPT_EUSAGE);
    bpt_sampler_free(s);
    bpt_partition_free(p);
}

static void test_memory(void **state) {
    (void)state;
    assert_int_equal(bpt_sampler_bytes(orders[0], 100), 400);
    assert_int_equal(bpt_sampler_bytes(orders[1], 100), 4 * (100 + 100 + 34));
    bpt_partition *p = make_partition();
    const uint64_t live = bpt_memory_live();
    bpt_sampler *s = NULL;
    for (int64_t n = 0; !s; n++) {
        bpt_memory_fail_at(n);
        const bpt_status status = bpt_sampler_create_local((bpt_order){.seed = SEED}, 0, p, &s);
        bpt_memory_fail_at(-1);
        assert_int_equal(status, s ? BPT_OK : BPT_ENOMEM);
        if (!s) assert_int_equal(bpt_memory_live(), live);
    }
    const uint64_t before = bpt_memory_allocations();
    uint32_t index[50];
    for (int i = 0; i < 10; i++) assert_int_equal(bpt_sampler_next(s, 50, index, NULL), BPT_OK);
    assert_int_equal(bpt_memory_allocations(), before);
    bpt_sampler_free(s);
    bpt_partition_free(p);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_passes),
        cmocka_unit_test(test_an_allotment_joins_at_the_next_pass),
        cmocka_unit_test(test_an_allotment_that_is_not_here_yet),
        cmocka_unit_test(test_a_pass_that_was_prepared),
        cmocka_unit_test(test_order_of_passes),
        cmocka_unit_test(test_resume),
        cmocka_unit_test(test_state_of_another_stream),
        cmocka_unit_test(test_global_stream_for_any_ranks),
        cmocka_unit_test(test_wrong_use),
        cmocka_unit_test(test_memory),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
