/* A copy goes through these phases; each call of bpt_stage_advance() takes some steps of one.
 *
 *     SEEK   take the lock of users: refused while somebody makes the copy. Is it sealed? Then it
 *            is whole. Else take the lock of makers: refused while somebody uses what is not right
 *     CHECK  what is there, block by block
 *     COPY   the rest, then seal it; then SEEK, to use it as everybody does
 *
 * The lock of users is held from then on. */
#include "storage/stage/stage.h"

#include "base/checksum.h"
#include "base/clock.h"
#include "base/file.h"
#include "base/file_system.h"
#include "base/log.h"
#include "base/memory.h"
#include "storage/environment/environment_guard.h"
#include "storage/stage/stage_blocks.h"
#include "storage/stage/stage_folder.h"
#include "storage/stage/stage_source.h"

#include <sys/stat.h>

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

enum {
    NAP_MS = 50,
    MAX_REFUSED = 200, /* naps for users of a copy that is not right to end */
    MAX_MADE = 3,      /* times that a copy is made and not found sealed */
};

typedef enum phase { SEEK, CHECK, COPY, WHOLE } phase;

struct bpt_stage {
    char *dataset, *dir;      /* as the kernel resolves them */
    struct stat data, folder; /* of the dataset's file, of dir */
    bpt__stage_source source;
    char *path; /* of the copy's folder; NULL before the source was looked at */
    int lock;   /* open file, -1: none */
    phase phase;
    bool waits;
    int n_refused, n_made;
    /* while it is made */
    bpt__blocks *blocks;
    char *from, *to, *list, *header;
    uint64_t copied; /* before */
};

/* ---- begin and end ---- */

static bpt_status resolve(const char *path, char **out) {
    char *resolved = realpath(path, NULL);
    if (!resolved) return bpt_fail_errno(errno, "open", path);
    const bpt_status status = bpt_strdup(resolved, out);
    free(resolved); /* the C library's own memory */
    return status;
}

static bpt_status missing(const char *dataset) {
    const bpt_status status = bpt_fail(BPT_ENOENT, "there is no dataset at %s", dataset);
    bpt_hint("%s", bpt__dataset_files.missing_hint);
    return status;
}

/* @param[out] info of the dataset's file */
static bpt_status find_dataset(const char *dataset, char **resolved, struct stat *info) {
    char *file;
    BPT_TRY(bpt_strf(&file, "%s/%s", dataset, bpt__dataset_files.data));
    const int error = stat(file, info) == 0 ? 0 : errno;
    bpt_free(file);
    if (error == ENOENT || error == ENOTDIR) return missing(dataset);
    if (error) return bpt_fail_errno(error, "open", dataset);
    return resolve(dataset, resolved);
}

static bpt_status make_folder(bpt_stage *s, const char *dir) {
    BPT_TRY(bpt_dir_create(dir, false));
    BPT_TRY(resolve(dir, &s->dir));
    return stat(s->dir, &s->folder) == 0 ? BPT_OK : bpt_fail_errno(errno, "open", dir);
}

static bpt_status find_folder(bpt_stage *s, const char *dir) {
    const bpt_status status = make_folder(s, dir);
    if (status != BPT_OK && !bpt_error_last()->hint[0])
        bpt_hint("name a --stage where it may make a folder");
    return status;
}

bpt_status bpt_stage_open(const char *dataset, const char *dir, bpt_stage **out) {
    bpt_stage *s;
    BPT_TRY(BPT_NEW("copy of a dataset", 1, &s));
    s->lock = -1;
    bpt_status status = find_dataset(dataset, &s->dataset, &s->data);
    if (status == BPT_OK) status = find_folder(s, dir);
    if (status == BPT_OK)
        *out = s;
    else
        bpt_stage_close(s);
    return status;
}

static void end_blocks(bpt_stage *s) {
    if (s->blocks) s->copied += bpt__blocks_copied(s->blocks);
    bpt__blocks_close(s->blocks);
    bpt_free(s->from);
    bpt_free(s->to);
    bpt_free(s->list);
    bpt_free(s->header);
    s->blocks = NULL;
    s->from = s->to = s->list = s->header = NULL;
}

void bpt_stage_close(bpt_stage *s) {
    if (!s) return;
    end_blocks(s);
    if (s->lock >= 0) close(s->lock);
    bpt_free(s->path);
    bpt_free(s->dir);
    bpt_free(s->dataset);
    bpt_free(s);
}

uint64_t bpt_stage_place(const bpt_stage *s) {
    const uint64_t all[] = {s->data.st_dev, s->data.st_ino, s->folder.st_dev, s->folder.st_ino};
    return bpt_checksum(all, sizeof all);
}

const char *bpt_stage_path(const bpt_stage *s) {
    return s->path;
}

bpt_stage_state bpt_stage_look(const bpt_stage *s) {
    const bool whole = s->phase == WHOLE;
    bpt_stage_state state = {
        .identity = s->source.identity,
        .bytes = s->source.bytes,
        .copied = s->copied,
        .waits = s->waits,
        .whole = whole,
    };
    if (s->blocks) {
        state.done = bpt__blocks_done(s->blocks);
        state.copied += bpt__blocks_copied(s->blocks);
    } else if (whole) {
        state.done = state.bytes;
    }
    return state;
}

