#include "storage/environment/environment.h"

#include "base/file.h"
#include "base/file_system.h"
#include "base/log.h"
#include "base/memory.h"
#include "storage/environment/environment_guard.h"

#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/statvfs.h>

#include <errno.h>
#include <fcntl.h>
#include <stdint.h>
#include <time.h>
#include <unistd.h>

enum {
    MAX_OVERTAKEN = 20, /* times that writers may replace the state under a reader's eyes */
    MAX_DOUBTS = 3,     /* looks at a file that seems damaged */
};

const bpt__environment_kind bpt__dataset_files = {
    .what = "dataset",
    .missing_hint = "bpt-ingest makes one; bpt-ingest --help shows how",
    .damaged_hint = "restore the dataset from a copy, or ingest it again into a new directory",
    .lost_hint =
        "restore the dataset from a copy, or ingest it again; look for a program that "
        "writes over it, and at the system's log for errors of its disk",
    .data = "data.mdb",
    .lock = "lock.mdb",
    .rules = {.spare_bytes = (uint64_t)2 << 30,
              .records_hint = "`bpt-ingest caffe` makes a dataset of an LMDB of Caffe's"},
};

/* Its map is made as large as it may ever have to be. Another name keeps readers and writers of
 * datasets out. */
const bpt__environment_kind bpt__scratch_files = {
    .what = "scratch folder",
    .damaged_hint = "remove the scratch folder: what it held is sent again",
    .lost_hint =
        "remove the scratch folder: what it held is sent again; look at the system's log "
        "for errors of its disk",
    .data = "samples.mdb",
    .lock = "samples.mdb-lock",
    .rules = {.spare_bytes = (uint64_t)1 << 42, .flags = MDB_NOSUBDIR},
};

bpt_status bpt__lmdb_fail(int code, const char *verb, const char *path) {
    if (code > 0) return bpt_fail_errno(code, verb, path);
    bpt_status status = BPT_EIO;
    switch (code) {
    case MDB_CORRUPTED:
    case MDB_PAGE_NOTFOUND:
    case MDB_PANIC:
        status = BPT_ECORRUPT;
        break;
    case MDB_INVALID:
    case MDB_VERSION_MISMATCH:
    case MDB_INCOMPATIBLE:
        status = BPT_EDATA;
        break;
    case MDB_READERS_FULL:
    case MDB_DBS_FULL:
    case MDB_MAP_FULL:
    case MDB_TXN_FULL:
        status = BPT_EFULL;
        break;
    default:
        break;
    }
    return bpt_fail(status, "cannot %s %s: %s", verb, path, mdb_strerror(code));
}

bool bpt__environment_lost(MDB_env *env) {
    return bpt__guard_lost(mdb_env_get_userctx(env));
}

bool bpt__environment_damaged(MDB_env *env) {
    const bpt__guard *g = mdb_env_get_userctx(env);
    return bpt__lost_pages_any(g->pages);
}

/* @return commits since, by writers that do not see this reader */
static uint64_t count_commits(MDB_env *env) {
    const bpt__guard *g = mdb_env_get_userctx(env);
    MDB_envinfo info;
    if (g->lock_fd >= 0 || g->pinned == 0) return 0;
    mdb_env_info(env, &info);
    return info.me_last_txnid - g->pinned;
}

bool bpt__environment_overtaken(MDB_env *env) {
    return count_commits(env) > 0;
}

bool bpt__environment_gone(MDB_env *env) {
    return count_commits(env) > 1;
}

bpt_status bpt__environment_settle(MDB_env *env, bpt_status status) {
    return bpt__guard_settle(mdb_env_get_userctx(env), env, status);
}

/* LMDB has met what cannot be, such as zeros where a page was, and ends the process when this
 * returns: its state is past repair, and it may hold the lock of writers. Ending is what remains,
 * but with a word. */
