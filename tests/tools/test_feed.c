/* Batches whose samples are not all there from the start: in the same order, and waited for only
 * where there is nothing else to train on. And what is held out is neither trained on nor mixed
 * into what is. */
#include "base/memory.h"
#include "base/random.h"
#include "tests/storage/made_dataset.h"
#include "tools/train/data/feed.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <unistd.h>

/* Last: it needs those above, and defines fail and skip. */
#include <cmocka.h>

enum { COUNT = 60, BATCH = 5, DEPTH = 3, SEED = 3, HELD_CLASS = 2 };

static bpt_augment augment;

/* The real one reads --augment, and wants all the options' checks with it. */
bpt_augment bpt_train_augment(const bpt_train_options *o) {
    (void)o;
    return augment;
}

typedef struct subject {
    made_place place;
    bpt_dataset *dataset;
    const bpt_split *split;
} subject;

static int set_up(void **state) {
    static subject s;
    s.place = made_place_create();
    const bpt_writer_options options = made_options("train", 1, 4, 4);
    if (made_split(s.place.dataset, &options, 1, COUNT) != BPT_OK ||
        bpt_dataset_open(s.place.dataset, &s.dataset) != BPT_OK ||
        bpt_dataset_find(s.dataset, "train", &s.split) != BPT_OK)
        return 1;
    *state = &s;
    return 0;
}

static int tear_down(void **state) {
    subject *s = *state;
    bpt_dataset_close(s->dataset);
    made_place_remove(&s->place);
    return 0;
}

/* @param records of which @p n_held are held out; NULL: none is */
static bpt_feed *create_as(const subject *s, bool as_images, const uint32_t *records,
                           uint32_t n_held, bpt_sampler *sampler) {
    bpt_feed *feed = NULL;
    const bpt_train_options o = {.loader_threads = 1, .prefetch = DEPTH, .seed = SEED};
    const bpt_loader_options options = bpt_feed_options(&o, s->split, BATCH, as_images);
    assert_int_equal(
        bpt_feed_create(s->dataset, s->split, &options, records, n_held, sampler, &feed), BPT_OK);
    return feed;
}

static bpt_feed *create(const subject *s, const uint32_t *records, uint32_t n_held,
                        bpt_sampler *sampler) {
    return create_as(s, false, records, n_held, sampler);
}

static bpt_sampler *make_sampler(uint32_t count) {
    bpt_sampler *sampler = NULL;
    assert_int_equal(
        bpt_sampler_create_global((bpt_order){.seed = SEED}, count, BATCH, 0, &sampler), BPT_OK);
    return sampler;
}

/* Lets batches through up to a number; one that is waited for comes. */
typedef struct gate {
    uint32_t n_open;            /* batches that are here */
    uint32_t n_passed, n_waits; /* let through; waited for */
    bpt_status status;          /* of each look */
} gate;

static bpt_status look(void *arg, const uint32_t *indices, uint32_t n, bool wait, bool *here) {
    gate *g = arg;
    assert_int_equal(n, BATCH);
    for (uint32_t i = 0; i < n; i++) assert_true(indices[i] < COUNT);
    if (g->status != BPT_OK) return bpt_fail(g->status, "the gate is broken");
    *here = wait || g->n_passed < g->n_open;
    g->n_waits += wait && g->n_passed >= g->n_open;
    g->n_passed += *here;
    return BPT_OK;
}

/* The next batch is what the sampler says comes next. */
static void assert_next(bpt_feed *feed, bpt_sampler *expected) {
    uint32_t indices[BATCH];
    bpt_batch batch;
    assert_int_equal(bpt_sampler_next(expected, BATCH, indices, NULL), BPT_OK);
    assert_int_equal(bpt_feed_next(feed, &batch), BPT_OK);
    for (uint32_t i = 0; i < BATCH; i++)
        assert_int_equal(batch.labels[i], made_label(1, indices[i], 3));
    assert_int_equal(bpt_feed_state(feed).position, bpt_sampler_state_get(expected).position);
}

static void test_without_a_gate(void **state) {
    bpt_sampler *expected = make_sampler(COUNT);
    bpt_feed *feed = create(*state, NULL, 0, make_sampler(COUNT));
    for (int i = 0; i < 30; i++) assert_next(feed, expected);
    bpt_feed_free(feed);
    bpt_sampler_free(expected);
}

static float first_of(const void *input, bool as_images) {
    return as_images ? ((const bpt_images *)input)->pixels[0] : ((const float *)input)[0];
}

