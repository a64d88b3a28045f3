#include "inner/layers/conv_choices.h"

#include "base/integers.h"
#include "base/log.h"

#include <string.h>

/* Chunks have one number of samples, or two. What a kernel is may hang on it. */
static bool is_first_of_size(const bpt_conv_state *state, size_t c) {
    for (size_t before = 0; before < c; before++)
        if (state->problem[before].n == state->problem[c].n) return false;
    return true;
}

/* ---- the algorithm ---- */

static bool is_to_cut_rows(const bpt_layer *l) {
    const bpt_conv_config *config = l->config;
    for (int step = 0; step < BPT_N_CONV_STEPS; step++)
        if (config->cut_is_given[step] && config->cut[step].rows > 1) return true;
    return false;
}

/* One for all chunks, whatever their samples, and for all steps: the table of costs knows one
 * convolution of a layer. Also where there is no backward pass, so that evaluation rounds as
 * training does. Rows want channels last, where Winograd's algorithm has no kernels: the table
 * never cuts them then, but the model may say so. */
static bpt_status choose_algorithm(const bpt_layer *l, bpt_builder *b, bpt_conv_state *state) {
    bool winograd = !is_to_cut_rows(l);
    for (size_t c = 0; c < b->n_chunks && winograd; c++)
        winograd = bpt_conv_suits_winograd(&state->problem[c]);
    for (size_t c = 0; c < b->n_chunks && winograd; c++) {
        if (!is_first_of_size(state, c)) continue;
        BPT_TRY(bpt_cpu_conv_has_winograd(b->cpu, &state->problem[c], &winograd));
    }
    for (size_t c = 0; c < b->n_chunks; c++) state->problem[c].winograd = winograd;
    return BPT_OK;
}

/* ---- cuts ---- */

static bool cuts_rows(const bpt_conv_state *state) {
    for (int step = 0; step < BPT_N_CONV_STEPS; step++)
        if (state->cut[step].rows > 1) return true;
    return false;
}

static bool cuts_channels(const bpt_conv_state *state) {
    for (int step = 0; step < BPT_N_CONV_STEPS; step++)
        if (state->cut[step].channels > 1) return true;
    return false;
}

/* Into tiles, or as near to them as keeps the bits, but for weights' gradients, which are sums over
 * the chunk. */
static void cut_as_usual(const bpt_builder *b, bpt_conv_state *state) {
    enum { MOST_PARTS = 128 }; /* of the batch; a part takes some kilobytes to describe */
    const int64_t most = MOST_PARTS / (int64_t)b->n_chunks;
    const int64_t samples = bpt_cpu_conv_part_samples(&state->problem[0], b->tile_samples, most);
    for (int step = 0; step < BPT_N_CONV_STEPS; step++) {
        state->usual[step] = true;
        state->cut[step] = (bpt_cut){0};
        if (step != BPT_CONV_BACKWARD_WEIGHTS) state->cut[step].samples = samples;
    }
}

static bool same_cut(bpt_cut a, bpt_cut b) {
    return a.samples == b.samples && a.channels == b.channels && a.rows == b.rows;
}

static void choose_by_costs(const bpt_builder *b, bool backward_data, bpt_conv_state *state) {
    int64_t samples[BPT_MAX_CHUNKS];
    bpt_cut cuts[BPT_N_CONV_STEPS];
    for (size_t c = 0; c < b->n_chunks; c++) samples[c] = bpt_builder_chunk_samples(b, c);
    memcpy(cuts, state->cut, sizeof cuts);
    bpt_cost_table_choose(b->costs, &state->problem[0], samples, b->n_chunks, backward_data, cuts);
    for (int step = 0; step < BPT_N_CONV_STEPS; step++) {
        state->usual[step] = same_cut(cuts[step], state->cut[step]);
        state->cut[step] = cuts[step];
    }
}

static void choose_cuts(const bpt_layer *l, const bpt_builder *b, bool backward_data,
                        bpt_conv_state *state) {
    const bpt_conv_config *config = l->config;
    if (b->costs) choose_by_costs(b, backward_data, state);
    for (int step = 0; step < BPT_N_CONV_STEPS; step++) {
        if (!config->cut_is_given[step]) continue;
        state->usual[step] = false;
        state->cut[step] = config->cut[step];
    }
}

/* ---- orders of activations ---- */

static int64_t rounded_to_blocks(int64_t channels) {
    return bpt_rounded_up(channels, BPT_CUT_LANES);
}

/* Whether kernels for blocks of channels compute half as many products again as there are. Those of
 * the first convolution take few channels as they are. */
static bool pads_channels(const bpt_conv_problem *p) {
    enum { MAX_UNBLOCKED = 4 };
    const int64_t c = p->c <= MAX_UNBLOCKED ? p->c : rounded_to_blocks(p->c);
    return p->groups == 1 && !p->winograd && 2 * c * rounded_to_blocks(p->k) >= 3 * p->c * p->k;
}

