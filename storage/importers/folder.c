/* A folder for each class. The folders right below the given one are the classes, in byte order of
 * their names; every file below such a folder, however deep, is an image of its class, and the
 * images of a class come in byte order of their paths. Names that begin with a dot are passed over.
 * Links are followed. What is no image is a bad file, not passed over in silence; files beside the
 * class folders belong to no class, which a warning tells. */
#include "base/file.h"
#include "base/log.h"
#include "base/memory.h"
#include "base/text.h"
#include "storage/importers/class_table.h"
#include "storage/importers/encoded_file.h"
#include "storage/importers/file_list.h"
#include "storage/importers/importer.h"

#include <sys/stat.h>

#include <dirent.h>
#include <errno.h>
#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>

enum { MAX_DEPTH = 32 }; /* of folders; a link may lead back */

typedef struct folder {
    char *path; /* without slashes at its end */
    bpt__class_table classes;
    bpt__file_list files; /* paths below .path */
    uint64_t next;
} folder;

static void folder_close(void *import) {
    folder *f = import;
    if (!f) return;
    bpt__class_table_free(&f->classes);
    bpt__file_list_free(&f->files);
    bpt_free(f->path);
    bpt_free(f);
}

/* ---- the walk ---- */

/* @param dir what the entry is in */
static bool is_folder(DIR *dir, const struct dirent *entry) {
    if (entry->d_type != DT_LNK && entry->d_type != DT_UNKNOWN) return entry->d_type == DT_DIR;
    struct stat info;
    return fstatat(dirfd(dir), entry->d_name, &info, 0) == 0 && S_ISDIR(info.st_mode);
}

/* What to do with an entry of a folder. @param below its path without the folder of all */
typedef bpt_status (*visit_fn)(folder *f, const char *below, bool is_folder, void *arg);

/* The path of an entry below the folder of all, in memory that all entries of a folder use: there
 * may be a million. */
typedef struct entry_path {
    char *text; /* that of the folder and a slash, or nothing; behind it the entry's name */
    size_t capacity, n_folder;
} entry_path;

static bpt_status entry_path_set(entry_path *p, const char *name) {
    const size_t size = strlen(name) + 1;
    BPT_TRY(BPT_GROW("path", p->n_folder + size, &p->text, &p->capacity));
    memcpy(p->text + p->n_folder, name, size);
    return BPT_OK;
}

static bpt_status entry_path_begin(entry_path *p, const char *below) {
    BPT_TRY(entry_path_set(p, below));
    if (!*below) return BPT_OK;
    p->n_folder = strlen(below) + 1;
    p->text[p->n_folder - 1] = '/'; /* in place of the end, which comes with a name */
    return BPT_OK;
}

/* @param path of the folder, for messages */
static bpt_status visit_all(folder *f, DIR *dir, const char *path, entry_path *at, visit_fn visit,
                            void *arg) {
    for (;;) {
        errno = 0;
        const struct dirent *entry = readdir(dir);
        if (!entry) return errno ? bpt_fail_errno(errno, "read", path) : BPT_OK;
        if (entry->d_name[0] == '.') continue;
        BPT_TRY(entry_path_set(at, entry->d_name));
        BPT_TRY(visit(f, at->text, is_folder(dir, entry), arg));
    }
}

/* @param below path of the folder without the folder of all; "" for that one */
static bpt_status visit_entries(folder *f, const char *below, visit_fn visit, void *arg) {
    char *path;
    entry_path at = {0};
    DIR *dir = NULL;
    bpt_status status;
    BPT_TRY(bpt_strf(&path, "%s/%s", f->path, below));
    BPT_TRY_GOTO(status, entry_path_begin(&at, below), done);
    dir = opendir(path);
    status = dir ? visit_all(f, dir, path, &at, visit, arg)
                 : bpt_fail_errno(errno, "open", *below ? path : f->path);
done:
    if (dir) closedir(dir);
    bpt_free(at.text);
    bpt_free(path);
    return status;
}

typedef struct place {
    uint32_t label;
    unsigned depth;
} place;

static bpt_status collect(folder *f, const char *below, bool is_down, void *arg) {
    const place *p = arg;
    if (!is_down) return bpt__file_list_add(&f->files, below, p->label);
    if (p->depth == MAX_DEPTH)
        return bpt_fail(BPT_EDATA,
                        "%s/%s lies more than %d folders deep: does a link lead back up?", f->path,
                        below, MAX_DEPTH);
    place deeper = {p->label, p->depth + 1};
    return visit_entries(f, below, collect, &deeper);
}

typedef struct top {
    bpt__class_table folders;
    uint64_t n_files;
    char first_file[64];
} top;

static bpt_status look_at_top(folder *f, const char *below, bool is_down, void *arg) {
    top *t = arg;
    uint32_t number;
    if (is_down) return bpt__class_table_add(&t->folders, f->path, below, &number);
    if (t->n_files++ == 0) bpt_text_escape(below, t->first_file, sizeof t->first_file);
    return BPT_OK;
}

/* What to give in place of a file, after the error of having opened that as a folder. */
static void hint_at_importer(const char *file) {
    const char *dot = strrchr(file, '.');
    if (dot && strcmp(dot, ".tar") == 0)
        bpt_hint("shards of WebDataset: bpt-ingest webdataset FILE...");
    else
        bpt_hint(
            "name a folder that has a folder for each class; what takes files: "
            "`bpt-ingest --help`");
}

static void hint_at_layout(void) {
    bpt_hint("the images of each class lie in a folder of its name: FOLDER/cat/1.jpg");
}

