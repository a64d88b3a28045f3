/* The coordinator: meetings, rounds of data, saving. */
#include "base/memory.h"
#include "outer/exchange/coordinator.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

/* Last: it needs those above, and defines fail and skip. */
#include <cmocka.h>

static bpt_coordinator *make(bpt_coordinator_options options) {
    bpt_coordinator *c = NULL;
    assert_int_equal(bpt_coordinator_create(&options, &c), BPT_OK);
    return c;
}

static bpt_directive report(bpt_coordinator *c, uint32_t rank, bpt_report r) {
    assert_int_equal(bpt_coordinator_report(c, rank, &r), BPT_OK);
    return bpt_coordinator_directive(c);
}

static void test_meetings(void **state) {
    (void)state;
    bpt_coordinator *c = make((bpt_coordinator_options){
        .n_ranks = 2, .total_samples = 100, .checkpoint_every = 40, .eval_every = 30});
    assert_int_equal(report(c, 0, (bpt_report){.samples = 25}).meet, 0);
    assert_int_equal(bpt_coordinator_met(c), 0);
    assert_int_equal(report(c, 1, (bpt_report){.samples = 5}).meet, BPT_MEET_EVAL);
    /* More reasons may come up while the ranks gather; they are met at once. */
    const bpt_directive d = report(c, 0, (bpt_report){.samples = 15});
    assert_int_equal(d.meet, BPT_MEET_EVAL | BPT_MEET_CHECKPOINT);
    assert_int_equal(d.progress, 45);
    assert_int_equal(d.rounds, 0);
    assert_null(d.held);
    assert_int_equal(bpt_coordinator_met(c), BPT_MEET_EVAL | BPT_MEET_CHECKPOINT);
    assert_int_equal(bpt_coordinator_directive(c).meet, 0);
    assert_int_equal(report(c, 0, (bpt_report){.wants = BPT_MEET_STOP}).meet, BPT_MEET_STOP);
    assert_int_equal(report(c, 1, (bpt_report){.samples = 1}).meet, BPT_MEET_STOP);
    assert_int_equal(bpt_coordinator_met(c), BPT_MEET_STOP);
    assert_int_equal(report(c, 1, (bpt_report){.samples = 54}).meet,
                     BPT_MEET_EVAL | BPT_MEET_CHECKPOINT | BPT_MEET_END);
    bpt_coordinator_free(c);
}

/* A meeting that is called is for what comes up later, too. */
static void test_no_reason_takes_the_place_of_another(void **state) {
    (void)state;
    bpt_coordinator *c = make((bpt_coordinator_options){
        .n_ranks = 1, .total_samples = 60, .checkpoint_every = 40, .eval_every = 50});
    assert_int_equal(report(c, 0, (bpt_report){.wants = BPT_MEET_STOP}).meet, BPT_MEET_STOP);
    assert_int_equal(report(c, 0, (bpt_report){.samples = 40}).meet,
                     BPT_MEET_STOP | BPT_MEET_CHECKPOINT);
    assert_int_equal(report(c, 0, (bpt_report){.samples = 10}).meet,
                     BPT_MEET_STOP | BPT_MEET_CHECKPOINT | BPT_MEET_EVAL);
    assert_int_equal(report(c, 0, (bpt_report){.samples = 10}).meet,
                     BPT_MEET_STOP | BPT_MEET_CHECKPOINT | BPT_MEET_EVAL | BPT_MEET_END);
    bpt_coordinator_free(c);
}

static void test_goes_on_from_progress(void **state) {
    (void)state;
    bpt_coordinator *c =
        make((bpt_coordinator_options){.n_ranks = 1, .progress = 80, .checkpoint_every = 40});
    assert_int_equal(report(c, 0, (bpt_report){.samples = 39}).meet, 0);
    assert_int_equal(report(c, 0, (bpt_report){.samples = 1}).meet, BPT_MEET_CHECKPOINT);
    assert_int_equal(bpt_coordinator_directive(c).progress, 120);
    bpt_coordinator_free(c);
}