static void end_with_word(MDB_env *env, const char *text) {
    const bpt__guard *g = mdb_env_get_userctx(env);
    bpt_status status = bpt__environment_settle(env, BPT_OK);
    if (status == BPT_OK && bpt__environment_gone(env)) {
        status = bpt_fail(BPT_EIO, "%s was written to while it was read (%s)", g->data, text);
        bpt_hint("run this again");
    } else if (status == BPT_OK) {
        status =
            bpt_fail(BPT_ECORRUPT, "%s was written over while it was in use (%s)", g->data, text);
        bpt_hint("%s", g->kind->lost_hint);
    }
    bpt_log_last_words(bpt_error_last()->text, bpt_error_last()->hint);
    _exit(bpt_status_exit(status));
}

/* ---- opening ---- */

static void close_handle(const bpt__guard *g, MDB_env *env) {
    const int turn = bpt__guard_enter(g);
    mdb_env_close(env);
    bpt__guard_leave(turn);
}

static int open_files(const bpt__guard *g, const char *path, unsigned flags, MDB_env *env) {
    const bool alone = g->kind->rules.flags & MDB_NOSUBDIR;
    const int turn = bpt__guard_enter(g);
    const int code = mdb_env_open(env, alone ? g->data : path, flags, 0666);
    bpt__guard_leave(turn);
    return code;
}

/* LMDB begins a lock file anew but while another process uses it: so one is at it now, whose LMDB
 * has another layout of it. That the data file is right was looked at before. */
static bool has_unlike_lock(const bpt__guard *g, int code) {
    return g->lock_fd >= 0 && (code == MDB_VERSION_MISMATCH || code == MDB_INVALID);
}

static bpt_status refuse_unlike(const bpt__guard *g) {
    const bpt_status status = bpt_fail(
        BPT_EIO, "%s is in use by a program whose LMDB has another kind of lock file", g->data);
    bpt_hint("let that one end: it has another LMDB, or is built for another system");
    return status;
}

/* @param g is freed where this fails, else with the environment
 * @param[out] unlike whether it fails for a lock file that is in use in another layout */
static bpt_status open_handle(bpt__guard *g, const char *path, unsigned flags, MDB_env **out,
                              bool *unlike) {
    const unsigned kind = g->kind->rules.flags;
    const unsigned lock = g->lock_fd < 0 ? MDB_NOLOCK : 0;
    MDB_env *env = NULL;
    bpt_status status;
    *unlike = false;
    BPT_TRY_GOTO(status, bpt__guard_watch(g), fail);
    int code = mdb_env_create(&env);
    if (code == 0) code = mdb_env_set_userctx(env, g);
    if (code == 0) code = mdb_env_set_assert(env, end_with_word);
    if (code == 0) code = mdb_env_set_maxdbs(env, BPT__MAX_DATABASES);
    if (code == 0) code = open_files(g, path, flags | kind | lock, env);
    if (code != 0) {
        *unlike = has_unlike_lock(g, code);
        status = *unlike ? refuse_unlike(g) : bpt__lmdb_fail(code, "open", path);
        goto fail;
    }
    BPT_TRY_GOTO(status, bpt__guard_watch_opened(g, env), fail);
    *out = env;
    return BPT_OK;
fail:
    if (env) close_handle(g, env);
    bpt__guard_free(g);
    return status;
}

/* @return LMDB's code */
static int begin_read(MDB_env *env, MDB_txn **txn) {
    int code = mdb_txn_begin(env, NULL, MDB_RDONLY, txn);
    /* Readers that were killed have left their slots in the table; not given back are those of this
     * process's number, which one in a container may have had. */
    if (code == MDB_READERS_FULL && mdb_reader_check(env, NULL) == 0)
        code = mdb_txn_begin(env, NULL, MDB_RDONLY, txn);
    if (code == MDB_MAP_RESIZED) {
        /* A writer has made the map larger since we opened it: take its size. */
        code = mdb_env_set_mapsize(env, 0);
        if (code == 0) code = mdb_txn_begin(env, NULL, MDB_RDONLY, txn);
    }
    return code;
}

