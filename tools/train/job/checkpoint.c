#include "tools/train/job/checkpoint.h"

#include "base/file.h"
#include "base/log.h"
#include "base/memory.h"
#include "inner/weights/safetensors.h"
#include "outer/comm/watch.h"
#include "tools/precision.h"
#include "tools/train/job/checkpoint_state.h"
#include "tools/train/run/checkpoint_files.h"

#include <sys/stat.h>

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

static const char WEIGHTS[] = "model.safetensors", VELOCITY[] = "server.momentum.safetensors";

/* ---- saving ---- */

/* Writes what is in job->flat. */
static bpt_status write_flat(bpt_job *job, const char *folder, const char *name,
                             bpt_checkpoint_file *file) {
    char *path;
    bpt_comm_operation_begin(job->comm, "the disk"); /* file by file: a large one takes its time */
    BPT_TRY(bpt_strf(&path, "%s/%s", folder, name));
    const bpt_status status =
        bpt_safetensors_write(path, &job->model->segments, job->flat, NULL, 0);
    bpt_free(path);
    return status == BPT_OK ? bpt_checkpoint_measure(folder, name, file) : status;
}

static bpt_status write_vector(bpt_job *job, bpt_vector which, const char *folder, const char *name,
                               bpt_checkpoint_file *file) {
    BPT_TRY(bpt_job_get(job, which, job->flat));
    return write_flat(job, folder, name, file);
}

static bpt_status write_state(const bpt_job *job, const char *folder, const char *name) {
    bpt_json_writer w = {0};
    const char *text;
    size_t length;
    char *path = NULL;
    bpt_checkpoint_put_state(job, &w);
    bpt_status status = bpt_json_end_text(&w, &text, &length);
    if (status == BPT_OK) status = bpt_strf(&path, "%s/%s", folder, name);
    if (status == BPT_OK) status = bpt_file_write(path, text, length);
    bpt_free(path);
    bpt_json_free(&w);
    return status;
}

/* A file for each vector of the optimiser's state: "rank-0.momentum.safetensors". */
static void name_vector(const bpt_job *job, size_t i, char name[BPT_CHECKPOINT_NAME_SIZE]) {
    snprintf(name, BPT_CHECKPOINT_NAME_SIZE, "rank-%u.%s.safetensors", job->rank,
             bpt_job_learning(job).optimizer->state_name[i]);
}

/* Where the job stands, the weights and the shards' velocity (by rank 0 only), the optimiser's
 * state. */
enum { FILES_OF_A_RANK = 3 + BPT_MAX_STATES };

static bpt_status write_files(bpt_job *job, const char *folder,
                              bpt_checkpoint_file files[FILES_OF_A_RANK]) {
    char name[BPT_CHECKPOINT_NAME_SIZE];
    snprintf(name, sizeof name, "rank-%u.json", job->rank);
    BPT_TRY(write_state(job, folder, name));
    BPT_TRY(bpt_checkpoint_measure(folder, name, &files[0]));
    for (size_t i = 0; i < bpt_job_n_states(job); i++) {
        name_vector(job, i, name);
        BPT_TRY(
            write_vector(job, (bpt_vector)(BPT_VECTOR_STATE_0 + i), folder, name, &files[3 + i]));
    }
    if (job->rank != 0) return BPT_OK;
    return write_vector(job, BPT_VECTOR_WEIGHTS, folder, WEIGHTS, &files[1]);
}

/* The shards' velocity, gathered from all ranks; collective. */
static bpt_status write_velocity(bpt_job *job, const char *folder, bpt_checkpoint_file *file) {
    if (bpt_checkpoint_velocities(job) == 0) return BPT_OK;
    const size_t frozen = bpt_model_frozen_elements(job->model);
    memset(job->flat, 0, frozen * sizeof *job->flat);
    BPT_TRY(bpt_exchange_velocity(job->exchange, job->flat + frozen));
    return bpt_comm_agree(job->comm,
                          job->rank == 0 ? write_flat(job, folder, VELOCITY, file) : BPT_OK);
}

