/* Batches of all ranks through a server: what arrives, what comes back, in what order, and what it
 * puts on the wires. A call of MPI is replaced here.
 * ctest: TIMEOUT=60 RANKS=1,2,3,4 */
#include "base/memory.h"
#include "base/random.h"
#include "outer/placement/relay.h"
#include "tests/outer/exchange_fixture.h"

#include <mpi.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

/* Last: it needs those above, and defines fail and skip. */
#include <cmocka.h>

enum { MAX_RANKS = 16 };

static atomic_bool broken; /* MPI is, on this rank */

int MPI_Testsome(int n, MPI_Request *requests, int *n_done, int *index, MPI_Status *statuses) {
    if (atomic_load(&broken)) return MPI_ERR_OTHER;
    return PMPI_Testsome(n, requests, n_done, index, statuses);
}

/* ---- a relay with made-up batches ---- */

typedef struct {
    uint32_t m, rank, server, samples[MAX_RANKS];
    size_t values; /* floats of a sample */
    float *places[MAX_RANKS];
    int32_t *labels[MAX_RANKS];
    float *mine, *gradient; /* of this rank's batch */
    int32_t *my_labels;
    bpt_relay *r;
} relay;

static size_t n_values(const relay *x, uint32_t worker) {
    return x->samples[worker] * x->values;
}

static float value_of(uint32_t worker, uint64_t step, size_t i) {
    return (float)(worker * 1000 + step) + (float)(i % 977) * 0.001f;
}

static int32_t label_of(uint32_t worker, uint64_t step, uint32_t i) {
    return (int32_t)(worker + 7 * step + i) % 10;
}

/* What the server makes of a value. */
static float gradient_of(uint32_t worker, float value) {
    return 2.0f * value + (float)worker;
}

static void open_relay(relay *x, uint32_t server, size_t values, bool own_thread) {
    *x = (relay){.m = bpt_comm_size(comm), .rank = bpt_comm_rank(comm), .values = values};
    x->server = server % x->m;
    assert_true(x->m <= MAX_RANKS);
    for (uint32_t w = 0; w < x->m; w++) {
        x->samples[w] = 3 + 2 * w;
        if (x->rank != x->server) continue;
        x->places[w] = malloc(n_values(x, w) * sizeof(float));
        x->labels[w] = malloc(x->samples[w] * sizeof(int32_t));
    }
    x->mine = malloc(n_values(x, x->rank) * sizeof(float));
    x->gradient = malloc(n_values(x, x->rank) * sizeof(float));
    x->my_labels = malloc(x->samples[x->rank] * sizeof(int32_t));
    const bpt_relay_options options = {.server = x->server,
                                       .sample_bytes = values * sizeof(float),
                                       .samples = x->samples,
                                       .values = (void *const *)x->places,
                                       .labels = x->labels,
                                       .own_thread = own_thread};
    if (bpt_relay_create(comm, &options, &x->r) != BPT_OK) fail_msg("%s", bpt_error_last()->text);
}

static void free_batches(relay *x) {
    for (uint32_t w = 0; w < x->m; w++) {
        free(x->places[w]);
        free(x->labels[w]);
    }
    free(x->mine);
    free(x->gradient);
    free(x->my_labels);
}

static void close_relay(relay *x) {
    assert_int_equal(bpt_relay_destroy(x->r), BPT_OK);
    free_batches(x);
}

/* ---- the worker's side ---- */

static void send_batch(relay *x, uint64_t step) {
    const bpt_relay_note note = {
        .seed = 5, .step = step, .first_sample = 100 * x->rank, .denominator = 0.5f, .rate = 0.25f};
    const size_t n = n_values(x, x->rank);
    for (size_t i = 0; i < n; i++) x->mine[i] = value_of(x->rank, step, i);
    for (uint32_t i = 0; i < x->samples[x->rank]; i++) x->my_labels[i] = label_of(x->rank, step, i);
    memset(x->gradient, 0, n * sizeof(float));
    if (bpt_relay_send(x->r, &note, x->mine, x->my_labels, x->gradient) != BPT_OK)
        fail_msg("%s", bpt_error_last()->text);
}

