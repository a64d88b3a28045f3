/* How much of messages is with MPI at a time, and that they come right in whatever order: calls of
 * MPI are counted on their way there. Each rank sends to the next. ctest: TIMEOUT=60 RANKS=1,2,4 */
#include "outer/comm/transfers.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

enum {
    MAX_RANKS = 4,
    CHUNK = 1000,
    IN_FLIGHT = 3,
    AHEAD = 2,
    BEYOND = 4,
    MOST = 60,         /* messages */
    HEADER_BYTES = 64, /* of MPI's before an eager message, and more */
};

static const bpt__way way = {CHUNK, IN_FLIGHT, AHEAD, BEYOND};

static int rank, n_ranks;

/* ---- what MPI is asked ---- */

static struct {
    int begun[MOST]; /* receives with this tag */
    int begun_sends;
    int n_looked_at, most_looked_at; /* requests */
    bool any_null;                   /* of these */
} seen;

int MPI_Irecv(void *data, int n, MPI_Datatype type, int from, int tag, MPI_Comm comm,
              MPI_Request *request) {
    seen.begun[tag]++;
    return PMPI_Irecv(data, n, type, from, tag, comm, request);
}

int MPI_Isend(const void *data, int n, MPI_Datatype type, int to, int tag, MPI_Comm comm,
              MPI_Request *request) {
    seen.begun_sends++;
    return PMPI_Isend(data, n, type, to, tag, comm, request);
}

int MPI_Testsome(int n, MPI_Request request[], int *n_complete, int index[],
                 MPI_Status statuses[]) {
    seen.n_looked_at = n;
    if (n > seen.most_looked_at) seen.most_looked_at = n;
    for (int i = 0; i < n; i++) seen.any_null = seen.any_null || request[i] == MPI_REQUEST_NULL;
    return PMPI_Testsome(n, request, n_complete, index, statuses);
}

static int sum_begun(void) {
    int sum = 0;
    for (int tag = 0; tag < MOST; tag++) sum += seen.begun[tag];
    return sum;
}

/* ---- messages, each with a group ---- */

typedef struct {
    bpt__transfers *t;
    uint32_t n;              /* groups: a receive each, and one for all that is sent */
    bool complete[MOST + 1]; /* since something was begun for it */
    int n_come, n_left;      /* chunks */
    bpt__message_watch watch;
    uint32_t to, from;
    size_t bytes[MOST];
    unsigned char *in[MOST], *out[MOST];
} traffic;

static void count(void *arg, const bpt_message *m) {
    traffic *x = arg;
    (*(m->sent ? &x->n_left : &x->n_come))++;
}

static unsigned char byte_of(int from, uint32_t message, size_t i) {
    return (unsigned char)(31 * from + 17 * (int)message + (int)(i / CHUNK) * 13 + (int)i);
}

static void open_traffic(traffic *x, uint32_t n) {
    size_t room[MOST + 1];
    bpt__way ways[MAX_RANKS];
    memset(&seen, 0, sizeof seen);
    *x = (traffic){.n = n,
                   .watch = {count, x},
                   .to = (uint32_t)((rank + 1) % n_ranks),
                   .from = (uint32_t)((rank + n_ranks - 1) % n_ranks)};
    for (uint32_t m = 0; m < n; m++) room[m] = 1;
    room[n] = n;
    for (int r = 0; r < n_ranks; r++) ways[r] = way;
    assert_int_equal(bpt__transfers_create(MPI_COMM_WORLD, ways, (uint32_t)n_ranks, room, n + 1,
                                           &x->watch, &x->t),
                     BPT_OK);
}

static void close_traffic(traffic *x) {
    assert_false(seen.any_null);
    bpt__transfers_free(x->t);
    for (uint32_t m = 0; m < x->n; m++) {
        free(x->in[m]);
        free(x->out[m]);
    }
}

static void expect(traffic *x, uint32_t m, size_t bytes, int tag) {
    x->bytes[m] = bytes;
    x->complete[m] = false;
    assert_non_null(x->in[m] = calloc(1, bytes));
    assert_int_equal(bpt__transfers_recv(x->t, m, x->in[m], bytes, x->from, tag), BPT_OK);
}

