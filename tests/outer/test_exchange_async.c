/* The asynchronous rule through the exchange: replay from the logs, bytes, bound, meetings.
 * ctest: TIMEOUT=60 RANKS=1,2,3,4 */
#include "base/clock.h"
#include "base/file.h"
#include "base/json.h"
#include "base/memory.h"
#include "base/random.h"
#include "outer/data/sampler.h"
#include "tests/base/near.h"
#include "tests/outer/exchange_fixture.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

/* Last: it needs those above, and defines fail and skip. */
#include <cmocka.h>

static void sleep_us(uint32_t us) {
    nanosleep(&(struct timespec){.tv_nsec = (long)us * 1000}, NULL);
}

static uint64_t sum_over_ranks(uint64_t mine) {
    uint64_t all[16], sum = 0;
    assert_int_equal(bpt_comm_allgather(comm, &mine, sizeof mine, all), BPT_OK);
    for (uint32_t r = 0; r < bpt_comm_size(comm); r++) sum += all[r];
    return sum;
}

/* What reply->spread says is what its versions say, and what is counted of it. */
static void check_spread(const fixture *f, const bpt_reply *reply, uint64_t *largest) {
    assert_int_equal(reply->spread, bpt_shard_spread(bpt_exchange_shards(f->x), reply->versions));
    if (reply->met) assert_int_equal(reply->spread, 0);
    if (reply->spread > *largest) *largest = reply->spread;
}

static void check_spread_counts(const bpt_exchange_stats *stats, uint64_t answers) {
    uint64_t counted = 0;
    for (int i = 0; i < BPT_STALENESS_BUCKETS; i++) counted += stats->spread[i];
    assert_int_equal(counted, answers);
}

/* Pushes until the job ends, with pauses of up to @p pause_us. @return the last answer */
static bpt_reply run_to_the_end(fixture *f, uint32_t pause_us) {
    bpt_random r = bpt_random_stream(11, BPT_PURPOSE_TEST, f->rank);
    bpt_reply reply = {0};
    while (!(reply.met & BPT_MEET_END)) {
        if (pause_us) sleep_us(bpt_random_below(&r, pause_us));
        fixture_push(f, 10, 0);
        if (pause_us) sleep_us(bpt_random_below(&r, pause_us));
        reply = fixture_wait(f);
        check_spread(f, &reply, &f->largest_spread);
    }
    return reply;
}

static double get_real(const bpt_json_doc *doc, const char *key) {
    double value = 0;
    assert_int_equal(bpt_json_get_real(doc, bpt_json_root(doc), key, &value), BPT_OK);
    return value;
}

static uint64_t get(const bpt_json_doc *doc, const char *key) {
    uint64_t value = 0;
    assert_int_equal(bpt_json_get_u64(doc, bpt_json_root(doc), key, 0, UINT64_MAX, &value), BPT_OK);
    return value;
}

typedef struct replay {
    uint64_t updates, max_lead, seq[16];
} replay;

/* Applies the updates of this rank's log to the initial values of its shard.
 * @param values in: initial values of the whole vector; out: this shard's part replayed */
static replay replay_log(const fixture *f, float *values) {
    const bpt_shard *shard = bpt_shard_at(bpt_exchange_shards(f->x), f->rank);
    replay r = {0};
    char *text = NULL;
    size_t size = 0;
    assert_int_equal(bpt_file_read(f->log_path, 1 << 26, &text, &size), BPT_OK);
    for (char *line = text; *line;) {
        char *end = strchr(line, '\n');
        assert_non_null(end);
        bpt_json_doc *doc = NULL;
        assert_int_equal(bpt_json_parse("log", line, (size_t)(end - line), &doc), BPT_OK);
        const uint32_t worker = (uint32_t)get(doc, "worker");
        assert_int_equal(get(doc, "shard"), f->rank);
        assert_int_equal(get(doc, "version"), ++r.updates);
        assert_int_equal(get(doc, "seq"), ++r.seq[worker]);
        assert_int_equal(get(doc, "staleness"), r.updates - 1 - get(doc, "base"));
        if (get(doc, "lead") > r.max_lead) r.max_lead = get(doc, "lead");
        const float factor = (float)(get_real(doc, "gamma") * get_real(doc, "q"));
        fixture_vector(worker, r.seq[worker], f->n, f->vector);
        for (size_t i = shard->begin; i < shard->end; i++) values[i] += factor * f->vector[i];
        bpt_json_doc_free(doc);
        line = end + 1;
    }
    bpt_free(text);
    return r;
}

