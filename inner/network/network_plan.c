/* From a model to kernels, tasks and sizes: layer by layer forward, the loss, and back. */
#include "base/memory.h"
#include "inner/models/readers.h"
#include "inner/network/network_private.h"

#include <string.h>

static bpt_status plan_input(bpt_network *net, bpt_activation *in) {
    bpt_builder *b = &net->builder;
    const bpt_shape s = net->model->input;
    const bpt_value_type type = net->model->typed_input ? b->type : BPT_F32;
    const size_t sample_bytes = bpt_shape_bytes(s, type);
    *in = (bpt_activation){.shape = s, .type = type, .plain = true, .read_only = true};
    for (size_t t = 0; t < b->n_tiles; t++) {
        const int64_t dims[] = {bpt_builder_tile_samples(b, t), s.c, s.h, s.w};
        BPT_TRY(bpt_layout_plain(net->cpu, type, dims, 4, &in->layout[t]));
        in->value[t] = bpt_ref_in(BPT_BLOCK_INPUT, (size_t)b->tile_start[t] * sample_bytes);
    }
    if (net->model->role != BPT_MODEL_TAIL) return BPT_OK;
    in->wants_grad = true;
    return bpt_builder_reserve_gradients(b, in, in->grad);
}

/* What is known of the layers while they are planned. */
typedef struct {
    bpt_readers readers;
    bpt_activation **views; /* of each activation, one for each reader; shape [n_layers + 1] */
    bpt_activation ***in;   /* of these, what each layer reads; shape [n_layers] */
    void **states;          /* of each layer's kind, shape [n_layers] */
} layer_plans;

static bpt_status create_inputs(bpt_network *net, layer_plans *plans, size_t layer) {
    const size_t n = plans->readers.n_inputs[layer];
    bpt_activation ***in = &plans->in[layer];
    BPT_TRY(BPT_BUILDER_NEW(&net->builder, n, in));
    for (size_t j = 0; j < n; j++) {
        const bpt_reading *r = &plans->readers.inputs[layer][j];
        (*in)[j] = &plans->views[r->activation][r->reader];
    }
    return BPT_OK;
}

static bpt_status create_plans(bpt_network *net, layer_plans *plans) {
    const size_t n = net->model->n_layers;
    BPT_TRY(bpt_readers_find(net->model, &plans->readers));
    BPT_TRY(BPT_BUILDER_NEW(&net->builder, n + 1, &plans->views));
    BPT_TRY(BPT_BUILDER_NEW(&net->builder, n, &plans->in));
    BPT_TRY(BPT_BUILDER_NEW(&net->builder, n, &plans->states));
    for (size_t a = 0; a <= n; a++)
        BPT_TRY(BPT_BUILDER_NEW(&net->builder, plans->readers.n[a], &plans->views[a]));
    for (size_t i = 0; i < n; i++) BPT_TRY(create_inputs(net, plans, i));
    return BPT_OK;
}

static bpt_status fork_output(bpt_network *net, layer_plans *plans, size_t activation) {
    return bpt_builder_fork(&net->builder, &net->activations[activation],
                            plans->readers.n[activation], plans->views[activation]);
}

static bpt_status plan_forward(bpt_network *net, layer_plans *plans, const bpt_layer *l) {
    bpt_activation *out = &net->activations[l->index + 1], **in = plans->in[l->index];
    net->builder.frozen = l->index < net->model->n_frozen;
    if (l->fusion.done)
        *out = *in[0];
    else
        BPT_TRY(l->kind->plan_forward(l, &net->builder, in, out, &plans->states[l->index]));
    return fork_output(net, plans, l->index + 1);
}

static bpt_status plan_backward(bpt_network *net, layer_plans *plans, const bpt_layer *l) {
    const size_t n_views = plans->readers.n[l->index + 1];
    bpt_activation *out = &net->activations[l->index + 1], **in = plans->in[l->index];
    if (!out->wants_grad) return BPT_OK;
    if (n_views > 0)
        BPT_TRY(bpt_builder_join(&net->builder, l->name, out, plans->views[l->index + 1], n_views));
    if (!l->fusion.done)
        return l->kind->plan_backward(l, &net->builder, in, out, plans->states[l->index]);
    memcpy(in[0]->grad, out->grad, sizeof out->grad);
    memcpy(in[0]->grad_ready, out->grad_ready, sizeof out->grad_ready);
    in[0]->grad_read_only = out->grad_read_only;
    return BPT_OK;
}

/* Of a tail, the gradient of the input. */
static bpt_status plan_input_gradient(bpt_network *net, layer_plans *plans) {
    if (net->model->role != BPT_MODEL_TAIL) return BPT_OK;
    BPT_TRY(bpt_builder_join(&net->builder, "border", &net->activations[0], plans->views[0],
                             plans->readers.n[0]));
    return bpt__plan_tail_border(net);
}

static bpt_status plan_all(bpt_network *net, layer_plans *plans) {
    const bpt_model *model = net->model;
    const size_t n = model->n_layers;
    bpt_activation *out = &net->activations[n];
    BPT_TRY(create_plans(net, plans));
    BPT_TRY(fork_output(net, plans, 0));
    for (size_t i = 0; i < n; i++) {
        BPT_TRY(plan_forward(net, plans, &model->layers[i]));
        net->forward_end[i] = net->builder.n_tasks;
    }
    BPT_TRY(model->role == BPT_MODEL_HEAD ? bpt__plan_head_border(net, out)
                                          : bpt__plan_loss(net, out));
    for (size_t i = n; i-- > 0 && !net->builder.forward_only;)
        BPT_TRY(plan_backward(net, plans, &model->layers[i]));
    return plan_input_gradient(net, plans);
}

static bpt_status plan_layers(bpt_network *net) {
    layer_plans plans = {0};
    const bpt_status status = plan_all(net, &plans);
    bpt_readers_clear(&plans.readers);
    return status;
}

bpt_status bpt__network_plan(bpt_network *net) {
    bpt_builder *b = &net->builder;
    const bpt_segments *segments = &net->model->segments;
    BPT_TRY(BPT_NEW("weight plans", segments->n, &b->weights));
    for (size_t i = 0; i < segments->n; i++) b->weights[i].segment = &segments->items[i];
    BPT_TRY(BPT_NEW("activations", net->model->n_layers + 1, &net->activations));
    BPT_TRY(BPT_NEW("forward passes", net->model->n_layers, &net->forward_end));
    BPT_TRY(BPT_NEW("chunk results", b->n_chunks, &net->chunks));
    BPT_TRY(plan_input(net, &net->activations[0]));
    BPT_TRY(plan_layers(net));
    if (!b->forward_only) BPT_TRY(bpt__plan_updates(net));
    return bpt__plan_transfers(net);
}
