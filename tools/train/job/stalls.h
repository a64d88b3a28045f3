/** @file tools/train/job/stalls.h
 * What bpt-train says and does where a rank waits for too long.
 *
 * Threads: any; see outer/comm/watch.h. */
#ifndef BPT_TOOLS_STALLS_H
#define BPT_TOOLS_STALLS_H

#include "outer/comm/watch.h"
#include "tools/train/options/train_options.h"

/** @return the watch that --stall-warning and --stall-timeout ask for; under --check one that warns
 * soon, and ends the job after a minute, where they have their defaults */
bpt_watch_options bpt_stall_options(const bpt_train_options *options);

#endif