/* Six rounds to ranks that need 1, 2 and 4 ms a sample: the totals of ALGORITHMS 1.2. */
static void test_rounds(void **state) {
    (void)state;
    bpt_coordinator *c = make((bpt_coordinator_options){
        .n_ranks = 3, .n_samples = 12000, .n_rounds = 6, .speed = (const double[]){3, 3, 2}});
    const uint64_t ms[] = {1, 2, 4};
    assert_int_equal(bpt_coordinator_directive(c).rounds, 1);
    assert_memory_equal(bpt_coordinator_directive(c).held, ((const uint32_t[]){750, 750, 500}), 12);
    for (uint32_t round = 1; round < 6; round++) {
        for (uint32_t r = 0; r < 3; r++) {
            assert_int_equal(bpt_coordinator_directive(c).rounds, round);
            /* Passes over older rounds only do not count. */
            report(c, r,
                   (bpt_report){.samples = 9, .busy_ns = 9000000 * ms[r], .covered = round - 1});
            assert_int_equal(bpt_coordinator_directive(c).rounds, round);
            report(c, r, (bpt_report){.samples = 9, .busy_ns = 9000000 * ms[r], .covered = round});
        }
        assert_int_equal(bpt_coordinator_directive(c).rounds, round + 1);
    }
    assert_memory_equal(bpt_coordinator_round(c, 5), ((const uint32_t[]){6857, 3429, 1714}), 12);
    for (uint32_t r = 0; r < 3; r++) report(c, r, (bpt_report){.covered = 6});
    assert_int_equal(bpt_coordinator_directive(c).rounds, 6);
    bpt_coordinator_free(c);
}

static void test_even_shares(void **state) {
    (void)state;
    bpt_coordinator *c =
        make((bpt_coordinator_options){.n_ranks = 3, .n_samples = 11, .n_rounds = 1});
    assert_memory_equal(bpt_coordinator_directive(c).held, ((const uint32_t[]){4, 4, 3}), 12);
    bpt_coordinator_free(c);
}

/* Ranks that never measured time get later rounds by what they were believed to do. */
static void test_rounds_without_measurements(void **state) {
    (void)state;
    bpt_coordinator *c = make((bpt_coordinator_options){
        .n_ranks = 2, .n_samples = 60, .n_rounds = 2, .speed = (const double[]){2, 1}});
    report(c, 0, (bpt_report){.samples = 20, .busy_ns = 5, .covered = 1});
    report(c, 1, (bpt_report){.samples = 10, .covered = 1});
    assert_memory_equal(bpt_coordinator_directive(c).held, ((const uint32_t[]){40, 20}), 8);
    bpt_coordinator_free(c);
    c = make((bpt_coordinator_options){
        .n_ranks = 2, .n_samples = 60, .n_rounds = 2, .speed = (const double[]){2, 1}});
    report(c, 0, (bpt_report){.samples = 20, .covered = 1});
    report(c, 1, (bpt_report){.samples = 10, .busy_ns = 5, .covered = 1});
    assert_memory_equal(bpt_coordinator_directive(c).held, ((const uint32_t[]){40, 20}), 8);
    bpt_coordinator_free(c);
}

/* One pass of every rank over what it holds, by which each needs so long for a sample. */
static void pass(bpt_coordinator *c, const uint64_t *ms) {
    const bpt_directive d = bpt_coordinator_directive(c);
    const uint32_t rounds = d.rounds;
    uint32_t held[4];
    memcpy(held, d.held, 3 * sizeof *held);
    for (uint32_t r = 0; r < 3; r++)
        report(c, r,
               (bpt_report){
                   .samples = held[r], .busy_ns = 1000000 * ms[r] * held[r], .covered = rounds});
}

/* A rank that becomes four times as slow loses samples to the others, which keep what they have;
 * where nothing changes nothing moves. */
static void test_shares_follow_speeds(void **state) {
    (void)state;
    static const uint64_t before[] = {1, 2, 4}, after[] = {1, 8, 4};
    bpt_coordinator_options o = {.n_ranks = 3,
                                 .n_samples = 7000,
                                 .n_rounds = 1,
                                 .speed = (const double[]){4, 2, 1},
                                 .rebalance = 0.1};
    bpt_coordinator *c = make(o);
    assert_memory_equal(bpt_coordinator_round(c, 0), ((const uint32_t[]){4000, 2000, 1000}), 12);
    for (int i = 0; i < 20; i++) pass(c, before);
    assert_int_equal(bpt_coordinator_directive(c).rounds, 1);
    const uint64_t allocations = bpt_memory_allocations();
    for (int i = 0; i < 20; i++) pass(c, before);
    assert_int_equal(bpt_memory_allocations(), allocations); /* a report is part of a step */

    /* One measurement of several says little, eight by the new speed do. */
    for (int i = 0; i < 8; i++) {
        assert_int_equal(bpt_coordinator_directive(c).rounds, 1);
        pass(c, after);
    }
    assert_int_equal(bpt_coordinator_directive(c).rounds, 2);
    assert_memory_equal(bpt_coordinator_directive(c).held, ((const uint32_t[]){5091, 636, 1273}),
                        12);
    for (int i = 0; i < 20; i++) pass(c, after);
    assert_int_equal(bpt_coordinator_directive(c).rounds, 2);
    bpt_coordinator_free(c);

    o.rebalance = 0;
    c = make(o);
    for (int i = 0; i < 20; i++) pass(c, after);
    assert_int_equal(bpt_coordinator_directive(c).rounds, 1);
    bpt_coordinator_free(c);
}

