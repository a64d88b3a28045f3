#include "tools/train/run_folder.h"

#include "base/file.h"
#include "base/memory.h"

#include <sys/stat.h>

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

struct bpt_run_folder {
    char *path;
    FILE *metrics; /* opened at the first event */
};

static bpt_status entry(const char *path, const char *name, char **out) {
    return bpt_strf(out, "%s/%s", path, name);
}

static bpt_status make_subfolder(const char *path, const char *name) {
    char *folder;
    BPT_TRY(entry(path, name, &folder));
    const bpt_status status = bpt_dir_create(folder, false);
    bpt_free(folder);
    return status;
}

/* What config.yaml of every run begins with; a folder with another config.yaml is somebody else's.
 */
static const char signature[] = "# effective configuration of bpt-train";

static bool is_run(const char *path) {
    char *file, line[sizeof signature] = "";
    if (entry(path, "config.yaml", &file) != BPT_OK) return false;
    FILE *config = fopen(file, "r");
    bpt_free(file);
    if (!config) return false;
    const bool read = fgets(line, sizeof line, config) != NULL;
    fclose(config);
    return read && strcmp(line, signature) == 0;
}

static bool is_empty(const char *path) {
    return rmdir(path) == 0 && mkdir(path, 0777) == 0;
}

static bpt_status refuse_existing(const char *path) {
    const bpt_status status = bpt_fail(BPT_EEXIST, "the run folder %s exists already", path);
    bpt_hint("choose another --output, go on with --resume auto, or replace it with --force");
    return status;
}

/* A run folder that cannot be made is no missing data, whatever the system calls it. */
static bpt_status make_folder(const char *path, bool must_be_new) {
    const bpt_status status = bpt_dir_create(path, must_be_new);
    if (status != BPT_ENOENT) return status;
    const bpt_error error = *bpt_error_last();
    return bpt_fail(BPT_EIO, "%s", error.text);
}

static bpt_status refuse_stranger(const char *path) {
    const bpt_status status = bpt_fail(BPT_EUSAGE, "%s is not a run folder: left as it is", path);
    bpt_hint("--force and --resume take folders that bpt-train made; name another --output");
    return status;
}

/* What rank 0 has made may take a moment to show on a network file system. */
static bpt_status join(const char *path) {
    enum { PATIENCE_MS = 5000, POLL_MS = 50 };
    for (int waited = 0; waited < PATIENCE_MS; waited += POLL_MS) {
        if (is_run(path)) return BPT_OK;
        usleep(POLL_MS * 1000);
    }
    const bpt_status status =
        bpt_fail(BPT_EUSAGE, "the run folder %s is not seen on this host", path);
    bpt_hint("name an --output on a file system that all machines share");
    return status;
}

/* Makes room for the run according to the mode. */
static bpt_status prepare(const char *path, bpt_run_folder_mode mode) {
    if (mode == BPT_RUN_JOIN) return join(path);
    if (!bpt_path_exists(path)) return make_folder(path, mode == BPT_RUN_NEW);
    if (mode == BPT_RUN_NEW) return refuse_existing(path);
    if (!is_run(path) && !is_empty(path)) return refuse_stranger(path);
    if (mode == BPT_RUN_GO_ON) return BPT_OK;
    BPT_TRY(bpt_dir_remove(path));
    return make_folder(path, true);
}

bpt_status bpt_run_folder_open(const char *path, bpt_run_folder_mode mode, bpt_run_folder **out) {
    bpt_run_folder *run;
    BPT_TRY(prepare(path, mode));
    BPT_TRY(make_subfolder(path, "checkpoints"));
    BPT_TRY(make_subfolder(path, "exchange"));
    BPT_TRY(BPT_NEW("run folder", 1, &run));
    const bpt_status status = bpt_strdup(path, &run->path);
    if (status != BPT_OK) {
        bpt_free(run);
        return status;
    }
    *out = run;
    return BPT_OK;
}

void bpt_run_folder_close(bpt_run_folder *run) {
    if (!run) return;
    if (run->metrics) fclose(run->metrics);
    bpt_free(run->path);
    bpt_free(run);
}

