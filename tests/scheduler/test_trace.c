/* Traces: every task of a run is in it once, full rings, files, joining, failures. */
#include "base/file.h"
#include "base/json.h"
#include "base/memory.h"
#include "scheduler/pool.h"
#include "scheduler/trace.h"
#include "tests/base/near.h"
#include "tests/scheduler/random_dag.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* Last: it needs those above, and defines fail and skip. */
#include <cmocka.h>

static char folder[] = "/tmp/bpt-test-trace-XXXXXX";
static char path[3][64];
static const bpt_trace_process processes[] = {{0, "rank 0", 0}, {1, "rank \"1\" on n\\1", 1000}};

static int make_folder(void **state) {
    (void)state;
    if (!mkdtemp(folder)) return -1;
    for (int i = 0; i < 3; i++) snprintf(path[i], sizeof path[i], "%s/%d.json", folder, i);
    return 0;
}

static int remove_folder(void **state) {
    (void)state;
    return bpt_dir_remove(folder) == BPT_OK ? 0 : -1;
}

static const bpt_json *open_events(const char *file, bpt_json_doc **doc) {
    char *text;
    size_t size;
    const bpt_json *events;
    assert_int_equal(bpt_file_read(file, 1 << 24, &text, &size), BPT_OK);
    assert_int_equal(bpt_json_parse(file, text, size, doc), BPT_OK);
    bpt_free(text);
    assert_int_equal(bpt_json_get_array(*doc, bpt_json_root(*doc), "traceEvents", &events), BPT_OK);
    return events;
}

static uint64_t whole(const bpt_json_doc *doc, const bpt_json *object, const char *key) {
    uint64_t value;
    assert_int_equal(bpt_json_get_u64(doc, object, key, 0, INT64_MAX, &value), BPT_OK);
    return value;
}

static double real(const bpt_json_doc *doc, const bpt_json *object, const char *key) {
    double value;
    assert_int_equal(bpt_json_get_real(doc, object, key, &value), BPT_OK);
    return value;
}

static const char *text_of(const bpt_json_doc *doc, const bpt_json *object, const char *key) {
    const char *text;
    assert_int_equal(bpt_json_get_text(doc, object, key, &text), BPT_OK);
    return text;
}

static void every_task_is_in_it_once(void **state) {
    (void)state;
    bpt_random r = bpt_random_stream(dag_seed(), BPT_PURPOSE_TEST, 0);
    dag d;
    dag_create(&d, &r, 300, NULL);
    bpt_pool *pool;
    bpt_pool_options options = BPT_POOL_OPTIONS_INIT;
    options.n_workers = 3;
    assert_int_equal(bpt_pool_create(&options, &pool), BPT_OK);
    bpt_trace *trace;
    assert_int_equal(bpt_trace_create(3, 300, &trace), BPT_OK);
    dag_clear(&d);
    assert_int_equal(bpt_pool_run(pool, d.graph, NULL), BPT_OK); /* not recorded */
    dag_clear(&d);
    bpt_pool_set_trace(pool, trace);
    const uint64_t allocations = bpt_memory_allocations();
    assert_int_equal(bpt_pool_run(pool, d.graph, NULL), BPT_OK);
    assert_int_equal(bpt_memory_allocations(), allocations);
    bpt_pool_set_trace(pool, NULL);
    uint64_t measured[300];
    for (uint32_t i = 0; i < 300; i++) measured[i] = bpt_graph_measured(d.graph, i);
    dag_clear(&d);
    assert_int_equal(bpt_pool_run(pool, d.graph, NULL), BPT_OK); /* not recorded */
    assert_int_equal(bpt_trace_lost(trace), 0);
    assert_int_equal(bpt_trace_write(trace, &processes[0], path[0]), BPT_OK);
    bpt_json_doc *doc;
    const bpt_json *const events = open_events(path[0], &doc);
    int seen[300] = {0};
    double last_end[3] = {0};
    for (size_t i = 0; i < bpt_json_size(events); i++) {
        const bpt_json *const e = bpt_json_at(events, i);
        if (strcmp(text_of(doc, e, "ph"), "M") == 0) continue;
        assert_string_equal(text_of(doc, e, "name"), "random");
        const uint64_t id = whole(doc, bpt_json_find(e, "args"), "id");
        const uint64_t worker = whole(doc, e, "tid");
        assert_true(id < 300 && worker < 3);
        seen[id]++;
        const double begin = real(doc, e, "ts"), length = real(doc, e, "dur");
        assert_true(begin >= last_end[worker] - 1e-3); /* one at a time, in their order */
        last_end[worker] = begin + length;
        assert_near(length * 1e3, (double)measured[id], 1.5);
    }
    for (int i = 0; i < 300; i++) assert_int_equal(seen[i], 1);
    bpt_json_doc_free(doc);
    bpt_pool_free(pool);
    bpt_trace_free(trace);
    dag_free(&d);
}

