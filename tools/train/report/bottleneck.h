/** @file tools/train/report/bottleneck.h
 * What limits training: of all its time the part that a faster machine, network or dataset would
 * shorten first.
 *
 * Threads: pure functions. */
#ifndef BPT_TOOLS_BOTTLENECK_H
#define BPT_TOOLS_BOTTLENECK_H

#include <stdint.h>

/** Where the time of training went, in nanoseconds. */
typedef struct bpt_time_spent {
    uint64_t total_ns;    /* evaluations left out; at least the sum of the next three */
    uint64_t data_ns;     /* waiting for batches */
    uint64_t messages_ns; /* waiting for other ranks */
    uint64_t steps_ns;    /* computing steps */
    uint64_t path_ns;     /* of these: on the longest paths through the tasks, */
    uint64_t work_ns;     /* and in all tasks, shared evenly by the workers. Both 0: not known */
} bpt_time_spent;

typedef enum bpt_bottleneck {
    BPT_BOTTLENECK_WORK,      /* the workers are busy */
    BPT_BOTTLENECK_PATH,      /* they would be, but tasks wait for each other */
    BPT_BOTTLENECK_IMBALANCE, /* workers idle although neither says so */
    BPT_BOTTLENECK_DATA,
    BPT_BOTTLENECK_MESSAGES,
    BPT_BOTTLENECK_BETWEEN, /* what is done between steps: updates, checkpoints, judging weights */
    BPT_N_BOTTLENECKS
} bpt_bottleneck;

/** @return nanoseconds that are none of the three: between steps */
uint64_t bpt_time_between_ns(const bpt_time_spent *t);

/** No step is shorter than its longest path, nor than its work shared evenly; what the time is
 * longer than the greater of them is lost. @return the greatest loss if it is more than a tenth of
 * the time; else the path or the work, whichever is longer */
bpt_bottleneck bpt_bottleneck_of(const bpt_time_spent *t);

/** @return one word: "work", "path", "imbalance", "data", "messages", "between" */
const char *bpt_bottleneck_name(bpt_bottleneck b);

/** @return what it is, to be read behind "limited by" */
const char *bpt_bottleneck_text(bpt_bottleneck b);

#endif
