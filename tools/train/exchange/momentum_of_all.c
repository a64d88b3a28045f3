#include "tools/train/exchange/momentum_of_all.h"

#include <math.h>

/* Others' pushes fall unevenly between the answers to a rank: a slow one's are few, and large. So a
 * rank is alone when nothing has come for several times as many answers as is usual. */
static void note_others(bpt_momentum_of_all *m, const bpt_movement *moved, double part) {
    const double mine = (double)moved->steps * (double)m->rule.step_samples / m->rule.ranks;
    const double expected = mine * (1 - part) / part;
    const double limit = 4 * m->usual_gap + 4;
    if (moved->steps == 0 || moved->samples == 0) return;
    m->alone = m->gap >= limit;
    if ((double)moved->samples - mine < expected / 2) {
        m->gap++;
        return;
    }
    m->usual_gap += (fmin(m->gap, 2 * limit) - m->usual_gap) / 4;
    m->gap = 0;
    m->alone = false;
}

/* Running statistics have no momentum: what is set for them is never read. */
bpt_status bpt_momentum_of_all_take(bpt_momentum_of_all *m, bpt_answer_point here,
                                    bpt_network *network, const float *before, const float *now,
                                    float *scratch, size_t n) {
    bpt_movement moved = {.steps = here.steps - m->last.steps,
                          .samples = here.progress - m->last.progress,
                          .rate = (m->last.rate + here.rate) / 2,
                          .equal_ranks = here.equal_ranks};
    if (m->rule.ranks > 0 && !m->synchronous) note_others(m, &moved, here.part);
    if (m->alone) moved.equal_ranks = 1;
    const double scale = bpt_shared_momentum_scale(&m->rule, &moved);
    m->last = here;
    if (scale == 0) return BPT_OK;
    bpt_shared_momentum_set(scratch, before, now, scale, n);
    return bpt_network_set_learned(network, BPT_VECTOR_STATE_0, scratch);
}
