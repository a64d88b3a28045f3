#include "inner/mixed/mixed_split.h"

#include "base/integers.h"

enum { MAX_TILES = 64 };

int64_t bpt__mixed_tile(int64_t batch) {
    return bpt_quotient_up(batch, MAX_TILES);
}

static double side_ns(const bpt__mixed_cost *c, int64_t n) {
    return n > 0 ? c->start_ns + (double)n * c->sample_ns : 0.0;
}

double bpt__mixed_step_ns(const bpt__mixed_costs *costs, int64_t batch, int64_t n_cores) {
    const double device = side_ns(&costs->device, batch - n_cores);
    const double cores = side_ns(&costs->cores, n_cores);
    const double longer = device > cores ? device : cores;
    return n_cores > 0 && n_cores < batch ? longer + costs->exchange_ns : longer;
}

int64_t bpt__mixed_allowed(int64_t n_cores, int64_t batch, int64_t least) {
    if (n_cores == 0 || n_cores == batch) return n_cores;
    if (batch < 2 * least) return 0;
    return bpt_smaller(bpt_larger(n_cores, least), batch - least);
}

int64_t bpt__mixed_split(const bpt__mixed_costs *costs, int64_t batch, int64_t least) {
    const int64_t tile = bpt__mixed_tile(batch);
    int64_t n_device = 0, n_cores = 0;
    while (n_device + n_cores < batch) {
        const int64_t n = bpt_smaller(tile, batch - n_device - n_cores);
        if (side_ns(&costs->device, n_device + n) <= side_ns(&costs->cores, n_cores + n))
            n_device += n;
        else
            n_cores += n;
    }
    n_cores = bpt__mixed_allowed(n_cores, batch, least);
    if (bpt__mixed_step_ns(costs, batch, 0) <= bpt__mixed_step_ns(costs, batch, n_cores))
        n_cores = 0;
    if (bpt__mixed_step_ns(costs, batch, batch) < bpt__mixed_step_ns(costs, batch, n_cores))
        n_cores = batch;
    return n_cores;
}

bpt__mixed_cost bpt__mixed_cost_of(int64_t n1, double ns1, int64_t n2, double ns2) {
    bpt__mixed_cost c = {.sample_ns = ns2 / (double)n2};
    if (n1 <= 0 || n1 >= n2 || ns1 >= ns2) return c;
    const double slope = (ns2 - ns1) / (double)(n2 - n1), start = ns2 - slope * (double)n2;
    if (start > 0.0) c = (bpt__mixed_cost){.start_ns = start, .sample_ns = slope};
    return c;
}
