/* Making and ending workers: threads, signals, cores, failures. */
#include "base/memory.h"
#include "scheduler/pool.h"

#include <dirent.h>
#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* Last: it needs those above, and defines fail and skip. */
#include <cmocka.h>

/* The linker sends pthread_create() of the library here. */
static int threads_until_failure = -1;

int __real_pthread_create(pthread_t *thread, const pthread_attr_t *attr, void *(*body)(void *),
                          void *arg);
int __wrap_pthread_create(pthread_t *thread, const pthread_attr_t *attr, void *(*body)(void *),
                          void *arg);

int __wrap_pthread_create(pthread_t *thread, const pthread_attr_t *attr, void *(*body)(void *),
                          void *arg) {
    if (threads_until_failure >= 0 && threads_until_failure-- == 0) return EAGAIN;
    return __real_pthread_create(thread, attr, body, arg);
}

/* What each worker saw when it started. */
static struct {
    int times;
    pthread_t thread;
    sigset_t blocked;
    cpu_set_t cpus;
} seen[BPT_MAX_WORKERS];

static void look_around(unsigned worker) {
    seen[worker].times++;
    seen[worker].thread = pthread_self();
    pthread_sigmask(SIG_BLOCK, NULL, &seen[worker].blocked);
    sched_getaffinity(0, sizeof(cpu_set_t), &seen[worker].cpus);
}

static bpt_pool *create(unsigned n_workers, bool bind) {
    memset(seen, 0, sizeof seen);
    bpt_pool_options options = BPT_POOL_OPTIONS_INIT;
    options.n_workers = n_workers;
    options.bind = bind;
    options.on_start = look_around;
    bpt_pool *pool;
    assert_int_equal(bpt_pool_create(&options, &pool), BPT_OK);
    assert_int_equal(bpt_pool_n_workers(pool), n_workers);
    return pool;
}

static void refuses_numbers_out_of_range(void **state) {
    (void)state;
    bpt_pool_options options = BPT_POOL_OPTIONS_INIT;
    bpt_pool *pool = NULL;
    options.n_workers = 0;
    assert_int_equal(bpt_pool_create(&options, &pool), BPT_EUSAGE);
    options.n_workers = BPT_MAX_WORKERS + 1;
    assert_int_equal(bpt_pool_create(&options, &pool), BPT_EUSAGE);
    assert_null(pool);
    bpt_pool_free(NULL);
}

static void every_worker_starts_once_on_its_own_thread(void **state) {
    (void)state;
    static const unsigned n_workers[] = {1, 2, 7, BPT_MAX_WORKERS};
    for (size_t k = 0; k < sizeof n_workers / sizeof *n_workers; k++) {
        bpt_pool *pool = create(n_workers[k], false);
        assert_true(pthread_equal(seen[0].thread, pthread_self()));
        for (unsigned i = 0; i < n_workers[k]; i++) {
            assert_int_equal(seen[i].times, 1);
            for (unsigned j = 0; j < i; j++)
                assert_false(pthread_equal(seen[i].thread, seen[j].thread));
        }
        bpt_pool_free(pool);
    }
}

static void workers_take_no_signals(void **state) {
    (void)state;
    sigset_t before, after;
    pthread_sigmask(SIG_BLOCK, NULL, &before);
    bpt_pool *pool = create(3, false);
    pthread_sigmask(SIG_BLOCK, NULL, &after);
    for (int signal = 1; signal < 32; signal++) {
        assert_int_equal(sigismember(&before, signal), sigismember(&after, signal));
        assert_int_equal(sigismember(&before, signal), sigismember(&seen[0].blocked, signal));
    }
    static const int blocked[] = {SIGINT, SIGTERM, SIGHUP, SIGUSR1, SIGUSR2, SIGCHLD, SIGALRM};
    for (unsigned i = 1; i < 3; i++) {
        for (size_t k = 0; k < sizeof blocked / sizeof *blocked; k++)
            assert_int_equal(sigismember(&seen[i].blocked, blocked[k]), 1);
        assert_int_equal(sigismember(&seen[i].blocked, SIGSEGV), 0);
    }
    bpt_pool_free(pool);
}

static void bound_workers_have_a_core_each(void **state) {
    (void)state;
    cpu_set_t before, after, joint;
    sched_getaffinity(0, sizeof before, &before);
    const unsigned n_cores = bpt_pool_allowed_cores();
    assert_in_range(n_cores, 1, CPU_COUNT(&before));
    const unsigned n = n_cores < 4 ? n_cores : 4;
    bpt_pool *pool = create(n, true);
    for (unsigned i = 0; i < n; i++) {
        CPU_AND(&joint, &seen[i].cpus, &before);
        assert_true(CPU_EQUAL(&joint, &seen[i].cpus));
        assert_true(CPU_COUNT(&seen[i].cpus) > 0);
        for (unsigned j = 0; j < i; j++) {
            CPU_AND(&joint, &seen[i].cpus, &seen[j].cpus);
            assert_int_equal(CPU_COUNT(&joint), 0);
        }
    }
    bpt_pool_free(pool);
    sched_getaffinity(0, sizeof after, &after);
    assert_true(CPU_EQUAL(&before, &after));
}

