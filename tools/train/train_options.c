#include "tools/train/train_options.h"

#include "scheduler/policy.h"
#include "tools/train/learning_options.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define FIELD(name) offsetof(bpt_train_options, name)

static const bpt_option rows[] = {
    {.group = "what to train",
     .name = "data",
     .letter = 'd',
     .type = BPT_OPTION_TEXT,
     .offset = FIELD(data),
     .unit = "DATASET",
     .help = "dataset made by bpt-ingest"},
    {.name = "train-split",
     .type = BPT_OPTION_TEXT,
     .offset = FIELD(train_split),
     .value = "train",
     .unit = "NAME",
     .help = "split to train on"},
    {.name = "test-split",
     .type = BPT_OPTION_TEXT,
     .offset = FIELD(test_split),
     .value = "test",
     .unit = "NAME",
     .help = "split to measure accuracy on"},
    {.name = "model",
     .letter = 'm',
     .type = BPT_OPTION_TEXT,
     .offset = FIELD(model),
     .unit = "NAME|FILE",
     .help = "built-in model (lenet, resnet50, ...) or a model file (.yaml)"},
    {.name = "output",
     .letter = 'o',
     .type = BPT_OPTION_TEXT,
     .offset = FIELD(output),
     .unit = "RUN",
     .help = "folder to make for logs, metrics, checkpoints and weights"},
    {.name = "force",
     .type = BPT_OPTION_FLAG,
     .offset = FIELD(force),
     .help = "replace an existing RUN"},
    {.name = "input-size",
     .type = BPT_OPTION_PAIR,
     .offset = FIELD(input_size),
     .min = 0,
     .max = 65536,
     .unit = "H W",
     .help = "input size with --bench or --dry-run, instead of the model's own"},
    {.name = "classes",
     .type = BPT_OPTION_INT,
     .offset = FIELD(classes),
     .value = "0",
     .min = 0,
     .max = 1 << 24,
     .unit = "N",
     .help = "classes with --bench or --dry-run; 0: the model's own"},

    {.group = "learning",
     .name = "epochs",
     .letter = 'e',
     .type = BPT_OPTION_REAL,
     .offset = FIELD(epochs),
     .value = "8",
     .min = 1e-6,
     .max = 1e6,
     .unit = "EPOCHS",
     .help = "passes over the training split, all ranks together"},
    {.name = "batch-size",
     .letter = 'b',
     .type = BPT_OPTION_INT,
     .offset = FIELD(batch_size),
     .value = "64",
     .min = 1,
     .max = 65536,
     .unit = "SAMPLES",
     .help = "samples of one step: of each rank under agwu and sgwu, of all ranks\n"
             "together under allreduce"},
    {.name = "optimizer",
     .type = BPT_OPTION_CHOICE,
     .offset = FIELD(optimizer),
     .value = "sgd",
     .choices = "sgd|adamw|lars",
     .help = "how a gradient changes the weights"},
    {.name = "lr",
     .type = BPT_OPTION_REAL,
     .offset = FIELD(lr),
     .value = "0.02",
     .min = 1e-12,
     .max = 1e12,
     .unit = "RATE",
     .help = "learning rate of one rank; unless given, adamw has 0.001 and\n"
             "lars 2"},
    {.name = "lr-scale",
     .type = BPT_OPTION_CHOICE,
     .offset = FIELD(lr_scale),
     .value = "linear",
     .choices = "linear|none",
     .help = "multiply the rate by the number of ranks under agwu and sgwu"},
    {.name = "momentum",
     .type = BPT_OPTION_REAL,
     .offset = FIELD(momentum),
     .value = "0.9",
     .min = 0,
     .max = 0.9999,
     .unit = "M",
     .help = "momentum of sgd and lars"},
    {.name = "nesterov",
     .type = BPT_OPTION_FLAG,
     .offset = FIELD(nesterov),
     .help = "Nesterov's momentum, with sgd"},
    {.name = "weight-decay",
     .type = BPT_OPTION_REAL,
     .offset = FIELD(weight_decay),
     .value = "0.0005",
     .min = 0,
     .max = 1,
     .unit = "D",
     .help = "weight decay, not on biases and batch norms; unless given,\n"
             "adamw has 0.01"},
    {.name = "beta1",
     .type = BPT_OPTION_REAL,
     .offset = FIELD(beta1),
     .value = "0.9",
     .min = 0,
     .max = 0.999999,
     .unit = "B",
     .help = "with adamw: what a step keeps of the mean of gradients"},
    {.name = "beta2",
     .type = BPT_OPTION_REAL,
     .offset = FIELD(beta2),
     .value = "0.999",
     .min = 0,
     .max = 0.999999,
     .unit = "B",
     .help = "with adamw: what a step keeps of the mean of their squares"},
    {.name = "adam-eps",
     .type = BPT_OPTION_REAL,
     .offset = FIELD(adam_eps),
     .value = "1e-08",
     .min = 1e-30,
     .max = 1,
     .unit = "EPS",
     .help = "with adamw: added to the root of that"},
    {.name = "lars-eta",
     .type = BPT_OPTION_REAL,
     .offset = FIELD(lars_eta),
     .value = "0.001",
     .min = 1e-12,
     .max = 1e6,
     .unit = "ETA",
     .help = "with lars: trust coefficient"},
    {.name = "clip-norm",
     .type = BPT_OPTION_REAL,
     .offset = FIELD(clip_norm),
     .value = "0",
     .min = 0,
     .max = 1e12,
     .unit = "NORM",
     .help = "largest norm of the whole gradient: a larger one is scaled down;\n"
             "0: no bound"},
    {.name = "label-smoothing",
     .type = BPT_OPTION_REAL,
     .offset = FIELD(label_smoothing),
     .value = "0",
     .min = 0,
     .max = 1,
     .unit = "E",
     .help = "part of every label that goes to all classes alike, in training"},
    {.name = "schedule",
     .type = BPT_OPTION_CHOICE,
     .offset = FIELD(schedule),
     .value = "cosine",
     .choices = "constant|step|multistep|cosine|onecycle|polynomial",
     .help = "learning rate over time"},
    {.name = "warmup-epochs",
     .type = BPT_OPTION_REAL,
     .offset = FIELD(warmup_epochs),
     .value = "1",
     .min = 0,
     .max = 1e6,
     .unit = "EPOCHS",
     .help = "time in which the rate grows from 0; unless given, onecycle\n"
             "has 0"},
    {.name = "lr-step-size",
     .type = BPT_OPTION_REAL,
     .offset = FIELD(lr_step_size),
     .value = "2",
     .min = 1e-6,
     .max = 1e6,
     .unit = "EPOCHS",
     .help = "with --schedule step: time between steps"},
    {.name = "milestones",
     .type = BPT_OPTION_LIST,
     .offset = FIELD(milestones),
     .min = 0,
     .max = 1e6,
     .unit = "EPOCH,...",
     .help = "with --schedule multistep: epochs at which the rate steps"},
    {.name = "lr-step-factor",
     .type = BPT_OPTION_REAL,
     .offset = FIELD(lr_step_factor),
     .value = "0.1",
     .min = 1e-6,
     .max = 1,
     .unit = "FACTOR",
     .help = "what a step multiplies the rate by"},
    {.name = "pct-start",
     .type = BPT_OPTION_REAL,
     .offset = FIELD(pct_start),
     .value = "0.3",
     .min = 0,
     .max = 0.99,
     .unit = "PART",
     .help = "with --schedule onecycle: part of the run in which the rate\n"
             "rises"},
    {.name = "div-factor",
     .type = BPT_OPTION_REAL,
     .offset = FIELD(div_factor),
     .value = "25",
     .min = 1,
     .max = 1e12,
     .unit = "FACTOR",
     .help = "with --schedule onecycle: --lr over the first rate"},
    {.name = "final-div-factor",
     .type = BPT_OPTION_REAL,
     .offset = FIELD(final_div_factor),
     .value = "10000",
     .min = 1,
     .max = 1e12,
     .unit = "FACTOR",
     .help = "with --schedule onecycle: the first rate over the last"},
    {.name = "power",
     .type = BPT_OPTION_REAL,
     .offset = FIELD(power),
     .value = "1",
     .min = 0,
     .max = 100,
     .unit = "P",
     .help = "with --schedule polynomial: its power"},
    {.name = "seed",
     .type = BPT_OPTION_INT,
     .offset = FIELD(seed),
     .value = "1",
     .min = 0,
     .max = 9e15,
     .unit = "S",
     .help = "of initial weights, partition and order of samples"},

    {.group = "several ranks",
     .name = "update",
     .type = BPT_OPTION_CHOICE,
     .offset = FIELD(update),
     .value = "auto",
     .choices = "auto|local|agwu|sgwu|allreduce",
     .help = "how ranks learn from each other: agwu asynchronous weights,\n"
             "sgwu synchronous average of weights, allreduce summed gradients;\n"
             "auto is local on one rank and agwu on several"},
    {.name = "partition",
     .type = BPT_OPTION_CHOICE,
     .offset = FIELD(partition),
     .value = "auto",
     .choices = "auto|even|idpa",
     .help = "shares of the data: even, or idpa by measured speed;\n"
             "auto is even under allreduce and idpa elsewhere"},
    {.name = "idpa-rounds",
     .type = BPT_OPTION_INT,
     .offset = FIELD(idpa_rounds),
     .value = "4",
     .min = 1,
     .max = 64,
     .unit = "A",
     .help = "rounds in which idpa gives the data out"},
    {.name = "sync-every",
     .type = BPT_OPTION_INT,
     .offset = FIELD(sync_every),
     .value = "8",
     .min = 1,
     .max = 1000000,
     .unit = "STEPS",
     .help = "steps between exchanges under agwu and sgwu"},
    {.name = "max-staleness",
     .type = BPT_OPTION_INT,
     .offset = FIELD(max_staleness),
     .value = "-1",
     .min = -1,
     .max = 1000000,
     .unit = "S",
     .help = "under agwu: exchanges that a rank may be ahead of the slowest;\n-1: no bound"},

    {.group = "this machine",
     .name = "threads",
     .letter = 't',
     .type = BPT_OPTION_INT,
     .offset = FIELD(threads),
     .value = "0",
     .min = 0,
     .max = 256,
     .unit = "N",
     .help = "threads of a rank; 0: all cores it may use"},
    {.name = "policy",
     .type = BPT_OPTION_TEXT,
     .offset = FIELD(policy),
     .value = "critical-path",
     .unit = "NAME",
     .help = "which task a thread takes next: critical-path, level, eft or\n"
             "fifo; changes no result"},
    {.name = "loader-threads",
     .type = BPT_OPTION_INT,
     .offset = FIELD(loader_threads),
     .value = "1",
     .min = 1,
     .max = 64,
     .unit = "N",
     .help = "threads that prepare batches"},
    {.name = "prefetch",
     .type = BPT_OPTION_INT,
     .offset = FIELD(prefetch),
     .value = "4",
     .min = 2,
     .max = 1024,
     .unit = "BATCHES",
     .help = "batches prepared ahead"},

    {.group = "the run",
     .name = "eval-every",
     .type = BPT_OPTION_REAL,
     .offset = FIELD(eval_every),
     .value = "1",
     .min = 0,
     .max = 1e6,
     .unit = "EPOCHS",
     .help = "epochs between evaluations on the test split; 0: at the end only"},
    {.name = "checkpoint-every",
     .type = BPT_OPTION_INT,
     .offset = FIELD(checkpoint_every),
     .value = "0",
     .min = 0,
     .max = 1e12,
     .unit = "STEPS",
     .help = "steps between checkpoints; 0: only when stopped"},
    {.name = "checkpoint-keep",
     .type = BPT_OPTION_INT,
     .offset = FIELD(checkpoint_keep),
     .value = "3",
     .min = 1,
     .max = 1000000,
     .unit = "N",
     .help = "checkpoints to keep"},
    {.name = "resume",
     .type = BPT_OPTION_TEXT,
     .offset = FIELD(resume),
     .unit = "auto|RUN",
     .help = "go on from the newest whole checkpoint of RUN; auto: of --output,\n"
             "or start if there is none"},
    {.name = "replay",
     .type = BPT_OPTION_TEXT,
     .offset = FIELD(replay),
     .unit = "RUN",
     .help = "repeat an agwu run exactly from its logs, on one rank, and compare\n"
             "its final weights"},
    {.name = "bench",
     .type = BPT_OPTION_INT,
     .offset = FIELD(bench),
     .value = "0",
     .min = 0,
     .max = 1000000,
     .unit = "STEPS",
     .help = "measure speed on synthetic batches; needs no dataset"},
    {.name = "trace",
     .type = BPT_OPTION_TEXT,
     .offset = FIELD(trace),
     .unit = "FILE",
     .help = "record every task and wait of some steps, of all ranks, as trace events\n"
             "for ui.perfetto.dev"},
    {.name = "trace-steps",
     .type = BPT_OPTION_TEXT,
     .offset = FIELD(trace_steps),
     .value = "1-20",
     .unit = "A-B",
     .help = "first and last step that --trace records, of each rank"},
    {.name = "dry-run",
     .type = BPT_OPTION_FLAG,
     .offset = FIELD(dry_run),
     .help = "print configuration, layers and memory, and train nothing"},
    {.name = "log-interval",
     .type = BPT_OPTION_REAL,
     .offset = FIELD(log_interval),
     .value = "10",
     .min = 0.1,
     .max = 1e6,
     .unit = "SECONDS",
     .help = "between lines of progress and metrics"},
    {.name = "log-level",
     .type = BPT_OPTION_CHOICE,
     .offset = FIELD(log_level),
     .value = "info",
     .choices = "error|warn|info|debug|trace",
     .help = "what is logged"},
};

