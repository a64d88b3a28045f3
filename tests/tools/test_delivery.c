/* Samples on their way from rank 0: to a rank that has another dataset, where neither reads what
 * its dataset does not have; and to one that goes on in the middle of a pass over samples that are
 * no longer its own. */
#include "base/checksum.h"
#include "base/memory.h"
#include "outer/comm/comm.h"
#include "tests/storage/made_dataset.h"
#include "tools/train/data/delivery.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

/* Last: it needs those above, and defines fail and skip. */
#include <cmocka.h>

enum { COUNT = 60, BATCH = 5, H = 4, W = 4, SALT = 1, PREFETCH = 8 };

static bpt_comm *comm;

/* The real one reads --augment, and wants all the options' checks with it. */
bpt_augment bpt_train_augment(const bpt_train_options *o) {
    (void)o;
    return (bpt_augment){0};
}

static bpt_dataset *make_dataset(const made_place *place, uint32_t rank) {
    const bpt_writer_options train = made_options("train", 1, H, W);
    const bpt_writer_options test = made_options("test", 1, H, W);
    bpt_dataset *dataset = NULL;
    assert_int_equal(made_split(place->dataset, &train, SALT, COUNT), BPT_OK);
    if (rank != 0) assert_int_equal(made_split(place->dataset, &test, 2, COUNT), BPT_OK);
    assert_int_equal(bpt_dataset_open(place->dataset, &dataset), BPT_OK);
    return dataset;
}

/* Names the dataset to those that do not have it. */
typedef struct description {
    char *text;
    size_t size;
} description;

static description describe(const bpt_dataset *dataset) {
    description d = {0};
    assert_int_equal(bpt_dataset_export(dataset, &d.text, &d.size), BPT_OK);
    return d;
}

static uint64_t identify(const bpt_dataset *dataset) {
    const description d = describe(dataset);
    const uint64_t identity = bpt_checksum(d.text, d.size);
    bpt_free(d.text);
    return identity;
}

static bpt_scratch *open_scratch(const made_place *place, const bpt_dataset *dataset) {
    char path[100];
    bpt_scratch *scratch = NULL;
    snprintf(path, sizeof path, "%s/scratch", place->directory);
    const description d = describe(dataset);
    assert_int_equal(bpt_scratch_open(path, d.text, d.size, &scratch), BPT_OK);
    bpt_free(d.text);
    return scratch;
}

/* "train" is the second split of rank 1's dataset, and rank 0's has one. */
static void test_split_that_rank_0_lacks(void **state) {
    (void)state;
    const uint32_t rank = bpt_comm_rank(comm);
    const made_place place = made_place_create();
    bpt_dataset *dataset = make_dataset(&place, rank);
    bpt_scratch *scratch = rank == 0 ? NULL : open_scratch(&place, dataset);
    bpt_delivery_options options = {
        .rank = rank,
        .dataset = scratch ? bpt_scratch_dataset(scratch) : dataset,
        .record_bytes = (size_t)H * W,
        .scratch = scratch,
        .batch_all = BATCH,
        .steps = 1,
        .batch = BATCH,
        .prefetch = 1,
    };
    bpt_delivery *d = NULL;
    assert_int_equal(bpt_dataset_find(options.dataset, "train", &options.train), BPT_OK);
    options.test = options.train;
    assert_int_equal(bpt_delivery_open(comm, &options, &d), BPT_OK);
    if (rank != 0) {
        uint64_t n_kept = 0;
        bool here = false;
        assert_int_equal(bpt_delivery_await_first(d, INFINITY, &n_kept, &here), BPT_ECOMM);
        assert_int_equal(bpt_scratch_has(scratch, options.train, 0), false);
    }
    assert_int_equal(bpt_comm_barrier(comm), BPT_OK);
    assert_int_equal(bpt_delivery_advance(d, NULL), BPT_ECOMM);
    assert_string_equal(bpt_error_last()->text,
                        "samples of split 1 (from 0) are asked for, and the dataset has 1");
    bpt_delivery_close(d);
    bpt_scratch_close(scratch);
    bpt_dataset_close(dataset);
    made_place_remove(&place);
}

