/* Layers that go over values one by one, or look at the channels beside: ReLU, dropout, response
 * normalisation. */
#include "inner/cuda/cuda_network.h"
#include "inner/cuda/cuda_values.h"
#include "inner/cuda/cuda_windows.h"

typedef struct {
    const bpt_layer *layer;
    bpt_cuda_activation in, out;
    bpt_cuda_buffer dx;
    int64_t n; /* values */
} value_state;

static bpt_status plan_output(bpt_device_network *net, const bpt_layer *l,
                              const bpt_cuda_activation *in, bpt_cuda_activation *out,
                              value_state **state) {
    BPT_TRY(BPT_CUDA_NEW(net, 1, state));
    *out = (bpt_cuda_activation){
        .shape = l->out, .row = in->row, .type = net->type, .wants_grad = in->wants_grad};
    BPT_TRY(bpt__cuda_reserve_values(net, out));
    **state = (value_state){.layer = l, .in = *in, .out = *out, .n = bpt__cuda_values(net, out)};
    return BPT_OK;
}

/* @param reads values that it needs besides the gradient */
static bpt_status plan_gradient(bpt_device_network *net, bpt_cuda_task_fn fn, value_state *s,
                                bpt_cuda_buffer reads, bpt_cuda_activation *in,
                                const bpt_cuda_activation *out) {
    if (!s->in.wants_grad) return BPT_OK;
    s->out.grad = out->grad;
    BPT_TRY(bpt__cuda_reserve_grad(net, &s->in, &s->dx));
    in->grad = s->dx;
    return BPT_CUDA_TASK(net, BPT_CUDA_BACKWARD, fn, s, s->layer->name, "backward", reads,
                         s->out.grad, s->dx);
}

/* ---- ReLU ---- */

static bpt_status run_relu(const bpt_device_network *net, const void *arg, bpt_cuda_stream stream) {
    const value_state *s = arg;
    return bpt_cuda_relu(stream, bpt__cuda_at(net, s->in.value), net->type, s->n,
                         bpt__cuda_at(net, s->out.value));
}

static bpt_status run_relu_back(const bpt_device_network *net, const void *arg,
                                bpt_cuda_stream stream) {
    const value_state *s = arg;
    return bpt_cuda_relu_backward(stream, bpt__cuda_at(net, s->out.value),
                                  bpt__cuda_at(net, s->out.grad), net->type, s->n,
                                  bpt__cuda_at(net, s->dx));
}

static bpt_status plan_relu(bpt_device_network *net, const bpt_layer *l,
                            bpt_cuda_activation *const *in, bpt_cuda_activation *out,
                            void **state) {
    value_state *s;
    BPT_TRY(plan_output(net, l, in[0], out, &s));
    *state = s;
    return BPT_CUDA_TASK(net, BPT_CUDA_FORWARD, run_relu, s, l->name, "forward", s->in.value,
                         s->out.value);
}

static bpt_status plan_relu_back(bpt_device_network *net, const bpt_layer *l,
                                 bpt_cuda_activation *const *in, const bpt_cuda_activation *out,
                                 void *state) {
    value_state *s = state;
    (void)l;
    return plan_gradient(net, run_relu_back, s, s->out.value, in[0], out);
}

/* ---- dropout: the mask is drawn again on the way back ---- */

static bpt_status drop(const bpt_device_network *net, const value_state *s, bpt_cuda_buffer from,
                       bpt_cuda_buffer to, bpt_cuda_stream stream) {
    const bpt_dropout_config *config = s->layer->config;
    const bpt_shape *shape = &s->in.shape;
    return bpt_cuda_dropout(stream, &net->given->step, s->layer->number, config->rate, net->batch,
                            shape->c, shape->h * shape->w, net->type, bpt__cuda_at(net, from),
                            bpt__cuda_at(net, to));
}

static bpt_status run_drop(const bpt_device_network *net, const void *arg, bpt_cuda_stream stream) {
    const value_state *s = arg;
    return drop(net, s, s->in.value, s->out.value, stream);
}

