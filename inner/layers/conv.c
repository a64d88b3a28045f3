/* Convolution: y[k] = bias[k] + sum over c of x[c] * weight[k][c], cross-correlation as is usual.
 */
#include "base/log.h"
#include "inner/builder.h"
#include "inner/layers/fields.h"
#include "inner/rectify.h"

#include <inttypes.h>

static bpt_status parse(bpt_layer *l, const bpt_model_scope *scope, const bpt_yaml *doc,
                        const bpt_yaml_node *fields) {
    bpt_conv_config *config = l->config;
    BPT_TRY(bpt__field_channels(l, scope, doc, fields, "filters", &config->filters));
    BPT_TRY(bpt__field_pair(l, doc, fields, "kernel", 1, NULL, config->kernel));
    BPT_TRY(bpt__field_pair(l, doc, fields, "stride", 1, (int64_t[]){1, 1}, config->stride));
    BPT_TRY(bpt__field_pair(l, doc, fields, "pad", 0, (int64_t[]){0, 0}, config->pad));
    BPT_TRY(bpt__field_pair(l, doc, fields, "dilation", 1, (int64_t[]){1, 1}, config->dilation));
    BPT_TRY(bpt__field_int(l, doc, fields, "groups", 1, BPT__MAX_CHANNELS, 1, &config->groups));
    return bpt__field_bool(l, doc, fields, "bias", true, &config->bias);
}

static bpt_status check_groups(const bpt_layer *l, const bpt_conv_config *config) {
    if (l->in.c % config->groups == 0 && config->filters % config->groups == 0) return BPT_OK;
    return bpt_fail(BPT_EUSAGE,
                    "%" PRId64 " input channels and %" PRId64 " filters do not divide in %" PRId64
                    " groups",
                    l->in.c, config->filters, config->groups);
}

static bpt_status infer(bpt_layer *l, bpt_segments *s) {
    const bpt_conv_config *config = l->config;
    int64_t extent[2]; /* of the kernel with its gaps */
    for (int i = 0; i < 2; i++) extent[i] = (config->kernel[i] - 1) * config->dilation[i] + 1;
    BPT_TRY(check_groups(l, config));
    BPT_TRY(bpt__window_infer(l, extent, config->stride, config->pad));
    l->out.c = config->filters;
    const int64_t dims[] = {config->filters, l->in.c / config->groups, config->kernel[0],
                            config->kernel[1]};
    return bpt__weights_infer(l, s, dims, 4, config->bias);
}

static uint64_t forward_flops(const bpt_layer *l) {
    const bpt_conv_config *config = l->config;
    const int64_t per_output = l->in.c / config->groups * config->kernel[0] * config->kernel[1];
    return 2 * (uint64_t)(l->out.c * l->out.h * l->out.w) * (uint64_t)per_output;
}

/* Weights as kernels read them. */
typedef struct {
    const bpt_layout *layout;
    bpt_ref where;
    bpt_deps ready;
} weights_view;

typedef struct {
    bpt_conv_problem problem[BPT_MAX_TILES];
    bpt_kernel *forward[BPT_MAX_TILES];
    bpt_kernel *backward_weights[BPT_MAX_TILES]; /* NULL before it is needed */
    weights_view weights;                        /* of the forward pass */
    bpt_activation in;                           /* in the layout of the kernels */
} conv_state;

