/** @file tools/train/replay/replay_start.h
 * Whether a run can be replayed from its beginning: it was never resumed.
 *
 * Threads: one. */
#ifndef BPT_TOOLS_REPLAY_START_H
#define BPT_TOOLS_REPLAY_START_H

#include "base/status.h"

/** Checks that a run was never resumed, neither from another run nor in its own folder. A folder
 * without metrics, or with lines that are no JSON, is taken for one that was not: its other logs
 * are judged all the same.
 * @param run    folder of the run
 * @param resume of its configuration; NULL: none
 * @return BPT_OK, BPT_EUSAGE (it was, with a hint), BPT_ENOMEM */
bpt_status bpt_replay_check_start(const char *run, const char *resume);

#endif