/* Locks are in the folder: who comes to the file by another name does not see them. */
static bool is_linked(const char *file) {
    struct stat info;
    return lstat(file, &info) == 0 && (S_ISLNK(info.st_mode) || info.st_nlink > 1);
}

/* LMDB's reader table is memory that processes share through a mapped file, which only works on one
 * machine and in the folder of the writers. Who is not in it asks whether it was overtaken. */
static bool may_be_seen(const bpt__environment_kind *kind, const char *path, const char *file) {
    return !kind->foreign && !bpt_file_system_at(path).network && !is_linked(file);
}

static bpt_status open_to_read(const bpt__environment_kind *kind, const char *path, bool seen,
                               MDB_env **env, bool *unlike) {
    bpt__guard *g;
    *unlike = false;
    BPT_TRY(bpt__guard_create(kind, path, &g));
    const bool lock = seen && may_be_seen(kind, path, g->data);
    if (seen && !kind->foreign && is_linked(g->data))
        bpt_info(
            "%s is read without a lock file (its file is a link, or has one): nobody may "
            "replace a split meanwhile",
            kind->what);
    const bpt_status status = lock ? bpt__guard_lock_if_can(g) : BPT_OK;
    if (status == BPT_OK) return open_handle(g, path, MDB_RDONLY | MDB_NOTLS, env, unlike);
    bpt__guard_free(g);
    return status;
}

/* LMDB knows a process by its number, and refuses a second of one number, which is in another
 * container. */
static bool has_twin(int code) {
    return code == EAGAIN || code == EACCES;
}

static bool has_no_place(int code) {
    return has_twin(code) || code == MDB_READERS_FULL;
}

static bpt_status open_and_begin(const bpt__environment_kind *kind, const char *path, MDB_env **env,
                                 MDB_txn **txn) {
    bool unlike;
    const bpt_status status = open_to_read(kind, path, true, env, &unlike);
    if (status != BPT_OK && !unlike) return status;
    int code = unlike ? 0 : begin_read(*env, txn);
    if (unlike || has_no_place(code)) {
        bpt_info("%s is read without its lock file (%s): nobody may replace a split meanwhile",
                 kind->what,
                 unlike           ? "a program with another LMDB uses it"
                 : has_twin(code) ? "a process in a container has the number of this one"
                                  : "its table of readers is full");
        bpt__environment_close(*env, NULL);
        *env = NULL;
        BPT_TRY(open_to_read(kind, path, false, env, &unlike));
        code = begin_read(*env, txn);
    }
    return code == 0 ? BPT_OK : bpt__lmdb_fail(code, "read", path);
}

/* What somebody wants to read, and how. */
typedef struct wish {
    const bpt__environment_kind *kind;
    const char *path, *file;
    bool deep;
    bpt__environment_body body;
    void *arg;
} wish;

/* @param[out] is_sound whether the walk found all in order: what fails then is the body */
static bpt_status read_pinned(const wish *w, MDB_env *env, MDB_txn *txn, bool *is_sound) {
    ((bpt__guard *)mdb_env_get_userctx(env))->pinned = mdb_txn_id(txn);
    bpt_status status = bpt__page_walk(w->file, &w->kind->rules, mdb_txn_id(txn), w->deep);
    BPT_TRY(bpt__environment_settle(env, status));
    *is_sound = true;
    if (!w->body) return BPT_OK;
    status = w->body(w->arg, env, txn);
    return status == BPT_OK ? BPT_OK : bpt__environment_settle(env, status);
}

