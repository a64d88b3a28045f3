/* From a model to tasks: the input, layer by layer forward, the loss, and back; the update. */
#include "inner/cuda/cuda_network.h"
#include "inner/cuda/cuda_values.h"
#include "inner/models/readers.h"

static const bpt_cuda_layer_kind *const kinds[] = {
    &bpt_cuda_layer_add,     &bpt_cuda_layer_avgpool, &bpt_cuda_layer_batchnorm,
    &bpt_cuda_layer_concat,  &bpt_cuda_layer_conv,    &bpt_cuda_layer_dropout,
    &bpt_cuda_layer_fc,      &bpt_cuda_layer_lrn,     &bpt_cuda_layer_global_avgpool,
    &bpt_cuda_layer_maxpool, &bpt_cuda_layer_relu,    &bpt_cuda_layer_pad_channels,
};

static bpt_status find_kind(const bpt_layer *l, const bpt_cuda_layer_kind **kind) {
    for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++)
        if (kinds[i]->kind == l->kind) {
            *kind = kinds[i];
            return BPT_OK;
        }
    const bpt_status status = bpt_fail(
        BPT_EUSAGE, "layer %s: a GPU cannot compute layers of the kind %s", l->name, l->kind->name);
    bpt_hint("use --device cpu");
    return status;
}

/* What is known of the layers while they are planned. */
typedef struct {
    bpt_readers readers;
    bpt_cuda_activation **views; /* of each activation, one for each reader; shape [n_layers + 1] */
    bpt_cuda_activation ***in;   /* of these, what each layer reads; shape [n_layers] */
    void **states;               /* of each layer's kind, shape [n_layers] */
} layer_plans;

static bpt_status create_inputs(bpt_device_network *net, layer_plans *plans, size_t layer) {
    const size_t n = plans->readers.n_inputs[layer];
    bpt_cuda_activation ***in = &plans->in[layer];
    BPT_TRY(BPT_CUDA_NEW(net, n, in));
    for (size_t j = 0; j < n; j++) {
        const bpt_reading *r = &plans->readers.inputs[layer][j];
        (*in)[j] = &plans->views[r->activation][r->reader];
    }
    return BPT_OK;
}

static bpt_status create_plans(bpt_device_network *net, layer_plans *plans) {
    const size_t n = net->model->n_layers;
    BPT_TRY(bpt_readers_find(net->model, &plans->readers));
    BPT_TRY(BPT_CUDA_NEW(net, n + 1, &plans->views));
    BPT_TRY(BPT_CUDA_NEW(net, n, &plans->in));
    BPT_TRY(BPT_CUDA_NEW(net, n, &plans->states));
    for (size_t a = 0; a <= n; a++)
        BPT_TRY(BPT_CUDA_NEW(net, plans->readers.n[a], &plans->views[a]));
    for (size_t i = 0; i < n; i++) BPT_TRY(create_inputs(net, plans, i));
    return BPT_OK;
}

/* ---- the input ---- */

/* Tensor cores take channels by eights. More of them change nothing for a convolution whose weights
 * for them are 0. */
enum { CHANNELS_AT_ONCE = 8 };

static bool pads_input(const bpt_device_network *net) {
    const bpt_model *m = net->model;
    if (net->type != BPT_BF16 || m->input.c % CHANNELS_AT_ONCE == 0) return false;
    for (size_t i = 0; i < m->n_layers; i++)
        for (size_t j = 0; j < m->layers[i].n_inputs; j++) {
            const bpt_conv_config *conv = m->layers[i].config;
            if (m->layers[i].inputs[j] != 0) continue;
            if (m->layers[i].kind != &bpt_layer_conv || conv->groups != 1) return false;
        }
    return true;
}

static bpt_status run_input(const bpt_device_network *net, const void *arg,
                            bpt_cuda_stream stream) {
    const bpt_cuda_activation *in = arg;
    return bpt_cuda_input_take(stream, &net->input, &net->given->step, in->row, in->type,
                               bpt__cuda_at(net, in->value));
}

