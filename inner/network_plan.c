/* From a model to kernels, tasks and sizes: layer by layer forward, the loss, and back. */
#include "base/memory.h"
#include "inner/network_private.h"

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

/* What is known of the layers while they are planned. Activation 0 is the input, 1 + i the output
 * of layer i; each reader of one has a view of its own, in the order of the layers. */
typedef struct {
    bpt_activation **views; /* of each activation, shape [n_layers + 1][n_views] */
    size_t *n_views;        /* shape [n_layers + 1] */
    size_t *n_taken;        /* of these, readers planned so far; shape [n_layers + 1] */
    bpt_activation ***in;   /* inputs of each layer, shape [n_layers] */
    void **states;          /* of each layer's kind, shape [n_layers] */
} layer_plans;

static bpt_status create_plans(bpt_network *net, layer_plans *plans) {
    const bpt_model *model = net->model;
    const size_t n = model->n_layers;
    bpt_builder *b = &net->builder;
    BPT_TRY(bpt_builder_object(b, (n + 1) * sizeof *plans->views, (void **)&plans->views));
    BPT_TRY(bpt_builder_object(b, (n + 1) * sizeof *plans->n_views, (void **)&plans->n_views));
    BPT_TRY(bpt_builder_object(b, (n + 1) * sizeof *plans->n_taken, (void **)&plans->n_taken));
    BPT_TRY(bpt_builder_object(b, n * sizeof *plans->in, (void **)&plans->in));
    BPT_TRY(bpt_builder_object(b, n * sizeof *plans->states, (void **)&plans->states));
    for (size_t i = 0; i < n; i++)
        for (size_t j = 0; j < model->layers[i].n_inputs; j++)
            plans->n_views[model->layers[i].inputs[j]]++;
    for (size_t a = 0; a <= n; a++)
        BPT_TRY(bpt_builder_object(b, plans->n_views[a] * sizeof **plans->views,
                                   (void **)&plans->views[a]));
    return BPT_OK;
}

static bpt_activation *take_view(layer_plans *plans, size_t activation) {
    return &plans->views[activation][plans->n_taken[activation]++];
}

/* The inputs of a layer, and behind them the other input of an add that it does too. */
static bpt_status take_inputs(bpt_network *net, layer_plans *plans, const bpt_layer *l) {
    bpt_activation ***in = &plans->in[l->index];
    BPT_TRY(bpt_builder_object(&net->builder, (l->n_inputs + 1) * sizeof **in, (void **)in));
    if (l->fusion.done) { /* of an add, the one input that is not taken yet */
        (*in)[0] = take_view(plans, l->inputs[l->fusion.own]);
        return BPT_OK;
    }
    for (size_t j = 0; j < l->n_inputs; j++) (*in)[j] = take_view(plans, l->inputs[j]);
    if (l->fusion.add) {
        const bpt_layer *add = &net->model->layers[l->fusion.add - 1];
        (*in)[l->n_inputs] = take_view(plans, add->inputs[1 - add->fusion.own]);
    }
    return BPT_OK;
}

static bpt_status fork_output(bpt_network *net, layer_plans *plans, size_t activation) {
    return bpt_builder_fork(&net->builder, &net->activations[activation],
                            plans->n_views[activation], plans->views[activation]);
}

static bpt_status plan_forward(bpt_network *net, layer_plans *plans, const bpt_layer *l) {
    bpt_activation *out = &net->activations[l->index + 1];
    bpt_activation **in;
    BPT_TRY(take_inputs(net, plans, l));
    in = plans->in[l->index];
    if (l->fusion.done)
        *out = *in[0];
    else
        BPT_TRY(l->kind->plan_forward(l, &net->builder, in, out, &plans->states[l->index]));
    return fork_output(net, plans, l->index + 1);
}

static bpt_status plan_backward(bpt_network *net, layer_plans *plans, const bpt_layer *l) {
    const size_t n_views = plans->n_views[l->index + 1];
    bpt_activation *out = &net->activations[l->index + 1], **in = plans->in[l->index];
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
                             plans->n_views[0]));
    return bpt__plan_tail_border(net);
}

static bpt_status plan_layers(bpt_network *net) {
    const bpt_model *model = net->model;
    const size_t n = model->n_layers;
    bpt_activation *out = &net->activations[n];
    layer_plans plans;
    BPT_TRY(create_plans(net, &plans));
    BPT_TRY(fork_output(net, &plans, 0));
    for (size_t i = 0; i < n; i++) {
        BPT_TRY(plan_forward(net, &plans, &model->layers[i]));
        net->forward_end[i] = net->builder.n_tasks;
    }
    BPT_TRY(model->role == BPT_MODEL_HEAD ? bpt__plan_head_border(net, out)
                                          : bpt__plan_loss(net, out));
    for (size_t i = n; i-- > 0 && !net->builder.forward_only;)
        BPT_TRY(plan_backward(net, &plans, &model->layers[i]));
    return plan_input_gradient(net, &plans);
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
