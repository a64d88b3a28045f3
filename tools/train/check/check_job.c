/* Whether a job would begin with these options: by its own rules, before all its ranks have opened
 * their parts of it. */
#include "base/memory.h"
#include "tools/train/check/check_facts.h"
#include "tools/train/job/host_place.h"
#include "tools/train/job/job_parts.h"
#include "tools/train/job/layer_choice.h"
#include "tools/train/options/servers.h"
#include "tools/train/run/run_folder.h"
#include "tools/train/run/tuning.h"

static bpt_status choose(bpt_job *job, const bpt_check_facts *f) {
    BPT_TRY(bpt_job_choose(job));
    if (!f->data || !f->model) return BPT_OK; /* not named, or refused for themselves */
    BPT_TRY(bpt_job_open_data(job));
    BPT_TRY(bpt_job_choose_lengths(job));
    BPT_TRY(bpt_job_load_model(job));
    BPT_TRY(bpt_layer_choice_check(job->options, job->model));
    return bpt_job_check_batch_norms(job); /* no rank has fewer samples than this, the first */
}

/* How far a run has come that goes on is in a checkpoint, which is not opened here. */
static void look_at_need(const bpt_job *job, bpt_check_facts *f) {
    const bpt_train_options *o = job->options;
    if (!job->model || bpt_check_goes_on(o)) return;
    f->run_need = bpt_job_need(job, o->output && bpt_run_folder_is_apart(o->output, "checkpoints"));
}

void bpt_check_device(const bpt_train_options *o, const bpt_comm *comm, bpt_check_facts *f) {
    const uint32_t n_ranks = bpt_comm_size(comm);
    bpt_device *device;
    uint32_t n_servers;
    if (bpt_servers_count(o, n_ranks, &n_servers) != BPT_OK) return; /* not for a device's sake */
    const bpt_host_place place = bpt_host_place_of(comm, n_ranks - n_servers);
    if (bpt_job_find_device(o, n_ranks, place, &device) != BPT_OK) {
        bpt_check_refuse(&f->device_refusal, "choose --device cpu on this host");
        return;
    }
    f->threads = bpt_device_option_threads(device, f->threads, 0); /* 0: none wanted */
    f->on_device = device && !device->uses_cores;
    if (bpt_job_read_choices(o, bpt_comm_rank(comm), device) != BPT_OK)
        bpt_check_refuse(&f->device_refusal, "name a run whose files this host can read");
    bpt_device_close(device);
}

/* What the rank trains by; what fails here is said for its own sake. */
static bpt_status open_step(bpt_job *job) {
    BPT_TRY(bpt_job_choose(job));
    BPT_TRY(bpt_job_open_data(job));
    return bpt_job_load_model(job);
}

static bpt_status hold_tuned(const char *path, const bpt_tuned *tuned, bpt_job *job,
                             unsigned cores) {
    bpt_status status = BPT_OK;
    if (open_step(job) == BPT_OK) {
        const bpt_tuning_job here = {job->model, job->dataset, job->batch, cores, NULL};
        status = bpt_tuning_check(job->options, path, tuned, &here);
    }
    bpt_model_free(job->model);
    bpt_job_close_data(job);
    return status;
}

static bpt_status try_tuned(bpt_job *job, unsigned cores, bool sees_data) {
    char *path;
    bpt_tuned *tuned = NULL;
    BPT_TRY(bpt_tuned_path(job->options->tuned, &path));
    bpt_status status = bpt_tuned_read(path, &tuned);
    if (status == BPT_OK && sees_data) status = hold_tuned(path, tuned, job, cores);
    bpt_tuned_free(tuned);
    bpt_free(path);
    return status;
}

void bpt_check_tuned(const bpt_train_options *o, bpt_comm *comm, unsigned cores,
                     bpt_check_facts *f) {
    bpt_job job = {
        .options = o, .comm = comm, .rank = bpt_comm_rank(comm), .n_ranks = bpt_comm_size(comm)};
    if (o->tuned && *o->tuned && try_tuned(&job, cores, f->data && f->model) != BPT_OK)
        bpt_check_refuse(&f->tuned_refusal, "run bpt-tune on this host, or leave out --tuned");
}

void bpt_check_job(const bpt_train_options *o, bpt_comm *comm, bpt_check_facts *f) {
    bpt_job job = {
        .options = o, .comm = comm, .rank = bpt_comm_rank(comm), .n_ranks = bpt_comm_size(comm)};
    if (choose(&job, f) != BPT_OK)
        bpt_check_refuse(&f->job_refusal, "");
    else
        look_at_need(&job, f);
    bpt_model_free(job.model);
    bpt_job_close_data(&job);
}
