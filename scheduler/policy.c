#include "scheduler/policy.h"

#include "base/text.h"

#include <string.h>

static const bpt_policy *const policies[] = {
    &bpt_policy_critical_path,
    &bpt_policy_level,
    &bpt_policy_eft,
    &bpt_policy_fifo,
};

const bpt_policy *bpt_policy_at(size_t i) {
    return i < sizeof policies / sizeof policies[0] ? policies[i] : NULL;
}

bpt_status bpt_policy_find(const char *name, const bpt_policy **policy) {
    for (size_t i = 0; bpt_policy_at(i); i++) {
        if (strcmp(policies[i]->name, name) != 0) continue;
        *policy = policies[i];
        return BPT_OK;
    }
    (void)bpt_fail(BPT_EUSAGE, "there is no scheduling policy \"%s\"", name);
    char list[128] = "";
    for (size_t i = 0; bpt_policy_at(i); i++) bpt_list_add(list, sizeof list, policies[i]->name);
    bpt_hint("the policies are %s", list);
    return BPT_EUSAGE;
}
