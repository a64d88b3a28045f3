/* Copies of the dataset on disks of the machines themselves (--stage). Of the ranks that have the
 * same dataset and folder before them the first makes the copy, and the others wait for it. */
#include "base/file_system.h"
#include "base/log.h"
#include "base/memory.h"
#include "outer/comm/watch.h"
#include "tools/staging.h"
#include "tools/train/job/job_parts.h"

/* What a rank tells the others. */
typedef struct {
    uint64_t opens; /* 1: the dataset, from a copy */
    uint64_t place; /* bpt_stage_place() */
    bpt_stage_state state;
} sight;

/* The option may differ from host to host. */
static bool opens_copy(const bpt_job *job) {
    return job->options->stage &&
           (bpt_job_scatters(job) ? job->rank == 0 : !bpt_job_is_server(job));
}

static bool any_opens(const bpt_job *job, const sight *all) {
    for (uint32_t r = 0; r < job->n_ranks; r++)
        if (all[r].opens) return true;
    return false;
}

/* @return the rank that makes the copy that @p rank opens */
static uint32_t maker_of(const bpt_job *job, const sight *all, uint32_t rank) {
    uint32_t r = 0;
    while (!all[r].opens || all[r].place != all[rank].place ||
           !bpt_comm_together(job->comm, r, rank))
        r++;
    return r;
}

static void add_up(const bpt_job *job, const sight *all, bpt_staging_sum *sum) {
    *sum = (bpt_staging_sum){0};
    for (uint32_t r = 0; r < job->n_ranks; r++)
        if (all[r].opens && maker_of(job, all, r) == r) bpt_staging_add(sum, &all[r].state);
}

/* The ranks compare notes now and then, so that those which wait do not take the one that copies
 * for one that hangs; and all end when one is told to.
 * @param[in,out] all what all ranks tell */
static bpt_status make(bpt_job *job, bool makes, sight *all) {
    const double a_moment_s = 1;
    bpt_staging_progress progress = bpt_staging_begin();
    sight mine = all[job->rank];
    for (;;) {
        bpt_status status = BPT_OK;
        bpt_staging_sum sum;
        if (makes && !mine.state.whole) status = bpt_stage_advance(job->stage, a_moment_s);
        BPT_TRY(bpt_comm_agree(job->comm, status));
        BPT_TRY(bpt__job_stop_if_told(job));
        if (makes) mine.state = bpt_stage_look(job->stage);
        BPT_TRY(bpt_comm_allgather(job->comm, &mine, sizeof mine, all));
        add_up(job, all, &sum);
        if (job->rank == 0) bpt_staging_show(&progress, &sum);
        if (sum.n_whole < sum.n) continue;
        bpt_staging_end(&progress, &sum);
        return BPT_OK;
    }
}

static bpt_status stage(bpt_job *job, sight *all) {
    sight mine = {.opens = opens_copy(job)};
    bpt_status status = BPT_OK;
    BPT_TRY(bpt_comm_allgather(job->comm, &mine, sizeof mine, all));
    if (!any_opens(job, all)) return BPT_OK;
    if (mine.opens) status = bpt_stage_open(job->options->data, job->options->stage, &job->stage);
    BPT_TRY(bpt_comm_agree(job->comm, status));
    if (mine.opens) mine.place = bpt_stage_place(job->stage);
    BPT_TRY(bpt_comm_allgather(job->comm, &mine, sizeof mine, all));
    const uint32_t maker = mine.opens ? maker_of(job, all, job->rank) : job->rank;
    BPT_TRY(make(job, mine.opens && maker == job->rank, all));
    if (maker != job->rank) status = bpt_stage_join(job->stage, all[maker].state.identity);
    return bpt_comm_agree(job->comm, status);
}

bpt_status bpt__job_stage_data(bpt_job *job) {
    sight *all = NULL;
    bpt_status status = BPT_NEW("copies of the dataset", job->n_ranks, &all);
    status = bpt_comm_agree(job->comm, status);
    bpt_comm_operation_begin(job->comm, "the copy of the dataset");
    if (status == BPT_OK) status = stage(job, all);
    bpt_comm_operation_end(job->comm);
    bpt_free(all);
    return status;
}

const char *bpt__job_data_path(const bpt_job *job) {
    return job->stage ? bpt_stage_path(job->stage) : job->options->data;
}

void bpt__job_say_stage(const bpt_job *job) {
    const bpt_file_system fs = bpt_file_system_at(job->options->data);
    if (job->stage)
        bpt_info("it is read from its copy in %s", bpt_stage_path(job->stage));
    else if (job->rank == 0 && fs.network)
        bpt_info("%s is on a network file system (%s): --stage DIR copies it to a disk of %s first",
                 job->options->data, fs.kind,
                 bpt_job_scatters(job) ? "this machine" : "each machine");
}
