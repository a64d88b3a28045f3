#include "tools/checkpoint_files.h"

#include "base/checksum.h"
#include "base/file.h"
#include "base/json.h"
#include "base/memory.h"

#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const size_t max_file_bytes = (size_t)1 << 40;

bpt_status bpt_checkpoint_measure(const char *folder, const char *name, bpt_checkpoint_file *file) {
    char *path, *data;
    size_t size;
    BPT_TRY(bpt_strf(&path, "%s/%s", folder, name));
    const bpt_status status = bpt_file_read(path, max_file_bytes, &data, &size);
    bpt_free(path);
    BPT_TRY(status);
    snprintf(file->name, sizeof file->name, "%s", name);
    file->bytes = size;
    file->checksum = bpt_checksum(data, size);
    bpt_free(data);
    return BPT_OK;
}

/* ---- DONE ---- */

static void put_files(bpt_json_writer *w, const bpt_checkpoint_file *files, size_t n) {
    bpt_json_open_object(w, NULL);
    bpt_json_put_u64(w, "format", 1);
    bpt_json_put_text(w, "checksum", BPT_CHECKSUM_NAME);
    bpt_json_open_array(w, "files");
    for (size_t i = 0; i < n; i++) {
        char hex[24];
        snprintf(hex, sizeof hex, "%016llx", (unsigned long long)files[i].checksum);
        bpt_json_open_object(w, NULL);
        bpt_json_put_text(w, "name", files[i].name);
        bpt_json_put_u64(w, "bytes", files[i].bytes);
        bpt_json_put_text(w, "checksum", hex);
        bpt_json_close_object(w);
    }
    bpt_json_close_array(w);
    bpt_json_close_object(w);
}

bpt_status bpt_checkpoint_write_done(const char *folder, const bpt_checkpoint_file *files,
                                     size_t n) {
    bpt_json_writer w = {0};
    const char *text;
    size_t length;
    char *path = NULL;
    put_files(&w, files, n);
    bpt_status status = bpt_json_end_text(&w, &text, &length);
    if (status == BPT_OK) status = bpt_strf(&path, "%s/DONE", folder);
    if (status == BPT_OK) status = bpt_file_write(path, text, length);
    bpt_free(path);
    bpt_json_free(&w);
    return status;
}

static bpt_status verify_entry(const bpt_json_doc *doc, const bpt_json *entry, const char *folder) {
    const char *name, *hex;
    uint64_t bytes;
    bpt_checkpoint_file file;
    BPT_TRY(bpt_json_get_text(doc, entry, "name", &name));
    BPT_TRY(bpt_json_get_u64(doc, entry, "bytes", 0, UINT64_MAX, &bytes));
    BPT_TRY(bpt_json_get_text(doc, entry, "checksum", &hex));
    if (strchr(name, '/')) return bpt_fail(BPT_EDATA, "%s/DONE names \"%s\"", folder, name);
    if (bpt_checkpoint_measure(folder, name, &file) != BPT_OK) {
        const bpt_error error = *bpt_error_last();
        return bpt_fail(error.status == BPT_ENOENT ? BPT_ECORRUPT : error.status, "%s", error.text);
    }
    if (file.bytes != bytes || file.checksum != strtoull(hex, NULL, 16))
        return bpt_fail(BPT_ECORRUPT, "%s/%s is damaged: its checksum differs", folder, name);
    return BPT_OK;
}

static bpt_status verify_list(const bpt_json_doc *doc, const char *folder) {
    const bpt_json *files;
    BPT_TRY(bpt_json_get_array(doc, bpt_json_root(doc), "files", &files));
    for (size_t i = 0; i < bpt_json_size(files); i++)
        BPT_TRY(verify_entry(doc, bpt_json_at(files, i), folder));
    return BPT_OK;
}

/* ---- the folder of checkpoints ---- */

typedef struct {
    char **names; /* sorted, newest first; shape [n] */
    size_t n, capacity;
} name_list;

static void free_names(name_list *list) {
    for (size_t i = 0; i < list->n; i++) bpt_free(list->names[i]);
    bpt_free(list->names);
}

static int newest_first(const void *a, const void *b) {
    return strcmp(*(char *const *)b, *(char *const *)a);
}

