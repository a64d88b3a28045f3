/** @file tools/train/options/option_texts.h
 * Which texts options of bpt-train take, for the rows of its table. Those of --sync-every,
 * --idpa-rounds, --step-limit and --shared-momentum are with what reads them: bpt_pace_check(),
 * bpt_idpa_rounds_check(), bpt_step_limit_check(), bpt_momentum_gain_check().
 *
 * Threads: main. */
#ifndef BPT_TOOLS_TRAIN_OPTION_TEXTS_H
#define BPT_TOOLS_TRAIN_OPTION_TEXTS_H

#include "tools/train/exchange/pace.h"
#include "tools/train/options/idpa_rounds.h"
#include "tools/train/options/momentum_gain.h"
#include "tools/train/options/step_limit.h"

#include <stdint.h>

/** @param text of --trace-steps, "A-B"
 * @param[out] first,last the steps, from 1, first <= last
 * @return BPT_OK, BPT_EUSAGE (with hint) */
bpt_status bpt_trace_steps_parse(const char *text, uint64_t *first, uint64_t *last);

/** @return BPT_OK, BPT_EUSAGE (with hint): the text is none of --trace-steps, --augment, --policy
 */
bpt_status bpt_trace_steps_check(const char *text);
bpt_status bpt_augment_text_check(const char *text);
bpt_status bpt_policy_text_check(const char *text);

#endif
