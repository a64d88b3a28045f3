/* Joins the channels of its inputs, in the order in which they are named. */
#include "inner/layers/fields.h"
#include "inner/step/builder.h"

#include <inttypes.h>

static bpt_status infer(bpt_layer *l, bpt_segments *s) {
    (void)s;
    l->out = l->in;
    for (size_t j = 1; j < l->n_inputs; j++) {
        const bpt_shape *x = &l->ins[j];
        if (x->h != l->in.h || x->w != l->in.w)
            return bpt_fail(BPT_EUSAGE,
                            "it joins inputs of unlike sizes, %" PRId64 "x%" PRId64 "x%" PRId64
                            " and %" PRId64 "x%" PRId64 "x%" PRId64,
                            l->in.c, l->in.h, l->in.w, x->c, x->h, x->w);
        l->out.c += x->c;
    }
    return BPT_OK;
}

/* Copies input @p j of a tile to its place in the output, or back. */
static bpt_status plan_copy(const bpt_layer *l, bpt_builder *b, bpt_phase phase,
                            bpt_value_type type, size_t j, size_t t, bpt_ref part, bpt_ref whole,
                            bpt_deps after, bpt_deps *done) {
    const bool back = phase == BPT_PHASE_BACKWARD;
    size_t before = 0;
    for (size_t i = 0; i < j; i++) before += bpt_shape_bytes(l->ins[i], type);
    const bpt_sample_run inside = {bpt_ref_plus(whole, before), bpt_shape_bytes(l->out, type)};
    const bpt_sample_run alone = {part, bpt_shape_bytes(l->ins[j], type)};
    const bpt_task_info info = {back ? "backward" : "forward", l->name};
    return bpt_builder_copy_samples(b, phase, info, t, back ? inside : alone, back ? alone : inside,
                                    alone.stride, 0, after, done);
}

/* The state: the inputs in the order of the output, shape [n_inputs]. */
static bpt_status plan_forward(const bpt_layer *l, bpt_builder *b, bpt_activation *const *inputs,
                               bpt_activation *out, void **state) {
    bpt_activation *in;
    int64_t *channels, lanes;
    bool wants_grad = false;
    BPT_TRY(BPT_BUILDER_NEW(b, l->n_inputs, &in));
    BPT_TRY(BPT_BUILDER_NEW(b, l->n_inputs, &channels));
    for (size_t j = 0; j < l->n_inputs; j++) {
        channels[j] = l->ins[j].c;
        wants_grad |= inputs[j]->wants_grad;
    }
    BPT_TRY(bpt_builder_choose_lanes(b, inputs[0], channels, l->n_inputs, &lanes));
    BPT_TRY(bpt_builder_reserve_lanes(b, l->out, inputs[0]->type, lanes, wants_grad, out));
    for (size_t j = 0; j < l->n_inputs; j++)
        BPT_TRY(bpt_builder_convert_to_lanes(b, l->name, inputs[j], out->type, lanes, &in[j]));
    for (size_t t = 0; t < b->n_tiles; t++)
        for (size_t j = 0; j < l->n_inputs; j++) {
            bpt_deps done;
            BPT_TRY(plan_copy(l, b, BPT_PHASE_FORWARD, out->type, j, t, in[j].value[t],
                              out->value[t], in[j].value_ready[t], &done));
            BPT_TRY(bpt_deps_join(b, out->value_ready[t], done, &out->value_ready[t]));
        }
    *state = in;
    return BPT_OK;
}

static bpt_status plan_backward(const bpt_layer *l, bpt_builder *b, bpt_activation *const *inputs,
                                const bpt_activation *out, void *state) {
    bpt_activation *in = state;
    for (size_t j = 0; j < l->n_inputs; j++) {
        if (!in[j].wants_grad) continue;
        for (size_t t = 0; t < b->n_tiles; t++)
            BPT_TRY(plan_copy(l, b, BPT_PHASE_BACKWARD, out->type, j, t, in[j].grad[t],
                              out->grad[t], out->grad_ready[t], &in[j].grad_ready[t]));
    }
    /* Behind all copies: tasks of a kind follow each other. */
    for (size_t j = 0; j < l->n_inputs; j++)
        if (in[j].wants_grad) BPT_TRY(bpt_builder_convert_back(b, l->name, inputs[j], &in[j]));
    return BPT_OK;
}

const bpt_layer_kind bpt_layer_concat = {
    .name = "concat",
    .joins = true,
    .parse = bpt__no_fields,
    .infer = infer,
    .forward_flops = bpt__no_flops,
    .plan_forward = plan_forward,
    .plan_backward = plan_backward,
};
