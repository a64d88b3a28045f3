/* Terms of the update through the exchange: repeated from its logs, and over a resume.
 * ctest: TIMEOUT=60 RANKS=1,2,3,4 */
#include "base/file.h"
#include "base/json.h"
#include "base/memory.h"
#include "outer/rules/merge.h"
#include "tests/outer/exchange_fixture.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

/* Last: it needs those above, and defines fail and skip. */
#include <cmocka.h>

/* Of vectors of 500 elements, some at the ends and some in the middle. */
static const bpt_span statistics[] = {{0, 5}, {100, 140}, {141, 200}, {480, 500}};
enum { N = 500, N_STATISTICS = sizeof statistics / sizeof *statistics };

static double get_real(const bpt_json_doc *doc, const char *key) {
    double value = 0;
    assert_int_equal(bpt_json_get_real(doc, bpt_json_root(doc), key, &value), BPT_OK);
    return value;
}

static uint32_t get(const bpt_json_doc *doc, const char *key) {
    uint64_t value = 0;
    assert_int_equal(bpt_json_get_u64(doc, bpt_json_root(doc), key, 0, UINT32_MAX, &value), BPT_OK);
    return (uint32_t)value;
}

/* What a shard's host had: values of the whole vector, of which its shard is repeated. */
typedef struct host {
    const bpt_exchange_options *options;
    const bpt_shard *shard;
    float global[N], velocity[N], part[N];
    float base[16][N]; /* answered last, of each worker */
} host;

static void repeat_update(host *h, const bpt_json_doc *line) {
    const bpt_update_terms *terms = &h->options->terms;
    const uint32_t worker = get(line, "worker");
    const float factor = (float)(get_real(line, "gamma") * get_real(line, "q"));
    if (h->options->rule == &bpt_rule_easgd) /* as the worker pulls, however good its weights are */
        assert_true(factor == (float)terms->elasticity);
    fixture_vector(worker, get(line, "seq"), N, h->part);
    const bpt_merge m = {.begin = h->shard->begin,
                         .end = h->shard->end,
                         .global = h->global,
                         .parts = (const float *const[]){h->part},
                         .factors = &factor,
                         .n_parts = 1,
                         .velocity = terms->momentum > 0 ? h->velocity : NULL,
                         .momentum = (float)terms->momentum,
                         .base = terms->compensation > 0 ? h->base[worker] : NULL,
                         .compensation = bpt_compensation(terms, FIXTURE_RATES)};
    bpt_merge_part(h->options->rule, &m, 0, h->options->statistics);
    memcpy(h->base[worker], h->global, sizeof h->global);
}

/* Repeats this rank's log from the initial values on. */
static void repeat(const fixture *f, host *h) {
    char *text = NULL;
    size_t size = 0;
    h->options = &f->options;
    h->shard = bpt_shard_at(bpt_exchange_shards(f->x), f->rank);
    memcpy(h->global, f->initial, sizeof h->global);
    memset(h->velocity, 0, sizeof h->velocity);
    for (uint32_t j = 0; j < f->m; j++) memcpy(h->base[j], f->initial, sizeof h->base[j]);
    assert_int_equal(bpt_file_read(f->log_path, 1 << 26, &text, &size), BPT_OK);
    for (char *line = text, *end; *line; line = end + 1) {
        bpt_json_doc *doc = NULL;
        end = strchr(line, '\n');
        assert_non_null(end);
        assert_int_equal(bpt_json_parse("log", line, (size_t)(end - line), &doc), BPT_OK);
        repeat_update(h, doc);
        bpt_json_doc_free(doc);
    }
    bpt_free(text);
}

static bpt_reply run_to_the_end(fixture *f) {
    bpt_reply reply = {0};
    while (!(reply.met & BPT_MEET_END)) {
        fixture_push(f, 10, 0);
        reply = fixture_wait(f);
    }
    return reply;
}