static void a_full_ring_loses_its_oldest(void **state) {
    (void)state;
    bpt_trace *trace;
    assert_int_equal(bpt_trace_create(2, 4, &trace), BPT_OK);
    for (uint64_t i = 0; i < 10; i++)
        bpt_trace_add(trace, 1, (bpt_task_info){"wait", i % 2 ? "odd" : NULL}, i, 1000 + i * 1000,
                      1500 + i * 1000);
    assert_int_equal(bpt_trace_lost(trace), 6);
    assert_int_equal(bpt_trace_write(trace, &processes[1], path[1]), BPT_OK);
    bpt_json_doc *doc;
    const bpt_json *const events = open_events(path[1], &doc);
    assert_int_equal(bpt_json_size(events), 3 + 4); /* names of the process and two workers */
    assert_string_equal(text_of(doc, bpt_json_find(bpt_json_at(events, 0), "args"), "name"),
                        "rank \"1\" on n\\1");
    for (size_t i = 0; i < 4; i++) {
        const bpt_json *const e = bpt_json_at(events, 3 + i);
        assert_int_equal(whole(doc, bpt_json_find(e, "args"), "id"), 6 + i);
        assert_int_equal(whole(doc, e, "pid"), 1);
        assert_string_equal(text_of(doc, e, "name"), i % 2 ? "odd wait" : "wait");
        assert_string_equal(text_of(doc, e, "cat"), "wait");
        assert_near(real(doc, e, "ts"), 6.0 + (double)i, 1e-9);
        assert_near(real(doc, e, "dur"), 0.5, 1e-9);
    }
    bpt_json_doc_free(doc);
    for (uint64_t i = 0; i < 5; i++) bpt_trace_add(trace, 0, (bpt_task_info){0}, i, 1000, 2000);
    assert_int_equal(bpt_trace_lost(trace), 6 + 1); /* of all workers */
    bpt_trace_free(trace);
}

/* Several are under way at a time, so each has two events, which its id brings together. */
static void messages_are_pairs(void **state) {
    (void)state;
    enum { KEPT = 4, N = 6 };
    bpt_trace *trace;
    assert_int_equal(bpt_trace_create(1, KEPT, &trace), BPT_OK);
    const uint64_t allocations = bpt_memory_allocations();
    for (uint64_t i = 0; i < N; i++)
        bpt_trace_add_message(trace, (bpt_task_info){"send", "to rank 3"}, 100 + i,
                              processes[1].origin_ns + i * 1000,
                              processes[1].origin_ns + 9000 - i * 1000);
    assert_int_equal(bpt_memory_allocations(), allocations);
    assert_int_equal(bpt_trace_lost(trace), N - KEPT);
    assert_int_equal(bpt_trace_write(trace, &processes[1], path[1]), BPT_OK);
    bpt_json_doc *doc;
    const bpt_json *const events = open_events(path[1], &doc);
    assert_int_equal(bpt_json_size(events), 3 + 2 * KEPT); /* names: process, worker, messages */
    for (uint64_t i = 0; i < KEPT; i++) {
        const uint64_t sent = N - KEPT + i;
        char id[16];
        snprintf(id, sizeof id, "1.%d", (int)sent);
        for (size_t end = 0; end < 2; end++) {
            const bpt_json *const e = bpt_json_at(events, 3 + 2 * (size_t)i + end);
            assert_string_equal(text_of(doc, e, "ph"), end ? "e" : "b");
            assert_string_equal(text_of(doc, e, "name"), "to rank 3 send");
            assert_string_equal(text_of(doc, e, "cat"), "send");
            assert_string_equal(text_of(doc, e, "id"), id);
            assert_int_equal(whole(doc, e, "tid"), 1);
            assert_near(real(doc, e, "ts"), (double)(end ? 9 - sent : sent), 1e-9);
            if (!end) assert_int_equal(whole(doc, bpt_json_find(e, "args"), "bytes"), 100 + sent);
        }
    }
    bpt_json_doc_free(doc);
    bpt_trace_free(trace);
}

