/** @file tools/train/train_help.h
 * What bpt-train --help says below its options.
 *
 * Threads: any. */
#ifndef BPT_TOOLS_TRAIN_HELP_H
#define BPT_TOOLS_TRAIN_HELP_H

/* Exit statuses, signals and examples. */
extern const char bpt_train_epilogue[];

#endif