static bpt_status run_pass(const bpt_device_network *net, const void *arg, bpt_cuda_stream stream) {
    const value_state *s = arg;
    return bpt_cuda_copy(stream, bpt__cuda_at(net, s->out.value), bpt__cuda_at(net, s->in.value),
                         (size_t)s->n * bpt_value_bytes(net->type));
}

static bpt_status run_drop_back(const bpt_device_network *net, const void *arg,
                                bpt_cuda_stream stream) {
    const value_state *s = arg;
    return drop(net, s, s->out.grad, s->dx, stream);
}

static bpt_status plan_dropout_task(bpt_device_network *net, bpt_cuda_phase phase,
                                    bpt_cuda_task_fn fn, const value_state *s) {
    return BPT_CUDA_TASK(net, phase, fn, s, s->layer->name, "forward", s->in.value, s->out.value);
}

static bpt_status plan_dropout(bpt_device_network *net, const bpt_layer *l,
                               bpt_cuda_activation *const *in, bpt_cuda_activation *out,
                               void **state) {
    value_state *s;
    BPT_TRY(plan_output(net, l, in[0], out, &s));
    *state = s;
    if (net->frozen) return plan_dropout_task(net, BPT_CUDA_FORWARD, run_pass, s);
    BPT_TRY(plan_dropout_task(net, BPT_CUDA_TRAINING, run_drop, s));
    return plan_dropout_task(net, BPT_CUDA_INFERENCE, run_pass, s);
}

static bpt_status plan_dropout_back(bpt_device_network *net, const bpt_layer *l,
                                    bpt_cuda_activation *const *in, const bpt_cuda_activation *out,
                                    void *state) {
    (void)l;
    return plan_gradient(net, run_drop_back, state, 0, in[0], out);
}

/* ---- response normalisation ---- */

static bpt_cuda_lrn lrn_of(const bpt_device_network *net, const value_state *s) {
    const bpt_lrn_config *config = s->layer->config;
    return (bpt_cuda_lrn){
        .type = net->type,
        .rows = bpt__cuda_rows(net, &s->in),
        .c = s->in.row,
        .size = config->size,
        .alpha = (float)config->alpha,
        .beta = (float)config->beta,
        .k = (float)config->k,
    };
}

static bpt_status run_lrn(const bpt_device_network *net, const void *arg, bpt_cuda_stream stream) {
    const value_state *s = arg;
    const bpt_cuda_lrn lrn = lrn_of(net, s);
    return bpt_cuda_lrn_forward(stream, &lrn, bpt__cuda_at(net, s->in.value),
                                bpt__cuda_at(net, s->out.value));
}

static bpt_status run_lrn_back(const bpt_device_network *net, const void *arg,
                               bpt_cuda_stream stream) {
    const value_state *s = arg;
    const bpt_cuda_lrn lrn = lrn_of(net, s);
    return bpt_cuda_lrn_backward(stream, &lrn, bpt__cuda_at(net, s->in.value),
                                 bpt__cuda_at(net, s->out.grad), bpt__cuda_at(net, s->dx));
}

static bpt_status plan_lrn(bpt_device_network *net, const bpt_layer *l,
                           bpt_cuda_activation *const *in, bpt_cuda_activation *out, void **state) {
    value_state *s;
    BPT_TRY(plan_output(net, l, in[0], out, &s));
    *state = s;
    return BPT_CUDA_TASK(net, BPT_CUDA_FORWARD, run_lrn, s, l->name, "forward", s->in.value,
                         s->out.value);
}

static bpt_status plan_lrn_back(bpt_device_network *net, const bpt_layer *l,
                                bpt_cuda_activation *const *in, const bpt_cuda_activation *out,
                                void *state) {
    value_state *s = state;
    (void)l;
    return plan_gradient(net, run_lrn_back, s, s->in.value, in[0], out);
}

const bpt_cuda_layer_kind bpt_cuda_layer_relu = {&bpt_layer_relu, plan_relu, plan_relu_back};
const bpt_cuda_layer_kind bpt_cuda_layer_dropout = {&bpt_layer_dropout, plan_dropout,
                                                    plan_dropout_back};
const bpt_cuda_layer_kind bpt_cuda_layer_lrn = {&bpt_layer_lrn, plan_lrn, plan_lrn_back};
