/* What a rank's network is to be on. */
#include "base/log.h"
#include "base/memory.h"
#include "tools/train/job/host_place.h"
#include "tools/train/job/job_parts.h"
#include "tools/train/job/layer_choice.h"

#include <inttypes.h>
#include <string.h>
#include <unistd.h>

static bpt_status refuse_tuned(const bpt_device *device) {
    const bpt_status status =
        bpt_fail(BPT_EUSAGE, "--tuned is of the processor's cores, and this rank computes on %s",
                 device->name);
    bpt_hint("leave it out, or give --device cpu");
    return status;
}

/* The option given that is of cores alone; NULL: none is. */
static const char *of_cores(const bpt_train_options *o, uint32_t n_ranks) {
    if (o->tuned) return "--tuned";
    return bpt_layer_choice_wants_cores(o, n_ranks) ? "--placement" : NULL;
}

/* Of "auto" with such an option. The first of a host says it for the others. */
static const char *choose_cores(const char *option, bpt_host_place place) {
    int n;
    if (place.index == 0 && bpt_device_count(&n) == BPT_OK && n > 0)
        bpt_warn("--device auto takes the cores: %s is of these alone", option);
    return "cpu";
}

bpt_status bpt_job_find_device(const bpt_train_options *o, uint32_t n_ranks, bpt_host_place place,
                               bpt_device **device) {
    const char *choice = o->device, *option = of_cores(o, n_ranks);
    bpt_device *found;
    *device = NULL;
    if (option && strcmp(choice, "auto") == 0) choice = choose_cores(option, place);
    BPT_TRY(bpt_device_option_open(choice, (bpt_precision)o->precision, place, &found));
    if (found && o->tuned) {
        const bpt_status status = refuse_tuned(found);
        bpt_device_close(found);
        return status;
    }
    bpt_device_give_images(found); /* cores cannot: their batches are of floats */
    *device = found;
    return BPT_OK;
}

static bpt_status open_own(bpt_job *job) {
    if (bpt_job_is_server(job)) return BPT_OK;
    return bpt_job_find_device(job->options, job->n_ranks,
                               bpt_host_place_of(job->comm, job->n_workers), &job->device);
}

bpt_status bpt__job_open_device(bpt_job *job) {
    BPT_TRY(bpt_comm_agree(job->comm, open_own(job)));
    BPT_TRY(bpt_comm_any(job->comm, job->device != NULL, &job->any_device));
    return bpt_layer_choice_check_devices(job);
}

/* ---- what a GPU has chosen by measurement, kept with the run ---- */

#define CHOICES_NAME "gpu.rank-%" PRIu32 ".yaml"

static bpt_status choices_path(const char *run, uint32_t rank, char **path) {
    return bpt_strf(path, "%s/" CHOICES_NAME, run, rank);
}

static bpt_status read_choices(const char *run, uint32_t rank, bpt_device *device) {
    char *path;
    const char *unlike = NULL;
    BPT_TRY(choices_path(run, rank, &path));
    const bool there = access(path, F_OK) == 0;
    const bpt_status status = there ? bpt_device_load_choices(device, path, &unlike) : BPT_OK;
    if (status == BPT_OK && unlike) bpt_warn("%s is of %s: of no use here", path, unlike);
    bpt_free(path);
    return status;
}

bpt_status bpt_job_read_choices(const bpt_train_options *o, uint32_t rank, bpt_device *device) {
    char *run;
    const bool known = o->output && bpt_run_folder_goes_on(o->output, o->resume);
    if (!device || !o->resume) return BPT_OK;
    if (known) return read_choices(o->output, rank, device);
    if (strcmp(o->resume, "auto") == 0) return BPT_OK; /* of a run that is not named */
    BPT_TRY(bpt_checkpoint_run(o->resume, &run));
    const bpt_status status = read_choices(run, rank, device);
    bpt_free(run);
    return status;
}

bpt_status bpt__job_keep_choices(const bpt_job *job) {
    char *path, name[40];
    snprintf(name, sizeof name, CHOICES_NAME, job->rank);
    if (!job->device) return bpt_run_folder_remove(job->run, name);
    BPT_TRY(choices_path(bpt_run_folder_path(job->run), job->rank, &path));
    const bpt_status status = bpt_device_save_choices(job->device, path);
    bpt_free(path);
    return status;
}
