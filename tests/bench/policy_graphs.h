/** @file tests/bench/policy_graphs.h
 * Graphs that scheduling policies are compared on: random ones with costs, and training steps of
 * networks with the times that they took here.
 *
 * Threads: one. */
#ifndef BPT_TESTS_POLICY_GRAPHS_H
#define BPT_TESTS_POLICY_GRAPHS_H

#include "inner/network/network.h"
#include "scheduler/graph.h"

/** Random graphs, with costs of 10 microseconds to 1 millisecond, log-uniform. */
typedef enum random_kind {
    RANDOM_LAYERED,  /* layers of 1 to 100 tasks, each after 1 to 3 of the layer before */
    RANDOM_BRANCHES, /* forks of 2 to 40 chains of 1 to 8 tasks, joined, several in a row */
    RANDOM_SPARSE,   /* 600 tasks, each after 0 to 3 of the 40 before it */
} random_kind;

/** @param[out] g caller owns, bpt_graph_free()
 * @return BPT_OK, BPT_ENOMEM */
bpt_status random_graph(random_kind kind, uint64_t seed, bpt_graph **g);

/** A network whose training step has run a few times. */
typedef struct step_graph {
    bpt_model *model;
    int64_t batch;
    bpt_cost_table costs; /* none; says for how many workers tiles are */
    bpt_network *network;
    float *pixels, *weights;
    int32_t *labels;
    bpt_graph *graph; /* of the training step, in the network; costs: least time of several steps */
} step_graph;

/** @param name  a model's name, or "branches": four branches of unlike depth, joined, twice
 * @param batch samples of a step
 * @param n_workers that it is cut for
 * @param pool  runs it, borrowed while it is open; with one worker no task is slowed by another
 * @param[out] s caller owns, step_graph_close(), also after an error
 * @return BPT_OK or any error of inner/ */
bpt_status step_graph_open(const char *name, int64_t batch, unsigned n_workers, bpt_pool *pool,
                           step_graph *s);

/** Runs the step once more. @return BPT_OK or any error of inner/ */
bpt_status step_graph_run(step_graph *s);
void step_graph_close(step_graph *s);

#endif
