/* Who has which part of the data, as it is told to people. */
#include "base/log.h"
#include "base/memory.h"
#include "tools/train/job/job.h"
#include "tools/train/job/rank_list.h"

#include <inttypes.h>

static bpt_status say_shares(const bpt_job *job, uint32_t rounds) {
    char list[BPT_RANK_LIST_SIZE];
    double *percent, given = 0;
    BPT_TRY(BPT_NEW("shares", job->n_workers, &percent));
    for (uint32_t r = 0; r < job->n_workers; r++)
        given += percent[r] = (double)bpt_partition_held(job->shares, r, rounds);
    for (uint32_t r = 0; r < job->n_workers; r++) percent[r] *= 100 / given;
    bpt_rank_list(percent, job->n_workers, 1, "%", list);
    bpt_free(percent);
    if (rounds <= bpt_job_rounds(job))
        bpt_info("data, round %u of %u: shares by rank %s", rounds, bpt_job_rounds(job), list);
    else
        bpt_info("data moves, since speeds have changed: shares by rank %s", list);
    return BPT_OK;
}

static bpt_status write_shares_event(bpt_job *job, uint32_t rounds) {
    bpt_json_writer *w = &job->json;
    bpt_json_open_object(w, NULL);
    bpt_json_put_text(w, "event", "shares");
    bpt_json_put_real(w, "epoch", bpt_job_epoch(job));
    bpt_json_put_u64(w, "round", rounds);
    bpt_json_open_array(w, "held");
    for (uint32_t r = 0; r < job->n_workers; r++)
        bpt_json_put_u64(w, NULL, bpt_partition_held(job->shares, r, rounds));
    bpt_json_close_array(w);
    bpt_json_close_object(w);
    return bpt_run_folder_metric(job->run, w);
}

bpt_status bpt_job_note_shares(bpt_job *job) {
    if (job->rank != 0 || !job->shares || job->n_workers == 1) return BPT_OK;
    while (job->noted_rounds < bpt_partition_rounds(job->shares)) {
        BPT_TRY(say_shares(job, ++job->noted_rounds));
        BPT_TRY(write_shares_event(job, job->noted_rounds));
    }
    return BPT_OK;
}

void bpt_job_warn_of_unseen(const bpt_job *job) {
    const uint32_t all = bpt_job_rounds(job);
    const uint32_t rounds = job->shares ? bpt_partition_rounds(job->shares) : all;
    if (rounds >= all || job->seconds_before > 0) return; /* or another job had begun */
    const uint64_t n = job->epoch_samples;
    bpt_warn(
        "%" PRIu64 " of %" PRIu64
        " training images were never given out: the data come in rounds, as ranks have been over "
        "what they hold, and the run ended with round %" PRIu32 " of %" PRIu32
        "; more --epochs, fewer --idpa-rounds or --partition even bring them all",
        n - bpt_partition_given(n, all, rounds), n, rounds, all);
}