/* Shares of 10 and 10, made even by what was believed, of ranks that are so fast.
 * @return what the first holds once that is known */
static uint32_t settled_share(uint64_t samples, uint64_t of_other) {
    bpt_coordinator *c = make(
        (bpt_coordinator_options){.n_ranks = 2, .n_samples = 20, .n_rounds = 1, .rebalance = 0.05});
    for (int i = 0; i < 8; i++) {
        report(c, 0, (bpt_report){.samples = samples, .busy_ns = 1000000000, .covered = 1});
        report(c, 1, (bpt_report){.samples = of_other, .busy_ns = 1000000000, .covered = 1});
    }
    const uint32_t held = bpt_coordinator_directive(c).held[0];
    bpt_coordinator_free(c);
    return held;
}

/* A twentieth of 10 is half a sample, and rounding makes another: one sample does not move. */
static void test_rounding_moves_nothing(void **state) {
    (void)state;
    assert_int_equal(settled_share(106, 94), 10); /* 10.6: 11 */
    assert_int_equal(settled_share(94, 106), 10);
    assert_int_equal(settled_share(116, 84), 12); /* 11.6: 12 */
    assert_int_equal(settled_share(84, 116), 8);
}

/* Nothing moves while a rank is still at its first pass over what it holds, nor while the speed of
 * one is not known well. */
static void check_waiting_for(uint32_t late) {
    const uint64_t s = 1000000000;
    const uint32_t other = 1 - late;
    bpt_coordinator *c = make(
        (bpt_coordinator_options){.n_ranks = 2, .n_samples = 100, .n_rounds = 1, .rebalance = 0.1});
    for (int i = 0; i < 8; i++)
        report(c, other, (bpt_report){.samples = 50, .busy_ns = s, .covered = 1});
    for (int i = 0; i < 7; i++)
        report(c, late, (bpt_report){.samples = 50, .busy_ns = 2 * s, .covered = 1});
    assert_int_equal(bpt_coordinator_directive(c).rounds, 1);
    report(c, late, (bpt_report){.samples = 50, .busy_ns = 2 * s, .covered = 0});
    assert_int_equal(bpt_coordinator_directive(c).rounds, 1);
    report(c, late, (bpt_report){.covered = 1});
    assert_int_equal(bpt_coordinator_directive(c).rounds, 2);
    assert_int_equal(bpt_coordinator_directive(c).held[other], 67);
    assert_int_equal(bpt_coordinator_directive(c).held[late], 33);
    bpt_coordinator_free(c);
}

static void test_shares_wait_for_whole_passes(void **state) {
    (void)state;
    check_waiting_for(0);
    check_waiting_for(1);
}

static const bpt_coordinator_options saved_options = {
    .n_ranks = 2, .total_samples = 1000, .checkpoint_every = 70, .n_samples = 61, .n_rounds = 3};

/* @return what is saved, valid until the next call with @p w */
static const char *save(const bpt_coordinator *c, bpt_json_writer *w) {
    const char *text = NULL;
    size_t length = 0;
    bpt_json_reset(w);
    bpt_json_open_object(w, NULL);
    bpt_coordinator_save(c, w, "coordinator");
    bpt_json_close_object(w);
    assert_int_equal(bpt_json_end_text(w, &text, &length), BPT_OK);
    return text;
}

static const bpt_json *state_in(const bpt_json_doc *doc) {
    return bpt_json_find(bpt_json_root(doc), "coordinator");
}