/* What rank 1 goes on with: 10 of its 30 samples went to rank 0 in the second round. */
typedef struct moved {
    made_place place;
    bpt_dataset *dataset;
    bpt_scratch *scratch;
    bpt_partition *shares;
    bpt_delivery *delivery;
    bpt_feed *feed;
} moved;

static bpt_sampler *make_sampler(const moved *m, const bpt_sampler_state *state) {
    bpt_sampler *sampler = NULL;
    assert_int_equal(bpt_sampler_create_local((bpt_order){0}, 1, m->shares, &sampler), BPT_OK);
    assert_int_equal(bpt_sampler_state_set(sampler, state), BPT_OK);
    return sampler;
}

static bpt_feed *make_feed(const moved *m, const bpt_split *train, const bpt_sampler_state *state) {
    const bpt_train_options o = {.loader_threads = 1, .prefetch = PREFETCH};
    const bpt_loader_options options = bpt_feed_options(&o, train, BATCH, false);
    bpt_feed *feed = NULL;
    assert_int_equal(bpt_feed_create(bpt_scratch_dataset(m->scratch), train, &options, NULL, 0,
                                     make_sampler(m, state), &feed),
                     BPT_OK);
    return feed;
}

/* @param told where the delivery believes that the feed begins
 * @param state where it does */
static moved open_moved(const bpt_sampler_state *told, const bpt_sampler_state *state) {
    const uint32_t held[2][2] = {{30, 30}, {40, 20}}, rank = bpt_comm_rank(comm);
    moved m = {.place = made_place_create()};
    m.dataset = make_dataset(&m.place, 0); /* alike on both */
    m.scratch = rank == 0 ? NULL : open_scratch(&m.place, m.dataset);
    assert_int_equal(bpt_partition_create((bpt_order){0}, COUNT, 2, 1, &m.shares), BPT_OK);
    for (int r = 0; r < 2; r++) assert_int_equal(bpt_partition_allot(m.shares, held[r]), BPT_OK);
    bpt_delivery_options options = {
        .rank = rank,
        .dataset = m.scratch ? bpt_scratch_dataset(m.scratch) : m.dataset,
        .record_bytes = (size_t)H * W,
        .scratch = m.scratch,
        .identity = identify(m.dataset),
        .shares = m.shares,
        .batch = BATCH,
        .prefetch = PREFETCH,
        .start = *told,
    };
    assert_int_equal(bpt_dataset_find(options.dataset, "train", &options.train), BPT_OK);
    options.test = options.train;
    assert_int_equal(bpt_delivery_open(comm, &options, &m.delivery), BPT_OK);
    if (rank == 0) return m;
    m.feed = make_feed(&m, options.train, state);
    bpt_delivery_attach(m.delivery, m.feed);
    return m;
}

static void close_moved(moved *m) {
    assert_int_equal(bpt_comm_barrier(comm), BPT_OK);
    bpt_feed_free(m->feed);
    bpt_delivery_close(m->delivery);
    bpt_partition_free(m->shares);
    bpt_scratch_close(m->scratch);
    bpt_dataset_close(m->dataset);
    made_place_remove(&m->place);
}

/* The rest of a pass that covers one round, which the next one, of two, has come ahead of. */
static const bpt_sampler_state in_between = {.position = BATCH, .rounds = 1, .next_rounds = 2};

/* Trains on what the stream says comes next, @p n batches. @return how many of its samples are rank
 * 0's by now */
