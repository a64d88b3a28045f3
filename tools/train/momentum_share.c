#include "tools/train/momentum_share.h"

/* Running statistics have no momentum: what is set for them is never read. */
bpt_status bpt_momentum_share_take(bpt_momentum_share *s, bpt_share_point here,
                                   bpt_network *network, const float *before, const float *now,
                                   float *scratch, size_t n) {
    const bpt_movement moved = {.steps = here.steps - s->last.steps,
                                .samples = here.progress - s->last.progress,
                                .rate = (s->last.rate + here.rate) / 2};
    const double scale = bpt_shared_momentum_scale(&s->rule, &moved);
    s->last = here;
    if (scale == 0) return BPT_OK;
    bpt_shared_momentum_set(scratch, before, now, scale, n);
    return bpt_network_set(network, BPT_VECTOR_STATE_0, scratch);
}