static void prepare(fixture *f, const bpt_update_rule *rule, bpt_update_terms terms,
                    uint64_t total) {
    fixture_prepare(f, rule, N, total);
    f->options.terms = terms;
    f->options.statistics = (bpt_statistics){statistics, N_STATISTICS};
}

static void check_repeated(const bpt_update_rule *rule, bpt_update_terms terms) {
    static host h;
    fixture f;
    prepare(&f, rule, terms, 10 * 30 * bpt_comm_size(comm));
    fixture_start(&f);
    const bpt_reply reply = run_to_the_end(&f);
    repeat(&f, &h);
    const size_t begin = h.shard->begin, n = h.shard->end - begin;
    assert_memory_equal(reply.values + begin, h.global + begin, n * sizeof(float));
    if (terms.momentum > 0) {
        float velocity[N];
        assert_int_equal(bpt_exchange_velocity(f.x, velocity), BPT_OK);
        assert_memory_equal(velocity + begin, h.velocity + begin, n * sizeof(float));
        assert_same_on_all_ranks(velocity, sizeof velocity);
        for (size_t s = 0; s < N_STATISTICS; s++)
            for (size_t i = statistics[s].begin; i < statistics[s].end; i++)
                assert_true(velocity[i] == 0);
    }
    fixture_end(&f);
}

static void test_momentum(void **state) {
    (void)state;
    check_repeated(&bpt_rule_agwu, (bpt_update_terms){.momentum = 0.7});
    check_repeated(&bpt_rule_agwu_lag, (bpt_update_terms){.momentum = 0.3});
}

static void test_compensation(void **state) {
    (void)state;
    check_repeated(&bpt_rule_agwu, (bpt_update_terms){.compensation = 0.5});
    check_repeated(&bpt_rule_agwu_none, (bpt_update_terms){.compensation = 0.2, .momentum = 0.5});
}

/* What the fixture pushes is taken for weights here. */
static void test_easgd(void **state) {
    (void)state;
    check_repeated(&bpt_rule_easgd, (bpt_update_terms){.elasticity = 0.3});
}

/* What rounds 1 to @p last make of the initial values, computed on this rank alone. */
static void repeat_rounds(const fixture *f, uint64_t last, float *global, float *velocity) {
    static float parts[16][N];
    const float *const all[16] = {parts[0],  parts[1],  parts[2],  parts[3], parts[4],  parts[5],
                                  parts[6],  parts[7],  parts[8],  parts[9], parts[10], parts[11],
                                  parts[12], parts[13], parts[14], parts[15]};
    double gamma[16], quality[16];
    float factor[16];
    const uint64_t base[16] = {0};
    for (uint32_t j = 0; j < f->m; j++) quality[j] = fixture_quality(j);
    f->options.rule->weigh(
        &(bpt_update_inputs){.n_workers = f->m, .base = base, .quality = quality}, gamma);
    for (uint32_t j = 0; j < f->m; j++) factor[j] = (float)gamma[j];
    for (uint64_t round = 1; round <= last; round++) {
        for (uint32_t j = 0; j < f->m; j++) fixture_vector(j, round, N, parts[j]);
        const bpt_merge m = {.end = N,
                             .global = global,
                             .parts = all,
                             .factors = factor,
                             .n_parts = f->m,
                             .velocity = velocity,
                             .momentum = (float)f->options.terms.momentum};
        bpt_merge_part(f->options.rule, &m, 0, f->options.statistics);
    }
}

