/* What a rank's network is to be on. */
#include "base/memory.h"
#include "tools/train/job_parts.h"
#include "tools/train/layer_choice.h"

#include <string.h>

static bpt_status refuse_tuned(const bpt_device *device) {
    const bpt_status status =
        bpt_fail(BPT_EUSAGE, "--tuned is of the processor's cores, and this rank computes on %s",
                 device->name);
    bpt_hint("leave it out, or give --device cpu");
    return status;
}

bpt_status bpt__job_find_device(const bpt_train_options *o, bpt_host_place place,
                                bpt_device **device) {
    bpt_device *found;
    *device = NULL;
    BPT_TRY(bpt_device_option_open(o->device, (bpt_precision)o->precision, place, &found));
    if (found && o->tuned) {
        const bpt_status status = refuse_tuned(found);
        bpt_device_close(found);
        return status;
    }
    *device = found;
    return BPT_OK;
}

bpt_host_place bpt__job_place_on_host(const bpt_comm *comm, uint32_t n_workers) {
    const uint32_t rank = bpt_comm_rank(comm);
    const char *here = bpt_comm_host(comm, rank);
    bpt_host_place place = {0};
    for (uint32_t r = 0; r < n_workers; r++) {
        if (strcmp(bpt_comm_host(comm, r), here) != 0) continue;
        place.index += r < rank;
        place.n++;
    }
    return place;
}

static bpt_status open_own(bpt_job *job) {
    if (bpt_job_is_server(job)) return BPT_OK;
    const bpt_host_place place = bpt__job_place_on_host(job->comm, job->n_workers);
    return bpt__job_find_device(job->options, place, &job->device);
}

static bpt_status tell_others(bpt_job *job) {
    const bool mine = job->device != NULL;
    bool *all = NULL;
    bpt_status status = bpt_comm_agree(job->comm, BPT_NEW("devices", job->n_ranks, &all));
    if (status == BPT_OK) status = bpt_comm_allgather(job->comm, &mine, sizeof mine, all);
    for (uint32_t r = 0; status == BPT_OK && r < job->n_ranks; r++) job->any_device |= all[r];
    bpt_free(all);
    return status;
}

bpt_status bpt__job_open_device(bpt_job *job) {
    BPT_TRY(bpt_comm_agree(job->comm, open_own(job)));
    BPT_TRY(tell_others(job));
    return bpt_layer_choice_check_devices(job);
}
