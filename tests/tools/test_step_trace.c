/* Which steps a trace has, and what of them; and what is removed beside it. */
#include "base/clock.h"
#include "base/file.h"
#include "base/json.h"
#include "base/log.h"
#include "base/memory.h"
#include "tests/tools/work_place.h"
#include "tools/train/run/step_trace.h"
#include "tools/train/run/trace_parts.h"

#include <sys/wait.h>

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

/* Last: it needs those above, and defines fail and skip. */
#include <cmocka.h>

/* ---- what is said: ld --wrap ---- */

static char said[300];
static unsigned n_said;

void __wrap_bpt_log(bpt_log_level level, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

void __wrap_bpt_log(bpt_log_level level, const char *format, ...) {
    va_list values;
    if (level > BPT_LOG_INFO) return;
    va_start(values, format);
    (void)vsnprintf(said, sizeof said, format, values);
    va_end(values);
    n_said++;
}

static void assert_said(const char *text) {
    assert_int_equal(n_said, 1);
    assert_string_equal(said, text);
    n_said = 0;
}

/* ---- a run ---- */

static bpt_pool *pool;

static int set_up(void **state) {
    if (bpt_pool_open("fifo", 1, &pool) != BPT_OK) return -1;
    return work_place_open(state);
}

static int tear_down(void **state) {
    bpt_pool_free(pool);
    return work_place_close(state);
}

static bpt_step_trace *open_trace(const char *steps) {
    const bpt_train_options o = {.trace = "trace.json", .trace_steps = steps};
    bpt_step_trace *t = NULL;
    n_said = 0;
    assert_int_equal(bpt_step_trace_open(&o, NULL, pool, &t), BPT_OK);
    assert_non_null(t);
    return t;
}

/* Steps that are numbered from @p first on, and with each a wait in it and, after a pause, one
 * behind it. */
static void make_steps(bpt_step_trace *t, uint64_t first, unsigned n) {
    for (unsigned i = 0; i < n; i++) {
        bpt_step_trace_begin(t, first + i);
        bpt_step_trace_wait(t, "data", bpt_clock_ns());
        bpt_step_trace_end(t);
        bpt_step_trace_pause(t);
        bpt_step_trace_wait(t, "nobody", bpt_clock_ns());
        bpt_step_trace_end(t);
    }
}

static unsigned count(const char *text, const char *what) {
    unsigned n = 0;
    const size_t length = strlen(what);
    for (; *text; text++) n += strncmp(text, what, length) == 0;
    return n;
}

static char *read_trace(void) {
    char *text;
    size_t size;
    assert_int_equal(bpt_file_read("trace.json", 1 << 20, &text, &size), BPT_OK);
    return text;
}

/* @return a trace that is there now; bpt_free() */
static char *put_trace(void) {
    bpt_step_trace *t = open_trace("1-1");
    make_steps(t, 1, 1);
    assert_int_equal(bpt_step_trace_write(t), BPT_OK);
    bpt_step_trace_close(t);
    return read_trace();
}

/* @param before freed */
static void assert_kept(char *before) {
    char *text = read_trace();
    assert_string_equal(text, before);
    bpt_free(text);
    bpt_free(before);
}

/* Alone in its folder. */
static void assert_no_parts(void) {
    assert_int_equal(bpt_path_exists("trace.json"), true);
    assert_int_equal(unlink("trace.json"), 0);
    assert_int_equal(rmdir(work_place()), 0);
    make_folder(work_place());
    assert_int_equal(chdir(work_place()), 0);
}

/* Those that are named, counted from where it began, by their numbers in the run. */
static void test_steps(void **state) {
    (void)state;
    static const struct {
        const char *steps, *says;
        unsigned first, n; /* by their numbers */
    } cases[] = {
        {"2-4", "trace of 3 steps in trace.json: open it at ui.perfetto.dev", 12, 3},
        {"1-1", "trace of 1 step in trace.json: open it at ui.perfetto.dev", 11, 1},
        {"5-9", "trace of 1 step in trace.json: open it at ui.perfetto.dev", 15, 1},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        bpt_step_trace *t = open_trace(cases[i].steps);
        make_steps(t, 11, 5);
        assert_int_equal(bpt_step_trace_write(t), BPT_OK);
        bpt_step_trace_close(t);
        assert_said(cases[i].says);
        char *text = read_trace();
        for (unsigned step = 10; step < 17; step++) {
            char id[16];
            snprintf(id, sizeof id, "\"id\": %u}", step);
            const bool there = step >= cases[i].first && step < cases[i].first + cases[i].n;
            if (count(text, id) != (there ? 2 : 0)) fail_msg("step %u: %s", step, text);
        }
        assert_int_equal(count(text, "\"data wait\""), cases[i].n);
        assert_int_equal(count(text, "\"nobody wait\""), 0);
        bpt_free(text);
        assert_no_parts();
    }
}

/* Without a step in it, it does not take the place of one that is there. */
static void test_nothing(void **state) {
    (void)state;
    bpt_step_trace *t = open_trace("7-9");
    make_steps(t, 1, 6);
    assert_int_equal(bpt_step_trace_write(t), BPT_OK);
    bpt_step_trace_close(t);
    assert_said("the trace is empty: the run ended before step 7");
    assert_true(bpt_path_exists("trace.json"));
    assert_no_parts();
    char *before = put_trace();
    t = open_trace("7-9");
    make_steps(t, 11, 1);
    assert_int_equal(bpt_step_trace_write(t), BPT_OK);
    bpt_step_trace_close(t);
    assert_said(
        "the trace is empty: the run ended before step 7, counted from where it went on; "
        "trace.json stays as it was");
    assert_kept(before);
    assert_no_parts();
    t = open_trace("1-2");
    assert_int_equal(bpt_step_trace_write(t), BPT_OK);
    bpt_step_trace_close(t);
    assert_said("the trace is empty: no step was made");
}

/* @return the number of a process that is no more */
static unsigned dead_process(void) {
    const pid_t child = fork();
    if (child == 0) _exit(0);
    assert_true(child > 0 && waitpid(child, NULL, 0) == child);
    return (unsigned)child;
}

/* What cannot be written is heard of before a step, and nothing is left, or taken away. */
static void test_places(void **state) {
    (void)state;
    bpt_train_options o = {.trace = "nowhere/trace.json", .trace_steps = "1-2"};
    bpt_step_trace *t = NULL;
    assert_int_equal(bpt_step_trace_open(&o, NULL, pool, &t), BPT_EIO);
    make_folder("folder/files");
    o.trace = "folder/files";
    assert_int_equal(bpt_step_trace_open(&o, NULL, pool, &t), BPT_EIO);
    assert_null(t);
    assert_int_equal(bpt_dir_remove("folder/files"), BPT_OK);
    assert_int_equal(rmdir("folder"), 0);
    assert_int_equal(bpt_step_trace_try("trace.json"), BPT_OK);
    assert_false(bpt_path_exists("trace.json"));
    char left[64];
    snprintf(left, sizeof left, ".trace.json.%u.rank-1", dead_process());
    put_file(left, ""); /* by a killed job */
    bpt_step_trace_close(open_trace("1-2"));
    assert_false(bpt_path_exists("trace.json") || bpt_path_exists(left));
    char *before = put_trace();
    assert_int_equal(bpt_step_trace_try("trace.json"), BPT_OK);
    bpt_step_trace_close(open_trace("1-2"));
    assert_kept(before);
    assert_no_parts();
}

/* ---- parts ---- */

static void assert_part(const char *trace, const char *expected) {
    char *part;
    assert_int_equal(bpt_trace_part_name(trace, 12, 3, &part), BPT_OK);
    assert_string_equal(part, expected);
    bpt_free(part);
}

static void test_names_of_parts(void **state) {
    (void)state;
    assert_part("trace.json", ".trace.json.12.rank-3");
    assert_part("a/b/trace.json", "a/b/.trace.json.12.rank-3");
    assert_part("/trace.json", "/.trace.json.12.rank-3");
}

/* Removed is what a dead process has left of this trace, and nothing else. */
static void test_sweeping(void **state) {
    (void)state;
    const unsigned dead = dead_process();
    static const struct {
        const char *begin, *end; /* of the name, before and behind the number of a process */
        bool goes;
    } files[] = {
        {".t.json.", ".rank-0", true},        {".t.json.", ".rank-12", true},
        {".t.json.", ".rank-0.tmp-77", true}, {".t.json.", ".rank-0.tmp-x", false},
        {".t.json.", ".rank-", false},        {".t.json.", ".rank-0.old", false},
        {".t.json.", ".rang-0", false},       {"xt.json.", ".rank-0", false},
        {".u.json.", ".rank-0", false},       {".t.json2.", ".rank-0", false},
        {".t.json.x", ".rank-0", false},      {".t.json.rank-", "", false},
        {".t.jsonx", ".rank-0", false},
    };
    static const char *const folders[] = {"", "sub/"};
    make_folder("sub");
    for (int f = 0; f < 2; f++) {
        char paths[sizeof files / sizeof *files][64], alive[64], trace[16];
        for (size_t i = 0; i < sizeof files / sizeof *files; i++) {
            snprintf(paths[i], sizeof paths[i], "%s%s%u%s", folders[f], files[i].begin, dead,
                     files[i].end);
            put_file(paths[i], "");
        }
        snprintf(alive, sizeof alive, "%s.t.json.%d.rank-1", folders[f], (int)getpid());
        put_file(alive, "");
        snprintf(trace, sizeof trace, "%st.json", folders[f]);
        bpt_trace_parts_sweep(trace, dead);
        for (size_t i = 0; i < sizeof files / sizeof *files; i++)
            assert_true(bpt_path_exists(paths[i])); /* of this very job */
        bpt_trace_parts_sweep(trace, 1);
        assert_true(bpt_path_exists(alive));
        for (size_t i = 0; i < sizeof files / sizeof *files; i++)
            if (bpt_path_exists(paths[i]) == files[i].goes)
                fail_msg("%s is %s", paths[i], files[i].goes ? "there still" : "gone");
    }
}

int main(void) {
#define TEST(name) cmocka_unit_test_setup(name, work_place_clear)
    const struct CMUnitTest tests[] = {
        TEST(test_steps),          TEST(test_nothing),  TEST(test_places),
        TEST(test_names_of_parts), TEST(test_sweeping),
    };
    return cmocka_run_group_tests(tests, set_up, tear_down);
}
