/** @file tools/eval/per_class.h
 * What bpt-eval tells of single classes.
 *
 * Threads: any. */
#ifndef BPT_TOOLS_PER_CLASS_H
#define BPT_TOOLS_PER_CLASS_H

#include "base/json.h"
#include "tools/evaluate.h"

#include <stdint.h>

enum { BPT_PER_CLASS_MOST = 4096 }; /* classes: their table has a number for each pair */

/** What was taken for what. */
typedef struct bpt_per_class {
    uint32_t n;               /* classes */
    const char *const *names; /* shape [n] */
    uint64_t *confusion;      /* shape [n, n]: images of class i that were taken for class j */
} bpt_per_class;

/** Adds what a batch was taken for. @param batch its labels and answers are below c->n */
void bpt_per_class_count(bpt_per_class *c, const bpt_batch_answers *batch);

/** Prints a line for each class: images, accuracy, and for what most of the others were taken. */
void bpt_per_class_print(const bpt_per_class *c);

/** Adds "per_class", a list with "class", "count" and "correct" of each, and "confusion", a list of
 * rows, to the object that is open. */
void bpt_per_class_put(const bpt_per_class *c, bpt_json_writer *w);

#endif
