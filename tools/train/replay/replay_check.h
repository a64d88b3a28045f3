/** @file tools/train/replay/replay_check.h
 * Whether the logs of an agwu run fit together, as far as that can be told without training.
 *
 * Threads: one. */
#ifndef BPT_TOOLS_REPLAY_CHECK_H
#define BPT_TOOLS_REPLAY_CHECK_H

#include "tools/train/replay/replay_log.h"

/** Checks logs whose lines are each in order against each other.
 * @return BPT_OK, BPT_EDATA (names file, line and field), BPT_ENOMEM */
bpt_status bpt_replay_logs_check(const bpt_replay_logs *logs, const bpt_replay_facts *facts);

#endif
