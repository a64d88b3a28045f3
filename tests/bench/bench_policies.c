/* What each scheduling policy makes of the same graphs, in the simulator: random graphs, and
 * training steps of networks, cut for as many workers as play them, with the times that their tasks
 * take on this machine's core.
 *
 *   bench_policies [random]      random: the random graphs alone, the same on every machine
 *
 * Prints a Markdown table: mean makespan in milliseconds for 4, 16 and 64 like workers, and for 16
 * cores with a device 50 times as fast and 20 microseconds away. HEFT, which makes its timetable
 * beforehand, stands beside them. Exit status 1 if critical-path or eft is more than 1 % behind
 * level or fifo in any row.
 */
#include "scheduler/heft.h"
#include "scheduler/simulate.h"
#include "tests/bench/policy_graphs.h"

#include <stdio.h>
#include <string.h>

enum { N_POLICIES = 4, N_COLUMNS = N_POLICIES + 1, N_MACHINES = 4, N_SEEDS = 40 };

static uint8_t kinds[17];
static const double speeds[] = {1, 50};
static bpt_machine machines[N_MACHINES] = {
    {.n_workers = 4, .n_kinds = 1},
    {.n_workers = 16, .n_kinds = 1},
    {.n_workers = 64, .n_kinds = 1},
    {.n_workers = 17, .n_kinds = 2, .kind = kinds, .speed = speeds, .transfer_ns = 20000},
};
static const char *const machine_names[N_MACHINES] = {"4", "16", "64", "16 + device"};

typedef struct row {
    double us[N_COLUMNS]; /* mean */
} row;

static bpt_status measure(bpt_graph *g, const bpt_machine *m, row *sum) {
    bpt_timetable t;
    for (size_t p = 0; p < N_POLICIES; p++) {
        BPT_TRY(bpt_simulate(g, m, bpt_policy_at(p), &t));
        sum->us[p] += (double)t.makespan_ns * 1e-3;
        bpt_timetable_free(&t);
    }
    BPT_TRY(bpt_heft(g, m, &t));
    sum->us[N_POLICIES] += (double)t.makespan_ns * 1e-3;
    bpt_timetable_free(&t);
    return BPT_OK;
}

/* @return whether no policy that knows costs is behind one that does not */
static bool print(const char *graph, const char *machine, const row *r) {
    const double level = r->us[1], fifo = r->us[3], blind = level < fifo ? level : fifo;
    const bool keeps = r->us[0] <= 1.01 * blind && r->us[2] <= 1.01 * blind;
    printf("| %s | %s |", graph, machine);
    for (size_t c = 0; c < N_COLUMNS; c++) printf(" %.2f |", 1e-3 * r->us[c]);
    printf(" %+.1f %% | %+.1f %% |%s\n", 100 * (r->us[0] / blind - 1), 100 * (r->us[2] / blind - 1),
           keeps ? "" : " behind");
    return keeps;
}

static bpt_status compare_random(random_kind kind, const char *name, bool *keep) {
    row sums[N_MACHINES] = {0};
    for (uint64_t seed = 0; seed < N_SEEDS; seed++) {
        bpt_graph *g;
        BPT_TRY(random_graph(kind, seed, &g));
        bpt_status status = BPT_OK;
        for (size_t m = 0; m < N_MACHINES && status == BPT_OK; m++)
            status = measure(g, &machines[m], &sums[m]);
        bpt_graph_free(g);
        BPT_TRY(status);
    }
    for (size_t m = 0; m < N_MACHINES; m++) {
        for (size_t c = 0; c < N_COLUMNS; c++) sums[m].us[c] /= N_SEEDS;
        *keep &= print(name, machine_names[m], &sums[m]);
    }
    return BPT_OK;
}

static bpt_status compare_step_on(const char *model, int64_t batch, size_t m, bpt_pool *pool,
                                  bool *keep) {
    char name[64];
    step_graph s;
    row r = {0};
    bpt_status status = step_graph_open(model, batch, machines[m].n_workers, pool, &s);
    if (status == BPT_OK) status = measure(s.graph, &machines[m], &r);
    snprintf(name, sizeof name, "%s, batch %d", model, (int)batch);
    if (status == BPT_OK) *keep &= print(name, machine_names[m], &r);
    step_graph_close(&s);
    return status;
}

static bpt_status compare_step(const char *model, int64_t batch, bool *keep) {
    bpt_pool *pool;
    const bpt_pool_options options = BPT_POOL_OPTIONS_INIT;
    bpt_status status = bpt_pool_create(&options, &pool);
    BPT_TRY(status);
    for (size_t m = 0; m < N_MACHINES && status == BPT_OK; m++)
        status = compare_step_on(model, batch, m, pool, keep);
    bpt_pool_free(pool);
    return status;
}

static bpt_status compare_all(bool steps, bool *keep) {
    BPT_TRY(compare_random(RANDOM_LAYERED, "random, layered", keep));
    BPT_TRY(compare_random(RANDOM_BRANCHES, "random, branches", keep));
    BPT_TRY(compare_random(RANDOM_SPARSE, "random, sparse", keep));
    if (!steps) return BPT_OK;
    BPT_TRY(compare_step("lenet", 256, keep));
    BPT_TRY(compare_step("vgg-small", 128, keep));
    BPT_TRY(compare_step("branches", 128, keep));
    BPT_TRY(compare_step("googlenet", 8, keep));
    return compare_step("resnet50", 8, keep);
}

int main(int argc, char **argv) {
    bool keep = true;
    const bool random_only = argc == 2 && strcmp(argv[1], "random") == 0;
    if (argc > 1 && !random_only) {
        fprintf(stderr, "usage: bench_policies [random]\n");
        return 2;
    }
    kinds[16] = 1;
    printf("| graph | workers |");
    for (size_t p = 0; p < N_POLICIES; p++) printf(" %s |", bpt_policy_at(p)->name);
    printf(" HEFT | critical-path | eft |\n|---|---|---|---|---|---|---|---|---|\n");
    const bpt_status status = compare_all(!random_only, &keep);
    if (status != BPT_OK) {
        fprintf(stderr, "bench_policies: %s\n", bpt_error_last()->text);
        return bpt_status_exit(status);
    }
    return keep ? 0 : 1;
}
