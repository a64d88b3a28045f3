/* Maximum over windows. Padding never wins: it counts as minus infinity. */
#include "inner/builder.h"
#include "inner/layers/fields.h"

#include <inttypes.h>

static bpt_status parse(bpt_layer *l, const bpt_model_scope *scope, const bpt_yaml *doc,
                        const bpt_yaml_node *fields) {
    (void)scope;
    bpt_pool_config *config = l->config;
    const int64_t *kernel = config->kernel, *pad = config->pad;
    BPT_TRY(bpt__field_pair(l, doc, fields, "kernel", 1, NULL, config->kernel));
    BPT_TRY(bpt__field_pair(l, doc, fields, "stride", 1, kernel, config->stride));
    BPT_TRY(bpt__field_pair(l, doc, fields, "pad", 0, (int64_t[]){0, 0}, config->pad));
    /* So that no window lies in the padding alone. */
    if (pad[0] > kernel[0] / 2 || pad[1] > kernel[1] / 2)
        return bpt_yaml_fail(doc, bpt_yaml_find(fields, "pad"),
                             "layer %s: pad %" PRId64 "x%" PRId64
                             " is more than half of its kernel %" PRId64 "x%" PRId64,
                             l->name, pad[0], pad[1], kernel[0], kernel[1]);
    return BPT_OK;
}

static bpt_status infer(bpt_layer *l, bpt_segments *s) {
    (void)s;
    const bpt_pool_config *config = l->config;
    l->out.c = l->in.c;
    return bpt__window_infer(l, config->kernel, config->stride, config->pad);
}

static uint64_t forward_flops(const bpt_layer *l) {
    (void)l;
    return 0;
}

typedef struct {
    bpt_conv_problem problem[BPT_MAX_TILES];
    bpt_kernel *forward[BPT_MAX_TILES];
    bpt_ref workspace[BPT_MAX_TILES];
} maxpool_state;

static bpt_conv_problem tile_problem(const bpt_layer *l, int64_t n) {
    const bpt_pool_config *config = l->config;
    return bpt__window_problem(l, n, config->kernel, config->stride, config->pad);
}

static void bind_workspace(bpt_kernel *k, bpt_ref workspace) {
    if (bpt_kernel_layout(k, BPT_SLOT_WORKSPACE)) bpt_kernel_bind(k, BPT_SLOT_WORKSPACE, workspace);
}

static bpt_status plan_forward(const bpt_layer *l, bpt_builder *b, const bpt_activation *in,
                               bpt_activation *out, void **state_out) {
    maxpool_state *state;
    BPT_TRY(bpt_builder_object(b, sizeof *state, (void **)&state));
    *out = (bpt_activation){.shape = l->out, .wants_grad = in->wants_grad};
    for (size_t t = 0; t < b->n_tiles; t++) {
        bpt_kernel *k;
        uint32_t id;
        state->problem[t] = tile_problem(l, bpt_builder_tile_samples(b, t));
        BPT_TRY(bpt_cpu_maxpool_forward(b->cpu, &state->problem[t], in->layout[t], &k));
        bpt_builder_reserve_tile(b, out, t, bpt_kernel_layout(k, BPT_SLOT_DST));
        const bpt_layout *workspace = bpt_kernel_layout(k, BPT_SLOT_WORKSPACE);
        if (workspace)
            state->workspace[t] =
                bpt_blocks_reserve(b->blocks, BPT_BLOCK_ACTIVATIONS, bpt_layout_bytes(workspace));
        bpt_kernel_bind(k, BPT_SLOT_SRC, in->value[t]);
        bpt_kernel_bind(k, BPT_SLOT_DST, out->value[t]);
        bind_workspace(k, state->workspace[t]);
        BPT_TRY(bpt_builder_kernel(b, BPT_PHASE_FORWARD, k, (bpt_task_info){"forward", l->name},
                                   in->value_ready[t], &id));
        BPT_TRY(bpt_deps_one(b, id, &out->value_ready[t]));
        state->forward[t] = k;
    }
    *state_out = state;
    return BPT_OK;
}

static bpt_status plan_backward(const bpt_layer *l, bpt_builder *b, bpt_activation *in,
                                const bpt_activation *out, void *arg) {
    const maxpool_state *state = arg;
    if (!in->wants_grad) return BPT_OK;
    for (size_t t = 0; t < b->n_tiles; t++) {
        bpt_kernel *k;
        uint32_t id;
        BPT_TRY(bpt_cpu_maxpool_backward(b->cpu, &state->problem[t], state->forward[t], &k));
        bpt_kernel_bind(k, BPT_SLOT_DIFF_DST, out->grad[t]);
        bpt_kernel_bind(k, BPT_SLOT_DIFF_SRC, in->grad[t]);
        bind_workspace(k, state->workspace[t]);
        BPT_TRY(bpt_builder_kernel(b, BPT_PHASE_BACKWARD, k, (bpt_task_info){"backward", l->name},
                                   out->grad_ready[t], &id));
        BPT_TRY(bpt_deps_one(b, id, &in->grad_ready[t]));
    }
    return BPT_OK;
}

static const char *const fields[] = {"kernel", "stride", "pad"};

const bpt_layer_kind bpt_layer_maxpool = {
    .name = "maxpool",
    .fields = fields,
    .n_fields = sizeof fields / sizeof *fields,
    .config_bytes = sizeof(bpt_pool_config),
    .parse = parse,
    .infer = infer,
    .forward_flops = forward_flops,
    .plan_forward = plan_forward,
    .plan_backward = plan_backward,
};
