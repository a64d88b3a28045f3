/* Clocks, and what the log writes where. */
#include "base/clock.h"
#include "base/log.h"
#include "tests/base/support.h"

#include <sys/stat.h>

#include <fcntl.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include <cmocka.h>

static void sleep_ms(long ms) {
    const struct timespec t = {.tv_nsec = ms * 1000000};
    nanosleep(&t, NULL);
}

static void test_clock_goes_forward(void **state) {
    (void)state;
    uint64_t last = bpt_clock_ns();
    for (int i = 0; i < 10000; i++) {
        const uint64_t now = bpt_clock_ns();
        assert_true(now >= last);
        last = now;
    }
    const uint64_t start = bpt_clock_ns();
    sleep_ms(20);
    const double seconds = bpt_clock_seconds_since(start);
    assert_true(seconds >= 0.02 && seconds < 20.0);
}

static void test_utc_is_the_time_of_day(void **state) {
    (void)state;
    char text[21];
    const time_t before = time(NULL);
    bpt_clock_utc(text, sizeof text);
    assert_int_equal(strlen(text), 20);
    struct tm parts = {0};
    char z, t;
    assert_int_equal(sscanf(text, "%4d-%2d-%2d%c%2d:%2d:%2d%c", &parts.tm_year, &parts.tm_mon,
                            &parts.tm_mday, &t, &parts.tm_hour, &parts.tm_min, &parts.tm_sec, &z),
                     8);
    assert_int_equal(t, 'T');
    assert_int_equal(z, 'Z');
    parts.tm_year -= 1900;
    parts.tm_mon -= 1;
    const time_t said = timegm(&parts);
    assert_true(said >= before && said <= time(NULL));
}

static void log_all_levels(void) {
    bpt_log(BPT_LOG_ERROR, "e %d", 1);
    bpt_warn("w %d", 2);
    bpt_info("i %d", 3);
    bpt_debug("d %d", 4);
    bpt_trace("t %d", 5);
}

static size_t count(const char *text, const char *part) {
    size_t n = 0;
    for (const char *p = text; (p = strstr(p, part)); p += strlen(part)) n++;
    return n;
}

static char *captured_levels(int rank, bpt_log_level level) {
    bpt_log_setup(rank, level);
    support_capture_start(STDERR_FILENO);
    log_all_levels();
    return support_capture_end();
}

static void test_level_decides_what_is_written(void **state) {
    (void)state;
    static const char *const lines[] = {" error: e 1\n", " warn: w 2\n", " info: i 3\n",
                                        " debug: d 4\n", " trace: t 5\n"};
    for (int level = BPT_LOG_ERROR; level <= BPT_LOG_TRACE; level++) {
        char *text = captured_levels(0, (bpt_log_level)level);
        for (int i = 0; i < 5; i++) assert_int_equal(count(text, lines[i]), i <= level);
        assert_int_equal(count(text, "\n"), (size_t)level + 1);
        assert_int_equal(strncmp(text, "r0 ", 3), 0);
        free(text);
    }
}

static void test_info_comes_from_rank_zero_only(void **state) {
    (void)state;
    char *text = captured_levels(3, BPT_LOG_DEBUG);
    assert_int_equal(count(text, "r3 "), 3);
    assert_null(strstr(text, "i 3"));
    assert_non_null(strstr(text, "d 4"));
    free(text);
}

static char *read_text(const char *path) {
    FILE *file = fopen(path, "r");
    assert_non_null(file);
    char *text = calloc(1, 1 << 20);
    assert_non_null(text);
    assert_true(fread(text, 1, (1 << 20) - 1, file) > 0);
    fclose(file);
    return text;
}

