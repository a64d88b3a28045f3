/* bpt-ingest merge: splits of several datasets, one after another, as one split of another one. */
#include "base/clock.h"
#include "base/log.h"
#include "base/memory.h"
#include "storage/dataset/dataset.h"
#include "storage/writer/writer.h"
#include "tools/ingest/ingest_commands.h"
#include "tools/ingest/ingest_progress.h"
#include "tools/ingest/ingest_summary.h"
#include "tools/ingest/record_copy.h"
#include "tools/interrupt.h"

#include <stdlib.h>
#include <string.h>

typedef struct merge_options {
    const char *out, *split, *from;
    bool force;
} merge_options;

static const bpt_option merge_table[] = {
    {.name = "out",
     .type = BPT_OPTION_TEXT,
     .offset = offsetof(merge_options, out),
     .unit = "DATASET",
     .help = "folder of the dataset to write, none of those that are read"},
    {.name = "split",
     .type = BPT_OPTION_TEXT,
     .offset = offsetof(merge_options, split),
     .unit = "NAME",
     .help = "name of the split to write"},
    {.name = "from",
     .type = BPT_OPTION_TEXT,
     .offset = offsetof(merge_options, from),
     .unit = "NAME",
     .help = "split that is taken of each dataset; unless given: the name of --split"},
    {.name = "force",
     .type = BPT_OPTION_FLAG,
     .offset = offsetof(merge_options, force),
     .help = "replace the split if it is there; the old one stays until the new one\nis whole"},
};

static const bpt_command merge_usage = {
    .name = "bpt-ingest merge",
    .synopsis = "DATASET DATASET... --out DATASET --split NAME [option...]",
    .summary = "Stores images of several datasets, one after another; classes are matched by name.",
    .epilogue = BPT_INGEST_EXIT_STATUS,
    .options = merge_table,
    .n_options = sizeof merge_table / sizeof *merge_table,
    .min_operands = 2,
    .max_operands = -1,
};

/* One of the datasets that are read. */
typedef struct part {
    bpt_dataset *dataset;
    const bpt_dataset_info *info;
    const bpt_split *split;
    uint32_t *labels; /* number of each of its classes in the merged dataset, shape [n_classes] */
    const char *name;
} part;

typedef struct merge {
    const merge_options *o;
    part *parts; /* shape [n] */
    size_t n;
    const char **classes; /* merged, shape [n_classes] */
    uint32_t n_classes;
    uint64_t count;
    bpt_writer *writer;
} merge;

/* ---- classes ---- */

/* A class of one of the datasets. */
typedef struct origin {
    const char *name;
    size_t part;
    uint32_t number;
} origin;

static int compare_place(const origin *x, const origin *y) {
    if (x->part != y->part) return x->part < y->part ? -1 : 1;
    return (x->number > y->number) - (x->number < y->number);
}

static int by_name(const void *a, const void *b) {
    const int order = strcmp(((const origin *)a)->name, ((const origin *)b)->name);
    return order ? order : compare_place(a, b);
}

static int by_place(const void *a, const void *b) {
    return compare_place(a, b);
}

/* Numbers the names in the order in which they first come; all datasets' label tables follow.
 * @param all shape [n], sorted by name
 * @param firsts shape [n], room for work */
static void number_classes(merge *m, const origin *all, size_t n, origin *firsts) {
    for (size_t i = 0; i < n; i++)
        if (i == 0 || strcmp(all[i].name, all[i - 1].name) != 0) firsts[m->n_classes++] = all[i];
    qsort(firsts, m->n_classes, sizeof *firsts, by_place);
    for (uint32_t i = 0; i < m->n_classes; i++) {
        m->classes[i] = firsts[i].name;
        m->parts[firsts[i].part].labels[firsts[i].number] = i;
    }
    for (size_t i = 1; i < n; i++) /* the first of its name has its number by now */
        if (strcmp(all[i].name, all[i - 1].name) == 0)
            m->parts[all[i].part].labels[all[i].number] =
                m->parts[all[i - 1].part].labels[all[i - 1].number];
}

static bpt_status merge_classes(merge *m) {
    size_t n = 0;
    for (size_t i = 0; i < m->n; i++) n += m->parts[i].info->n_classes;
    origin *all = NULL, *firsts = NULL;
    bpt_status status;
    BPT_TRY_GOTO(status, BPT_NEW("class names", n, &m->classes), done);
    BPT_TRY_GOTO(status, BPT_NEW("class names", n, &all), done);
    BPT_TRY_GOTO(status, BPT_NEW("class names", n, &firsts), done);
    size_t at = 0;
    for (size_t i = 0; i < m->n; i++) {
        part *p = &m->parts[i];
        BPT_TRY_GOTO(status, BPT_NEW("labels", p->info->n_classes, &p->labels), done);
        for (uint32_t c = 0; c < p->info->n_classes; c++)
            all[at++] = (origin){p->info->classes[c], i, c};
    }
    qsort(all, n, sizeof *all, by_name);
    number_classes(m, all, n, firsts);
done:
    bpt_free(all);
    bpt_free(firsts);
    return status;
}

/* ---- the work ---- */

