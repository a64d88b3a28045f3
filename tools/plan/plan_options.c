#include "tools/plan/plan_options.h"

#include "base/log.h"
#include "inner/optimizers/optimizer.h"
#include "tools/device_option.h"
#include "tools/option_aliases.h"
#include "tools/program.h"

#include <string.h>

#define FIELD(name) offsetof(bpt_plan_options, name)

static const bpt_option rows[] = {
    {.group = "what is to be trained",
     .name = "model",
     .letter = 'm',
     .type = BPT_OPTION_TEXT,
     .offset = FIELD(model),
     .unit = "NAME|FILE",
     .help = "built-in model (lenet, resnet50, ...) or a model file (.yaml)"},
    {.name = "data",
     .letter = 'd',
     .type = BPT_OPTION_TEXT,
     .offset = FIELD(data),
     .unit = "DATASET",
     .help = "dataset made by bpt-ingest: tells shape, classes and number of images,\n"
             "and with --measure how fast they are read"},
    {.name = "train-split",
     .type = BPT_OPTION_TEXT,
     .offset = FIELD(train_split),
     .value = "train",
     .unit = "NAME",
     .help = "with --data: split to train on"},
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
    {.name = "images",
     .type = BPT_OPTION_INT,
     .offset = FIELD(images),
     .value = "50000",
     .min = 1,
     .max = 4294967295.0,
     .unit = "N",
     .help = "without --data: images of an epoch"},
    {.name = "epochs",
     .letter = 'e',
     .type = BPT_OPTION_REAL,
     .offset = FIELD(epochs),
     .value = "8",
     .min = 1e-6,
     .max = 1e6,
     .unit = "EPOCHS",
     .help = "passes over the images, as for bpt-train"},
    {.name = "batch-size",
     .letter = 'b',
     .type = BPT_OPTION_INT,
     .offset = FIELD(batch_size),
     .value = "64",
     .min = 1,
     .max = 65536,
     .unit = "SAMPLES",
     .help = "samples of a step, as for bpt-train: of each rank, under allreduce of\n"
             "all; unless given, more than four ranks that merge have half of it"},
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

    {.group = "the cluster",
     .name = "cluster",
     .letter = 'c',
     .type = BPT_OPTION_TEXT,
     .offset = FIELD(cluster),
     .unit = "FILE",
     .help = "file that describes the machines: made by --measure, or by hand"},
    {.name = "ranks",
     .type = BPT_OPTION_INT,
     .offset = FIELD(ranks),
     .value = "0",
     .min = 0,
     .max = BPT_CLUSTER_MOST,
     .unit = "N",
     .help = "the first N ranks of the cluster alone; 0: all"},
    {.name = "measure",
     .type = BPT_OPTION_FLAG,
     .offset = FIELD(measure),
     .help = "measure the machines that mpirun has started this on, one rank each,\n"
             "and write --cluster FILE first"},
    {.name = "seconds",
     .type = BPT_OPTION_REAL,
     .offset = FIELD(seconds),
     .value = "2",
     .min = 0.05,
     .max = 3600,
     .unit = "SECONDS",
     .help = "with --measure: time for the steps of each of four sizes"},
    {.name = "device",
     .type = BPT_OPTION_TEXT,
     .offset = FIELD(device),
     .value = "auto",
     .unit = "auto|cpu|cuda|cuda+cpu",
     .help = "with --measure: what computes, as for bpt-train"},
    {.name = "threads",
     .letter = 't',
     .type = BPT_OPTION_INT,
     .offset = FIELD(threads),
     .value = "0",
     .min = 0,
     .max = 256,
     .unit = "N",
     .help = "with --measure: threads of a rank; 0: as bpt-train has by default"},
    {.name = "force",
     .type = BPT_OPTION_FLAG,
     .offset = FIELD(force),
     .help = "replace files that are there: a cluster by that which is measured,\n"
             "a plan by --out; no others"},

    {.group = "the answer",
     .name = "json",
     .type = BPT_OPTION_FLAG,
     .offset = FIELD(json),
     .help = "print one JSON object in place of tables"},
    {.name = "out",
     .letter = 'o',
     .type = BPT_OPTION_TEXT,
     .offset = FIELD(out),
     .unit = "PLAN",
     .help = "write what was chosen to a file for bpt-train --config"},
    {.name = "compare",
     .type = BPT_OPTION_TEXT,
     .offset = FIELD(compare),
     .unit = "RUN",
     .help = "say beside it what a run of bpt-train came to, of as many of the first\n"
             "ranks of the cluster as it had"},
};

