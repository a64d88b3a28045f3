#include "tools/tune/tune_options.h"

#include "base/log.h"
#include "inner/optimizers/optimizer.h"
#include "tools/option_aliases.h"
#include "tools/precision.h"
#include "tools/program.h"

#include <stddef.h>

#define FIELD(name) offsetof(bpt_tune_options, name)

static const bpt_option rows[] = {
    {.group = "what is to be trained",
     .name = "data",
     .letter = 'd',
     .type = BPT_OPTION_TEXT,
     .offset = FIELD(data),
     .unit = "DATASET",
     .help = "dataset made by bpt-ingest; without it batches are made up, and\n"
             "nothing about loading is measured"},
    {.name = "train-split",
     .type = BPT_OPTION_TEXT,
     .offset = FIELD(train_split),
     .value = "train",
     .unit = "NAME",
     .help = "with --data: split to load images from"},
    {.name = "model",
     .letter = 'm',
     .type = BPT_OPTION_TEXT,
     .offset = FIELD(model),
     .unit = "NAME|FILE",
     .help = "built-in model (lenet, resnet50, ...) or a model file (.yaml)"},
    {.name = "input-size",
     .type = BPT_OPTION_PAIR,
     .offset = FIELD(input_size),
     .min = 0,
     .max = 65536,
     .unit = "H W",
     .help = "without --data, or with encoded images: height and width of the input,\n"
             "as 32 48 or 32x48; 0: the model's own"},
    {.name = "classes",
     .type = BPT_OPTION_INT,
     .offset = FIELD(classes),
     .value = "0",
     .min = 0,
     .max = 1 << 24,
     .unit = "N",
     .help = "without --data: number of classes; 0: the model's own"},
    {.name = "batch-size",
     .letter = 'b',
     .type = BPT_OPTION_INT,
     .offset = FIELD(batch_size),
     .value = "64",
     .min = 1,
     .max = 65536,
     .unit = "SAMPLES",
     .help = "samples of one step of one rank"},
    {.name = "precision",
     .type = BPT_OPTION_CHOICE,
     .offset = FIELD(precision),
     .value = "fp32",
     .choices = BPT_PRECISIONS,
     .help = "what activations are in memory, as for bpt-train"},
    {.name = "optimizer",
     .type = BPT_OPTION_CHOICE,
     .offset = FIELD(optimizer),
     .value = "sgd",
     .choices = BPT_OPTIMIZERS,
     .help = "how a gradient changes the weights"},

    {.group = "the search",
     .name = "out",
     .letter = 'o',
     .type = BPT_OPTION_TEXT,
     .offset = FIELD(out),
     .unit = "FILE",
     .help = "file to write, for bpt-train --tuned; %h in its path stands for the\n"
             "name of the host"},
    {.name = "force",
     .type = BPT_OPTION_FLAG,
     .offset = FIELD(force),
     .help = "replace FILE if it is there; only what bpt-tune has made"},
    {.name = "budget",
     .type = BPT_OPTION_REAL,
     .offset = FIELD(budget_s),
     .value = "60",
     .min = 1,
     .max = 86400,
     .unit = "SECONDS",
     .help = "time that all of it may take"},
};

const bpt_command bpt_tune_command = {
    .name = "bpt-tune",
    .synopsis = "--model NAME|FILE --out FILE [--data DATASET] [option...]",
    .summary =
        "Measures what makes training steps fast on this machine: number of threads, scheduling\n"
        "policy, with a dataset threads and depth of loading, and whether convolutions are cut\n"
        "into parts. Cuts may change the last bits of results; nothing else changes any.",
    .epilogue =
        "exit status: 0 done, 1 run-time failure or stopped by a signal (nothing is written),\n"
        "2 wrong usage or configuration, 3 dataset missing or damaged, 4 a number that is not "
        "finite\n\n"
        "examples:\n"
        "  bpt-tune --data fashion --model lenet --out lenet.tuned.yaml\n"
        "  bpt-train --data fashion --model lenet --tuned lenet.tuned.yaml --output runs/one",
    .options = rows,
    .n_options = sizeof rows / sizeof *rows,
    .aliases = bpt_option_aliases,
};

static bpt_status refuse_beside(const bpt_tune_options *o, const bpt_option_set *set,
                                const char *name, bool with_data) {
    const bpt_option_source where = bpt_option_where(set, name);
    if (where == BPT_SOURCE_FILE && !bpt_option_is_default(&bpt_tune_command, name, o))
        bpt_warn("%s in the configuration is not used %s --data", name,
                 with_data ? "without" : "with");
    if (where != BPT_SOURCE_COMMAND_LINE) return BPT_OK;
    const bpt_status status =
        bpt_fail(BPT_EUSAGE, "--%s is not used %s --data", name, with_data ? "without" : "with");
    bpt_hint(with_data ? "leave it out, or name a dataset" : "the dataset decides it");
    return status;
}

bpt_status bpt_tune_options_check(const bpt_tune_options *o, const bpt_option_set *set) {
    const char *missing = !bpt_program_has(o->model) ? "model"
                          : !bpt_program_has(o->out) ? "out"
                                                     : NULL;
    if (missing) {
        const bpt_status status = bpt_fail(BPT_EUSAGE, "--%s is missing", missing);
        bpt_hint("usage: %s %s", bpt_tune_command.name, bpt_tune_command.synopsis);
        return status;
    }
    if (o->data) {
        BPT_TRY(refuse_beside(o, set, "classes", false));
    } else {
        BPT_TRY(refuse_beside(o, set, "train-split", true));
    }
    return bpt_precision_check((bpt_precision)o->precision, NULL);
}
