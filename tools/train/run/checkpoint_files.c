#include "tools/train/run/checkpoint_files.h"

#include "base/checksum.h"
#include "base/file.h"
#include "base/json.h"
#include "base/log.h"
#include "base/memory.h"
#include "base/text.h"

#include <sys/stat.h>

#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum {
    FORMAT = 2,            /* of DONE */
    DONE_BYTES = 64 << 20, /* that it has, at most */
};

bpt_status bpt_checkpoint_measure(const char *folder, const char *name, bpt_checkpoint_file *file) {
    char *path;
    BPT_TRY(bpt_strf(&path, "%s/%s", folder, name));
    const bpt_status status = bpt_checksum_file(path, &file->bytes, &file->checksum);
    bpt_free(path);
    if (status == BPT_OK) snprintf(file->name, sizeof file->name, "%s", name);
    return status;
}

/* ---- DONE ---- */

/* Goes on from the checksum of what stands before in DONE: so that a list which is damaged itself
 * is not believed. */
static uint64_t chain(uint64_t before, const bpt_checkpoint_file *f) {
    char line[160];
    const int length =
        snprintf(line, sizeof line, "%016llx %s %llu %016llx", (unsigned long long)before, f->name,
                 (unsigned long long)f->bytes, (unsigned long long)f->checksum);
    return bpt_checksum(line, (size_t)length);
}

static void put_checksum(bpt_json_writer *w, const char *key, uint64_t checksum) {
    char hex[24];
    snprintf(hex, sizeof hex, "%016llx", (unsigned long long)checksum);
    bpt_json_put_text(w, key, hex);
}

static void put_files(bpt_json_writer *w, uint64_t serial, const bpt_checkpoint_file *files,
                      size_t n) {
    uint64_t list = serial;
    bpt_json_open_object(w, NULL);
    bpt_json_put_u64(w, "format", FORMAT);
    bpt_json_put_u64(w, "serial", serial);
    bpt_json_put_text(w, "checksum", BPT_CHECKSUM_NAME);
    bpt_json_open_array(w, "files");
    for (size_t i = 0; i < n; i++) {
        list = chain(list, &files[i]);
        bpt_json_open_object(w, NULL);
        bpt_json_put_text(w, "name", files[i].name);
        bpt_json_put_u64(w, "bytes", files[i].bytes);
        put_checksum(w, "checksum", files[i].checksum);
        bpt_json_close_object(w);
    }
    bpt_json_close_array(w);
    put_checksum(w, "checksum_of_list", list);
    bpt_json_close_object(w);
}

bpt_status bpt_checkpoint_write_done(const char *folder, uint64_t serial,
                                     const bpt_checkpoint_file *files, size_t n) {
    bpt_json_writer w = {0};
    const char *text;
    size_t length;
    char *path = NULL;
    put_files(&w, serial, files, n);
    bpt_status status = bpt_json_end_text(&w, &text, &length);
    if (status == BPT_OK) status = bpt_strf(&path, "%s/DONE", folder);
    if (status == BPT_OK) status = bpt_file_write(path, text, length);
    bpt_free(path);
    bpt_json_free(&w);
    return status;
}

static bpt_status get_checksum(const bpt_json_doc *doc, const bpt_json *object, const char *key,
                               uint64_t *checksum) {
    const char *hex;
    BPT_TRY(bpt_json_get_text(doc, object, key, &hex));
    *checksum = strtoull(hex, NULL, 16);
    return BPT_OK;
}

static bpt_status get_entry(const bpt_json_doc *doc, const bpt_json *entry, const char *folder,
                            bpt_checkpoint_file *file) {
    const char *name;
    BPT_TRY(bpt_json_get_text(doc, entry, "name", &name));
    BPT_TRY(bpt_json_get_u64(doc, entry, "bytes", 0, UINT64_MAX, &file->bytes));
    BPT_TRY(get_checksum(doc, entry, "checksum", &file->checksum));
    if (strchr(name, '/') || strlen(name) >= sizeof file->name)
        return bpt_fail(BPT_EDATA, "%s/DONE names \"%.80s\"", folder, name);
    snprintf(file->name, sizeof file->name, "%s", name);
    return BPT_OK;
}