static void check_replay(fixture *f, const bpt_reply *reply, replay *result) {
    const bpt_shard *shard = bpt_shard_at(bpt_exchange_shards(f->x), f->rank);
    float *values = malloc((f->n + 1) * sizeof *values);
    memcpy(values, f->initial, f->n * sizeof *values);
    *result = replay_log(f, values);
    assert_int_equal(result->updates, reply->versions[f->rank]);
    assert_memory_equal(values + shard->begin, reply->values + shard->begin,
                        (shard->end - shard->begin) * sizeof *values);
    free(values);
}

/* @param part of the values that each rank hosts; NULL: all alike */
static void check_run(size_t n, const double *part, uint64_t pushes_per_rank, uint32_t pause_us) {
    fixture f;
    fixture_prepare(&f, &bpt_rule_agwu, n, 10 * pushes_per_rank * bpt_comm_size(comm));
    f.options.part = part;
    fixture_start(&f);
    const bpt_reply reply = run_to_the_end(&f, pause_us);
    assert_int_equal(reply.met, BPT_MEET_END);
    assert_same_on_all_ranks(reply.values, n * sizeof(float));
    assert_same_on_all_ranks(reply.versions, f.m * sizeof *reply.versions);
    replay result;
    check_replay(&f, &reply, &result);

    const uint64_t pushes = sum_over_ranks(f.pushes);
    assert_int_equal(reply.progress, 10 * pushes);
    bpt_exchange_stats stats;
    bpt_exchange_stats_get(f.x, &stats);
    assert_int_equal(stats.pushes, f.pushes);
    assert_int_equal(stats.updates, pushes);
    assert_int_equal(stats.held, 0);
    assert_int_equal(sum_over_ranks(stats.payload_sent_bytes), 2 * 4 * n * pushes);
    assert_int_equal(sum_over_ranks(stats.payload_received_bytes), 2 * 4 * n * pushes);
    assert_int_equal(sum_over_ranks(stats.header_sent_bytes),
                     sum_over_ranks(stats.header_received_bytes));
    if (f.m == 1)
        assert_int_equal(stats.local_sent_bytes,
                         stats.payload_sent_bytes + stats.header_sent_bytes);
    uint64_t counted = 0;
    for (int i = 0; i < BPT_STALENESS_BUCKETS; i++) counted += stats.staleness[i];
    assert_int_equal(counted, pushes);
    if (f.m == 1) assert_int_equal(stats.staleness[0], pushes);
    check_spread_counts(&stats, f.pushes);
    if (f.m == 1) assert_int_equal(stats.spread[0], pushes);
    fixture_end(&f);
}

/* Asserts that the first update of this rank's log weighs its worker against all of them. */
static void assert_qualities_are_known(const fixture *f) {
    char *text = NULL;
    size_t size = 0;
    bpt_json_doc *doc = NULL;
    double sum = 0;
    for (uint32_t j = 0; j < f->m; j++) sum += fixture_quality(j);
    assert_int_equal(bpt_file_read(f->log_path, 1 << 26, &text, &size), BPT_OK);
    assert_int_equal(bpt_json_parse("log", text, strcspn(text, "\n"), &doc), BPT_OK);
    const double own = fixture_quality((uint32_t)get(doc, "worker"));
    assert_near(get_real(doc, "q"), own * f->m / sum, 1e-12);
    bpt_json_doc_free(doc);
    bpt_free(text);
}