static bpt_status read_once(const wish *w, MDB_env **out_env, MDB_txn **out_txn, bool *is_sound) {
    MDB_env *env = NULL;
    MDB_txn *txn = NULL;
    bpt_status status;
    *is_sound = false;
    BPT_TRY(bpt__page_check_heads(w->file, &w->kind->rules));
    BPT_TRY_GOTO(status, open_and_begin(w->kind, w->path, &env, &txn), fail);
    status = read_pinned(w, env, txn, is_sound);
    if (status != BPT_OK && bpt__environment_gone(env))
        status = bpt_fail(BPT_ECANCELED, "%s was replaced while it was read", w->file);
    if (status != BPT_OK) goto fail;
    *out_env = env;
    *out_txn = txn;
    return BPT_OK;
fail:
    bpt__environment_close(env, txn);
    return status;
}

static bpt_status hinted(const bpt__environment_kind *kind, bpt_status status) {
    if (status == BPT_ECORRUPT && !bpt_error_last()->hint[0]) bpt_hint("%s", kind->damaged_hint);
    return status;
}

/* @param[out] is_there whether it was found: what fails then is the body */
static bpt_status read_newest(const wish *w, MDB_env **env, MDB_txn **txn, bool *is_there) {
    bpt_status status = BPT_ECANCELED;
    int n_doubts = 0;
    for (int i = 0; status == BPT_ECANCELED && i < MAX_OVERTAKEN; i++) {
        status = read_once(w, env, txn, is_there);
        /* A head page read while a writer writes it can look damaged; it does not stay so. */
        if (status == BPT_ECORRUPT && !*is_there && ++n_doubts < MAX_DOUBTS) {
            nanosleep(&(struct timespec){.tv_nsec = 200000}, NULL);
            status = BPT_ECANCELED;
        }
    }
    return status;
}

bpt_status bpt__environment_read(const bpt__environment_kind *kind, const char *path, bool deep,
                                 bpt__environment_body body, void *arg, MDB_env **env,
                                 MDB_txn **txn) {
    char *file;
    bool is_there = false;
    BPT_TRY(bpt_strf(&file, "%s/%s", path, kind->data));
    const wish w = {
        .kind = kind, .path = path, .file = file, .deep = deep, .body = body, .arg = arg};
    bpt_status status = read_newest(&w, env, txn, &is_there);
    bpt_free(file);
    if (status == BPT_ENOENT && !is_there) {
        status = bpt_fail(BPT_ENOENT, "there is no %s at %s", kind->what, path);
        if (bpt_path_exists(path) && !bpt_path_is_folder(path))
            bpt_hint("that is a file: name the folder that holds %s", kind->data);
        else if (kind->missing_hint)
            bpt_hint("%s", kind->missing_hint);
    }
    return status == BPT_ECANCELED ? bpt_fail(BPT_EIO, "%s changes too fast to be read", path)
                                   : hinted(kind, status);
}

/* Who was killed while LMDB wrote the first two pages leaves less than a file: start over. What is
 * as short but tells of anything else is somebody's. */
static bpt_status remove_stump(const bpt__environment_kind *kind, const char *file) {
    struct stat info;
    bool is_stump;
    if (stat(file, &info) != 0)
        return errno == ENOENT ? BPT_OK : bpt_fail_errno(errno, "read", file);
    if (!S_ISREG(info.st_mode)) return bpt__page_check_heads(file, &kind->rules); /* it says so */
    BPT_TRY(bpt__page_is_stump(file, &is_stump));
    if (!is_stump) return bpt__page_check_heads(file, &kind->rules);
    return unlink(file) == 0 ? BPT_OK : bpt_fail_errno(errno, "remove", file);
}

static bpt_status fail_begin(int code, const char *path) {
    if (!has_twin(code)) return bpt__lmdb_fail(code, "read", path);
    const bpt_status status = bpt_fail(
        BPT_EIO, "%s is in use by a process that has the number of this one, %ld, in a container",
        path, (long)getpid());
    bpt_hint(
        "let that one end, or run both where processes have one numbering (docker run "
        "--pid=host)");
    return status;
}

