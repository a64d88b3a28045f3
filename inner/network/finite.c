/* Numbers that are no numbers any more, traced to a layer. What a layer has computed is not kept to
 * the end of a step, so the forward pass is computed again. A loss that is not finite ends a step
 * before any weight changes. Of gradients those that are not finite are not applied, others may
 * have been: where these alone take the forward pass to what is no number, the layer where that
 * begins is named. Where it finds nothing, the gradients and weights that the step has left behind
 * tell. */
#include "base/clones.h"
#include "inner/network/network_private.h"

BPT_CLONES bool bpt__all_finite(const float *x, size_t n) {
    int bad = 0; /* x - x is 0 or NaN; no early end, so that the loop can be one of vectors */
    for (size_t i = 0; i < n; i++) bad |= x[i] - x[i] != 0.0f;
    return !bad;
}

BPT_CLONES static bool all_finite_bf16(const bpt_bf16 *x, size_t n) {
    int bad = 0;
    for (size_t i = 0; i < n; i++) bad |= bpt_from_bf16(x[i]) - bpt_from_bf16(x[i]) != 0.0f;
    return !bad;
}

bool bpt__is_finite(const bpt_network *net, bpt_ref where, const bpt_layout *layout) {
    const void *x = bpt_at(&net->blocks, where);
    const size_t n = bpt_layout_values(layout);
    return bpt_layout_type(layout) == BPT_BF16 ? all_finite_bf16(x, n) : bpt__all_finite(x, n);
}

static bool output_is_finite(const bpt_network *net, const bpt_activation *a) {
    for (size_t t = 0; t < net->builder.n_tiles; t++)
        if (!bpt__is_finite(net, a->value[t], a->layout[t])) return false;
    return true;
}

/* Computes the forward pass again, by this thread, and looks at each layer's output before another
 * may take its place in memory.
 * @param[out] layer the first whose output is not finite; NULL: none */
static bpt_status find_layer(bpt_network *net, bpt_graph_role role, const bpt_layer **layer) {
    const bpt_builder *b = &net->builder;
    const unsigned kind = role == BPT_GRAPH_EVALUATE ? BPT_PHASE_INFERENCE : BPT_PHASE_TRAINING;
    size_t task = 0;
    *layer = NULL;
    for (size_t i = 0; i < net->model->n_layers; i++) {
        for (; task < net->forward_end[i]; task++)
            if (b->tasks[task].phase & (BPT_PHASE_FORWARD | kind))
                BPT_TRY(b->tasks[task].fn(b->tasks[task].arg, 0));
        if (output_is_finite(net, &net->activations[i + 1])) continue;
        *layer = &net->model->layers[i];
        return BPT_OK;
    }
    return BPT_OK;
}

/* @return BPT_ENUMERIC if the input is not finite or a layer's output is not, else BPT_OK */
static bpt_status trace_forward(bpt_network *net, bpt_graph_role role, const char *what) {
    const bpt_layer *layer;
    if (!output_is_finite(net, &net->activations[0]))
        return bpt_fail(BPT_ENUMERIC, "%s is not a finite number, nor is all of %s", what,
                        net->model->role == BPT_MODEL_TAIL ? "what comes in at the border"
                                                           : "the input");
    BPT_TRY(find_layer(net, role, &layer));
    if (!layer) return BPT_OK;
    return bpt_fail(BPT_ENUMERIC,
                    "%s is not a finite number: layer %s is the first whose output is not", what,
                    layer->name);
}

bpt_status bpt__trace_loss(bpt_network *net, bpt_graph_role role) {
    BPT_TRY(trace_forward(net, role, "the loss"));
    return bpt_fail(BPT_ENUMERIC, "the loss is not a finite number");
}

bpt_status bpt__check_border(bpt_network *net) {
    if (!atomic_load_explicit(&net->bad_border, memory_order_relaxed)) return BPT_OK;
    BPT_TRY(trace_forward(net, BPT_GRAPH_FORWARD, "a value of the border"));
    return bpt_fail(BPT_ENUMERIC, "a value of the border is not a finite number");
}

static bool vector_is_finite(const bpt_network *net, size_t segment, bpt_block vector) {
    const bpt_weight_plan *w = &net->builder.weights[segment];
    return bpt__is_finite(net, bpt_ref_in(vector, w->master.offset), w->layout);
}

/* A weight that a ReLU or a maximum has hidden on the way forward has spread backward, from the
 * last layer to the first. */
bpt_status bpt__check_updates(const bpt_network *net) {
    if (!atomic_load_explicit(&net->bad_gradient, memory_order_relaxed) &&
        !atomic_load_explicit(&net->bad_weight, memory_order_relaxed))
        return BPT_OK;
    for (size_t s = net->model->segments.n; s-- > bpt_model_frozen_segments(net->model);) {
        const bool weights = vector_is_finite(net, s, BPT_BLOCK_WEIGHTS);
        if (weights && vector_is_finite(net, s, BPT_BLOCK_GRADIENTS)) continue;
        return bpt_fail(BPT_ENUMERIC, "%s is not a finite number, beginning at %s",
                        weights ? "a gradient" : "a weight", net->model->segments.items[s].name);
    }
    return bpt_fail(BPT_ENUMERIC, "a norm of gradients is not a finite number");
}

bpt_status bpt__check_batch(bpt_network *net, bpt_graph_role role) {
    if (atomic_load_explicit(&net->bad_gradient, memory_order_relaxed))
        BPT_TRY(trace_forward(net, role, "a gradient"));
    return bpt__check_updates(net);
}