bool bpt_run_folder_holds(const char *run, const char *path) {
    char *outer = realpath(run, NULL), *inner = realpath(path, NULL);
    const size_t length = outer ? strlen(outer) : 0;
    const bool holds = outer && inner && strncmp(inner, outer, length) == 0 &&
                       (inner[length] == '\0' || inner[length] == '/');
    free(outer); /* the C library's own memory */
    free(inner);
    return holds;
}

const char *bpt_run_folder_path(const bpt_run_folder *run) {
    return run->path;
}

bpt_status bpt_run_folder_entry(const bpt_run_folder *run, const char *name, char **out) {
    return entry(run->path, name, out);
}

static bpt_status write_entry(const bpt_run_folder *run, const char *name, const char *text,
                              size_t size) {
    char *path;
    BPT_TRY(entry(run->path, name, &path));
    const bpt_status status = bpt_file_write(path, text, size);
    bpt_free(path);
    return status;
}

bpt_status bpt_run_folder_config(const bpt_run_folder *run, const bpt_command *command,
                                 const void *values) {
    char *text = NULL;
    size_t size = 0;
    FILE *memory = open_memstream(&text, &size);
    if (!memory) return bpt_fail_errno(errno, "write", "config.yaml");
    fprintf(memory, "%s; repeat with: %s --config THIS --output NEW\n", signature, command->name);
    bpt_options_print(command, values, memory);
    bpt_status status = BPT_OK;
    if (fclose(memory) != 0) status = bpt_fail(BPT_ENOMEM, "cannot print the configuration");
    if (status == BPT_OK) status = write_entry(run, "config.yaml", text, size);
    free(text); /* the C library's own memory */
    return status;
}

bool bpt_run_folder_finished(const bpt_run_folder *run) {
    char *path;
    if (entry(run->path, "summary.json", &path) != BPT_OK) return false;
    const bool finished = bpt_path_exists(path);
    bpt_free(path);
    return finished;
}

static bpt_status remove_entry(const bpt_run_folder *run, const char *name) {
    char *path;
    BPT_TRY(entry(run->path, name, &path));
    const bpt_status status = bpt_dir_remove(path);
    bpt_free(path);
    return status;
}

bpt_status bpt_run_folder_go_on(bpt_run_folder *run) {
    return remove_entry(run, "summary.json");
}

bpt_status bpt_run_folder_restart(bpt_run_folder *run) {
    BPT_TRY(remove_entry(run, "summary.json"));
    BPT_TRY(remove_entry(run, "metrics.jsonl"));
    BPT_TRY(remove_entry(run, "exchange"));
    return make_subfolder(run->path, "exchange");
}

/* Cuts a file after its last whole line: a full disk or a kill may have left half of one. */
static void cut_torn_line(FILE *file) {
    long end = 0;
    rewind(file);
    for (int c; (c = fgetc(file)) != EOF;)
        if (c == '\n') end = ftell(file);
    /* If it cannot be cut, the half line stays, as it would without this. */
    if (ftruncate(fileno(file), end) == 0) fseek(file, 0, SEEK_END);
}

static bpt_status open_metrics(bpt_run_folder *run) {
    if (run->metrics) return BPT_OK;
    char *path;
    BPT_TRY(entry(run->path, "metrics.jsonl", &path));
    run->metrics = fopen(path, "a+");
    const bpt_status status = run->metrics ? BPT_OK : bpt_fail_errno(errno, "open", path);
    if (run->metrics) cut_torn_line(run->metrics);
    bpt_free(path);
    return status;
}

bpt_status bpt_run_folder_metric(bpt_run_folder *run, bpt_json_writer *event) {
    const char *text;
    size_t length;
    BPT_TRY(open_metrics(run));
    BPT_TRY(bpt_json_end_text(event, &text, &length));
    const bool written = fwrite(text, 1, length, run->metrics) == length &&
                         fputc('\n', run->metrics) != EOF && fflush(run->metrics) == 0;
    bpt_json_reset(event);
    return written ? BPT_OK : bpt_fail_errno(errno, "write", "metrics.jsonl");
}

bpt_status bpt_run_folder_json(const bpt_run_folder *run, const char *name, bpt_json_writer *json) {
    const char *text;
    size_t length;
    char *line;
    BPT_TRY(bpt_json_end_text(json, &text, &length));
    BPT_TRY(bpt_strf(&line, "%s\n", text));
    const bpt_status status = write_entry(run, name, line, length + 1);
    bpt_free(line);
    return status;
}
