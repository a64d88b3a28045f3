/* What cutting convolutions gains: a training step of a model, played in the simulator with the
 * times that its tasks take on one core of this machine (the shortest of some steps).
 *
 *   bench_cuts MODEL BATCH [bf16]
 *
 * Prints a Markdown table: for several numbers of workers the makespan in milliseconds with whole
 * convolutions, then with all of them cut in one way, then as a table of these costs chooses for
 * that number of workers, each as a part of the first. What workers take from each other in caches
 * and memory is not in it.
 */
#include "base/memory.h"
#include "inner/network/network_private.h"
#include "scheduler/simulate.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { N_CUTS = 6, N_STEPS = 15, N_WORKERS = 5 };

static const bpt_cut cuts[N_CUTS] = {{0, 1, 1}, {1, 2, 1}, {1, 4, 1},
                                     {1, 8, 1}, {1, 1, 2}, {1, 1, 4}};
static const char *const names[N_CUTS] = {"whole",      "2 channels", "4 channels",
                                          "8 channels", "2 rows",     "4 rows"};
static const unsigned workers[N_WORKERS] = {1, 2, 4, 8, 16};

typedef struct bench {
    bpt_model *model;
    int64_t batch;
    bpt_value_type type;
    bpt_pool *pool;
    float *pixels;   /* zeros */
    int32_t *labels; /* likewise */
    bpt_cost_table costs;
} bench;

static bpt_status open_bench(const char *model, bench *b) {
    bpt_pool_options options = BPT_POOL_OPTIONS_INIT;
    options.n_workers = 1;
    BPT_TRY(bpt_model_load(model, NULL, &b->model));
    BPT_TRY(bpt_pool_create(&options, &b->pool));
    const bpt_shape in = b->model->input;
    BPT_TRY(BPT_NEW("pixels", (size_t)(b->batch * in.c * in.h * in.w), &b->pixels));
    return BPT_NEW("labels", (size_t)b->batch, &b->labels);
}

static void close_bench(bench *b) {
    bpt_cost_table_clear(&b->costs);
    bpt_free(b->labels);
    bpt_free(b->pixels);
    bpt_pool_free(b->pool);
    bpt_model_free(b->model);
}

/* Keeps the least of what parts took so far. */
static bpt_status keep_costs(const bpt_network *net, bpt_cost_table *costs) {
    bpt_cost_table now = {.workers = 1};
    bpt_status status = bpt_network_note_costs(net, &now);
    if (status == BPT_OK) status = bpt_cost_table_merge(costs, &now);
    bpt_cost_table_clear(&now);
    return status;
}

/* Each task of the training graph gets the least that it took as its cost. */
static bpt_status measure(bench *b, bpt_network *net) {
    bpt_graph *g = net->graphs[BPT_GRAPH_TRAIN];
    const size_t n = bpt_graph_n_tasks(g);
    uint64_t *least;
    bpt_batch_result result;
    BPT_TRY(BPT_NEW("costs of tasks", n, &least));
    bpt_status status = BPT_OK;
    for (int step = 0; step < N_STEPS && status == BPT_OK; step++) {
        status = bpt_network_train(net, b->pixels, b->labels, 0.0f, 1.0f, &result);
        if (status == BPT_OK) status = keep_costs(net, &b->costs);
        for (size_t i = 0; i < n; i++) {
            const uint64_t ns = bpt_graph_measured(g, (uint32_t)i);
            if (step == 0 || ns < least[i]) least[i] = ns;
        }
    }
    for (size_t i = 0; i < n; i++) bpt_graph_set_cost(g, (uint32_t)i, least[i]);
    bpt_free(least);
    return status;
}

static bpt_status play(bpt_network *net, unsigned n_workers, double *ms) {
    const bpt_machine machine = {.n_workers = n_workers, .n_kinds = 1};
    bpt_timetable t;
    BPT_TRY(bpt_simulate(net->graphs[BPT_GRAPH_TRAIN], &machine, bpt_policy_at(0), &t));
    *ms = (double)t.makespan_ns * 1e-6;
    bpt_timetable_free(&t);
    return BPT_OK;
}

static bpt_status time_model(bench *b, unsigned n_workers, double *ms) {
    bpt_network *net;
    BPT_TRY(bpt_network_create(b->model, b->batch, b->type, (bpt_learning){.momentum = 0.9},
                               b->pool, &net));
    bpt_status status = measure(b, net);
    if (status == BPT_OK) status = play(net, n_workers, ms);
    bpt_network_free(net);
    return status;
}

/* With tiles for so many workers, as every column has them, and all convolutions cut alike. */
static bpt_status time_cuts(bench *b, unsigned n_workers, double *ms) {
    const bpt_cost_table tiles = {.workers = n_workers};
    bpt_status status = BPT_OK;
    bpt_model_use_costs(b->model, &tiles);
    for (int i = 0; i < N_CUTS && status == BPT_OK; i++) {
        bpt_model_set_cuts(b->model, &cuts[i]);
        status = time_model(b, n_workers, &ms[i]);
    }
    bpt_model_set_cuts(b->model, NULL);
    bpt_model_use_costs(b->model, NULL);
    return status;
}

static bpt_status run(bench *b, const char *model) {
    double ms[N_WORKERS][N_CUTS], chosen;
    BPT_TRY(open_bench(model, b));
    for (int w = 0; w < N_WORKERS; w++) BPT_TRY(time_cuts(b, workers[w], ms[w]));
    bpt_model_use_costs(b->model, &b->costs);
    printf("| workers | whole, ms |");
    for (int i = 1; i < N_CUTS; i++) printf(" %s |", names[i]);
    printf(" by costs |\n|---|---|---|---|---|---|---|---|\n");
    for (int w = 0; w < N_WORKERS; w++) {
        b->costs.workers = workers[w];
        BPT_TRY(time_model(b, workers[w], &chosen));
        printf("| %u | %.2f |", workers[w], ms[w][0]);
        for (int i = 1; i < N_CUTS; i++) printf(" %.2f |", ms[w][i] / ms[w][0]);
        printf(" %.2f |\n", chosen / ms[w][0]);
    }
    return BPT_OK;
}

int main(int argc, char **argv) {
    bench b = {.batch = argc > 2 ? atoll(argv[2]) : 0};
    if (argc < 3 || argc > 4 || b.batch < 1 || (argc == 4 && strcmp(argv[3], "bf16") != 0)) {
        fprintf(stderr, "usage: bench_cuts MODEL BATCH [bf16]\n");
        return 2;
    }
    b.type = argc == 4 ? BPT_BF16 : BPT_F32;
    const bpt_status status = run(&b, argv[1]);
    close_bench(&b);
    if (status == BPT_OK) return 0;
    fprintf(stderr, "bench_cuts: %s\n", bpt_error_last()->text);
    return bpt_status_exit(status);
}
