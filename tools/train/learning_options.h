/** @file tools/train/learning_options.h
 * From options to optimiser and schedule: defaults that depend on these, and which options go with
 * which.
 *
 * Threads: one thread. */
#ifndef BPT_TOOLS_LEARNING_OPTIONS_H
#define BPT_TOOLS_LEARNING_OPTIONS_H

#include "inner/optimizer.h"
#include "inner/schedule.h"
#include "tools/train/train_options.h"

/** Sets the options that nobody gave to what suits the optimiser and the schedule: --lr,
 * --weight-decay, --warmup-epochs. */
void bpt_learning_options_default(bpt_train_options *o, const bpt_option_set *set);

/** Checks optimiser and schedule. An option of another one on the command line is an error.
 * @return BPT_OK, BPT_EUSAGE (with hint) */
bpt_status bpt_learning_options_check(const bpt_train_options *o, const bpt_option_set *set);

/** Warns of options that a configuration file gives and the optimiser or the schedule does not use,
 * unless they have their default: such files come from runs too, and these name every option. */
void bpt_learning_options_warn(const bpt_train_options *o, const bpt_option_set *set);

/** @return how networks learn by these options */
bpt_learning bpt_train_learning(const bpt_train_options *o);

/** @return the schedule of the options, without the scale for several ranks */
bpt_schedule bpt_train_schedule(const bpt_train_options *o);

#endif