static void send(traffic *x, uint32_t m, int tag) {
    assert_non_null(x->out[m] = malloc(x->bytes[m]));
    for (size_t i = 0; i < x->bytes[m]; i++) x->out[m][i] = byte_of(rank, m, i);
    x->complete[x->n] = false;
    assert_int_equal(bpt__transfers_send(x->t, x->n, x->out[m], x->bytes[m], x->to, tag), BPT_OK);
}

static void poll(traffic *x) {
    uint32_t complete[MOST + 1], n = 0;
    bool moved = false;
    assert_int_equal(bpt__transfers_poll(x->t, &moved, complete, &n), BPT_OK);
    for (uint32_t i = 0; i < n; i++) {
        x->complete[complete[i]] = true;
        assert_int_equal(bpt__transfers_pending(x->t, complete[i]), 0);
    }
}

/* Until this group is complete. */
static void await(traffic *x, uint32_t group) {
    while (!x->complete[group]) poll(x);
}

static void finish(traffic *x) {
    for (uint32_t g = 0; g <= x->n; g++) await(x, g);
    for (uint32_t m = 0; m < x->n; m++)
        for (size_t i = 0; i < x->bytes[m]; i++)
            assert_int_equal(x->in[m][i], byte_of((int)x->from, m, i));
}

/* ---- tests ---- */

/* Two receives of what nobody sends yet, six of what comes, three sends. */
static void test_windows(void **state) {
    enum { CHUNKS = 21 };
    traffic x;
    int most = 0, most_sends = 0;
    (void)state;
    open_traffic(&x, 1);
    expect(&x, 0, (CHUNKS - 1) * CHUNK + 1, 0);
    assert_int_equal(bpt__transfers_pending(x.t, 0), CHUNKS);
    for (int i = 0; i < 3; i++) poll(&x);
    assert_int_equal(seen.begun[0], AHEAD);
    MPI_Barrier(MPI_COMM_WORLD); /* nothing was sent before */
    send(&x, 0, 0);
    assert_int_equal(seen.begun_sends, IN_FLIGHT);
    while (!x.complete[0] || !x.complete[1]) {
        poll(&x);
        const int receives = seen.begun[0] - x.n_come, sends = seen.begun_sends - x.n_left;
        if (receives > most) most = receives;
        if (sends > most_sends) most_sends = sends;
    }
    assert_int_equal(most, AHEAD + BEYOND);
    assert_int_equal(most_sends, IN_FLIGHT);
    assert_int_equal(seen.begun[0], CHUNKS);
    assert_int_equal(seen.begun_sends, CHUNKS);
    finish(&x);
    close_traffic(&x);
}

/* Of many messages that are awaited a poll looks at few requests, of which those that come share
 * what is more than two each. They come in the other order. */
static void test_many_ahead(void **state) {
    enum { CHUNKS = 9 };
    traffic x;
    (void)state;
    open_traffic(&x, MOST);
    for (uint32_t m = 0; m < MOST; m++) expect(&x, m, CHUNKS * CHUNK - m, (int)m);
    assert_int_equal(sum_begun(), MOST * AHEAD);
    MPI_Barrier(MPI_COMM_WORLD);
    for (uint32_t m = MOST; m-- > 0;) send(&x, m, (int)m);
    finish(&x);
    assert_int_equal(sum_begun(), MOST * CHUNKS);
    assert_in_range(seen.most_looked_at, MOST * AHEAD + 1, MOST * AHEAD + BEYOND + IN_FLIGHT);
    close_traffic(&x);
}

/* None that has the tag of one before it begins before all of that has: the next chunk is not its.
 */
static void test_same_tag(void **state) {
    static const size_t bytes[] = {7 * CHUNK, 1, 3 * CHUNK + 1, CHUNK, 5 * CHUNK - 1};
    enum { N = sizeof bytes / sizeof bytes[0], TAG = 5, OTHER = 6 };
    traffic x;
    (void)state;
    open_traffic(&x, N + 1);
    for (uint32_t m = 0; m < N; m++) expect(&x, m, bytes[m], TAG);
    expect(&x, N, 4 * CHUNK, OTHER); /* which waits for none of them */
    assert_int_equal(seen.begun[TAG], AHEAD);
    assert_int_equal(seen.begun[OTHER], AHEAD);
    MPI_Barrier(MPI_COMM_WORLD);
    send(&x, N, OTHER);
    await(&x, N);
    await(&x, x.n);
    assert_int_equal(seen.begun[TAG], AHEAD);
    MPI_Barrier(MPI_COMM_WORLD);
    for (uint32_t m = 0; m < N; m++) send(&x, m, TAG);
    finish(&x);
    close_traffic(&x);
}

