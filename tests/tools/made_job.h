/** @file tests/tools/made_job.h
 * Jobs for tests: made up, of a small network, without other ranks, files or a network that
 * computes.
 *
 * Threads: the test's thread. */
#ifndef BPT_TESTS_TOOLS_MADE_JOB_H
#define BPT_TESTS_TOOLS_MADE_JOB_H

#include "tests/storage/made_dataset.h"
#include "tools/train/job/job.h"
#include "tools/train/job/memory_plan.h"

/** Images of a job, and samples: of a rank's step, of the training split, and to test on. */
enum {
    MADE_C = 1,
    MADE_H = 12,
    MADE_W = 12,
    MADE_VALUES = MADE_C * MADE_H * MADE_W,
    MADE_BATCH = 8,
    MADE_TRAIN = 1000,
    MADE_TEST = 300
};

/** What made jobs have in common; there between set-up and tear-down. */
typedef struct made_world {
    bpt_train_options options; /* --loader-threads 3 --prefetch 5, else the defaults */
    bpt_option_set *set;       /* which these are of */
    bpt_model *model;          /* a convolution of 16 filters, then the layers fc1 and fc2 */
    made_place place;
    bpt_dataset *dataset;
    bpt_split train, test; /* counts alone: the dataset is smaller */
} made_world;

extern made_world made;

/** Of a group of cmocka's tests. */
int made_set_up(void **state);
int made_tear_down(void **state);

/** @return rank @p rank of so many, the last of which are servers; each has a batch of its own, of
 * MADE_BATCH samples, two threads, and a host; without a dataset */
bpt_job made_job_of(const bpt_train_options *o, bpt_update_choice update, uint32_t rank,
                    uint32_t n_ranks, uint32_t n_servers);

/** @return one that is the only rank */
bpt_job made_job_alone(const bpt_train_options *o);

/** Gives it the made dataset. */
void made_job_give_data(bpt_job *job);

/** @return its plan of memory; the test fails where there is none */
bpt_memory_plan made_plan(const bpt_job *job);

#endif
