/* Orders of samples: each comes once, neighbours stay near each other, and how mixed batches are.
 */
#include "base/memory.h"
#include "outer/data/order.h"
#include "outer/data/sampler.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

/* Last: it needs those above, and defines fail and skip. */
#include <cmocka.h>

enum { SEED = 3 };

static bpt_order order_of(bpt_order_kind kind, uint32_t block) {
    return (bpt_order){.seed = SEED, .kind = kind, .block = block};
}

/* The order of one epoch of all samples; caller frees. */
static uint32_t *draw(bpt_order order, uint64_t id, uint32_t n) {
    uint32_t *samples, *scratch;
    assert_int_equal(BPT_NEW("samples", n, &samples), BPT_OK);
    assert_int_equal(BPT_NEW("scratch", bpt_order_scratch(&order, n), &scratch), BPT_OK);
    for (uint32_t i = 0; i < n; i++) samples[i] = i;
    bpt_order_pass(&order, id, samples, n, scratch);
    bpt_free(scratch);
    return samples;
}

static void assert_each_once(const uint32_t *samples, uint32_t n) {
    uint8_t *seen;
    assert_int_equal(BPT_NEW("marks", n, &seen), BPT_OK);
    for (uint32_t i = 0; i < n; i++) {
        assert_true(samples[i] < n);
        assert_int_equal(seen[samples[i]]++, 0);
    }
    bpt_free(seen);
}

static void test_each_once(void **state) {
    (void)state;
    static const uint32_t sizes[] = {1, 5, 16, 99, 1000, 1024};
    static const uint32_t blocks[] = {1, 2, 7, 64, 4096};
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++)
        for (size_t k = 0; k < sizeof blocks / sizeof *blocks; k++) {
            uint32_t *a = draw(order_of(BPT_ORDER_BLOCKS, blocks[k]), 4, sizes[i]);
            uint32_t *b = draw(order_of(BPT_ORDER_BLOCKS, blocks[k]), 4, sizes[i]);
            uint32_t *c = draw(order_of(BPT_ORDER_BLOCKS, blocks[k]), 5, sizes[i]);
            assert_each_once(a, sizes[i]);
            assert_memory_equal(a, b, sizes[i] * sizeof *a);
            if (sizes[i] > 16) assert_memory_not_equal(a, c, sizes[i] * sizeof *a);
            bpt_free(a);
            bpt_free(b);
            bpt_free(c);
        }
}

/* A window holds all samples of its blocks. */
static void test_windows(void **state) {
    (void)state;
    enum { BLOCK = 8, N = 40 * BLOCK, W = BPT_ORDER_WINDOW * BLOCK };
    uint32_t *samples = draw(order_of(BPT_ORDER_BLOCKS, BLOCK), 1, N);
    for (uint32_t at = 0; at < N; at += W) {
        int n_of[N / BLOCK] = {0};
        const uint32_t end = at + W < N ? at + W : N;
        for (uint32_t i = at; i < end; i++) n_of[samples[i] / BLOCK]++;
        for (uint32_t b = 0; b < N / BLOCK; b++) assert_true(n_of[b] == 0 || n_of[b] == BLOCK);
    }
    bpt_free(samples);
}

static void test_sequential(void **state) {
    (void)state;
    uint32_t *samples = draw(order_of(BPT_ORDER_SEQUENTIAL, 0), 9, 100);
    for (uint32_t i = 0; i < 100; i++) assert_int_equal(samples[i], i);
    bpt_free(samples);
}

/* ---- shares ---- */

enum { N = 2000, BLOCK = 20 };

static bpt_partition *deal(bpt_order order) {
    bpt_partition *p = NULL;
    assert_int_equal(bpt_partition_create(order, N, 2, 2, &p), BPT_OK);
    assert_int_equal(bpt_partition_allot(p, (const uint32_t[]){700, 300}), BPT_OK);
    assert_int_equal(bpt_partition_allot(p, (const uint32_t[]){1300, 700}), BPT_OK);
    return p;
}

/* Runs of neighbours in what a rank holds. */
static uint32_t count_runs(const bpt_partition *p, uint32_t rank) {
    uint32_t samples[N], n_runs = 1;
    const uint64_t n = bpt_partition_held(p, rank, 2);
    assert_int_equal(bpt_partition_samples(p, rank, 2, samples), BPT_OK);
    for (uint64_t i = 1; i < n; i++) n_runs += samples[i] != samples[i - 1] + 1;
    return n_runs;
}

