/* bpt-ingest idx, cifar, glyphs: from an importer into a writer. */
#include "base/clock.h"
#include "base/file.h"
#include "base/log.h"
#include "base/memory.h"
#include "base/text.h"
#include "storage/dataset.h"
#include "storage/importer.h"
#include "storage/writer.h"
#include "tools/ingest/ingest_commands.h"
#include "tools/ingest/ingest_progress.h"
#include "tools/interrupt.h"
#include "tools/program.h"

#include <inttypes.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

typedef struct import_options {
    const char *out, *split;
    bool force;
    int64_t classes; /* 0: not given */
    const char *class_names;
    int64_t count, seed;
} import_options;

#define OPTIONS_OF_ALL                                                                             \
    {.name = "out",                                                                                \
     .type = BPT_OPTION_TEXT,                                                                      \
     .offset = offsetof(import_options, out),                                                      \
     .unit = "DATASET",                                                                            \
     .group = "where to",                                                                          \
     .help = "folder of the dataset; made if it is not there"},                                    \
        {.name = "split",                                                                          \
         .type = BPT_OPTION_TEXT,                                                                  \
         .offset = offsetof(import_options, split),                                                \
         .unit = "NAME",                                                                           \
         .help = "name of the split, such as train or test"},                                      \
    {                                                                                              \
        .name = "force", .type = BPT_OPTION_FLAG, .offset = offsetof(import_options, force),       \
        .help = "replace the split if it is there; the old one stays until the new one\nis whole"  \
    }

static const bpt_option idx_options[] = {
    OPTIONS_OF_ALL,
    {.name = "classes",
     .type = BPT_OPTION_INT,
     .offset = offsetof(import_options, classes),
     .min = 1,
     .max = 256,
     .unit = "N",
     .group = "classes",
     .help = "number of classes; a label from N on is an error; unless given: as\nmany as the "
             "dataset has, in a new one up to the highest label"},
    {.name = "class-names",
     .type = BPT_OPTION_TEXT,
     .offset = offsetof(import_options, class_names),
     .unit = "FILE",
     .help = "text file with the name of one class a line, from class 0 on"},
};

static const bpt_option cifar_options[] = {OPTIONS_OF_ALL};

static const bpt_option glyphs_options[] = {
    OPTIONS_OF_ALL,
    {.name = "count",
     .type = BPT_OPTION_INT,
     .offset = offsetof(import_options, count),
     .value = "10000",
     .min = 1,
     .max = 4294967295.0,
     .unit = "N",
     .group = "images",
     .help = "how many images to draw"},
    {.name = "seed",
     .type = BPT_OPTION_INT,
     .offset = offsetof(import_options, seed),
     .value = "1",
     .min = 0,
     .max = 9007199254740992.0,
     .unit = "SEED",
     .help = "seed of what is drawn; splits of other names differ also with the same"},
};

static const bpt_command idx_usage = {
    .name = "bpt-ingest idx",
    .synopsis = "IMAGES LABELS --out DATASET --split NAME [option...]",
    .summary = "Stores images and labels in the IDX format of MNIST, plain or gzip.",
    .epilogue = BPT_INGEST_EXIT_STATUS,
    .options = idx_options,
    .n_options = sizeof idx_options / sizeof *idx_options,
    .min_operands = 2,
    .max_operands = 2,
};

static const bpt_command cifar_usage = {
    .name = "bpt-ingest cifar",
    .synopsis = "FILE... --out DATASET --split NAME [option...]",
    .summary =
        "Stores files of the binary version of CIFAR-10 or CIFAR-100 (with its fine labels).",
    .epilogue = BPT_INGEST_EXIT_STATUS,
    .options = cifar_options,
    .n_options = sizeof cifar_options / sizeof *cifar_options,
    .min_operands = 1,
    .max_operands = -1,
};

static const bpt_command glyphs_usage = {
    .name = "bpt-ingest glyphs",
    .synopsis = "--out DATASET --split NAME [option...]",
    .summary = "Draws digits, 28x28 and grey, and stores them: data to try training with.",
    .epilogue = BPT_INGEST_EXIT_STATUS,
    .options = glyphs_options,
    .n_options = sizeof glyphs_options / sizeof *glyphs_options,
    .min_operands = 0,
    .max_operands = 0,
};

/* ---- class names ---- */

typedef struct name_list {
    char *text; /* lines, each ended by 0 */
    const char **names;
    size_t n, capacity;
} name_list;

static void free_names(name_list *list) {
    bpt_free(list->text);
    bpt_free(list->names);
}

/* Empty lines at the end are no classes; one in between is a mistake that the writer reports. Some
 * editors begin a file with a byte order mark. */