const bpt_command bpt_train_command = {
    .name = "bpt-train",
    .synopsis = "--data DATASET --model NAME|FILE --output RUN [option...]",
    .summary =
        "Trains a convolutional network. Under mpirun, one process per machine trains one model\n"
        "together, each with as much data as it is fast.",
    .epilogue =
        "exit status:\n"
        "  0  done\n"
        "  1  run-time failure\n"
        "  2  usage or configuration\n"
        "  3  dataset, weights or checkpoint missing or damaged\n"
        "  4  the loss is not a finite number\n"
        "  75 stopped early, checkpoint saved\n\n"
        "signals: SIGTERM, SIGUSR1 and SIGINT save a checkpoint and end with 75; a second\n"
        "SIGINT ends at once; SIGHUP saves a checkpoint and goes on.\n\n"
        "examples:\n"
        "  bpt-train --data fashion --model lenet --output runs/one\n"
        "  mpirun -np 4 --hostfile hosts --map-by node --bind-to none \\\n"
        "      bpt-train --data /data/fashion --model lenet --output runs/four\n"
        "  bpt-train --config runs/one/config.yaml --output runs/two --seed 2",
    .options = rows,
    .n_options = sizeof rows / sizeof *rows,
};

const char *bpt_update_choice_name(bpt_update_choice update) {
    static const char *const names[] = {"auto", "local", "agwu", "sgwu", "allreduce"};
    return names[update];
}