const bpt_command bpt_plan_command = {
    .name = "bpt-plan",
    .synopsis = "--model NAME|FILE --cluster FILE [--measure] [option...]",
    .summary =
        "Foretells how fast bpt-train will train a model on a cluster, in each way of learning\n"
        "together, what each machine brings, and which way to take: from what the machines do\n"
        "alone, what their links carry, and what messages cost.",
    .epilogue =
        "exit status: 0 done, 1 run-time failure, 2 wrong usage or configuration, also a model\n"
        "that fits no way, 3 dataset missing or damaged, 4 a number that is not finite\n\n"
        "examples:\n"
        "  mpirun -np 2 --hostfile hosts --map-by node --bind-to none \\\n"
        "      bpt-plan --model resnet20 --data /data/cifar --cluster cluster.yaml --measure\n"
        "  # then say in cluster.yaml how many machines there are of each kind, and ask:\n"
        "  bpt-plan --model resnet20 --data /data/cifar --cluster cluster.yaml --out plan.yaml\n"
        "  bpt-train --config plan.yaml --data /data/cifar --output runs/planned",
    .options = rows,
    .n_options = sizeof rows / sizeof *rows,
    .aliases = bpt_option_aliases,
};

static bpt_status refuse(const char *name, const char *where, const char *hint) {
    const bpt_status status = bpt_fail(BPT_EUSAGE, "--%s is not used %s", name, where);
    bpt_hint("%s", hint);
    return status;
}

/* What a configuration gives and nothing asks for is no error: it may be for several commands. */
static bpt_status refuse_idle(const bpt_plan_options *o, const bpt_option_set *set) {
    static const char *const of_measuring[] = {"seconds", "device", "threads"};
    static const char *const of_no_data[] = {"classes", "images"};
    for (size_t i = 0; i < sizeof of_measuring / sizeof *of_measuring && !o->measure; i++)
        if (bpt_option_where(set, of_measuring[i]) == BPT_SOURCE_COMMAND_LINE)
            return refuse(of_measuring[i], "without --measure", "the cluster's file has figures");
    for (size_t i = 0; i < sizeof of_no_data / sizeof *of_no_data && o->data; i++)
        if (bpt_option_where(set, of_no_data[i]) == BPT_SOURCE_COMMAND_LINE)
            return refuse(of_no_data[i], "with --data", "the dataset decides it");
    if (!o->data && bpt_option_where(set, "train-split") == BPT_SOURCE_COMMAND_LINE)
        return refuse("train-split", "without --data", "leave it out, or name a dataset");
    return BPT_OK;
}

/* An empty name comes of a variable that a script has not set. */
static bpt_status check_out(const bpt_plan_options *o) {
    if (!o->out) return BPT_OK;
    if (!bpt_program_has(o->out)) {
        const bpt_status status = bpt_fail(BPT_EUSAGE, "--out has no name");
        bpt_hint("name a file, or leave it out");
        return status;
    }
    if (strcmp(o->out, o->cluster) == 0) {
        const bpt_status status = bpt_fail(BPT_EUSAGE, "--out and --cluster are the same file");
        bpt_hint("name another one for the plan");
        return status;
    }
    return bpt_options_check_texts(&bpt_plan_command, o);
}

bpt_status bpt_plan_options_check(bpt_plan_options *o, const bpt_option_set *set) {
    const char *missing = !bpt_program_has(o->model)     ? "model"
                          : !bpt_program_has(o->cluster) ? "cluster"
                                                         : NULL;
    if (missing) {
        const bpt_status status = bpt_fail(BPT_EUSAGE, "--%s is missing", missing);
        bpt_hint("usage: %s %s", bpt_plan_command.name, bpt_plan_command.synopsis);
        return status;
    }
    BPT_TRY(check_out(o));
    o->batch_is_given = bpt_option_where(set, "batch-size") != BPT_SOURCE_DEFAULT;
    BPT_TRY(refuse_idle(o, set));
    return bpt_device_option_check(o->device, (bpt_precision)o->precision);
}