static bpt_status plan_input(bpt_device_network *net) {
    bpt_cuda_activation *in = &net->activations[0];
    const bpt_shape s = net->model->input;
    const int64_t padded = (s.c + CHANNELS_AT_ONCE - 1) / CHANNELS_AT_ONCE * CHANNELS_AT_ONCE;
    *in =
        (bpt_cuda_activation){.shape = s, .row = pads_input(net) ? padded : s.c, .type = net->type};
    BPT_TRY(bpt__cuda_reserve_values(net, in));
    return BPT_CUDA_TASK(net, BPT_CUDA_FORWARD, run_input, in, "input", "convert", in->value);
}

/* ---- gradients of several readers ---- */

typedef struct {
    bpt_cuda_buffer terms[BPT_CUDA_MAX_TERMS], sum;
    int n;
    bpt_value_type type;
    int64_t n_values;
} sum_task;

static bpt_status run_sum(const bpt_device_network *net, const void *arg, bpt_cuda_stream stream) {
    const sum_task *t = arg;
    const void *terms[BPT_CUDA_MAX_TERMS];
    for (int i = 0; i < t->n; i++) terms[i] = bpt__cuda_at(net, t->terms[i]);
    return bpt_cuda_add(stream, terms, t->n, t->type, t->n_values, bpt__cuda_at(net, t->sum));
}

static bpt_status plan_sum(bpt_device_network *net, const char *label, const bpt_cuda_activation *a,
                           sum_task *t) {
    sum_task *kept;
    bpt_cuda_buffer touches[BPT_CUDA_MAX_TERMS + 1];
    BPT_TRY(bpt__cuda_reserve_grad(net, a, &t->sum));
    t->type = a->type;
    t->n_values = bpt__cuda_values(net, a);
    for (int i = 0; i < t->n; i++) touches[i] = t->terms[i];
    touches[t->n] = t->sum;
    BPT_TRY(BPT_CUDA_NEW(net, 1, &kept));
    *kept = *t;
    BPT_TRY(bpt__cuda_task(net, BPT_CUDA_BACKWARD, run_sum, kept, label, "sum gradients", touches,
                           (size_t)t->n + 1));
    *t = (sum_task){.terms = {t->sum}, .n = 1}; /* further ones are added to it */
    return BPT_OK;
}

/* The gradient of an activation is the sum of what its readers have left. */
static bpt_status join_views(bpt_device_network *net, const char *label, bpt_cuda_activation *a,
                             const bpt_cuda_activation *views, size_t n_views) {
    sum_task t = {0};
    for (size_t i = 0; i < n_views; i++) {
        if (!views[i].grad) continue;
        if (t.n == BPT_CUDA_MAX_TERMS) BPT_TRY(plan_sum(net, label, a, &t));
        t.terms[t.n++] = views[i].grad;
    }
    if (t.n > 1) BPT_TRY(plan_sum(net, label, a, &t));
    a->grad = t.n > 0 ? t.terms[0] : 0;
    return BPT_OK;
}

/* ---- layers ---- */

static void fork_output(const bpt_device_network *net, layer_plans *plans, size_t activation) {
    for (size_t i = 0; i < plans->readers.n[activation]; i++)
        plans->views[activation][i] = net->activations[activation];
}

static bpt_status plan_forward(bpt_device_network *net, layer_plans *plans, const bpt_layer *l) {
    bpt_cuda_activation *out = &net->activations[l->index + 1];
    const bpt_cuda_layer_kind *kind;
    net->frozen = l->index < net->model->n_frozen;
    BPT_TRY(find_kind(l, &kind));
    if (l->fusion.done)
        *out = *plans->in[l->index][0];
    else
        BPT_TRY(kind->plan_forward(net, l, plans->in[l->index], out, &plans->states[l->index]));
    fork_output(net, plans, l->index + 1);
    return BPT_OK;
}

