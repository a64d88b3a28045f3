/* Threads take no signals but those of their own faults; who starts them takes what it took. */
#include "base/thread.h"

#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

/* Last: it needs those above, and defines fail and skip. */
#include <cmocka.h>

static void *get_mask(void *arg) {
    pthread_sigmask(SIG_SETMASK, NULL, arg);
    return arg;
}

static void test_mask(void **state) {
    (void)state;
    static const int taken[] = {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGTRAP, SIGABRT};
    static const int blocked[] = {SIGINT, SIGTERM, SIGHUP, SIGUSR1, SIGPIPE, SIGCHLD};
    sigset_t before, inside, after;
    pthread_t thread;
    void *result;
    pthread_sigmask(SIG_SETMASK, NULL, &before);
    assert_int_equal(bpt_thread_start(&thread, get_mask, &inside), 0);
    pthread_sigmask(SIG_SETMASK, NULL, &after);
    assert_int_equal(pthread_join(thread, &result), 0);
    assert_ptr_equal(result, &inside);
    for (int s = 1; s < NSIG; s++)
        assert_int_equal(sigismember(&after, s), sigismember(&before, s));
    for (size_t i = 0; i < sizeof taken / sizeof *taken; i++)
        assert_int_equal(sigismember(&inside, taken[i]), 0);
    for (size_t i = 0; i < sizeof blocked / sizeof *blocked; i++)
        assert_int_equal(sigismember(&inside, blocked[i]), 1);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_mask)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
