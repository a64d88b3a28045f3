/* Numbers that are no numbers any more: found in what a step leaves behind, traced to a layer. */
#include "inner/network_private.h"

#include <math.h>

bool bpt__all_finite(const float *x, size_t n) {
    int bad = 0; /* x - x is 0 or NaN; no early end, so that the loop can be one of vectors */
    for (size_t i = 0; i < n; i++) bad |= x[i] - x[i] != 0.0f;
    return !bad;
}

static bool is_finite(const bpt_network *net, bpt_ref where, const bpt_layout *layout) {
    return bpt__all_finite(bpt_at(&net->blocks, where), bpt_layout_bytes(layout) / sizeof(float));
}

static bool output_is_finite(const bpt_network *net, const bpt_activation *a) {
    for (size_t t = 0; t < net->builder.n_tiles; t++)
        if (!is_finite(net, a->value[t], a->layout[t])) return false;
    return true;
}

/* Whether a layer that joins several outputs has worked in the memory of this one's: what stands
 * there does not tell of this layer alone. */
static bool is_joined_in_place(const bpt_network *net, size_t layer) {
    for (size_t i = layer + 1; i < net->model->n_layers; i++) {
        const bpt_ref other = net->activations[i + 1].value[0];
        const bool same = bpt_ref_equal(other, net->activations[layer + 1].value[0]);
        if (net->model->layers[i].kind->joins && same) return true;
    }
    return false;
}

/* Where a ReLU or a maximum has dropped a NaN on the way forward, it has spread backward, from the
 * last layer to the first. */
static bool vector_is_finite(const bpt_network *net, size_t segment, bpt_block vector) {
    const bpt_weight_plan *w = &net->builder.weights[segment];
    return is_finite(net, bpt_ref_in(vector, w->master.offset), w->layout);
}

/* One gradient that is no number makes all weights such by way of the norms: it is to be named. */
static bpt_block cause(const bpt_network *net, bpt_block vector) {
    for (size_t s = 0; net->wants_norms && s < net->model->segments.n; s++)
        if (!vector_is_finite(net, s, BPT_BLOCK_GRADIENTS)) return BPT_BLOCK_GRADIENTS;
    return vector;
}

static const char *name_of(bpt_block vector) {
    return vector == BPT_BLOCK_WEIGHTS ? "a weight" : "a gradient";
}

static bpt_status fail_vector(const bpt_network *net, const char *what, bpt_block vector) {
    for (size_t s = net->model->segments.n; s-- > 0;) {
        if (vector_is_finite(net, s, vector)) continue;
        return bpt_fail(BPT_ENUMERIC, "%s is not a finite number, beginning at %s", what,
                        net->model->segments.items[s].name);
    }
    return bpt_fail(BPT_ENUMERIC, "%s is not a finite number", what);
}

static bpt_status fail_batch(const bpt_network *net, const char *what, bpt_block vector) {
    if (!output_is_finite(net, &net->activations[0]))
        return bpt_fail(BPT_ENUMERIC, "%s is not a finite number, nor is all of the input", what);
    for (size_t i = 0; i < net->model->n_layers; i++)
        if (!is_joined_in_place(net, i) && !output_is_finite(net, &net->activations[i + 1]))
            return bpt_fail(BPT_ENUMERIC,
                            "%s is not a finite number: layer %s is the first whose output is not",
                            what, net->model->layers[i].name);
    return fail_vector(net, what, vector);
}

bpt_status bpt__check_batch(const bpt_network *net, double loss_sum, bpt_block vector) {
    if (!isfinite(loss_sum)) return fail_batch(net, "the loss", vector);
    if (!atomic_load_explicit(&net->not_finite, memory_order_relaxed)) return BPT_OK;
    vector = cause(net, vector);
    return fail_batch(net, name_of(vector), vector);
}

bpt_status bpt__check_weights(const bpt_network *net) {
    if (!atomic_load_explicit(&net->not_finite, memory_order_relaxed)) return BPT_OK;
    const bpt_block vector = cause(net, BPT_BLOCK_WEIGHTS);
    return fail_vector(net, name_of(vector), vector);
}
