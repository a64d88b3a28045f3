/* Synchronous rules through the exchange: the same bits as one rank that computes it all.
 * ctest: TIMEOUT=60 RANKS=1,2,3,4 */
#include "base/clock.h"
#include "base/json.h"
#include "base/memory.h"
#include "tests/outer/exchange_fixture.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

/* Last: it needs those above, and defines fail and skip. */
#include <cmocka.h>

/* What round @p seq makes of @p global, computed on this rank alone. */
static void update_serially(const fixture *f, uint64_t seq, float *global) {
    const bpt_update_rule *rule = f->options.rule;
    if (rule->payload == BPT_PAYLOAD_NONE) return;
    float *parts[16], factor[16];
    double gamma[16], quality[16];
    const uint64_t base[16] = {0};
    for (uint32_t j = 0; j < f->m; j++) {
        parts[j] = malloc((f->n + 1) * sizeof(float));
        fixture_vector(j, seq, f->n, parts[j]);
        quality[j] = fixture_quality(j);
    }
    const bpt_update_inputs in = {.n_workers = f->m, .base = base, .quality = quality};
    rule->weigh(&in, gamma);
    for (uint32_t j = 0; j < f->m; j++) factor[j] = (float)gamma[j];
    rule->merge(&(bpt_merge){.end = f->n,
                             .global = global,
                             .parts = (const float *const *)parts,
                             .factors = factor,
                             .n_parts = f->m});
    for (uint32_t j = 0; j < f->m; j++) free(parts[j]);
}

static void check_rounds(const bpt_update_rule *rule, size_t n, uint64_t rounds) {
    fixture f;
    fixture_prepare(&f, rule, n, 0);
    fixture_start(&f);
    float *expected = malloc((n + 1) * sizeof *expected);
    memcpy(expected, f.initial, n * sizeof *expected);
    const uint32_t n_shards = bpt_shard_count(bpt_exchange_shards(f.x));
    assert_int_equal(n_shards, rule->payload == BPT_PAYLOAD_NONE ? 1 : f.m);
    const uint64_t allocations = bpt_memory_allocations(), begin_ns = bpt_clock_ns();
    for (uint64_t round = 1; round <= rounds; round++) {
        fixture_push(&f, 10 + f.rank, 0);
        const bpt_reply reply = fixture_wait(&f);
        update_serially(&f, round, expected);
        assert_memory_equal(reply.values, expected, n * sizeof *expected);
        for (uint32_t s = 0; s < n_shards; s++) assert_int_equal(reply.versions[s], round);
        assert_int_equal(reply.progress, round * (10 * f.m + f.m * (f.m - 1) / 2));
        assert_int_equal(reply.met, 0);
        assert_int_equal(reply.staleness, 0);
        assert_int_equal(reply.spread, 0);
    }
    if (rule->payload == BPT_PAYLOAD_NONE) /* no log */
        assert_int_equal(bpt_memory_allocations(), allocations);
    const uint64_t passed_ns = bpt_clock_ns() - begin_ns;
    bpt_exchange_stats stats;
    bpt_exchange_stats_get(f.x, &stats);
    assert_true(stats.wait_ns <= passed_ns);
    if (rounds > 20 && f.m > 1) assert_true(stats.wait_ns > 0);
    free(expected);
    fixture_end(&f);
}

static void test_sgwu(void **state) {
    (void)state;
    check_rounds(&bpt_rule_sgwu, 1000, 30);
    check_rounds(&bpt_rule_sgwu, 5, 5);       /* some shards are empty */
    check_rounds(&bpt_rule_sgwu, 1300001, 2); /* more than one chunk a shard */
}

static void test_allreduce(void **state) {
    (void)state;
    check_rounds(&bpt_rule_allreduce, 0, 30);
}

static void test_meetings_come_with_the_round(void **state) {
    (void)state;
    fixture f;
    fixture_prepare(&f, &bpt_rule_sgwu, 100, 10 * 7 * bpt_comm_size(comm));
    f.coordinator.checkpoint_every = 10 * 3 * f.m;
    f.coordinator.eval_every = 10 * 2 * f.m;
    fixture_start(&f);
    const uint32_t expected[] = {0,
                                 0,
                                 BPT_MEET_EVAL,
                                 BPT_MEET_CHECKPOINT,
                                 BPT_MEET_EVAL,
                                 BPT_MEET_STOP,
                                 BPT_MEET_EVAL | BPT_MEET_CHECKPOINT,
                                 BPT_MEET_END};
    for (uint64_t round = 1; round <= 7; round++) {
        fixture_push(&f, 10, round == 5 && f.rank == f.m - 1 ? BPT_MEET_STOP : 0);
        const bpt_reply reply = fixture_wait(&f);
        assert_int_equal(reply.met, expected[round]);
        assert_int_equal(reply.meet, 0);
        assert_same_on_all_ranks(reply.values, f.n * sizeof(float));
    }
    fixture_end(&f);
}

/* Rounds 1..6, and rounds 1..3, a snapshot, 4..6 in a second exchange: the same bits. */
static void check_resume(const bpt_update_rule *rule, size_t n) {
    enum { MAX = 500 };
    float straight[MAX], half[MAX], resumed[MAX];
    const size_t bytes = n * sizeof *straight;
    uint64_t version = 0;
    fixture f;
    fixture_prepare(&f, rule, n, 0);
    f.coordinator.checkpoint_every = 10 * 3 * f.m;
    fixture_start(&f);
    bpt_json_writer w = {0};
    for (uint64_t round = 1; round <= 6; round++) {
        fixture_push(&f, 10, 0);
        const bpt_reply reply = fixture_wait(&f);
        memcpy(straight, reply.values, bytes);
        version = reply.versions[0];
        if (round != 3) continue;
        assert_int_equal(reply.met, BPT_MEET_CHECKPOINT);
        memcpy(half, reply.values, bytes);
        bpt_json_open_object(&w, NULL);
        bpt_exchange_snapshot(f.x, &w, "exchange");
        bpt_json_close_object(&w);
    }
    fixture_end(&f);

    const char *text = NULL;
    size_t length = 0;
    bpt_json_doc *doc = NULL;
    assert_int_equal(bpt_json_end_text(&w, &text, &length), BPT_OK);
    assert_int_equal(bpt_json_parse("snapshot", text, length, &doc), BPT_OK);
    fixture_prepare(&f, rule, n, 0);
    f.coordinator.checkpoint_every = 10 * 3 * f.m;
    memcpy(f.initial, half, bytes);
    f.options.snapshot_doc = doc;
    f.options.snapshot = bpt_json_find(bpt_json_root(doc), "exchange");
    fixture_start(&f);
    f.pushes = 3;
    bpt_reply reply = {0};
    for (uint64_t round = 4; round <= 6; round++) {
        fixture_push(&f, 10, 0);
        reply = fixture_wait(&f);
    }
    memcpy(resumed, reply.values, bytes);
    assert_memory_equal(resumed, straight, bytes);
    assert_int_equal(reply.versions[0], version);
    assert_int_equal(reply.progress, 60 * f.m);
    assert_int_equal(reply.met, BPT_MEET_CHECKPOINT);
    fixture_end(&f);
    bpt_json_doc_free(doc);
    bpt_json_free(&w);
}

static void test_resume(void **state) {
    (void)state;
    check_resume(&bpt_rule_sgwu, 500);
    check_resume(&bpt_rule_allreduce, 0);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_sgwu),
        cmocka_unit_test(test_allreduce),
        cmocka_unit_test(test_meetings_come_with_the_round),
        cmocka_unit_test(test_resume),
    };
    return RUN_WITH_MPI(tests);
}