static bpt_status verify_entry(const bpt_checkpoint_file *listed, const char *folder) {
    bpt_checkpoint_file file;
    const bpt_status status = bpt_checkpoint_measure(folder, listed->name, &file);
    if (status == BPT_ENOENT) return bpt_fail(BPT_ECORRUPT, "%s", bpt_error_last()->text);
    BPT_TRY(status);
    if (file.bytes != listed->bytes || file.checksum != listed->checksum)
        return bpt_fail(BPT_ECORRUPT, "%s/%s is damaged: its checksum differs", folder,
                        listed->name);
    return BPT_OK;
}

/* Whether @p rank reads this file when the job goes on. */
static bool is_read_by(const char *name, uint32_t rank) {
    char prefix[32];
    snprintf(prefix, sizeof prefix, "rank-%u.", rank);
    return strncmp(name, prefix, strlen(prefix)) == 0 ||
           (rank == 0 && strncmp(name, "rank-", 5) != 0); /* what is of all ranks */
}

static bpt_status check_head(const bpt_json_doc *doc, const char *folder) {
    const bpt_json *root = bpt_json_root(doc);
    uint64_t format;
    const char *checksum;
    BPT_TRY(bpt_json_get_u64(doc, root, "format", 1, UINT32_MAX, &format));
    BPT_TRY(bpt_json_get_text(doc, root, "checksum", &checksum));
    if (format == FORMAT && strcmp(checksum, BPT_CHECKSUM_NAME) == 0) return BPT_OK;
    return bpt_fail(BPT_EDATA,
                    "%s was written by another version of bpt (format %llu, checksum %s)", folder,
                    (unsigned long long)format, checksum);
}

/* The list by itself: what it says is what was written. */
static bpt_status check_list(const bpt_json_doc *doc, const char *folder, uint64_t *serial) {
    const bpt_json *root = bpt_json_root(doc), *files;
    uint64_t list, listed;
    BPT_TRY(bpt_json_get_u64(doc, root, "serial", 1, UINT64_MAX - 1, serial));
    BPT_TRY(bpt_json_get_array(doc, root, "files", &files));
    list = *serial;
    for (size_t i = 0; i < bpt_json_size(files); i++) {
        bpt_checkpoint_file file;
        BPT_TRY(get_entry(doc, bpt_json_at(files, i), folder, &file));
        list = chain(list, &file);
    }
    BPT_TRY(get_checksum(doc, root, "checksum_of_list", &listed));
    if (list == listed) return BPT_OK;
    return bpt_fail(BPT_ECORRUPT, "%s/DONE is damaged: its checksum differs", folder);
}

static bpt_status verify_list(const bpt_json_doc *doc, const char *folder, uint32_t rank) {
    const bpt_json *files;
    uint64_t serial;
    BPT_TRY(check_head(doc, folder));
    BPT_TRY(check_list(doc, folder, &serial));
    BPT_TRY(bpt_json_get_array(doc, bpt_json_root(doc), "files", &files));
    for (size_t i = 0; i < bpt_json_size(files); i++) {
        bpt_checkpoint_file file;
        BPT_TRY(get_entry(doc, bpt_json_at(files, i), folder, &file));
        if (is_read_by(file.name, rank)) BPT_TRY(verify_entry(&file, folder));
    }
    return BPT_OK;
}

/* ---- the folder of checkpoints ---- */

typedef struct {
    char *name;
    bool whole;              /* has DONE */
    bool damaged;            /* which says no number */
    uint64_t serial;         /* 0 if not whole; of one that is damaged, place_damaged() */
    struct timespec made_at; /* where DONE was written last */
} entry;

typedef struct {
    entry *entries; /* newest first, the ones that are not whole last; shape [n] */
    size_t n, capacity;
} listing;

static void free_listing(listing *l) {
    for (size_t i = 0; i < l->n; i++) bpt_free(l->entries[i].name);
    bpt_free(l->entries);
}

static int newest_first(const void *a, const void *b) {
    const entry *x = a, *y = b;
    if (x->whole != y->whole) return x->whole ? -1 : 1;
    if (x->serial != y->serial) return x->serial > y->serial ? -1 : 1;
    return strcmp(y->name, x->name);
}

static bpt_status read_serial(const char *path, uint64_t *serial) {
    bpt_json_doc *doc;
    BPT_TRY(bpt_json_load(path, DONE_BYTES, &doc));
    const bpt_status status = check_list(doc, path, serial);
    bpt_json_doc_free(doc);
    return status;
}

