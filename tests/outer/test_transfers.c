/* Messages in chunks, more of them than may be under way at once. ctest: TIMEOUT=60 RANKS=1,2,4 */
#include "outer/comm/transfers.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

enum {
    MAX_RANKS = 4,
    MOST_IN_FLIGHT = 4,
    CHUNKS = MOST_IN_FLIGHT + 2,
    CHUNK_BYTES = 1 << 19,
    BYTES = CHUNKS * CHUNK_BYTES + 1, /* the last chunk is as short as can be */
    TAG = 7,
};

static const uint32_t in_flight[MAX_RANKS] = {2, MOST_IN_FLIGHT, 1, 3};
static bpt__way ways[MAX_RANKS];

static int rank, n_ranks;

typedef struct {
    uint32_t header[4];
    unsigned char *payload; /* [BYTES] */
} message;

/* @param other_bytes of chunks to and from every other rank, as if the rest were on this host */
static void make_ways(size_t other_bytes) {
    for (int r = 0; r < n_ranks; r++)
        ways[r] = (bpt__way){(rank + r) % 2 ? other_bytes : CHUNK_BYTES, in_flight[r], 2, 3};
}

static size_t chunks_of(size_t bytes, int other) {
    return (bytes + ways[other].chunk_bytes - 1) / ways[other].chunk_bytes;
}

static unsigned char byte_of(int from, int to, size_t i) {
    return (unsigned char)(31 * from + 17 * to + (i >> 20) * 13 + i);
}

static message make(int from, int to) {
    message m = {{(uint32_t)from, (uint32_t)to, 5, 6}, malloc(BYTES)};
    assert_non_null(m.payload);
    for (size_t i = 0; i < BYTES; i++) m.payload[i] = byte_of(from, to, i);
    return m;
}

static void assert_same_payload(const message *got, int from, int to) {
    const message want = make(from, to);
    assert_memory_equal(got->payload, want.payload, BYTES);
    free(want.payload);
}

static void assert_same(const message *got, int from, int to) {
    const uint32_t header[4] = {(uint32_t)from, (uint32_t)to, 5, 6};
    assert_memory_equal(got->header, header, sizeof header);
    assert_same_payload(got, from, to);
}

static message place(void) {
    message m = {{0}, calloc(1, BYTES)};
    assert_non_null(m.payload);
    return m;
}

static void receive_from(bpt__transfers *t, uint32_t group, uint32_t other, message *m) {
    assert_int_equal(bpt__transfers_recv(t, group, m->header, sizeof m->header, other, TAG),
                     BPT_OK);
    assert_int_equal(bpt__transfers_recv(t, group, m->payload, BYTES, other, TAG), BPT_OK);
}

static void send_to(bpt__transfers *t, uint32_t group, uint32_t other, const message *m) {
    assert_int_equal(bpt__transfers_send(t, group, m->header, sizeof m->header, other, TAG),
                     BPT_OK);
    assert_int_equal(bpt__transfers_send(t, group, m->payload, BYTES, other, TAG), BPT_OK);
}

/* Headers and payloads have one tag: their order is kept although most of them wait in line. */
static void start(bpt__transfers *t, message in[], message out[]) {
    for (int r = 0; r < n_ranks; r++) {
        const uint32_t group = (uint32_t)r, other = (uint32_t)r;
        in[r] = place();
        out[r] = make(rank, r);
        receive_from(t, group, other, &in[r]);
        send_to(t, group, other, &out[r]);
        assert_int_equal(bpt__transfers_pending(t, group), 2 * (chunks_of(BYTES, r) + 1));
    }
}

static void finish(bpt__transfers *t) {
    uint32_t complete[MAX_RANKS], n = 0;
    for (int left = n_ranks; left > 0; left -= (int)n) {
        bool moved = false;
        assert_int_equal(bpt__transfers_poll(t, &moved, complete, &n), BPT_OK);
        for (uint32_t i = 0; i < n; i++)
            assert_int_equal(bpt__transfers_pending(t, complete[i]), 0);
    }
}