static bpt_status missing(const char *name, const char *hint) {
    const bpt_status status = bpt_fail(BPT_EUSAGE, "option --%s is missing", name);
    bpt_hint("%s; `bpt-train --help` lists all options", hint);
    return status;
}

/* Takes one number, digits alone and at least 1, off the text. @return whether there was one */
static bool parse_step(const char **text, uint64_t *step) {
    char *end;
    if (**text < '0' || **text > '9') return false;
    errno = 0;
    *step = strtoull(*text, &end, 10);
    *text = end;
    return errno == 0 && *step >= 1;
}

bpt_status bpt_train_trace_steps(const bpt_train_options *o, uint64_t *first, uint64_t *last) {
    const char *text = o->trace_steps;
    if (parse_step(&text, first) && *text++ == '-' && parse_step(&text, last) && !*text &&
        *first <= *last)
        return BPT_OK;
    const bpt_status status =
        bpt_fail(BPT_EUSAGE, "option --trace-steps: '%s' is no range of steps", o->trace_steps);
    bpt_hint("first and last step, from 1, e.g. --trace-steps 11-20");
    return status;
}

static bpt_status check_trace(const bpt_train_options *o) {
    uint64_t first, last;
    BPT_TRY(bpt_train_trace_steps(o, &first, &last));
    if (o->trace && (o->replay || o->dry_run))
        return bpt_fail(BPT_EUSAGE, "--trace goes with training and with --bench");
    return BPT_OK;
}