static bpt_status read_names(const char *path, name_list *list) {
    static const char mark[] = "\xEF\xBB\xBF";
    size_t size;
    BPT_TRY(bpt_file_read(path, 16 << 20, &list->text, &size));
    if (memchr(list->text, '\0', size))
        return bpt_fail(BPT_EDATA, "%s is no text in UTF-8: it holds a 0 byte", path);
    while (size > 0 && strchr("\r\n", list->text[size - 1])) list->text[--size] = '\0';
    const bool marked = strncmp(list->text, mark, sizeof mark - 1) == 0;
    for (char *line = list->text + (marked ? sizeof mark - 1 : 0), *next; line && *line;
         line = next) {
        next = strchr(line, '\n');
        if (next) *next++ = '\0';
        const size_t length = strlen(line);
        if (length > 0 && line[length - 1] == '\r') line[length - 1] = '\0';
        BPT_TRY(BPT_GROW("class names", list->n + 1, &list->names, &list->capacity));
        list->names[list->n++] = line;
    }
    return list->n > 0 ? BPT_OK : bpt_fail(BPT_EDATA, "%s names no class", path);
}

/* Settles number and names of the classes between options and source. */
static bpt_status settle_classes(const import_options *o, const name_list *list,
                                 bpt_import_plan *plan) {
    const uint32_t found = plan->n_classes;
    if (list->n > 0) {
        plan->class_names = list->names;
        plan->n_classes = (uint32_t)list->n;
        if (o->classes && (size_t)o->classes != list->n)
            return bpt_fail(BPT_EUSAGE, "--classes says %" PRId64 ", but %s names %zu classes",
                            o->classes, o->class_names, list->n);
    } else if (o->classes) {
        plan->n_classes = (uint32_t)o->classes;
    }
    if (found <= plan->n_classes) return BPT_OK;
    const bpt_status status =
        bpt_fail(BPT_EDATA, "the labels go up to %u, but there are %u classes (0 to %u)", found - 1,
                 plan->n_classes, plan->n_classes - 1);
    bpt_hint("check the labels file, or give the right number of classes");
    return status;
}

/* ---- the work ---- */

static bpt_status check_interrupt(void) {
    return bpt_interrupt_check(
        "nothing is stored",
        "the dataset is as it was before; run the same command again to start over");
}

static bpt_status copy_records(const bpt_importer *importer, void *import,
                               const bpt_import_plan *plan, const char *split, bpt_writer *writer) {
    uint8_t *pixels;
    BPT_TRY(bpt_alloc("image", (size_t)plan->C * plan->H, plan->W, (void **)&pixels));
    char verb[128];
    snprintf(verb, sizeof verb, "%s: stored", split);
    bpt_ingest_progress progress = bpt_ingest_progress_start(verb);
    bpt_status status = BPT_OK;
    for (uint64_t i = 0; i < plan->count; i++) {
        uint32_t label;
        BPT_TRY_GOTO(status, importer->next(import, pixels, &label), done);
        BPT_TRY_GOTO(status, bpt_writer_append(writer, pixels, label), done);
        BPT_TRY_GOTO(status, check_interrupt(), done);
        if (i % 256 == 0) bpt_ingest_progress_show(&progress, i, plan->count);
    }
done:
    bpt_log_progress_end();
    bpt_free(pixels);
    return status;
}

/* The names of the files, without their folders: what is worth knowing on another machine. */
static bpt_status base_names(const bpt_import_source *source, const char ***out) {
    const char **names;
    BPT_TRY(BPT_NEW("source names", source->n_files, &names));
    for (size_t i = 0; i < source->n_files; i++) {
        const char *slash = strrchr(source->files[i], '/');
        names[i] = slash ? slash + 1 : source->files[i];
    }
    *out = names;
    return BPT_OK;
}

static bpt_status store(const bpt_importer *importer, const import_options *o,
                        const bpt_import_source *source, void *import,
                        const bpt_import_plan *plan) {
    bpt_writer *writer = NULL;
    const char **sources;
    BPT_TRY(base_names(source, &sources));
    const bpt_writer_options options = {
        .split = o->split,
        .replace = o->force,
        .C = plan->C,
        .H = plan->H,
        .W = plan->W,
        .n_classes = plan->n_classes,
        .class_names = plan->class_names,
        .importer = importer->name,
        .sources = sources,
        .n_sources = source->n_files,
        .seed = importer->draws ? source->seed : 0,
    };
    bpt_status status;
    BPT_TRY_GOTO(status, bpt_writer_open(o->out, &options, &writer), done);
    BPT_TRY_GOTO(status, copy_records(importer, import, plan, o->split, writer), done);
    status = bpt_writer_commit(writer);
done:
    bpt_writer_close(writer);
    bpt_free(sources);
    return status;
}

