/* Joins the channels of its inputs, in the order in which they are named. */
#include "inner/builder.h"
#include "inner/layers/fields.h"

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

/* The first input's order of channels, if no block would hold channels of two inputs. */
static bpt_status choose_lanes(const bpt_layer *l, bpt_builder *b, const bpt_activation *first,
                               int64_t *lanes) {
    const int64_t dims[] = {bpt_builder_tile_samples(b, 0), l->in.c, l->in.h, l->in.w};
    BPT_TRY(bpt_layout_lanes(b->cpu, first->layout[0], dims, lanes));
    if (*lanes == l->in.c && *lanes > 1 && *lanes != 8 && *lanes != 16) *lanes = l->out.c;
    if (*lanes == l->out.c) return BPT_OK;
    for (size_t j = 0; j + 1 < l->n_inputs; j++)
        if (*lanes == 0 || l->ins[j].c % *lanes != 0) *lanes = 1;
    return BPT_OK;
}

static bpt_status plan_output(const bpt_layer *l, bpt_builder *b, int64_t lanes, bool wants_grad,
                              bpt_activation *out) {
    if (lanes == 1) return bpt_builder_plain(b, l->out, wants_grad, out);
    *out = (bpt_activation){.shape = l->out, .wants_grad = wants_grad};
    for (size_t t = 0; t < b->n_tiles; t++) {
        const int64_t dims[] = {bpt_builder_tile_samples(b, t), l->out.c, l->out.h, l->out.w};
        const bpt_layout *layout;
        BPT_TRY(bpt_layout_of_lanes(b->cpu, dims, lanes, &layout));
        bpt_builder_reserve_tile(b, out, t, layout);
    }
    return BPT_OK;
}

/* The place of input @p j within the output's tile @p t. */
static bpt_status part_of(const bpt_layer *l, bpt_builder *b, const bpt_activation *out, size_t t,
                          size_t j, const bpt_layout **part) {
    const int64_t dims[] = {bpt_builder_tile_samples(b, t), l->ins[j].c, l->out.h, l->out.w};
    int64_t first = 0;
    for (size_t i = 0; i < j; i++) first += l->ins[i].c;
    return bpt_layout_channels(b->cpu, out->layout[t], dims, first, part);
}

static bpt_status plan_copy(bpt_builder *b, bpt_phase phase, bpt_task_info info,
                            const bpt_layout *from, bpt_ref from_ref, const bpt_layout *to,
                            bpt_ref to_ref, bpt_deps after, bpt_deps *done) {
    bpt_kernel *k;
    uint32_t id;
    BPT_TRY(bpt_cpu_reorder(b->cpu, from, to, &k));
    bpt_kernel_bind(k, BPT_SLOT_SRC, from_ref);
    bpt_kernel_bind(k, BPT_SLOT_DST, to_ref);
    BPT_TRY(bpt_builder_kernel(b, phase, k, info, after, &id));
    return bpt_deps_one(b, id, done);
}

static bpt_status plan_forward(const bpt_layer *l, bpt_builder *b, bpt_activation *const *inputs,
                               bpt_activation *out, void **state) {
    int64_t lanes;
    bool wants_grad = false;
    (void)state;
    for (size_t j = 0; j < l->n_inputs; j++) wants_grad |= inputs[j]->wants_grad;
    BPT_TRY(choose_lanes(l, b, inputs[0], &lanes));
    BPT_TRY(plan_output(l, b, lanes, wants_grad, out));
    for (size_t t = 0; t < b->n_tiles; t++)
        for (size_t j = 0; j < l->n_inputs; j++) {
            const bpt_activation *in = inputs[j];
            const bpt_layout *part;
            bpt_deps done;
            BPT_TRY(part_of(l, b, out, t, j, &part));
            BPT_TRY(plan_copy(b, BPT_PHASE_FORWARD, (bpt_task_info){"forward", l->name},
                              in->layout[t], in->value[t], part, out->value[t], in->value_ready[t],
                              &done));
            BPT_TRY(bpt_deps_join(b, out->value_ready[t], done, &out->value_ready[t]));
        }
    return BPT_OK;
}

static bpt_status plan_backward(const bpt_layer *l, bpt_builder *b, bpt_activation *const *inputs,
                                const bpt_activation *out, void *state) {
    (void)state;
    for (size_t j = 0; j < l->n_inputs; j++) {
        bpt_activation *in = inputs[j];
        if (!in->wants_grad) continue;
        for (size_t t = 0; t < b->n_tiles; t++) {
            const bpt_layout *part;
            BPT_TRY(part_of(l, b, out, t, j, &part));
            BPT_TRY(plan_copy(b, BPT_PHASE_BACKWARD, (bpt_task_info){"backward", l->name}, part,
                              out->grad[t], in->layout[t], in->grad[t], out->grad_ready[t],
                              &in->grad_ready[t]));
        }
    }
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