static void files_are_joined_and_go(void **state) {
    (void)state;
    bpt_trace *trace;
    size_t n_joined;
    assert_int_equal(bpt_trace_create(1, 4, &trace), BPT_OK);
    bpt_trace_add(trace, 0, (bpt_task_info){"wait", NULL}, 0, 0, 1);
    assert_int_equal(bpt_trace_write(trace, &processes[0], path[0]), BPT_OK);
    assert_int_equal(bpt_trace_write(trace, &processes[1], path[1]), BPT_OK);
    const char *const parts[] = {path[0], "/nowhere/at/all", path[1]};
    assert_int_equal(bpt_trace_join(parts, 3, path[2], &n_joined), BPT_OK);
    assert_int_equal(n_joined, 2);
    assert_false(bpt_path_exists(path[0]) || bpt_path_exists(path[1]));
    bpt_json_doc *doc;
    const bpt_json *const events = open_events(path[2], &doc);
    assert_int_equal(bpt_json_size(events), 6);
    for (size_t i = 0; i < 6; i++)
        assert_int_equal(whole(doc, bpt_json_at(events, i), "pid"), i / 3);
    bpt_json_doc_free(doc);
    assert_int_equal(bpt_file_write(path[0], "{}", 2), BPT_OK);
    const char *const wrong = path[0];
    assert_int_equal(bpt_trace_join(&wrong, 1, path[1], &n_joined), BPT_EDATA);
    assert_false(bpt_path_exists(path[1]));

    /* what was there before stays if the new one fails */
    assert_int_equal(bpt_trace_write(trace, &processes[1], path[1]), BPT_OK);
    assert_int_equal(bpt_trace_join(&wrong, 1, path[1], &n_joined), BPT_EDATA);
    assert_int_equal(bpt_json_size(open_events(path[1], &doc)), 3);
    bpt_json_doc_free(doc);

    /* and always if it is no trace */
    char *text;
    size_t size;
    assert_int_equal(bpt_file_write(path[0], "old", 3), BPT_OK);
    assert_int_equal(bpt_trace_check_place(path[0]), BPT_EEXIST);
    assert_int_equal(bpt_trace_check_place(path[1]), BPT_OK);
    assert_int_equal(bpt_trace_check_place(path[2]), BPT_OK);
    const char *const part = path[1];
    assert_int_equal(bpt_trace_join(&part, 1, path[0], &n_joined), BPT_EEXIST);
    assert_int_equal(bpt_file_read(path[0], 100, &text, &size), BPT_OK);
    assert_string_equal(text, "old");
    bpt_free(text);
    assert_true(bpt_path_exists(path[1]));
    assert_int_equal(unlink(path[0]) + unlink(path[1]), 0);
    bpt_trace_free(trace);
}

static void failures_leave_no_file_and_no_memory(void **state) {
    (void)state;
    const uint64_t live = bpt_memory_live();
    bpt_trace *trace;
    bpt_status status = BPT_ENOMEM;
    for (int64_t n = 0; status != BPT_OK; n++) {
        assert_int_equal(status, BPT_ENOMEM);
        assert_int_equal(bpt_memory_live(), live);
        bpt_memory_fail_at(n);
        status = bpt_trace_create(3, 10, &trace);
        bpt_memory_fail_at(-1);
    }
    assert_int_equal(bpt_trace_write(trace, &processes[0], "/nowhere/at/all"), BPT_EIO);
    if (access("/dev/full", W_OK) == 0) {
        /* A device is written to as it is, and stays; here through a link. */
        char link[80];
        snprintf(link, sizeof link, "%s/full", folder);
        assert_int_equal(symlink("/dev/full", link), 0);
        assert_int_equal(bpt_trace_write(trace, &processes[0], link), BPT_ENOSPC);
        assert_true(bpt_path_exists(link));
        assert_int_equal(unlink(link), 0);
    }
    bpt_trace_free(trace);
    assert_int_equal(bpt_memory_live(), live);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_task_is_in_it_once),
        cmocka_unit_test(a_full_ring_loses_its_oldest),
        cmocka_unit_test(messages_are_pairs),
        cmocka_unit_test(files_are_joined_and_go),
        cmocka_unit_test(failures_leave_no_file_and_no_memory),
    };
    return cmocka_run_group_tests(tests, make_folder, remove_folder);
}
