/* The folder itself: opening, beginning, closing. Files that are written in it while a job runs are
 * in run_files.c. */
#include "base/file.h"
#include "base/file_system.h"
#include "base/log.h"
#include "base/memory.h"
#include "base/text.h"
#include "tools/train/run/checkpoint_files.h"
#include "tools/train/run/run_folder_state.h"

#include <sys/stat.h>

#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define CONFIG      "config.yaml"
#define MODEL       "model.yaml"
#define SUMMARY     "summary.json"
#define CHART       "chart.svg"
#define CHECKPOINTS "checkpoints"
#define EXCHANGE    "exchange"

static bpt_status entry(const char *path, const char *name, char **out) {
    return bpt_strf(out, "%s/%s", path, name);
}

static bpt_status make_subfolder(const char *path, const char *name) {
    char *folder;
    BPT_TRY(entry(path, name, &folder));
    bpt_status status = bpt_dir_create(folder, false);
    if (status == BPT_EEXIST) {
        status = bpt_fail(BPT_EIO, "%s is no folder, or a link that leads to none", folder);
        bpt_hint("bring back what it is to lead to, or remove it");
    }
    bpt_free(folder);
    return status;
}

static bpt_status make_subfolders(const char *path) {
    BPT_TRY(make_subfolder(path, CHECKPOINTS));
    return make_subfolder(path, EXCHANGE);
}

/* ---- what may be there ---- */

/* What config.yaml of every run begins with; a folder with another config.yaml is somebody else's.
 */
static const char signature[] = "# effective configuration of bpt-train";

/* @return what keeps it from being seen */
static bpt_status look_for_run(const char *path, bool *is) {
    enum { CONFIG_BYTES = 1 << 20 };
    char *file, *text;
    size_t size;
    *is = false;
    BPT_TRY(entry(path, CONFIG, &file));
    const bpt_status status = bpt_file_read(file, CONFIG_BYTES, &text, &size);
    bpt_free(file);
    if (status == BPT_ENOENT || status == BPT_EDATA) return BPT_OK; /* none, or somebody else's */
    BPT_TRY(status);
    *is = strncmp(text, signature, sizeof signature - 1) == 0;
    bpt_free(text);
    return BPT_OK;
}

static bool is_run(const char *path) {
    bool is;
    return look_for_run(path, &is) == BPT_OK && is;
}

static bool is_dots(const char *name) {
    return strcmp(name, ".") == 0 || strcmp(name, "..") == 0;
}

typedef bool (*entry_fn)(const char *folder, const char *name);

/* Whether a folder can be read, and has no other entries than those; NULL: none at all. */
static bool has_only(const char *path, entry_fn which) {
    DIR *dir = opendir(path);
    bool only = dir != NULL;
    for (const struct dirent *e; only && (e = readdir(dir));)
        only = is_dots(e->d_name) || (which && which(path, e->d_name));
    if (dir) closedir(dir);
    return only;
}

static bool is_bare(const char *folder, const char *name) {
    char *path;
    if (entry(folder, name, &path) != BPT_OK) return false;
    const bool bare = has_only(path, NULL);
    bpt_free(path);
    return bare;
}

/* What a job leaves that was killed before the folder was known as a run: the lock, a part of the
 * configuration, and subfolders with nothing in them. */
static bool is_early(const char *folder, const char *name) {
    const size_t length = strlen(CONFIG);
    if (strcmp(name, CHECKPOINTS) == 0 || strcmp(name, EXCHANGE) == 0) return is_bare(folder, name);
    return strcmp(name, BPT_RUN_LOCK_NAME) == 0 ||
           (strncmp(name, CONFIG, length) == 0 && bpt_file_is_part_end(name + length));
}

static bool is_empty(const char *path) {
    return has_only(path, is_early);
}

static bpt_status refuse_existing(const char *path) {
    const bool run = is_run(path) || is_empty(path);
    const bpt_status status =
        bpt_fail(BPT_EEXIST, "%s%s exists already", run ? "the run folder " : "", path);
    if (run)
        bpt_hint("choose another --output, go on with --resume auto, or replace it with --force");
    else
        bpt_hint("it is not a run folder: choose another --output");
    return status;
}

static bpt_status refuse_stranger(const char *path) {
    const bpt_status status = bpt_fail(BPT_EUSAGE, "%s is not a run folder: left as it is", path);
    static const char hint[] =
        "--force and --resume auto take folders that bpt-train made; name another --output, with "
        "--resume %s if there are checkpoints in it";
    char word[BPT_ERROR_HINT_SIZE - sizeof hint];
    bpt_hint(hint, bpt_text_quote(path, word, sizeof word) ? word : "RUN");
    return status;
}

