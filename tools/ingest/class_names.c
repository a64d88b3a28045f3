#include "tools/ingest/class_names.h"

#include "base/file.h"
#include "base/memory.h"
#include "storage/dataset/dataset.h"
#include "storage/dataset/names.h"

#include <inttypes.h>
#include <stdbool.h>
#include <string.h>

void bpt_class_names_free(bpt_class_names *names) {
    bpt_free(names->text);
    bpt_free(names->names);
    *names = (bpt_class_names){0};
}

static bpt_status add(bpt_class_names *list, const char *name) {
    BPT_TRY(BPT_GROW("class names", list->n + 1, &list->names, &list->capacity));
    list->names[list->n++] = name;
    return BPT_OK;
}

/* Empty lines at the end are no classes; one in between is a mistake. Some editors begin a file
 * with a byte order mark. */
static bpt_status read_names(const char *path, bpt_class_names *list) {
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
        BPT_TRY(add(list, line));
    }
    if (list->n > BPT_IMPORT_MAX_CLASSES)
        return bpt_fail(BPT_EDATA, "%s names %zu classes, and a dataset has at most %d", path,
                        list->n, BPT_IMPORT_MAX_CLASSES);
    if (list->n == 0) return bpt_fail(BPT_EDATA, "%s names no class", path);
    return bpt_class_names_check(path, list->names, list->n, BPT_EDATA);
}

/* Copies them, for the dataset must be closed before it is written. */
static bpt_status copy_names(const bpt_dataset_info *info, bpt_class_names *list) {
    size_t size = 0;
    for (uint32_t i = 0; i < info->n_classes; i++) size += strlen(info->classes[i]) + 1;
    BPT_TRY(bpt_alloc("class names", size, 1, (void **)&list->text));
    char *at = list->text;
    for (uint32_t i = 0; i < info->n_classes; i++) {
        const size_t length = strlen(info->classes[i]) + 1;
        memcpy(at, info->classes[i], length);
        BPT_TRY(add(list, at));
        at += length;
    }
    list->of_dataset = true;
    return BPT_OK;
}

/* What is wrong with a dataset, its writer will tell. One whose only split is replaced may get
 * other classes. */
static bpt_status ask_dataset(const bpt_ingest_options *o, bpt_class_names *list) {
    bpt_dataset *dataset;
    const bpt_split *split;
    if (!bpt_path_exists(o->out) || bpt_dataset_open(o->out, &dataset) != BPT_OK) return BPT_OK;
    const bpt_dataset_info *info = bpt_dataset_describe(dataset);
    const bool replaced = !o->append && bpt_dataset_find(dataset, o->split, &split) == BPT_OK;
    bpt_status status = BPT_OK;
    if (info->n_splits > (replaced ? 1 : 0)) {
        list->C = info->C;
        if (!o->class_names) status = copy_names(info, list);
    }
    bpt_dataset_close(dataset);
    return status;
}

bpt_status bpt_class_names_find(const bpt_ingest_options *o, bpt_class_names *names) {
    if (o->class_names) BPT_TRY(read_names(o->class_names, names));
    return ask_dataset(o, names);
}

static bpt_status other_number(const bpt_ingest_options *o, const bpt_import_plan *plan) {
    return o->class_names
               ? bpt_fail(BPT_EUSAGE, "--classes says %" PRId64 ", but %s names %u classes",
                          o->classes, o->class_names, plan->n_classes)
               : bpt_fail(BPT_EUSAGE, "--classes says %" PRId64 ", but there are %u names",
                          o->classes, plan->n_classes);
}

bpt_status bpt_class_names_settle(const bpt_class_names *names, const bpt_ingest_options *o,
                                  bpt_import_plan *plan) {
    const uint32_t found = plan->n_classes;
    if (names->n > 0 && !names->of_dataset) {
        plan->class_names = names->names;
        plan->n_classes = (uint32_t)names->n;
    } else if (o->classes && !plan->class_names) {
        plan->n_classes = (uint32_t)o->classes;
    }
    if (o->classes && o->classes != plan->n_classes) return other_number(o, plan);
    if (found <= plan->n_classes) return BPT_OK;
    const bpt_status status =
        bpt_fail(BPT_EDATA, "the labels go up to %u, but there are %u classes (0 to %u)", found - 1,
                 plan->n_classes, plan->n_classes - 1);
    bpt_hint("check the labels, or give the right number of classes");
    return status;
}
