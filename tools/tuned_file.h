/** @file tools/tuned_file.h
 * The file that bpt-tune writes and bpt-train --tuned reads; docs/formats.md describes it.
 *
 * Threads: one at a time. */
#ifndef BPT_TOOLS_TUNED_FILE_H
#define BPT_TOOLS_TUNED_FILE_H

#include "base/yaml.h"
#include "inner/cuts/cost_table.h"
#include "tools/tuned_key.h"

enum { BPT_TUNED_FORMAT = 4 };

/** Values of options of bpt-train, and how convolutions are cut. */
typedef struct bpt_tuned_choices {
    int64_t threads;                  /* at least 1 */
    char policy[24];                  /* for bpt_policy_find() */
    int64_t loader_threads, prefetch; /* 0: not measured, for want of a dataset */
    const bpt_cost_table *cuts;       /* by which convolutions are cut, borrowed; NULL: whole */
} bpt_tuned_choices;

/** What the tasks of a layer and kind take. */
typedef struct bpt_task_cost {
    const char *label, *kind;
    uint64_t ns; /* one task, at least 1 */
} bpt_task_cost;

typedef struct bpt_tuned {
    bpt_tuned_key key;
    bpt_tuned_choices choices;
    bpt_task_cost *costs; /* shape [n_costs]; texts borrowed from .document where there is one */
    size_t n_costs;
    size_t last_cost;    /* found by bpt_tuned_cost() */
    bpt_cost_table cuts; /* what .choices.cuts is where it was read from a file */
    bpt_yaml *document;  /* that it was read from */
} bpt_tuned;

/** @param[out] path the pattern with the name of this host for every %h in it; caller owns,
 * bpt_free()
 * @return BPT_OK, BPT_ENOMEM */
bpt_status bpt_tuned_path(const char *pattern, char **path);

/** @return whether the path is another one on every host */
bool bpt_tuned_path_varies(const char *pattern);

/** Reads a file.
 * @param[out] tuned caller owns, bpt_tuned_free()
 * @return BPT_OK, BPT_EUSAGE (no such file, not such a file, or a value out of range; names file
 *         and line), BPT_EIO, BPT_ENOMEM */
bpt_status bpt_tuned_read(const char *path, bpt_tuned **tuned);

/** @param tuned from bpt_tuned_read(); NULL is allowed */
void bpt_tuned_free(bpt_tuned *tuned);

/** Checks that what is at @p path may give way to a new file: only a file of bpt-tune, of whatever
 * format, or an empty one. Nothing there is right too.
 * @return BPT_OK, BPT_EEXIST (anything else, a link that leads nowhere included), BPT_EIO (it
 *         cannot be read), BPT_ENOMEM */
bpt_status bpt_tuned_check_place(const char *path);

/** Writes a file, whole or not at all: of cuts .choices.cuts.
 * @param comment lines that begin with '#', for people
 * @return as bpt_file_write() */
bpt_status bpt_tuned_write(const char *path, const bpt_tuned *tuned, const char *comment);

/** @return nanoseconds that the file gives for such a task, 0: none. For bpt_network_expect()
 * @param tuned a bpt_tuned */
uint64_t bpt_tuned_cost(void *tuned, const char *label, const char *kind);

#endif
