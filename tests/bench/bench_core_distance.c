/* How far the cores that this process may use are from each other.
 *
 *   bench_core_distance
 *
 * Two threads, each bound to a core, hand one cache line back and forth. Prints a Markdown table:
 * nanoseconds of a round trip for each pair of cores, median of 15 rounds (least to largest). Tens
 * where two cores share their last cache, hundreds where they do not; a virtual machine may be
 * moved from the one to the other. Training steps that last some milliseconds are faster on near
 * cores: two figures of them are only comparable where this one was the same.
 */
#include "base/clock.h"
#include "base/status.h"
#include "scheduler/cores.h"
#include "tests/bench/figures.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>

enum { N_ROUNDS = 15, N_TRIPS = 100000 };

typedef struct pair {
    const bpt__cores *cores;
    unsigned b;
    _Alignas(128) _Atomic unsigned turn; /* 0: of the first, 1: of the second */
    bpt_status status;                   /* of the second */
} pair;

static void *answer(void *arg) {
    pair *p = arg;
    p->status = bpt__cores_bind(p->cores, p->b);
    for (size_t i = 0; i < (size_t)N_ROUNDS * N_TRIPS; i++) {
        while (atomic_load(&p->turn) != 1) {
        }
        atomic_store(&p->turn, 0);
    }
    return NULL;
}

static double round_ns(pair *p) {
    const uint64_t begin = bpt_clock_ns();
    for (size_t i = 0; i < N_TRIPS; i++) {
        atomic_store(&p->turn, 1);
        while (atomic_load(&p->turn) != 0) {
        }
    }
    return (double)(bpt_clock_ns() - begin) / N_TRIPS;
}

static bpt_status measure(const bpt__cores *cores, unsigned a, unsigned b) {
    pair p = {.cores = cores, .b = b};
    double ns[N_ROUNDS];
    pthread_t second;
    BPT_TRY(bpt__cores_bind(cores, a));
    if (pthread_create(&second, NULL, answer, &p) != 0)
        return bpt_fail(BPT_ENOMEM, "no second thread");
    for (size_t i = 0; i < N_ROUNDS; i++) ns[i] = round_ns(&p);
    pthread_join(second, NULL);
    BPT_TRY(p.status);
    const figures f = figures_of(ns, N_ROUNDS);
    printf("| %u, %u | %.0f (%.0f to %.0f) |\n", a, b, f.median, f.least, f.largest);
    return BPT_OK;
}

static bpt_status measure_pairs(const bpt__cores *cores) {
    const unsigned n = bpt__cores_count(cores);
    printf("| cores | round trip, ns |\n|---|---|\n");
    for (unsigned a = 0; a < n; a++)
        for (unsigned b = a + 1; b < n; b++) BPT_TRY(measure(cores, a, b));
    return BPT_OK;
}

int main(void) {
    bpt__cores *cores;
    bpt_status status = bpt__cores_create(&cores);
    if (status == BPT_OK) {
        status = measure_pairs(cores);
        bpt__cores_free(cores);
    }
    if (status != BPT_OK) fprintf(stderr, "bench_core_distance: %s\n", bpt_error_last()->text);
    return bpt_status_exit(status);
}