static bpt_status layout_of_order(bpt_builder *b, bpt_value_type type, const int64_t *dims,
                                  bpt_conv_order o, const bpt_layout **out) {
    *out = NULL;
    if (o == BPT_CONV_ORDER_LAST) return bpt_layout_channels_last(b->cpu, type, dims, out);
    return o == BPT_CONV_ORDER_PLAIN ? bpt_layout_plain(b->cpu, type, dims, 4, out) : BPT_OK;
}

bpt_status bpt__conv_order_layouts(bpt_builder *b, const bpt_conv_problem *p, bpt_conv_order o,
                                   const bpt_layout **src, const bpt_layout **dst) {
    BPT_TRY(layout_of_order(b, p->type, (int64_t[]){p->n, p->c, p->h, p->w}, o, src));
    return layout_of_order(b, p->type, (int64_t[]){p->n, p->k, p->p, p->q}, o, dst);
}

/* oneDNN's kernels of 1x1 with strides copy what they take into scratch memory first; of channels
 * last, where these are fewer than a vector's, they write behind its end (seen with 2.6 on AVX2
 * and 3.7 on ARM's SVE). */
static bool overruns_scratch(const bpt_conv_problem *p) {
    const bool strided = p->stride[0] > 1 || p->stride[1] > 1;
    return p->r == 1 && p->s == 1 && strided && p->c / p->groups < BPT_CUT_LANES;
}

/* oneDNN's kernels of 1x1 multiply pairs of filters in bfloat16; of channels last, where the number
 * of filters is odd, gradients of the input are wrong for some sizes of the image
 * (docs/decisions.md). */
static bool misses_odd_filter(const bpt_conv_problem *p, bool backward_data) {
    return p->type == BPT_BF16 && backward_data && p->r == 1 && p->s == 1 &&
           p->k / p->groups % 2 != 0;
}

/* oneDNN's kernels of large windows multiply pairs of channels of the input in bfloat16; of
 * channels last, where their number is odd, the last one of the last pixel makes a pair with what
 * lies behind the input. That is multiplied by 0, which gives no number where it is none
 * (docs/decisions.md). */
static bool reads_behind_input(const bpt_conv_problem *p) {
    enum { SAFE_CHANNELS = 32, SAFE_WINDOW = 32 };
    const int64_t channels = p->c / p->groups;
    return p->type == BPT_BF16 && channels % 2 != 0 && channels > SAFE_CHANNELS &&
           p->r * p->s > SAFE_WINDOW;
}

static bool errs_with_channels_last(const bpt_conv_problem *p, bool backward_data) {
    return overruns_scratch(p) || misses_odd_filter(p, backward_data) || reads_behind_input(p);
}

/* Blocks or the plain order are what kernels choose for few channels, but for those of ARM. */
static bool may_be_last(bpt_conv_order o) {
#if defined(__x86_64__)
    return o == BPT_CONV_ORDER_LAST;
#else
    return o != BPT_CONV_ORDER_PLAIN;
#endif
}

static bpt_status ways_in(bpt_builder *b, const bpt_conv_problem *p, bool backward_data,
                          bpt_conv_order o, bpt_conv_ways *ways) {
    const bpt_layout *src, *dst;
    *ways = (bpt_conv_ways){BPT_CONV_NAIVE, BPT_CONV_NAIVE, BPT_CONV_NAIVE};
    if (may_be_last(o) && errs_with_channels_last(p, backward_data)) return BPT_OK;
    BPT_TRY(bpt__conv_order_layouts(b, p, o, &src, &dst));
    return bpt_cpu_conv_ways(b->cpu, p, backward_data, src, dst, ways);
}

static void take_slower(bpt_conv_way other, bpt_conv_way *way) {
    if (other < *way) *way = other;
}

/* Whether weights' gradients are going to be products of the whole batch, and no kernel's: that of
 * its chunks then does not count. bpt__conv_gather_create() decides, by the layouts of kernels that
 * there are not yet; whole blocks of BPT_CUT_LANES are taken for such as it wants. */
static bool gathers_gradient(const bpt_builder *b, const bpt_conv_state *state, bpt_conv_order o) {
    bpt_conv_problem batch = state->problem[0];
    const bool in_blocks =
        o == BPT_CONV_ORDER_CHOSEN && batch.c % BPT_CUT_LANES == 0 && batch.k % BPT_CUT_LANES == 0;
    const bool whole = bpt_cut_is_whole(state->cut[BPT_CONV_BACKWARD_WEIGHTS], batch.n);
    batch.n = b->batch;
    return in_blocks && whole && bpt_conv_suits_gather(&batch);
}

