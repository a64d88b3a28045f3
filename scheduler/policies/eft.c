#include "scheduler/load.h"

const bpt_policy bpt_policy_eft = {
    .name = "eft",
    .keys = bpt_machine_keys,
    .place = bpt__earliest_finish,
    .stealing = BPT_STEAL_ALIKE,
};
