/* What a task costs that does nothing: nanoseconds of wall time per task, for graphs of several
 * shapes, on one and two workers, beside OpenMP tasks (libgomp) and, where the build found it,
 * StarPU with the same dependences.
 *
 *   bench_scheduler [RUNS]      timed runs of each case (default 60)
 *
 * One JSON object a line on stdout. Engines take turns, case by case, after warm-up. bpt's graph is
 * built before the clock starts, as in training; OpenMP finds its dependences in every run;
 * StarPU's tasks are made, linked and submitted before its clock starts, while its workers pause.
 */
#include "base/clock.h"
#include "base/memory.h"
#include "scheduler/pool.h"
#include "tests/bench/figures.h"
#include "tests/bench/starpu_tasks.h"
#include "tests/bench/task_shapes.h"

#include <omp.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

enum { WARM_UP = 10 };

static task_shape shapes[N_SHAPES];

static bpt_status nothing(void *arg, unsigned worker) {
    (void)arg, (void)worker;
    return BPT_OK;
}

static bpt_status build(const task_shape *s, bpt_graph **out) {
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

static uint64_t run_openmp(const task_shape *s, int n_threads) {
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

/* All of a line but its end. */
static void print(const task_shape *s, const char *engine, unsigned n_workers, double *ns,
                  int n_runs) {
    const double median = figures_of(ns, (size_t)n_runs).median; /* sorts */
    printf(
        "{\"bench\": \"scheduler\", \"case\": \"%s\", \"engine\": \"%s\", \"workers\": %u, "
        "\"tasks\": %d, \"runs\": %d, \"ns_per_task\": {\"median\": %.1f, \"p10\": %.1f, "
        "\"p90\": %.1f, \"min\": %.1f}",
        s->name, engine, n_workers, N_TASKS, n_runs, median, ns[n_runs / 10], ns[n_runs * 9 / 10],
        ns[0]);
}

static bpt_status bench_bpt(const task_shape *s, unsigned n_workers, int n_runs, double *ns) {
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

static void bench_openmp(const task_shape *s, unsigned n_workers, int n_runs, double *ns) {
    for (int i = -WARM_UP; i < n_runs; i++) {
        const uint64_t wall_ns = s == &shapes[0] ? run_openmp_independent((int)n_workers)
                                                 : run_openmp(s, (int)n_workers);
        if (i >= 0) ns[i] = (double)wall_ns / N_TASKS;
    }
    print(s, "openmp", n_workers, ns, n_runs);
    printf("}\n");
    /* libgomp's threads go on spinning for a while. */
    const struct timespec pause = {.tv_nsec = 100000000};
    nanosleep(&pause, NULL);
}

#ifdef HAVE_STARPU
static bpt_status bench_starpu(const task_shape *s, unsigned n_workers, int n_runs, double *ns) {
    if (!starpu_tasks_start(n_workers)) return bpt_fail(BPT_EBACKEND, "StarPU does not start");
    uint64_t wall_ns = 1;
    for (int i = -WARM_UP; i < n_runs && wall_ns; i++) {
        wall_ns = starpu_tasks_run(s);
        if (i >= 0) ns[i] = (double)wall_ns / N_TASKS;
    }
    starpu_tasks_stop();
    if (!wall_ns) return bpt_fail(BPT_EBACKEND, "StarPU refused a task");
    print(s, "starpu", n_workers, ns, n_runs);
    printf("}\n");
    return BPT_OK;
}
#else
static bpt_status bench_starpu(const task_shape *s, unsigned n_workers, int n_runs, double *ns) {
    (void)s, (void)n_workers, (void)n_runs, (void)ns;
    return BPT_OK;
}
#endif

static bpt_status bench_case(const task_shape *s, unsigned n_workers, int n_runs, double *ns) {
    BPT_TRY(bench_bpt(s, n_workers, n_runs, ns));
    bench_openmp(s, n_workers, n_runs, ns);
    return bench_starpu(s, n_workers, n_runs, ns);
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
    task_shapes_make(shapes);
    for (size_t i = 0; i < N_SHAPES && status == BPT_OK; i++)
        for (unsigned n_workers = 1; n_workers <= 2 && status == BPT_OK; n_workers++)
            status = bench_case(&shapes[i], n_workers, n_runs, ns);
    if (status != BPT_OK) fprintf(stderr, "bench_scheduler: %s\n", bpt_error_last()->text);
    bpt_free(ns);
    return bpt_status_exit(status);
}
