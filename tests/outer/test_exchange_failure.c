/* Exchanges that cannot be made: every rank learns of it, nothing is left behind. And one that
 * ends with several errors. A call of MPI is replaced here.
 * ctest: TIMEOUT=60 RANKS=1,3 */
#include "base/file.h"
#include "base/json.h"
#include "base/memory.h"
#include "tests/outer/exchange_fixture.h"

#include <math.h>
#include <mpi.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

/* Last: it needs those above, and defines fail and skip. */
#include <cmocka.h>

static atomic_bool broken; /* MPI is, on this rank */

int MPI_Testsome(int n, MPI_Request *requests, int *n_done, int *index, MPI_Status *statuses) {
    if (atomic_load(&broken)) return MPI_ERR_OTHER;
    return PMPI_Testsome(n, requests, n_done, index, statuses);
}

static bpt_status create(fixture *f) {
    f->options.coordinator = &f->coordinator;
    return bpt_exchange_create(comm, &f->options, &f->x);
}

/* The n-th allocation of every rank fails, n = 0, 1, 2, ... until none does. */
static void test_no_memory(void **state) {
    (void)state;
    fixture f;
    fixture_prepare(&f, &bpt_rule_agwu, 100, 50);
    const uint64_t live = bpt_memory_live();
    int failures = 0;
    for (int64_t n = 0; !f.x; n++) {
        bpt_memory_fail_at(n);
        const bpt_status status = create(&f);
        bpt_memory_fail_at(-1);
        if (f.x) {
            assert_int_equal(status, BPT_OK);
            break;
        }
        assert_true(status == BPT_ENOMEM || status == BPT_EPEER);
        assert_int_equal(bpt_memory_live(), live);
        failures++;
    }
    assert_true(failures > 20);
    fixture_push(&f, 50, 0);
    assert_int_equal(fixture_wait(&f).versions[0] > 0, 1);
    for (bpt_reply reply = {0}; !reply.met; reply = fixture_wait(&f)) fixture_push(&f, 50, 0);
    fixture_end(&f);
    assert_int_equal(bpt_memory_live(), live);
}

static void test_no_folder_for_the_log(void **state) {
    (void)state;
    fixture f;
    fixture_prepare(&f, &bpt_rule_agwu, 100, 50);
    const bool bad = f.rank == f.m - 1;
    if (bad) f.options.log_path = "/nowhere/at/all/updates.jsonl";
    assert_int_equal(create(&f), bad ? BPT_EIO : BPT_EPEER);
    assert_non_null(strstr(bpt_error_last()->text, "/nowhere/at/all/updates.jsonl"));
    f.options.log_path = f.log_path;
    fixture_start(&f);
    fixture_end(&f);
}

static void test_wrong_coordinator_options(void **state) {
    (void)state;
    fixture f;
    fixture_prepare(&f, &bpt_rule_agwu, 100, 50);
    f.coordinator.n_samples = 1;
    f.coordinator.n_rounds = 2;
    assert_int_equal(create(&f), f.rank == 0 ? BPT_EUSAGE : BPT_EPEER);
    f.coordinator.n_samples = 0;
    f.coordinator.n_ranks = f.m + 1;
    assert_int_equal(create(&f), f.rank == 0 ? BPT_EUSAGE : BPT_EPEER);
    f.coordinator.n_ranks = f.m;
    fixture_start(&f);
    fixture_end(&f);
}