static bpt_status check_before_write(MDB_env *env, const char *path) {
    const bpt__guard *g = mdb_env_get_userctx(env);
    MDB_txn *txn = NULL;
    (void)mdb_reader_check(env, NULL); /* pages that killed readers saw can be used again */
    const int code = begin_read(env, &txn);
    if (code != 0) return fail_begin(code, path);
    const bpt_status status = bpt__page_walk(g->data, &g->kind->rules, mdb_txn_id(txn), true);
    mdb_txn_abort(txn);
    return bpt__environment_settle(env, status);
}

static bpt_status refuse_links(const bpt__environment_kind *kind, const char *file) {
    if (!is_linked(file)) return BPT_OK;
    const bpt_status status = bpt_fail(
        BPT_EUSAGE, "%s is a link, or has one in another folder: it may only be read", file);
    bpt_hint("copy the %s to have one that may be written", kind->what);
    return status;
}

static bpt_status open_to_write(const bpt__environment_kind *kind, const char *path,
                                MDB_env **env) {
    bpt__guard *g;
    bpt_status status;
    bool unlike;
    BPT_TRY(bpt__guard_create(kind, path, &g));
    BPT_TRY_GOTO(status, refuse_links(kind, g->data), fail);
    BPT_TRY_GOTO(status, bpt__guard_lock(g), fail);
    BPT_TRY_GOTO(status, remove_stump(kind, g->data), fail);
    return open_handle(g, path, MDB_NOTLS, env, &unlike);
fail:
    bpt__guard_free(g);
    return status;
}

bpt_status bpt__environment_write(const bpt__environment_kind *kind, const char *path,
                                  MDB_env **out) {
    MDB_env *env;
    bpt_status status = open_to_write(kind, path, &env);
    if (status != BPT_OK) return hinted(kind, status);
    status = check_before_write(env, path);
    if (status == BPT_OK)
        *out = env;
    else
        bpt__environment_close(env, NULL);
    return hinted(kind, status);
}

bpt_status bpt__environment_map(MDB_env *env, const char *path, size_t bytes) {
    const int code = mdb_env_set_mapsize(env, bytes);
    if (code == 0) return BPT_OK;
    const bpt_status status = bpt__lmdb_fail(code, "enlarge the map of", path);
    if (code == ENOMEM)
        bpt_hint("raise the limit of addresses (`ulimit -v`), or end other programs");
    return status;
}

/* Whether the process may not make the environment's file as large as it has to be. */
static bool is_limited(MDB_env *env, size_t need_bytes) {
    struct rlimit limit;
    MDB_envinfo info;
    MDB_stat stat;
    if (getrlimit(RLIMIT_FSIZE, &limit) != 0 || limit.rlim_cur == RLIM_INFINITY) return false;
    mdb_env_info(env, &info);
    mdb_env_stat(env, &stat);
    return (info.me_last_pgno + 1) * stat.ms_psize + need_bytes > limit.rlim_cur;
}

/* A write that is cut short reaches LMDB's callers as EIO: look at the room left. */
bpt_status bpt__environment_unwritten(MDB_env *env, const char *path, size_t need_bytes, int code) {
    struct statvfs info;
    if (code == EIO && statvfs(path, &info) == 0 &&
        (uint64_t)info.f_bavail * info.f_frsize < need_bytes)
        code = ENOSPC;
    if (code == EIO && is_limited(env, need_bytes)) code = EFBIG;
    return code > 0 ? bpt_fail_write(code, "write", path) : bpt__lmdb_fail(code, "write", path);
}

void bpt__environment_close(MDB_env *env, MDB_txn *txn) {
    if (txn) mdb_txn_abort(txn);
    if (!env) return;
    bpt__guard *g = mdb_env_get_userctx(env);
    close_handle(g, env);
    bpt__guard_free(g);
}
