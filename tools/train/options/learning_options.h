/** @file tools/train/options/learning_options.h
 * From options to optimiser and schedule, and defaults that depend on these.
 *
 * Threads: one thread. */
#ifndef BPT_TOOLS_LEARNING_OPTIONS_H
#define BPT_TOOLS_LEARNING_OPTIONS_H

#include "inner/device.h"
#include "inner/loops/value_type.h"
#include "inner/models/model.h"
#include "inner/optimizers/optimizer.h"
#include "inner/schedules/schedule.h"
#include "outer/rules/shared_momentum.h"
#include "tools/train/options/train_options.h"

/** Sets the options that nobody gave to what suits the optimiser, the schedule and the length of
 * the run: --lr, --weight-decay, --warmup-epochs. */
void bpt_learning_options_default(bpt_train_options *o, const bpt_option_set *set);

/** Sets --batch-size and --lr, where nobody gave either, to what suits the ranks of the job: with
 * sgd half of both where more than four merge what they learn at multiplied rates, since their
 * steps are large together. A tuned file, which is for a batch, leaves them alone. Else a job that
 * goes on has half of the batch where it had half, whatever is given by now of the rest, and then
 * half of the rate unless that is.
 * @param n_ranks of the job, servers among them
 * @param tuned   whether any of them is by a file
 * @param before  --batch-size of the job that goes on: bpt_checkpoint_batch(); 0: none does
 * @return whether it did */
bool bpt_learning_options_share(bpt_train_options *o, const bpt_option_set *set, uint32_t n_ranks,
                                bool tuned, int64_t before);

/** Checks the values of optimiser and schedule. A milestone on the command line that training does
 * not reach is an error.
 * @return BPT_OK, BPT_EUSAGE (with hint) */
bpt_status bpt_learning_options_check(const bpt_train_options *o, const bpt_option_set *set);

/** Warns of what a configuration file gives and the command line makes doubtful: a rate, decay or
 * warm-up that was for another optimiser or schedule and is not the default of this one, and
 * milestones that training does not reach. */
void bpt_learning_options_warn(const bpt_train_options *o, const bpt_option_set *set);

/** @param lr_factor how many times --lr the learning rate of the network is: bpt_train_lr_factor()
 *                    or 1
 *  @return how networks learn by these options */
bpt_learning bpt_train_learning(const bpt_train_options *o, double lr_factor);

/** @param update    how ranks learn together, for good
 *  @param n_workers ranks that train
 *  @return what --lr-scale multiplies --lr by */
double bpt_train_lr_factor(const bpt_train_options *o, bpt_update_choice update,
                           uint32_t n_workers);

/** @param update and n_workers as above
 *  @param placed    whether one rank has layers for all: those of the others would move farther
 *  @return how ranks follow the momentum of all; with gain 0 where they do not: only under agwu and
 *          sgwu, with sgd and a momentum; and not where W moves by another sum than the mean of
 *          the deltas (--server-momentum, --gamma lag; the Q of --quality and the recalled gamma
 *          are about it) or these are corrected for their own gradients (--delay-compensation) */
bpt_shared_momentum bpt_train_shared_momentum(const bpt_train_options *o, bpt_update_choice update,
                                              uint32_t n_workers, bool placed);

/** Before it is known whether layers are placed.
 *  @return whether ranks will follow the momentum of all in any case: not where layers may be */
bool bpt_train_shares_momentum(const bpt_train_options *o, bpt_update_choice update,
                               uint32_t n_workers);

/** Freezes the layers of a model that stand before the one of --freeze-before; it has no networks
 *  yet.
 *  @return BPT_OK, as bpt_model_freeze_before() */
bpt_status bpt_train_freeze(const bpt_train_options *o, bpt_model *model);

/** @param device where the network computes; NULL: on this processor's cores
 *  @return what activations are (--precision), there */
bpt_value_type bpt_train_activations(const bpt_train_options *o, const bpt_device *device);

/** @return the order in which samples come */
bpt_order bpt_train_order(const bpt_train_options *o);

/** @return samples that a run by these options trains on, of all ranks */
uint64_t bpt_train_total_samples(const bpt_train_options *o, uint64_t epoch_samples);

/** @param lr_factor how many times --lr the learning rate is
 *  @return the schedule of the options */
bpt_schedule bpt_train_schedule(const bpt_train_options *o, double lr_factor);

#endif
