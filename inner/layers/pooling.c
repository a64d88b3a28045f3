#include "inner/layers/pooling.h"

#include "inner/layers/fields.h"

#include <inttypes.h>
#include <string.h>

bpt_status bpt__pool_parse(bpt_layer *l, const bpt_yaml *doc, const bpt_yaml_node *fields) {
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

typedef struct {
    bpt_conv_problem problem[BPT_MAX_TILES];
    bpt_kernel *forward[BPT_MAX_TILES];
    bpt_ref workspace[BPT_MAX_TILES];
    bpt_pool_kind kind;
    bpt_activation in; /* in the order of the kernels */
} pool_state;

static bool has_plain_loops(const bpt_kernel *k) {
    const char *name = bpt_kernel_implementation(k);
    return strncmp(name, "simple", 6) == 0 || strncmp(name, "ref", 3) == 0;
}

/* The input as it comes, unless oneDNN has plain loops for that order alone, as before AVX-512 for
 * the plain one: channels last have vectors and take an eighth of the time. */
static bpt_status order_input(const bpt_layer *l, bpt_builder *b, bpt_pool_kind kind,
                              const bpt_activation *in, pool_state *state) {
    enum { MIN_CHANNELS = 8 }; /* that make a vector */
    const bpt_layout *layouts[BPT_MAX_TILES];
    state->in = *in;
    if (l->in.c < MIN_CHANNELS) return BPT_OK;
    for (size_t t = 0; t < b->n_tiles; t++) {
        const int64_t dims[] = {bpt_builder_tile_samples(b, t), l->in.c, l->in.h, l->in.w};
        bpt_kernel *k; /* only describes */
        BPT_TRY(bpt_cpu_pool_forward(b->cpu, &state->problem[t], kind, in->layout[t], &k));
        if (!has_plain_loops(k)) return BPT_OK;
        BPT_TRY(bpt_layout_channels_last(b->cpu, in->type, dims, &layouts[t]));
    }
    return bpt_builder_convert(b, l->name, in, layouts, &state->in);
}

bpt_status bpt__pool_plan_forward(const bpt_layer *l, bpt_builder *b, bpt_pool_kind kind,
                                  const bpt_pool_config *config, const bpt_activation *in,
                                  bpt_activation *out, void **state_out) {
    pool_state *state;
    BPT_TRY(BPT_BUILDER_NEW(b, 1, &state));
    state->kind = kind;
    for (size_t t = 0; t < b->n_tiles; t++)
        state->problem[t] = bpt__window_problem(l, bpt_builder_tile_samples(b, t), config->kernel,
                                                config->stride, config->pad);
    BPT_TRY(order_input(l, b, kind, in, state));
    in = &state->in;
    *out = (bpt_activation){.shape = l->out, .wants_grad = in->wants_grad};
    for (size_t t = 0; t < b->n_tiles; t++) {
        BPT_TRY(bpt_cpu_pool_forward(b->cpu, &state->problem[t], kind, in->layout[t],
                                     &state->forward[t]));
        out->layout[t] = bpt_kernel_layout(state->forward[t], BPT_SLOT_DST);
    }
    BPT_TRY(bpt_builder_reserve(b, out));
    for (size_t t = 0; t < b->n_tiles; t++) {
        bpt_kernel *k = state->forward[t];
        const bpt_layout *workspace = bpt_kernel_layout(k, BPT_SLOT_WORKSPACE);
        if (workspace)
            BPT_TRY(bpt_builder_workspace(b, bpt_layout_bytes(workspace), &state->workspace[t]));
        bpt_kernel_bind(k, BPT_SLOT_SRC, in->value[t]);
        bpt_kernel_bind(k, BPT_SLOT_DST, out->value[t]);
        bpt_kernel_bind(k, BPT_SLOT_WORKSPACE, state->workspace[t]);
        BPT_TRY(bpt_builder_kernel(b, BPT_PHASE_FORWARD, k, (bpt_task_info){"forward", l->name},
                                   in->value_ready[t], &out->value_ready[t]));
    }
    *state_out = state;
    return BPT_OK;
}

bpt_status bpt__pool_plan_backward(const bpt_layer *l, bpt_builder *b,
                                   bpt_activation *const *inputs, const bpt_activation *out,
                                   void *arg) {
    bpt_activation *in = inputs[0];
    pool_state *state = arg;
    bpt_activation *ordered = &state->in;
    if (!in->wants_grad) return BPT_OK;
    for (size_t t = 0; t < b->n_tiles; t++) {
        bpt_kernel *k;
        BPT_TRY(
            bpt_cpu_pool_backward(b->cpu, &state->problem[t], state->kind, state->forward[t], &k));
        bpt_kernel_bind(k, BPT_SLOT_DIFF_DST, out->grad[t]);
        bpt_kernel_bind(k, BPT_SLOT_DIFF_SRC, ordered->grad[t]);
        bpt_kernel_bind(k, BPT_SLOT_WORKSPACE, state->workspace[t]);
        BPT_TRY(bpt_builder_kernel(b, BPT_PHASE_BACKWARD, k, (bpt_task_info){"backward", l->name},
                                   out->grad_ready[t], &ordered->grad_ready[t]));
    }
    return bpt_builder_convert_back(b, l->name, in, ordered);
}
