#include "outer/rules/staleness.h"

uint64_t bpt_clocks_lead(const bpt_clocks *c, uint32_t worker) {
    uint64_t slowest = UINT64_MAX;
    for (uint32_t j = 0; j < c->n_workers; j++)
        if (c->active[j] && c->clock[j] < slowest) slowest = c->clock[j];
    return c->clock[worker] > slowest ? c->clock[worker] - slowest : 0;
}

bool bpt_clocks_admit(const bpt_clocks *c, uint32_t worker) {
    return c->bound == BPT_STALENESS_NONE || bpt_clocks_lead(c, worker) <= c->bound;
}

void bpt_clocks_level(bpt_clocks *c) {
    for (uint32_t j = 0; j < c->n_workers; j++) {
        c->clock[j] = 0;
        c->active[j] = true;
    }
}
