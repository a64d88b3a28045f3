/* Layers that bring activations together or make them wider: add, concat, pad_channels. */
#include "inner/cuda/cuda_network.h"
#include "inner/cuda/cuda_values.h"

/* ---- add: the gradient of each input is that of the output ---- */

typedef struct {
    size_t n;
    const bpt_cuda_activation *in; /* shape [n] */
    bpt_cuda_activation out;
} add_state;

/* Some at a time, onto the sum of those before. */
static bpt_status run_add(const bpt_device_network *net, const void *arg, bpt_cuda_stream stream) {
    const add_state *s = arg;
    const int64_t n_values = bpt__cuda_values(net, &s->out);
    void *sum = bpt__cuda_at(net, s->out.value);
    for (size_t done = 0; done < s->n;) {
        const void *terms[BPT_CUDA_MAX_TERMS];
        int n = 0;
        if (done > 0) terms[n++] = sum;
        while (n < BPT_CUDA_MAX_TERMS && done < s->n)
            terms[n++] = bpt__cuda_at(net, s->in[done++].value);
        BPT_TRY(bpt_cuda_add(stream, terms, n, net->type, n_values, sum));
    }
    return BPT_OK;
}

static bpt_status plan_add_task(bpt_device_network *net, const bpt_layer *l, const add_state *s) {
    bpt_cuda_buffer *touches;
    BPT_TRY(BPT_CUDA_NEW(net, s->n + 1, &touches));
    for (size_t j = 0; j < s->n; j++) touches[j] = s->in[j].value;
    touches[s->n] = s->out.value;
    return bpt__cuda_task(net, BPT_CUDA_FORWARD, run_add, s, l->name, "forward", touches, s->n + 1);
}

static bpt_status plan_add(bpt_device_network *net, const bpt_layer *l,
                           bpt_cuda_activation *const *in, bpt_cuda_activation *out, void **state) {
    add_state *s;
    bpt_cuda_activation *views;
    BPT_TRY(BPT_CUDA_NEW(net, 1, &s));
    BPT_TRY(BPT_CUDA_NEW(net, l->n_inputs, &views));
    *out = (bpt_cuda_activation){.shape = l->out, .row = in[0]->row, .type = net->type};
    for (size_t j = 0; j < l->n_inputs; j++) {
        views[j] = *in[j];
        out->wants_grad |= in[j]->wants_grad;
    }
    BPT_TRY(bpt__cuda_reserve_values(net, out));
    *s = (add_state){l->n_inputs, views, *out};
    *state = s;
    return plan_add_task(net, l, s);
}

static bpt_status plan_add_back(bpt_device_network *net, const bpt_layer *l,
                                bpt_cuda_activation *const *in, const bpt_cuda_activation *out,
                                void *state) {
    (void)net;
    (void)state;
    for (size_t j = 0; j < l->n_inputs; j++)
        if (in[j]->wants_grad) in[j]->grad = out->grad;
    return BPT_OK;
}

/* ---- channels at their place in wider rows ---- */

typedef struct {
    bpt_cuda_buffer from, to;
    int64_t from_c, from_first, to_c, to_first, n, n_zeros, rows;
} copy_task;

static bpt_status run_copy(const bpt_device_network *net, const void *arg, bpt_cuda_stream stream) {
    const copy_task *t = arg;
    return bpt_cuda_copy_channels(stream, bpt__cuda_at(net, t->from), t->from_c, t->from_first,
                                  bpt__cuda_at(net, t->to), t->to_c, t->to_first, t->n, t->n_zeros,
                                  net->type, t->rows);
}

static bpt_status plan_copy(bpt_device_network *net, const bpt_layer *l, bpt_cuda_phase phase,
                            const copy_task *task) {
    copy_task *t;
    BPT_TRY(BPT_CUDA_NEW(net, 1, &t));
    *t = *task;
    return BPT_CUDA_TASK(net, phase, run_copy, t, l->name,
                         phase == BPT_CUDA_BACKWARD ? "backward" : "forward", t->from, t->to);
}

