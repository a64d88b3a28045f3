/* Exchanges where some ranks only host: the last of the job, one and as many as may be.
 * ctest: TIMEOUT=60 RANKS=2,3,4 */
#include "base/checksum.h"
#include "base/json.h"
#include "tests/outer/exchange_fixture.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

/* Last: it needs those above, and defines fail and skip. */
#include <cmocka.h>

enum { MAX_RANKS = 4 };

/* @return how many workers are left */
static uint32_t prepare(fixture *f, const bpt_update_rule *rule, size_t n, uint32_t n_servers) {
    fixture_prepare(f, rule, n, 0);
    f->options.n_servers = n_servers;
    return f->coordinator.n_ranks = f->m - n_servers;
}

static bool is_worker(const fixture *f) {
    return f->rank < f->m - f->options.n_servers;
}

/* What ends a part of a test: rank 0 tells, servers hear of it. @return what was told */
static uint64_t tell(fixture *f, uint64_t told) {
    if (is_worker(f))
        assert_int_equal(bpt_comm_broadcast(comm, 0, &told, sizeof told), BPT_OK);
    else
        assert_int_equal(bpt_exchange_serve(f->x, 0, &told, sizeof told), BPT_OK);
    return told;
}

static void assert_same_on_workers(const fixture *f, const float *values) {
    uint64_t all[MAX_RANKS], mine = values ? bpt_checksum(values, f->n * sizeof *values) : 0;
    assert_int_equal(bpt_comm_allgather(comm, &mine, sizeof mine, all), BPT_OK);
    for (uint32_t r = 1; r < f->m - f->options.n_servers; r++) assert_true(all[r] == all[0]);
}

/* A round of all workers, on this rank alone. */
static void update_serially(uint32_t m, uint64_t seq, size_t n, float *global) {
    float *parts[MAX_RANKS], factor[MAX_RANKS];
    double gamma[MAX_RANKS], quality[MAX_RANKS];
    const uint64_t base[MAX_RANKS] = {0};
    for (uint32_t j = 0; j < m; j++) {
        parts[j] = malloc((n + 1) * sizeof(float));
        fixture_vector(j, seq, n, parts[j]);
        quality[j] = fixture_quality(j);
    }
    bpt_rule_sgwu.weigh(&(bpt_update_inputs){.n_workers = m, .base = base, .quality = quality},
                        gamma);
    for (uint32_t j = 0; j < m; j++) factor[j] = (float)gamma[j];
    bpt_rule_sgwu.merge(&(bpt_merge){.end = n,
                                     .global = global,
                                     .parts = (const float *const *)parts,
                                     .factors = factor,
                                     .n_parts = m});
    for (uint32_t j = 0; j < m; j++) free(parts[j]);
}

/* Every vector that is pushed goes over a wire, and so does every answer. */
static void assert_bytes(const fixture *f, uint64_t pushes) {
    bpt_exchange_stats s, all[MAX_RANKS];
    bpt_exchange_stats_get(f->x, &s);
    assert_int_equal(bpt_comm_allgather(comm, &s, sizeof s, all), BPT_OK);
    const uint64_t workers = f->m - f->options.n_servers, vector = f->n * sizeof(float);
    uint64_t sent = 0, received = 0;
    for (uint32_t r = 0; r < f->m; r++) {
        sent += all[r].payload_sent_bytes;
        received += all[r].payload_received_bytes;
        assert_int_equal(all[r].local_sent_bytes, 0);
        assert_int_equal(all[r].pushes, r < workers ? pushes : 0);
        if (r < workers) assert_int_equal(all[r].updates, 0);
    }
    assert_true(sent == 2 * workers * pushes * vector && received == sent);
}

