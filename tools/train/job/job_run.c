/* The folder of a job's run: what may be there, when it changes, and whose it is. Nothing in it
 * changes before all that can be refused has been looked at. */
#include "base/log.h"
#include "base/memory.h"
#include "outer/comm/watch.h"
#include "tools/train/job/checkpoint.h"
#include "tools/train/job/job_parts.h"
#include "tools/train/run/run_lock.h"
#include "tools/train/run/tuning.h"

#include <stdio.h>
#include <string.h>

static bpt_status refuse_force(const char *output) {
    const bpt_status status =
        bpt_fail(BPT_EUSAGE, "--force would remove %s, which --resume goes on from", output);
    bpt_hint("leave out --force to go on, or --resume to start anew");
    return status;
}

/* A job that does not come to its end would have taken them with it, and one that does could not be
 * repeated. */
static bpt_status refuse_own_weights(const bpt_train_options *o) {
    const bpt_status status = bpt_fail(
        BPT_EUSAGE, "--force would remove %s, which --init-weights names", o->init_weights);
    bpt_hint("name another --output, or copy the weights out of it first");
    return status;
}

bpt_status bpt_job_run_mode(const bpt_train_options *o, bpt_run_folder_mode *mode) {
    const bool goes_on = bpt_run_folder_goes_on(o->output, o->resume);
    if (goes_on && o->force) return refuse_force(o->output);
    if (o->force && o->init_weights && bpt_run_folder_holds(o->output, o->init_weights))
        return refuse_own_weights(o);
    *mode = goes_on ? BPT_RUN_GO_ON : o->force ? BPT_RUN_REPLACE : BPT_RUN_NEW;
    return BPT_OK;
}

/* Rank 0. What may be there depends on what is asked for. */
static bpt_status open_first(bpt_job *job) {
    const bpt_train_options *o = job->options;
    const bool automatic = o->resume && strcmp(o->resume, "auto") == 0;
    bpt_run_folder_mode mode;
    BPT_TRY(bpt_job_run_mode(o, &mode));
    if (o->resume && !automatic) BPT_TRY(bpt_checkpoint_expect(o->resume));
    if (automatic) BPT_TRY(bpt_run_folder_finished(o->output, &job->finished));
    if (job->finished) return BPT_OK;
    BPT_TRY(bpt_run_folder_open(o->output, mode, &job->run));
    /* Again: it may have come to its end before it was locked. */
    return automatic ? bpt_run_folder_finished(o->output, &job->finished) : BPT_OK;
}

/* A folder of that path may be there on every host and still not be the same one. */
static bpt_status join(bpt_job *job) {
    char mark[BPT_RUN_MARK_SIZE] = "";
    if (job->rank == 0) snprintf(mark, sizeof mark, "%s", bpt_run_folder_mark(job->run));
    BPT_TRY(bpt_comm_broadcast(job->comm, 0, mark, sizeof mark));
    const bpt_status status =
        job->rank == 0 ? BPT_OK : bpt_run_folder_join(job->options->output, mark, &job->run);
    return bpt_comm_agree(job->comm, status);
}

static bpt_status open_run(bpt_job *job) {
    BPT_TRY(bpt_comm_agree(job->comm, job->rank == 0 ? open_first(job) : BPT_OK));
    BPT_TRY(bpt_comm_broadcast(job->comm, 0, &job->finished, sizeof job->finished));
    return job->finished ? BPT_OK : join(job);
}

bpt_status bpt__job_open_run(bpt_job *job) {
    bpt_comm_operation_begin(job->comm, "the run folder");
    const bpt_status status = open_run(job);
    bpt_comm_operation_end(job->comm);
    return status;
}

static bpt_status begin_first(const bpt_job *job, bool anew) {
    BPT_TRY(bpt__job_check_room(job));
    bpt_train_options repeat = bpt_tuning_repeat(job->options);
    /* Whoever repeats the run does not mean to lose this one, nor its trace. */
    repeat.force = false;
    repeat.trace = repeat.trace_steps = NULL;
    /* As it was read: --force may have removed the file, and others may have changed it. */
    const bpt_bytes model = {job->model->text, job->model->text_bytes};
    return bpt_run_folder_begin(job->run, job->n_ranks, anew, &bpt_train_command, &repeat, &model);
}

static bpt_status open_log(const bpt_job *job) {
    char name[32], *path;
    snprintf(name, sizeof name, "log.rank-%u.txt", job->rank);
    BPT_TRY(bpt_run_folder_entry(job->run, name, &path));
    const bpt_status status = bpt_log_file(path);
    bpt_free(path);
    return status;
}

static bpt_status begin_run(bpt_job *job, bool anew) {
    job->begun = true;
    BPT_TRY(bpt_comm_agree(job->comm, job->rank == 0 ? begin_first(job, anew) : BPT_OK));
    bpt_status status = bpt_tuning_keep(job->options, job->run, job->rank);
    if (status == BPT_OK) status = bpt__job_keep_choices(job);
    if (status == BPT_OK) status = open_log(job);
    return bpt_comm_agree(job->comm, status);
}

bpt_status bpt__job_begin_run(bpt_job *job, bool anew) {
    bpt_comm_operation_begin(job->comm, "the run folder");
    const bpt_status status = begin_run(job, anew);
    bpt_comm_operation_end(job->comm);
    return status;
}
