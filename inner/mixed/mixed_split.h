/** @file inner/mixed/mixed_split.h
 * How a batch is cut between a device and the cores: by earliest finish time, the rule of the
 * policy eft (scheduler/), on tiles of samples that are all alike.
 *
 * Threads: any. */
#ifndef BPT_INNER_MIXED_MIXED_SPLIT_H
#define BPT_INNER_MIXED_MIXED_SPLIT_H

#include <stdint.h>

/** What samples take on one side; nanoseconds. */
typedef struct bpt__mixed_cost {
    double start_ns;  /* of any number above 0 */
    double sample_ns; /* of each */
} bpt__mixed_cost;

typedef struct bpt__mixed_costs {
    bpt__mixed_cost device, cores;
    double exchange_ns; /* of a step that both compute: gradients and weights on their way */
} bpt__mixed_costs;

/** @return samples of a tile: a batch is cut into no more than 64 */
int64_t bpt__mixed_tile(int64_t batch);

/** @return nanoseconds of a step whose cores take @p n_cores of @p batch samples */
double bpt__mixed_step_ns(const bpt__mixed_costs *costs, int64_t batch, int64_t n_cores);

/** @param least samples of a step that can be learnt from: bpt_model_least_batch(), 1 if none are
 *               learnt from
 * @return the number next to @p n_cores that leaves neither side fewer than these, but for none */
int64_t bpt__mixed_allowed(int64_t n_cores, int64_t batch, int64_t least);

/** @return samples that the cores are to take: 0, @p batch, or whole tiles, as far as @p least
 * allows (see above). Each tile goes to the side that would end it first; that is taken if it ends
 * before either side would by itself */
int64_t bpt__mixed_split(const bpt__mixed_costs *costs, int64_t batch, int64_t least);

/** @return the line through two measurements; where they do not rise, through the second and 0
 * @param n1,n2 samples, n1 < n2 or n1 0 */
bpt__mixed_cost bpt__mixed_cost_of(int64_t n1, double ns1, int64_t n2, double ns2);

#endif
