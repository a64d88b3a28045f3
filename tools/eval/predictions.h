/** @file tools/eval/predictions.h
 * The file of bpt-eval --predictions: a line of JSON for each sample; docs/formats.md has its form.
 *
 * It is kept in memory, some 100 bytes a sample, until it is whole: who is killed before leaves
 * nothing, and who is stopped while it is written, by SIGINT or SIGTERM, the file.
 *
 * Threads: one. */
#ifndef BPT_TOOLS_PREDICTIONS_H
#define BPT_TOOLS_PREDICTIONS_H

#include "base/json.h"
#include "tools/evaluate.h"

#include <stdbool.h>
#include <stddef.h>

/** Set the names, zero-initialise the rest; release with bpt_predictions_free(). */
typedef struct bpt_predictions {
    const char *const *labels;  /* names of the dataset's classes; borrowed */
    const char *const *classes; /* of the network's; likewise */
    bool no_labels;             /* the former are others: samples have no probability of theirs */
    char *text;                 /* the lines so far, shape [length] */
    size_t length, capacity;
    bpt_json_writer line;
} bpt_predictions;

/** Tries whether a file can be made at @p path, before what is to be in it is computed.
 * @return as bpt_result_file_try() */
bpt_status bpt_predictions_try(const char *path);

/** Adds the lines of a batch. @return BPT_OK, BPT_ENOMEM */
bpt_status bpt_predictions_add(bpt_predictions *p, const bpt_batch_answers *batch);

/** Writes all lines. @return as bpt_file_write() */
bpt_status bpt_predictions_write(const bpt_predictions *p, const char *path);

void bpt_predictions_free(bpt_predictions *p);

#endif
