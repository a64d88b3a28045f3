/** @file tools/tune/tune_options.h
 * The options of bpt-tune.
 *
 * Threads: one. */
#ifndef BPT_TOOLS_TUNE_OPTIONS_H
#define BPT_TOOLS_TUNE_OPTIONS_H

#include "base/options.h"

typedef struct bpt_tune_options {
    const char *data, *train_split, *model, *out;
    bool force;
    int64_t input_size[2];
    int64_t classes, batch_size;
    int precision; /* bpt_precision */
    int optimizer; /* for bpt_optimizer_at() */
    double budget_s;
} bpt_tune_options;

extern const bpt_command bpt_tune_command;

/** @return BPT_OK, BPT_EUSAGE (something is missing, or does not go together; with hint) */
bpt_status bpt_tune_options_check(const bpt_tune_options *o, const bpt_option_set *set);

#endif
