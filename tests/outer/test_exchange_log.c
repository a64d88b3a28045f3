/* An update log whose disk hangs: a server that only serves is seen to wait for it, so that nobody
 * takes it for a fault of the network. The disk is a pipe that is full. ctest: TIMEOUT=60 RANKS=2
 */
#include "base/clock.h"
#include "base/thread.h"
#include "outer/comm/comm_state.h"
#include "tests/outer/exchange_fixture.h"

#include <sys/ioctl.h>
#include <sys/stat.h>

#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <unistd.h>

/* Last: it needs those above, and defines fail and skip. */
#include <cmocka.h>

enum { PIPE_BYTES = 4096, PUSHES = 120 }; /* of about 90 bytes in the log each */

/* Reads the pipe, but for some seconds only where the rank that writes is seen to wait for it. */
typedef struct reader {
    pthread_t thread;
    int pipe;
    atomic_bool ends, idle_again; /* idle_again: the rank was idle after it was seen */
    atomic_int n_seen;
} reader;

static bool waits_for_log(void) {
    const int kind = atomic_load(&comm->marks.kind);
    const char *what = atomic_load(&comm->marks.what);
    return kind == BPT__OWN && strcmp(what, "the update log") == 0;
}

static bool has_bytes(const reader *r) {
    int n = 0;
    return ioctl(r->pipe, FIONREAD, &n) == 0 && n > 0;
}

static void drain(const reader *r) {
    char text[PIPE_BYTES];
    while (read(r->pipe, text, sizeof text) > 0) continue;
}

static void *read_when_seen(void *arg) {
    enum { PATIENCE_S = 3 };
    reader *r = arg;
    uint64_t since_ns = bpt_clock_ns();
    for (; !atomic_load(&r->ends); usleep(1000)) {
        const bool idles = atomic_load(&comm->marks.kind) == BPT__IDLES;
        if (idles && atomic_load(&r->n_seen) > 0) atomic_store(&r->idle_again, true);
        const bool seen = has_bytes(r) && waits_for_log();
        if (seen) atomic_fetch_add(&r->n_seen, 1);
        if (!seen && bpt_clock_seconds_since(since_ns) < PATIENCE_S) continue;
        drain(r);
        since_ns = bpt_clock_ns();
    }
    return NULL;
}

static void open_pipe(reader *r, const char *path) {
    assert_int_equal(mkfifo(path, 0600), 0);
    r->pipe = open(path, O_RDONLY | O_NONBLOCK);
    assert_true(r->pipe >= 0);
    assert_true(fcntl(r->pipe, F_SETPIPE_SZ, PIPE_BYTES) == PIPE_BYTES);
    assert_int_equal(bpt_thread_start(&r->thread, read_when_seen, r), 0);
}

static void push(fixture *f) {
    for (int i = 0; i < PUSHES; i++) {
        fixture_push(f, 10, 0);
        fixture_wait(f);
    }
}

/* @return how often the server was seen to wait for its log since the last time */
static int count_seen(reader *r) {
    return atomic_exchange(&r->n_seen, 0);
}

/* Lines are written while a server serves, when it has served, and at the end. */
static void test_full_pipe(void **state) {
    (void)state;
    fixture f;
    reader r = {0};
    uint64_t told = 7;
    fixture_prepare(&f, &bpt_rule_agwu, 10, 0);
    f.options.n_servers = 1;
    f.coordinator.n_ranks = 1;
    const bool serves = f.rank == 1;
    if (serves) open_pipe(&r, f.log_path);
    fixture_start(&f);
    for (int round = 0; round < 2; round++) {
        if (serves) {
            assert_int_equal(bpt_exchange_serve(f.x, 0, &told, sizeof told), BPT_OK);
            assert_true(count_seen(&r) > 0);
            continue;
        }
        push(&f);
        if (round == 0) usleep(1500000); /* a server looks at its log twice a second */
        assert_int_equal(bpt_comm_broadcast(comm, 0, &told, sizeof told), BPT_OK);
    }
    if (!serves) push(&f);
    assert_int_equal(bpt_comm_barrier(comm), BPT_OK);
    fixture_end(&f);
    if (!serves) return;
    atomic_store(&r.ends, true);
    pthread_join(r.thread, NULL);
    close(r.pipe);
    assert_true(count_seen(&r) > 0);
    assert_true(atomic_load(&r.idle_again));
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_full_pipe)};
    return RUN_WITH_MPI(tests);
}
