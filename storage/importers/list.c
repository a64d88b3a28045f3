/* A text file that lists images: a line "PATH LABEL" each, where the label is what follows the last
 * tab, or else the last space. Labels are the names of classes, or their numbers from 0 on: names
 * where the classes are known beforehand and have such a name, or where any label of the list is no
 * number; then the classes are in byte order. Paths are relative to the folder of the list, or to
 * the one that is given. Empty lines are passed over. */
#include "base/checksum.h"
#include "base/file.h"
#include "base/log.h"
#include "base/memory.h"
#include "base/text.h"
#include "storage/importers/class_table.h"
#include "storage/importers/encoded_file.h"
#include "storage/importers/importer.h"

#include <limits.h>
#include <stdio.h>
#include <string.h>

static const size_t max_bytes = (size_t)4 << 30; /* of the list: some 50 million lines */

static const uint32_t no_class = UINT32_MAX;

typedef struct entry {
    const char *path;       /* where there is no label: the whole line */
    const char *label_text; /* NULL: there is none */
    uint32_t label;         /* no_class: none, or one that is none */
    uint32_t line;
} entry;

typedef struct list {
    const char *file; /* borrowed */
    bool skips;       /* a line that is wrong is a bad image, not the end */
    char *root;
    char *text;     /* of the list; entries point into it */
    entry *entries; /* shape [n] */
    size_t n, capacity;
    bpt__class_table classes;
    uint32_t n_classes;
    uint64_t next;
} list;

static void list_close(void *import) {
    list *l = import;
    if (!l) return;
    bpt__class_table_free(&l->classes);
    bpt_free(l->entries);
    bpt_free(l->text);
    bpt_free(l->root);
    bpt_free(l);
}

/* ---- lines ---- */

static void trim_end(char *text) {
    size_t n = strlen(text);
    while (n > 0 && strchr(" \t\r", text[n - 1])) text[--n] = '\0';
}

static bpt_status no_label(const list *l, const entry *e) {
    const bpt_status status =
        bpt_fail(BPT_EDATA, "%s: line %u is no path and label: \"%s\"", l->file, e->line, e->path);
    bpt_hint("a line is PATH LABEL, the label a number from 0 on or the name of a class");
    return status;
}

static bpt_status add_line(list *l, char *line, uint32_t number) {
    line += strspn(line, " \t");
    trim_end(line);
    if (!*line) return BPT_OK;
    char *gap = strrchr(line, '\t');
    if (!gap) gap = strrchr(line, ' ');
    const entry e = {
        .path = line, .label_text = gap ? gap + 1 : NULL, .label = no_class, .line = number};
    if (!gap && !l->skips) return no_label(l, &e);
    if (gap) *gap = '\0';
    trim_end(line);
    BPT_TRY(BPT_GROW("list", l->n + 1, &l->entries, &l->capacity));
    l->entries[l->n++] = e;
    return BPT_OK;
}

static bpt_status read_lines(list *l) {
    static const char mark[] = "\xEF\xBB\xBF"; /* some editors begin a file with it */
    size_t size;
    BPT_TRY(bpt_file_read(l->file, max_bytes, &l->text, &size));
    if (memchr(l->text, '\0', size))
        return bpt_fail(BPT_EDATA, "%s is no text: it holds a 0 byte", l->file);
    char *line = l->text + (strncmp(l->text, mark, sizeof mark - 1) == 0 ? sizeof mark - 1 : 0);
    for (uint32_t number = 1; line; number++) {
        char *next = strchr(line, '\n');
        if (next) *next++ = '\0';
        BPT_TRY(add_line(l, line, number));
        line = next;
    }
    return l->n > 0 ? BPT_OK : bpt_fail(BPT_EDATA, "%s lists no images", l->file);
}

/* ---- labels ---- */

static void place_of(const list *l, const entry *e, char where[BPT_IMPORT_NAME_SIZE]) {
    snprintf(where, BPT_IMPORT_NAME_SIZE, "%s: line %u", l->file, e->line);
}

static bpt_status wrong_label(const list *l, const entry *e) {
    char where[BPT_IMPORT_NAME_SIZE];
    place_of(l, e, where);
    return bpt__class_unknown(&l->classes, where, e->label_text);
}

/* Of classes that are known: their names, or else their numbers. */
static bool find_known(const list *l, entry *e) {
    uint32_t label;
    if (!bpt__class_table_find(&l->classes, e->label_text, &label) &&
        (!bpt__class_number(e->label_text, &label) || label >= l->classes.n))
        return false;
    e->label = label;
    return true;
}

static bpt_status take_known(list *l) {
    for (size_t i = 0; i < l->n; i++) {
        entry *e = &l->entries[i];
        if (e->label_text && !find_known(l, e) && !l->skips) return wrong_label(l, e);
    }
    l->n_classes = l->classes.n;
    return BPT_OK;
}

static bool has_digits_only(const char *text) {
    return *text && !text[strspn(text, "0123456789")];
}

/* Also where all of them are numbers but too high: names would be a surprise.
 * @return whether all labels are numbers of classes */
static bool take_numbers(list *l) {
    const entry *other = NULL; /* whose label is none */
    bool any = false;
    for (size_t i = 0; i < l->n; i++) {
        entry *e = &l->entries[i];
        if (!e->label_text) continue;
        any |= has_digits_only(e->label_text);
        if (!bpt__class_number(e->label_text, &e->label)) {
            if (!other) other = e;
            continue;
        }
        if (e->label >= l->n_classes) l->n_classes = e->label + 1;
    }
    if (other && any)
        bpt_warn("%s: labels are taken for names, not for numbers from 0 to %d: line %u has \"%s\"",
                 l->file, BPT_IMPORT_MAX_CLASSES - 1, other->line, other->label_text);
    return !other;
}

