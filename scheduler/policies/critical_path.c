#include "scheduler/policy.h"

static void keys(const bpt_graph *g, const bpt_machine *m, uint64_t *key) {
    bpt_machine_ranks(m, g, false, key);
}

const bpt_policy bpt_policy_critical_path = {
    .name = "critical-path",
    .summary = "longest path first, near its input, idle workers steal",
    .keys = keys,
    .stealing = BPT_STEAL_ANY,
};