/* Rank 0: makes the checkpoint whole, and puts it in its place. */
static bpt_status complete(const char *checkpoints, const char *part, const char *folder,
                           bpt_checkpoint_file *files, size_t n_files) {
    size_t n = 0;
    uint64_t serial;
    for (size_t i = 0; i < n_files; i++)
        if (files[i].name[0]) files[n++] = files[i];
    BPT_TRY(bpt_checkpoint_next_serial(checkpoints, &serial));
    BPT_TRY(bpt_checkpoint_write_done(part, serial, files, n));
    return bpt_checkpoint_place(checkpoints, part, folder);
}

/* What is saved stays saved, also where an older checkpoint cannot be removed. */
static void prune(const bpt_job *job, const char *checkpoints) {
    if (bpt_checkpoint_prune(checkpoints, (size_t)job->options->checkpoint_keep) != BPT_OK)
        bpt_warn("older checkpoints stay: %s", bpt_error_last()->text);
}

/* Without its parents: a run folder that went away just now is not made anew. */
static bpt_status make_one(const char *path, bool may_exist) {
    if (mkdir(path, 0777) == 0 || (may_exist && errno == EEXIST)) return BPT_OK;
    return bpt_fail_write(errno, "create", path);
}

static bpt_status make_folder(const bpt_job *job, const char *checkpoints, const char *part,
                              const char *folder) {
    bpt_status status = BPT_OK;
    if (job->rank == 0) {
        status = bpt_checkpoint_clear(checkpoints, part, folder);
        if (status == BPT_OK) status = make_one(checkpoints, true);
        if (status == BPT_OK) status = make_one(part, false);
    }
    return bpt_comm_agree(job->comm, status);
}

static bpt_status save(bpt_job *job, const char *checkpoints, const char *part, const char *folder,
                       bpt_checkpoint_file *all) {
    bpt_checkpoint_file mine[FILES_OF_A_RANK] = {0};
    BPT_TRY(make_folder(job, checkpoints, part, folder));
    BPT_TRY(bpt_comm_agree(job->comm, write_files(job, part, mine)));
    BPT_TRY(write_velocity(job, part, &mine[2]));
    BPT_TRY(bpt_comm_allgather(job->comm, mine, sizeof mine, all));
    bpt_status status = BPT_OK;
    if (job->rank == 0)
        status = complete(checkpoints, part, folder, all, (size_t)job->n_ranks * FILES_OF_A_RANK);
    BPT_TRY(bpt_comm_agree(job->comm, status));
    bpt_info("checkpoint %s at epoch %.2f", folder, bpt_job_epoch(job));
    if (job->rank == 0) prune(job, checkpoints);
    return BPT_OK;
}

/* Who removes the folder of the run while a checkpoint is written has not come to its end yet. */
static bpt_status check_run_again(const bpt_job *job) {
    nanosleep(&(struct timespec){.tv_nsec = 100 * 1000 * 1000}, NULL);
    return bpt_run_folder_check(job->run);
}

/* Rank 0 for all, which have ended writing when they agree that it failed. Where messages fail they
 * may not have: then the next checkpoint of that name removes it. */
static void remove_part(const bpt_job *job, bpt_status status, const char *part) {
    if (job->rank == 0 && status != BPT_ECOMM) (void)bpt_checkpoint_remove(part);
}

static bpt_status explain_failure(const bpt_job *job, bpt_status status, const char *part) {
    const bpt_error error = *bpt_error_last();
    remove_part(job, status, part);
    const bool has_one = bpt_checkpoint_expect(bpt_run_folder_path(job->run)) == BPT_OK;
    if (status != BPT_ENOSPC) BPT_TRY(check_run_again(job));
    bpt_error_record(status, "checkpoint not saved: %.440s", error.text);
    if (status == BPT_ENOSPC)
        bpt_hint("make room, then %s", has_one
                                           ? "go on from the checkpoint before with --resume auto"
                                           : "begin anew; there is no checkpoint before");
    else if (error.hint[0])
        bpt_hint("%s", error.hint);
    return status;
}

/* Where the next checkpoint goes, and where it is until it is whole. */
static bpt_status name_folders(const bpt_job *job, char **checkpoints, char **folder, char **part) {
    if (job->rank == 0) BPT_TRY(bpt_run_folder_check(job->run));
    BPT_TRY(bpt_run_folder_entry(job->run, "checkpoints", checkpoints));
    BPT_TRY(bpt_strf(folder, "%s/step-%08llu", *checkpoints,
                     (unsigned long long)(job->count.progress / job->batch_all)));
    return bpt_strf(part, "%s.part", *folder);
}