/* Rounds 1 to 3, a snapshot, 4 to 6 in a second exchange: as if there had been no stop. */
static void test_resume_with_momentum(void **state) {
    (void)state;
    const bpt_update_terms terms = {.momentum = 0.6};
    float half[N], velocity[N], expected[N], expected_velocity[N] = {0};
    fixture f;
    bpt_json_writer w = {0};
    const char *text = NULL;
    size_t length = 0;
    bpt_json_doc *doc = NULL;
    prepare(&f, &bpt_rule_sgwu, terms, 0);
    f.coordinator.checkpoint_every = 10 * 3 * f.m;
    fixture_start(&f);
    memcpy(expected, f.initial, sizeof expected);
    repeat_rounds(&f, 6, expected, expected_velocity);
    for (int round = 1; round <= 3; round++) {
        fixture_push(&f, 10, 0);
        memcpy(half, fixture_wait(&f).values, sizeof half);
    }
    bpt_json_open_object(&w, NULL);
    bpt_exchange_snapshot(f.x, &w, "exchange");
    bpt_json_close_object(&w);
    assert_int_equal(bpt_exchange_velocity(f.x, velocity), BPT_OK);
    fixture_end(&f);

    assert_int_equal(bpt_json_end_text(&w, &text, &length), BPT_OK);
    assert_int_equal(bpt_json_parse("snapshot", text, length, &doc), BPT_OK);
    prepare(&f, &bpt_rule_sgwu, terms, 0);
    f.coordinator.checkpoint_every = 10 * 3 * f.m;
    memcpy(f.initial, half, sizeof half);
    f.options.velocity = velocity;
    f.options.snapshot_doc = doc;
    f.options.snapshot = bpt_json_find(bpt_json_root(doc), "exchange");
    fixture_start(&f);
    f.pushes = 3;
    bpt_reply reply = {0};
    for (int round = 4; round <= 6; round++) {
        fixture_push(&f, 10, 0);
        reply = fixture_wait(&f);
    }
    assert_memory_equal(reply.values, expected, sizeof expected);
    assert_int_equal(bpt_exchange_velocity(f.x, velocity), BPT_OK);
    assert_memory_equal(velocity, expected_velocity, sizeof velocity);
    fixture_end(&f);
    bpt_json_doc_free(doc);
    bpt_json_free(&w);
}

/* The ranks have to have the same terms. */
static void test_ranks_with_other_terms(void **state) {
    (void)state;
    fixture f;
    prepare(&f, &bpt_rule_agwu, (bpt_update_terms){.momentum = 0.5}, 50);
    if (f.m > 1) {
        f.options.coordinator = &f.coordinator;
        f.options.terms.momentum += f.rank == f.m - 1 ? 0.1 : 0;
        assert_int_equal(bpt_exchange_create(comm, &f.options, &f.x), BPT_EUSAGE);
        assert_non_null(strstr(bpt_error_last()->text, "uses other terms of the update"));
        f.options.terms.momentum = 0.5;
    }
    fixture_start(&f);
    fixture_end(&f);
}

/* Memory: two vectors, and of the shard what it is, what is submitted to it, its velocity, and what
 * the others were answered. */
static void test_bytes(void **state) {
    (void)state;
    const size_t shard = 250 + BPT_SHARD_ALIGNMENT;
    assert_int_equal(bpt_exchange_bytes(1000, 4, 0.25, &(bpt_update_terms){0}),
                     (2000 + 4 * shard) * sizeof(float));
    assert_int_equal(bpt_exchange_bytes(1000, 4, 0.25, &(bpt_update_terms){.momentum = 0.1}),
                     (2000 + 5 * shard) * sizeof(float));
    assert_int_equal(bpt_exchange_bytes(1000, 4, 0.25, &(bpt_update_terms){.compensation = 0.1}),
                     (2000 + 7 * shard) * sizeof(float));
    /* A server has no vectors of its own, and all who push are others. */
    assert_int_equal(bpt_exchange_server_bytes(1000, 3, 0.25, &(bpt_update_terms){0}),
                     4 * shard * sizeof(float));
    assert_int_equal(bpt_exchange_server_bytes(
                         1000, 3, 0.25, &(bpt_update_terms){.momentum = 0.1, .compensation = 0.1}),
                     8 * shard * sizeof(float));
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_momentum),
        cmocka_unit_test(test_compensation),
        cmocka_unit_test(test_easgd),
        cmocka_unit_test(test_resume_with_momentum),
        cmocka_unit_test(test_ranks_with_other_terms),
        cmocka_unit_test(test_bytes),
    };
    return RUN_WITH_MPI(tests);
}