/* Saved and loaded, or copied: goes on alike. */
static void test_save_and_load(void **state) {
    (void)state;
    bpt_coordinator *a = make(saved_options), *b = make(saved_options), *copy = make(saved_options);
    report(a, 0, (bpt_report){.samples = 30, .busy_ns = 3333, .covered = 1});
    report(a, 1, (bpt_report){.samples = 10, .busy_ns = 7777, .covered = 1});
    assert_int_equal(bpt_coordinator_directive(a).rounds, 2);
    bpt_json_writer w = {0}, other = {0};
    bpt_json_doc *doc = NULL;
    const char *text = save(a, &w);
    /* What it has come to by itself is nothing any more. */
    report(b, 0, (bpt_report){.samples = 80, .busy_ns = 1000000000, .covered = 1});
    assert_int_equal(bpt_coordinator_met(b), BPT_MEET_CHECKPOINT);
    report(b, 1, (bpt_report){.samples = 5, .busy_ns = 1000000000, .wants = BPT_MEET_STOP});
    assert_int_equal(bpt_json_parse("state", text, strlen(text), &doc), BPT_OK);
    assert_int_equal(bpt_coordinator_load(b, doc, state_in(doc)), BPT_OK);
    assert_int_equal(bpt_coordinator_directive(b).meet, 0);
    bpt_coordinator_copy(copy, a);
    bpt_json_doc_free(doc);
    assert_string_equal(save(b, &other), text);
    assert_string_equal(save(copy, &other), text);
    bpt_json_free(&other);

    bpt_coordinator *all[] = {a, b, copy};
    for (int i = 0; i < 3; i++) {
        bpt_coordinator *c = all[i];
        assert_int_equal(bpt_coordinator_directive(c).progress, 40);
        assert_non_null(strstr(save(c, &w), "\"timed_samples\": [30, 10]"));
        assert_non_null(strstr(save(c, &w), "\"timed_ns\": [3333, 7777]"));
        report(c, 0, (bpt_report){.samples = 20, .busy_ns = 2000, .covered = 2});
        const bpt_directive d =
            report(c, 1, (bpt_report){.samples = 10, .busy_ns = 9000, .covered = 2});
        assert_int_equal(d.meet, BPT_MEET_CHECKPOINT);
        assert_int_equal(d.rounds, 3);
        assert_memory_equal(d.held, bpt_coordinator_directive(a).held, 8);
        for (uint32_t round = 0; round < 3; round++)
            assert_memory_equal(bpt_coordinator_round(c, round), bpt_coordinator_round(a, round),
                                8);
        bpt_coordinator_free(i > 0 ? c : NULL);
    }
    bpt_coordinator_free(a);
    bpt_json_free(&w);
}

/* A meeting that is called, and when the next ones are due. */
static void test_copy_between_meetings(void **state) {
    (void)state;
    const bpt_coordinator_options o = {.n_ranks = 1, .checkpoint_every = 40, .eval_every = 50};
    bpt_coordinator *a = make(o), *copy = make(o);
    report(a, 0, (bpt_report){.samples = 55});
    assert_int_equal(bpt_coordinator_met(a), BPT_MEET_CHECKPOINT | BPT_MEET_EVAL);
    report(a, 0, (bpt_report){.wants = BPT_MEET_STOP});
    assert_int_equal(bpt_coordinator_copy(copy, a), BPT_OK);
    assert_int_equal(bpt_coordinator_directive(copy).meet, BPT_MEET_STOP);
    assert_int_equal(report(copy, 0, (bpt_report){.samples = 24}).meet, BPT_MEET_STOP);
    assert_int_equal(report(copy, 0, (bpt_report){.samples = 1}).meet,
                     BPT_MEET_STOP | BPT_MEET_CHECKPOINT);
    assert_int_equal(report(copy, 0, (bpt_report){.samples = 20}).meet,
                     BPT_MEET_STOP | BPT_MEET_CHECKPOINT | BPT_MEET_EVAL);
    bpt_coordinator_free(copy);
    bpt_coordinator_free(a);
}

static bpt_status load(bpt_coordinator *c, const char *text) {
    bpt_json_doc *doc = NULL;
    assert_int_equal(bpt_json_parse("state", text, strlen(text), &doc), BPT_OK);
    const bpt_status status = bpt_coordinator_load(c, doc, bpt_json_root(doc));
    bpt_json_doc_free(doc);
    return status;
}

