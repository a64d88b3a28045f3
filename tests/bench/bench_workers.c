/* What many cores would make of a training step: with the tiles that it is cut into for so many
 * workers (inner/step/builder.h), and with those of one worker.
 *
 *   bench_workers MODEL BATCH
 *
 * Prints a Markdown table: for several numbers of workers the makespan in milliseconds of the step,
 * played in the simulator with the least time that each task took in some steps on one core of this
 * machine; how much faster that is than one worker; all tasks' time over that of one worker's
 * tiles, which is what smaller tiles cost; the longest path; and the makespan of one worker's
 * tiles. What workers take from each other in caches and memory is not in it. */
#include "scheduler/simulate.h"
#include "tests/bench/policy_graphs.h"
#include "tests/scheduler/graph_ranks.h"

#include <stdio.h>
#include <stdlib.h>

static const unsigned workers[] = {1, 2, 3, 4, 6, 8, 12, 16, 24, 32, 64};
enum { N_WORKERS = sizeof workers / sizeof *workers };

static uint64_t work_of(const bpt_graph *g) {
    uint64_t ns = 0;
    for (uint32_t i = 0; i < bpt_graph_n_tasks(g); i++) ns += bpt_graph_cost(g, i);
    return ns;
}

static bpt_status simulate(bpt_graph *g, unsigned n_workers, double *ms) {
    const bpt_machine m = {.n_workers = n_workers, .n_kinds = 1};
    bpt_timetable t;
    BPT_TRY(bpt_simulate(g, &m, bpt_policy_at(0), &t));
    *ms = 1e-6 * (double)t.makespan_ns;
    bpt_timetable_free(&t);
    return BPT_OK;
}

/* @param one the step with the tiles of one worker; @param alone what that takes */
static bpt_status print_row(const step_graph *one, double alone, const step_graph *s,
                            unsigned n_workers) {
    double ms, unsplit;
    BPT_TRY(simulate(s->graph, n_workers, &ms));
    BPT_TRY(simulate(one->graph, n_workers, &unsplit));
    printf("| %u | %.2f | %.2f | %.2f | %.2f | %.2f |\n", n_workers, ms, alone / ms,
           (double)work_of(s->graph) / (double)work_of(one->graph),
           1e-6 * (double)graph_critical_path(s->graph), unsplit);
    fflush(stdout);
    return BPT_OK;
}

static bpt_status run(const char *model, int64_t batch, bpt_pool *pool) {
    step_graph one;
    double alone = 0.0;
    bpt_status status = step_graph_open(model, batch, 1, pool, &one);
    if (status == BPT_OK) status = simulate(one.graph, 1, &alone);
    for (int i = 0; i < N_WORKERS && status == BPT_OK; i++) {
        step_graph s;
        status = step_graph_open(model, batch, workers[i], pool, &s);
        if (status == BPT_OK) status = print_row(&one, alone, &s, workers[i]);
        step_graph_close(&s);
    }
    step_graph_close(&one);
    return status;
}

int main(int argc, char **argv) {
    const bpt_pool_options options = BPT_POOL_OPTIONS_INIT;
    const int64_t batch = argc == 3 ? strtoll(argv[2], NULL, 10) : 0;
    bpt_pool *pool = NULL;
    if (batch < 1) {
        fprintf(stderr, "usage: bench_workers MODEL BATCH\n");
        return 2;
    }
    printf(
        "| workers | ms | times as fast as 1 | work | path, ms | tiles of 1 worker, ms |\n"
        "|---|---|---|---|---|---|\n");
    bpt_status status = bpt_pool_create(&options, &pool);
    if (status == BPT_OK) status = run(argv[1], batch, pool);
    bpt_pool_free(pool);
    if (status != BPT_OK) fprintf(stderr, "bench_workers: %s\n", bpt_error_last()->text);
    return bpt_status_exit(status);
}
