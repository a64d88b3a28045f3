/* Plans a convolution's backward pass. */
#include "inner/layers/conv_state.h"
#include "inner/step/rectify.h"

#include <string.h>

/* Nobody but the update waits for weights' gradients, so they could be left for last, and all that
 * they read would be in use until then. So backward data waits, chunk by chunk, for those of some
 * convolutions before: what these read is free from there on.
 * @return of each chunk, the tasks of the convolution so far back, or nothing; shape [n_chunks] */
static bpt_deps *late_weights(bpt_builder *b) {
    return b->weights_done[b->n_weights_done % BPT_WEIGHTS_LAG];
}

/* ---- data ---- */

static bool has_all_weights(const bpt_layer *l, const bpt_builder *b, const bpt_conv_piece *piece) {
    return bpt_layout_equal(piece->weights.layout, b->weights[l->first_segment].layout);
}

/* Weights as the parts of each range of channels read them: as the forward pass does if that has
 * them so, else a copy. */
static bpt_status weights_for_data(const bpt_layer *l, bpt_builder *b, const bpt_conv_state *state,
                                   const bpt_conv_piece *piece, bpt_weights_view *out) {
    const bpt_layout *wanted = bpt_kernel_layout(piece->kernel, BPT_SLOT_WEIGHTS);
    int64_t dims[5];
    bpt_part part;
    if (out->layout) return BPT_OK;
    bpt_conv_weight_dims(&piece->part.problem, dims);
    BPT_TRY(
        bpt_layout_part_with_gaps(b->cpu, state->weights.layout, piece->part.weights, dims, &part));
    if (part.layout && bpt_layout_equal(wanted, part.layout)) {
        const bpt_ref where = bpt_ref_plus(state->weights.where, part.offset);
        *out = (bpt_weights_view){part.layout, where, state->weights.ready};
        return BPT_OK;
    }
    if (has_all_weights(l, b, piece)) BPT_TRY(bpt__conv_copies_add(b, state->copies, wanted, out));
    if (out->layout) return BPT_OK;
    return bpt__conv_view_weights(l, b, BPT_PHASE_BACKWARD, piece->weights, wanted, out);
}

static bpt_status plan_data_piece(const bpt_layer *l, bpt_builder *b, bpt_conv_state *state,
                                  const bpt_conv_piece *piece, const bpt_weights_view *weights,
                                  size_t c, const bpt_activation *out) {
    const size_t tile = b->chunk_tile[c];
    const int64_t first = b->chunk_start[c] + piece->part.in[0], n = piece->part.problem.n;
    bpt_kernel *k = piece->kernel;
    bpt_deps after, done;
    bpt_kernel_bind(k, BPT_SLOT_DIFF_DST, bpt_ref_plus(out->grad[tile], piece->dst));
    bpt_kernel_bind(k, BPT_SLOT_WEIGHTS, weights->where);
    bpt_kernel_bind(k, BPT_SLOT_DIFF_SRC, bpt_ref_plus(state->in.grad[tile], piece->src));
    BPT_TRY(bpt_deps_of_samples(b, out->grad_ready, first, n, &after));
    BPT_TRY(bpt_deps_join(b, after, weights->ready, &after));
    BPT_TRY(bpt_deps_join(b, after, late_weights(b)[c], &after));
    BPT_TRY(bpt_builder_kernel(b, BPT_PHASE_BACKWARD, k, (bpt_task_info){"backward data", l->name},
                               after, &done));
    BPT_TRY(bpt_deps_add_samples(b, state->in.grad_ready, first, n, done));
    return bpt_builder_weights_read(b, l->first_segment, done);
}

