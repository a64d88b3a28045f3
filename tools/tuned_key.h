/** @file tools/tuned_key.h
 * What a choice of bpt-tune is good for: machine, libraries, model and batch. Where one of them is
 * another one, the choice says nothing.
 *
 * Threads: any. */
#ifndef BPT_TOOLS_TUNED_KEY_H
#define BPT_TOOLS_TUNED_KEY_H

#include "inner/loops/value_type.h"
#include "inner/models/model.h"
#include "storage/dataset/dataset.h"

/* field, name in a file, what to do where it differs: an option to run bpt-tune with, or NULL where
 * it is to be run on the other machine */
#define BPT_TUNED_KEY_LIST(X)                                                                      \
    X(BPT, "bpt", NULL)                                                                            \
    X(LIBRARY, "library", NULL)                                                                    \
    X(CPU, "cpu", NULL)                                                                            \
    X(INSTRUCTIONS, "instructions", NULL)                                                          \
    X(CORES, "cores", NULL)                                                                        \
    X(MODEL, "model", "--model")                                                                   \
    X(INPUT, "input", "--input-size or --data")                                                    \
    X(CLASSES, "classes", "--classes or --data")                                                   \
    X(LAYERS, "layers", "--model")                                                                 \
    X(BATCH, "batch-size", "--batch-size")                                                         \
    X(PRECISION, "precision", "--precision")                                                       \
    X(OPTIMIZER, "optimizer", "--optimizer")                                                       \
    X(IMAGES, "images", "--data")

typedef enum bpt_tuned_field {
#define X(field, name, option) BPT_TUNED_##field,
    BPT_TUNED_KEY_LIST(X)
#undef X
        BPT_N_TUNED_FIELDS,
} bpt_tuned_field;

enum { BPT_TUNED_VALUE_SIZE = 96 };

typedef struct bpt_tuned_key {
    char value[BPT_N_TUNED_FIELDS][BPT_TUNED_VALUE_SIZE]; /* as text; "" where it is not known */
} bpt_tuned_key;

/** What a step is, beside the machine. */
typedef struct bpt_tuned_step {
    const bpt_model *model;
    int64_t batch; /* samples of a step of this process */
    bpt_value_type activations;
    const char *optimizer;      /* its name */
    unsigned cores;             /* that this process has for itself */
    const bpt_dataset *dataset; /* that its images are loaded from; NULL: none */
} bpt_tuned_step;

/** @return "batch-size" for BPT_TUNED_BATCH, and so on */
const char *bpt_tuned_field_name(bpt_tuned_field field);

/** Makes the key of a step on this machine. @return BPT_OK, BPT_ENOMEM */
bpt_status bpt_tuned_key_make(const bpt_tuned_step *step, bpt_tuned_key *key);

/** Compares a file's key with that of what is to be run. How images are stored matters only where
 * both load any: without, nothing is chosen by it.
 * @param path of the file
 * @param where the host, where several are meant; NULL: this machine
 * @return BPT_OK, BPT_EUSAGE (names the first field that differs and both values; with hint) */
bpt_status bpt_tuned_key_check(const char *path, const bpt_tuned_key *file,
                               const bpt_tuned_key *here, const char *where);

#endif
