#include "inner/step/rectify.h"

#include "base/clones.h"

#define RECTIFY_BACK(T, n)                                                                         \
    do {                                                                                           \
        const bpt_mem_##T *values = y, *from = dy;                                                 \
        bpt_mem_##T *into = dx;                                                                    \
        _Pragma("GCC ivdep") for (size_t i = 0; i < (n); i++) into[i] =                            \
            bpt_where_positive_##T(values[i], from[i]);                                            \
    } while (0)

BPT_CLONES void bpt_rectify_back(const void *y, const void *dy, bpt_value_type type, size_t n,
                                 void *dx) {
    BPT_FOR_TYPE(type, RECTIFY_BACK, n);
}

bpt_status bpt_rectify_plan(bpt_builder *b, const bpt_activation *out, bpt_activation *masked) {
    *masked = *out;
    masked->grad_read_only = false;
    if (!out->grad_read_only) return BPT_OK;
    return bpt_builder_reserve_gradients(b, out, masked->grad);
}

typedef struct {
    const bpt_blocks *blocks;
    bpt_ref y, dy, dx;
    bpt_value_type type;
    size_t n; /* values */
} rectify_task;

static bpt_status run_rectify(void *arg, unsigned worker) {
    const rectify_task *task = arg;
    (void)worker;
    bpt_rectify_back(bpt_at(task->blocks, task->y), bpt_at(task->blocks, task->dy), task->type,
                     task->n, bpt_at(task->blocks, task->dx));
    return BPT_OK;
}

bpt_status bpt_rectify_tasks(bpt_builder *b, const char *label, const bpt_activation *out,
                             bpt_activation *masked) {
    for (size_t t = 0; t < b->n_tiles; t++) {
        rectify_task *task;
        BPT_TRY(BPT_BUILDER_NEW(b, 1, &task));
        *task = (rectify_task){b->blocks,       out->value[t], out->grad[t],
                               masked->grad[t], out->type,     bpt_layout_values(out->layout[t])};
        BPT_TRY(bpt_builder_task(b, BPT_PHASE_BACKWARD, run_rectify, task,
                                 (bpt_task_info){"backward relu", label},
                                 BPT_PLACES(out->value[t], out->grad[t], masked->grad[t]),
                                 out->grad_ready[t], &masked->grad_ready[t]));
    }
    return BPT_OK;
}
