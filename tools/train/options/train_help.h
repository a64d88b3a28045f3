/** @file tools/train/options/train_help.h
 * What bpt-train --help says below its options, and of those that take many words.
 *
 * Threads: any. */
#ifndef BPT_TOOLS_TRAIN_HELP_H
#define BPT_TOOLS_TRAIN_HELP_H

/* Exit statuses, signals and examples. */
extern const char bpt_train_epilogue[];

extern const char bpt_train_freeze_help[];
extern const char bpt_train_order_help[];
extern const char bpt_train_update_help[];
extern const char bpt_train_sync_every_help[];
extern const char bpt_train_servers_help[];
extern const char bpt_train_gamma_help[];
extern const char bpt_train_placement_help[];
extern const char bpt_train_shared_momentum_help[];
extern const char bpt_train_step_limit_help[];
extern const char bpt_train_server_momentum_help[];
extern const char bpt_train_tuned_help[];
extern const char bpt_train_quality_help[];
extern const char bpt_train_device_help[];
extern const char bpt_train_precision_help[];
extern const char bpt_train_stall_timeout_help[];
extern const char bpt_train_warmup_help[];

#endif
