/** @file tools/plan/plan_options.h
 * The options of bpt-plan. */
#ifndef BPT_TOOLS_PLAN_OPTIONS_H
#define BPT_TOOLS_PLAN_OPTIONS_H

#include "base/options.h"
#include "tools/plan/cluster.h"

typedef struct bpt_plan_options {
    /* what is to be trained */
    const char *data, *train_split, *model;
    int64_t input_size[2];
    int64_t classes, images;
    double epochs;
    int64_t batch_size;
    int precision, optimizer;
    /* the cluster */
    const char *cluster;
    bool measure;
    double seconds;
    const char *device;
    int64_t threads;
    bool force;
    int64_t ranks;
    /* the answer */
    bool json;
    const char *out;
    const char *compare; /* folder of a run */

    bool batch_is_given; /* not the default of --batch-size */
} bpt_plan_options;

extern const bpt_command bpt_plan_command;

/** Checks what belongs together, and sets batch_is_given.
 * @return BPT_OK, BPT_EUSAGE (with hint) */
bpt_status bpt_plan_options_check(bpt_plan_options *options, const bpt_option_set *set);

#endif