/* ---- opening ---- */

/* Of a link itself, also where a slash follows. */
static bpt_status look_for_any(const char *path, bool *there) {
    char *copy;
    BPT_TRY(bpt_strdup(path, &copy));
    for (size_t n = strlen(copy); n > 1 && copy[n - 1] == '/'; n--) copy[n - 1] = '\0';
    const bpt_status status = bpt_path_look(copy, there);
    bpt_free(copy);
    return status;
}

static bpt_status look(const char *path, bpt_run_folder_mode mode, bool *there) {
    BPT_TRY(look_for_any(path, there));
    if (!*there) return BPT_OK;
    if (mode == BPT_RUN_NEW) return refuse_existing(path);
    bool is;
    BPT_TRY(look_for_run(path, &is));
    return is || is_empty(path) ? BPT_OK : refuse_stranger(path);
}

bpt_status bpt_run_folder_look(const char *path, bpt_run_folder_mode mode) {
    bool there;
    return look(path, mode, &there);
}

bpt_status bpt_run_folder_check(const bpt_run_folder *run) {
    if (is_run(run->path)) return BPT_OK;
    const bpt_status status =
        bpt_fail(BPT_EIO, "the run folder %s is gone: it was removed or moved", run->path);
    bpt_hint("what it held is where it was moved to; start anew with another --output");
    return status;
}

/* Rank 0: the folder is there and locked afterwards; what it holds is as it was. */
static bpt_status open_first(bpt_run_folder *run) {
    const char *path = run->path;
    bool there;
    BPT_TRY(look(path, run->mode, &there));
    const bpt_status made = there ? BPT_OK : bpt_dir_create_counted(path, true, &run->n_made);
    if (made == BPT_EEXIST) BPT_TRY(look(path, run->mode, &there)); /* somebody was first */
    if (made != BPT_OK && made != BPT_EEXIST) return made;
    return bpt_run_lock_take(path, &run->lock);
}

/* What rank 0 has made may take a moment to show on a network file system. */
static bpt_status await_lock(const char *path, const char *mark) {
    enum { PATIENCE_MS = 5000, POLL_MS = 50 };
    bpt_run_sight sight = bpt_run_lock_look(path, mark);
    for (int waited = 0; sight != BPT_RUN_SEEN && waited < PATIENCE_MS; waited += POLL_MS) {
        usleep(POLL_MS * 1000);
        sight = bpt_run_lock_look(path, mark);
    }
    if (sight == BPT_RUN_SEEN) return BPT_OK;
    const bpt_status status = bpt_fail(BPT_EUSAGE, "the run folder %s %s", path,
                                       sight == BPT_RUN_UNSEEN ? "is not seen on this host"
                                                               : "on this host is not rank 0's");
    bpt_hint("name an --output on a file system that all machines share");
    return status;
}

/* @param mark NULL on rank 0 */
static bpt_status open_any(const char *path, bpt_run_folder_mode mode, const char *mark,
                           bpt_run_folder **out) {
    bpt_run_folder *run;
    BPT_TRY(BPT_NEW("run folder", 1, &run));
    run->mode = mode;
    bpt_status status = bpt_strdup(path, &run->path);
    if (status == BPT_OK) status = mark ? await_lock(path, mark) : open_first(run);
    if (status == BPT_OK)
        *out = run;
    else
        bpt_run_folder_close(run);
    return status;
}

bpt_status bpt_run_folder_open(const char *path, bpt_run_folder_mode mode, bpt_run_folder **run) {
    return open_any(path, mode, NULL, run);
}

bpt_status bpt_run_folder_join(const char *path, const char *mark, bpt_run_folder **run) {
    return open_any(path, BPT_RUN_GO_ON, mark, run);
}

const char *bpt_run_folder_mark(const bpt_run_folder *run) {
    return bpt_run_lock_mark(run->lock);
}

/* ---- beginning ---- */

/* Whether a name has come to its end, or goes on as that of a file that was left half-written. */
static bool is_end(const char *rest) {
    return rest[0] == '\0' || bpt_file_is_part_end(rest);
}

