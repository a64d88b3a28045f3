/** @file tools/train/options/idpa_rounds.h
 * In how many rounds idpa gives the data out: what --idpa-rounds says.
 *
 * Threads: any. */
#ifndef BPT_TOOLS_IDPA_ROUNDS_H
#define BPT_TOOLS_IDPA_ROUNDS_H

#include "base/status.h"

#include <stdbool.h>
#include <stdint.h>

/** Checks a value of --idpa-rounds: a whole number from 1 to 64, or "auto".
 * @return BPT_OK, BPT_EUSAGE (with hint) */
bpt_status bpt_idpa_rounds_check(const char *text);

/** @return whether the rounds follow the run, since nobody has said how many: under auto */
bool bpt_idpa_rounds_follow(const char *text);

/** @param text      a value that bpt_idpa_rounds_check() has found right
 * @param epochs    of the whole run
 * @param n_workers ranks that train, from 1
 * @return A of IDPA; under auto as many, and at most 4, that the last may come in the first quarter
 *         of the run, and 1 for a worker that shares with nobody */
uint32_t bpt_idpa_rounds(const char *text, double epochs, uint32_t n_workers);

#endif