static void report_classes(const bpt_dataset_info *info, const bpt_split *split) {
    uint32_t n_empty = 0, first_empty = 0;
    for (uint32_t i = info->n_classes; i-- > 0;)
        if (split->per_class[i] == 0) {
            n_empty++;
            first_empty = i;
        }
    char line[512] = "", item[80], name[41];
    uint32_t i = 0;
    for (; i < info->n_classes && strlen(line) < 400; i++) {
        bpt_text_escape(info->classes[i], name, sizeof name);
        snprintf(item, sizeof item, "%s %" PRIu64, name, split->per_class[i]);
        bpt_list_add(line, sizeof line, item);
    }
    bpt_info("%s: per class: %s%s", split->name, line, i == info->n_classes ? "" : ", ...");
    if (n_empty == 0) return;
    bpt_text_escape(info->classes[first_empty], name, sizeof name);
    bpt_warn("%s: %u of %u classes have no images, the first of them is %s", split->name, n_empty,
             info->n_classes, name);
}

static bpt_status report(const import_options *o, double seconds) {
    bpt_dataset *dataset;
    BPT_TRY(bpt_dataset_open(o->out, &dataset));
    const bpt_dataset_info *info = bpt_dataset_describe(dataset);
    const bpt_split *split;
    const bpt_status status = bpt_dataset_find(dataset, o->split, &split);
    if (status == BPT_OK) {
        bpt_info(
            "%s: %u image%s of %ux%ux%u (CxHxW) in %u class%s stored in %s, %.1f s, "
            "%.0f img/s",
            split->name, split->count, split->count == 1 ? "" : "s", info->C, info->H, info->W,
            info->n_classes, info->n_classes == 1 ? "" : "es", o->out, seconds,
            (double)split->count / seconds);
        report_classes(info, split);
    }
    bpt_dataset_close(dataset);
    return status;
}

static bpt_status import_into(const bpt_importer *importer, const import_options *o,
                              const bpt_import_source *source) {
    const uint64_t start_ns = bpt_clock_ns();
    name_list names = {0};
    void *import = NULL;
    bpt_import_plan plan;
    bpt_status status = BPT_OK;
    if (o->class_names) BPT_TRY_GOTO(status, read_names(o->class_names, &names), done);
    BPT_TRY_GOTO(status, importer->open(source, &plan, &import), done);
    BPT_TRY_GOTO(status, settle_classes(o, &names, &plan), done);
    BPT_TRY_GOTO(status, store(importer, o, source, import, &plan), done);
    status = report(o, bpt_clock_seconds_since(start_ns));
done:
    if (import) importer->close(import);
    free_names(&names);
    return status;
}

static bpt_status run_import(const char *name, const bpt_command *usage, int argc, char **argv) {
    import_options o = {0}; /* a command has rows for some of its fields only */
    bpt_option_request request;
    bpt_option_set *set;
    BPT_TRY(bpt_options_parse(usage, argc, argv, &o, &request, &set));
    bpt_status status = BPT_OK;
    if (request != BPT_REQUEST_RUN) goto done;
    const char *missing = !bpt_program_has(o.out)     ? "--out DATASET"
                          : !bpt_program_has(o.split) ? "--split NAME"
                                                      : NULL;
    if (missing) {
        status = bpt_fail(BPT_EUSAGE, "%s is missing", missing);
        bpt_hint("usage: %s %s", usage->name, usage->synopsis);
        goto done;
    }
    int n_files;
    char *const *files = bpt_option_operands(set, &n_files);
    const bpt_import_source source = {.files = files,
                                      .n_files = (size_t)n_files,
                                      .count = (uint64_t)o.count,
                                      .seed = (uint64_t)o.seed,
                                      .split = o.split};
    bpt_interrupt_catch();
    status = import_into(bpt_importer_find(name), &o, &source);
done:
    bpt_option_set_free(set);
    return status;
}

static bpt_status run_idx(int argc, char **argv) {
    return run_import("idx", &idx_usage, argc, argv);
}

static bpt_status run_cifar(int argc, char **argv) {
    return run_import("cifar", &cifar_usage, argc, argv);
}

static bpt_status run_glyphs(int argc, char **argv) {
    return run_import("glyphs", &glyphs_usage, argc, argv);
}

const bpt_ingest_command bpt_ingest_idx = {"idx", &idx_usage, run_idx};
const bpt_ingest_command bpt_ingest_cifar = {"cifar", &cifar_usage, run_cifar};
const bpt_ingest_command bpt_ingest_glyphs = {"glyphs", &glyphs_usage, run_glyphs};