/* What cannot be read at all is an error: it may be sound. */
static bpt_status read_entry(const char *done, entry *e) {
    struct stat st;
    *e = (entry){.name = e->name};
    BPT_TRY(bpt_path_look(done, &e->whole));
    if (!e->whole) return BPT_OK;
    e->whole = stat(done, &st) == 0;
    if (!e->whole && errno == ENOENT) return BPT_OK; /* it was removed just now */
    if (!e->whole) return bpt_fail_errno(errno, "look at", done);
    e->made_at = st.st_mtim;
    const bpt_status status = read_serial(done, &e->serial);
    e->whole = status != BPT_ENOENT;
    if (!e->whole) return BPT_OK;
    e->damaged = status == BPT_EDATA || status == BPT_ECORRUPT;
    if (e->damaged) e->serial = 0;
    return e->damaged ? BPT_OK : status;
}

static bpt_status add_entry(const char *folder, const char *name, listing *l) {
    char *done;
    BPT_TRY(BPT_GROW("checkpoints", l->n + 1, &l->entries, &l->capacity));
    entry *e = &l->entries[l->n];
    BPT_TRY(bpt_strdup(name, &e->name));
    l->n++;
    BPT_TRY(bpt_strf(&done, "%s/%s/DONE", folder, name));
    const bpt_status status = read_entry(done, e);
    bpt_free(done);
    return status;
}

static bool is_later(struct timespec a, struct timespec b) {
    return a.tv_sec != b.tv_sec ? a.tv_sec > b.tv_sec : a.tv_nsec > b.tv_nsec;
}

/* By its time one that is damaged is the newest: then it is to be noticed. Or it is not, as once a
 * job has gone on from another: then nothing hangs on it, and it is the first to go. */
static void place_damaged(listing *l) {
    struct timespec newest = {0};
    for (size_t i = 0; i < l->n; i++)
        if (l->entries[i].whole && !l->entries[i].damaged &&
            is_later(l->entries[i].made_at, newest))
            newest = l->entries[i].made_at;
    for (size_t i = 0; i < l->n; i++)
        if (l->entries[i].damaged)
            l->entries[i].serial = is_later(newest, l->entries[i].made_at) ? 0 : UINT64_MAX;
}

/* "step-00000100", perhaps with an end. */
bool bpt_checkpoint_is_name(const char *name) {
    static const char begin[] = "step-";
    if (strncmp(name, begin, strlen(begin)) != 0) return false;
    const char *digits = name + strlen(begin), *end = digits + strspn(digits, "0123456789");
    return end > digits && (*end == '\0' || strcmp(end, ".part") == 0 || strcmp(end, ".old") == 0);
}

static bpt_status list(const char *folder, listing *l) {
    *l = (listing){0};
    DIR *dir = opendir(folder);
    if (!dir) return errno == ENOENT ? BPT_OK : bpt_fail_errno(errno, "list", folder);
    bpt_status status = BPT_OK;
    for (struct dirent *e; status == BPT_OK && (e = readdir(dir));)
        if (bpt_checkpoint_is_name(e->d_name)) status = add_entry(folder, e->d_name, l);
    closedir(dir);
    if (status != BPT_OK) {
        free_listing(l);
        return status;
    }
    place_damaged(l);
    if (l->n) qsort(l->entries, l->n, sizeof *l->entries, newest_first);
    return BPT_OK;
}

static size_t position_of(const listing *l, const char *name) {
    size_t i = 0;
    while (i < l->n && strcmp(l->entries[i].name, name) != 0) i++;
    return i;
}

/* The next older one that is not known to be damaged, or else the newest. That is the first choice
 * where @p before is damaged by its list, since its age is not known then.
 * @return its number; n where there is none */
static size_t position_instead(const listing *l, const char *before) {
    const size_t n = l->n, at = position_of(l, before);
    const size_t first = at < n && !l->entries[at].damaged ? at + 1 : 0;
    for (size_t k = 0; k < n; k++) {
        const size_t i = (first + k) % n;
        if (i != at && l->entries[i].whole && !l->entries[i].damaged) return i;
    }
    return n;
}

bpt_status bpt_checkpoint_find(const char *folder, const char *before, char **path) {
    listing l;
    BPT_TRY(list(folder, &l));
    const size_t i = before ? position_instead(&l, before) : 0;
    *path = NULL;
    const bpt_status status =
        i < l.n && l.entries[i].whole ? bpt_strf(path, "%s/%s", folder, l.entries[i].name) : BPT_OK;
    free_listing(&l);
    return status;
}

