/* Training steps under each scheduling policy, on workers bound to cores of this machine.
 *
 *   bench_steps [WORKERS [ROUNDS [NETWORK]]]      unless given: 2 workers, 24 rounds, all networks
 *
 * In each round every policy runs two steps of one network, of which the second counts; another one
 * is first each time. Networks that are alike differ by some percent, by where their memory lies,
 * and not alike under every policy: every round has a new one. Prints a Markdown table
 * of medians over the rounds: milliseconds of a step under each policy; how far critical-path and
 * eft are in the same round from level or fifo, the one that is better by its median; and how far a
 * step under critical-path is from what none can go below: its longest path, or its work shared
 * evenly among the workers, by the times that its tasks took in that step (with least and largest).
 * Wants a machine with nothing else to do.
 */
#include "base/memory.h"
#include "inner/network/network_private.h"
#include "tests/bench/figures.h"
#include "tests/bench/policy_graphs.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { N_POLICIES = 4, MAX_ROUNDS = 1000 };
enum { CRITICAL_PATH, LEVEL, EFT, FIFO }; /* as bpt_policy_at() counts them */

typedef struct bench {
    unsigned n_workers;
    size_t n_rounds;
    bpt_pool *pools[N_POLICIES]; /* of each policy */
} bench;

typedef struct times {
    double ms[N_POLICIES][MAX_ROUNDS], bound[MAX_ROUNDS];
} times;

static figures of_times(const double *ms, size_t n) {
    double sorted[MAX_ROUNDS];
    memcpy(sorted, ms, n * sizeof *sorted);
    return figures_of(sorted, n);
}

static bpt_status open_pools(bench *b) {
    for (size_t p = 0; p < N_POLICIES; p++) {
        bpt_pool_options options = BPT_POOL_OPTIONS_INIT;
        options.n_workers = b->n_workers;
        options.bind = true;
        options.policy = bpt_policy_at(p);
        BPT_TRY(bpt_pool_create(&options, &b->pools[p]));
    }
    return BPT_OK;
}

/* The latest first: a pool that ends leaves this thread bound as it was when the pool began. */
static void close_pools(bench *b) {
    for (size_t p = N_POLICIES; p-- > 0;) bpt_pool_free(b->pools[p]);
}

/* How many times as long as by what none can go below. */
static double over_bound(const bench *b, const bpt_network *network, bpt_run_stats run) {
    const double path = (double)bpt_network_critical_path(network);
    const double share = (double)run.busy_ns / b->n_workers;
    return (double)run.wall_ns / (path > share ? path : share);
}

static bpt_status run_round(const bench *b, step_graph *s, size_t round, times *t) {
    for (size_t i = 0; i < N_POLICIES; i++) {
        const size_t p = (round + i) % N_POLICIES;
        s->network->pool = b->pools[p];
        BPT_TRY(step_graph_run(s)); /* makes the keys of this policy */
        BPT_TRY(step_graph_run(s));
        const bpt_run_stats run = bpt_network_last_run(s->network);
        t->ms[p][round] = (double)run.wall_ns * 1e-6;
        if (p == CRITICAL_PATH) t->bound[round] = over_bound(b, s->network, run);
    }
    return BPT_OK;
}

/* In percent. */
static double behind(const double *ms, const double *other, size_t n_rounds) {
    double ratios[MAX_ROUNDS];
    for (size_t i = 0; i < n_rounds; i++) ratios[i] = ms[i] / other[i];
    return 100 * (figures_of(ratios, n_rounds).median - 1);
}

static void print(const char *model, int64_t batch, size_t n, const times *t) {
    double medians[N_POLICIES];
    printf("| %s, batch %lld |", model, (long long)batch);
    for (size_t p = 0; p < N_POLICIES; p++) {
        medians[p] = of_times(t->ms[p], n).median;
        printf(" %.2f |", medians[p]);
    }
    const double *blind = t->ms[medians[LEVEL] < medians[FIFO] ? LEVEL : FIFO];
    const figures bound = of_times(t->bound, n);
    printf(" %+.1f %% | %+.1f %% | %.3f (%.3f to %.3f) |\n", behind(t->ms[CRITICAL_PATH], blind, n),
           behind(t->ms[EFT], blind, n), bound.median, bound.least, bound.largest);
    fflush(stdout);
}

static bpt_status compare(const bench *b, const char *model, int64_t batch) {
    times *t;
    BPT_TRY(BPT_NEW("times", 1, &t));
    bpt_status status = BPT_OK;
    for (size_t i = 0; i < b->n_rounds && status == BPT_OK; i++) {
        step_graph s;
        status = step_graph_open(model, batch, b->n_workers, b->pools[CRITICAL_PATH], &s);
        if (status == BPT_OK) status = run_round(b, &s, i, t);
        step_graph_close(&s);
    }
    if (status == BPT_OK) print(model, batch, b->n_rounds, t);
    bpt_free(t);
    return status;
}

static const struct {
    const char *model;
    int64_t batch;
} STEPS[] = {
    {"lenet", 256}, {"vgg-small", 128}, {"branches", 128}, {"googlenet", 8}, {"resnet50", 8}};

enum { N_STEPS = sizeof STEPS / sizeof *STEPS };

/* @param only the network to run; NULL: all */
static bpt_status compare_steps(const bench *b, const char *only) {
    printf("| step |");
    for (size_t p = 0; p < N_POLICIES; p++) printf(" %s |", bpt_policy_at(p)->name);
    printf(" critical-path | eft | over its bound |\n|---|---|---|---|---|---|---|---|\n");
    for (size_t i = 0; i < N_STEPS; i++) {
        if (only && strcmp(only, STEPS[i].model) != 0) continue;
        BPT_TRY(compare(b, STEPS[i].model, STEPS[i].batch));
    }
    return BPT_OK;
}

static bool is_step(const char *model) {
    for (size_t i = 0; i < N_STEPS; i++)
        if (strcmp(model, STEPS[i].model) == 0) return true;
    return false;
}

int main(int argc, char **argv) {
    const long workers = argc > 1 ? atol(argv[1]) : 2, rounds = argc > 2 ? atol(argv[2]) : 24;
    const char *const only = argc > 3 ? argv[3] : NULL;
    if (argc > 4 || workers < 1 || workers > BPT_MAX_WORKERS || rounds < 1 || rounds > MAX_ROUNDS ||
        (only && !is_step(only))) {
        fprintf(stderr, "usage: bench_steps [WORKERS [ROUNDS [NETWORK]]]\n");
        return 2;
    }
    bench b = {.n_workers = (unsigned)workers, .n_rounds = (size_t)rounds};
    bpt_status status = open_pools(&b);
    if (status == BPT_OK) status = compare_steps(&b, only);
    close_pools(&b);
    if (status != BPT_OK) fprintf(stderr, "bench_steps: %s\n", bpt_error_last()->text);
    return bpt_status_exit(status);
}