bpt_status bpt_checkpoint_save(bpt_job *job) {
    char *checkpoints = NULL, *folder = NULL, *part = NULL;
    bpt_checkpoint_file *all = NULL;
    bpt_status status = name_folders(job, &checkpoints, &folder, &part);
    if (status == BPT_OK)
        status = BPT_NEW("checkpoint files", (size_t)job->n_ranks * FILES_OF_A_RANK, &all);
    BPT_TRY_GOTO(status, bpt_comm_agree(job->comm, status), done);
    bpt_comm_doing(job->comm, "a checkpoint");
    bpt_comm_operation_begin(job->comm, "the disk");
    status = save(job, checkpoints, part, folder, all);
    bpt_comm_operation_end(job->comm);
    bpt_comm_doing(job->comm, "training");
    if (status != BPT_OK) status = explain_failure(job, status, part);
done:
    bpt_free(all);
    bpt_free(part);
    bpt_free(folder);
    bpt_free(checkpoints);
    return status;
}

bpt_status bpt_checkpoint_forgo(const bpt_job *job, bpt_status failed) {
    if (failed == BPT_ECOMM) return failed; /* there may be nobody to ask */
    const bpt_error error = *bpt_error_last();
    const int32_t mine = failed;
    int32_t *each;
    bool for_room = true;
    BPT_TRY(
        bpt_comm_table(job->comm, "outcomes of a checkpoint", &mine, sizeof mine, (void **)&each));
    for (uint32_t r = 0; r < job->n_ranks; r++)
        for_room &= each[r] == BPT_ENOSPC || each[r] == BPT_EPEER;
    bpt_free(each);
    if (!for_room) return bpt_error_put(&error);
    if (job->rank == 0) bpt_warn("%s; the run goes on without", error.text);
    return BPT_OK;
}

/* ---- going on ---- */

enum { STATE_BYTES = 256 << 20 }; /* of a rank, at most */

/* A rank that the checkpoint does not know learns the progress from rank 0's state. */
static bpt_status load_state(const bpt_job *job, bpt_checkpoint *c) {
    char *path;
    BPT_TRY(bpt_strf(&path, "%s/rank-%u.json", c->path, job->rank));
    if (!bpt_path_exists(path)) {
        bpt_free(path);
        BPT_TRY(bpt_strf(&path, "%s/rank-0.json", c->path));
    }
    bpt_status status = bpt_json_load(path, STATE_BYTES, &c->state);
    if (status == BPT_OK) status = bpt_checkpoint_get_state(job, path, c);
    bpt_free(path);
    return status;
}

/* Cuts the last part of a path off; "" where it has no other.
 * @return whether that part is a name, no "." or ".." */
static bool cut_last(char *path) {
    size_t end = strlen(path);
    while (end > 0 && path[end - 1] == '/') path[--end] = '\0';
    char *slash = strrchr(path, '/'), *last = slash ? slash + 1 : path;
    const bool name = *last && strcmp(last, ".") != 0 && strcmp(last, "..") != 0;
    *last = '\0';
    return name;
}

/* The folder two above a checkpoint by its path as it is given, if a run is there: where
 * RUN/checkpoints is a link, the folder two above what it leads to may be anywhere.
 * @param[out] run NULL: none is there */
static bpt_status find_by_name(const char *checkpoint, char **run) {
    char *path, *config = NULL;
    *run = NULL;
    BPT_TRY(bpt_strdup(checkpoint, &path));
    bpt_status status = BPT_OK;
    if (cut_last(path) && cut_last(path)) status = bpt_strf(&config, "%sconfig.yaml", path);
    if (config && bpt_path_exists(config)) status = bpt_strf(run, "%s.", path);
    bpt_free(config);
    bpt_free(path);
    return status;
}

bpt_status bpt_checkpoint_run(const char *resume, char **run) {
    bool is_checkpoint;
    BPT_TRY(bpt_checkpoint_is_whole(resume, &is_checkpoint));
    if (!is_checkpoint) return bpt_strdup(resume, run);
    BPT_TRY(find_by_name(resume, run));
    return *run ? BPT_OK : bpt_strf(run, "%s/../..", resume);
}