static void test_shares(void **state) {
    (void)state;
    bpt_partition *p = deal(order_of(BPT_ORDER_BLOCKS, BLOCK));
    assert_true(count_runs(p, 0) <= 1300 / BLOCK + 4); /* a round cuts a block at either end */
    assert_true(count_runs(p, 1) <= 700 / BLOCK + 4);
    assert_true(count_runs(p, 0) > 10);
    bpt_partition_free(p);
    p = deal(order_of(BPT_ORDER_SEQUENTIAL, 0));
    assert_int_equal(count_runs(p, 0), 2);
    bpt_partition_free(p);
    p = deal(order_of(BPT_ORDER_SHUFFLE, 0));
    assert_true(count_runs(p, 0) > 1000);
    bpt_partition_free(p);
}

/* Saved anywhere and restored in a new stream, with samples that arrived meanwhile. */
static void test_resume(void **state) {
    (void)state;
    const bpt_order order = order_of(BPT_ORDER_BLOCKS, BLOCK);
    bpt_partition *p = deal(order);
    for (int kind = 0; kind < 2; kind++)
        for (size_t step = 0; step < 60; step += 7) {
            bpt_sampler *s[2];
            uint32_t skipped[50], x[100], y[100];
            for (int i = 0; i < 2; i++)
                assert_int_equal(kind ? bpt_sampler_create_global(order, N, 100, 0, &s[i])
                                      : bpt_sampler_create_local(order, 1, p, &s[i]),
                                 BPT_OK);
            for (size_t i = 0; i < step; i++)
                assert_int_equal(bpt_sampler_next(s[0], 50, skipped, NULL), BPT_OK);
            const bpt_sampler_state at = bpt_sampler_state_get(s[0]);
            assert_int_equal(bpt_sampler_state_set(s[1], &at), BPT_OK);
            for (int i = 0; i < 20; i++) {
                assert_int_equal(bpt_sampler_next(s[0], 100, x, NULL), BPT_OK);
                assert_int_equal(bpt_sampler_next(s[1], 100, y, NULL), BPT_OK);
                assert_memory_equal(x, y, sizeof x);
            }
            bpt_sampler_free(s[0]);
            bpt_sampler_free(s[1]);
        }
    bpt_partition_free(p);
}

/* ---- how mixed batches are ---- */

/* On data that are sorted by class. */
enum { SORTED = 60000, CLASSES = 10, BATCH = 64 };

typedef struct figures {
    double spread; /* chi squared of the classes of a batch, a degree of freedom; 1: by chance */
    double blocks; /* of 256 neighbours, that a batch comes from */
} figures;

static figures measure(bpt_order_kind kind, uint32_t block) {
    uint32_t *samples = draw(order_of(kind, block), 0, SORTED);
    figures f = {0};
    const uint32_t n_batches = SORTED / BATCH;
    for (uint32_t b = 0; b < n_batches; b++) {
        int of_class[CLASSES] = {0};
        uint8_t touched[SORTED / 256 + 1] = {0};
        for (uint32_t i = b * BATCH; i < (b + 1) * BATCH; i++) {
            of_class[samples[i] / (SORTED / CLASSES)]++;
            f.blocks += !touched[samples[i] / 256];
            touched[samples[i] / 256] = 1;
        }
        const double mean = (double)BATCH / CLASSES;
        for (int c = 0; c < CLASSES; c++)
            f.spread += (of_class[c] - mean) * (of_class[c] - mean) / mean / (CLASSES - 1);
    }
    f.spread /= n_batches;
    f.blocks /= n_batches;
    bpt_free(samples);
    printf("%-10s %5u: spread of classes %5.2f, blocks of 256 touched %5.1f a batch\n",
           kind == BPT_ORDER_BLOCKS    ? "blocks"
           : kind == BPT_ORDER_SHUFFLE ? "shuffle"
                                       : "sequential",
           block, f.spread, f.blocks);
    return f;
}

static void test_quality(void **state) {
    (void)state;
    printf("%d samples sorted by class, %d classes, batches of %d:\n", SORTED, CLASSES, BATCH);
    const figures all = measure(BPT_ORDER_SHUFFLE, 0), none = measure(BPT_ORDER_SEQUENTIAL, 0);
    const figures small = measure(BPT_ORDER_BLOCKS, 16), usual = measure(BPT_ORDER_BLOCKS, 256),
                  large = measure(BPT_ORDER_BLOCKS, 1024);
    assert_true(all.spread > 0.95 && all.spread < 1.05);
    assert_true(none.spread > 50);
    /* Of 16 blocks, each of about one class, a batch of 64 has 1 + 63 / 16 times what chance gives.
     */
    assert_true(small.spread > 3.5 && small.spread < 6.5);
    assert_true(usual.spread > 3.5 && usual.spread < 6.5);
    assert_true(large.spread < none.spread / 5);
    assert_true(all.blocks > 50);
    assert_true(usual.blocks < 18);
    assert_true(none.blocks < 2);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_each_once),  cmocka_unit_test(test_windows),
        cmocka_unit_test(test_sequential), cmocka_unit_test(test_shares),
        cmocka_unit_test(test_resume),     cmocka_unit_test(test_quality),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