static bpt_status plan_backward(bpt_device_network *net, layer_plans *plans, const bpt_layer *l) {
    const size_t n_views = plans->readers.n[l->index + 1];
    bpt_cuda_activation *out = &net->activations[l->index + 1], **in = plans->in[l->index];
    const bpt_cuda_layer_kind *kind;
    BPT_TRY(find_kind(l, &kind));
    if (n_views > 0) BPT_TRY(join_views(net, l->name, out, plans->views[l->index + 1], n_views));
    if (l->fusion.done)
        in[0]->grad = out->grad;
    else if (out->grad)
        return kind->plan_backward(net, l, in, out, plans->states[l->index]);
    return BPT_OK;
}

/* ---- the loss ---- */

typedef struct {
    bpt_cuda_activation logits;
    bpt_cuda_buffer losses;
} loss_task;

static bpt_status run_loss(const bpt_device_network *net, const void *arg, bpt_cuda_stream stream) {
    const loss_task *t = arg;
    const int32_t *labels = net->given->labels, *second = labels + net->batch;
    return bpt_cuda_loss(stream, &net->given->step, bpt__cuda_at(net, t->logits.value),
                         t->logits.type, net->batch, t->logits.row, net->model->classes, labels,
                         second, (const float *)(second + net->batch),
                         net->learning.label_smoothing, bpt__cuda_at(net, t->losses),
                         bpt__cuda_at(net, t->logits.grad), net->outcome);
}

static bpt_status plan_loss(bpt_device_network *net, bpt_cuda_activation *logits) {
    loss_task *t;
    BPT_TRY(BPT_CUDA_NEW(net, 1, &t));
    if (!net->forward_only) BPT_TRY(bpt__cuda_reserve_grad(net, logits, &logits->grad));
    t->logits = *logits;
    BPT_TRY(bpt__cuda_reserve(net, BPT_CUDA_WORKSPACE, 2 * (size_t)net->batch * sizeof(double),
                              &t->losses));
    return BPT_CUDA_TASK(net, BPT_CUDA_LOSS, run_loss, t, "loss", "loss", logits->value,
                         t->logits.grad, t->losses);
}

/* ---- the update ---- */

static bpt_status run_update(const bpt_device_network *net, const void *arg,
                             bpt_cuda_stream stream) {
    (void)arg;
    return bpt_cuda_update_run(stream, net->update, &net->given->step, net->outcome);
}

static bpt_status run_check(const bpt_device_network *net, const void *arg,
                            bpt_cuda_stream stream) {
    (void)arg;
    return bpt_cuda_update_check(stream, net->update, net->outcome);
}

static bpt_status plan_update(bpt_device_network *net) {
    BPT_TRY(bpt__cuda_task(net, BPT_CUDA_CHECK, run_check, NULL, "gradients", "check", NULL, 0));
    return bpt__cuda_task(net, BPT_CUDA_UPDATE, run_update, NULL, "weights", "update", NULL, 0);
}

static bpt_status plan_all(bpt_device_network *net, layer_plans *plans) {
    const bpt_model *model = net->model;
    const size_t n = model->n_layers;
    BPT_TRY(create_plans(net, plans));
    BPT_TRY(plan_input(net));
    fork_output(net, plans, 0);
    for (size_t i = 0; i < n; i++) {
        BPT_TRY(plan_forward(net, plans, &model->layers[i]));
        net->forward_end[i] = net->n_tasks;
    }
    BPT_TRY(plan_loss(net, &net->activations[n]));
    if (net->forward_only) return BPT_OK;
    for (size_t i = n; i-- > 0;) {
        BPT_TRY(plan_backward(net, plans, &model->layers[i]));
        net->backward_end[i] = net->n_tasks;
    }
    return plan_update(net);
}

bpt_status bpt__cuda_plan_layers(bpt_device_network *net) {
    layer_plans plans = {0};
    const bpt_status status = plan_all(net, &plans);
    bpt_readers_clear(&plans.readers);
    return status;
}
