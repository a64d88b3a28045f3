/** @file tools/train/options/momentum_gain.h
 * How far ranks follow the momentum of all: what --shared-momentum says.
 *
 * Threads: any. */
#ifndef BPT_TOOLS_MOMENTUM_GAIN_H
#define BPT_TOOLS_MOMENTUM_GAIN_H

#include "base/status.h"

#include <stdbool.h>

/** Checks a value of --shared-momentum: a gain from 1 on ("2.5"), "0": each rank keeps its own
 * momentum, or "auto".
 * @return BPT_OK, BPT_EUSAGE (with hint) */
bpt_status bpt_momentum_gain_check(const char *text);

/** @param text  a value that bpt_momentum_gain_check() has found right
 *  @param scale how many times --lr the rate of the run is: --lr-scale
 *  @return bpt_shared_momentum.gain: under auto the root of @p scale where that is above 1, else 0
 */
double bpt_momentum_gain(const char *text, double scale);

/** @return whether the gain is to follow what unequal ranks are worth: under auto */
bool bpt_momentum_gain_follows(const char *text);

#endif