/* A file that each rank has; not what somebody made of it: tuned.rank-0.old.yaml is his. */
static bool is_of_rank(const char *name, const char *begin, const char *end) {
    const size_t length = strlen(end);
    if (strncmp(name, begin, strlen(begin)) != 0) return false;
    name += strlen(begin);
    const size_t digits = strspn(name, "0123456789");
    return digits > 0 && strncmp(name + digits, end, length) == 0 && is_end(name + digits + length);
}

static const char gpu_begin[] = "gpu.rank-", rank_begin[] = ".rank-";

/* How the ranks' GPUs compute. */
static bool is_gpu(const char *name) {
    return is_of_rank(name, gpu_begin, ".yaml");
}

/* What each rank writes when the run begins: what it is tuned by, and how its GPU computes. */
static bool is_of_start(const char *name) {
    return is_gpu(name) || is_of_rank(name, "tuned.rank-", ".yaml");
}

static bool is_log(const char *name) {
    return is_of_rank(name, "log.rank-", ".txt");
}

/* Whether a run makes a file of this name, or a killed one may have left it half-written. */
static bool is_file_made(const char *name) {
    static const char *const made[] = {CONFIG, MODEL,   BPT__RUN_METRICS,
                                       CHART,  SUMMARY, "model.safetensors"};
    for (size_t i = 0; i < sizeof made / sizeof *made; i++) {
        const size_t length = strlen(made[i]);
        if (strncmp(name, made[i], length) == 0 && is_end(name + length)) return true;
    }
    return is_log(name) || is_of_start(name);
}

static bool is_made(const char *name) {
    return is_file_made(name) || strcmp(name, EXCHANGE) == 0 || strcmp(name, CHECKPOINTS) == 0;
}

static bool is_part(const char *name) {
    const char *end = strrchr(name, '.');
    return end && bpt_file_is_part_end(end);
}

static bool is_part_of_file(const char *name) {
    return is_part(name) && is_file_made(name);
}

/* What is written anew when a run begins stays until then. */
static bool is_replaced(const char *name) {
    return is_made(name) && strcmp(name, CONFIG) != 0 && strcmp(name, MODEL) != 0;
}

static bool is_of_exchange(const char *name) {
    static const char shards[] = "shards.json";
    if (strncmp(name, shards, sizeof shards - 1) == 0) return is_end(name + sizeof shards - 1);
    return is_of_rank(name, "updates.rank-", ".jsonl") ||
           is_of_rank(name, "steps.rank-", ".jsonl") || is_of_rank(name, "border.rank-", ".jsonl");
}

static bool is_part_of_exchange(const char *name) {
    return is_part(name) && is_of_exchange(name);
}

/* What a run makes in an entry of this name; NULL: the entry itself. What is there beside is the
 * user's. */
typedef bool (*known_fn)(const char *name);

static known_fn made_within(const char *name) {
    if (strcmp(name, CHECKPOINTS) == 0) return bpt_checkpoint_is_name;
    return strcmp(name, EXCHANGE) == 0 ? is_of_exchange : NULL;
}

typedef bpt_status (*path_fn)(const char *path, void *context);

/* Calls fn with the path of each entry of a folder that is known. */
static bpt_status each_known(const char *folder, known_fn known, path_fn fn, void *context) {
    DIR *dir = opendir(folder);
    if (!dir) return bpt_fail_write(errno, "list", folder);
    bpt_status status = BPT_OK;
    for (const struct dirent *e; status == BPT_OK && (e = readdir(dir));) {
        char *path;
        if (!known(e->d_name)) continue;
        status = entry(folder, e->d_name, &path);
        if (status != BPT_OK) break;
        status = fn(path, context);
        bpt_free(path);
    }
    closedir(dir);
    return status;
}

static bpt_status remove_path(const char *path, void *context) {
    (void)context;
    return bpt_dir_remove(path);
}

static bpt_status add_bytes(const char *path, void *context) {
    *(uint64_t *)context += bpt_dir_bytes(path);
    return BPT_OK;
}

/* Of a link to a folder, too: what a run makes may lie on another disk. */
static bpt_status remove_made(const char *path, known_fn known) {
    if (!known || !bpt_path_is_folder(path)) return bpt_dir_remove(path);
    BPT_TRY(each_known(path, known, remove_path, NULL));
    (void)rmdir(path); /* unless somebody keeps something in it, or it is a link */
    return BPT_OK;
}

bpt_status bpt_run_folder_remove(const bpt_run_folder *run, const char *name) {
    char *path;
    BPT_TRY(entry(run->path, name, &path));
    const bpt_status status = remove_made(path, made_within(name));
    bpt_free(path);
    return status;
}

