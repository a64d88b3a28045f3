#include "scheduler/load.h"

static bpt_patience keys(const bpt_graph *g, const bpt_machine *m, uint64_t *key) {
    return bpt_machine_keys(m, g, key);
}

const bpt_policy bpt_policy_critical_path = {
    .name = "critical-path",
    .keys = keys,
    .place = bpt__earliest_finish,
    .stays = true,
    .stealing = BPT_STEAL_ALIKE,
};
