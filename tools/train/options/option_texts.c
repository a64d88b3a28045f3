#include "tools/train/options/option_texts.h"

#include "scheduler/policy.h"
#include "storage/augmentations/augment.h"

#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>

/* Takes one number, digits alone and at least 1, off the text. @return whether there was one */
static bool parse_step(const char **text, uint64_t *step) {
    char *end;
    if (**text < '0' || **text > '9') return false;
    errno = 0;
    *step = strtoull(*text, &end, 10);
    *text = end;
    return errno == 0 && *step >= 1;
}

bpt_status bpt_trace_steps_parse(const char *text, uint64_t *first, uint64_t *last) {
    const char *at = text;
    if (parse_step(&at, first) && *at++ == '-' && parse_step(&at, last) && !*at && *first <= *last)
        return BPT_OK;
    const bpt_status status =
        bpt_fail(BPT_EUSAGE, "--trace-steps: \"%s\" is no range of steps", text);
    bpt_hint("first and last step, from 1, e.g. --trace-steps 11-20");
    return status;
}

bpt_status bpt_trace_steps_check(const char *text) {
    uint64_t first, last;
    return bpt_trace_steps_parse(text, &first, &last);
}

bpt_status bpt_augment_text_check(const char *text) {
    bpt_augment augment;
    return bpt_augment_parse(text, &augment);
}

bpt_status bpt_policy_text_check(const char *text) {
    const bpt_policy *policy;
    return bpt_policy_find(text, &policy);
}
