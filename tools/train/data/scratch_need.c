#include "tools/train/data/scratch_need.h"

#include "storage/dataset/parcel.h"

#include <math.h>

/* Whole pages, their headers, and LMDB's tree: below a hundredth, and something for a small one. */
static uint64_t on_disk(const bpt_scratch_job *job, double samples) {
    const size_t each =
        bpt_parcel_bytes(job->record_bytes, 1) - bpt_parcel_bytes(job->record_bytes, 0);
    return (uint64_t)(1.01 * samples * (double)each) + (1 << 20);
}

/* The part of the training split that a rank has seen when it was given one sample of n_ranks in
 * every epoch, another choice in each. */
static double part_of_batches(const bpt_scratch_job *job) {
    return 1 - pow(1 - 1.0 / job->n_ranks, ceil(job->epochs));
}

bpt_scratch_need bpt_scratch_need_of(const bpt_scratch_job *job) {
    const double test = ceil((double)job->test / job->n_ranks), train = (double)job->train;
    const double part =
        job->update == BPT_UPDATE_ALLREDUCE ? part_of_batches(job) : 1.0 / job->n_ranks;
    bpt_scratch_need need = {.even = on_disk(job, ceil(part * train) + test)};
    need.most = job->partition == BPT_PARTITION_IDPA ? on_disk(job, train + test) : need.even;
    return need;
}
