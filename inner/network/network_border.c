/* The border of a part of a model: a head's output and what comes back for it, a tail's input and
 * what it gives back. */
#include "inner/network/network_border.h"

#include "inner/network/network_private.h"

#include <assert.h>

/* ---- planning ---- */

/* What the caller does with the border, between two runs or behind one: a task that no graph has,
 * for the plan of memory. */
static bpt_status plan_caller(bpt_builder *b, bpt_places touches, bpt_deps after, bpt_deps *done) {
    return bpt_builder_task(b, BPT_PHASE_BORDER, NULL, NULL, (bpt_task_info){"caller", "border"},
                            touches, after, done);
}

typedef struct {
    bpt_network *net;
    bpt_ref values;
    const bpt_layout *layout;
} check_task;

static bpt_status run_check(void *arg, unsigned worker) {
    const check_task *task = arg;
    (void)worker;
    if (!bpt__is_finite(task->net, task->values, task->layout))
        atomic_store_explicit(&task->net->bad_border, true, memory_order_relaxed);
    return BPT_OK;
}

static bpt_status plan_checks(bpt_network *net, bpt_deps *done) {
    bpt_builder *b = &net->builder;
    const bpt_activation *a = &net->border;
    bpt_deps checked[BPT_MAX_TILES];
    for (size_t t = 0; t < b->n_tiles; t++) {
        check_task *task;
        BPT_TRY(BPT_BUILDER_NEW(b, 1, &task));
        *task = (check_task){net, a->value[t], a->layout[t]};
        BPT_TRY(bpt_builder_task(b, BPT_PHASE_FORWARD, run_check, task,
                                 (bpt_task_info){"check", "border"}, BPT_PLACES(a->value[t]),
                                 a->value_ready[t], &checked[t]));
    }
    return bpt_deps_all_tiles(b, checked, done);
}

bpt_status bpt__plan_head_border(bpt_network *net, bpt_activation *out) {
    bpt_builder *b = &net->builder;
    bpt_activation *a = &net->border;
    bpt_deps checked, done;
    assert(out->wants_grad); /* a head has weights */
    BPT_TRY(bpt_builder_convert_to_plain(b, "border", out, out->type, a));
    BPT_TRY(plan_checks(net, &checked));
    BPT_TRY(plan_caller(b, BPT_PLACES(a->value[0], a->grad[0]), checked, &done));
    for (size_t t = 0; t < b->n_tiles; t++) a->grad_ready[t] = done;
    a->grad_read_only = false;
    return bpt_builder_convert_back(b, "border", out, a);
}

bpt_status bpt__plan_tail_border(bpt_network *net) {
    bpt_builder *b = &net->builder;
    const bpt_activation *in = &net->activations[0];
    bpt_ref touches[BPT_MAX_TILES];
    bpt_deps ready, done;
    net->border = *in;
    for (size_t t = 0; t < b->n_tiles; t++) {
        const size_t offset = (size_t)b->tile_start[t] * bpt_shape_bytes(in->shape, in->type);
        assert(bpt_ref_equal(in->grad[t], bpt_ref_plus(in->grad[0], offset)));
        (void)offset; /* without asserts */
        touches[t] = in->grad[t];
    }
    BPT_TRY(bpt_deps_all_tiles(b, in->grad_ready, &ready));
    return plan_caller(b, (bpt_places){touches, b->n_tiles}, ready, &done);
}

/* ---- asking ---- */

bpt_border bpt_network_border(const bpt_network *net) {
    const bpt_activation *a = &net->border;
    const bool head = net->model->role == BPT_MODEL_HEAD;
    assert(net->model->role != BPT_MODEL_WHOLE);
    return (bpt_border){
        .shape = a->shape,
        .type = a->type,
        .bytes = (size_t)net->builder.batch * bpt_shape_bytes(a->shape, a->type),
        .values = head ? bpt_at(&net->blocks, a->value[0]) : NULL,
        .gradient = bpt_at(&net->blocks, a->grad[0]),
    };
}