/* Goes on from a meeting to which the ranks came with unlike numbers of pushes. */
static void test_resume(void **state) {
    (void)state;
    enum { N = 100, EACH = 20 };
    float values[N];
    fixture f;
    fixture_prepare(&f, &bpt_rule_agwu, N, 10 * EACH * bpt_comm_size(comm));
    fixture_start(&f);
    bpt_reply reply = run_to_the_end(&f, 1000 * f.rank); /* rank 0 pushes the most */
    memcpy(values, reply.values, sizeof values);
    const uint64_t version = reply.versions[0], pushes = f.pushes;
    bpt_json_writer w = {0};
    bpt_json_open_object(&w, NULL);
    bpt_exchange_snapshot(f.x, &w, "exchange");
    bpt_json_close_object(&w);
    fixture_end(&f);

    const char *text = NULL;
    size_t length = 0;
    bpt_json_doc *doc = NULL;
    assert_int_equal(bpt_json_end_text(&w, &text, &length), BPT_OK);
    assert_int_equal(bpt_json_parse("snapshot", text, length, &doc), BPT_OK);
    fixture_prepare(&f, &bpt_rule_agwu, N, 2 * 10 * EACH * bpt_comm_size(comm));
    memcpy(f.initial, values, sizeof values);
    f.options.snapshot_doc = doc;
    f.options.snapshot = bpt_json_find(bpt_json_root(doc), "exchange");
    fixture_start(&f);
    f.pushes = pushes;
    reply = run_to_the_end(&f, 0);
    assert_true(reply.versions[0] > version);
    bpt_exchange_stats stats;
    bpt_exchange_stats_get(f.x, &stats);
    check_spread_counts(&stats, f.pushes); /* of before the resume too */
    assert_int_equal(reply.versions[0], sum_over_ranks(f.pushes));
    assert_int_equal(reply.progress, 10 * sum_over_ranks(f.pushes));
    assert_same_on_all_ranks(reply.values, sizeof values);
    assert_qualities_are_known(&f);
    fixture_end(&f);
    bpt_json_doc_free(doc);
    bpt_json_free(&w);
}

static void test_replay(void **state) {
    (void)state;
    check_run(1000, NULL, 40, 0);
    check_run(1000, NULL, 20, 3000);
    check_run(7, NULL, 10, 500); /* some shards are empty */
}

static void test_replay_of_chunks(void **state) {
    (void)state;
    check_run(1300001, NULL, 4, 0);
}

/* The others make no move before rank 0 has had all its answers: it never waits for them. */
static void test_a_slow_rank_holds_nobody_up(void **state) {
    (void)state;
    fixture f;
    fixture_prepare(&f, &bpt_rule_agwu, 300, 1000);
    fixture_start(&f);
    if (f.rank == 0)
        for (int i = 0; i < 50; i++) {
            fixture_push(&f, 10, 0);
            assert_int_equal(fixture_wait(&f).staleness, 0);
        }
    assert_int_equal(bpt_comm_barrier(comm), BPT_OK);
    if (f.rank != 0) { /* what it pushes is as old as that */
        fixture_push(&f, 10, 0);
        assert_in_range(fixture_wait(&f).staleness, 50, 50 + f.m);
    }
    assert_int_equal(bpt_comm_barrier(comm), BPT_OK);
    const bpt_reply reply = run_to_the_end(&f, 0);
    replay result;
    check_replay(&f, &reply, &result);
    fixture_end(&f);
}

/* Rank 0 alone gets as far as the bound and no further until the others move. */
static void run_into_bound(fixture *f, int bound) {
    if (f->rank == 0) {
        for (int i = 0; i < bound; i++) {
            fixture_push(f, 10, 0);
            fixture_wait(f);
        }
        fixture_push(f, 10, 0);
        if (f->m > 1) { /* alone it is the slowest too, and waits for nobody */
            sleep_us(30000);
            assert_false(bpt_exchange_ready(f->x));
        }
    }
    assert_int_equal(bpt_comm_barrier(comm), BPT_OK);
    if (f->rank == 0) fixture_wait(f);
}

static void meet(fixture *f) {
    for (bpt_reply reply = {0}; !reply.met; reply = fixture_wait(f))
        fixture_push(f, 10, reply.meet ? 0 : BPT_MEET_CHECKPOINT);
}