static bpt_status no_folders(const folder *f, const top *t) {
    const bpt_status status =
        bpt_fail(BPT_EDATA, "%s holds no folders: there should be one for each class", f->path);
    if (t->n_files > 0)
        bpt_hint("images whose classes a text file tells: bpt-ingest list FILE");
    else
        hint_at_layout();
    return status;
}

static bpt_status no_files(const folder *f) {
    const bpt_status status = bpt_fail(BPT_EDATA, "no folder in %s holds files", f->path);
    hint_at_layout();
    return status;
}

/* Every folder must be one of the classes that are known, if any are. */
static bpt_status settle_classes(folder *f, const bpt_import_source *source, top *t) {
    if (t->folders.n == 0) return no_folders(f, t);
    uint32_t *numbers;
    BPT_TRY(bpt__class_table_sort(&t->folders, &numbers));
    bpt_free(numbers);
    if (!source->class_names) {
        f->classes = t->folders;
        t->folders = (bpt__class_table){0};
        return BPT_OK;
    }
    BPT_TRY(bpt__class_table_fill(&f->classes, source->class_names, source->n_class_names));
    for (uint32_t i = 0; i < t->folders.n; i++) {
        uint32_t number;
        if (!bpt__class_table_find(&f->classes, t->folders.names[i], &number))
            return bpt__class_unknown(&f->classes, f->path, t->folders.names[i]);
    }
    return BPT_OK;
}

static bpt_status survey(folder *f, const bpt_import_source *source) {
    top t = {.n_files = 0};
    if (!*source->files[0]) return bpt_fail_errno(ENOENT, "open", "\"\"");
    BPT_TRY(bpt_strdup(source->files[0], &f->path));
    for (size_t n = strlen(f->path); n > 1 && f->path[n - 1] == '/';) f->path[--n] = '\0';
    bpt_status status = visit_entries(f, "", look_at_top, &t);
    if (status == BPT_ENOENT && bpt_path_exists(f->path)) hint_at_importer(f->path);
    if (status != BPT_OK) goto done;
    BPT_TRY_GOTO(status, settle_classes(f, source, &t), done);
    for (uint32_t i = 0; i < f->classes.n; i++) {
        place p = {i, 1};
        const size_t from = f->files.n;
        uint32_t number;
        if (source->class_names && !bpt__class_table_find(&t.folders, f->classes.names[i], &number))
            continue; /* a class without a folder: the summary warns of it */
        BPT_TRY_GOTO(status, visit_entries(f, f->classes.names[i], collect, &p), done);
        bpt__file_list_sort(&f->files, from);
    }
    if (f->files.n == 0) status = no_files(f);
    if (status == BPT_OK && t.n_files > 0)
        bpt_warn("%s: %" PRIu64 " file%s beside the class folders passed over, such as %s", f->path,
                 t.n_files, t.n_files == 1 ? "" : "s", t.first_file);
done:
    bpt__class_table_free(&t.folders);
    return status;
}

/* ---- the importer ---- */

static bpt_status folder_open(const bpt_import_source *source, bpt_import_plan *plan,
                              void **import) {
    if (source->n_files != 1)
        return bpt_fail(BPT_EUSAGE, "folder takes one folder, not %zu", source->n_files);
    folder *f;
    BPT_TRY(BPT_NEW("folder import", 1, &f));
    const bpt_status status = survey(f, source);
    if (status != BPT_OK) {
        folder_close(f);
        return status;
    }
    *plan = (bpt_import_plan){.count = f->files.n,
                              .n_classes = f->classes.n,
                              .class_names = (const char *const *)f->classes.names};
    *import = f;
    return BPT_OK;
}

static bpt_status folder_next(void *import, bpt_import_item *item) {
    folder *f = import;
    item->number = f->next++;
    return BPT_OK;
}

static void folder_describe(void *import, const bpt_import_item *item, char *name, size_t size) {
    const folder *f = import;
    char path[PATH_MAX];
    snprintf(path, sizeof path, "%s/%s", f->path, bpt__file_list_name(&f->files, item->number));
    bpt_text_escape(path, name, size);
}

static bpt_status folder_load(void *import, const bpt_import_item *item, bpt_import_buffer *buffer,
                              bpt_import_image *image) {
    const folder *f = import;
    char *path;
    size_t size;
    BPT_TRY(bpt_strf(&path, "%s/%s", f->path, bpt__file_list_name(&f->files, item->number)));
    const bpt_status status = bpt__encoded_file_read(path, buffer, &size);
    bpt_free(path);
    BPT_TRY(status);
    *image = (bpt_import_image){.label = f->files.entries[item->number].label,
                                .encoded = true,
                                .bytes = buffer->bytes,
                                .size = size};
    return BPT_OK;
}

static bool folder_changed(void *import, const bpt_import_item *item, struct timespec *when) {
    const folder *f = import;
    char *path;
    const char *name = bpt__file_list_name(&f->files, item->number);
    if (bpt_strf(&path, "%s/%s", f->path, name) != BPT_OK) return false;
    const bool known = bpt__encoded_file_changed(path, when);
    bpt_free(path);
    return known;
}

static uint64_t folder_identify(void *import) {
    const folder *f = import;
    return bpt__file_list_identify(&f->files);
}

const bpt_importer bpt__import_folder = {.name = "folder",
                                         .open = folder_open,
                                         .next = folder_next,
                                         .load = folder_load,
                                         .identify = folder_identify,
                                         .changed = folder_changed,
                                         .describe = folder_describe,
                                         .close = folder_close};