static void test_ranks_that_differ(void **state) {
    (void)state;
    fixture f;
    fixture_prepare(&f, &bpt_rule_agwu, 100, 50);
    if (f.m > 1) {
        const bool odd = f.rank == f.m - 1;
        f.initial[99] += odd;
        assert_int_equal(create(&f), BPT_EUSAGE);
        assert_non_null(strstr(bpt_error_last()->text, "starts from other values"));
        f.initial[99] -= odd;
        f.options.n_elements = odd ? 99 : 100;
        assert_int_equal(create(&f), BPT_EUSAGE);
        assert_non_null(strstr(bpt_error_last()->text, "another number of elements"));
        f.options.n_elements = 100;
        f.options.rule = odd ? &bpt_rule_sgwu : &bpt_rule_agwu;
        assert_int_equal(create(&f), BPT_EUSAGE);
        assert_non_null(strstr(bpt_error_last()->text, "another update rule"));
        f.options.rule = &bpt_rule_agwu;
        f.options.max_staleness = odd ? 2 : 3;
        assert_int_equal(create(&f), BPT_EUSAGE);
        assert_non_null(strstr(bpt_error_last()->text, "another staleness bound"));
        f.options.max_staleness = BPT_STALENESS_NONE;
        f.options.part = odd ? (const double[]){0.5, 0.25, 0.25} : NULL;
        assert_int_equal(create(&f), BPT_EUSAGE);
        assert_non_null(strstr(bpt_error_last()->text, "cuts them in other shards"));
        f.options.part = NULL;
    }
    fixture_start(&f);
    fixture_end(&f);
}

/* @return the state of this rank's shard of three after so many submissions of each worker */
static bpt_json_doc *snapshot_after(uint32_t rank, uint64_t pushes) {
    bpt_json_writer w = {0};
    bpt_json_doc *doc = NULL;
    const char *text;
    size_t length;
    bpt_json_open_object(&w, NULL);
    bpt_json_put_text(&w, "rule", "agwu");
    bpt_json_put_u64(&w, "shard", rank);
    bpt_json_put_u64(&w, "version", 3 * pushes);
    bpt_json_open_array(&w, "seq");
    for (int j = 0; j < 3; j++) bpt_json_put_u64(&w, NULL, pushes);
    bpt_json_close_array(&w);
    bpt_json_open_array(&w, "staleness");
    for (int i = 0; i < BPT_STALENESS_BUCKETS; i++) bpt_json_put_u64(&w, NULL, 0);
    bpt_json_close_array(&w);
    bpt_coordinator *c = NULL;
    const bpt_coordinator_options options = {.n_ranks = 3, .total_samples = 50};
    assert_int_equal(bpt_coordinator_create(&options, &c), BPT_OK);
    bpt_coordinator_save(c, &w, "coordinator");
    bpt_coordinator_free(c);
    bpt_json_close_object(&w);
    assert_int_equal(bpt_json_end_text(&w, &text, &length), BPT_OK);
    assert_int_equal(bpt_json_parse("state", text, length, &doc), BPT_OK);
    bpt_json_free(&w);
    return doc;
}

static bpt_status create_from(fixture *f, bpt_json_doc *doc) {
    f->options.snapshot_doc = doc;
    f->options.snapshot = doc ? bpt_json_root(doc) : NULL;
    const bpt_status status = create(f);
    bpt_json_doc_free(doc);
    return status;
}

/* Each from a checkpoint of its own, or some of them from none. */
static void test_ranks_that_go_on_apart(void **state) {
    (void)state;
    fixture f;
    if (bpt_comm_size(comm) != 3) skip();
    fixture_prepare(&f, &bpt_rule_agwu, 100, 50);
    for (uint32_t odd = 0; odd < 3; odd++) {
        const bool other = f.rank == odd;
        assert_int_equal(create_from(&f, snapshot_after(f.rank, other ? 3 : 2)), BPT_EUSAGE);
        assert_non_null(strstr(bpt_error_last()->text, "resumes from another step"));
        assert_int_equal(create_from(&f, other ? NULL : snapshot_after(f.rank, 2)), BPT_EUSAGE);
        assert_non_null(strstr(bpt_error_last()->text, "resumes (or not)"));
    }
    assert_int_equal(create_from(&f, snapshot_after(f.rank, 2)), BPT_OK);
    fixture_end(&f);
}

static void test_quality_must_be_a_number(void **state) {
    (void)state;
    fixture f;
    fixture_prepare(&f, &bpt_rule_agwu, 100, 50);
    fixture_start(&f);
    assert_int_equal(bpt_exchange_push(f.x, &(bpt_report){.quality = NAN}), BPT_ENUMERIC);
    assert_int_equal(bpt_exchange_push(f.x, &(bpt_report){.quality = -1}), BPT_ENUMERIC);
    assert_int_equal(bpt_exchange_push(f.x, &(bpt_report){.quality = 0}), BPT_ENUMERIC);
    fixture_end(&f);
}

