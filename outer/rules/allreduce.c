#include "outer/rules/update_rule.h"

const bpt_update_rule bpt_rule_allreduce = {
    .name = "allreduce",
    .synchronous = true,
    .payload = BPT_PAYLOAD_NONE,
};
