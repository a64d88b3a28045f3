/* Local response normalisation across channels (Krizhevsky, Sutskever, Hinton 2012), as Caffe and
 * PyTorch have it: y = x / (k + alpha / size * sum of x^2 over size channels)^beta. */
#include "inner/layers/fields.h"
#include "inner/step/builder.h"

#include <inttypes.h>

static bpt_status parse(bpt_layer *l, const bpt_model_scope *scope, const bpt_yaml *doc,
                        const bpt_yaml_node *fields) {
    bpt_lrn_config *config = l->config;
    (void)scope;
    BPT_TRY(bpt__field_int(l, doc, fields, "size", 1, 63, 5, &config->size));
    BPT_TRY(bpt__field_real(l, doc, fields, "alpha", 0.0, 1e3, 1e-4, &config->alpha));
    BPT_TRY(bpt__field_real(l, doc, fields, "beta", 0.0, 1e3, 0.75, &config->beta));
    BPT_TRY(bpt__field_real(l, doc, fields, "k", 1e-6, 1e3, 1.0, &config->k));
    if (config->size % 2 == 1) return BPT_OK;
    return bpt_yaml_fail(doc, bpt_yaml_find(fields, "size"),
                         "layer %s: size %" PRId64 " is not odd: a window has a middle", l->name,
                         config->size);
}

typedef struct {
    bpt_kernel *forward[BPT_MAX_TILES];
    bpt_ref workspace[BPT_MAX_TILES];
    bpt_activation in; /* in the order of the kernels */
} lrn_state;

static bpt_lrn lrn_of(const bpt_layer *l) {
    const bpt_lrn_config *config = l->config;
    return (bpt_lrn){config->size, (float)config->alpha, (float)config->beta, (float)config->k};
}

static bpt_status plan_tile(const bpt_layer *l, bpt_builder *b, lrn_state *state,
                            bpt_activation *out, size_t t) {
    bpt_kernel *k;
    BPT_TRY(bpt_cpu_lrn_forward(b->cpu, lrn_of(l), state->in.layout[t], &k));
    const bpt_layout *workspace = bpt_kernel_layout(k, BPT_SLOT_WORKSPACE);
    if (workspace)
        BPT_TRY(bpt_builder_workspace(b, bpt_layout_bytes(workspace), &state->workspace[t]));
    bpt_kernel_bind(k, BPT_SLOT_SRC, state->in.value[t]);
    bpt_kernel_bind(k, BPT_SLOT_DST, out->value[t]);
    bpt_kernel_bind(k, BPT_SLOT_WORKSPACE, state->workspace[t]);
    state->forward[t] = k;
    return bpt_builder_kernel(b, BPT_PHASE_FORWARD, k, (bpt_task_info){"forward", l->name},
                              state->in.value_ready[t], &out->value_ready[t]);
}

/* oneDNN's kernels of AVX-512 for channels last: gradients of more channels than a vector has are
 * wrong in floats where they fill no vector and the window is wide, in bfloat16 where it is either
 * (docs/decisions.md). */
static bool errs_with_channels_last(const bpt_layer *l, bpt_value_type type) {
    enum { LANES = 16, WIDE = 7 };
    const bpt_lrn_config *config = l->config;
    const bool wide = config->size >= WIDE, uneven = l->in.c % LANES != 0;
    return l->in.c > LANES && (type == BPT_F32 ? wide && uneven : wide || uneven);
}

/* The input as it comes, or the plain order in place of channels last. Of one pixel these are the
 * same but for their names, which oneDNN 3 does not look at: there it is blocks. */
static bpt_status order_input(const bpt_layer *l, bpt_builder *b, const bpt_activation *in,
                              bpt_activation *out) {
    enum { BLOCK = 16 };
    const int64_t dims[] = {bpt_builder_tile_samples(b, 0), l->in.c, l->in.h, l->in.w};
    int64_t lanes;
    BPT_TRY(bpt_layout_lanes(b->cpu, in->layout[0], dims, &lanes));
    *out = *in;
    if (lanes == 8 || lanes == 16 || !errs_with_channels_last(l, in->type)) return BPT_OK;
    if (l->in.h * l->in.w == 1)
        return bpt_builder_convert_to_lanes(b, l->name, in, in->type, BLOCK, out);
    return bpt_builder_convert_to_plain(b, l->name, in, in->type, out);
}

static bpt_status plan_forward(const bpt_layer *l, bpt_builder *b, bpt_activation *const *inputs,
                               bpt_activation *out, void **state_out) {
    lrn_state *state;
    BPT_TRY(BPT_BUILDER_NEW(b, 1, &state));
    BPT_TRY(order_input(l, b, inputs[0], &state->in));
    BPT_TRY(bpt_builder_alike(b, &state->in, out));
    for (size_t t = 0; t < b->n_tiles; t++) BPT_TRY(plan_tile(l, b, state, out, t));
    *state_out = state;
    return BPT_OK;
}

static bpt_status plan_backward(const bpt_layer *l, bpt_builder *b, bpt_activation *const *inputs,
                                const bpt_activation *out, void *arg) {
    lrn_state *state = arg;
    bpt_activation *in = &state->in;
    if (!in->wants_grad) return BPT_OK;
    for (size_t t = 0; t < b->n_tiles; t++) {
        bpt_kernel *k;
        BPT_TRY(bpt_cpu_lrn_backward(b->cpu, lrn_of(l), state->forward[t], &k));
        bpt_kernel_bind(k, BPT_SLOT_SRC, in->value[t]);
        bpt_kernel_bind(k, BPT_SLOT_DIFF_DST, out->grad[t]);
        bpt_kernel_bind(k, BPT_SLOT_DIFF_SRC, in->grad[t]);
        bpt_kernel_bind(k, BPT_SLOT_WORKSPACE, state->workspace[t]);
        BPT_TRY(bpt_builder_kernel(b, BPT_PHASE_BACKWARD, k, (bpt_task_info){"backward", l->name},
                                   out->grad_ready[t], &in->grad_ready[t]));
    }
    return bpt_builder_convert_back(b, l->name, inputs[0], in);
}

static const char *const fields[] = {"size", "alpha", "beta", "k"};

const bpt_layer_kind bpt_layer_lrn = {
    .name = "lrn",
    .fields = fields,
    .n_fields = sizeof fields / sizeof *fields,
    .config_bytes = sizeof(bpt_lrn_config),
    .said_bytes = BPT__BYTES_TO(bpt_lrn_config, k),
    .parse = parse,
    .infer = bpt__same_shape,
    .forward_flops = bpt__no_flops,
    .plan_forward = plan_forward,
    .plan_backward = plan_backward,
};