/* The newest whole checkpoint of a run, or the one that was named itself; NULL if there is none. */
static bpt_status locate(const char *resume, char **path) {
    char *checkpoints;
    bool is_checkpoint;
    BPT_TRY(bpt_checkpoint_is_whole(resume, &is_checkpoint));
    if (is_checkpoint) return bpt_strdup(resume, path);
    BPT_TRY(bpt_strf(&checkpoints, "%s/checkpoints", resume));
    const bpt_status status = bpt_checkpoint_find(checkpoints, NULL, path);
    bpt_free(checkpoints);
    return status;
}

bpt_status bpt_checkpoint_expect(const char *resume) {
    char *path;
    BPT_TRY(locate(resume, &path));
    const bool found = path != NULL;
    bpt_free(path);
    if (found) return BPT_OK;
    const bpt_status status = bpt_fail(BPT_ENOENT, "no whole checkpoint in %s", resume);
    bpt_hint(
        "--resume takes a run folder or one of its checkpoints/step-NNNNNNNN; a run makes them "
        "every ten minutes, with --checkpoint-every or on a signal");
    return status;
}

bpt_status bpt_checkpoint_try(const char *resume, uint32_t n_ranks, char **path) {
    BPT_TRY(bpt_checkpoint_expect(resume));
    BPT_TRY(locate(resume, path));
    bpt_status status = BPT_OK;
    for (uint32_t r = 0; r < n_ranks && status == BPT_OK && *path; r++)
        status = bpt_checkpoint_verify(*path, r);
    if (status == BPT_OK) return BPT_OK;
    bpt_free(*path);
    *path = NULL;
    return status;
}

static bpt_status look_for_batch(const char *resume, uint32_t n_ranks, int64_t servers,
                                 int64_t *batch) {
    char *folder, *path;
    bpt_json_doc *state = NULL;
    BPT_TRY(locate(resume, &folder));
    if (!folder) return BPT_OK;
    bpt_status status = bpt_strf(&path, "%s/rank-0.json", folder);
    bpt_free(folder);
    BPT_TRY(status);
    status = bpt_json_load(path, STATE_BYTES, &state);
    bpt_free(path);
    if (status == BPT_OK) status = bpt_checkpoint_get_batch(state, n_ranks, servers, batch);
    bpt_json_doc_free(state);
    return status;
}

int64_t bpt_checkpoint_batch(const bpt_train_options *o, uint32_t n_ranks) {
    const char *resume = o->resume && strcmp(o->resume, "auto") == 0 ? o->output : o->resume;
    int64_t batch = 0;
    if (resume && look_for_batch(resume, n_ranks, o->servers, &batch) != BPT_OK) return 0;
    return batch;
}

/* Rank 0 chooses for all, so that ranks cannot differ in what they find.
 * @param[out] c->path stays NULL where there is none */
static bpt_status choose(const bpt_job *job, bpt_checkpoint *c) {
    const char *resume = job->options->resume;
    char path[PATH_MAX] = "";
    bpt_status status = BPT_OK;
    if (job->rank == 0) {
        char *found = NULL;
        status =
            locate(strcmp(resume, "auto") == 0 ? bpt_run_folder_path(job->run) : resume, &found);
        if (found) snprintf(path, sizeof path, "%s", found);
        bpt_free(found);
    }
    BPT_TRY(bpt_comm_agree(job->comm, status));
    BPT_TRY(bpt_comm_broadcast(job->comm, 0, path, sizeof path));
    return path[0] ? bpt_strdup(path, &c->path) : BPT_OK;
}

bpt_status bpt_checkpoint_open(const bpt_job *job, bool *found, bpt_checkpoint *c) {
    *c = (bpt_checkpoint){0};
    *found = false;
    BPT_TRY(choose(job, c));
    if (!c->path) return BPT_OK;
    bpt_status status = bpt_checkpoint_verify(c->path, job->rank);
    if (status == BPT_OK) status = load_state(job, c);
    if (status != BPT_OK) {
        bpt_checkpoint_close(c);
        return status;
    }
    *found = true;
    return BPT_OK;
}

void bpt_checkpoint_close(bpt_checkpoint *c) {
    bpt_json_doc_free(c->state);
    bpt_free(c->path);
    *c = (bpt_checkpoint){0};
}