/* The first chunk's kernels choose the layouts of the weights. */
static bpt_status create_data(const bpt_layer *l, bpt_builder *b, const bpt_conv_state *state,
                              bpt_conv_pieces *pieces) {
    bpt_kernel *kernels[BPT_MAX_CHUNKS];
    const bpt_layout *weights = NULL, *chosen[BPT_MAX_CUT];
    for (size_t c = 0; c < b->n_chunks; c++) {
        BPT_TRY(bpt_cpu_conv_backward_data(b->cpu, &state->problem[c], state->forward[c], weights,
                                           &kernels[c]));
        weights = bpt_kernel_layout(kernels[c], BPT_SLOT_WEIGHTS);
    }
    const bpt_conv_whole step = {.step = BPT_CONV_BACKWARD_DATA,
                                 .kernels = kernels,
                                 .weights = b->weights[l->first_segment].layout,
                                 .chosen = chosen};
    return bpt__conv_cut_step(l, b, state, step, pieces);
}

static bpt_status plan_backward_data(const bpt_layer *l, bpt_builder *b, bpt_conv_state *state,
                                     const bpt_activation *out) {
    bpt_conv_pieces pieces[BPT_MAX_CHUNKS];
    bpt_weights_view weights[BPT_MAX_CUT] = {{0}};
    BPT_TRY(create_data(l, b, state, pieces));
    for (size_t i = 0; i < pieces[0].n; i++) /* ahead, so that tasks of a kind stay together */
        BPT_TRY(weights_for_data(l, b, state, &pieces[0].items[i],
                                 &weights[pieces[0].items[i].part.channel_range]));
    memset(state->in.grad_ready, 0, sizeof state->in.grad_ready);
    for (size_t c = 0; c < b->n_chunks; c++)
        for (size_t i = 0; i < pieces[c].n; i++) {
            const bpt_conv_piece *piece = &pieces[c].items[i];
            BPT_TRY(
                plan_data_piece(l, b, state, piece, &weights[piece->part.channel_range], c, out));
        }
    return BPT_OK;
}

/* ---- weights ---- */

/* A gradient that some parts write, each its range of channels. */
typedef struct {
    bpt_ref where; /* in the layout of the kernels */
    bpt_deps done;
} partial_gradient;

/* Where it is written: in its place if the kernels' layout is the master's, else on its own. */
static void place_partial(const bpt_layer *l, bpt_builder *b, const bpt_layout *layout, size_t i,
                          partial_gradient *out) {
    out->where = bpt_builder_partial(b, l->first_segment, i);
    out->done = (bpt_deps){0};
    if (!bpt_layout_equal(layout, b->weights[l->first_segment].layout))
        out->where = bpt_blocks_reserve(b->blocks, BPT_BLOCK_PARTIALS, bpt_layout_bytes(layout));
}

/* Makes it arrive in the master's layout; ->done is then the last task. */
static bpt_status adapt_partial(const bpt_layer *l, bpt_builder *b, const bpt_layout *layout,
                                size_t i, partial_gradient *partial) {
    const bpt_weight_plan *w = &b->weights[l->first_segment];
    if (bpt_layout_equal(layout, w->layout)) return BPT_OK;
    return bpt_builder_reorder(
        b, BPT_PHASE_BACKWARD, (bpt_task_info){"reorder gradient", l->name}, layout, partial->where,
        w->layout, bpt_builder_partial(b, l->first_segment, i), partial->done, &partial->done);
}

static bpt_status plan_weights_piece(const bpt_layer *l, bpt_builder *b,
                                     const bpt_conv_state *state, const bpt_conv_piece *piece,
                                     size_t c, const bpt_activation *out, size_t number,
                                     partial_gradient *partial) {
    const size_t tile = b->chunk_tile[c];
    bpt_kernel *k = piece->kernel;
    bpt_deps after, done;
    bpt_kernel_bind(k, BPT_SLOT_SRC, bpt_ref_plus(state->in.value[tile], piece->src));
    bpt_kernel_bind(k, BPT_SLOT_DIFF_DST, bpt_ref_plus(out->grad[tile], piece->dst));
    bpt_kernel_bind(k, BPT_SLOT_DIFF_WEIGHTS, bpt_ref_plus(partial->where, piece->weights.offset));
    BPT_TRY(bpt_deps_of_samples(b, out->grad_ready, b->chunk_start[c] + piece->part.in[0],
                                piece->part.problem.n, &after));
    BPT_TRY(bpt_builder_kernel(b, BPT_PHASE_BACKWARD, k,
                               (bpt_task_info){"backward weights", l->name}, after, &done));
    BPT_TRY(bpt_deps_join(b, partial->done, done, &partial->done));
    BPT_TRY(bpt_deps_join(b, late_weights(b)[c], done, &late_weights(b)[c]));
    if (!state->problem[c].bias) return BPT_OK;
    const bpt_ref bias = bpt_builder_partial(b, l->first_segment + 1, number);
    bpt_kernel_bind(k, BPT_SLOT_DIFF_BIAS, bpt_ref_plus(bias, piece->bias));
    return bpt_builder_weights_written(b, l->first_segment + 1, done);
}