static bpt_conv_problem tile_problem(const bpt_layer *l, bpt_value_type type, int64_t n) {
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

static bpt_status wants_plain(const bpt_layer *l, bpt_builder *b, const bpt_conv_problem *first,
                              bool backward_data, bool *plain) {
    BPT_TRY(bpt_cpu_conv_wants_plain(b->cpu, first, backward_data, plain));
    if (*plain) bpt_debug("layer %s: plain layouts, for want of fast kernels in others", l->name);
    return BPT_OK;
}

static bpt_status create_kernel(bpt_builder *b, const bpt_conv_problem *p, bool plain,
                                const bpt_layout *weights, bpt_kernel **out) {
    const bpt_layout *src = NULL, *dst = NULL;
    if (plain) {
        BPT_TRY(bpt_layout_plain(b->cpu, p->type, (int64_t[]){p->n, p->c, p->h, p->w}, 4, &src));
        BPT_TRY(bpt_layout_plain(b->cpu, p->type, (int64_t[]){p->n, p->k, p->p, p->q}, 4, &dst));
    }
    return bpt_cpu_conv_forward(b->cpu, p, src, weights, dst, out);
}

static bpt_status backward_weights_kernel(bpt_builder *b, conv_state *state, size_t t,
                                          bpt_kernel **out) {
    if (!state->backward_weights[t])
        BPT_TRY(bpt_cpu_conv_backward_weights(b->cpu, &state->problem[t], state->forward[t],
                                              &state->backward_weights[t]));
    *out = state->backward_weights[t];
    return BPT_OK;
}

/* The layout of the master: that of the forward pass; where this reads a copy in bfloat16, that of
 * the gradient, so that nothing but the copy is reordered. In files and between ranks the weights
 * are [K, C/G, R, S], which is [G, K/G, C/G, R, S]. */
static bpt_status plan_master(const bpt_layer *l, bpt_builder *b, conv_state *state) {
    const bpt_layout **flat = &b->weights[l->first_segment].flat;
    const bpt_layout *master = bpt_kernel_layout(state->forward[0], BPT_SLOT_WEIGHTS);
    int64_t dims[5];
    const int n_dims = bpt_conv_weight_dims(&state->problem[0], dims);
    BPT_TRY(bpt_layout_plain(b->cpu, BPT_F32, dims, n_dims, flat));
    if (b->type != BPT_F32 && b->forward_only) {
        master = *flat;
    } else if (b->type != BPT_F32) {
        bpt_kernel *k;
        BPT_TRY(backward_weights_kernel(b, state, 0, &k));
        master = bpt_kernel_layout(k, BPT_SLOT_DIFF_WEIGHTS);
    }
    bpt_builder_weights(b, l->first_segment, master, b->n_tiles);
    return BPT_OK;
}

/* The first tile's kernel chooses the layout of the weights, the others must take it. */
static bpt_status create_kernels(const bpt_layer *l, bpt_builder *b, bool backward_data,
                                 conv_state *state, const bpt_layout **inputs) {
    const bpt_layout *weights = NULL;
    bool plain;
    for (size_t t = 0; t < b->n_tiles; t++)
        state->problem[t] = tile_problem(l, b->type, bpt_builder_tile_samples(b, t));
    BPT_TRY(wants_plain(l, b, &state->problem[0], backward_data, &plain));
    for (size_t t = 0; t < b->n_tiles; t++) {
        BPT_TRY(create_kernel(b, &state->problem[t], plain, weights, &state->forward[t]));
        weights = bpt_kernel_layout(state->forward[t], BPT_SLOT_WEIGHTS);
        inputs[t] = bpt_kernel_layout(state->forward[t], BPT_SLOT_SRC);
    }
    BPT_TRY(plan_master(l, b, state));
    if (state->problem[0].bias)
        bpt_builder_weights(b, l->first_segment + 1,
                            bpt_kernel_layout(state->forward[0], BPT_SLOT_BIAS), b->n_tiles);
    return BPT_OK;
}

/* Where kernels want the weights otherwise than the master has them, they read a copy that is made
 * anew in every step. */
static bpt_status view_weights(const bpt_layer *l, bpt_builder *b, bpt_phase phase,
                               const bpt_layout *wanted, weights_view *out) {
    const bpt_weight_plan *w = &b->weights[l->first_segment];
    *out = (weights_view){.layout = wanted, .where = w->master};
    if (bpt_layout_equal(wanted, w->layout)) return BPT_OK;
    bpt_kernel *k;
    out->where = bpt_blocks_reserve(b->blocks, BPT_BLOCK_PARTIALS, bpt_layout_bytes(wanted));
    BPT_TRY(bpt_cpu_reorder(b->cpu, w->layout, wanted, &k));
    bpt_kernel_bind(k, BPT_SLOT_SRC, w->master);
    bpt_kernel_bind(k, BPT_SLOT_DST, out->where);
    BPT_TRY(bpt_builder_kernel(b, phase, k, (bpt_task_info){"reorder weights", l->name},
                               (bpt_deps){0}, &out->ready));
    return bpt_builder_weights_read(b, l->first_segment, out->ready);
}

static bpt_status plan_forward(const bpt_layer *l, bpt_builder *b, bpt_activation *const *inputs,
                               bpt_activation *out, void **state_out) {
    const bpt_activation *in = inputs[0];
    conv_state *state;
    const bpt_layout *layouts[BPT_MAX_TILES];
    BPT_TRY(bpt_builder_object(b, sizeof *state, (void **)&state));
    BPT_TRY(create_kernels(l, b, in->wants_grad, state, layouts));
    BPT_TRY(bpt_builder_convert(b, l->name, in, layouts, &state->in));
    *out = (bpt_activation){.shape = l->out, .wants_grad = true, .read_only = l->fusion.relu};
    BPT_TRY(view_weights(l, b, BPT_PHASE_FORWARD,
                         bpt_kernel_layout(state->forward[0], BPT_SLOT_WEIGHTS), &state->weights));
    for (size_t t = 0; t < b->n_tiles; t++) {
        bpt_kernel *k = state->forward[t];
        bpt_deps after;
        BPT_TRY(bpt_builder_reserve_tile(b, out, t, bpt_kernel_layout(k, BPT_SLOT_DST)));
        bpt_kernel_bind(k, BPT_SLOT_SRC, state->in.value[t]);
        bpt_kernel_bind(k, BPT_SLOT_WEIGHTS, state->weights.where);
        if (state->problem[t].bias)
            bpt_kernel_bind(k, BPT_SLOT_BIAS, b->weights[l->first_segment + 1].master);
        bpt_kernel_bind(k, BPT_SLOT_DST, out->value[t]);
        BPT_TRY(bpt_deps_join(b, state->in.value_ready[t], state->weights.ready, &after));
        BPT_TRY(bpt_builder_kernel(b, BPT_PHASE_FORWARD, k, (bpt_task_info){"forward", l->name},
                                   after, &out->value_ready[t]));
    }
    *state_out = state;
    return BPT_OK;
}

/* Nobody but the update waits for weights' gradients, so they could be left for last, and all that
 * they read would be in use until then. So backward data waits, tile by tile, for those of some
 * convolutions before: what these read is free from there on.
 * @return of each tile, the tasks of the convolution so far back, or nothing; shape [n_tiles] */
static bpt_deps *late_weights(bpt_builder *b) {
    return b->weights_done[b->n_weights_done % BPT_WEIGHTS_LAG];
}

static bpt_status weights_for_data(const bpt_layer *l, bpt_builder *b, const conv_state *state,
                                   const bpt_kernel *k, weights_view *out) {
    const bpt_layout *wanted = bpt_kernel_layout(k, BPT_SLOT_WEIGHTS);
    *out = state->weights;
    if (bpt_layout_equal(wanted, out->layout)) return BPT_OK;
    return view_weights(l, b, BPT_PHASE_BACKWARD, wanted, out);
}

static bpt_status plan_backward_data(const bpt_layer *l, bpt_builder *b, conv_state *state,
                                     const bpt_activation *out) {
    weights_view weights = {0}; /* the first tile's kernel chooses their layout */
    for (size_t t = 0; t < b->n_tiles; t++) {
        bpt_kernel *k;
        bpt_deps after;
        BPT_TRY(bpt_cpu_conv_backward_data(b->cpu, &state->problem[t], state->forward[t],
                                           weights.layout, &k));
        if (t == 0) BPT_TRY(weights_for_data(l, b, state, k, &weights));
        bpt_kernel_bind(k, BPT_SLOT_DIFF_DST, out->grad[t]);
        bpt_kernel_bind(k, BPT_SLOT_WEIGHTS, weights.where);
        bpt_kernel_bind(k, BPT_SLOT_DIFF_SRC, state->in.grad[t]);
        BPT_TRY(bpt_deps_join(b, out->grad_ready[t], weights.ready, &after));
        BPT_TRY(bpt_deps_join(b, after, late_weights(b)[t], &after));
        BPT_TRY(bpt_builder_kernel(b, BPT_PHASE_BACKWARD, k,
                                   (bpt_task_info){"backward data", l->name}, after,
                                   &state->in.grad_ready[t]));
        BPT_TRY(bpt_builder_weights_read(b, l->first_segment, state->in.grad_ready[t]));
    }
    return BPT_OK;
}

/* Makes the kernel's gradient arrive in the master's layout; *done is then its last task. */
static bpt_status adapt_gradient(const bpt_layer *l, bpt_builder *b, size_t t, bpt_kernel *k,
                                 bpt_deps *done) {
    const bpt_weight_plan *w = &b->weights[l->first_segment];
    const bpt_layout *layout = bpt_kernel_layout(k, BPT_SLOT_DIFF_WEIGHTS);
    const bpt_ref wanted = bpt_builder_partial(b, l->first_segment, t);
    if (bpt_layout_equal(layout, w->layout)) {
        bpt_kernel_bind(k, BPT_SLOT_DIFF_WEIGHTS, wanted);
        return BPT_OK;
    }
    const bpt_ref own = bpt_blocks_reserve(b->blocks, BPT_BLOCK_PARTIALS, bpt_layout_bytes(layout));
    bpt_kernel *reorder;
    bpt_kernel_bind(k, BPT_SLOT_DIFF_WEIGHTS, own);
    BPT_TRY(bpt_cpu_reorder(b->cpu, layout, w->layout, &reorder));
    bpt_kernel_bind(reorder, BPT_SLOT_SRC, own);
    bpt_kernel_bind(reorder, BPT_SLOT_DST, wanted);
    return bpt_builder_kernel(b, BPT_PHASE_BACKWARD, reorder,
                              (bpt_task_info){"reorder gradient", l->name}, *done, done);
}

static bpt_status plan_backward_weights(const bpt_layer *l, bpt_builder *b, conv_state *state,
                                        const bpt_activation *out) {
    bpt_kernel *kernels[BPT_MAX_TILES];
    bpt_deps done[BPT_MAX_TILES];
    for (size_t t = 0; t < b->n_tiles; t++) {
        bpt_kernel *k;
        BPT_TRY(backward_weights_kernel(b, state, t, &k));
        bpt_kernel_bind(k, BPT_SLOT_SRC, state->in.value[t]);
        bpt_kernel_bind(k, BPT_SLOT_DIFF_DST, out->grad[t]);
        BPT_TRY(bpt_builder_kernel(b, BPT_PHASE_BACKWARD, k,
                                   (bpt_task_info){"backward weights", l->name}, out->grad_ready[t],
                                   &done[t]));
        late_weights(b)[t] = done[t]; /* takes the place of the older ones */
        if (state->problem[t].bias) {
            bpt_kernel_bind(k, BPT_SLOT_DIFF_BIAS, bpt_builder_partial(b, l->first_segment + 1, t));
            BPT_TRY(bpt_builder_weights_written(b, l->first_segment + 1, done[t]));
        }
        kernels[t] = k;
    }
    for (size_t t = 0; t < b->n_tiles; t++) { /* apart, so that tasks of a kind stay together */
        BPT_TRY(adapt_gradient(l, b, t, kernels[t], &done[t]));
        BPT_TRY(bpt_builder_weights_written(b, l->first_segment, done[t]));
    }
    b->n_weights_done++;
    return BPT_OK;
}

static bpt_status plan_backward(const bpt_layer *l, bpt_builder *b, bpt_activation *const *inputs,
                                const bpt_activation *out, void *arg) {
    bpt_activation *in = inputs[0];
    conv_state *state = arg;
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

static const char *const fields[] = {"filters",  "kernel", "stride", "pad",
                                     "dilation", "groups", "bias"};

const bpt_layer_kind bpt_layer_conv = {
    .name = "conv",
    .fuses_relu = true,
    .fields = fields,
    .n_fields = sizeof fields / sizeof *fields,
    .config_bytes = sizeof(bpt_conv_config),
    .parse = parse,
    .infer = infer,
    .forward_flops = forward_flops,
    .plan_forward = plan_forward,
    .plan_backward = plan_backward,
};