static void test_load_of_something_else(void **state) {
    (void)state;
    static const char good[] =
        "{\"ranks\":2,\"samples\":61,\"progress\":0,\"rounds\":[[0,20]],\"covered\":[0,1],"
        "\"timed_samples\":[0,0],\"timed_ns\":[0,0]}";
    const char *const bad[] = {
        "{}",
        "{\"ranks\":3,\"samples\":61,\"progress\":0,\"rounds\":[[0,20]],\"covered\":[0,1],"
        "\"timed_samples\":[0,0],\"timed_ns\":[0,0]}",
        "{\"ranks\":2,\"samples\":60,\"progress\":0,\"rounds\":[[0,20]],\"covered\":[0,1],"
        "\"timed_samples\":[0,0],\"timed_ns\":[0,0]}",
        "{\"ranks\":2,\"samples\":61,\"progress\":0,\"rounds\":[],\"covered\":[],\"timed_samples\":"
        "[],\"timed_ns\":[]}",
        "{\"ranks\":2,\"samples\":61,\"progress\":0,\"rounds\":[[10,11]],\"covered\":[0,0],"
        "\"timed_samples\":[0,0],\"timed_ns\":[0,0]}",
        "{\"ranks\":2,\"samples\":61,\"progress\":0,\"rounds\":[[20]],\"covered\":[0,0],"
        "\"timed_samples\":[0,0],\"timed_ns\":[0,0]}",
        "{\"ranks\":2,\"samples\":61,\"progress\":0,\"rounds\":[[10,10],[9,31]],\"covered\":[0,0],"
        "\"timed_samples\":[0,0],\"timed_ns\":[0,0]}",
        "{\"ranks\":2,\"samples\":61,\"progress\":0,\"rounds\":[[10,10]],\"covered\":[0,2],"
        "\"timed_samples\":[0,0],\"timed_ns\":[0,0]}",
        "{\"ranks\":2,\"samples\":61,\"progress\":0,\"rounds\":[[10,10]],\"covered\":[0,1],"
        "\"timed_samples\":[0,0],\"timed_ns\":[0]}",
    };
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        bpt_coordinator *c = make(saved_options);
        assert_int_equal(load(c, bad[i]), BPT_EDATA);
        bpt_coordinator_free(c);
    }
    bpt_coordinator *c = make(saved_options);
    assert_int_equal(load(c, good), BPT_OK);
    bpt_coordinator_free(c);
}

/* Where there is no split to give out there are no rounds. */
static void test_load_without_samples(void **state) {
    (void)state;
    bpt_coordinator *c = make((bpt_coordinator_options){.n_ranks = 1});
    assert_int_equal(load(c,
                          "{\"ranks\":1,\"samples\":0,\"progress\":7,\"rounds\":[],\"covered\":[0],"
                          "\"timed_samples\":[0],\"timed_ns\":[0]}"),
                     BPT_OK);
    assert_int_equal(bpt_coordinator_directive(c).progress, 7);
    assert_int_equal(
        load(c,
             "{\"ranks\":1,\"samples\":0,\"progress\":7,\"rounds\":[[0]],\"covered\":[0],"
             "\"timed_samples\":[0],\"timed_ns\":[0]}"),
        BPT_EDATA);
    bpt_coordinator_free(c);
}

static void test_wrong_options_and_no_memory(void **state) {
    (void)state;
    bpt_coordinator *c = NULL;
    bpt_coordinator_options o = {.n_ranks = 4, .n_samples = 11, .n_rounds = 3};
    assert_int_equal(bpt_coordinator_create(&o, &c), BPT_EUSAGE);
    assert_string_equal(bpt_error_last()->hint, "use fewer rounds or fewer ranks");
    o.n_samples = 100;
    o.speed = (const double[]){1, 1, -1, 1};
    assert_int_equal(bpt_coordinator_create(&o, &c), BPT_EUSAGE);
    const uint64_t live = bpt_memory_live();
    for (int64_t n = 0; !c; n++) {
        bpt_memory_fail_at(n);
        const bpt_status status = bpt_coordinator_create(&saved_options, &c);
        bpt_memory_fail_at(-1);
        assert_int_equal(status, c ? BPT_OK : BPT_ENOMEM);
        if (!c) assert_int_equal(bpt_memory_live(), live);
    }
    bpt_coordinator_free(c);
    assert_int_equal(bpt_memory_live(), live);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_meetings),
        cmocka_unit_test(test_no_reason_takes_the_place_of_another),
        cmocka_unit_test(test_goes_on_from_progress),
        cmocka_unit_test(test_rounds),
        cmocka_unit_test(test_even_shares),
        cmocka_unit_test(test_rounds_without_measurements),
        cmocka_unit_test(test_shares_follow_speeds),
        cmocka_unit_test(test_rounding_moves_nothing),
        cmocka_unit_test(test_shares_wait_for_whole_passes),
        cmocka_unit_test(test_save_and_load),
        cmocka_unit_test(test_copy_between_meetings),
        cmocka_unit_test(test_load_of_something_else),
        cmocka_unit_test(test_load_without_samples),
        cmocka_unit_test(test_wrong_options_and_no_memory),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
