/* Fully connected layers: cuBLASLt's products over all values of a sample. */
#include "inner/cuda/cuda_bias.h"
#include "inner/cuda/cuda_network.h"

typedef struct {
    size_t weight; /* segment; the bias is the next */
    bool bias;
    bpt_cuda_product *forward, *data, *weights; /* data: NULL where the input wants no gradient */
    bpt_cuda_activation in, out;
    bpt_cuda_buffer dx, workspace; /* of the bias' sums */
    int64_t batch;
} fc_state;

static bpt_status create_step(bpt_device_network *net, const bpt_cuda_product_problem *p,
                              bpt_cuda_conv_step step, bpt_cuda_product **product) {
    BPT_TRY(bpt_cuda_product_create(net->device->library, p, step, product));
    return bpt__cuda_keep_product(net, *product);
}

static bpt_status run_forward(const bpt_device_network *net, const void *arg,
                              bpt_cuda_stream stream) {
    const fc_state *s = arg;
    return bpt_cuda_product_run(
        stream, s->forward, bpt__cuda_at(net, s->in.value), bpt__cuda_weights(net, s->weight),
        s->bias ? bpt__cuda_floats(net, s->weight + 1) : NULL, bpt__cuda_at(net, s->out.value));
}

static bpt_status run_bias(const bpt_device_network *net, const void *arg, bpt_cuda_stream stream) {
    const fc_state *s = arg;
    return bpt_cuda_bias_backward(stream, NULL, bpt__cuda_at(net, s->out.grad), net->type, s->batch,
                                  s->out.row, NULL, bpt__cuda_gradients(net, s->weight + 1),
                                  bpt__cuda_at(net, s->workspace));
}

static bpt_status run_data(const bpt_device_network *net, const void *arg, bpt_cuda_stream stream) {
    const fc_state *s = arg;
    return bpt_cuda_product_run(stream, s->data, bpt__cuda_at(net, s->out.grad),
                                bpt__cuda_weights(net, s->weight), NULL, bpt__cuda_at(net, s->dx));
}

static bpt_status run_weights(const bpt_device_network *net, const void *arg,
                              bpt_cuda_stream stream) {
    const fc_state *s = arg;
    return bpt_cuda_product_run(stream, s->weights, bpt__cuda_at(net, s->in.value),
                                bpt__cuda_at(net, s->out.grad), NULL,
                                bpt__cuda_gradients(net, s->weight));
}

static bpt_status plan_forward(bpt_device_network *net, const bpt_layer *l,
                               bpt_cuda_activation *const *inputs, bpt_cuda_activation *out,
                               void **state) {
    const bpt_fc_config *config = l->config;
    const int64_t pixels = l->in.h * l->in.w;
    const bpt_cuda_product_problem p = {net->type, net->batch, l->in.c * pixels, l->out.c,
                                        config->bias};
    fc_state *s;
    BPT_TRY(BPT_CUDA_NEW(net, 1, &s));
    if (pixels > 1) /* canonical weights take [C, H, W], activations come as [H, W, C] */
        net->turns[l->first_segment] = (bpt_cuda_turn){p.k, l->in.c, pixels, l->in.c};
    *out = (bpt_cuda_activation){
        .shape = l->out, .row = l->out.c, .type = net->type, .wants_grad = !net->frozen};
    BPT_TRY(bpt__cuda_reserve_values(net, out));
    *s = (fc_state){.weight = l->first_segment,
                    .bias = p.bias,
                    .in = *inputs[0],
                    .out = *out,
                    .batch = net->batch};
    BPT_TRY(create_step(net, &p, BPT_CUDA_CONV_FORWARD, &s->forward));
    if (bpt__cuda_learns(net)) {
        BPT_TRY(create_step(net, &p, BPT_CUDA_CONV_BACKWARD_WEIGHTS, &s->weights));
        if (s->in.wants_grad) BPT_TRY(create_step(net, &p, BPT_CUDA_CONV_BACKWARD_DATA, &s->data));
    }
    *state = s;
    return BPT_CUDA_TASK(net, BPT_CUDA_FORWARD, run_forward, s, l->name, "forward", s->in.value,
                         s->out.value);
}

static bpt_status plan_backward(bpt_device_network *net, const bpt_layer *l,
                                bpt_cuda_activation *const *inputs, const bpt_cuda_activation *out,
                                void *state) {
    fc_state *s = state;
    s->out.grad = out->grad;
    if (s->bias) {
        BPT_TRY(bpt__cuda_reserve(net, BPT_CUDA_WORKSPACE,
                                  bpt_cuda_bias_workspace(net->batch, s->out.row), &s->workspace));
        BPT_TRY(BPT_CUDA_TASK(net, BPT_CUDA_BACKWARD, run_bias, s, l->name, "backward bias",
                              s->out.grad, s->workspace));
    }
    if (s->data) {
        BPT_TRY(bpt__cuda_reserve_grad(net, &s->in, &s->dx));
        inputs[0]->grad = s->dx;
        BPT_TRY(BPT_CUDA_TASK(net, BPT_CUDA_BACKWARD, run_data, s, l->name, "backward data",
                              s->out.grad, s->dx));
    }
    return BPT_CUDA_TASK(net, BPT_CUDA_BACKWARD, run_weights, s, l->name, "backward weights",
                         s->in.value, s->out.grad);
}

const bpt_cuda_layer_kind bpt_cuda_layer_fc = {&bpt_layer_fc, plan_forward, plan_backward};