/* From the start, and from each meeting, of which all go on alike. */
static void test_bound(void **state) {
    (void)state;
    enum { BOUND = 3 };
    fixture f;
    fixture_prepare(&f, &bpt_rule_agwu, 300, 1200);
    f.options.max_staleness = BOUND;
    fixture_start(&f);
    run_into_bound(&f, BOUND);
    for (int i = 0; i < 2; i++) {
        meet(&f);
        run_into_bound(&f, BOUND);
    }
    const bpt_reply reply = run_to_the_end(&f, f.rank == f.m - 1 ? 2000 : 0);
    replay result;
    check_replay(&f, &reply, &result);
    assert_true(result.max_lead <= BOUND);
    assert_true(f.largest_spread <= (f.m - 1) * (2 * BOUND + 1));
    bpt_exchange_stats stats;
    bpt_exchange_stats_get(f.x, &stats);
    /* At the shard of rank 0 its own push was there before it let the others move. */
    assert_true(f.m == 1 || f.rank != 0 || stats.held > 0);
    fixture_end(&f);
}

/* A bound of 0 makes rounds; with meetings in between nothing stands still. */
static void test_bound_of_zero_with_meetings(void **state) {
    (void)state;
    fixture f;
    fixture_prepare(&f, &bpt_rule_agwu, 50, 40 * 10 * bpt_comm_size(comm));
    f.options.max_staleness = 0;
    f.coordinator.checkpoint_every = 30 * f.m;
    fixture_start(&f);
    const bpt_reply reply = run_to_the_end(&f, 300 * f.rank + 1);
    replay result;
    check_replay(&f, &reply, &result);
    assert_int_equal(result.max_lead, 0);
    assert_true(f.largest_spread <= f.m - 1);
    fixture_end(&f);
}

/* One rank asks for a checkpoint, then another for a stop: each time all meet. */
static void test_meetings(void **state) {
    (void)state;
    fixture f;
    fixture_prepare(&f, &bpt_rule_agwu, 2000, 0);
    fixture_start(&f);
    const uint32_t reasons[] = {BPT_MEET_CHECKPOINT, BPT_MEET_EVAL, BPT_MEET_STOP};
    for (uint32_t k = 0; k < 3; k++) {
        bpt_reply reply = {0};
        for (uint32_t i = 0; !reply.met; i++) {
            const bool called = reply.meet != 0;
            sleep_us(200 * f.rank);
            fixture_push(&f, 10, i == 3 && f.rank == k % f.m ? reasons[k] : 0);
            reply = fixture_wait(&f);
            assert_int_equal(reply.met != 0, called);
        }
        assert_int_equal(reply.met, reasons[k]);
        assert_int_equal(reply.meet, 0);
        assert_same_on_all_ranks(reply.values, f.n * sizeof(float));
        assert_same_on_all_ranks(reply.versions, f.m * sizeof *reply.versions);
        assert_same_on_all_ranks(&reply.progress, sizeof reply.progress);
    }
    fixture_end(&f);
}

static bool hears_of_a_meeting(fixture *f) {
    for (int ms = 0; ms < 20000 && !bpt_exchange_called(f->x); ms++) sleep_us(1000);
    return bpt_exchange_called(f->x);
}

/* Where one rank meets, the others are told although they neither push nor wait. */
static void test_a_meeting_is_heard_of(void **state) {
    (void)state;
    fixture f;
    fixture_prepare(&f, &bpt_rule_agwu, 2000, 0);
    fixture_start(&f);
    for (uint32_t k = 0; k < 5; k++) {
        fixture_push(&f, 10, 0);
        assert_int_equal(fixture_wait(&f).meet, 0);
        assert_false(bpt_exchange_called(f.x));
        assert_int_equal(bpt_comm_barrier(comm), BPT_OK);
        if (f.rank == k % f.m) {
            fixture_push(&f, 10, BPT_MEET_CHECKPOINT);
            assert_int_equal(fixture_wait(&f).meet, BPT_MEET_CHECKPOINT);
        }
        assert_true(hears_of_a_meeting(&f));
        fixture_push(&f, 10, 0);
        const bpt_reply reply = fixture_wait(&f);
        assert_int_equal(reply.met, BPT_MEET_CHECKPOINT);
        assert_same_on_all_ranks(reply.values, f.n * sizeof(float));
        assert_false(bpt_exchange_called(f.x));
    }
    fixture_end(&f);
}

