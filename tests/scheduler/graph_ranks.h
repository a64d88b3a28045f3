/** @file tests/scheduler/graph_ranks.h
 * Upward ranks of a graph by its own costs, on workers that are alike.
 *
 * Threads: any. */
#ifndef BPT_TESTS_GRAPH_RANKS_H
#define BPT_TESTS_GRAPH_RANKS_H

#include "scheduler/machine.h"

#include <stdlib.h>

/** @param[out] rank shape [n_tasks] */
static inline void graph_ranks(const bpt_graph *g, uint64_t *rank) {
    const bpt_machine alike = {.n_workers = 1, .n_kinds = 1};
    bpt_machine_ranks(&alike, g, rank);
}

/** @return the largest: no run can be shorter, with these costs */
static inline uint64_t graph_critical_path(const bpt_graph *g) {
    const size_t n = bpt_graph_n_tasks(g);
    uint64_t *const rank = malloc((n + 1) * sizeof *rank);
    uint64_t longest = 0;
    if (!rank) abort();
    graph_ranks(g, rank);
    for (size_t i = 0; i < n; i++)
        if (longest < rank[i]) longest = rank[i];
    free(rank);
    return longest;
}

#endif