typedef struct {
    size_t sent[MAX_RANKS], received[MAX_RANKS];
    size_t n_sent[MAX_RANKS], n_received[MAX_RANKS];
} bytes_told;

static void count_bytes(void *arg, const bpt_message *m) {
    bytes_told *told = arg;
    assert_true(m->begin_ns > 0 && m->begin_ns <= m->end_ns);
    assert_true(m->bytes <= ways[m->peer].chunk_bytes);
    (m->sent ? told->sent : told->received)[m->peer] += m->bytes;
    (m->sent ? told->n_sent : told->n_received)[m->peer]++;
}

static void test_chunks(void **state) {
    static const size_t bytes[] = {0, 1, CHUNK_BYTES, CHUNK_BYTES + 1};
    static const uint32_t chunks[] = {0, 1, 1, 2};
    const size_t room[] = {1, 1};
    const message out = make(rank, rank), in = place();
    bpt__transfers *t;
    (void)state;
    assert_int_equal(
        bpt__transfers_create(MPI_COMM_WORLD, ways, (uint32_t)n_ranks, room, 2, NULL, &t), BPT_OK);
    for (int i = 0; i < 4; i++) {
        const uint32_t self = (uint32_t)rank;
        assert_int_equal(bpt__transfers_recv(t, 0, in.payload, bytes[i], self, TAG), BPT_OK);
        assert_int_equal(bpt__transfers_send(t, 1, out.payload, bytes[i], self, TAG), BPT_OK);
        assert_int_equal(bpt__transfers_pending(t, 0), chunks[i]);
        assert_int_equal(bpt__transfers_pending(t, 1), chunks[i]);
        while (bpt__transfers_pending(t, 0) + bpt__transfers_pending(t, 1) > 0) {
            uint32_t complete[2], n;
            bool moved = false;
            assert_int_equal(bpt__transfers_poll(t, &moved, complete, &n), BPT_OK);
        }
        assert_memory_equal(in.payload, out.payload, bytes[i]);
    }
    bpt__transfers_free(t);
    free(in.payload);
    free(out.payload);
}

static void check_all_arrives(void) {
    bytes_told told = {0};
    const bpt__message_watch watch = {count_bytes, &told};
    size_t room[MAX_RANKS];
    bpt__transfers *t;
    for (int r = 0; r < n_ranks; r++) room[r] = 4; /* header and payload, to and from */
    assert_int_equal(bpt__transfers_create(MPI_COMM_WORLD, ways, (uint32_t)n_ranks, room,
                                           (uint32_t)n_ranks, &watch, &t),
                     BPT_OK);
    for (int again = 0; again < 2; again++) {
        message in[MAX_RANKS], out[MAX_RANKS];
        start(t, in, out);
        finish(t);
        for (int r = 0; r < n_ranks; r++) {
            assert_same(&in[r], r, rank);
            free(in[r].payload);
            free(out[r].payload);
        }
    }
    for (int r = 0; r < n_ranks; r++) {
        assert_int_equal(told.sent[r], 2 * (BYTES + 16));
        assert_int_equal(told.received[r], 2 * (BYTES + 16));
        assert_int_equal(told.n_sent[r], 2 * (chunks_of(BYTES, r) + 1));
        assert_int_equal(told.n_received[r], 2 * (chunks_of(BYTES, r) + 1));
    }
    bpt__transfers_free(t);
}

static void test_all_arrives_in_order(void **state) {
    (void)state;
    check_all_arrives();
}

/* Ranks that are on one host, and others. */
static void test_unlike_chunks(void **state) {
    (void)state;
    make_ways(bpt__way_network.chunk_bytes);
    check_all_arrives();
    make_ways(CHUNK_BYTES);
}

