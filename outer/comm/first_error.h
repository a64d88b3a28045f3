/** @file outer/comm/first_error.h
 * Inside of outer/: several steps that are all taken whatever comes of them, as at an end. What
 * fails first is what is told, and a later failure must not take its text's place.
 *
 * Threads: those of bpt_error_last(). */
#ifndef BPT_OUTER_FIRST_ERROR_H
#define BPT_OUTER_FIRST_ERROR_H

#include "base/status.h"

/** Takes a step's status, with this thread's last error, unless an earlier step has failed.
 * @param[in,out] first {0} before the first step */
void bpt__first_error_note(bpt_error *first, bpt_status status);

/** @return the status of the step that failed first, whose error is then this thread's last */
bpt_status bpt__first_error_put(const bpt_error *first);

#endif