static void test_file_of_a_rank_holds_everything_and_is_appended(void **state) {
    (void)state;
    char path[SUPPORT_PATH_SIZE];
    support_path(path, "log.rank-2.txt");
    for (int run = 1; run <= 2; run++) {
        assert_int_equal(bpt_log_file(path), BPT_OK);
        free(captured_levels(2, BPT_LOG_INFO));
        assert_int_equal(bpt_log_file(NULL), BPT_OK);
        free(captured_levels(2, BPT_LOG_INFO)); /* closed: must not arrive */
        char *text = read_text(path);
        assert_int_equal(count(text, "\n"), 3 * (size_t)run);
        assert_int_equal(count(text, " info: i 3\n"), (size_t)run);
        assert_int_equal(count(text, "Z r2 "), 3 * (size_t)run);
        assert_null(strstr(text, "d 4"));
        char host[65] = "";
        gethostname(host, sizeof host - 1);
        assert_int_equal(count(text, host), 3 * (size_t)run);
        free(text);
    }
}

static void *open_log_file(void *path) {
    (void)bpt_log_file(path);
    return NULL;
}

/* A pipe that nobody reads is a file system that hangs: the thread that opens it holds the log. */
static void test_urgent_lines_wait_for_no_file(void **state) {
    (void)state;
    char path[SUPPORT_PATH_SIZE];
    pthread_t stuck;
    support_path(path, "pipe");
    assert_int_equal(mkfifo(path, 0600), 0);
    bpt_log_setup(1, BPT_LOG_WARN);
    assert_int_equal(pthread_create(&stuck, NULL, open_log_file, path), 0);
    support_capture_start(STDERR_FILENO);
    bpt_log_urgent(BPT_LOG_WARN, "w %d", 6);
    bpt_log_urgent(BPT_LOG_INFO, "i %d", 7);
    char *text = support_capture_end();
    assert_non_null(strstr(text, " warn: w 6\n"));
    assert_int_equal(strncmp(text, "r1 ", 3), 0);
    assert_null(strstr(text, "i 7"));
    free(text);
    support_capture_start(STDERR_FILENO);
    bpt_log_last_words("x.mdb is gone", "restore it");
    text = support_capture_end();
    assert_string_equal(text, "test_clock_log: x.mdb is gone\nhint: restore it\n");
    free(text);
    const int reader = open(path, O_RDONLY); /* when the other end is opened too */
    assert_true(reader >= 0);
    assert_int_equal(pthread_join(stuck, NULL), 0);
    bpt_log_urgent(BPT_LOG_WARN, "w %d", 8);
    assert_int_equal(bpt_log_file(NULL), BPT_OK);
    char left[8];
    assert_int_equal(read(reader, left, sizeof left), 0); /* nothing of it came into the file */
    close(reader);
}

static void test_log_file_that_cannot_be_opened_is_an_error(void **state) {
    (void)state;
    char path[SUPPORT_PATH_SIZE];
    support_path(path, "no/such/folder/log.txt");
    assert_int_equal(bpt_log_file(path), BPT_EIO);
    assert_non_null(strstr(bpt_error_last()->text, path));
    free(captured_levels(0, BPT_LOG_INFO)); /* goes on without a file */
}

static void test_long_lines_are_cut_but_whole(void **state) {
    (void)state;
    bpt_log_setup(0, BPT_LOG_INFO);
    support_capture_start(STDERR_FILENO);
    bpt_info("%03000d", 1);
    bpt_info("next");
    char *text = support_capture_end();
    assert_int_equal(count(text, "\n"), 2);
    assert_non_null(strstr(text, " info: next\n"));
    free(text);
}

enum { THREADS = 4, LINES = 200 };

static void *log_many(void *arg) {
    for (int i = 0; i < LINES; i++) bpt_warn("thread %d line %d end", *(const int *)arg, i);
    return NULL;
}