/* Steps of all ranks, which its name has. */
static uint64_t step_of(const entry *e) {
    return strtoull(e->name + strlen("step-"), NULL, 10);
}

static bpt_status measure_all(const char *folder, const listing *l, uint64_t step, uint64_t *bytes,
                              size_t *n, uint64_t *goes) {
    for (size_t i = 0; i < l->n; i++) {
        const entry *e = &l->entries[i];
        char *path;
        BPT_TRY(bpt_strf(&path, "%s/%s", folder, e->name));
        const uint64_t size = bpt_dir_bytes(path);
        bpt_free(path);
        if (e->whole && step_of(e) <= step)
            bytes[(*n)++] = size;
        else
            *goes += size;
    }
    return BPT_OK;
}

bpt_status bpt_checkpoint_bytes(const char *folder, uint64_t step, uint64_t **bytes, size_t *n,
                                uint64_t *goes) {
    listing l;
    uint64_t *all = NULL;
    *n = 0;
    *goes = 0;
    BPT_TRY(list(folder, &l));
    bpt_status status = BPT_NEW("sizes of checkpoints", l.n, &all);
    if (status == BPT_OK) status = measure_all(folder, &l, step, all, n, goes);
    free_listing(&l);
    if (status == BPT_OK)
        *bytes = all;
    else
        bpt_free(all);
    return status;
}

bpt_status bpt_checkpoint_passed_over(const char *folder, const char *found, char *names,
                                      size_t size) {
    listing l;
    BPT_TRY(list(folder, &l));
    names[0] = '\0';
    for (size_t i = 0; i < l.n; i++)
        if (l.entries[i].damaged && strcmp(l.entries[i].name, found) != 0)
            bpt_list_add(names, size, l.entries[i].name);
    free_listing(&l);
    return BPT_OK;
}

bpt_status bpt_checkpoint_torn(const char *folder, char *names, size_t size) {
    listing l;
    BPT_TRY(list(folder, &l));
    names[0] = '\0';
    for (size_t i = 0; i < l.n; i++)
        if (!l.entries[i].whole) bpt_list_add(names, size, l.entries[i].name);
    free_listing(&l);
    return BPT_OK;
}

bpt_status bpt_checkpoint_next_serial(const char *folder, uint64_t *serial) {
    listing l;
    BPT_TRY(list(folder, &l));
    *serial = 1;
    for (size_t i = 0; i < l.n; i++)
        if (l.entries[i].serial != UINT64_MAX && l.entries[i].serial >= *serial)
            *serial = l.entries[i].serial + 1;
    free_listing(&l);
    return BPT_OK;
}

/* Takes back what bpt_checkpoint_place() has moved, as far as that goes. */
static void move_back(const char *from, const char *to, const char *aside) {
    if (rename(to, from) == 0 || errno == ENOENT) (void)rename(aside, to);
}

static bpt_status move(const char *folder, const char *from, const char *to, const char *aside) {
    if (rename(to, aside) != 0 && errno != ENOENT) return bpt_fail_write(errno, "rename", to);
    bpt_status status = BPT_OK;
    if (rename(from, to) != 0) status = bpt_fail_write(errno, "rename to", to);
    if (status == BPT_OK) status = bpt_dir_sync(folder);
    if (status != BPT_OK) move_back(from, to, aside);
    return status;
}

bpt_status bpt_checkpoint_place(const char *folder, const char *from, const char *to) {
    char *aside;
    BPT_TRY(bpt_strf(&aside, "%s.old", to));
    bpt_status status = bpt_checkpoint_remove(aside);
    if (status == BPT_OK) status = move(folder, from, to, aside);
    /* What is saved stays saved. */
    if (status == BPT_OK && bpt_checkpoint_remove(aside) != BPT_OK)
        bpt_warn("the checkpoint that %s replaces stays: %s", to, bpt_error_last()->text);
    bpt_free(aside);
    return status;
}

bpt_status bpt_checkpoint_remove(const char *folder) {
    char *done;
    BPT_TRY(bpt_strf(&done, "%s/DONE", folder));
    bpt_status status = BPT_OK;
    if (unlink(done) == 0)
        status = bpt_dir_sync(folder);
    else if (errno != ENOENT)
        status = bpt_fail_write(errno, "remove", done);
    bpt_free(done);
    return status == BPT_OK ? bpt_dir_remove(folder) : status;
}

