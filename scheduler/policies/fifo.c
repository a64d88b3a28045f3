#include "scheduler/policy.h"

static unsigned place(const bpt_policy_view *v, uint32_t id, unsigned maker) {
    (void)v, (void)id, (void)maker;
    return 0;
}

const bpt_policy bpt_policy_fifo = {
    .name = "fifo",
    .place = place,
    .stealing = BPT_STEAL_ANY,
};
