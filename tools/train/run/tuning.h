/** @file tools/train/run/tuning.h
 * bpt-train --tuned: the values that bpt-tune has found, where nobody has given others.
 *
 * Each rank reads the file and checks it against its own machine: one file where machines are
 * alike, one for each host (%h in its path) where they are not.
 *
 * Threads: one. */
#ifndef BPT_TOOLS_TRAIN_TUNING_H
#define BPT_TOOLS_TRAIN_TUNING_H

#include "inner/network/network.h"
#include "tools/train/options/train_options.h"
#include "tools/train/run/run_folder.h"
#include "tools/tuned_file.h"

/** Reads the file of --tuned and takes its values for options that were not given: neither on the
 * command line nor, other than their default, in a configuration file. Does nothing without
 * --tuned.
 * @param o its .tuning is set: to be released with bpt_tuning_close()
 * @return as bpt_tuned_read() */
bpt_status bpt_tuning_open(bpt_train_options *o, const bpt_option_set *set);
void bpt_tuning_close(bpt_train_options *o);

/** What a file of --tuned has to be for. */
typedef struct bpt_tuning_job {
    const bpt_model *model;
    const bpt_dataset *dataset; /* that is trained on; NULL: images are made up */
    int64_t batch;              /* samples of a step of this rank */
    unsigned cores;             /* that this rank has for itself */
    const char *host;           /* for messages where there are several; NULL: no need to say */
} bpt_tuning_job;

/** Whether a file is for this machine and what is to be run on it.
 * @param path of the file, for messages
 * @return BPT_OK, BPT_EUSAGE (names field and values; with hint), BPT_ENOMEM */
bpt_status bpt_tuning_check(const bpt_train_options *o, const char *path, const bpt_tuned *file,
                            const bpt_tuning_job *job);

/** Checks that the file is for this machine and what is to be run on it, and lets networks that are
 * created or planned from now on cut their convolutions as it says.
 * @param model uses the file's costs until it is freed
 * @param dataset that is trained on; NULL: images are made up
 * @param batch samples of a step of this rank
 * @param cores that this rank has for itself
 * @param host  for messages where there are several; NULL: no need to say
 * @return BPT_OK (also without --tuned), BPT_EUSAGE (names field and values; with hint), BPT_ENOMEM
 */
bpt_status bpt_tuning_use(const bpt_train_options *o, bpt_model *model, const bpt_dataset *dataset,
                          int64_t batch, unsigned cores, const char *host);

/** @return a checksum of the costs by which this process cuts convolutions, as text; "" where it
 * leaves them whole */
const char *bpt_tuning_cuts(const bpt_train_options *o);

/** Tells the network what its tasks take. */
void bpt_tuning_expect(const bpt_train_options *o, bpt_network *network);

/** Writes into the run's folder what this rank was tuned by, for a replay of the run and whoever
 * repeats it. Does nothing without --tuned.
 * @return as bpt_file_write() */
bpt_status bpt_tuning_keep(const bpt_train_options *o, const bpt_run_folder *run, uint32_t rank);

/** Reads what bpt_tuning_keep() has written.
 * @param[out] tuned caller owns, bpt_tuned_free()
 * @return as bpt_tuned_read() */
bpt_status bpt_tuning_kept(const char *run, uint32_t rank, bpt_tuned **tuned);

/** Says which values are the file's and which were given. */
void bpt_tuning_say(const bpt_train_options *o);

/** Gives a copy of the options for config.yaml: with the values that were taken where all ranks
 * have the same, else without, since every host takes its own again. */
bpt_train_options bpt_tuning_repeat(const bpt_train_options *o);

#endif