static void check_rounds(size_t n, uint64_t rounds, uint32_t n_servers) {
    fixture f;
    const uint32_t m = prepare(&f, &bpt_rule_sgwu, n, n_servers);
    fixture_start(&f);
    float *expected = malloc((n + 1) * sizeof *expected);
    memcpy(expected, f.initial, n * sizeof *expected);
    for (uint64_t round = 1; round <= rounds && is_worker(&f); round++) {
        fixture_push(&f, 10 + f.rank, 0);
        const bpt_reply reply = fixture_wait(&f);
        update_serially(m, round, n, expected);
        assert_memory_equal(reply.values, expected, n * sizeof *expected);
        for (uint32_t s = 0; s < n_servers; s++) assert_int_equal(reply.versions[s], round);
        assert_int_equal(reply.progress, round * (10 * m + m * (m - 1) / 2));
    }
    assert_int_equal(tell(&f, 7), 7);
    assert_bytes(&f, rounds);
    assert_int_equal(bpt_shard_count(bpt_exchange_shards(f.x)), n_servers);
    for (uint32_t s = 0; s < n_servers; s++)
        assert_int_equal(bpt_shard_at(bpt_exchange_shards(f.x), s)->host, m + s);
    free(expected);
    fixture_end(&f);
}

static void test_rounds(void **state) {
    (void)state;
    for (uint32_t servers = 1; servers < bpt_comm_size(comm); servers++) {
        check_rounds(1000, 20, servers);
        check_rounds(5, 3, servers);
        check_rounds(1300001, 2, servers); /* more than one chunk a shard */
    }
}

/* Pushes until there is a meeting, of which servers are told. @return its reasons */
static uint32_t push_until_met(fixture *f, uint32_t max_pushes) {
    bpt_reply reply = {0};
    while (is_worker(f) && !reply.met) {
        fixture_push(f, 10, 0);
        reply = fixture_wait(f);
        assert_true(f->pushes < max_pushes);
    }
    assert_int_equal(reply.spread, 0);
    const uint32_t met = (uint32_t)tell(f, reply.met);
    assert_same_on_workers(f, reply.values);
    return met;
}

static void check_meeting(const bpt_update_rule *rule, uint32_t bound, uint32_t n_servers) {
    fixture f;
    const uint32_t m = prepare(&f, rule, 3000, n_servers);
    f.coordinator.total_samples = 10 * 25 * m;
    f.options.max_staleness = bound;
    f.options.terms.elasticity = rule == &bpt_rule_easgd ? 0.3 : 0;
    fixture_start(&f);
    assert_int_equal(push_until_met(&f, 30 * m), BPT_MEET_END);
    bpt_exchange_stats s, all[MAX_RANKS];
    bpt_exchange_stats_get(f.x, &s);
    assert_int_equal(bpt_comm_allgather(comm, &s, sizeof s, all), BPT_OK);
    uint64_t pushes = 0;
    for (uint32_t r = 0; r < m; r++) pushes += all[r].pushes;
    for (uint32_t r = m; r < f.m; r++) assert_int_equal(all[r].updates, pushes);
    fixture_end(&f);
}

static void check_resume(uint32_t n_servers) {
    enum { N = 500 };
    float straight[N] = {0}, half[N] = {0};
    fixture f;
    prepare(&f, &bpt_rule_sgwu, N, n_servers);
    fixture_start(&f);
    bpt_json_writer w = {0};
    for (uint64_t round = 1; round <= 6; round++) {
        if (is_worker(&f)) {
            fixture_push(&f, 10, round == 3 ? BPT_MEET_CHECKPOINT : 0);
            const bpt_reply reply = fixture_wait(&f);
            memcpy(straight, reply.values, sizeof straight);
            assert_int_equal(reply.met, round == 3 ? BPT_MEET_CHECKPOINT : 0);
        }
        if (round != 3) continue;
        tell(&f, BPT_MEET_CHECKPOINT);
        memcpy(half, straight, sizeof half);
        assert_int_equal(bpt_comm_broadcast(comm, 0, half, sizeof half), BPT_OK);
        bpt_json_open_object(&w, NULL);
        bpt_exchange_snapshot(f.x, &w, "exchange");
        bpt_json_close_object(&w);
        assert_int_equal(bpt_comm_barrier(comm), BPT_OK); /* nobody pushes before */
    }
    tell(&f, 0);
    fixture_end(&f);

    const char *text = NULL;
    size_t length = 0;
    bpt_json_doc *doc = NULL;
    assert_int_equal(bpt_json_end_text(&w, &text, &length), BPT_OK);
    assert_int_equal(bpt_json_parse("snapshot", text, length, &doc), BPT_OK);
    prepare(&f, &bpt_rule_sgwu, N, n_servers);
    memcpy(f.initial, half, sizeof half);
    f.options.snapshot_doc = doc;
    f.options.snapshot = bpt_json_find(bpt_json_root(doc), "exchange");
    fixture_start(&f);
    f.pushes = 3;
    bpt_reply reply = {0};
    for (uint64_t round = 4; round <= 6 && is_worker(&f); round++) {
        fixture_push(&f, 10, 0);
        reply = fixture_wait(&f);
    }
    if (is_worker(&f)) {
        assert_memory_equal(reply.values, straight, sizeof straight);
        assert_int_equal(reply.versions[0], 6);
        assert_int_equal(reply.progress, 60 * (f.m - n_servers));
    }
    tell(&f, 0);
    fixture_end(&f);
    bpt_json_doc_free(doc);
    bpt_json_free(&w);
}

