/** @file tools/plan/cluster.h
 * What is known of the machines of a cluster: how long a step of one model takes on each, and what
 * moves between them.
 *
 * Threads: a cluster that is read may be read by any number. */
#ifndef BPT_TOOLS_CLUSTER_H
#define BPT_TOOLS_CLUSTER_H

#include "base/status.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum {
    BPT_NODE_STEPS = 8,     /* measured steps of a node, at most */
    BPT_CLUSTER_MOST = 4096 /* ranks of a cluster, at most */
};

/** A training step of so many samples took so long. */
typedef struct bpt_step_time {
    double samples, seconds; /* both > 0 */
} bpt_step_time;

/** A machine, or several that are alike; each has one rank. What is not known is 0, and taken to
 * cost nothing. */
typedef struct bpt_node {
    const char *name; /* borrowed from whatever the cluster is made of */
    uint32_t count;   /* machines, at least 1 */
    uint32_t threads; /* that train, at least 1 */
    bool on_device;   /* it trains on a GPU alone: what threads compute beside it costs no step */
    bpt_step_time steps[BPT_NODE_STEPS]; /* ascending samples, none of less time than the one
                                          * before; shape [n_steps] */
    uint32_t n_steps;                    /* at least 1 */
    double memory_bytes;                 /* that it has for the rank */
    double link_bytes_per_s;             /* between it and the others, each way */
    double message_s_per_byte;           /* processor time of the MPI thread for a byte that comes
                                          * or goes */
    double copy_s;           /* time of taking all weights out of the network and putting others
                              * in */
    double load_s_per_image; /* processor time of reading an image and making it ready */
} bpt_node;

/** What the steps are of; texts are borrowed, and NULL where nobody has said. */
typedef struct bpt_cluster_model {
    const char *name;
    const char *identity; /* bpt_model_identify(), 16 hexadecimal digits */
    const char *precision;
    const char *optimizer;
} bpt_cluster_model;

typedef struct bpt_cluster {
    bpt_node *nodes; /* shape [n_nodes], at least one */
    size_t n_nodes;
    double
        latency_s; /* from a rank to another, of a message of few bytes, its MPI threads included */
    bpt_cluster_model model;
} bpt_cluster;

/** @return ranks: machines of all nodes */
uint32_t bpt_cluster_ranks(const bpt_cluster *cluster);

/** @param rank below bpt_cluster_ranks(): ranks go through the nodes in their order
 * @return its node; borrowed */
const bpt_node *bpt_cluster_node_of(const bpt_cluster *cluster, uint32_t rank);

/** @param samples > 0
 * @return seconds that a step of so many takes on the node: on the line between the two measured
 *         ones around it, beyond them on that of the nearest two; in proportion where one was
 *         measured, and never less than a step of the fewest samples in proportion */
double bpt_node_step_s(const bpt_node *node, double samples);

#endif