static void too_many_workers_stay_unbound(void **state) {
    (void)state;
    cpu_set_t before;
    sched_getaffinity(0, sizeof before, &before);
    const unsigned n = bpt_pool_allowed_cores() + 1;
    if (n > BPT_MAX_WORKERS) skip();
    bpt_pool *pool = create(n, true);
    for (unsigned i = 0; i < n; i++) assert_true(CPU_EQUAL(&before, &seen[i].cpus));
    bpt_pool_free(pool);
}

/* Of all threads: a sanitizer may have one of its own. */
static int set_process_affinity(const cpu_set_t *cpus) {
    DIR *const dir = opendir("/proc/self/task");
    if (!dir) return -1;
    int failed = 0;
    for (const struct dirent *e = readdir(dir); e; e = readdir(dir))
        if (e->d_name[0] != '.') failed |= sched_setaffinity(atoi(e->d_name), sizeof *cpus, cpus);
    closedir(dir);
    return failed;
}

static void allowed_cores_are_those_of_the_process(void **state) {
    (void)state;
    cpu_set_t before, one;
    sched_getaffinity(0, sizeof before, &before);
    CPU_ZERO(&one);
    for (int cpu = 0; CPU_COUNT(&one) == 0; cpu++)
        if (CPU_ISSET(cpu, &before)) CPU_SET(cpu, &one);
    if (set_process_affinity(&one)) skip();
    assert_int_equal(bpt_pool_allowed_cores(), 1);
    assert_int_equal(set_process_affinity(&before), 0);
}

/* On a machine that hwloc is told of. */
static void more_cores_than_a_pool_takes(void **state) {
    (void)state;
    assert_int_equal(unsetenv("HWLOC_COMPONENTS"), 0); /* beside it hwloc heeds no other */
    assert_int_equal(setenv("HWLOC_SYNTHETIC", "core:384 pu:1", 1), 0);
    const unsigned n = bpt_pool_allowed_cores();
    assert_int_equal(unsetenv("HWLOC_SYNTHETIC"), 0);
    assert_int_equal(n, BPT_MAX_WORKERS);
}

static void no_thread_to_be_had(void **state) {
    (void)state;
    const uint64_t live = bpt_memory_live();
    bpt_pool_options options = BPT_POOL_OPTIONS_INIT;
    options.n_workers = 5;
    for (int n = 0; n < 4; n++) {
        bpt_pool *pool = NULL;
        threads_until_failure = n;
        assert_int_equal(bpt_pool_create(&options, &pool), BPT_EIO);
        assert_null(pool);
        assert_int_equal(bpt_memory_live(), live);
    }
    threads_until_failure = -1;
}

static void every_allocation_may_fail(void **state) {
    (void)state;
    const uint64_t live = bpt_memory_live();
    for (int bind = 0; bind < 2; bind++) {
        bpt_pool_options options = BPT_POOL_OPTIONS_INIT;
        options.n_workers = 2;
        options.bind = bind;
        bpt_pool *pool = NULL;
        int n = 0;
        for (;; n++) {
            bpt_memory_fail_at(n);
            const bpt_status status = bpt_pool_create(&options, &pool);
            if (status == BPT_OK) break;
            assert_int_equal(status, BPT_ENOMEM);
            assert_null(pool);
            assert_int_equal(bpt_memory_live(), live);
        }
        assert_true(n > bind);
        bpt_memory_fail_at(-1);
        bpt_pool_free(pool);
        assert_int_equal(bpt_memory_live(), live);
    }
}

static void workers_end_at_any_moment(void **state) {
    (void)state;
    for (int i = 0; i < 200; i++) bpt_pool_free(create(4, false));
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(refuses_numbers_out_of_range),
        cmocka_unit_test(every_worker_starts_once_on_its_own_thread),
        cmocka_unit_test(workers_take_no_signals),
        cmocka_unit_test(bound_workers_have_a_core_each),
        cmocka_unit_test(too_many_workers_stay_unbound),
        cmocka_unit_test(allowed_cores_are_those_of_the_process),
        cmocka_unit_test(more_cores_than_a_pool_takes),
        cmocka_unit_test(no_thread_to_be_had),
        cmocka_unit_test(every_allocation_may_fail),
        cmocka_unit_test(workers_end_at_any_moment),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
