/* Batch normalisation, with the addition and the ReLU behind it that it does too. */
#include "inner/cuda/cuda_batchnorm.h"
#include "inner/cuda/cuda_network.h"

typedef struct {
    bpt_cuda_batchnorm bn;
    size_t first; /* segment */
    bpt_cuda_activation in, added, out;
    bpt_cuda_buffer statistics;   /* mean and inverse of the batch */
    bpt_cuda_buffer workspace[2]; /* forward, backward */
    bpt_cuda_buffer dx, d_added;
} batchnorm_state;

static bpt_cuda_batchnorm_memory memory_of(const bpt_device_network *net, const batchnorm_state *s,
                                           int direction) {
    float *statistics = bpt__cuda_at(net, s->statistics);
    return (bpt_cuda_batchnorm_memory){statistics, statistics + s->bn.c,
                                       bpt__cuda_at(net, s->workspace[direction])};
}

static const float *weights(const bpt_device_network *net, const batchnorm_state *s, int which) {
    return bpt__cuda_floats(net, s->first + (size_t)which);
}

static float *gradients(const bpt_device_network *net, const batchnorm_state *s, int which) {
    return bpt__cuda_gradients(net, s->first + (size_t)which);
}

static bpt_status run_forward(const bpt_device_network *net, const void *arg,
                              bpt_cuda_stream stream) {
    const batchnorm_state *s = arg;
    const bpt_cuda_batchnorm_memory memory = memory_of(net, s, 0);
    return bpt_cuda_batchnorm_forward(
        stream, &s->bn, &net->given->step, &memory, bpt__cuda_at(net, s->in.value),
        bpt__cuda_at(net, s->added.value), weights(net, s, BPT__BN_WEIGHT),
        weights(net, s, BPT__BN_BIAS), weights(net, s, BPT__BN_RUNNING_MEAN),
        weights(net, s, BPT__BN_RUNNING_VAR), bpt__cuda_at(net, s->out.value),
        gradients(net, s, BPT__BN_RUNNING_MEAN), gradients(net, s, BPT__BN_RUNNING_VAR));
}

static bpt_status run_evaluate(const bpt_device_network *net, const void *arg,
                               bpt_cuda_stream stream) {
    const batchnorm_state *s = arg;
    return bpt_cuda_batchnorm_evaluate(
        stream, &s->bn, bpt__cuda_at(net, s->in.value), bpt__cuda_at(net, s->added.value),
        weights(net, s, BPT__BN_WEIGHT), weights(net, s, BPT__BN_BIAS),
        weights(net, s, BPT__BN_RUNNING_MEAN), weights(net, s, BPT__BN_RUNNING_VAR),
        bpt__cuda_at(net, s->out.value));
}

/* What the ReLU has let pass is seen from the input, unless something was added to that. */
static bool reads_output(const batchnorm_state *s) {
    return s->bn.relu && s->bn.add;
}

static bpt_status run_backward(const bpt_device_network *net, const void *arg,
                               bpt_cuda_stream stream) {
    const batchnorm_state *s = arg;
    const bpt_cuda_batchnorm_memory memory = memory_of(net, s, 1);
    return bpt_cuda_batchnorm_backward(
        stream, &s->bn, &net->given->step, &memory, bpt__cuda_at(net, s->in.value),
        reads_output(s) ? bpt__cuda_at(net, s->out.value) : NULL, bpt__cuda_at(net, s->out.grad),
        weights(net, s, BPT__BN_WEIGHT), weights(net, s, BPT__BN_BIAS), bpt__cuda_at(net, s->dx),
        bpt__cuda_at(net, s->d_added), gradients(net, s, BPT__BN_WEIGHT),
        gradients(net, s, BPT__BN_BIAS));
}

static void describe(const bpt_device_network *net, const bpt_layer *l,
                     bpt_cuda_activation *const *in, batchnorm_state *s) {
    const bpt_batchnorm_config *config = l->config;
    s->in = *in[0];
    if (l->fusion.add) s->added = *in[1];
    s->first = l->first_segment;
    s->bn = (bpt_cuda_batchnorm){
        .type = net->type,
        .rows = bpt__cuda_rows(net, &s->in),
        .c = l->in.c,
        .pixels = s->in.shape.h * s->in.shape.w,
        .eps = (float)config->eps,
        .relu = l->fusion.relu,
        .add = l->fusion.add > 0,
    };
}

/* By the batch's statistics. */
static bpt_status plan_training(bpt_device_network *net, const bpt_layer *l, batchnorm_state *s) {
    BPT_TRY(bpt__cuda_reserve(net, BPT_CUDA_VALUES, 2 * (size_t)s->bn.c * sizeof(float),
                              &s->statistics));
    BPT_TRY(bpt__cuda_reserve(net, BPT_CUDA_WORKSPACE, bpt_cuda_batchnorm_workspace(&s->bn),
                              &s->workspace[0]));
    return BPT_CUDA_TASK(net, BPT_CUDA_TRAINING, run_forward, s, l->name, "forward", s->in.value,
                         s->added.value, s->out.value, s->statistics, s->workspace[0]);
}

/* By the running ones. */
static bpt_status plan_evaluate(bpt_device_network *net, const bpt_layer *l, bpt_cuda_phase phase,
                                const batchnorm_state *s) {
    return BPT_CUDA_TASK(net, phase, run_evaluate, s, l->name, "forward", s->in.value,
                         s->added.value, s->out.value);
}

static bpt_status plan_forward(bpt_device_network *net, const bpt_layer *l,
                               bpt_cuda_activation *const *in, bpt_cuda_activation *out,
                               void **state) {
    batchnorm_state *s;
    BPT_TRY(BPT_CUDA_NEW(net, 1, &s));
    describe(net, l, in, s);
    *out = (bpt_cuda_activation){
        .shape = l->out, .row = l->out.c, .type = net->type, .wants_grad = !net->frozen};
    BPT_TRY(bpt__cuda_reserve_values(net, out));
    s->out = *out;
    *state = s;
    if (net->frozen) return plan_evaluate(net, l, BPT_CUDA_FORWARD, s);
    BPT_TRY(plan_training(net, l, s));
    return plan_evaluate(net, l, BPT_CUDA_INFERENCE, s);
}

static bpt_status plan_backward(bpt_device_network *net, const bpt_layer *l,
                                bpt_cuda_activation *const *in, const bpt_cuda_activation *out,
                                void *state) {
    batchnorm_state *s = state;
    s->out.grad = out->grad;
    BPT_TRY(bpt__cuda_reserve(net, BPT_CUDA_WORKSPACE, bpt_cuda_batchnorm_workspace(&s->bn),
                              &s->workspace[1]));
    if (s->in.wants_grad) BPT_TRY(bpt__cuda_reserve_grad(net, &s->in, &s->dx));
    in[0]->grad = s->dx;
    if (s->bn.add && s->added.wants_grad && s->bn.relu)
        BPT_TRY(bpt__cuda_reserve_grad(net, &s->added, &s->d_added));
    if (s->bn.add && s->added.wants_grad) in[1]->grad = s->bn.relu ? s->d_added : out->grad;
    return BPT_CUDA_TASK(net, BPT_CUDA_BACKWARD, run_backward, s, l->name, "backward", s->in.value,
                         reads_output(s) ? s->out.value : 0, s->out.grad, s->dx, s->d_added,
                         s->statistics, s->workspace[1]);
}

const bpt_cuda_layer_kind bpt_cuda_layer_batchnorm = {&bpt_layer_batchnorm, plan_forward,
                                                      plan_backward};