bpt_status bpt_train_options_check(const bpt_train_options *o, const bpt_option_set *set) {
    const bpt_policy *policy;
    BPT_TRY(bpt_policy_find(o->policy, &policy));
    BPT_TRY(check_trace(o));
    if (o->replay) return BPT_OK;
    if (!o->model) return missing("model", "e.g. --model lenet");
    const bool shape_only = o->bench || o->dry_run;
    if (!shape_only) {
        if (!o->data) return missing("data", "name a dataset made by bpt-ingest");
        if (!o->output) return missing("output", "name a new folder, e.g. runs/first");
        if (o->input_size[0] || o->classes)
            return bpt_fail(BPT_EUSAGE,
                            "--input-size and --classes go with --bench and --dry-run: "
                            "in training the dataset decides");
    }
    if (shape_only && o->data && (o->input_size[0] || o->classes))
        return bpt_fail(BPT_EUSAGE,
                        "--input-size and --classes go without --data: "
                        "the dataset decides");
    BPT_TRY(bpt_learning_options_check(o, set));
    if (o->update == BPT_UPDATE_ALLREDUCE && o->partition == BPT_PARTITION_IDPA) {
        const bpt_status status =
            bpt_fail(BPT_EUSAGE, "allreduce cuts every batch evenly and takes no --partition idpa");
        bpt_hint("use --update agwu for shares by measured speed");
        return status;
    }
    if (o->max_staleness >= 0 && o->update != BPT_UPDATE_AGWU && o->update != BPT_UPDATE_AUTO)
        return bpt_fail(BPT_EUSAGE, "--max-staleness goes with --update agwu");
    return BPT_OK;
}