static uint32_t train_on(const moved *m, bpt_sampler *expected, int n) {
    uint32_t of_rank_0[COUNT], indices[BATCH], n_given = 0;
    assert_int_equal(bpt_partition_samples(m->shares, 0, 2, of_rank_0), BPT_OK);
    for (; n > 0; n--) {
        bpt_batch batch;
        assert_int_equal(bpt_sampler_next(expected, BATCH, indices, NULL), BPT_OK);
        assert_int_equal(bpt_delivery_advance(m->delivery, m->feed), BPT_OK);
        assert_int_equal(bpt_feed_next(m->feed, &batch), BPT_OK);
        for (uint32_t i = 0; i < BATCH; i++) {
            assert_int_equal(batch.labels[i], made_label(SALT, indices[i], 3));
            for (uint32_t k = 0; k < 40; k++) n_given += of_rank_0[k] == indices[i];
        }
    }
    return n_given;
}

static void test_pass_over_samples_given_away(void **state) {
    (void)state;
    moved m = open_moved(&in_between, &in_between);
    if (m.feed) {
        bpt_sampler *expected = make_sampler(&m, &in_between);
        assert_in_range(train_on(&m, expected, 5), 5, 10); /* 25 samples, all but 20 given away */
        assert_int_equal(train_on(&m, expected, 8), 0);
        bpt_sampler_free(expected);
    }
    close_moved(&m);
}

/* Who waits for what nobody asked for would wait for ever. */
static void test_samples_that_nobody_asked_for(void **state) {
    (void)state;
    const bpt_sampler_state told = {.pass = 1, .next_rounds = 2};
    moved m = open_moved(&told, &in_between);
    if (m.feed) {
        bpt_batch batch;
        bpt_status status = BPT_OK;
        for (int n = 0; n < 5 && status == BPT_OK; n++) status = bpt_feed_next(m.feed, &batch);
        assert_int_equal(status, BPT_ECOMM);
        assert_non_null(strstr(bpt_error_last()->text, "all that was asked for is"));
    }
    close_moved(&m);
}

/* ---- samples that come while it trains ---- */

static const bpt_record_range test_part = {.first = 50, .count = 10}; /* of the same split */

/* @return how many of the samples of rank 1 after so many rounds, or of the test part, are here */
static uint32_t count_here(const moved *m, const bpt_split *train, uint32_t rounds) {
    uint32_t samples[COUNT], n = (uint32_t)bpt_partition_held(m->shares, 1, rounds), here = 0;
    assert_int_equal(bpt_partition_samples(m->shares, 1, rounds, samples), BPT_OK);
    for (uint32_t i = 0; rounds == 0 && i < test_part.count; i++)
        samples[n++] = test_part.first + i;
    for (uint32_t i = 0; i < n; i++) here += bpt_scratch_has(m->scratch, train, samples[i]);
    return here;
}

/* The first round is here when training begins, the test part when it is awaited. */
static void await_begin(const moved *m, const bpt_split *train) {
    uint64_t n_kept = 0;
    bool here = false;
    assert_int_equal(bpt_delivery_await_first(m->delivery, 0, &n_kept, &here), BPT_OK);
    assert_true(n_kept >= 15 || !here);
    while (!here) {
        const uint64_t before = n_kept;
        assert_int_equal(bpt_delivery_await_first(m->delivery, INFINITY, &n_kept, &here), BPT_OK);
        assert_true(n_kept > before || here);
    }
    assert_int_equal(count_here(m, train, 1), 15);
    assert_int_equal(bpt_delivery_await_test(m->delivery), BPT_OK);
    assert_int_equal(count_here(m, train, 0), test_part.count);
}

/* The second round is asked for when it is known, and trained on when it has come. */
static void train_into_second_round(const moved *m, const bpt_split *train) {
    bpt_batch batch;
    while (count_here(m, train, 2) < 30) {
        assert_int_equal(bpt_delivery_advance(m->delivery, m->feed), BPT_OK);
        usleep(1000);
    }
    assert_int_equal(bpt_feed_state(m->feed).covered, 0);
    for (int i = 0; i < 40 && bpt_feed_state(m->feed).covered < 2; i++) {
        assert_int_equal(bpt_delivery_advance(m->delivery, m->feed), BPT_OK);
        assert_int_equal(bpt_feed_next(m->feed, &batch), BPT_OK);
    }
    assert_int_equal(bpt_feed_state(m->feed).covered, 2);
}