/* ---- seeking ---- */

/* Opens the folder's lock, anew if there was one. */
static bpt_status enter(bpt_stage *s) {
    if (s->lock >= 0) close(s->lock);
    s->lock = -1;
    return bpt__stage_folder_open(s->path, &s->lock);
}

static bpt_status look(bpt_stage *s) {
    BPT_TRY(bpt__stage_source_look(s->dataset, &s->source));
    BPT_TRY(bpt__stage_folder_name(s->dir, s->dataset, s->source.identity, &s->path));
    return enter(s);
}

static bpt_status begin_blocks(bpt_stage *s) {
    BPT_TRY(bpt_strf(&s->from, "%s/%s", s->dataset, bpt__dataset_files.data));
    BPT_TRY(bpt_strf(&s->to, "%s/" BPT__STAGE_PART, s->path));
    BPT_TRY(bpt_strf(&s->list, "%s/" BPT__STAGE_LIST, s->path));
    BPT_TRY(bpt__stage_folder_header(s->dataset, s->source.identity, s->source.bytes, &s->header));
    const bpt__blocks_job job = {
        .from = s->from,
        .to = s->to,
        .list = s->list,
        .header = s->header,
        .bytes = s->source.bytes,
    };
    BPT_TRY(bpt__blocks_open(&job, &s->blocks));
    s->phase = CHECK;
    return BPT_OK;
}

/* Nobody else is at it. What was whole and is not sealed is a part until it has been checked. */
static bpt_status begin_making(bpt_stage *s) {
    char *data, *part;
    if (s->n_made == MAX_MADE) {
        const bpt_status status =
            bpt_fail(BPT_EIO, "the copy in %s does not stay as it is written", s->path);
        bpt_hint("name a --stage on a disk of the machine itself");
        return status;
    }
    BPT_TRY(bpt_strf(&data, "%s/" BPT__STAGE_DATA, s->path));
    bpt_status status = bpt_strf(&part, "%s/" BPT__STAGE_PART, s->path);
    if (status == BPT_OK) {
        if (rename(data, part) == 0)
            bpt_info("%s is not as it was sealed: it is checked", data);
        else if (errno != ENOENT)
            status = bpt_fail_write(errno, "rename", data);
        bpt_free(part);
    }
    bpt_free(data);
    return status == BPT_OK ? begin_blocks(s) : status;
}

static bpt_status refuse(bpt_stage *s) {
    s->waits = true;
    if (++s->n_refused < MAX_REFUSED) return BPT_OK;
    const bpt_status status =
        bpt_fail(BPT_EIO, "the copy in %s is not as it was sealed, and in use", s->path);
    bpt_hint("wait for the end of the job that uses it, or name another --stage");
    return status;
}

static bpt_status seek(bpt_stage *s) {
    bool taken, gone;
    BPT_TRY(bpt__stage_folder_lock(s->path, s->lock, BPT__STAGE_USE, &taken, &gone));
    if (gone) return enter(s);
    s->waits = !taken;
    if (!taken) {
        s->n_refused = 0; /* somebody makes it */
        return BPT_OK;
    }
    if (bpt__stage_folder_sealed(s->path, s->source.identity)) {
        s->phase = WHOLE;
        return BPT_OK;
    }
    BPT_TRY(bpt__stage_folder_lock(s->path, s->lock, BPT__STAGE_MAKE, &taken, &gone));
    if (gone) return enter(s);
    return taken ? begin_making(s) : refuse(s);
}

/* ---- making ---- */

static bpt_status refuse_room(const bpt_stage *s, uint64_t need, uint64_t there) {
    const double mb = 1e-6;
    const bpt_status status =
        bpt_fail(BPT_ENOSPC,
                 "no room in %s for a copy of %s: %.1f MB are to be copied yet, %.1f MB are free",
                 s->dir, s->dataset, mb * (double)need, mb * (double)there);
    bpt_hint("make room there, or name another --stage%s",
             bpt__blocks_done(s->blocks) > 0 ? "; what is copied already stays there" : "");
    return status;
}

/* What is written beside a copy of so many bytes: its list, its seal and the lock file of its
 * readers, each to the end of a block of the disk. */
static uint64_t bytes_beside(uint64_t bytes) {
    enum { DISK_BLOCK = 4096 };
    return bpt__blocks_list_bytes(bytes) + 3 * DISK_BLOCK + BPT__LOCK_FILE_BYTES;
}

static bpt_status check_room(const bpt_stage *s) {
    const uint64_t need =
        s->source.bytes - bpt__blocks_done(s->blocks) + bytes_beside(s->source.bytes);
    const bpt_file_system fs = bpt_file_system_at(s->path);
    return fs.kind[0] && fs.free_bytes < need ? refuse_room(s, need, fs.free_bytes) : BPT_OK;
}

