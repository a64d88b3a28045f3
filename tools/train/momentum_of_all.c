#include "tools/train/momentum_of_all.h"

void bpt_momentum_of_all_push(bpt_momentum_of_all *m, double rates, uint64_t steps) {
    if (steps > 0) m->rate = rates / (double)steps;
}

/* Running statistics have no momentum: what is set for them is never read. */
bpt_status bpt_momentum_of_all_take(bpt_momentum_of_all *m, uint64_t steps, uint64_t progress,
                                    bpt_network *network, const float *before, const float *now,
                                    float *scratch, size_t n) {
    const bpt_movement moved = {
        .steps = steps - m->steps, .samples = progress - m->progress, .rate = m->rate};
    const double scale = bpt_shared_momentum_scale(&m->rule, &moved);
    m->steps = steps;
    m->progress = progress;
    if (scale == 0) return BPT_OK;
    bpt_shared_momentum_set(scratch, before, now, scale, n);
    return bpt_network_set(network, BPT_VECTOR_STATE_0, scratch);
}