static void check_answer(relay *x, uint64_t step) {
    bpt_relay_result result = {0};
    if (bpt_relay_wait(x->r, &result) != BPT_OK) fail_msg("%s", bpt_error_last()->text);
    assert_true(result.loss_sum == (double)(x->rank + 10 * step));
    assert_int_equal(result.n_correct, step);
    assert_int_equal(result.n_samples, x->samples[x->rank]);
    for (size_t i = 0; i < n_values(x, x->rank); i++) {
        const float value = value_of(x->rank, step, i);
        assert_true(x->gradient[i] == gradient_of(x->rank, value));
    }
}

/* ---- the server's side; on any thread, so without asserts ---- */

static bool is_right(const relay *x, uint32_t worker, const bpt_relay_note *note) {
    bool right = note->seed == 5 && note->first_sample == 100 * worker &&
                 note->denominator == 0.5f && note->rate == 0.25f;
    for (size_t i = 0; i < n_values(x, worker); i++)
        right = right && x->places[worker][i] == value_of(worker, note->step, i);
    for (uint32_t i = 0; i < x->samples[worker]; i++)
        right = right && x->labels[worker][i] == label_of(worker, note->step, i);
    return right;
}

/* Puts the gradient where the batch was. */
static bpt_status answer(relay *x, uint32_t worker, const bpt_relay_note *note) {
    const bpt_relay_result result = {.loss_sum = (double)(worker + 10 * note->step),
                                     .n_correct = note->step,
                                     .n_samples = x->samples[worker]};
    float *place = x->places[worker];
    for (size_t i = 0; i < n_values(x, worker); i++) place[i] = gradient_of(worker, place[i]);
    return bpt_relay_answer(x->r, worker, &result, place);
}

/* Takes one batch of every rank, then answers them. */
static void serve_all(relay *x) {
    uint32_t workers[MAX_RANKS];
    bpt_relay_note notes[MAX_RANKS];
    bool seen[MAX_RANKS] = {false};
    for (uint32_t i = 0; i < x->m; i++) {
        assert_int_equal(bpt_relay_next(x->r, &workers[i], &notes[i]), BPT_OK);
        assert_false(seen[workers[i]]);
        seen[workers[i]] = true;
        assert_true(is_right(x, workers[i], &notes[i]));
    }
    for (uint32_t i = x->m; i-- > 0;) assert_int_equal(answer(x, workers[i], &notes[i]), BPT_OK);
}

/* ---- in step ---- */

static void run_in_step(relay *x, uint64_t n_steps) {
    for (uint64_t step = 0; step < n_steps; step++) {
        send_batch(x, step);
        if (x->rank == x->server) serve_all(x);
        check_answer(x, step);
    }
}

enum { NOTE_BYTES = 32, RESULT_BYTES = 232 };

/* An answer is counted when it has left, which its worker may know before the server. */
static void await_answers(relay *x, uint64_t n_steps, bpt_relay_stats *stats) {
    const uint64_t there = x->rank == x->server ? (x->m - 1) * RESULT_BYTES : NOTE_BYTES;
    for (;;) {
        bpt_relay_stats_get(x->r, stats);
        if (stats->header_sent_bytes >= n_steps * there) return;
        nanosleep(&(struct timespec){.tv_nsec = 1000000}, NULL);
    }
}

