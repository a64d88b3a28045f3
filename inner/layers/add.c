/* Sum of inputs of one shape, value by value: y = x1 + x2 + ... */
#include "inner/layers/fields.h"
#include "inner/step/builder.h"

#include <inttypes.h>

static bpt_status infer(bpt_layer *l, bpt_segments *s) {
    (void)s;
    l->out = l->in;
    for (size_t j = 1; j < l->n_inputs; j++) {
        const bpt_shape *x = &l->ins[j];
        if (x->c == l->in.c && x->h == l->in.h && x->w == l->in.w) continue;
        return bpt_fail(BPT_EUSAGE,
                        "it adds inputs of unlike shapes, %" PRId64 "x%" PRId64 "x%" PRId64
                        " and %" PRId64 "x%" PRId64 "x%" PRId64,
                        l->in.c, l->in.h, l->in.w, x->c, x->h, x->w);
    }
    return BPT_OK;
}

/* In place of the first input where it may be. Its gradient is another's: the layer before may have
 * worked in place too, and will write there, while all inputs read the gradient of the sum. */
static bpt_status plan_output(bpt_builder *b, const bpt_activation *first, bool wants_grad,
                              bpt_activation *out) {
    if (!first->read_only && first->wants_grad) {
        *out = *first;
        return bpt_builder_reserve_gradients(b, out, out->grad);
    }
    bpt_activation like = *first;
    like.wants_grad = wants_grad;
    return bpt_builder_alike(b, &like, out);
}

static bpt_status plan_tile(const bpt_layer *l, bpt_builder *b, const bpt_activation *in,
                            bpt_activation *out, size_t t) {
    bpt_ref *parts;
    bpt_deps after = {0};
    BPT_TRY(BPT_BUILDER_NEW(b, l->n_inputs, &parts));
    for (size_t j = 0; j < l->n_inputs; j++) {
        parts[j] = in[j].value[t];
        BPT_TRY(bpt_deps_join(b, after, in[j].value_ready[t], &after));
    }
    return bpt_builder_sum(b, BPT_PHASE_FORWARD, (bpt_task_info){"forward", l->name}, parts,
                           l->n_inputs, out->value[t], out->layout[t], after, &out->value_ready[t]);
}

/* The state: the inputs in the layouts of the first, shape [n_inputs]. */
static bpt_status plan_forward(const bpt_layer *l, bpt_builder *b, bpt_activation *const *inputs,
                               bpt_activation *out, void **state) {
    bpt_activation *in;
    bool wants_grad = false;
    BPT_TRY(BPT_BUILDER_NEW(b, l->n_inputs, &in));
    for (size_t j = 0; j < l->n_inputs; j++) {
        BPT_TRY(bpt_builder_convert(b, l->name, inputs[j], inputs[0]->layout, &in[j]));
        wants_grad |= in[j].wants_grad;
    }
    BPT_TRY(plan_output(b, &in[0], wants_grad, out));
    for (size_t t = 0; t < b->n_tiles; t++) BPT_TRY(plan_tile(l, b, in, out, t));
    *state = in;
    return BPT_OK;
}

/* The gradient of each input is that of the output. */
static bpt_status plan_backward(const bpt_layer *l, bpt_builder *b, bpt_activation *const *inputs,
                                const bpt_activation *out, void *state) {
    bpt_activation *in = state;
    for (size_t j = 0; j < l->n_inputs; j++)
        BPT_TRY(bpt_builder_pass_back(b, l->name, inputs[j], &in[j], out));
    return BPT_OK;
}

const bpt_layer_kind bpt_layer_add = {
    .name = "add",
    .joins = true,
    .parse = bpt__no_fields,
    .infer = infer,
    .forward_flops = bpt__no_flops,
    .plan_forward = plan_forward,
    .plan_backward = plan_backward,
};
