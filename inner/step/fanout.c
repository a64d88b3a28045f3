/* An activation that several layers read: one gradient from each, summed in their order. */
#include "inner/step/builder.h"

#include <string.h>

bpt_status bpt_builder_fork(bpt_builder *b, const bpt_activation *a, size_t n_views,
                            bpt_activation *views) {
    for (size_t v = 0; v < n_views; v++) {
        views[v] = *a;
        if (n_views == 1) return BPT_OK;
        views[v].read_only = true;
        if (v == 0 || !a->wants_grad) continue; /* the first writes where the sum will be */
        BPT_TRY(bpt_builder_reserve_gradients(b, a, views[v].grad));
    }
    return BPT_OK;
}

static bpt_status plan_sum(bpt_builder *b, const char *label, bpt_activation *a, size_t t,
                           const bpt_activation *views, size_t n_views) {
    bpt_ref *parts;
    bpt_deps after = {0};
    BPT_TRY(BPT_BUILDER_NEW(b, n_views, &parts));
    for (size_t v = 0; v < n_views; v++) {
        parts[v] = views[v].grad[t];
        BPT_TRY(bpt_deps_join(b, after, views[v].grad_ready[t], &after));
    }
    return bpt_builder_sum(b, BPT_PHASE_BACKWARD, (bpt_task_info){"sum gradients", label}, parts,
                           n_views, a->grad[t], a->layout[t], after, &a->grad_ready[t]);
}

bpt_status bpt_builder_join(bpt_builder *b, const char *label, bpt_activation *a,
                            const bpt_activation *views, size_t n_views) {
    if (!a->wants_grad) return BPT_OK;
    for (size_t t = 0; t < b->n_tiles; t++) {
        if (n_views > 1) {
            BPT_TRY(plan_sum(b, label, a, t, views, n_views));
            continue;
        }
        a->grad[t] = views[0].grad[t];
        a->grad_ready[t] = views[0].grad_ready[t];
    }
    a->grad_read_only = n_views == 1 && views[0].grad_read_only;
    return BPT_OK;
}

/* A copy is needed for another layout, or where the whole batch in one piece is asked for. */
bpt_status bpt_builder_pass_back(bpt_builder *b, const char *label, bpt_activation *in,
                                 bpt_activation *converted, const bpt_activation *out) {
    const bool same_layouts = bpt_ref_equal(converted->value[0], in->value[0]);
    const bool alias = same_layouts && (out->plain || !in->plain);
    bpt_activation *target = alias ? in : converted;
    if (!in->wants_grad) return BPT_OK;
    memcpy(target->grad, out->grad, sizeof target->grad);
    memcpy(target->grad_ready, out->grad_ready, sizeof target->grad_ready);
    target->grad_read_only = true;
    return alias ? BPT_OK : bpt_builder_convert_back(b, label, in, converted);
}