/* Every worker but the server's own sends n (a A + 4) bytes and gets n a A. */
static void check_bytes(relay *x, uint64_t n_steps) {
    const size_t sample = x->values * sizeof(float);
    uint64_t there = 0, here = 0;
    bpt_relay_stats stats, all[MAX_RANKS], sum = {0};
    await_answers(x, n_steps, &stats);
    assert_int_equal(bpt_comm_allgather(comm, &stats, sizeof stats, all), BPT_OK);
    for (uint32_t w = 0; w < x->m; w++) {
        const uint64_t bytes = n_steps * x->samples[w] * (2 * sample + 4);
        *(w == x->server ? &here : &there) += bytes;
        sum.payload_sent_bytes += all[w].payload_sent_bytes;
        sum.payload_received_bytes += all[w].payload_received_bytes;
        sum.header_sent_bytes += all[w].header_sent_bytes;
        sum.header_received_bytes += all[w].header_received_bytes;
        sum.local_bytes += all[w].local_bytes;
        assert_int_equal(all[w].batches, n_steps);
    }
    assert_int_equal(sum.payload_sent_bytes, there);
    assert_int_equal(sum.payload_received_bytes, there);
    assert_int_equal(sum.local_bytes, here);
    assert_int_equal(sum.header_sent_bytes, sum.header_received_bytes);
    assert_int_equal(sum.header_sent_bytes,
                     (x->m - 1) * n_steps * (NOTE_BYTES + RESULT_BYTES)); /* note, result */
}

static void test_in_step(void **state) {
    (void)state;
    for (uint32_t server = 0; server < bpt_comm_size(comm); server++) {
        relay x;
        open_relay(&x, server, 50, false);
        run_in_step(&x, 1);
        const uint64_t allocations = bpt_memory_allocations();
        run_in_step(&x, 20);
        assert_int_equal(bpt_memory_allocations(), allocations);
        check_bytes(&x, 21);
        close_relay(&x);
    }
}

/* A batch here is more than a chunk, of which a megabyte has two. */
static void test_large_batches(void **state) {
    (void)state;
    relay x;
    open_relay(&x, 1, 150001, false);
    run_in_step(&x, 3);
    check_bytes(&x, 3);
    close_relay(&x);
}

/* ---- each at its pace ---- */

typedef struct {
    relay *x;
    uint64_t n_wrong, n_served, next_step[MAX_RANKS];
    bpt_status status;
} server;

/* Until it is told to stop. */
static void *serve_arrivals(void *arg) {
    server *s = arg;
    uint32_t worker = 0;
    bpt_relay_note note;
    for (;;) {
        s->status = bpt_relay_next(s->x->r, &worker, &note);
        if (s->status != BPT_OK || worker == BPT_RELAY_NOBODY) return NULL;
        s->n_wrong += !is_right(s->x, worker, &note) || note.step != s->next_step[worker]++;
        s->n_served++;
        s->status = answer(s->x, worker, &note);
        if (s->status != BPT_OK) return NULL;
    }
}

static void pause_a_little(bpt_random *r) {
    nanosleep(&(struct timespec){.tv_nsec = (long)bpt_random_below(r, 2000) * 1000}, NULL);
}

static void test_each_at_its_pace(void **state) {
    (void)state;
    relay x;
    open_relay(&x, 2, 400, true);
    server s = {.x = &x};
    pthread_t thread;
    bpt_random r = bpt_random_stream(13, BPT_PURPOSE_TEST, x.rank);
    const bool serves = x.rank == x.server;
    uint64_t expected = 0;
    if (serves) assert_int_equal(pthread_create(&thread, NULL, serve_arrivals, &s), 0);
    for (uint64_t step = 0; step < 20 + 10 * x.rank; step++) {
        send_batch(&x, step);
        check_answer(&x, step);
        pause_a_little(&r);
    }
    assert_int_equal(bpt_comm_barrier(comm), BPT_OK);
    if (serves) {
        bpt_relay_stop(x.r);
        assert_int_equal(pthread_join(thread, NULL), 0);
        assert_int_equal(s.status, BPT_OK);
        for (uint32_t w = 0; w < x.m; w++) expected += 20 + 10 * w;
        assert_int_equal(s.n_served, expected);
        assert_int_equal(s.n_wrong, 0);
    }
    close_relay(&x);
}

/* ---- what the server can make nothing of ---- */

