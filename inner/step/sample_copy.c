/* Copies of some channels of each sample: what joins and pads tensors. */
#include "inner/step/builder.h"

#include <string.h>

typedef struct {
    const bpt_blocks *blocks;
    bpt_sample_run from, to;
    size_t bytes, zeros;
    int64_t n_samples;
} copy_task;

static bpt_status run_copy(void *arg, unsigned worker) {
    const copy_task *task = arg;
    const char *from = bpt_at(task->blocks, task->from.first);
    char *to = bpt_at(task->blocks, task->to.first);
    (void)worker;
    for (int64_t i = 0; i < task->n_samples; i++) {
        memcpy(to, from, task->bytes);
        memset(to + task->bytes, 0, task->zeros);
        from += task->from.stride;
        to += task->to.stride;
    }
    return BPT_OK;
}

bpt_status bpt_builder_copy_samples(bpt_builder *b, bpt_phase phase, bpt_task_info info, size_t t,
                                    bpt_sample_run from, bpt_sample_run to, size_t bytes,
                                    size_t zeros, bpt_deps after, bpt_deps *done) {
    copy_task *task;
    BPT_TRY(BPT_BUILDER_NEW(b, 1, &task));
    *task = (copy_task){b->blocks, from, to, bytes, zeros, bpt_builder_tile_samples(b, t)};
    return bpt_builder_task(b, phase, run_copy, task, info, BPT_PLACES(from.first, to.first), after,
                            done);
}