/* Rounds of data reach every rank, and streams take them up. */
static void test_partition_grows(void **state) {
    (void)state;
    enum { ROUNDS = 3, SAMPLES = 240, STEP = 20 };
    fixture f;
    fixture_prepare(&f, &bpt_rule_agwu, 64, 0);
    bpt_partition *partition = NULL;
    bpt_sampler *sampler = NULL;
    assert_int_equal(bpt_partition_create((bpt_order){.seed = 5}, SAMPLES, f.m, ROUNDS, &partition),
                     BPT_OK);
    assert_int_equal(bpt_sampler_create_local((bpt_order){.seed = 5}, f.rank, partition, &sampler),
                     BPT_OK);
    f.coordinator.n_samples = SAMPLES;
    f.coordinator.n_rounds = ROUNDS;
    f.options.partition = partition;
    fixture_start(&f);
    assert_int_equal(bpt_partition_rounds(partition), 1);
    bpt_reply reply = {0};
    while (!reply.met) {
        uint32_t index[STEP];
        assert_int_equal(bpt_sampler_next(sampler, STEP, index, NULL), BPT_OK);
        const uint32_t covered = bpt_sampler_state_get(sampler).covered;
        const bpt_report report = {.samples = STEP,
                                   .busy_ns = STEP * 1000 * (f.rank + 1),
                                   .quality = 1,
                                   .covered = covered,
                                   .wants = covered == ROUNDS ? BPT_MEET_STOP : 0};
        assert_int_equal(bpt_exchange_push(f.x, &report), BPT_OK);
        reply = fixture_wait(&f);
    }
    assert_int_equal(bpt_partition_rounds(partition), ROUNDS);
    uint64_t held[16], sum = 0;
    for (uint32_t r = 0; r < f.m; r++) {
        held[r] = bpt_partition_held(partition, r, ROUNDS);
        sum += held[r];
        if (r > 0) assert_true(held[r] < held[r - 1]); /* rank r is r + 1 times slower */
    }
    assert_int_equal(sum, SAMPLES);
    assert_same_on_all_ranks(held, f.m * sizeof *held);
    bpt_sampler_free(sampler);
    fixture_end(&f);
    bpt_partition_free(partition);
}

/* Printed, not judged: the share depends on the machine and on what else runs there. */
static void test_idle_cost(void **state) {
    (void)state;
    fixture f;
    fixture_prepare(&f, &bpt_rule_agwu, 10000, 0);
    fixture_start(&f);
    fixture_push(&f, 10, 0);
    fixture_wait(&f);
    const double cpu = bpt_comm_cpu_seconds(comm);
    const uint64_t begin = bpt_clock_ns();
    for (int i = 0; i < 5; i++) {
        fixture_push(&f, 10, 0);
        sleep_us(100000); /* the step that a worker would compute */
        fixture_wait(&f);
    }
    const double share = (bpt_comm_cpu_seconds(comm) - cpu) / bpt_clock_seconds_since(begin);
    print_message("rank %u of %u: the MPI thread took %.2f %% of a core at a push each 0.1 s\n",
                  f.rank, f.m, 100 * share);
    assert_true(share < 0.5);
    fixture_end(&f);
}

/* One rank hosts nearly all, the last nothing. */
static void test_unlike_shards(void **state) {
    (void)state;
    const uint32_t m = bpt_comm_size(comm);
    double part[16] = {1};
    if (m > 2) part[0] = 0.9, part[1] = 0.1;
    check_run(1000, part, 20, 500);
    check_run(1300001, part, 4, 0);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_replay),
        cmocka_unit_test(test_resume),
        cmocka_unit_test(test_replay_of_chunks),
        cmocka_unit_test(test_unlike_shards),
        cmocka_unit_test(test_a_slow_rank_holds_nobody_up),
        cmocka_unit_test(test_bound),
        cmocka_unit_test(test_bound_of_zero_with_meetings),
        cmocka_unit_test(test_meetings),
        cmocka_unit_test(test_a_meeting_is_heard_of),
        cmocka_unit_test(test_partition_grows),
        cmocka_unit_test(test_idle_cost),
    };
    return RUN_WITH_MPI(tests);
}