/* Of every worker's second batch. */
static bpt_status refuse_second(relay *x, uint32_t worker, const bpt_relay_note *note) {
    if (note->step != 1) return answer(x, worker, note);
    (void)bpt_fail(BPT_ENUMERIC, "the batch of rank %u leads nowhere", worker);
    return bpt_relay_refuse(x->r, worker, x->places[worker]);
}

/* Each hears of its own batch, with status and text, and of no other; the relay goes on. */
static void test_refused(void **state) {
    (void)state;
    relay x;
    open_relay(&x, 1, 40, false);
    for (uint64_t step = 0; step < 3; step++) {
        char text[64];
        bpt_relay_result result;
        send_batch(&x, step);
        for (uint32_t i = 0; i < x.m && x.rank == x.server; i++) {
            uint32_t worker;
            bpt_relay_note note;
            assert_int_equal(bpt_relay_next(x.r, &worker, &note), BPT_OK);
            assert_int_equal(refuse_second(&x, worker, &note), BPT_OK);
        }
        if (step != 1) {
            check_answer(&x, step);
            continue;
        }
        snprintf(text, sizeof text, "the batch of rank %u leads nowhere", x.rank);
        assert_int_equal(bpt_relay_wait(x.r, &result), BPT_ENUMERIC);
        assert_string_equal(bpt_error_last()->text, text);
    }
    close_relay(&x);
}

/* ---- ranks that differ ---- */

static void test_ranks_that_differ(void **state) {
    (void)state;
    const uint32_t m = bpt_comm_size(comm), rank = bpt_comm_rank(comm);
    uint32_t samples[MAX_RANKS];
    float values[1];
    int32_t label;
    void *places[MAX_RANKS];
    int32_t *labels[MAX_RANKS];
    if (m == 1) skip();
    for (uint32_t w = 0; w < m; w++) {
        samples[w] = 1;
        places[w] = values;
        labels[w] = &label;
    }
    static const char *const unlike[] = {"has other batches", "has the layers at another rank",
                                         "has another border"};
    for (int i = 0; i < 3; i++) {
        const bool other = rank == m - 1;
        bpt_relay *r = NULL;
        samples[0] = i == 0 && other ? 2 : 1;
        const bpt_relay_options options = {.server = i == 1 && other ? 1 : 0,
                                           .sample_bytes = i == 2 && other ? 8 : 4,
                                           .samples = samples,
                                           .values = places,
                                           .labels = labels};
        assert_int_equal(bpt_relay_create(comm, &options, &r), BPT_EUSAGE);
        assert_non_null(strstr(bpt_error_last()->text, unlike[i]));
        assert_null(r);
    }
}

static void assert_broken(bpt_status status) {
    assert_int_equal(status, BPT_ECOMM);
    assert_non_null(strstr(bpt_error_last()->text, "MPI cannot complete messages"));
}

/* A rank by itself, whose messages are under way to nobody: all who wait hear why it is in vain. */
static void test_what_ends_a_relay_is_told(void **state) {
    (void)state;
    relay x;
    bpt_relay_result result;
    bpt_relay_note note = {0};
    uint32_t worker = 0;
    if (bpt_comm_size(comm) > 1) skip();
    open_relay(&x, 0, 5, false);
    send_batch(&x, 1);
    atomic_store(&broken, true);
    assert_broken(bpt_relay_wait(x.r, &result)); /* nobody answers it */
    assert_broken(bpt_relay_next(x.r, &worker, &note));
    assert_int_equal(worker, BPT_RELAY_NOBODY);
    assert_broken(bpt_relay_send(x.r, &note, x.mine, x.my_labels, x.gradient));
    atomic_store(&broken, false);
    assert_broken(bpt_relay_destroy(x.r));
    free_batches(&x);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_in_step),           cmocka_unit_test(test_large_batches),
        cmocka_unit_test(test_each_at_its_pace),  cmocka_unit_test(test_refused),
        cmocka_unit_test(test_ranks_that_differ), cmocka_unit_test(test_what_ends_a_relay_is_told),
    };
    return RUN_WITH_MPI(tests);
}
