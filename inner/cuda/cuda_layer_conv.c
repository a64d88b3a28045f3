/* Convolutions: cuDNN's engines, and around them the bias and the ReLU that they do too. */
#include "inner/cuda/cuda_bias.h"
#include "inner/cuda/cuda_network.h"

typedef struct {
    size_t weight; /* segment; the bias is the next */
    bool bias, relu;
    bpt_cuda_conv *forward, *data, *filters; /* data: NULL where the input wants no gradient */
    bpt_cuda_activation in, out;
    bpt_cuda_buffer masked, dx; /* masked: the gradient behind the ReLU; 0 without */
    bpt_cuda_buffer workspace;  /* of the bias' sums */
    int64_t rows;
} conv_state;

static bpt_cuda_conv_problem describe(const bpt_device_network *net, const bpt_layer *l,
                                      const bpt_cuda_activation *in) {
    const bpt_conv_config *config = l->config;
    bpt_cuda_conv_problem p = {
        .type = net->type,
        .n = net->batch,
        .c = in->row,
        .h = l->in.h,
        .w = l->in.w,
        .k = l->out.c,
        .p = l->out.h,
        .q = l->out.w,
        .groups = config->groups,
        .bias = config->bias,
        .relu = l->fusion.relu,
    };
    for (int i = 0; i < 2; i++) {
        p.kernel[i] = config->kernel[i];
        p.stride[i] = config->stride[i];
        p.pad[i] = config->pad[i];
        p.dilation[i] = config->dilation[i];
    }
    return p;
}

static void lay_weights(bpt_device_network *net, const bpt_layer *l,
                        const bpt_cuda_conv_problem *p) {
    net->turns[l->first_segment] = (bpt_cuda_turn){
        .k = p->k,
        .c = l->in.c / p->groups,
        .taps = p->kernel[0] * p->kernel[1],
        .padded = p->c / p->groups,
    };
}

static bpt_status create_step(bpt_device_network *net, const bpt_cuda_conv_problem *p,
                              bpt_cuda_conv_step step, bpt_cuda_conv **conv) {
    BPT_TRY(bpt_cuda_conv_create(net->device->library, p, step, conv));
    return bpt__cuda_keep_conv(net, *conv);
}

static bpt_status run_forward(const bpt_device_network *net, const void *arg,
                              bpt_cuda_stream stream) {
    const conv_state *s = arg;
    return bpt_cuda_conv_run(
        stream, s->forward, bpt__cuda_at(net, s->in.value), bpt__cuda_weights(net, s->weight),
        s->bias ? bpt__cuda_floats(net, s->weight + 1) : NULL, bpt__cuda_at(net, s->out.value));
}

static bpt_status run_outer(const bpt_device_network *net, const void *arg,
                            bpt_cuda_stream stream) {
    const conv_state *s = arg;
    return bpt_cuda_bias_backward(
        stream, s->relu ? bpt__cuda_at(net, s->out.value) : NULL, bpt__cuda_at(net, s->out.grad),
        net->type, s->rows, s->out.row, bpt__cuda_at(net, s->masked),
        s->bias ? bpt__cuda_gradients(net, s->weight + 1) : NULL, bpt__cuda_at(net, s->workspace));
}

/* The gradient that the products take. */
static bpt_cuda_buffer gradient_of(const conv_state *s) {
    return s->masked ? s->masked : s->out.grad;
}

static bpt_status run_data(const bpt_device_network *net, const void *arg, bpt_cuda_stream stream) {
    const conv_state *s = arg;
    return bpt_cuda_conv_run(stream, s->data, bpt__cuda_at(net, gradient_of(s)),
                             bpt__cuda_weights(net, s->weight), NULL, bpt__cuda_at(net, s->dx));
}

static bpt_status run_filters(const bpt_device_network *net, const void *arg,
                              bpt_cuda_stream stream) {
    const conv_state *s = arg;
    return bpt_cuda_conv_run(stream, s->filters, bpt__cuda_at(net, s->in.value),
                             bpt__cuda_at(net, gradient_of(s)), NULL,
                             bpt__cuda_gradients(net, s->weight));
}

static bpt_status plan_forward(bpt_device_network *net, const bpt_layer *l,
                               bpt_cuda_activation *const *inputs, bpt_cuda_activation *out,
                               void **state) {
    bpt_cuda_conv_problem p = describe(net, l, inputs[0]);
    conv_state *s;
    BPT_TRY(BPT_CUDA_NEW(net, 1, &s));
    lay_weights(net, l, &p);
    *out = (bpt_cuda_activation){
        .shape = l->out, .row = l->out.c, .type = net->type, .wants_grad = !net->frozen};
    BPT_TRY(bpt__cuda_reserve_values(net, out));
    *s = (conv_state){
        .weight = l->first_segment,
        .bias = p.bias,
        .relu = p.relu,
        .in = *inputs[0],
        .out = *out,
        .rows = bpt__cuda_rows(net, out),
    };
    BPT_TRY(create_step(net, &p, BPT_CUDA_CONV_FORWARD, &s->forward));
    p.bias = p.relu = false; /* of no matter to the steps back, which then are of more layers */
    if (bpt__cuda_learns(net)) {
        BPT_TRY(create_step(net, &p, BPT_CUDA_CONV_BACKWARD_WEIGHTS, &s->filters));
        if (s->in.wants_grad) BPT_TRY(create_step(net, &p, BPT_CUDA_CONV_BACKWARD_DATA, &s->data));
    }
    *state = s;
    return BPT_CUDA_TASK(net, BPT_CUDA_FORWARD, run_forward, s, l->name, "forward", s->in.value,
                         s->out.value);
}

static bpt_status plan_outer(bpt_device_network *net, const bpt_layer *l, conv_state *s) {
    if (!s->bias && !s->relu) return BPT_OK;
    BPT_TRY(bpt__cuda_reserve(net, BPT_CUDA_WORKSPACE, bpt_cuda_bias_workspace(s->rows, s->out.row),
                              &s->workspace));
    if (s->relu) BPT_TRY(bpt__cuda_reserve_grad(net, &s->out, &s->masked));
    return BPT_CUDA_TASK(net, BPT_CUDA_BACKWARD, run_outer, s, l->name, "backward bias",
                         s->relu ? s->out.value : 0, s->out.grad, s->masked, s->workspace);
}

static bpt_status plan_backward(bpt_device_network *net, const bpt_layer *l,
                                bpt_cuda_activation *const *inputs, const bpt_cuda_activation *out,
                                void *state) {
    conv_state *s = state;
    s->out.grad = out->grad;
    BPT_TRY(plan_outer(net, l, s));
    if (s->data) {
        BPT_TRY(bpt__cuda_reserve_grad(net, &s->in, &s->dx));
        inputs[0]->grad = s->dx;
        BPT_TRY(BPT_CUDA_TASK(net, BPT_CUDA_BACKWARD, run_data, s, l->name, "backward data",
                              gradient_of(s), s->dx));
    }
    return BPT_CUDA_TASK(net, BPT_CUDA_BACKWARD, run_filters, s, l->name, "backward weights",
                         s->in.value, gradient_of(s));
}

const bpt_cuda_layer_kind bpt_cuda_layer_conv = {&bpt_layer_conv, plan_forward, plan_backward};