static bpt_status check(bpt_stage *s) {
    bool over;
    BPT_TRY(bpt__blocks_check(s->blocks, &over));
    if (!over) return BPT_OK;
    if (bpt__blocks_done(s->blocks) < s->source.bytes)
        bpt__stage_folder_clean(s->dir, s->dataset, s->source.identity);
    BPT_TRY(check_room(s));
    s->phase = COPY;
    return BPT_OK;
}

/* The part is complete: from now on it goes by its name, and then by its seal. */
static bpt_status finish(bpt_stage *s) {
    char *data;
    BPT_TRY(bpt__blocks_flush(s->blocks));
    if (bpt__blocks_copied(s->blocks) > 0) BPT_TRY(bpt__stage_source_check(s->dataset, &s->source));
    BPT_TRY(bpt_strf(&data, "%s/" BPT__STAGE_DATA, s->path));
    const int error = rename(s->to, data) == 0 ? 0 : errno;
    bpt_free(data);
    if (error) return bpt_fail_write(error, "rename", s->to);
    BPT_TRY(bpt_dir_sync(s->path));
    BPT_TRY(bpt__stage_folder_seal(s->path, s->source.identity));
    end_blocks(s);
    s->n_made++;
    s->phase = SEEK;
    return BPT_OK;
}

static bpt_status copy(bpt_stage *s) {
    bool over;
    const bpt_status status = bpt__blocks_copy(s->blocks, &over);
    /* Somebody else has filled the disk meanwhile. */
    if (status == BPT_ENOSPC)
        return refuse_room(s, s->source.bytes - bpt__blocks_done(s->blocks),
                           bpt_file_system_at(s->path).free_bytes);
    BPT_TRY(status);
    return over ? finish(s) : BPT_OK;
}

bpt_status bpt_stage_advance(bpt_stage *s, double seconds) {
    static bpt_status (*const steps[])(bpt_stage *) = {
        [SEEK] = seek, [CHECK] = check, [COPY] = copy};
    const uint64_t start_ns = bpt_clock_ns();
    if (!s->path) BPT_TRY(look(s));
    while (s->phase != WHOLE) {
        BPT_TRY(steps[s->phase](s));
        if (bpt_clock_seconds_since(start_ns) >= seconds) break;
        if (s->waits) nanosleep(&(struct timespec){.tv_nsec = NAP_MS * 1000000l}, NULL);
    }
    return BPT_OK;
}

/* ---- what others have made ---- */

bpt_status bpt_stage_join(bpt_stage *s, uint64_t identity) {
    bool taken = false, gone = false;
    s->source = (bpt__stage_source){.identity = identity};
    BPT_TRY(bpt__stage_folder_name(s->dir, s->dataset, identity, &s->path));
    BPT_TRY(enter(s));
    for (int i = 0; i < MAX_REFUSED && !taken && !gone; i++) {
        if (i > 0) nanosleep(&(struct timespec){.tv_nsec = NAP_MS * 1000000l}, NULL);
        BPT_TRY(bpt__stage_folder_lock(s->path, s->lock, BPT__STAGE_USE, &taken, &gone));
    }
    if (!taken || !bpt__stage_folder_sealed(s->path, identity))
        return bpt_fail(BPT_EIO, "the copy that another process has made is not found in %s",
                        s->path);
    s->phase = WHOLE;
    return BPT_OK;
}

void bpt_stage_doubt(const bpt_stage *s) {
    char *seal;
    if (!s->path || bpt_strf(&seal, "%s/" BPT__STAGE_SEAL, s->path) != BPT_OK) return;
    (void)unlink(seal);
    bpt_free(seal);
}

/* ---- a look before ---- */

/* Of what is not sealed: it will be checked, and is most likely right.
 * @param[in,out] bytes of the whole; what is left of them */
static bpt_status subtract_part(const char *path, uint64_t *bytes) {
    static const char *const names[] = {BPT__STAGE_DATA, BPT__STAGE_PART};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        char *file;
        struct stat info;
        BPT_TRY(bpt_strf(&file, "%s/%s", path, names[i]));
        const bool there = stat(file, &info) == 0;
        bpt_free(file);
        if (!there) continue;
        *bytes -= (uint64_t)info.st_size < *bytes ? (uint64_t)info.st_size : *bytes;
        break;
    }
    return BPT_OK;
}

bpt_status bpt_stage_need(const char *dataset, const char *dir, uint64_t *bytes) {
    bpt__stage_source source;
    struct stat info;
    char *resolved, *path;
    BPT_TRY(find_dataset(dataset, &resolved, &info));
    bpt_status status = bpt__stage_source_look(resolved, &source);
    if (status == BPT_OK) status = bpt__stage_folder_name(dir, resolved, source.identity, &path);
    bpt_free(resolved);
    BPT_TRY(status);
    *bytes = bpt__stage_folder_sealed(path, source.identity) ? 0 : source.bytes;
    if (*bytes > 0) {
        status = subtract_part(path, bytes);
        *bytes += bytes_beside(source.bytes);
    }
    bpt_free(path);
    return status;
}
