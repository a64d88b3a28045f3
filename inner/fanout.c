/* An activation that several layers read: one gradient from each, summed in their order. */
#include "inner/builder.h"

void bpt_builder_fork(bpt_builder *b, const bpt_activation *a, size_t n_views,
                      bpt_activation *views) {
    for (size_t v = 0; v < n_views; v++) {
        views[v] = *a;
        if (n_views == 1) return;
        views[v].read_only = true;
        if (v == 0 || !a->wants_grad) continue; /* the first writes where the sum will be */
        bpt_builder_reserve_alike(b, a, views[v].grad);
    }
}

static bpt_status plan_sum(bpt_builder *b, const char *label, bpt_activation *a, size_t t,
                           const bpt_activation *views, size_t n_views) {
    bpt_ref *parts;
    bpt_deps after = {0};
    BPT_TRY(bpt_builder_object(b, n_views * sizeof *parts, (void **)&parts));
    for (size_t v = 0; v < n_views; v++) {
        parts[v] = views[v].grad[t];
        BPT_TRY(bpt_deps_join(b, after, views[v].grad_ready[t], &after));
    }
    return bpt_builder_sum(b, BPT_PHASE_BACKWARD, (bpt_task_info){"sum gradients", label}, parts,
                           n_views, a->grad[t], bpt_layout_bytes(a->layout[t]), after,
                           &a->grad_ready[t]);
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
    return BPT_OK;
}