/* One that has begun as a whole, behind others of which a part waits, is followed by more. */
static void test_short_among_long(void **state) {
    static const size_t bytes[] = {5 * CHUNK, 1, 5 * CHUNK, 1, 2, 4 * CHUNK};
    enum { N = sizeof bytes / sizeof bytes[0] };
    traffic x;
    (void)state;
    open_traffic(&x, N);
    for (uint32_t m = 0; m < N; m++) expect(&x, m, bytes[m], (int)m);
    for (uint32_t m = N; m-- > 0;) send(&x, m, (int)m);
    finish(&x);
    close_traffic(&x);
}

/* What completes in the middle of others leaves no gap among them, and these none of their
 * places. */
static void test_no_gaps(void **state) {
    static const uint32_t order[] = {3, 0, 4, 2, 1}; /* of sends */
    enum { N = sizeof order / sizeof order[0] };
    traffic x;
    (void)state;
    open_traffic(&x, N);
    for (uint32_t m = 0; m < N; m++) expect(&x, m, AHEAD * CHUNK, (int)m);
    for (uint32_t i = 0; i < N; i++) {
        MPI_Barrier(MPI_COMM_WORLD); /* none of the next has come */
        poll(&x);
        assert_int_equal(seen.n_looked_at, (N - i) * AHEAD);
        send(&x, order[i], (int)order[i]);
        await(&x, order[i]);
        await(&x, N);
    }
    finish(&x);
    close_traffic(&x);
}

/* No receive is left that would take what comes for another. */
static void test_cancel(void **state) {
    enum { TAG = 3 };
    traffic x, y;
    (void)state;
    open_traffic(&x, 2);
    expect(&x, 0, 5 * CHUNK, TAG);
    expect(&x, 1, 5 * CHUNK, TAG);
    poll(&x);
    bpt__transfers_cancel(x.t);
    open_traffic(&y, 1);
    expect(&y, 0, 5 * CHUNK, TAG);
    MPI_Barrier(MPI_COMM_WORLD);
    send(&y, 0, TAG);
    finish(&y);
    close_traffic(&y);
    assert_int_equal(x.in[0][0], 0);
    close_traffic(&x);
}

static void test_no_bytes(void **state) {
    traffic x;
    (void)state;
    open_traffic(&x, 1);
    expect(&x, 0, 0, 0);
    send(&x, 0, 0);
    assert_int_equal(bpt__transfers_pending(x.t, 0), 0);
    assert_int_equal(bpt__transfers_pending(x.t, 1), 0);
    poll(&x);
    assert_false(x.complete[0] || x.complete[1]);
    assert_int_equal(sum_begun() + seen.begun_sends + seen.most_looked_at, 0);
    close_traffic(&x);
}

/* What MPI sends over TCP without asking first: where it is another's to say, nothing is known. */
static void test_network_is_not_asked(void **state) {
    int level, index, n;
    size_t limit = 0;
    MPI_T_cvar_handle handle;
    (void)state;
    assert_int_equal(MPI_T_init_thread(MPI_THREAD_SINGLE, &level), MPI_SUCCESS);
    if (MPI_T_cvar_get_index("btl_tcp_eager_limit", &index) == MPI_SUCCESS &&
        MPI_T_cvar_handle_alloc(index, NULL, &handle, &n) == MPI_SUCCESS) {
        assert_int_equal(MPI_T_cvar_read(handle, &limit), MPI_SUCCESS);
        assert_true(bpt__way_network.chunk_bytes + HEADER_BYTES <= limit);
        MPI_T_cvar_handle_free(&handle);
    }
    MPI_T_finalize();
    if (limit == 0) skip();
}

int main(int argc, char **argv) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_windows),  cmocka_unit_test(test_many_ahead),
        cmocka_unit_test(test_same_tag), cmocka_unit_test(test_short_among_long),
        cmocka_unit_test(test_no_gaps),  cmocka_unit_test(test_cancel),
        cmocka_unit_test(test_no_bytes), cmocka_unit_test(test_network_is_not_asked),
    };
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &n_ranks);
    const int n_failed = cmocka_run_group_tests(tests, NULL, NULL);
    MPI_Finalize();
    return n_failed > 0;
}
