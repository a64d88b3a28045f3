/* Plans a convolution's forward pass, and what its backward pass has to know by then: layouts, cuts
 * and the number of partial gradients. */
#include "base/log.h"
#include "base/memory.h"
#include "inner/layers/conv_choices.h"
#include "inner/layers/conv_state.h"
#include "inner/layers/fields.h"

#include <inttypes.h>
#include <string.h>

static bpt_conv_problem chunk_problem(const bpt_layer *l, bpt_value_type type, int64_t n) {
    const bpt_conv_config *config = l->config;
    bpt_conv_problem p = bpt__window_problem(l, n, config->kernel, config->stride, config->pad);
    p.dilation[0] = config->dilation[0];
    p.dilation[1] = config->dilation[1];
    p.groups = config->groups;
    p.bias = config->bias;
    p.relu = l->fusion.relu;
    p.type = type;
    return p;
}

static void describe_chunks(const bpt_layer *l, bpt_builder *b, bpt_conv_state *state) {
    for (size_t c = 0; c < b->n_chunks; c++)
        state->problem[c] = chunk_problem(l, b->type, bpt_builder_chunk_samples(b, c));
}

/* ---- cuts ---- */

static bool cuts_step(const bpt_builder *b, const bpt_conv_state *state, bpt_conv_step step) {
    for (size_t c = 0; c < b->n_chunks; c++)
        if (!bpt_cut_is_whole(state->cut[step], state->problem[c].n)) return true;
    return false;
}

static bpt_status note_cut(const bpt_layer *l, bpt_builder *b, const bpt_conv_state *state,
                           bpt_conv_step step, bpt_cut chosen, const bpt_conv_pieces *pieces) {
    size_t largest = 0;
    bool whole = true;
    for (size_t c = 0; c < b->n_chunks; c++) {
        if (state->problem[c].n > state->problem[largest].n) largest = c;
        whole = whole && pieces[c].n == 1;
    }
    const bpt_conv_problem *p = &state->problem[largest];
    const bpt_cut cut = bpt_cut_normal(whole ? (bpt_cut){0} : chosen, p->n);
    BPT_TRY(BPT_GROW("cuts of convolutions", b->n_cuts + 1, &b->cuts, &b->cuts_capacity));
    b->cuts[b->n_cuts++] = (bpt_cut_note){l, step, *p, cut, whole || state->usual[step]};
    if (!whole && !state->usual[step])
        bpt_debug("layer %s: %s in parts of %" PRId64 " samples, %" PRId64
                  " ranges of channels, %" PRId64 " of rows",
                  l->name, bpt_conv_step_name(step), cut.samples, cut.channels, cut.rows);
    return BPT_OK;
}

static bool keep_bits(const bpt_builder *b, bpt_kernel *const *kernels) {
    for (size_t c = 0; c < b->n_chunks; c++)
        if (!bpt_cpu_conv_keeps_bits(kernels[c])) return false;
    return true;
}

bpt_status bpt__conv_cut_step(const bpt_layer *l, bpt_builder *b, const bpt_conv_state *state,
                              bpt_conv_whole step, bpt_conv_pieces *pieces) {
    bpt_cut cut = state->cut[step.step];
    step.label = l->name;
    step.problems = state->problem;
    /* The kernels that were made, for the layouts of their weights too, have the last word. */
    if (state->usual[step.step] && !keep_bits(b, step.kernels)) cut = (bpt_cut){0};
    BPT_TRY(bpt__conv_pieces(b, &step, cut, pieces));
    return note_cut(l, b, state, step.step, cut, pieces);
}

/* ---- kernels ---- */

static bpt_status create_kernel(bpt_builder *b, const bpt_conv_problem *p, bpt_conv_order order,
                                const bpt_layout *weights, bpt_kernel **out) {
    const bpt_layout *src, *dst;
    BPT_TRY(bpt__conv_order_layouts(b, p, order, &src, &dst));
    return bpt_cpu_conv_forward(b->cpu, p, src, weights, dst, out);
}

static bpt_status fail_together(const bpt_builder *b) {
    const bpt_status status =
        bpt_fail(BPT_EBACKEND, "oneDNN has an order of values in which samples are not apart");
    bpt_hint("up to %zu threads do not need them to be (--threads)", b->n_chunks);
    return status;
}