static bpt_status plan_gathered(const bpt_layer *l, bpt_builder *b, bpt_conv_state *state,
                                const bpt_activation *out, partial_gradient *gradient) {
    bpt_conv_gather_operands o = {l->name, &state->in, out, .weights = gradient->where};
    bpt_ref bias[BPT_MAX_CHUNKS];
    if (state->problem[0].bias) {
        for (size_t c = 0; c < b->n_chunks; c++)
            bias[c] = bpt_builder_partial(b, l->first_segment + 1, c);
        o.bias = bias;
    }
    BPT_TRY(bpt__conv_gather_plan(b, &state->gather, &o, late_weights(b), &gradient->done));
    for (size_t c = 0; o.bias && c < b->n_chunks; c++)
        BPT_TRY(bpt_builder_weights_written(b, l->first_segment + 1, late_weights(b)[c]));
    return BPT_OK;
}

static bpt_status plan_chunks(const bpt_layer *l, bpt_builder *b, const bpt_conv_state *state,
                              const bpt_activation *out, partial_gradient *partials) {
    size_t first = 0; /* partial of the chunk */
    for (size_t c = 0; c < b->n_chunks; c++) {
        const bpt_conv_pieces *pieces = &state->weights_pieces[c];
        late_weights(b)[c] = (bpt_deps){0}; /* these take the place of the older ones */
        for (size_t i = 0; i < pieces->n; i++) {
            const size_t number = first + pieces->items[i].part.partial;
            BPT_TRY(plan_weights_piece(l, b, state, &pieces->items[i], c, out, number,
                                       &partials[number]));
        }
        first += pieces->n_partials;
    }
    return BPT_OK;
}

static bpt_status plan_backward_weights(const bpt_layer *l, bpt_builder *b, bpt_conv_state *state,
                                        const bpt_activation *out) {
    const bpt_layout *layout = state->gradient;
    const size_t n_partials = b->weights[l->first_segment].n_partials;
    partial_gradient *partials;
    BPT_TRY(BPT_BUILDER_NEW(b, n_partials, &partials));
    for (size_t i = 0; i < n_partials; i++) place_partial(l, b, layout, i, &partials[i]);
    BPT_TRY(state->gather.n ? plan_gathered(l, b, state, out, partials)
                            : plan_chunks(l, b, state, out, partials));
    for (size_t i = 0; i < n_partials; i++) { /* apart, so that tasks of a kind stay together */
        BPT_TRY(adapt_partial(l, b, layout, i, &partials[i]));
        BPT_TRY(bpt_builder_weights_written(b, l->first_segment, partials[i].done));
    }
    b->n_weights_done++;
    return BPT_OK;
}

bpt_status bpt__conv_plan_backward(const bpt_layer *l, bpt_builder *b,
                                   bpt_activation *const *inputs, const bpt_activation *out,
                                   void *arg) {
    bpt_activation *in = inputs[0];
    bpt_conv_state *state = arg;
    bpt_activation masked;
    if (l->fusion.relu) {
        BPT_TRY(bpt_rectify_plan(b, out, &masked));
        BPT_TRY(bpt_rectify_tasks(b, l->name, out, &masked));
        out = &masked;
    }
    if (in->wants_grad) {
        BPT_TRY(plan_backward_data(l, b, state, out));
        BPT_TRY(bpt_builder_convert_back(b, l->name, in, &state->in));
    }
    return plan_backward_weights(l, b, state, out);
}
