/* bpt-ingest split: a split of a dataset as two of another one, the same share of each class held
 * out. */
#include "base/clock.h"
#include "base/log.h"
#include "base/memory.h"
#include "base/random.h"
#include "storage/dataset/dataset.h"
#include "storage/writer/writer.h"
#include "tools/ingest/ingest_commands.h"
#include "tools/ingest/ingest_progress.h"
#include "tools/ingest/ingest_summary.h"
#include "tools/ingest/record_copy.h"
#include "tools/interrupt.h"

#include <math.h>
#include <string.h>

typedef struct split_options {
    const char *out, *from, *split, *held_out;
    double share;
    int64_t seed;
    bool force;
} split_options;

static const bpt_option split_table[] = {
    {.name = "out",
     .type = BPT_OPTION_TEXT,
     .offset = offsetof(split_options, out),
     .unit = "DATASET",
     .help = "folder of the dataset to write, another than the one that is read"},
    {.name = "from",
     .type = BPT_OPTION_TEXT,
     .offset = offsetof(split_options, from),
     .value = "train",
     .unit = "NAME",
     .help = "split that is divided"},
    {.name = "share",
     .type = BPT_OPTION_REAL,
     .offset = offsetof(split_options, share),
     .value = "0.1",
     .min = 0.000001,
     .max = 0.999999,
     .unit = "SHARE",
     .help = "what part of each class is held out, rounded to whole images"},
    {.name = "seed",
     .type = BPT_OPTION_INT,
     .offset = offsetof(split_options, seed),
     .value = "1",
     .min = 0,
     .max = 9007199254740992.0,
     .unit = "SEED",
     .help = "seed of the choice"},
    {.name = "split",
     .type = BPT_OPTION_TEXT,
     .offset = offsetof(split_options, split),
     .value = "train",
     .unit = "NAME",
     .help = "name of the split that gets the rest"},
    {.name = "held-out",
     .type = BPT_OPTION_TEXT,
     .offset = offsetof(split_options, held_out),
     .value = "val",
     .unit = "NAME",
     .help = "name of the split that gets what is held out"},
    {.name = "force",
     .type = BPT_OPTION_FLAG,
     .offset = offsetof(split_options, force),
     .help = "replace splits that are there; each stays until the new one is whole"},
};

static const bpt_command split_usage = {
    .name = "bpt-ingest split",
    .synopsis = "DATASET --out DATASET [option...]",
    .summary = "Holds out a share of each class by chance, the same for the same seed.",
    .epilogue = BPT_INGEST_EXIT_STATUS,
    .options = split_table,
    .n_options = sizeof split_table / sizeof *split_table,
    .min_operands = 1,
    .max_operands = 1,
};

typedef struct division {
    const split_options *o;
    const char *path;
    bpt_dataset *dataset;
    const bpt_dataset_info *info;
    const bpt_split *split;
    uint8_t *held_out; /* shape [split->count] */
    bpt_ingest_progress progress;
    uint64_t done;
} division;

/* Shuffles the records of a class and marks the first of them.
 * @param records shape [n] */
static void choose(const division *d, uint32_t class, uint32_t *records, uint32_t n) {
    bpt_random_shuffle((uint64_t)d->o->seed, BPT_PURPOSE_SPLIT, class, records, n);
    const uint32_t held = (uint32_t)floor(d->o->share * n + .5);
    for (uint32_t i = 0; i < held; i++) d->held_out[records[i]] = 1;
}

static bpt_status check_interrupt(void) {
    return bpt_interrupt_check("nothing is stored", "run the same command again");
}

static bpt_status choose_all(division *d) {
    bpt_ingest_progress progress = bpt_ingest_progress_start("looked at");
    const uint32_t n_classes = d->info->n_classes;
    uint32_t *records = NULL; /* class by class, shape [count] */
    uint64_t *ends = NULL;    /* shape [n_classes]; first where a class begins */
    uint64_t *left = NULL;    /* records of each class that are to come, shape [n_classes] */
    bpt_status status;
    BPT_TRY_GOTO(status, BPT_NEW("held out records", d->split->count, &d->held_out), done);
    BPT_TRY_GOTO(status, BPT_NEW("records by class", d->split->count, &records), done);
    BPT_TRY_GOTO(status, BPT_NEW("classes", n_classes, &ends), done);
    BPT_TRY_GOTO(status, BPT_NEW("classes", n_classes, &left), done);
    memcpy(left, d->split->per_class, n_classes * sizeof *left);
    for (uint32_t c = 1; c < n_classes; c++) ends[c] = ends[c - 1] + d->split->per_class[c - 1];
    for (uint32_t i = 0; i < d->split->count; i++) {
        uint32_t label;
        BPT_TRY_GOTO(status, bpt_record_label(d->dataset, d->split, i, &label), done);
        if (left[label]-- == 0) { /* a schema that lies; verify tells how */
            status =
                bpt_fail(BPT_ECORRUPT, "dataset %s is damaged: wrong records per class", d->path);
            goto done;
        }
        records[ends[label]++] = i;
        BPT_TRY_GOTO(status, check_interrupt(), done);
        bpt_ingest_progress_show(&progress, i + 1, d->split->count);
    }
    uint64_t begin = 0;
    for (uint32_t c = 0; c < n_classes; begin = ends[c++])
        choose(d, c, records + begin, (uint32_t)(ends[c] - begin));
done:
    bpt_log_progress_end();
    bpt_free(records);
    bpt_free(ends);
    bpt_free(left);
    return status;
}