/* @param sample its dimensions C, H, W */
static bpt_status layouts_of_tiles(bpt_builder *b, const bpt_layout *chunk, size_t c,
                                   const int64_t *sample, const bpt_layout **tiles) {
    const int64_t dims[] = {bpt_builder_chunk_samples(b, c), sample[0], sample[1], sample[2]};
    const size_t first = b->chunk_tile[c], end = b->chunk_tile[c + 1];
    for (size_t t = first; t < end; t++) {
        const int64_t from[] = {b->tile_start[t] - b->chunk_start[c], 0, 0, 0};
        const int64_t extent[] = {bpt_builder_tile_samples(b, t), sample[0], sample[1], sample[2]};
        bpt_part part = {chunk, 0};
        if (end - first > 1) BPT_TRY(bpt_layout_part(b->cpu, chunk, dims, from, extent, &part));
        if (!part.layout) return fail_together(b);
        tiles[t] = part.layout;
    }
    return BPT_OK;
}

/* @param[out] inputs,outputs of each tile, shape [n_tiles] */
static bpt_status choose_tile_layouts(const bpt_layer *l, bpt_builder *b,
                                      const bpt_conv_state *state, const bpt_layout **inputs,
                                      const bpt_layout **outputs) {
    const int64_t in[] = {l->in.c, l->in.h, l->in.w}, out[] = {l->out.c, l->out.h, l->out.w};
    for (size_t c = 0; c < b->n_chunks; c++) {
        const bpt_kernel *k = state->forward[c];
        BPT_TRY(layouts_of_tiles(b, bpt_kernel_layout(k, BPT_SLOT_SRC), c, in, inputs));
        BPT_TRY(layouts_of_tiles(b, bpt_kernel_layout(k, BPT_SLOT_DST), c, out, outputs));
    }
    return BPT_OK;
}

/* The first chunk's kernel chooses the layout of the weights, the others must take it. */
static bpt_status create_forward(const bpt_layer *l, bpt_builder *b, bool backward_data,
                                 bpt_conv_state *state) {
    const bpt_layout *weights = NULL;
    bpt_conv_order order;
    describe_chunks(l, b, state);
    BPT_TRY(bpt__conv_choose(l, b, backward_data, state, &order));
    for (size_t c = 0; c < b->n_chunks; c++) {
        BPT_TRY(create_kernel(b, &state->problem[c], order, weights, &state->forward[c]));
        weights = bpt_kernel_layout(state->forward[c], BPT_SLOT_WEIGHTS);
    }
    const bpt_conv_whole step = {
        .step = BPT_CONV_FORWARD, .kernels = state->forward, .weights = weights};
    return bpt__conv_cut_step(l, b, state, step, state->forward_pieces);
}

static bpt_status create_backward_weights(const bpt_layer *l, bpt_builder *b,
                                          bpt_conv_state *state) {
    bpt_kernel *kernels[BPT_MAX_CHUNKS];
    const bpt_layout *layout = NULL;
    if (!cuts_step(b, state, BPT_CONV_BACKWARD_WEIGHTS)) {
        BPT_TRY(bpt__conv_gather_create(b, &state->problem[0], state->forward[0], &state->gather,
                                        &state->gradient));
        if (state->gather.n) return BPT_OK;
    }
    for (size_t c = 0; c < b->n_chunks; c++) {
        BPT_TRY(bpt_cpu_conv_backward_weights(b->cpu, &state->problem[c], state->forward[c], layout,
                                              &kernels[c]));
        layout = bpt_kernel_layout(kernels[c], BPT_SLOT_DIFF_WEIGHTS);
    }
    state->gradient = layout;
    const bpt_conv_whole step = {
        .step = BPT_CONV_BACKWARD_WEIGHTS, .kernels = kernels, .weights = layout};
    return bpt__conv_cut_step(l, b, state, step, state->weights_pieces);
}

/* ---- weights ---- */

/* The layout of the master: that of the forward pass; the plain one where this reads transformed
 * weights; where it reads a copy in bfloat16, that of the gradient, so that nothing but the copy is
 * reordered. In files and between ranks the weights are [K, C/G, R, S], which is
 * [G, K/G, C/G, R, S]. */
static bpt_status plan_master(const bpt_layer *l, bpt_builder *b, const bpt_conv_state *state) {
    const bpt_layout **flat = &b->weights[l->first_segment].flat;
    const bpt_layout *master = bpt_kernel_layout(state->forward[0], BPT_SLOT_WEIGHTS);
    size_t n_partials = 0;
    BPT_TRY(bpt_cpu_conv_plain_weights(b->cpu, &state->problem[0], flat));
    if (bpt_layout_is_copy(master)) master = *flat;
    if (b->type != BPT_F32) master = bpt_builder_learns(b) ? state->gradient : *flat;
    for (size_t c = 0; c < b->n_chunks; c++)
        n_partials += state->gather.n ? 1 : state->weights_pieces[c].n_partials;
    bpt_builder_weights(b, l->first_segment, master, state->gather.n ? 1 : n_partials);
    if (state->problem[0].bias)
        bpt_builder_weights(b, l->first_segment + 1,
                            bpt_kernel_layout(state->forward[0], BPT_SLOT_BIAS), n_partials);
    return BPT_OK;
}

