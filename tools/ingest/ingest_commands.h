/** @file tools/ingest/ingest_commands.h
 * The subcommands of bpt-ingest. Each parses its own arguments; argv[0] is its name.
 *
 * Threads: the main thread. */
#ifndef BPT_TOOLS_INGEST_COMMANDS_H
#define BPT_TOOLS_INGEST_COMMANDS_H

#include "base/options.h"
#include "base/status.h"

typedef struct bpt_ingest_command {
    const char *name;
    const bpt_command *usage;
    bpt_status (*run)(int argc, char **argv);
} bpt_ingest_command;

extern const bpt_ingest_command bpt_ingest_idx;
extern const bpt_ingest_command bpt_ingest_cifar;
extern const bpt_ingest_command bpt_ingest_folder;
extern const bpt_ingest_command bpt_ingest_list;
extern const bpt_ingest_command bpt_ingest_caffe;
extern const bpt_ingest_command bpt_ingest_webdataset;
extern const bpt_ingest_command bpt_ingest_glyphs;
extern const bpt_ingest_command bpt_ingest_info;
extern const bpt_ingest_command bpt_ingest_verify;
extern const bpt_ingest_command bpt_ingest_merge;
extern const bpt_ingest_command bpt_ingest_split;
extern const bpt_ingest_command bpt_ingest_export;
extern const bpt_ingest_command bpt_ingest_montage;

/** Checks that a command that writes a split was told which, and that a dataset may be there. NULL
 * stands for what was not given. @return BPT_OK, BPT_EUSAGE, BPT_EEXIST, BPT_EIO */
bpt_status bpt_ingest_check_target(const bpt_command *usage, const char *out, const char *split);

/** Likewise of a command that makes files of a split. */
bpt_status bpt_ingest_check_source(const bpt_command *usage, const char *split, const char *to);

#define BPT_INGEST_EXIT_STATUS                                                                     \
    "exit status: 0 done; 1 run-time failure (disk full, interrupted, another writer);\n"          \
    "2 wrong usage, or the split exists; 3 missing or malformed data."

#endif