/* The slowest of the passes, of all chunks: they share weights, and so an order. */
static bpt_status way_in(bpt_builder *b, const bpt_conv_state *state, bool backward_data,
                         bpt_conv_order o, bpt_conv_way *way) {
    bpt_conv_ways all;
    *way = BPT_CONV_DIRECT;
    for (size_t c = 0; c < b->n_chunks; c++) {
        if (!is_first_of_size(state, c)) continue;
        BPT_TRY(ways_in(b, &state->problem[c], backward_data, o, &all));
        take_slower(all.forward, way);
        take_slower(all.backward_data, way);
        if (!gathers_gradient(b, state, o)) take_slower(all.backward_weights, way);
    }
    return BPT_OK;
}

/* The forward kernel's own choice binds the backward ones, and for some channel counts and
 * instruction sets leaves them nothing but plain loops. Channels last may have direct kernels for
 * all passes then; the plain order has matrix products, and ranges of channels, where they are
 * wanted. */
static bpt_status choose_fast_order(const bpt_layer *l, bpt_builder *b, bool backward_data,
                                    const bpt_conv_state *state, bpt_conv_order *out) {
    bpt_conv_way way;
    *out = BPT_CONV_ORDER_CHOSEN;
    BPT_TRY(way_in(b, state, backward_data, BPT_CONV_ORDER_CHOSEN, &way));
    if (way != BPT_CONV_NAIVE) return BPT_OK;
    BPT_TRY(way_in(b, state, backward_data, BPT_CONV_ORDER_LAST, &way));
    const bool last = way == BPT_CONV_DIRECT && !cuts_channels(state);
    if (!last) BPT_TRY(way_in(b, state, backward_data, BPT_CONV_ORDER_PLAIN, &way));
    if (way == BPT_CONV_NAIVE) return BPT_OK;
    *out = last ? BPT_CONV_ORDER_LAST : BPT_CONV_ORDER_PLAIN;
    bpt_debug("layer %s: %s, for want of fast kernels in others", l->name,
              last ? "channels last" : "plain layouts");
    return BPT_OK;
}

/* The order that the kernels choose, unless they are slow in it; channels last where rows are cut,
 * since there they are neighbours whatever the number of channels, or where blocks would be filled
 * up, unless ranges of blocks are wanted. */
static bpt_status choose_order(const bpt_layer *l, bpt_builder *b, bool backward_data,
                               const bpt_conv_state *state, bpt_conv_order *out) {
    bpt_conv_way way;
    BPT_TRY(choose_fast_order(l, b, backward_data, state, out));
    if (*out != BPT_CONV_ORDER_CHOSEN) return BPT_OK;
    if (!cuts_rows(state) && (cuts_channels(state) || !pads_channels(&state->problem[0])))
        return BPT_OK;
    BPT_TRY(way_in(b, state, backward_data, BPT_CONV_ORDER_LAST, &way));
    if (way != BPT_CONV_NAIVE) *out = BPT_CONV_ORDER_LAST;
    return BPT_OK;
}

static void leave_whole_if(bool whole, bpt_conv_step step, bpt_conv_state *state) {
    if (whole) state->cut[step] = (bpt_cut){0};
}

/* Matrix products have other bits for other numbers of samples: there, what is cut into tiles as
 * usual stays whole, and it is the whole that a table's cuts have to gain over. */
static bpt_status leave_products_whole(bpt_builder *b, bool backward_data, bpt_conv_order o,
                                       bpt_conv_state *state) {
    bpt_conv_ways ways;
    if (b->n_tiles == b->n_chunks) return BPT_OK; /* that is whole */
    for (size_t c = 0; c < b->n_chunks; c++) {
        if (!is_first_of_size(state, c)) continue;
        BPT_TRY(ways_in(b, &state->problem[c], backward_data, o, &ways));
        leave_whole_if(ways.forward == BPT_CONV_PRODUCTS, BPT_CONV_FORWARD, state);
        leave_whole_if(ways.backward_data == BPT_CONV_PRODUCTS, BPT_CONV_BACKWARD_DATA, state);
    }
    return BPT_OK;
}

/* The order follows from the cuts, and the cuts as usual from the kernels that an order has. */
static bpt_status choose_cuts_and_order(const bpt_layer *l, bpt_builder *b, bool backward_data,
                                        bpt_conv_state *state, bpt_conv_order *out) {
    cut_as_usual(b, state);
    BPT_TRY(choose_order(l, b, backward_data, state, out));
    BPT_TRY(leave_products_whole(b, backward_data, *out, state));
    choose_cuts(l, b, backward_data, state);
    if (!cuts_rows(state) && !cuts_channels(state)) return BPT_OK;
    return choose_order(l, b, backward_data, state, out);
}

bpt_status bpt__conv_choose(const bpt_layer *l, bpt_builder *b, bool backward_data,
                            bpt_conv_state *state, bpt_conv_order *order) {
    BPT_TRY(choose_algorithm(l, b, state));
    return choose_cuts_and_order(l, b, backward_data, state, order);
}
