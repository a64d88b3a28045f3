/* How fast values travel between two ranks, in two ways:
 *
 *   mpirun -np 2 bench_exchange ping BYTES ROUNDS    MPI alone: so many bytes there, and back
 *   mpirun -np 2 bench_exchange push BYTES ROUNDS    both push BYTES of deltas under agwu, and wait
 *                                                    for the global values that come back
 *
 * After a round that does not count rank 0 prints for each round a line of JSON: the megabytes
 * (10^6) a second that crossed from it to the other. Of a push half crosses as a delta to the
 * other's shard, and half as the answer from its own; as much comes the other way at the same time.
 * The message of "ping" lies in plain memory, as a program without bpt has it.
 * tests/bench/exchange compares the two on links of known speed.
 */
#include "base/clock.h"
#include "base/memory.h"
#include "outer/exchange/exchange.h"

#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MAX_BYTES = 1 << 30, MAX_ROUNDS = 1000 };

static void say(size_t bytes, uint64_t start_ns) {
    printf("{\"mb_per_s\": %.3f}\n", (double)bytes * 1e-6 / bpt_clock_seconds_since(start_ns));
    fflush(stdout);
}

/* ---- MPI alone ---- */

static void ping_once(int rank, char *data, size_t bytes) {
    const int other = 1 - rank;
    if (rank == 0) MPI_Send(data, (int)bytes, MPI_BYTE, other, 0, MPI_COMM_WORLD);
    MPI_Recv(data, (int)bytes, MPI_BYTE, other, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    if (rank == 1) MPI_Send(data, (int)bytes, MPI_BYTE, other, 0, MPI_COMM_WORLD);
}

static bpt_status ping(size_t bytes, long n_rounds) {
    int rank, size;
    char *data = calloc(bytes, 1);
    if (!data) return bpt_fail(BPT_ENOMEM, "message: cannot allocate %zu bytes", bytes);
    MPI_Init(NULL, NULL);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    for (long round = 0; round <= n_rounds && size == 2; round++) {
        const uint64_t start_ns = bpt_clock_ns();
        ping_once(rank, data, bytes);
        if (rank == 0 && round > 0) say(2 * bytes, start_ns); /* there and back: two crossings */
    }
    MPI_Finalize();
    free(data);
    return size == 2 ? BPT_OK : bpt_fail(BPT_EUSAGE, "%d ranks, it takes two", size);
}

/* ---- an exchange ---- */

static bpt_status push_once(bpt_exchange *x) {
    const bpt_report report = {.samples = 1, .quality = 1};
    bpt_reply reply;
    BPT_TRY(bpt_exchange_push(x, &report));
    return bpt_exchange_wait(x, &reply);
}

static bpt_status push_rounds(bpt_comm *comm, const float *values, size_t n, long n_rounds) {
    const bpt_coordinator_options coordinator = {.n_ranks = 2};
    bpt_exchange_options options = BPT_EXCHANGE_OPTIONS_INIT;
    bpt_exchange *x;
    options.rule = &bpt_rule_agwu;
    options.n_elements = n;
    options.initial = values;
    options.coordinator = &coordinator;
    BPT_TRY(bpt_exchange_create(comm, &options, &x));
    bpt_status status = BPT_OK;
    for (long round = 0; round <= n_rounds && status == BPT_OK; round++) {
        memcpy(bpt_exchange_outbox(x), values, n * sizeof *values);
        status = bpt_comm_barrier(comm); /* both push at the same time */
        const uint64_t start_ns = bpt_clock_ns();
        if (status == BPT_OK) status = push_once(x);
        if (status == BPT_OK && round > 0 && bpt_comm_rank(comm) == 0)
            say(n * sizeof *values, start_ns);
    }
    const bpt_status ended = bpt_exchange_destroy(x);
    return status != BPT_OK ? status : ended;
}

static bpt_status push(size_t bytes, long n_rounds) {
    const size_t n = bytes / sizeof(float);
    float *values;
    bpt_comm *comm;
    BPT_TRY(bpt_comm_start(&comm));
    bpt_status status = BPT_NEW("values", n, &values);
    if (status == BPT_OK && bpt_comm_size(comm) != 2)
        status = bpt_fail(BPT_EUSAGE, "%u ranks, it takes two", bpt_comm_size(comm));
    status = bpt_comm_agree(comm, status);
    if (status == BPT_OK) status = push_rounds(comm, values, n, n_rounds);
    bpt_free(values);
    bpt_comm_stop(comm);
    return status;
}

int main(int argc, char **argv) {
    const bool pings = argc == 4 && strcmp(argv[1], "ping") == 0;
    const bool pushes = argc == 4 && strcmp(argv[1], "push") == 0;
    const long bytes = pings || pushes ? atol(argv[2]) : 0;
    const long n_rounds = pings || pushes ? atol(argv[3]) : 0;
    if (bytes < 4 || bytes > MAX_BYTES || n_rounds < 1 || n_rounds > MAX_ROUNDS) {
        fprintf(stderr, "usage: mpirun -np 2 bench_exchange ping|push BYTES ROUNDS\n");
        return 2;
    }
    const bpt_status status = (pings ? ping : push)((size_t)bytes, n_rounds);
    if (status != BPT_OK) fprintf(stderr, "bench_exchange: %s\n", bpt_error_last()->text);
    return bpt_status_exit(status);
}
