/* Which options of bpt-train are missing, and which cannot go together. Those that would do nothing
 * beside others are in option_uses.c. */
#include "scheduler/policy.h"
#include "tools/precision.h"
#include "tools/program.h"
#include "tools/train/learning_options.h"
#include "tools/train/option_uses.h"
#include "tools/train/pace.h"
#include "tools/train/train_options.h"

#include <errno.h>
#include <stdlib.h>

static bpt_status missing(const char *name, const char *hint) {
    const bpt_status status = bpt_fail(BPT_EUSAGE, "--%s is missing", name);
    bpt_hint("%s; `bpt-train --help` lists all options", hint);
    return status;
}

/* Whether the work needs no dataset. */
static bool is_made_up(const bpt_train_options *o) {
    return o->bench || o->dry_run;
}

static bpt_status check_required(const bpt_train_options *o) {
    if (o->check) return BPT_OK; /* what is there is looked at */
    if (!bpt_program_has(o->model)) return missing("model", "e.g. --model lenet");
    if (is_made_up(o)) return BPT_OK;
    if (!bpt_program_has(o->data)) return missing("data", "name a dataset made by bpt-ingest");
    if (o->init_weights && !bpt_program_has(o->init_weights))
        return missing("init-weights", "name a file of weights, or leave it out");
    if (!bpt_program_has(o->output)) return missing("output", "name a new folder, e.g. runs/first");
    return BPT_OK;
}

/* Takes one number, digits alone and at least 1, off the text. @return whether there was one */
static bool parse_step(const char **text, uint64_t *step) {
    char *end;
    if (**text < '0' || **text > '9') return false;
    errno = 0;
    *step = strtoull(*text, &end, 10);
    *text = end;
    return errno == 0 && *step >= 1;
}

bpt_status bpt_train_trace_steps(const bpt_train_options *o, uint64_t *first, uint64_t *last) {
    const char *text = o->trace_steps;
    if (parse_step(&text, first) && *text++ == '-' && parse_step(&text, last) && !*text &&
        *first <= *last)
        return BPT_OK;
    const bpt_status status =
        bpt_fail(BPT_EUSAGE, "--trace-steps: \"%s\" is no range of steps", o->trace_steps);
    bpt_hint("first and last step, from 1, e.g. --trace-steps 11-20");
    return status;
}

bpt_augment bpt_train_augment(const bpt_train_options *o) {
    bpt_augment augment = {.n = 0};
    bpt_augment_parse(o->augment, &augment);
    return augment;
}

static bpt_status check_auto(const bpt_train_options *o) {
    if (o->update != BPT_UPDATE_AUTO || o->calibrate > 0) return BPT_OK;
    const bpt_status status =
        bpt_fail(BPT_EUSAGE, "--update auto goes by measurements, and --calibrate 0 makes none");
    bpt_hint("leave out one of them");
    return status;
}

/* A file of bpt-tune is for one number of samples a step of a rank. */
static bpt_status check_tuned(const bpt_train_options *o) {
    const bool cut = o->update == BPT_UPDATE_ALLREDUCE && o->partition == BPT_PARTITION_IDPA;
    if (!o->tuned || (o->update != BPT_UPDATE_AUTO && !cut)) return BPT_OK;
    const bpt_status status =
        bpt_fail(BPT_EUSAGE,
                 "--tuned is for one number of samples a step, and under %s it is not known before",
                 cut ? "--update allreduce --partition idpa" : "--update auto");
    bpt_hint("leave out --tuned, or choose %s",
             cut ? "--partition even" : "--update agwu or allreduce");
    return status;
}

static bpt_status check_partition(const bpt_train_options *o) {
    if (o->update != BPT_UPDATE_LOCAL || o->partition != BPT_PARTITION_IDPA) return BPT_OK;
    const bpt_status status = bpt_fail(
        BPT_EUSAGE,
        "--update local trains on one rank with all the data and takes no --partition idpa");
    bpt_hint("use --update agwu for shares by measured speed");
    return status;
}

bpt_status bpt_train_options_check(const bpt_train_options *o, const bpt_option_set *set) {
    const bpt_policy *policy;
    uint64_t first, last;
    bpt_augment augment;
    BPT_TRY(bpt_policy_find(o->policy, &policy));
    BPT_TRY(bpt_augment_parse(o->augment, &augment));
    BPT_TRY(bpt_pace_check(o->sync_every));
    BPT_TRY(bpt_option_uses_check(o, set));
    BPT_TRY(bpt_train_trace_steps(o, &first, &last));
    BPT_TRY(bpt_precision_check((bpt_precision)o->precision));
    if (o->replay) return BPT_OK;
    BPT_TRY(check_required(o));
    BPT_TRY(bpt_learning_options_check(o, set));
    if (o->bench) return BPT_OK;
    BPT_TRY(check_auto(o));
    BPT_TRY(check_tuned(o));
    return check_partition(o);
}
