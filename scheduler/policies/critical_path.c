#include "scheduler/load.h"

const bpt_policy bpt_policy_critical_path = {
    .name = "critical-path",
    .keys = bpt_machine_keys,
    .place = bpt__earliest_finish,
    .stays = true,
    .stealing = BPT_STEAL_ALIKE,
};