static void test_malformed_snapshots(void **state) {
    (void)state;
    const char *const bad[] = {
        "{}",
        "{\"rule\":\"sgwu\"}",
        "{\"rule\":\"agwu\",\"shard\":9}",
        "{\"rule\":\"agwu\",\"shard\":0,\"version\":-1}",
    };
    fixture f;
    fixture_prepare(&f, &bpt_rule_agwu, 100, 50);
    const uint64_t live = bpt_memory_live();
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        bpt_json_doc *doc = NULL;
        assert_int_equal(bpt_json_parse("state", bad[i], strlen(bad[i]), &doc), BPT_OK);
        f.options.snapshot_doc = doc;
        f.options.snapshot = bpt_json_root(doc);
        assert_int_equal(create(&f), BPT_EDATA);
        bpt_json_doc_free(doc);
        assert_int_equal(bpt_memory_live(), live);
    }
    f.options.snapshot = NULL;
    fixture_start(&f);
    fixture_end(&f);
}

/* A rank by itself, whose messages are under way to nobody: who waits hears why it is in vain, and
 * so does who pushes again. */
static void test_what_ends_an_exchange_is_told(void **state) {
    (void)state;
    fixture f;
    if (bpt_comm_size(comm) > 1) skip();
    fixture_prepare(&f, &bpt_rule_agwu, 100, 0);
    fixture_start(&f);
    atomic_store(&broken, true);
    const bpt_report report = {.samples = 1, .quality = 1};
    bpt_reply reply;
    bpt_status status = bpt_exchange_push(f.x, &report); /* in vain where MPI was asked before it */
    if (status == BPT_OK) status = bpt_exchange_wait(f.x, &reply);
    for (int i = 0; i < 2; i++) {
        assert_int_equal(status, BPT_ECOMM);
        assert_non_null(strstr(bpt_error_last()->text, "MPI cannot complete messages"));
        status = bpt_exchange_push(f.x, &report);
    }
    atomic_store(&broken, false);
    assert_int_equal(bpt_exchange_destroy(f.x), BPT_ECOMM);
    assert_int_equal(bpt_dir_remove(f.folder), BPT_OK);
    free(f.vector);
    free(f.initial);
}

/* The first of the errors is told, and its text with it. Last: it leaves messages under way. */
static void test_several_errors_at_the_end(void **state) {
    (void)state;
    fixture f;
    fixture_prepare(&f, &bpt_rule_agwu, 100, 0);
    f.options.log_path = "/dev/full";
    fixture_start(&f);
    fixture_push(&f, 50, 0);
    fixture_wait(&f); /* there is a line in the log, not written yet */
    assert_int_equal(bpt_comm_barrier(comm), BPT_OK);
    atomic_store(&broken, true);
    const bpt_status status = bpt_exchange_destroy(f.x);
    atomic_store(&broken, false);
    assert_int_equal(status, BPT_ECOMM);
    assert_int_equal(bpt_error_last()->status, BPT_ECOMM);
    assert_non_null(strstr(bpt_error_last()->text, "MPI cannot complete messages"));
    assert_int_equal(bpt_dir_remove(f.folder), BPT_OK);
    free(f.vector);
    free(f.initial);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_no_memory),
        cmocka_unit_test(test_no_folder_for_the_log),
        cmocka_unit_test(test_wrong_coordinator_options),
        cmocka_unit_test(test_ranks_that_differ),
        cmocka_unit_test(test_ranks_that_go_on_apart),
        cmocka_unit_test(test_quality_must_be_a_number),
        cmocka_unit_test(test_malformed_snapshots),
        cmocka_unit_test(test_what_ends_an_exchange_is_told),
        cmocka_unit_test(test_several_errors_at_the_end),
    };
    return RUN_WITH_MPI(tests);
}