static void test_resume(void **state) {
    (void)state;
    for (uint32_t servers = 1; servers < bpt_comm_size(comm); servers++) check_resume(servers);
}

/* Whoever never pushes holds nobody up, under a bound on staleness neither. */
static void test_meetings(void **state) {
    (void)state;
    for (uint32_t servers = 1; servers < bpt_comm_size(comm); servers++) {
        check_meeting(&bpt_rule_agwu, BPT_STALENESS_NONE, servers);
        check_meeting(&bpt_rule_agwu_lag, 0, servers);
        check_meeting(&bpt_rule_easgd, 2, servers);
    }
}

/* Data are given out to workers: servers, one of which decides about it, have no list of them. */
static void check_partition(uint32_t n_servers) {
    enum { SAMPLES = 240, ROUNDS = 2 };
    fixture f;
    const uint32_t m = prepare(&f, &bpt_rule_agwu, 100, n_servers);
    bpt_partition *p = NULL;
    f.coordinator.n_samples = SAMPLES;
    f.coordinator.n_rounds = ROUNDS;
    if (is_worker(&f))
        assert_int_equal(bpt_partition_create((bpt_order){0}, SAMPLES, m, ROUNDS, &p), BPT_OK);
    f.options.partition = p;
    fixture_start(&f);
    if (p) assert_int_equal(bpt_partition_rounds(p), 1);
    while (p && bpt_partition_rounds(p) < ROUNDS) {
        const bpt_report report = {.samples = 10, .busy_ns = 1000, .quality = 1, .covered = 1};
        assert_int_equal(bpt_exchange_push(f.x, &report), BPT_OK);
        (void)fixture_wait(&f);
    }
    tell(&f, 0);
    fixture_end(&f);
    bpt_partition_free(p);
}

static void test_partition(void **state) {
    (void)state;
    for (uint32_t servers = 1; servers < bpt_comm_size(comm); servers++) check_partition(servers);
}

static uint32_t n_asked; /* by the MPI thread alone */

static uint32_t stop_at_last(void) {
    return ++n_asked == 5 ? BPT_MEET_STOP : 0;
}

/* What a server asks for comes to the one that decides by way of a worker. */
static void check_wants(const bpt_update_rule *rule, uint32_t n_servers) {
    fixture f;
    const uint32_t m = prepare(&f, rule, 100, n_servers);
    n_asked = 0;
    if (f.rank == f.m - 1) f.options.wants = stop_at_last;
    fixture_start(&f);
    assert_int_equal(push_until_met(&f, 100 * m), BPT_MEET_STOP);
    for (int i = 0; i < 3 && is_worker(&f); i++) { /* asked for once, met for once */
        fixture_push(&f, 10, 0);
        const bpt_reply reply = fixture_wait(&f);
        assert_true(reply.meet == 0 && reply.met == 0);
    }
    fixture_end(&f);
}

static void test_wants(void **state) {
    (void)state;
    for (uint32_t servers = 1; servers < bpt_comm_size(comm); servers++) {
        check_wants(&bpt_rule_agwu, servers);
        check_wants(&bpt_rule_sgwu, servers);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_rounds), cmocka_unit_test(test_meetings),
        cmocka_unit_test(test_resume), cmocka_unit_test(test_partition),
        cmocka_unit_test(test_wants),
    };
    return RUN_WITH_MPI(tests);
}
