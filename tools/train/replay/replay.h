/** @file tools/train/replay/replay.h
 * bpt-train --replay: repeats an agwu or easgd run from its logs, and compares the final weights
 * bit by bit.
 *
 * The workers' training is done again, one after the other, in an order that gives every one of
 * them the same weights at the same steps as in the run; the shards are rebuilt from the update
 * logs. So an asynchronous run can be examined afterwards as if it had been deterministic.
 *
 * Threads: one. */
#ifndef BPT_TOOLS_REPLAY_H
#define BPT_TOOLS_REPLAY_H

#include "base/status.h"
#include "tools/train/options/train_options.h"

/** @param given what the user gave; .replay is the folder of the run, whose configuration counts
 * but for what a replay uses of these
 * @param set   of the same
 * @return BPT_OK (the weights are equal bit for bit), BPT_ECORRUPT (they differ: says where),
 *         BPT_EUSAGE (not an agwu run, or one that was resumed), BPT_ENOENT, BPT_EDATA, or any
 * error of the parts */
bpt_status bpt_replay(const bpt_train_options *given, const bpt_option_set *set);

#endif
