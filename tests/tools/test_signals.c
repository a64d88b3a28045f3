/* Whom a rank that waits for its turn takes for its launcher, and since when. */
#include "base/clock.h"
#include "tools/train/job/signals.h"

#include <sys/wait.h>

#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

/* Last: it needs those above, and defines fail and skip. */
#include <cmocka.h>

enum { FEW_MS = 10, TURN_MS = 300, LONG_MS = 60000, MS = 1000000 };

static void wait_ms(int ms) {
    (void)usleep((useconds_t)ms * 1000);
}

/* ---- the rank, in a process of its own ---- */

/* Tells its parent that it has come so far. */
static void tell(int fd) {
    if (write(fd, "x", 1) != 1) _exit(9);
}

static void await_stop(void) {
    while (!bpt_signals_stop()) wait_ms(FEW_MS);
}

/* No other signal cuts the wait short. */
static bool ends_within(int ms) {
    const uint64_t until_ns = bpt_clock_ns() + (uint64_t)ms * MS;
    const bool ends = bpt_signals_await_end(until_ns);
    if (!ends && bpt_clock_ns() < until_ns) _exit(8);
    return ends;
}

/* What one has asked for, and another one who is not the launcher, meanwhile. */
static bool rank_between_two_others(int fd) {
    tell(fd);
    await_stop();
    tell(fd);
    return ends_within(TURN_MS);
}

static bool rank_that_a_stranger_stops(int fd) {
    const pid_t rank = getpid(), stranger = fork();
    if (stranger == 0)
        for (;; wait_ms(FEW_MS))
            if (kill(rank, SIGTERM) != 0) _exit(0);
    await_stop();
    const bool ends = ends_within(TURN_MS);
    (void)kill(stranger, SIGKILL);
    (void)waitpid(stranger, NULL, 0);
    tell(fd);
    return ends;
}

static bool rank_that_waits(int fd) {
    tell(fd);
    return ends_within(LONG_MS);
}

/* ---- its launcher ---- */

typedef bool (*rank_fn)(int fd);

static pid_t start(rank_fn rank, int *fd) {
    int ends[2];
    assert_int_equal(pipe(ends), 0);
    fflush(NULL);
    const pid_t child = fork();
    assert_true(child >= 0);
    if (child == 0) {
        bpt_signals_catch();
        _exit(rank(ends[1]));
    }
    close(ends[1]);
    *fd = ends[0];
    return child;
}

static void hear(int fd) {
    char c;
    assert_int_equal(read(fd, &c, 1), 1);
}

/* Sends a signal again and again until the rank is over. @return whether the rank was ended */
static bool was_ended(pid_t child, int fd, int number) {
    int status;
    for (; waitpid(child, &status, WNOHANG) == 0; wait_ms(FEW_MS))
        if (number) (void)kill(child, number);
    close(fd);
    assert_true(WIFEXITED(status));
    assert_in_range(WEXITSTATUS(status), 0, 1);
    return WEXITSTATUS(status) == 1;
}

static void test_the_launcher_ends_who_waits(void **state) {
    (void)state;
    int fd;
    const pid_t child = start(rank_that_waits, &fd);
    hear(fd);
    assert_true(was_ended(child, fd, SIGTERM));
}

/* Of a job that stops, and then fails to save what it has learnt, somebody has to say so. */
static void test_a_stop_that_came_before_is_no_end(void **state) {
    (void)state;
    int fd;
    const pid_t child = start(rank_between_two_others, &fd);
    hear(fd);
    assert_int_equal(kill(child, SIGTERM), 0);
    hear(fd);
    assert_false(was_ended(child, fd, SIGUSR1));
}

static void test_a_stranger_ends_nothing(void **state) {
    (void)state;
    int fd;
    const pid_t child = start(rank_that_a_stranger_stops, &fd);
    hear(fd);
    assert_false(was_ended(child, fd, 0));
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_the_launcher_ends_who_waits),
        cmocka_unit_test(test_a_stop_that_came_before_is_no_end),
        cmocka_unit_test(test_a_stranger_ends_nothing),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
