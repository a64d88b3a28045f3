/** @file tools/train/options/option_uses.h
 * Options that count only beside certain others: --beta1 with adamw, --sync-every where ranks
 * exchange weights, --output where a run is made.
 *
 * One rule: what cannot do anything is refused on the command line, where somebody expects an
 * effect of it, and warned of in a configuration file, which may come from a run of another kind.
 * What depends on the number of ranks is warned of, wherever it stands: the same command may be
 * right on more of them.
 *
 * Threads: one thread. */
#ifndef BPT_TOOLS_TRAIN_OPTION_USES_H
#define BPT_TOOLS_TRAIN_OPTION_USES_H

#include "tools/train/options/train_options.h"

/** What bpt-train is asked for. */
typedef enum bpt_train_task {
    BPT_TASK_REPLAY,
    BPT_TASK_BENCH,
    BPT_TASK_CHECK,
    BPT_TASK_DRY_RUN,
    BPT_TASK_TRAIN,
} bpt_train_task;

/** @return the first of them that the options name, training where they name none: what else they
 * name is not used, and refused or warned of as any other option is */
bpt_train_task bpt_train_task_of(const bpt_train_options *o);

/** @return whether anything uses an option beside the others, on some number of ranks: what nothing
 * does is no reason to refuse anything else */
bool bpt_option_uses_any(const bpt_train_options *o, const char *option);

/** Refuses what stands on the command line and cannot do anything.
 * @return BPT_OK, BPT_EUSAGE (names the option and what makes it idle; with hint) */
bpt_status bpt_option_uses_check(const bpt_train_options *o, const bpt_option_set *set);

/** Warns of what a configuration file gives and cannot do anything, unless it has its default: such
 * files come from runs too, and these name every option. One line for each reason. */
void bpt_option_uses_warn(const bpt_train_options *o, const bpt_option_set *set);

/** Warns, in one line, of what was given and cannot do anything with this number of ranks. */
void bpt_option_uses_warn_ranks(const bpt_train_options *o, const bpt_option_set *set,
                                uint32_t n_ranks);

/** @return what --update default stands for with this number of ranks, and auto as long as nothing
 * is measured; else the given update */
bpt_update_choice bpt_update_resolve(bpt_update_choice update, uint32_t n_ranks);

/** @param update never AUTO: what was resolved for the job
 * @return what --partition auto stands for, else the given partition; even where the update has no
 *         other */
bpt_partition_choice bpt_partition_resolve(bpt_partition_choice partition,
                                           bpt_update_choice update);

#endif