/* @param naming the option that says its name
 * @param source borrowed while the options are used */
static bpt_writer_options describe_half(const division *d, const char *naming, const char *name,
                                        const char **source) {
    *source = bpt_record_base_name(d->path);
    return (bpt_writer_options){.split = name,
                                .naming = naming,
                                .replace = d->o->force,
                                .encoded = d->info->encoded,
                                .C = d->info->C,
                                .H = d->info->H,
                                .W = d->info->W,
                                .n_classes = d->info->n_classes,
                                .class_names = d->info->classes,
                                .importer = "split",
                                .sources = source,
                                .n_sources = 1,
                                .seed = (uint64_t)d->o->seed};
}

static bpt_status copy_half(division *d, bool held_out, bpt_writer *writer) {
    const bpt_record_choice choice = {.dataset = d->dataset,
                                      .split = d->split,
                                      .held_out = d->held_out,
                                      .take_held_out = held_out};
    return bpt_record_copy(&choice, writer, &d->progress, &d->done, d->split->count);
}

/* Before anything is copied. */
static bpt_status check_halves(const division *d) {
    uint32_t n = 0;
    for (uint32_t i = 0; i < d->split->count; i++) n += d->held_out[i];
    if (n > 0 && n < d->split->count) return BPT_OK;
    const bpt_status status =
        bpt_fail(BPT_EDATA, "split %s would have no images", n > 0 ? d->o->split : d->o->held_out);
    bpt_hint("--share is of each class, and rounded to whole images");
    return status;
}

/* They appear together, or neither. That they may be written is known before the records are read,
 * all of them for their classes. */
static bpt_status write_halves(division *d) {
    const char *source;
    const bpt_writer_options held_out = describe_half(d, "held-out", d->o->held_out, &source);
    const bpt_writer_options rest = describe_half(d, "split", d->o->split, &source);
    bpt_writer *writer;
    bpt_status status;
    BPT_TRY(bpt_writer_open(d->o->out, &held_out, &writer));
    BPT_TRY_GOTO(status, bpt_writer_check_next(writer, &rest), done);
    BPT_TRY_GOTO(status, choose_all(d), done);
    BPT_TRY_GOTO(status, check_halves(d), done);
    d->progress = bpt_ingest_progress_start("stored");
    BPT_TRY_GOTO(status, copy_half(d, true, writer), done);
    BPT_TRY_GOTO(status, bpt_writer_next(writer, &rest), done);
    BPT_TRY_GOTO(status, copy_half(d, false, writer), done);
    bpt_log_progress_end();
    status = bpt_writer_commit(writer);
done:
    bpt_log_progress_end();
    bpt_writer_close(writer);
    return status;
}

static bpt_status divide(division *d) {
    if (strcmp(d->o->split, d->o->held_out) == 0)
        return bpt_fail(BPT_EUSAGE, "--split and --held-out name the same split, %s", d->o->split);
    BPT_TRY(bpt_record_check_apart(d->path, d->o->out));
    BPT_TRY(bpt_dataset_open(d->path, &d->dataset));
    d->info = bpt_dataset_describe(d->dataset);
    BPT_TRY(bpt_dataset_find(d->dataset, d->o->from, &d->split));
    return write_halves(d);
}

static bpt_status run_split(int argc, char **argv) {
    split_options o;
    bpt_option_request request;
    bpt_option_set *set;
    BPT_TRY(bpt_options_parse(&split_usage, argc, argv, &o, &request, &set));
    bpt_status status = BPT_OK;
    if (request != BPT_REQUEST_RUN) goto done;
    BPT_TRY_GOTO(status, bpt_ingest_check_target(&split_usage, o.out, o.split), done);
    bpt_interrupt_catch();
    const uint64_t start_ns = bpt_clock_ns();
    int n;
    division d = {.o = &o, .path = bpt_option_operands(set, &n)[0]};
    status = divide(&d);
    bpt_dataset_close(d.dataset);
    bpt_free(d.held_out);
    const double seconds = bpt_clock_seconds_since(start_ns);
    if (status == BPT_OK) status = bpt_ingest_summary(o.out, o.held_out, NULL, 0, seconds);
    if (status == BPT_OK) status = bpt_ingest_summary(o.out, o.split, NULL, 0, seconds);
done:
    bpt_option_set_free(set);
    return status;
}

const bpt_ingest_command bpt_ingest_split = {"split", &split_usage, run_split};