bpt_status bpt_checkpoint_is_whole(const char *folder, bool *whole) {
    char *done;
    BPT_TRY(bpt_strf(&done, "%s/DONE", folder));
    const bpt_status status = bpt_path_look(done, whole);
    bpt_free(done);
    return status;
}

bpt_status bpt_checkpoint_clear(const char *folder, const char *part, const char *to) {
    bool left, there;
    BPT_TRY(bpt_checkpoint_is_whole(part, &left));
    BPT_TRY(bpt_checkpoint_is_whole(to, &there));
    return left && !there ? bpt_checkpoint_place(folder, part, to) : bpt_checkpoint_remove(part);
}

bpt_status bpt_checkpoint_prune(const char *folder, size_t keep) {
    listing l;
    BPT_TRY(list(folder, &l));
    bpt_status status = BPT_OK;
    size_t n_kept = 0;
    for (size_t i = 0; status == BPT_OK && i < l.n; i++) {
        char *path;
        /* One that is damaged takes no sound one's place. */
        if (l.entries[i].whole && n_kept < keep) {
            n_kept += !l.entries[i].damaged;
            continue;
        }
        status = bpt_strf(&path, "%s/%s", folder, l.entries[i].name);
        if (status != BPT_OK) break;
        status = bpt_checkpoint_remove(path);
        bpt_free(path);
    }
    free_listing(&l);
    return status;
}

/* ---- verifying ---- */

/* The path of a checkpoint that ends with its name: as it was given, if that does.
 * @param[out] path caller owns */
static bpt_status name_checkpoint(const char *given, char **path) {
    size_t length = strlen(given);
    while (length > 1 && given[length - 1] == '/') length--;
    size_t at = length;
    while (at > 0 && given[at - 1] != '/') at--;
    char *real = realpath(given, NULL);
    const char *name = real ? strrchr(real, '/') + 1 : given + at;
    const bool ends = strlen(name) == length - at && memcmp(name, given + at, length - at) == 0;
    const bpt_status status =
        ends || !real ? bpt_strf(path, "%s%.*s", at == 0 ? "./" : "", (int)length, given)
                      : bpt_strdup(real, path);
    free(real); /* the C library's own memory */
    return status;
}

/* Names another whole checkpoint than a damaged one. Keeps the error that it is a hint for. */
static void hint_at_another(const char *folder) {
    bpt_error error;
    bpt_error_get(&error);
    char *path = NULL, *other = NULL;
    bpt_status status = name_checkpoint(folder, &path);
    if (status == BPT_OK) {
        char *slash = strrchr(path, '/');
        *slash = '\0';
        status = bpt_checkpoint_find(path, slash + 1, &other);
    }
    bpt_error_put(&error);
    if (status == BPT_OK && other) {
        static const char go_on[] = "go on from another checkpoint: --resume";
        char word[BPT_ERROR_HINT_SIZE - sizeof go_on];
        const bool named = bpt_text_quote(other, word, sizeof word);
        bpt_hint("%s %s", go_on, named ? word : "RUN/checkpoints/STEP");
    } else
        bpt_hint("there is no other whole checkpoint; start anew with --force, without --resume");
    bpt_free(other);
    bpt_free(path);
}

/* By its list: who removes a checkpoint begins with that. */
static bool is_removed(const char *done) {
    bpt_error error;
    bool there;
    bpt_error_get(&error);
    const bool known = bpt_path_look(done, &there) == BPT_OK;
    (void)bpt_error_put(&error);
    return known && !there;
}

bpt_status bpt_checkpoint_verify(const char *folder, uint32_t rank) {
    char *path;
    bpt_json_doc *doc = NULL;
    BPT_TRY(bpt_strf(&path, "%s/DONE", folder));
    bpt_status status = bpt_json_load(path, DONE_BYTES, &doc);
    if (status == BPT_OK) status = verify_list(doc, folder, rank);
    if (status != BPT_OK && is_removed(path))
        bpt_hint(
            "a run that goes on has removed it meanwhile: try again; or this host does not "
            "see the folder");
    else if (status == BPT_ECORRUPT || status == BPT_EDATA)
        hint_at_another(folder);
    bpt_json_doc_free(doc);
    bpt_free(path);
    return status;
}