/* @param first channel of the output; @param n_zeros behind the input's */
static bpt_status plan_into(bpt_device_network *net, const bpt_layer *l,
                            const bpt_cuda_activation *in, const bpt_cuda_activation *out,
                            int64_t first, int64_t n_zeros) {
    return plan_copy(net, l, BPT_CUDA_FORWARD,
                     &(copy_task){.from = in->value,
                                  .to = out->value,
                                  .from_c = in->row,
                                  .to_c = out->row,
                                  .to_first = first,
                                  .n = in->shape.c,
                                  .n_zeros = n_zeros,
                                  .rows = bpt__cuda_rows(net, out)});
}

static bpt_status plan_out_of(bpt_device_network *net, const bpt_layer *l, bpt_cuda_activation *in,
                              const bpt_cuda_activation *out, int64_t first) {
    if (!in->wants_grad) return BPT_OK;
    BPT_TRY(bpt__cuda_reserve_grad(net, in, &in->grad));
    return plan_copy(net, l, BPT_CUDA_BACKWARD,
                     &(copy_task){.from = out->grad,
                                  .to = in->grad,
                                  .from_c = out->row,
                                  .from_first = first,
                                  .to_c = in->row,
                                  .n = in->shape.c,
                                  .rows = bpt__cuda_rows(net, out)});
}

/* A gradient of channels that are padding would have to be 0: the input, which alone has them,
 * wants none. */
static bpt_status plan_concat(bpt_device_network *net, const bpt_layer *l,
                              bpt_cuda_activation *const *in, bpt_cuda_activation *out,
                              void **state) {
    int64_t first = 0;
    (void)state;
    *out = (bpt_cuda_activation){.shape = l->out, .row = l->out.c, .type = net->type};
    for (size_t j = 0; j < l->n_inputs; j++) out->wants_grad |= in[j]->wants_grad;
    BPT_TRY(bpt__cuda_reserve_values(net, out));
    for (size_t j = 0; j < l->n_inputs; j++) {
        BPT_TRY(plan_into(net, l, in[j], out, first, 0));
        first += in[j]->shape.c;
    }
    return BPT_OK;
}

static bpt_status plan_concat_back(bpt_device_network *net, const bpt_layer *l,
                                   bpt_cuda_activation *const *in, const bpt_cuda_activation *out,
                                   void *state) {
    int64_t first = 0;
    (void)state;
    for (size_t j = 0; j < l->n_inputs; j++) {
        BPT_TRY(plan_out_of(net, l, in[j], out, first));
        first += in[j]->shape.c;
    }
    return BPT_OK;
}

static bpt_status plan_pad(bpt_device_network *net, const bpt_layer *l,
                           bpt_cuda_activation *const *in, bpt_cuda_activation *out, void **state) {
    (void)state;
    *out = (bpt_cuda_activation){
        .shape = l->out, .row = l->out.c, .type = net->type, .wants_grad = in[0]->wants_grad};
    BPT_TRY(bpt__cuda_reserve_values(net, out));
    return plan_into(net, l, in[0], out, 0, l->out.c - l->in.c);
}

static bpt_status plan_pad_back(bpt_device_network *net, const bpt_layer *l,
                                bpt_cuda_activation *const *in, const bpt_cuda_activation *out,
                                void *state) {
    (void)state;
    return plan_out_of(net, l, in[0], out, 0);
}

const bpt_cuda_layer_kind bpt_cuda_layer_add = {&bpt_layer_add, plan_add, plan_add_back};
const bpt_cuda_layer_kind bpt_cuda_layer_concat = {&bpt_layer_concat, plan_concat,
                                                   plan_concat_back};
const bpt_cuda_layer_kind bpt_cuda_layer_pad_channels = {&bpt_layer_pad_channels, plan_pad,
                                                         plan_pad_back};
