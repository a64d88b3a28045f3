/* Pooling layers. */
#include "inner/cuda/cuda_network.h"
#include "inner/cuda/cuda_windows.h"

typedef struct {
    bpt_cuda_pool pool;
    bpt_cuda_activation in, out;
    bpt_cuda_buffer chosen, dx;
} pool_state;

static bpt_status run_forward(const bpt_device_network *net, const void *arg,
                              bpt_cuda_stream stream) {
    const pool_state *s = arg;
    return bpt_cuda_pool_forward(stream, &s->pool, bpt__cuda_at(net, s->in.value),
                                 bpt__cuda_at(net, s->out.value), bpt__cuda_at(net, s->chosen));
}

static bpt_status run_backward(const bpt_device_network *net, const void *arg,
                               bpt_cuda_stream stream) {
    const pool_state *s = arg;
    return bpt_cuda_pool_backward(stream, &s->pool, bpt__cuda_at(net, s->out.grad),
                                  bpt__cuda_at(net, s->chosen), bpt__cuda_at(net, s->dx));
}

static bpt_cuda_pool describe(const bpt_device_network *net, const bpt_layer *l,
                              bpt_cuda_pooling kind, const bpt_pool_config *config, int64_t row) {
    bpt_cuda_pool p = {
        .kind = kind,
        .type = net->type,
        .n = net->batch,
        .c = row,
        .h = l->in.h,
        .w = l->in.w,
        .p = l->out.h,
        .q = l->out.w,
    };
    for (int i = 0; i < 2; i++) {
        p.kernel[i] = config->kernel[i];
        p.stride[i] = config->stride[i];
        p.pad[i] = config->pad[i];
    }
    return p;
}

static bpt_status plan(bpt_device_network *net, const bpt_layer *l, bpt_cuda_pooling kind,
                       const bpt_pool_config *config, const bpt_cuda_activation *in,
                       bpt_cuda_activation *out, void **state) {
    pool_state *s;
    BPT_TRY(BPT_CUDA_NEW(net, 1, &s));
    *out = (bpt_cuda_activation){
        .shape = l->out, .row = in->row, .type = net->type, .wants_grad = in->wants_grad};
    BPT_TRY(bpt__cuda_reserve_values(net, out));
    *s = (pool_state){.pool = describe(net, l, kind, config, in->row), .in = *in, .out = *out};
    const size_t bytes = bpt_cuda_pool_bytes(&s->pool);
    if (bytes > 0 && in->wants_grad && !net->forward_only)
        BPT_TRY(bpt__cuda_reserve(net, BPT_CUDA_VALUES, bytes, &s->chosen));
    *state = s;
    return BPT_CUDA_TASK(net, BPT_CUDA_FORWARD, run_forward, s, l->name, "forward", s->in.value,
                         s->out.value, s->chosen);
}

static bpt_status plan_backward(bpt_device_network *net, const bpt_layer *l,
                                bpt_cuda_activation *const *in, const bpt_cuda_activation *out,
                                void *state) {
    pool_state *s = state;
    if (!s->in.wants_grad) return BPT_OK;
    s->out.grad = out->grad;
    BPT_TRY(bpt__cuda_reserve_grad(net, &s->in, &s->dx));
    in[0]->grad = s->dx;
    return BPT_CUDA_TASK(net, BPT_CUDA_BACKWARD, run_backward, s, l->name, "backward", s->out.grad,
                         s->chosen, s->dx);
}

static bpt_status plan_maxpool(bpt_device_network *net, const bpt_layer *l,
                               bpt_cuda_activation *const *in, bpt_cuda_activation *out,
                               void **state) {
    return plan(net, l, BPT_CUDA_MAX, l->config, in[0], out, state);
}

static bpt_status plan_avgpool(bpt_device_network *net, const bpt_layer *l,
                               bpt_cuda_activation *const *in, bpt_cuda_activation *out,
                               void **state) {
    const bpt_pool_config *config = l->config;
    return plan(net, l, config->include_pad ? BPT_CUDA_AVERAGE : BPT_CUDA_AVERAGE_INSIDE, config,
                in[0], out, state);
}

static bpt_status plan_global(bpt_device_network *net, const bpt_layer *l,
                              bpt_cuda_activation *const *in, bpt_cuda_activation *out,
                              void **state) {
    const bpt_pool_config whole = {.kernel = {l->in.h, l->in.w}, .stride = {1, 1}};
    return plan(net, l, BPT_CUDA_AVERAGE_INSIDE, &whole, in[0], out, state);
}

const bpt_cuda_layer_kind bpt_cuda_layer_maxpool = {&bpt_layer_maxpool, plan_maxpool,
                                                    plan_backward};
const bpt_cuda_layer_kind bpt_cuda_layer_avgpool = {&bpt_layer_avgpool, plan_avgpool,
                                                    plan_backward};
const bpt_cuda_layer_kind bpt_cuda_layer_global_avgpool = {&bpt_layer_global_avgpool, plan_global,
                                                           plan_backward};