static void warn_of_torn(const bpt_job *job) {
    char *checkpoints, names[400];
    if (bpt_run_folder_entry(job->run, "checkpoints", &checkpoints) != BPT_OK) return;
    if (bpt_checkpoint_torn(checkpoints, names, sizeof names) == BPT_OK && names[0])
        bpt_warn(
            "no checkpoint in %s is whole (without DONE: %s): training starts anew, and the next "
            "checkpoint removes them",
            checkpoints, names);
    bpt_free(checkpoints);
}

/* One of them may be newer: where its times are not those that it was written at, or a host's clock
 * is wrong. */
static void warn_of_passed_over(const bpt_checkpoint *c) {
    char folder[PATH_MAX], names[400];
    snprintf(folder, sizeof folder, "%s", c->path);
    char *slash = strrchr(folder, '/');
    if (!slash) return;
    *slash = '\0';
    if (bpt_checkpoint_passed_over(folder, slash + 1, names, sizeof names) == BPT_OK && names[0])
        bpt_warn("%s is taken; others have a damaged list: %s", c->path, names);
}

void bpt_checkpoint_warn(const bpt_job *job, const bpt_checkpoint *c) {
    if (c && c->exact && !c->same_cuts)
        bpt_warn(
            "what rank %u cuts convolutions by has changed since %s: the last bits of results may "
            "not be those of a run that never stopped (--tuned decides)",
            job->rank, c->path);
    if (c && c->exact && !c->same_device)
        bpt_warn(
            "rank %u computed on %s until %s, and on %s from now on: the last bits of results may "
            "not be those of a run that never stopped (--device decides)",
            job->rank, c->device, c->path, job->device ? job->device->kind->name : "cpu");
    else if (c && c->exact && job->device && job->device->n_measured > 0)
        bpt_warn(
            "rank %u: %u kernel%s measured anew, or the cores' share of samples: the last bits of "
            "results may not be those of a run that never stopped",
            job->rank, job->device->n_measured, job->device->n_measured == 1 ? " was" : "s were");
    if (c && c->exact && !c->same_precision)
        bpt_warn(
            "rank %u computed in %s until %s, and in %s from now on: results are not those of a "
            "run that never stopped (--precision decides)",
            job->rank, c->precision, c->path,
            bpt_precision_text((bpt_precision)job->options->precision, job->device));
    if (job->rank != 0) return;
    if (!c && job->options->resume) warn_of_torn(job);
    if (c) warn_of_passed_over(c);
    if (!c || c->exact) return;
    const char *order = "the optimiser's state and the order of samples start anew";
    if (c->same_order)
        order = "the optimiser's state starts anew, the order of samples goes on";
    else if (!job->shares)
        order = "the optimiser's state starts anew, the samples come in another order";
    bpt_warn("%s is of another job (%s differs): %s", c->path, c->differs, order);
}

static bpt_status read_vector(const bpt_checkpoint *c, const bpt_job *job, const char *name,
                              float *values) {
    char *path;
    BPT_TRY(bpt_strf(&path, "%s/%s", c->path, name));
    const bpt_status status = bpt_safetensors_read(path, &job->model->segments, values);
    bpt_free(path);
    return status;
}

bpt_status bpt_checkpoint_read(const bpt_checkpoint *c, bpt_job *job, float *weights) {
    if (job->rank == 0) BPT_TRY(read_vector(c, job, WEIGHTS, weights));
    if (!c->exact) return BPT_OK;
    for (size_t i = 0; i < bpt_job_n_states(job); i++) {
        char name[BPT_CHECKPOINT_NAME_SIZE];
        name_vector(job, i, name);
        BPT_TRY(read_vector(c, job, name, job->flat));
        BPT_TRY(bpt_job_set_state(job, (bpt_vector)(BPT_VECTOR_STATE_0 + i), job->flat));
    }
    bpt_job_set_updates(job, c->updates, c->placement_updates);
    return BPT_OK;
}

bpt_status bpt_checkpoint_velocity(const bpt_checkpoint *c, const bpt_job *job, float *velocity) {
    return job->rank == 0 ? read_vector(c, job, VELOCITY, velocity) : BPT_OK;
}