/* What one group has queued goes before what the other has. */
static void test_groups_share_a_receiver(void **state) {
    const size_t room[] = {2, 2, 4};
    const uint32_t to = (uint32_t)((rank + 1) % n_ranks);
    const uint32_t from = (uint32_t)((rank + n_ranks - 1) % n_ranks);
    message in[2], out[2];
    uint32_t order[3], complete[3];
    int n_ended = 0;
    bpt__transfers *t;
    (void)state;
    assert_int_equal(
        bpt__transfers_create(MPI_COMM_WORLD, ways, (uint32_t)n_ranks, room, 3, NULL, &t), BPT_OK);
    for (uint32_t g = 0; g < 2; g++) {
        in[g] = place();
        out[g] = make(rank, (int)to);
        receive_from(t, 2, from, &in[g]);
    }
    for (uint32_t g = 0; g < 2; g++) send_to(t, g, to, &out[g]);
    while (n_ended < 3) {
        bool moved = false;
        uint32_t n = 0;
        assert_int_equal(bpt__transfers_poll(t, &moved, complete, &n), BPT_OK);
        for (uint32_t i = 0; i < n; i++) order[n_ended++] = complete[i];
    }
    for (int i = 0; order[i] != 1; i++) assert_true(i < 2 && "group 1 ends too");
    for (int i = 0; order[i] != 0; i++) assert_true(order[i] != 1 && "group 0 was first");
    for (int i = 0; i < 2; i++) {
        assert_same(&in[i], (int)from, rank);
        free(in[i].payload);
        free(out[i].payload);
    }
    bpt__transfers_free(t);
}

static void receive(const message *m, size_t chunk, int from) {
    const size_t at = chunk * CHUNK_BYTES;
    const size_t n = BYTES - at < CHUNK_BYTES ? BYTES - at : CHUNK_BYTES;
    MPI_Recv(m->payload + at, (int)n, MPI_BYTE, from, TAG, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
}

static bool is_there(int from) {
    int there = 0;
    for (int i = 0; i < 1000 && !there; i++)
        MPI_Iprobe(from, TAG, MPI_COMM_WORLD, &there, MPI_STATUS_IGNORE);
    return there;
}

/* No chunk begins before its sender has polled, but for the first ones: as many as the receiver may
 * have. */
static void test_few_are_under_way(void **state) {
    const size_t room = 1;
    const int to = (rank + 1) % n_ranks, from = (rank + n_ranks - 1) % n_ranks;
    const message out = make(rank, to), in = place();
    size_t taken = 0;
    uint32_t complete, n = 0;
    bool moved = false;
    bpt__transfers *t;
    (void)state;
    assert_int_equal(
        bpt__transfers_create(MPI_COMM_WORLD, ways, (uint32_t)n_ranks, &room, 1, NULL, &t), BPT_OK);
    assert_int_equal(bpt__transfers_send(t, 0, out.payload, BYTES, (uint32_t)to, TAG), BPT_OK);
    for (; taken < in_flight[rank]; taken++) receive(&in, taken, from);
    assert_false(is_there(from));
    MPI_Barrier(MPI_COMM_WORLD);
    while (n == 0) {
        assert_int_equal(bpt__transfers_poll(t, &moved, &complete, &n), BPT_OK);
        if (taken <= CHUNKS && is_there(from)) receive(&in, taken++, from);
    }
    for (; taken <= CHUNKS; taken++) receive(&in, taken, from);
    assert_true(moved);
    assert_same_payload(&in, from, rank);
    bpt__transfers_free(t);
    free(in.payload);
    free(out.payload);
}

int main(int argc, char **argv) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_chunks),
        cmocka_unit_test(test_all_arrives_in_order),
        cmocka_unit_test(test_unlike_chunks),
        cmocka_unit_test(test_groups_share_a_receiver),
        cmocka_unit_test(test_few_are_under_way),
    };
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &n_ranks);
    make_ways(CHUNK_BYTES);
    const int n_failed = cmocka_run_group_tests(tests, NULL, NULL);
    MPI_Finalize();
    return n_failed > 0;
}
