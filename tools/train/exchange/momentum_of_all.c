#include "tools/train/exchange/momentum_of_all.h"

/* Running statistics have no momentum: what is set for them is never read. */
bpt_status bpt_momentum_of_all_take(bpt_momentum_of_all *m, bpt_answer_point here,
                                    bpt_network *network, const float *before, const float *now,
                                    float *scratch, size_t n) {
    const bpt_movement moved = {.steps = here.steps - m->last.steps,
                                .samples = here.progress - m->last.progress,
                                .rate = (m->last.rate + here.rate) / 2,
                                .equal_ranks = here.equal_ranks};
    const double scale = bpt_shared_momentum_scale(&m->rule, &moved);
    m->last = here;
    if (scale == 0) return BPT_OK;
    bpt_shared_momentum_set(scratch, before, now, scale, n);
    return bpt_network_set(network, BPT_VECTOR_STATE_0, scratch);
}