bpt_status bpt__conv_view_weights(const bpt_layer *l, bpt_builder *b, bpt_phase phase,
                                  bpt_part from, const bpt_layout *wanted, bpt_weights_view *out) {
    const bpt_ref master = bpt_ref_plus(b->weights[l->first_segment].master, from.offset);
    *out = (bpt_weights_view){.layout = wanted, .where = master};
    if (bpt_layout_equal(wanted, from.layout)) return BPT_OK;
    out->where = bpt_blocks_reserve(b->blocks, BPT_BLOCK_PARTIALS, bpt_layout_bytes(wanted));
    BPT_TRY(bpt_builder_reorder(b, phase, (bpt_task_info){"reorder weights", l->name}, from.layout,
                                master, wanted, out->where, (bpt_deps){0}, &out->ready));
    return bpt_builder_weights_read(b, l->first_segment, out->ready);
}

static bpt_status view_weights(const bpt_layer *l, bpt_builder *b, bpt_conv_state *state) {
    const bpt_layout *wanted = bpt_kernel_layout(state->forward[0], BPT_SLOT_WEIGHTS);
    const bpt_part master = {b->weights[l->first_segment].layout, 0};
    BPT_TRY(
        bpt__conv_copies_plan(l, b, &state->problem[0], wanted, &state->copies, &state->weights));
    if (state->copies) return BPT_OK;
    return bpt__conv_view_weights(l, b, BPT_PHASE_FORWARD, master, wanted, &state->weights);
}

/* ---- tasks ---- */

static bpt_status plan_piece(const bpt_layer *l, bpt_builder *b, const bpt_conv_state *state,
                             const bpt_conv_piece *piece, size_t c, bpt_activation *out) {
    const size_t tile = b->chunk_tile[c];
    const int64_t first = b->chunk_start[c] + piece->part.in[0], n = piece->part.problem.n;
    bpt_kernel *k = piece->kernel;
    bpt_deps after, done;
    bpt_kernel_bind(k, BPT_SLOT_SRC, bpt_ref_plus(state->in.value[tile], piece->src));
    bpt_kernel_bind(k, BPT_SLOT_WEIGHTS, bpt_ref_plus(state->weights.where, piece->weights.offset));
    if (state->problem[c].bias)
        bpt_kernel_bind(k, BPT_SLOT_BIAS,
                        bpt_ref_plus(b->weights[l->first_segment + 1].master, piece->bias));
    bpt_kernel_bind(k, BPT_SLOT_DST, bpt_ref_plus(out->value[tile], piece->dst));
    BPT_TRY(bpt_deps_of_samples(b, state->in.value_ready, first, n, &after));
    BPT_TRY(bpt_deps_join(b, after, state->weights.ready, &after));
    BPT_TRY(bpt_builder_kernel(b, BPT_PHASE_FORWARD, k, (bpt_task_info){"forward", l->name}, after,
                               &done));
    return bpt_deps_add_samples(b, out->value_ready, first, n, done);
}

bpt_status bpt__conv_plan_forward(const bpt_layer *l, bpt_builder *b, bpt_activation *const *inputs,
                                  bpt_activation *out, void **state_out) {
    const bpt_activation *in = inputs[0];
    bpt_conv_state *state;
    const bpt_layout *layouts[BPT_MAX_TILES];
    BPT_TRY(BPT_BUILDER_NEW(b, 1, &state));
    BPT_TRY(create_forward(l, b, in->wants_grad, state));
    if (bpt_builder_learns(b)) BPT_TRY(create_backward_weights(l, b, state));
    BPT_TRY(plan_master(l, b, state));
    *out = (bpt_activation){
        .shape = l->out, .wants_grad = !b->frozen, .read_only = l->fusion.relu && !b->frozen};
    BPT_TRY(choose_tile_layouts(l, b, state, layouts, out->layout));
    BPT_TRY(bpt_builder_convert(b, l->name, in, layouts, &state->in));
    BPT_TRY(bpt_builder_reserve(b, out));
    BPT_TRY(view_weights(l, b, state));
    for (size_t c = 0; c < b->n_chunks; c++)
        for (size_t i = 0; i < state->forward_pieces[c].n; i++)
            BPT_TRY(plan_piece(l, b, state, &state->forward_pieces[c].items[i], c, out));
    *state_out = state;
    return BPT_OK;
}