static void test_lines_of_threads_stay_whole(void **state) {
    (void)state;
    char path[SUPPORT_PATH_SIZE];
    bpt_log_setup(0, BPT_LOG_INFO);
    assert_int_equal(bpt_log_file(support_path(path, "threads.txt")), BPT_OK);
    support_capture_start(STDERR_FILENO);
    pthread_t threads[THREADS];
    int ids[THREADS];
    for (int i = 0; i < THREADS; i++) {
        ids[i] = i;
        assert_int_equal(pthread_create(&threads[i], NULL, log_many, &ids[i]), 0);
    }
    for (int i = 0; i < THREADS; i++) pthread_join(threads[i], NULL);
    free(support_capture_end());
    assert_int_equal(bpt_log_file(NULL), BPT_OK);

    char *text = read_text(path);
    int next[THREADS] = {0}, n_lines = 0;
    for (char *save, *line = strtok_r(text, "\n", &save); line;
         line = strtok_r(NULL, "\n", &save)) {
        int id, number, length = 0;
        const char *message = strstr(line, " warn: ");
        assert_non_null(message);
        assert_int_equal(sscanf(message, " warn: thread %d line %d end%n", &id, &number, &length),
                         2);
        assert_int_equal(message[length], '\0');
        assert_in_range(id, 0, THREADS - 1);
        assert_int_equal(number, next[id]++);
        n_lines++;
    }
    assert_int_equal(n_lines, THREADS * LINES);
    free(text);
}

static void test_progress_in_a_file_is_one_line_each(void **state) {
    (void)state;
    static const struct {
        int rank;
        bpt_log_level level;
        const char *expected;
    } rows[] = {
        {0, BPT_LOG_INFO, "step 1\nstep 2\n"}, {0, BPT_LOG_WARN, ""}, {1, BPT_LOG_INFO, ""}};
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        bpt_log_setup(rows[i].rank, rows[i].level);
        support_capture_start(STDERR_FILENO);
        bpt_log_progress("step 1");
        bpt_log_progress("step 2");
        bpt_log_progress_end();
        char *text = support_capture_end();
        assert_string_equal(text, rows[i].expected);
        free(text);
    }
}

/* On a terminal the line is redrawn, and a message begins below it. */
static void test_progress_on_a_terminal_is_redrawn(void **state) {
    (void)state;
    const int master = posix_openpt(O_RDWR | O_NOCTTY);
    if (master < 0 || grantpt(master) != 0 || unlockpt(master) != 0) skip();
    const int terminal = open(ptsname(master), O_RDWR | O_NOCTTY);
    if (terminal < 0) skip();
    bpt_log_setup(0, BPT_LOG_INFO);
    fflush(stderr);
    const int saved = dup(STDERR_FILENO);
    assert_int_equal(dup2(terminal, STDERR_FILENO), STDERR_FILENO);
    bpt_log_progress("step 1");
    bpt_log_progress("step 2");
    bpt_info("message");
    bpt_log_progress("step 3");
    bpt_log_progress_end();
    bpt_log_progress_end(); /* nothing is open: adds nothing */
    fflush(stderr);
    assert_int_equal(dup2(saved, STDERR_FILENO), STDERR_FILENO);
    close(saved);

    char text[512] = "";
    size_t length = 0;
    while (count(text, "\n") < 3 && length + 1 < sizeof text) {
        const ssize_t n = read(master, text + length, sizeof text - 1 - length);
        assert_true(n > 0);
        length += (size_t)n;
    }
    assert_int_equal(strncmp(text, "\r\033[Kstep 1\r\033[Kstep 2\r\nr0 ", 25), 0);
    const char *after = strstr(text, " info: message\r\n");
    assert_non_null(after);
    assert_string_equal(after, " info: message\r\n\r\033[Kstep 3\r\n");
    close(terminal);
    close(master);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_clock_goes_forward),
        cmocka_unit_test(test_utc_is_the_time_of_day),
        cmocka_unit_test(test_level_decides_what_is_written),
        cmocka_unit_test(test_info_comes_from_rank_zero_only),
        cmocka_unit_test(test_file_of_a_rank_holds_everything_and_is_appended),
        cmocka_unit_test(test_urgent_lines_wait_for_no_file),
        cmocka_unit_test(test_log_file_that_cannot_be_opened_is_an_error),
        cmocka_unit_test(test_long_lines_are_cut_but_whole),
        cmocka_unit_test(test_lines_of_threads_stay_whole),
        cmocka_unit_test(test_progress_in_a_file_is_one_line_each),
        cmocka_unit_test(test_progress_on_a_terminal_is_redrawn),
    };
    return cmocka_run_group_tests(tests, support_make_scratch, support_remove_scratch);
}