/* LMDB opens a file once in a process; and images that are there twice are seen twice as often. */
static bpt_status check_once(char *const *paths, size_t n) {
    for (size_t i = 0; i < n; i++)
        for (size_t j = 0; j < i; j++) {
            if (!bpt_dataset_is_same(paths[i], paths[j])) continue;
            const bpt_status status =
                bpt_fail(BPT_EUSAGE, "%s and %s are the same dataset", paths[j], paths[i]);
            bpt_hint("name each of them once");
            return status;
        }
    return BPT_OK;
}

static bpt_status open_part(merge *m, part *p, const char *path) {
    BPT_TRY(bpt_record_check_apart(path, m->o->out));
    BPT_TRY(bpt_dataset_open(path, &p->dataset));
    p->info = bpt_dataset_describe(p->dataset);
    p->name = bpt_record_base_name(path);
    BPT_TRY(bpt_dataset_find(p->dataset, m->o->from ? m->o->from : m->o->split, &p->split));
    m->count += p->split->count;
    const bpt_dataset_info *first = m->parts[0].info;
    if (p->info->encoded != first->encoded)
        return bpt_fail(BPT_EDATA, "%s holds %s images, %s %s ones", path,
                        p->info->encoded ? "encoded" : "raw", first->path,
                        first->encoded ? "encoded" : "raw");
    if (p->info->encoded && p->info->C != first->C)
        return bpt_fail(BPT_EDATA, "%s holds images of %u channels, %s of %u", path, p->info->C,
                        first->path, first->C);
    if (p->info->C == first->C && p->info->H == first->H && p->info->W == first->W) return BPT_OK;
    return bpt_fail(BPT_EDATA, "%s holds images of %ux%ux%u (CxHxW), %s of %ux%ux%u", path,
                    p->info->C, p->info->H, p->info->W, first->path, first->C, first->H, first->W);
}

static bpt_status open_writer(merge *m) {
    const bpt_dataset_info *first = m->parts[0].info;
    const char **names;
    BPT_TRY(BPT_NEW("source names", m->n, &names));
    for (size_t i = 0; i < m->n; i++) names[i] = m->parts[i].name;
    const bpt_writer_options options = {.split = m->o->split,
                                        .replace = m->o->force,
                                        .encoded = first->encoded,
                                        .C = first->C,
                                        .H = first->H,
                                        .W = first->W,
                                        .n_classes = m->n_classes,
                                        .class_names = m->classes,
                                        .importer = "merge",
                                        .sources = names,
                                        .n_sources = m->n};
    const bpt_status status = bpt_writer_open(m->o->out, &options, &m->writer);
    bpt_free(names);
    return status;
}

static bpt_status copy_parts(merge *m) {
    bpt_ingest_progress progress = bpt_ingest_progress_start("merged");
    uint64_t done = 0;
    bpt_status status = BPT_OK;
    for (size_t i = 0; i < m->n && status == BPT_OK; i++) {
        const part *p = &m->parts[i];
        const bpt_record_choice all = {
            .dataset = p->dataset, .split = p->split, .labels = p->labels};
        status = bpt_record_copy(&all, m->writer, &progress, &done, m->count);
    }
    bpt_log_progress_end();
    return status;
}

static bpt_status merge_all(merge *m, char *const *paths) {
    BPT_TRY(check_once(paths, m->n));
    BPT_TRY(BPT_NEW("datasets", m->n, &m->parts));
    for (size_t i = 0; i < m->n; i++) BPT_TRY(open_part(m, &m->parts[i], paths[i]));
    BPT_TRY(merge_classes(m));
    BPT_TRY(open_writer(m));
    BPT_TRY(copy_parts(m));
    return bpt_writer_commit(m->writer);
}

static void end(merge *m) {
    bpt_writer_close(m->writer);
    for (size_t i = 0; m->parts && i < m->n; i++) {
        bpt_dataset_close(m->parts[i].dataset);
        bpt_free(m->parts[i].labels);
    }
    bpt_free(m->parts);
    bpt_free(m->classes);
}

static bpt_status run_merge(int argc, char **argv) {
    merge_options o;
    bpt_option_request request;
    bpt_option_set *set;
    BPT_TRY(bpt_options_parse(&merge_usage, argc, argv, &o, &request, &set));
    bpt_status status = BPT_OK;
    if (request != BPT_REQUEST_RUN) goto done;
    BPT_TRY_GOTO(status, bpt_ingest_check_target(&merge_usage, o.out, o.split), done);
    bpt_interrupt_catch();
    const uint64_t start_ns = bpt_clock_ns();
    int n;
    char *const *paths = bpt_option_operands(set, &n);
    merge m = {.o = &o, .n = (size_t)n};
    status = merge_all(&m, paths);
    bpt_error error;
    bpt_error_get(&error);
    end(&m);
    status = status == BPT_OK
                 ? bpt_ingest_summary(o.out, o.split, NULL, 0, bpt_clock_seconds_since(start_ns))
                 : bpt_error_put(&error);
done:
    bpt_option_set_free(set);
    return status;
}

const bpt_ingest_command bpt_ingest_merge = {"merge", &merge_usage, run_merge};
