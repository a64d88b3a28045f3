/* What a task costs that does nothing: nanoseconds of wall time per task, for graphs of several
 * shapes, on one and two workers, beside OpenMP tasks (libgomp) with the same dependences.
 *
 *   bench_scheduler [RUNS]      timed runs of each case (default 60)
 *
 * One JSON object a line on stdout. Runs of bpt and OpenMP alternate, after warm-up; a graph is
 * built before the clock starts, as in training, while OpenMP finds its dependences in every run.
 */
#include "base/clock.h"
#include "base/memory.h"
#include "base/random.h"
#include "scheduler/pool.h"

#include <omp.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

enum { N_TASKS = 10000, FORK = 50, MAX_BEFORE = 3, WARM_UP = 10 };

/* A shape is the predecessors of each task. */
typedef struct shape {
    const char *name;
    uint32_t n_before[N_TASKS];
    uint32_t before[N_TASKS][FORK];
} shape;

static shape shapes[4];

static void make_shapes(void) {
    shape *const independent = &shapes[0], *const chain = &shapes[1];
    shape *const random = &shapes[2], *const fork_join = &shapes[3];
    independent->name = "independent";
    chain->name = "chain";
    random->name = "random";
    fork_join->name = "fork-join";
    bpt_random r = bpt_random_stream(1, BPT_PURPOSE_TEST, 0);
    for (uint32_t i = 1; i < N_TASKS; i++) {
        chain->n_before[i] = 1;
        chain->before[i][0] = i - 1;
        random->n_before[i] = bpt_random_below(&r, MAX_BEFORE + 1);
        for (uint32_t k = 0; k < random->n_before[i]; k++) {
            const uint32_t reach = i < 100 ? i : 100;
            random->before[i][k] = i - 1 - bpt_random_below(&r, reach);
        }
        /* Joins at multiples of FORK, FORK - 1 tasks between. */
        if (i % FORK) {
            fork_join->n_before[i] = 1;
            fork_join->before[i][0] = i / FORK * FORK;
        } else {
            fork_join->n_before[i] = FORK - 1;
            for (uint32_t k = 0; k < FORK - 1; k++) fork_join->before[i][k] = i - 1 - k;
        }
    }
}

static bpt_status nothing(void *arg, unsigned worker) {
    (void)arg, (void)worker;
    return BPT_OK;
}

static bpt_status build(const shape *s, bpt_graph **out) {
    size_t n_edges = 0;
    for (uint32_t i = 0; i < N_TASKS; i++) n_edges += s->n_before[i];
    bpt_graph *g;
    BPT_TRY(bpt_graph_create(N_TASKS, n_edges, &g));
    const bpt_task_info info = {.kind = "empty", .label = NULL};
    for (uint32_t i = 0; i < N_TASKS; i++) {
        uint32_t id;
        const bpt_status status =
            bpt_graph_add(g, nothing, NULL, info, 0, s->before[i], s->n_before[i], &id);
        if (status != BPT_OK) {
            bpt_graph_free(g);
            return status;
        }
    }
    *out = g;
    return BPT_OK;
}

/* The address of a task's byte stands for its result. */
static char results[N_TASKS];

static uint64_t run_openmp(const shape *s, int n_threads) {
    const uint64_t begin = bpt_clock_ns();
#pragma omp parallel num_threads(n_threads)
#pragma omp single
    for (uint32_t i = 0; i < N_TASKS; i++) {
        const uint32_t *const before = s->before[i];
        const int n = (int)s->n_before[i];
        if (n == 0) {
#pragma omp task depend(out : results[i])
            nothing(NULL, 0);
        } else {
#pragma omp task depend(iterator(k = 0 : n), in : results[before[k]]) depend(out : results[i])
            nothing(NULL, 0);
        }
    }
    return bpt_clock_ns() - begin;
}

static uint64_t run_openmp_independent(int n_threads) {
    const uint64_t begin = bpt_clock_ns();
#pragma omp parallel num_threads(n_threads)
#pragma omp single
    for (uint32_t i = 0; i < N_TASKS; i++) {
#pragma omp task
        nothing(NULL, 0);
    }
    return bpt_clock_ns() - begin;
}

static int compare(const void *a, const void *b) {
    const double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

/* All of a line but its end. */
static void print(const shape *s, const char *engine, unsigned n_workers, double *ns, int n_runs) {
    qsort(ns, (size_t)n_runs, sizeof *ns, compare);
    printf(
        "{\"bench\": \"scheduler\", \"case\": \"%s\", \"engine\": \"%s\", \"workers\": %u, "
        "\"tasks\": %d, \"runs\": %d, \"ns_per_task\": {\"median\": %.1f, \"p10\": %.1f, "
        "\"p90\": %.1f, \"min\": %.1f}",
        s->name, engine, n_workers, N_TASKS, n_runs, ns[n_runs / 2], ns[n_runs / 10],
        ns[n_runs * 9 / 10], ns[0]);
}

static bpt_status bench_bpt(const shape *s, unsigned n_workers, int n_runs, double *ns) {
    bpt_pool *pool;
    bpt_graph *g;
    bpt_pool_options options = BPT_POOL_OPTIONS_INIT;
    options.n_workers = n_workers;
    BPT_TRY(bpt_pool_create(&options, &pool));
    bpt_status status;
    BPT_TRY_GOTO(status, build(s, &g), free_pool);
    uint64_t n_stolen = 0;
    for (int i = -WARM_UP; i < n_runs; i++) {
        bpt_run_stats stats;
        BPT_TRY_GOTO(status, bpt_pool_run(pool, g, &stats), free_graph);
        if (i < 0) continue;
        ns[i] = (double)stats.wall_ns / N_TASKS;
        n_stolen += stats.n_stolen;
    }
    print(s, "bpt", n_workers, ns, n_runs);
    printf(", \"stolen\": %.3f}\n", (double)n_stolen / n_runs / N_TASKS);

free_graph:
    bpt_graph_free(g);
free_pool:
    bpt_pool_free(pool);
    return status;
}

static void bench_openmp(const shape *s, unsigned n_workers, int n_runs, double *ns) {
    for (int i = -WARM_UP; i < n_runs; i++) {
        const uint64_t wall_ns = s == &shapes[0] ? run_openmp_independent((int)n_workers)
                                                 : run_openmp(s, (int)n_workers);
        if (i >= 0) ns[i] = (double)wall_ns / N_TASKS;
    }
    print(s, "openmp", n_workers, ns, n_runs);
    printf("}\n");
    const struct timespec pause = {.tv_nsec = 100000000};
    nanosleep(&pause, NULL);
}

int main(int argc, char **argv) {
    const int n_runs = argc > 1 ? atoi(argv[1]) : 60;
    if (n_runs < 1) {
        fprintf(stderr, "usage: bench_scheduler [RUNS]\n");
        return 2;
    }
    double *ns;
    bpt_status status = BPT_NEW("times", (size_t)n_runs, &ns);
    if (status != BPT_OK) return bpt_status_exit(status);
    make_shapes();
    for (size_t i = 0; i < 4 && status == BPT_OK; i++)
        for (unsigned n_workers = 1; n_workers <= 2 && status == BPT_OK; n_workers++) {
            status = bench_bpt(&shapes[i], n_workers, n_runs, ns);
            if (status == BPT_OK) bench_openmp(&shapes[i], n_workers, n_runs, ns);
        }
    if (status != BPT_OK) fprintf(stderr, "bench_scheduler: %s\n", bpt_error_last()->text);
    bpt_free(ns);
    return bpt_status_exit(status);
}