static bpt_status list_names(const char *folder, name_list *list) {
    *list = (name_list){0};
    DIR *dir = opendir(folder);
    if (!dir) return errno == ENOENT ? BPT_OK : bpt_fail_errno(errno, "list", folder);
    bpt_status status = BPT_OK;
    for (struct dirent *e; status == BPT_OK && (e = readdir(dir));) {
        if (strncmp(e->d_name, "step-", 5) != 0) continue;
        status = BPT_GROW("checkpoint names", list->n + 1, &list->names, &list->capacity);
        if (status == BPT_OK) status = bpt_strdup(e->d_name, &list->names[list->n]);
        if (status == BPT_OK) list->n++;
    }
    closedir(dir);
    if (status != BPT_OK) {
        free_names(list);
        return status;
    }
    if (list->n) qsort(list->names, list->n, sizeof *list->names, newest_first);
    return BPT_OK;
}

static bpt_status is_whole(const char *folder, const char *name, bool *whole) {
    char *path;
    BPT_TRY(bpt_strf(&path, "%s/%s/DONE", folder, name));
    *whole = bpt_path_exists(path);
    bpt_free(path);
    return BPT_OK;
}

bpt_status bpt_checkpoint_find(const char *folder, const char *before, char **path) {
    name_list list;
    BPT_TRY(list_names(folder, &list));
    bpt_status status = BPT_OK;
    *path = NULL;
    for (size_t i = 0; status == BPT_OK && i < list.n && !*path; i++) {
        bool whole = false;
        if (before && strcmp(list.names[i], before) >= 0) continue;
        status = is_whole(folder, list.names[i], &whole);
        if (whole) status = bpt_strf(path, "%s/%s", folder, list.names[i]);
    }
    free_names(&list);
    return status;
}

bpt_status bpt_checkpoint_prune(const char *folder, size_t keep) {
    name_list list;
    BPT_TRY(list_names(folder, &list));
    bpt_status status = BPT_OK;
    size_t n_whole = 0;
    for (size_t i = 0; status == BPT_OK && i < list.n; i++) {
        bool whole = false;
        char *path = NULL;
        status = is_whole(folder, list.names[i], &whole);
        n_whole += whole;
        /* Newer than any whole one: another rank may be writing it. */
        if (n_whole == 0 || (whole && n_whole <= keep)) continue;
        if (status == BPT_OK) status = bpt_strf(&path, "%s/%s", folder, list.names[i]);
        if (status == BPT_OK) status = bpt_dir_remove(path);
        bpt_free(path);
    }
    free_names(&list);
    return status;
}

/* ---- verifying ---- */

/* Names the whole checkpoint before a damaged one. Keeps the error that it is a hint for. */
static void hint_at_earlier(const char *folder) {
    bpt_error error;
    bpt_error_get(&error);
    char *copy = NULL, *before = NULL;
    bpt_status status = bpt_strdup(folder, &copy);
    for (size_t n = status == BPT_OK ? strlen(copy) : 0; n > 1 && copy[n - 1] == '/'; n--)
        copy[n - 1] = '\0';
    char *slash = status == BPT_OK ? strrchr(copy, '/') : NULL;
    if (slash) {
        *slash = '\0';
        status = bpt_checkpoint_find(copy, slash + 1, &before);
    }
    bpt_error_put(&error);
    if (status == BPT_OK && before)
        bpt_hint("go on from the checkpoint before it: --resume %s", before);
    else
        bpt_hint("there is no earlier whole checkpoint; start anew with --force, without --resume");
    bpt_free(before);
    bpt_free(copy);
}

bpt_status bpt_checkpoint_verify(const char *folder) {
    char *path, *text = NULL;
    size_t size;
    bpt_json_doc *doc = NULL;
    bpt_status status;
    BPT_TRY(bpt_strf(&path, "%s/DONE", folder));
    BPT_TRY_GOTO(status, bpt_file_read(path, 64 << 20, &text, &size), done);
    BPT_TRY_GOTO(status, bpt_json_parse(path, text, size, &doc), done);
    status = verify_list(doc, folder);
done:
    if (status == BPT_ECORRUPT || status == BPT_EDATA) hint_at_earlier(folder);
    bpt_json_doc_free(doc);
    bpt_free(text);
    bpt_free(path);
    return status;
}