/* What is looked at ahead is what then comes, and stays while the batch before is in use. */
static void check_peek(const subject *s, bool as_images) {
    bpt_feed *feed = create_as(s, as_images, NULL, 0, make_sampler(COUNT));
    assert_null(bpt_feed_peek(feed)); /* nothing is asked for before the first */
    const void *ahead = NULL;
    float first = 0;
    int n_seen = 0;
    for (int i = 0; i < 200 && n_seen < 20; i++) {
        bpt_batch batch;
        assert_int_equal(bpt_feed_next(feed, &batch), BPT_OK);
        assert_true(as_images == (batch.pixels == NULL));
        if (ahead) {
            assert_ptr_equal(batch.input, ahead);
            assert_true(first_of(ahead, as_images) == first);
            n_seen++;
        }
        if (i % 2) usleep(200); /* its threads come to it */
        ahead = bpt_feed_peek(feed);
        if (ahead) first = first_of(ahead, as_images);
        assert_true(ahead != batch.input);
    }
    assert_true(n_seen > 0);
    bpt_feed_free(feed);
}

static void test_peek(void **state) {
    check_peek(*state, false);
    check_peek(*state, true);
}

static void test_gate(void **state) {
    bpt_sampler *expected = make_sampler(COUNT);
    bpt_feed *feed = create(*state, NULL, 0, make_sampler(COUNT));
    gate g = {.n_open = 2};
    bpt_feed_set_gate(feed, &(bpt_feed_gate){.look = look, .arg = &g});
    assert_next(feed, expected); /* reads one ahead: no more is here */
    assert_int_equal(g.n_passed, 2);
    assert_next(feed, expected);
    assert_int_equal(g.n_passed, 2);
    assert_int_equal(g.n_waits, 0);
    assert_next(feed, expected); /* now there is nothing but to wait */
    assert_int_equal(g.n_passed, 3);
    assert_int_equal(g.n_waits, 1);
    g.n_open = 100;
    for (int i = 0; i < 20; i++) assert_next(feed, expected);
    assert_int_equal(g.n_waits, 1);
    assert_int_equal(g.n_passed, 23 + DEPTH - 1);
    bpt_feed_free(feed);
    bpt_sampler_free(expected);
}

static void test_gate_fails(void **state) {
    bpt_feed *feed = create(*state, NULL, 0, make_sampler(COUNT));
    gate g = {.status = BPT_ENOSPC};
    bpt_batch batch;
    bpt_feed_set_gate(feed, &(bpt_feed_gate){.look = look, .arg = &g});
    assert_int_equal(bpt_feed_next(feed, &batch), BPT_ENOSPC);
    bpt_feed_free(feed);
}

/* Names the records of the split, those of a class first. @return how many of it there are */
static uint32_t hold_out_a_class(uint32_t *records) {
    uint32_t n = 0, n_held = 0;
    for (int others = 0; others < 2; others++) {
        for (uint32_t i = 0; i < COUNT; i++)
            if ((made_label(1, i, 3) != HELD_CLASS) == others) records[n++] = i;
        if (!others) n_held = n;
    }
    return n_held;
}

static void test_held_out(void **state) {
    uint32_t records[COUNT], indices[BATCH], passes[BATCH];
    const uint32_t n_held = hold_out_a_class(records), n_left = COUNT - n_held;
    const uint32_t *left = records + n_held;
    assert_in_range(n_held, 1, COUNT - 1);
    assert_int_equal(bpt_augment_parse("cutmix=1", &augment), BPT_OK);
    bpt_sampler *expected = make_sampler(n_left);
    bpt_feed *feed = create(*state, records, n_held, make_sampler(n_left));
    for (int n = 0; n < 40; n++) {
        bpt_batch batch;
        assert_int_equal(bpt_sampler_next(expected, BATCH, indices, passes), BPT_OK);
        assert_int_equal(bpt_feed_next(feed, &batch), BPT_OK);
        for (uint32_t i = 0; i < BATCH; i++) {
            const uint32_t one = left[indices[i]];
            bpt_random random =
                bpt_random_stream(SEED, BPT_PURPOSE_MIX, (uint64_t)passes[i] << 32 | one);
            const uint32_t other = left[bpt_random_below(&random, n_left)];
            assert_int_equal(batch.labels[i], made_label(1, one, 3));
            assert_int_equal(batch.second_labels[i], made_label(1, other, 3));
            assert_int_not_equal(batch.second_labels[i], HELD_CLASS);
        }
    }
    bpt_feed_free(feed);
    bpt_sampler_free(expected);
    augment.n = 0;
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_without_a_gate), cmocka_unit_test(test_peek),
        cmocka_unit_test(test_gate),           cmocka_unit_test(test_gate_fails),
        cmocka_unit_test(test_held_out),
    };
    return cmocka_run_group_tests(tests, set_up, tear_down);
}
