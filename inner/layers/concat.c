/* Joins the channels of its inputs, in the order in which they are named. */
#include "inner/builder.h"
#include "inner/layers/fields.h"

#include <inttypes.h>
#include <string.h>

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

typedef struct {
    int64_t lanes;      /* 1, 8 or 16: no block holds channels of two inputs */
    bpt_activation *in; /* the inputs in that order, shape [n_inputs] */
} concat_state;

/* The first input's order of channels, if that will do, else the plain one. */
static bpt_status choose_lanes(const bpt_layer *l, bpt_builder *b, const bpt_activation *first,
                               int64_t *lanes) {
    const int64_t dims[] = {bpt_builder_tile_samples(b, 0), l->in.c, l->in.h, l->in.w};
    BPT_TRY(bpt_layout_lanes(b->cpu, first->layout[0], dims, lanes));
    if (*lanes != 8 && *lanes != 16) *lanes = 1;
    for (size_t j = 0; j < l->n_inputs; j++)
        if (l->ins[j].c % *lanes != 0) *lanes = 1;
    return BPT_OK;
}

static bpt_status plan_input(const bpt_layer *l, bpt_builder *b, const bpt_activation *in,
                             int64_t lanes, bpt_activation *converted) {
    const bpt_layout *layouts[BPT_MAX_TILES];
    for (size_t t = 0; t < b->n_tiles; t++) {
        const bpt_shape s = in->shape;
        const int64_t dims[] = {bpt_builder_tile_samples(b, t), s.c, s.h, s.w};
        BPT_TRY(bpt_layout_of_lanes(b->cpu, dims, lanes, &layouts[t]));
    }
    return bpt_builder_convert(b, l->name, in, layouts, converted);
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

/* Copies one run of bytes a sample: a sample's channels of one input lie in one piece. */
typedef struct {
    const bpt_blocks *blocks;
    bpt_ref from, to;
    size_t from_stride, to_stride, bytes; /* of a sample */
    int64_t n_samples;
} copy_task;

static bpt_status run_copy(void *arg, unsigned worker) {
    const copy_task *task = arg;
    const char *from = bpt_at(task->blocks, task->from);
    char *to = bpt_at(task->blocks, task->to);
    (void)worker;
    for (int64_t i = 0; i < task->n_samples; i++)
        memcpy(to + (size_t)i * task->to_stride, from + (size_t)i * task->from_stride, task->bytes);
    return BPT_OK;
}

static size_t sample_bytes(bpt_shape s) {
    return (size_t)(s.c * s.h * s.w) * sizeof(float);
}

/* Copies input @p j of a tile to its place in the output, or back. */
static bpt_status plan_copy(const bpt_layer *l, bpt_builder *b, bpt_phase phase, size_t j, size_t t,
                            bpt_ref part, bpt_ref whole, bpt_deps after, bpt_deps *done) {
    copy_task *task;
    uint32_t id;
    size_t before = 0;
    const bool back = phase == BPT_PHASE_BACKWARD;
    const size_t whole_bytes = sample_bytes(l->out), part_bytes = sample_bytes(l->ins[j]);
    BPT_TRY(bpt_builder_object(b, sizeof *task, (void **)&task));
    for (size_t i = 0; i < j; i++) before += sample_bytes(l->ins[i]);
    whole = bpt_ref_plus(whole, before);
    *task = (copy_task){
        .blocks = b->blocks,
        .from = back ? whole : part,
        .to = back ? part : whole,
        .from_stride = back ? whole_bytes : part_bytes,
        .to_stride = back ? part_bytes : whole_bytes,
        .bytes = part_bytes,
        .n_samples = bpt_builder_tile_samples(b, t),
    };
    const bpt_task_info info = {back ? "backward" : "forward", l->name};
    BPT_TRY(bpt_builder_task(b, phase, run_copy, task, info, after, &id));
    return bpt_deps_one(b, id, done);
}

static bpt_status plan_forward(const bpt_layer *l, bpt_builder *b, bpt_activation *const *inputs,
                               bpt_activation *out, void **state_out) {
    concat_state *state;
    bool wants_grad = false;
    BPT_TRY(bpt_builder_object(b, sizeof *state, (void **)&state));
    BPT_TRY(bpt_builder_object(b, l->n_inputs * sizeof *state->in, (void **)&state->in));
    BPT_TRY(choose_lanes(l, b, inputs[0], &state->lanes));
    for (size_t j = 0; j < l->n_inputs; j++) {
        BPT_TRY(plan_input(l, b, inputs[j], state->lanes, &state->in[j]));
        wants_grad |= inputs[j]->wants_grad;
    }
    BPT_TRY(plan_output(l, b, state->lanes, wants_grad, out));
    for (size_t t = 0; t < b->n_tiles; t++)
        for (size_t j = 0; j < l->n_inputs; j++) {
            const bpt_activation *in = &state->in[j];
            bpt_deps done;
            BPT_TRY(plan_copy(l, b, BPT_PHASE_FORWARD, j, t, in->value[t], out->value[t],
                              in->value_ready[t], &done));
            BPT_TRY(bpt_deps_join(b, out->value_ready[t], done, &out->value_ready[t]));
        }
    *state_out = state;
    return BPT_OK;
}

static bpt_status plan_backward(const bpt_layer *l, bpt_builder *b, bpt_activation *const *inputs,
                                const bpt_activation *out, void *arg) {
    concat_state *state = arg;
    for (size_t j = 0; j < l->n_inputs; j++) {
        bpt_activation *in = &state->in[j];
        if (!in->wants_grad) continue;
        for (size_t t = 0; t < b->n_tiles; t++)
            BPT_TRY(plan_copy(l, b, BPT_PHASE_BACKWARD, j, t, in->grad[t], out->grad[t],
                              out->grad_ready[t], &in->grad_ready[t]));
        BPT_TRY(bpt_builder_convert_back(b, l->name, inputs[j], in));
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
