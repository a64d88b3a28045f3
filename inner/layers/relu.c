/* Rectifier: y = max(x, 0). */
#include "inner/layers/fields.h"
#include "inner/step/builder.h"

typedef struct {
    bpt_kernel *forward[BPT_MAX_TILES];
} relu_state;

/* In place where it may be. The backward pass needs the output, so nobody may change it. */
static bpt_status plan_output(bpt_builder *b, const bpt_activation *in, bpt_activation *out) {
    if (in->read_only)
        BPT_TRY(bpt_builder_alike(b, in, out));
    else
        *out = *in;
    out->read_only = out->wants_grad;
    return BPT_OK;
}

static bpt_status plan_forward(const bpt_layer *l, bpt_builder *b, bpt_activation *const *inputs,
                               bpt_activation *out, void **state_out) {
    const bpt_activation *in = inputs[0];
    relu_state *state;
    BPT_TRY(BPT_BUILDER_NEW(b, 1, &state));
    BPT_TRY(plan_output(b, in, out));
    for (size_t t = 0; t < b->n_tiles; t++) {
        bpt_kernel *k;
        BPT_TRY(bpt_cpu_relu_forward(b->cpu, in->layout[t], &k));
        bpt_kernel_bind(k, BPT_SLOT_SRC, in->value[t]);
        bpt_kernel_bind(k, BPT_SLOT_DST, out->value[t]);
        BPT_TRY(bpt_builder_kernel(b, BPT_PHASE_FORWARD, k, (bpt_task_info){"forward", l->name},
                                   in->value_ready[t], &out->value_ready[t]));
        state->forward[t] = k;
    }
    *state_out = state;
    return BPT_OK;
}

static bpt_status plan_backward(const bpt_layer *l, bpt_builder *b, bpt_activation *const *inputs,
                                const bpt_activation *out, void *arg) {
    bpt_activation *in = inputs[0];
    const relu_state *state = arg;
    if (!in->wants_grad) return BPT_OK;
    for (size_t t = 0; t < b->n_tiles; t++) {
        bpt_kernel *k;
        BPT_TRY(bpt_cpu_relu_backward(b->cpu, state->forward[t], &k));
        bpt_kernel_bind(k, BPT_SLOT_DST, out->value[t]);
        bpt_kernel_bind(k, BPT_SLOT_DIFF_DST, out->grad[t]);
        bpt_kernel_bind(k, BPT_SLOT_DIFF_SRC, in->grad[t]);
        BPT_TRY(bpt_builder_kernel(b, BPT_PHASE_BACKWARD, k, (bpt_task_info){"backward", l->name},
                                   out->grad_ready[t], &in->grad_ready[t]));
    }
    return BPT_OK;
}

const bpt_layer_kind bpt_layer_relu = {
    .name = "relu",
    .parse = bpt__no_fields,
    .infer = bpt__same_shape,
    .forward_flops = bpt__no_flops,
    .plan_forward = plan_forward,
    .plan_backward = plan_backward,
};
