/** @file tools/train/options/step_limit.h
 * How far a step may move the weights of a layer: what --step-limit says.
 *
 * Threads: any. */
#ifndef BPT_TOOLS_STEP_LIMIT_H
#define BPT_TOOLS_STEP_LIMIT_H

#include "base/status.h"

/** Checks a value of --step-limit: a part of the weights' length ("0.01"; "0": no limit), "auto".
 * @return BPT_OK, BPT_EUSAGE (with hint) */
bpt_status bpt_step_limit_check(const char *text);

/** @param text  a value that bpt_step_limit_check() has found right
 *  @param scale how many times --lr the rate of the run is: --lr-scale
 *  @return bpt_learning.step_limit: under auto there is one where @p scale is above 1, since that
 *          rate is nobody's choice */
double bpt_step_limit(const char *text, double scale);

#endif
