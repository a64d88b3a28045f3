#include "base/file.h"
#include "base/memory.h"
#include "base/options.h"
#include "base/text.h"
#include "inner/models/model_parts.h"

#include <dirent.h>
#include <limits.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static const char SUFFIX[] = ".yaml";
static const char BESIDE_PROGRAM[] = "/../share/bpt/models";

enum { N_FOLDERS = 3, MAX_KNOWN = 64 };

/* In the order of search; paths to nowhere are allowed. */
typedef struct {
    char beside[PATH_MAX + sizeof BESIDE_PROGRAM];
    const char *paths[N_FOLDERS];
} folders;

static void list_folders(folders *f) {
    char program[PATH_MAX];
    const ssize_t n = readlink("/proc/self/exe", program, sizeof program - 1);
    program[n > 0 ? n : 0] = '\0';
    char *slash = strrchr(program, '/');
    if (slash) *slash = '\0';
    snprintf(f->beside, sizeof f->beside, "%s%s", program, BESIDE_PROGRAM);
    f->paths[0] = f->beside;
    f->paths[1] = BPT_MODELS_SOURCE_DIR;
    f->paths[2] = BPT_MODELS_INSTALL_DIR;
}

static bool ends_in(const char *text, const char *end) {
    const size_t n = strlen(text), m = strlen(end);
    return n >= m && strcmp(text + n - m, end) == 0;
}

/* ---- the names that there are ---- */

typedef struct {
    char *names[MAX_KNOWN];
    size_t n;
} known;

/* Without memory for a name, the list of an error message is shorter. */
static void add_known(known *k, const char *file) {
    char *name;
    if (k->n == MAX_KNOWN ||
        bpt_strf(&name, "%.*s", (int)(strlen(file) - strlen(SUFFIX)), file) != BPT_OK)
        return;
    for (size_t i = 0; i < k->n; i++)
        if (strcmp(k->names[i], name) == 0) {
            bpt_free(name);
            return;
        }
    k->names[k->n++] = name;
}

static int compare_names(const void *a, const void *b) {
    return strcmp(*(char *const *)a, *(char *const *)b);
}

static void list_known(const folders *f, known *k) {
    k->n = 0;
    for (int i = 0; i < N_FOLDERS; i++) {
        DIR *dir = opendir(f->paths[i]);
        const struct dirent *entry;
        while (dir && (entry = readdir(dir)))
            if (ends_in(entry->d_name, SUFFIX)) add_known(k, entry->d_name);
        if (dir) closedir(dir);
    }
    qsort(k->names, k->n, sizeof *k->names, compare_names);
}

static bpt_status fail_unknown(const folders *f, const char *name) {
    known k;
    char list[BPT_ERROR_HINT_SIZE / 2] = "";
    list_known(f, &k);
    for (size_t i = 0; i < k.n; i++) bpt_list_add(list, sizeof list, k.names[i]);
    const char *nearest = bpt_nearest(name, (const char *const *)k.names, k.n);
    const bpt_status status = bpt_fail(BPT_EUSAGE, "no model is named \"%s\"", name);
    if (nearest)
        bpt_hint("did you mean \"%s\"? known: %s; or give the path of a .yaml file", nearest, list);
    else if (k.n > 0)
        bpt_hint("known: %s; or give the path of a .yaml file", list);
    else
        bpt_hint("no models are installed; give the path of a .yaml file");
    for (size_t i = 0; i < k.n; i++) bpt_free(k.names[i]);
    return status;
}

bpt_status bpt__model_find(const char *name_or_path, char **path) {
    if (strchr(name_or_path, '/') || ends_in(name_or_path, SUFFIX) || ends_in(name_or_path, ".yml"))
        return bpt_strdup(name_or_path, path);
    folders f;
    list_folders(&f);
    for (int i = 0; i < N_FOLDERS; i++) {
        char *candidate;
        BPT_TRY(bpt_strf(&candidate, "%s/%s%s", f.paths[i], name_or_path, SUFFIX));
        if (bpt_path_exists(candidate)) {
            *path = candidate;
            return BPT_OK;
        }
        bpt_free(candidate);
    }
    return fail_unknown(&f, name_or_path);
}
