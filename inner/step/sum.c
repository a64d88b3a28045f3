/* Sums of arrays in memory, in the order in which they are named. */
#include "inner/loops/vector_loops.h"
#include "inner/step/builder.h"

#include <string.h>

typedef struct {
    const bpt_blocks *blocks;
    bpt_ref sum;
    const bpt_ref *parts; /* shape [n_parts] */
    size_t n_parts;
    bpt_value_type type;
    size_t n; /* values */
} sum_task;

static void sum_floats(const sum_task *task) {
    float *sum = bpt_at(task->blocks, task->sum);
    const float *first = bpt_at(task->blocks, task->parts[0]);
    if (first == sum)
        bpt_sum_add(sum, bpt_at(task->blocks, task->parts[1]), task->n);
    else
        bpt_sum_of(sum, first, bpt_at(task->blocks, task->parts[1]), task->n);
    for (size_t i = 2; i < task->n_parts; i++)
        bpt_sum_add(sum, bpt_at(task->blocks, task->parts[i]), task->n);
}

/* Piece by piece as floats, so that the sum is rounded once. */
static void sum_bf16(const sum_task *task) {
    enum { PIECE = 1024 };
    float sum[PIECE];
    for (size_t begin = 0; begin < task->n; begin += PIECE) {
        const size_t n = task->n - begin < PIECE ? task->n - begin : PIECE;
        const bpt_bf16 *first = bpt_at(task->blocks, task->parts[0]);
        bpt_bf16 *out = bpt_at(task->blocks, task->sum);
        bpt_widen(sum, first + begin, n);
        for (size_t i = 1; i < task->n_parts; i++) {
            const bpt_bf16 *part = bpt_at(task->blocks, task->parts[i]);
            bpt_widen_add(sum, part + begin, n);
        }
        bpt_narrow(out + begin, sum, n);
    }
}

static bpt_status run_sum(void *arg, unsigned worker) {
    (void)worker;
    const sum_task *task = arg;
    if (task->type == BPT_BF16)
        sum_bf16(task);
    else
        sum_floats(task);
    return BPT_OK;
}

bpt_status bpt_builder_sum(bpt_builder *b, bpt_phase phase, bpt_task_info info,
                           const bpt_ref *parts, size_t n_parts, bpt_ref sum,
                           const bpt_layout *layout, bpt_deps after, bpt_deps *done) {
    sum_task *task;
    BPT_TRY(BPT_BUILDER_NEW(b, 1, &task));
    *task = (sum_task){.blocks = b->blocks,
                       .sum = sum,
                       .parts = parts,
                       .n_parts = n_parts,
                       .type = bpt_layout_type(layout),
                       .n = bpt_layout_values(layout)};
    bpt_ref *touches;
    BPT_TRY(BPT_BUILDER_NEW(b, n_parts + 1, &touches));
    memcpy(touches, parts, n_parts * sizeof *touches);
    touches[n_parts] = sum;
    return bpt_builder_task(b, phase, run_sum, task, info, (bpt_places){touches, n_parts + 1},
                            after, done);
}
