/** @file tools/plan/plan.h
 * What to do with a cluster: the ways of learning together side by side, which one to take, what
 * each rank brings, and what fewer ranks would come to.
 *
 * Threads: one. */
#ifndef BPT_TOOLS_PLAN_H
#define BPT_TOOLS_PLAN_H

#include "tools/plan/recipe.h"

enum { BPT_PLAN_WAYS = 5, BPT_PLAN_SIZES = 16 };

/** A way, and what would come of it. */
typedef struct bpt_plan_row {
    bpt_way way;
    uint32_t batch; /* samples of a step: of a rank, under allreduce of all */
    bpt_forecast forecast;
    double most_memory;   /* of any rank, bytes; 0 but for the whole cluster */
    const bpt_node *full; /* that has less memory than a rank takes; NULL: none */
} bpt_plan_row;

/** The first ranks of a cluster. */
typedef struct bpt_plan_size {
    uint32_t n_ranks;
    double alone;                     /* images a second, all together */
    bpt_plan_row rows[BPT_PLAN_WAYS]; /* shape [n_rows], of the ways that suit so many */
    size_t n_rows;
} bpt_plan_size;

typedef struct bpt_plan {
    uint32_t n_ranks;       /* of the whole cluster, or as many as were asked for */
    const bpt_node **nodes; /* of each, shape [n_ranks] */
    double *alone;          /* images a second of each, shape [n_ranks] */
    double *gain;           /* part of the chosen way's images a second that would be lost
                             * without it, shape [n_ranks]; < 0: won. 0 where there is one */
    bpt_plan_size sizes[BPT_PLAN_SIZES]; /* 1, 2, 4, ... and the whole last; shape [n_sizes] */
    size_t n_sizes;
    const bpt_plan_row *chosen;  /* of the last of them; NULL: no way fits the memory */
    const bpt_plan_row *fastest; /* likewise */
    /* Of fewer ranks, where these do clearly more than all of them in the way that is chosen, or
     * where all of them fit no memory and these do; NULL: they do not. */
    const bpt_plan_size *fewer;
    const bpt_plan_row *fewer_way; /* how; NULL likewise */
} bpt_plan;

/** Makes a plan.
 * @param ranks of the cluster that take part, the first of them; 0: all
 * @param[out] plan caller owns, bpt_plan_free(), also on error; borrows nodes
 * @return BPT_OK, BPT_EUSAGE (a batch that no way suits; with hint), as bpt_recipe_work() and
 *         bpt_recipe_memory() */
bpt_status bpt_plan_make(const bpt_recipe *recipe, const bpt_cluster *cluster, uint32_t ranks,
                         bpt_plan *plan);
void bpt_plan_free(bpt_plan *plan);

/** @return what was planned for all the ranks */
const bpt_plan_size *bpt_plan_whole(const bpt_plan *plan);

/** @return the row of a way, NULL: it does not suit so many ranks */
const bpt_plan_row *bpt_plan_find(const bpt_plan_size *size, bpt_way way);

/** All ways, in the order of rows. @return shape [BPT_PLAN_WAYS] */
const bpt_way *bpt_plan_ways(void);

/** @return "agwu", "allreduce, even": of ways that come with one partition alone just the update */
const char *bpt_way_name(bpt_way way);

#endif
