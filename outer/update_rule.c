#include "outer/update_rule.h"

#include "base/text.h"

#include <string.h>

static const bpt_update_rule *const rules[] = {&bpt_rule_agwu,      &bpt_rule_agwu_lag,
                                               &bpt_rule_agwu_none, &bpt_rule_sgwu,
                                               &bpt_rule_easgd,     &bpt_rule_allreduce};

const bpt_update_rule *bpt_update_rule_at(size_t i) {
    return i < sizeof rules / sizeof rules[0] ? rules[i] : NULL;
}

double bpt_quality_share(const bpt_update_inputs *in, uint32_t worker) {
    double sum = 0;
    uint32_t n = 0;
    for (uint32_t j = 0; j < in->n_workers; j++) {
        if (!(in->quality[j] > 0)) continue;
        sum += in->quality[j];
        n++;
    }
    return n > 0 ? in->quality[worker] * n / sum : 0;
}

bpt_status bpt_update_rule_find(const char *name, const bpt_update_rule **rule) {
    for (size_t i = 0; bpt_update_rule_at(i); i++) {
        if (strcmp(rules[i]->name, name) != 0) continue;
        *rule = rules[i];
        return BPT_OK;
    }
    (void)bpt_fail(BPT_EUSAGE, "there is no update rule \"%s\"", name);
    char list[128] = "";
    for (size_t i = 0; bpt_update_rule_at(i); i++) bpt_list_add(list, sizeof list, rules[i]->name);
    bpt_hint("the rules are %s", list);
    return BPT_EUSAGE;
}