static bpt_status take_names(list *l) {
    uint32_t *numbers;
    for (size_t i = 0; i < l->n; i++) {
        entry *e = &l->entries[i];
        char where[BPT_IMPORT_NAME_SIZE];
        if (!e->label_text) continue;
        place_of(l, e, where);
        BPT_TRY(bpt__class_table_add(&l->classes, where, e->label_text, &e->label));
    }
    BPT_TRY(bpt__class_table_sort(&l->classes, &numbers));
    for (size_t i = 0; i < l->n; i++)
        if (l->entries[i].label_text) l->entries[i].label = numbers[l->entries[i].label];
    bpt_free(numbers);
    l->n_classes = l->classes.n;
    return BPT_OK;
}

static bpt_status expect_labels(const list *l) {
    return l->n_classes > 0 ? BPT_OK : no_label(l, &l->entries[0]);
}

static bpt_status read_list(list *l, const bpt_import_source *source) {
    const char *slash = strrchr(l->file, '/');
    BPT_TRY(source->root ? bpt_strdup(source->root, &l->root)
            : slash      ? bpt_strf(&l->root, "%.*s", (int)(slash - l->file + 1), l->file)
                         : bpt_strdup(".", &l->root));
    BPT_TRY(read_lines(l));
    if (source->class_names) {
        BPT_TRY(bpt__class_table_fill(&l->classes, source->class_names, source->n_class_names));
        return take_known(l);
    }
    if (!take_numbers(l)) BPT_TRY(take_names(l));
    return expect_labels(l);
}

/* ---- the importer ---- */

static bpt_status list_open(const bpt_import_source *source, bpt_import_plan *plan, void **import) {
    if (source->n_files != 1)
        return bpt_fail(BPT_EUSAGE, "list takes one file, not %zu", source->n_files);
    list *l;
    BPT_TRY(BPT_NEW("list import", 1, &l));
    l->file = source->files[0];
    l->skips = source->skips_bad;
    const bpt_status status = read_list(l, source);
    if (status != BPT_OK) {
        list_close(l);
        return status;
    }
    *plan = (bpt_import_plan){.count = l->n,
                              .n_classes = l->n_classes,
                              .class_names =
                                  l->classes.n ? (const char *const *)l->classes.names : NULL};
    *import = l;
    return BPT_OK;
}

static bpt_status list_next(void *import, bpt_import_item *item) {
    list *l = import;
    item->number = l->next++;
    return BPT_OK;
}

static const char *separator(const list *l, const entry *e, const char **root) {
    *root = e->path[0] == '/' ? "" : l->root;
    const size_t n = strlen(*root);
    return n == 0 || (*root)[n - 1] == '/' ? "" : "/";
}

static void list_describe(void *import, const bpt_import_item *item, char *name, size_t size) {
    const list *l = import;
    const entry *e = &l->entries[item->number];
    const char *root, *slash = separator(l, e, &root);
    char path[PATH_MAX];
    snprintf(path, sizeof path, "%s%s%s", root, slash, e->path);
    bpt_text_escape(path, name, size);
}

static bpt_status list_load(void *import, const bpt_import_item *item, bpt_import_buffer *buffer,
                            bpt_import_image *image) {
    const list *l = import;
    const entry *e = &l->entries[item->number];
    const char *root, *slash = separator(l, e, &root);
    char *path;
    size_t size;
    if (e->label == no_class) return e->label_text ? wrong_label(l, e) : no_label(l, e);
    BPT_TRY(bpt_strf(&path, "%s%s%s", root, slash, e->path));
    bpt_status status = bpt__encoded_file_read(path, buffer, &size);
    bpt_free(path);
    if (status == BPT_ENOENT)
        bpt_hint("%s, line %u names it; --root DIR says what paths are relative to", l->file,
                 e->line);
    BPT_TRY(status);
    *image = (bpt_import_image){
        .label = e->label, .encoded = true, .bytes = buffer->bytes, .size = size};
    return BPT_OK;
}

static bool list_changed(void *import, const bpt_import_item *item, struct timespec *when) {
    const list *l = import;
    const entry *e = &l->entries[item->number];
    const char *root, *slash = separator(l, e, &root);
    char *path;
    if (bpt_strf(&path, "%s%s%s", root, slash, e->path) != BPT_OK) return false;
    const bool known = bpt__encoded_file_changed(path, when);
    bpt_free(path);
    return known;
}

static uint64_t list_identify(void *import) {
    const list *l = import;
    uint64_t identity = bpt_checksum(l->root, strlen(l->root));
    for (size_t i = 0; i < l->n; i++) {
        const entry *e = &l->entries[i];
        const uint64_t all[] = {identity, e->label, bpt_checksum(e->path, strlen(e->path))};
        identity = bpt_checksum(all, sizeof all);
    }
    return identity;
}

const bpt_importer bpt__import_list = {.name = "list",
                                       .open = list_open,
                                       .next = list_next,
                                       .load = list_load,
                                       .identify = list_identify,
                                       .changed = list_changed,
                                       .describe = list_describe,
                                       .close = list_close};