static bpt_status remove_entries(const bpt_run_folder *run, bool (*which)(const char *name)) {
    DIR *dir = opendir(run->path);
    if (!dir) return bpt_fail_write(errno, "list", run->path);
    bpt_status status = BPT_OK;
    for (const struct dirent *e; status == BPT_OK && (e = readdir(dir));)
        if (which(e->d_name)) status = bpt_run_folder_remove(run, e->d_name);
    closedir(dir);
    return status;
}

/* The configuration stays until there is a new one: by it the folder is known as a run. What else
 * somebody keeps there is his. */
static bpt_status remove_run(const bpt_run_folder *run) {
    return remove_entries(run, is_replaced);
}

static bpt_status write_config(const bpt_run_folder *run, const bpt_command *command,
                               const void *values) {
    char *text = NULL;
    size_t size = 0;
    FILE *memory = open_memstream(&text, &size);
    if (!memory) return bpt_fail_write(errno, "write", CONFIG);
    fprintf(memory, "%s; repeat with: %s --config THIS --output NEW\n", signature, command->name);
    bpt_options_print(command, values, memory);
    bpt_status status = BPT_OK;
    if (fclose(memory) != 0) status = bpt_fail(BPT_ENOMEM, "cannot print the configuration");
    if (status == BPT_OK) status = bpt__run_folder_write(run, CONFIG, text, size);
    free(text); /* the C library's own memory */
    return status;
}

/* What each rank writes when the run begins, of ranks that are no more. Each sees to its own: a
 * start that fails is to leave them as they are. */
static bpt_status remove_of_others(const bpt_run_folder *run, uint32_t n_ranks) {
    DIR *dir = opendir(run->path);
    if (!dir) return bpt_fail_write(errno, "list", run->path);
    bpt_status status = BPT_OK;
    for (const struct dirent *e; status == BPT_OK && (e = readdir(dir));) {
        if (!is_of_start(e->d_name)) continue;
        const char *rank = strstr(e->d_name, rank_begin) + strlen(rank_begin);
        if (strtoull(rank, NULL, 10) >= n_ranks) status = bpt_run_folder_remove(run, e->d_name);
    }
    closedir(dir);
    return status;
}

/* What a killed job has left half-written: nobody else writes here now. */
static bpt_status remove_parts(const bpt_run_folder *run) {
    char *exchange;
    BPT_TRY(remove_entries(run, is_part_of_file));
    BPT_TRY(entry(run->path, EXCHANGE, &exchange));
    const bpt_status status = each_known(exchange, is_part_of_exchange, remove_path, NULL);
    bpt_free(exchange);
    return status;
}

/* Likewise of checkpoints, which the next one would remove else, if there is one. Where that fails,
 * as with a rank of the killed job that still writes there, they are nobody's loss. */
static bpt_status remove_torn(const bpt_run_folder *run) {
    char *checkpoints;
    BPT_TRY(entry(run->path, CHECKPOINTS, &checkpoints));
    if (bpt_checkpoint_prune(checkpoints, SIZE_MAX) != BPT_OK)
        bpt_warn("checkpoints that are not whole stay: %s", bpt_error_last()->text);
    bpt_free(checkpoints);
    return BPT_OK;
}

/* From its configuration on the folder is known as a run, also if this job is killed. */
bpt_status bpt_run_folder_begin(bpt_run_folder *run, uint32_t n_ranks, bool anew,
                                const bpt_command *command, const void *values,
                                const bpt_bytes *model) {
    BPT_TRY(make_subfolders(run->path)); /* what fails here has removed nothing */
    if (run->mode == BPT_RUN_REPLACE) BPT_TRY(remove_run(run));
    BPT_TRY(make_subfolders(run->path));
    BPT_TRY(remove_parts(run));
    BPT_TRY(bpt_run_folder_remove(run, SUMMARY)); /* final weights without it are those of before */
    BPT_TRY(write_config(run, command, values));
    BPT_TRY(bpt__run_folder_write(run, MODEL, model->data, model->size));
    BPT_TRY(remove_of_others(run, n_ranks));
    if (!anew) return remove_torn(run);
    BPT_TRY(bpt_run_folder_remove(run, BPT__RUN_METRICS));
    BPT_TRY(bpt_run_folder_remove(run, CHART));
    BPT_TRY(bpt_run_folder_remove(run, EXCHANGE));
    BPT_TRY(remove_entries(run, is_log));
    return make_subfolders(run->path);
}