static void test_round_that_comes_later(void **state) {
    (void)state;
    const uint32_t held[2][2] = {{15, 15}, {30, 30}}, rank = bpt_comm_rank(comm);
    moved m = {.place = made_place_create()};
    m.dataset = make_dataset(&m.place, 0);
    m.scratch = rank == 0 ? NULL : open_scratch(&m.place, m.dataset);
    assert_int_equal(bpt_partition_create((bpt_order){0}, COUNT, 2, 2, &m.shares), BPT_OK);
    assert_int_equal(bpt_partition_allot(m.shares, held[0]), BPT_OK);
    bpt_delivery_options options = {
        .rank = rank,
        .dataset = m.scratch ? bpt_scratch_dataset(m.scratch) : m.dataset,
        .record_bytes = (size_t)H * W,
        .scratch = m.scratch,
        .identity = identify(m.dataset),
        .shares = m.shares,
        .batch = BATCH,
        .prefetch = PREFETCH,
        .test_part = test_part,
    };
    assert_int_equal(bpt_dataset_find(options.dataset, "train", &options.train), BPT_OK);
    options.test = options.train;
    assert_int_equal(bpt_delivery_open(comm, &options, &m.delivery), BPT_OK);
    assert_int_equal(bpt_delivery_found(m.delivery), 0);
    if (rank != 0) await_begin(&m, options.train);
    assert_int_equal(bpt_partition_allot(m.shares, held[1]), BPT_OK);
    uint64_t here = 0; /* a sample may be of both */
    if (rank != 0) {
        m.feed = make_feed(&m, options.train, &options.start);
        bpt_delivery_attach(m.delivery, m.feed);
        train_into_second_round(&m, options.train);
        for (uint32_t i = 0; i < COUNT; i++) here += bpt_scratch_has(m.scratch, options.train, i);
        bpt_feed_free(m.feed);
        m.feed = NULL;
    }
    bpt_delivery_close(m.delivery);
    /* Who begins anew finds all of it, and asks for nothing. */
    bpt_scatter_stats stats;
    assert_int_equal(bpt_delivery_open(comm, &options, &m.delivery), BPT_OK);
    assert_int_equal(bpt_delivery_found(m.delivery), here);
    assert_int_equal(bpt_delivery_settle(m.delivery), BPT_OK);
    bpt_delivery_stats(m.delivery, &stats);
    assert_int_equal(stats.items_kept, 0);
    close_moved(&m);
}

/* Of a sample to train on its number, its kind and two marks, one of them as large as a number; of
 * one to test on the first two; and of parcels. Rank 0 has parcels alone. */
static void test_bytes(void **state) {
    (void)state;
    const size_t few = bpt_delivery_bytes(1000, 100, 16, 4, 1);
    assert_int_equal(bpt_delivery_bytes(3000, 100, 16, 4, 1) - few, 2000 * (4 + 1 + 1 + 4));
    assert_int_equal(bpt_delivery_bytes(1000, 700, 16, 4, 1) - few, 600 * (4 + 1));
    assert_int_equal(bpt_delivery_bytes(1000, 100, 16, 4, 0),
                     bpt_delivery_bytes(3000, 700, 16, 4, 0));
    assert_true(few > (size_t)2 * 4096 * 16); /* two parcels of as many as there may be */
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_split_that_rank_0_lacks),
        cmocka_unit_test(test_pass_over_samples_given_away),
        cmocka_unit_test(test_samples_that_nobody_asked_for),
        cmocka_unit_test(test_round_that_comes_later),
        cmocka_unit_test(test_bytes),
    };
    if (bpt_comm_start(&comm) != BPT_OK) return 1;
    const int failed = cmocka_run_group_tests(tests, NULL, NULL);
    if (failed) bpt_comm_abort(comm, 1);
    bpt_comm_stop(comm);
    return bpt_memory_live() == 0 ? 0 : 1;
}