bool bpt_run_folder_had_gpu(const char *path, unsigned *rank) {
    DIR *dir = opendir(path);
    bool had = false;
    for (const struct dirent *e; dir && !had && (e = readdir(dir));) {
        had = is_gpu(e->d_name);
        if (had) *rank = (unsigned)strtoul(e->d_name + strlen(gpu_begin), NULL, 10);
    }
    if (dir) closedir(dir);
    return had;
}

bool bpt_run_folder_replaces(const bpt_run_folder *run) {
    return run->mode == BPT_RUN_REPLACE && run->n_made == 0;
}

bool bpt_run_folder_is_apart(const char *run, const char *name) {
    struct stat here, there;
    char *path;
    if (entry(run, name, &path) != BPT_OK) return false;
    const bool apart =
        stat(run, &here) == 0 && stat(path, &there) == 0 && here.st_dev != there.st_dev;
    bpt_free(path);
    return apart;
}

static void add_freed(const char *folder, const char *name, uint64_t *bytes) {
    const known_fn known = made_within(name);
    char *path;
    if (entry(folder, name, &path) != BPT_OK) return;
    if (!known || !bpt_path_is_folder(path))
        (void)add_bytes(path, bytes);
    else if (!bpt_run_folder_is_apart(folder, name))
        (void)each_known(path, known, add_bytes, bytes);
    bpt_free(path);
}

/* @param except NULL: nothing */
static uint64_t count_freed(const char *folder, const char *except) {
    DIR *dir = opendir(folder);
    uint64_t bytes = 0;
    for (const struct dirent *e; dir && (e = readdir(dir));)
        if (is_replaced(e->d_name) && (!except || strcmp(e->d_name, except) != 0))
            add_freed(folder, e->d_name, &bytes);
    if (dir) closedir(dir);
    return bytes;
}

uint64_t bpt_run_folder_bytes(const char *run) {
    return count_freed(run, NULL);
}

uint64_t bpt_run_folder_frees(const bpt_run_folder *run) {
    return bpt_run_folder_replaces(run) ? count_freed(run->path, CHECKPOINTS) : 0;
}

void bpt_run_folder_keep(bpt_run_folder *run) {
    run->kept = true;
}

void bpt_run_folder_close(bpt_run_folder *run) {
    if (!run) return;
    bpt_error error;
    bpt_error_get(&error); /* the reason for which a folder is taken back */
    if (run->metrics) fclose(run->metrics);
    const bool made_in_vain = run->n_made && !run->kept;
    /* The lock is the last to go: until then nobody else begins to write here. */
    if (made_in_vain && run->lock && remove_run(run) == BPT_OK &&
        bpt_run_folder_remove(run, MODEL) == BPT_OK)
        (void)bpt_run_folder_remove(run, CONFIG);
    bpt_run_lock_release(run->lock);
    if (made_in_vain) bpt_dir_take_back(run->path, run->n_made);
    (void)bpt_error_put(&error);
    bpt_free(run->path);
    bpt_free(run);
}

/* The folder of checkpoints may be a link, by which they lie elsewhere. */
static bool is_among_checkpoints(const char *run, const char *path) {
    char *checkpoints;
    if (entry(run, CHECKPOINTS, &checkpoints) != BPT_OK) return false;
    const bool is = bpt_path_is_folder(checkpoints) && bpt_path_lies_in(path, checkpoints);
    bpt_free(checkpoints);
    return is;
}

bool bpt_run_folder_holds(const char *run, const char *path) {
    if (!bpt_path_exists(run) || !bpt_path_exists(path)) return false;
    return bpt_path_lies_in(path, run) || is_among_checkpoints(run, path);
}

bool bpt_run_folder_goes_on(const char *run, const char *resume) {
    return resume && (strcmp(resume, "auto") == 0 || bpt_run_folder_holds(run, resume));
}

const char *bpt_run_folder_path(const bpt_run_folder *run) {
    return run->path;
}

bpt_status bpt_run_folder_entry(const bpt_run_folder *run, const char *name, char **out) {
    return entry(run->path, name, out);
}

bpt_status bpt_run_folder_finished(const char *path, bool *finished) {
    char *summary;
    *finished = false;
    BPT_TRY(entry(path, SUMMARY, &summary));
    const bpt_status status = bpt_path_look(summary, finished);
    bpt_free(summary);
    return status == BPT_OK && *finished ? look_for_run(path, finished) : status;
}
