/* Adds channels of zeros behind those of the input. */
#include "inner/layers/fields.h"
#include "inner/step/builder.h"

#include <inttypes.h>

static bpt_status parse(bpt_layer *l, const bpt_model_scope *scope, const bpt_yaml *doc,
                        const bpt_yaml_node *fields) {
    bpt_pad_channels_config *config = l->config;
    return bpt__field_channels(l, scope, doc, fields, "channels", &config->channels);
}

static bpt_status infer(bpt_layer *l, bpt_segments *s) {
    const bpt_pad_channels_config *config = l->config;
    (void)s;
    l->out = l->in;
    l->out.c = config->channels;
    if (l->in.c <= config->channels) return BPT_OK;
    return bpt_fail(BPT_EUSAGE, "the input has %" PRId64 " channels, more than %" PRId64, l->in.c,
                    config->channels);
}

/* The state: the input in the order of the output. */
static bpt_status plan_forward(const bpt_layer *l, bpt_builder *b, bpt_activation *const *inputs,
                               bpt_activation *out, void **state) {
    const int64_t cuts[] = {l->in.c, l->out.c};
    const bpt_value_type type = inputs[0]->type;
    const size_t in_bytes = bpt_shape_bytes(l->in, type);
    const size_t out_bytes = bpt_shape_bytes(l->out, type);
    bpt_activation *in;
    int64_t lanes;
    BPT_TRY(BPT_BUILDER_NEW(b, 1, &in));
    BPT_TRY(bpt_builder_choose_lanes(b, inputs[0], cuts, 2, &lanes));
    BPT_TRY(bpt_builder_convert_to_lanes(b, l->name, inputs[0], type, lanes, in));
    BPT_TRY(bpt_builder_reserve_lanes(b, l->out, type, lanes, in->wants_grad, out));
    for (size_t t = 0; t < b->n_tiles; t++) {
        const bpt_sample_run from = {in->value[t], in_bytes}, to = {out->value[t], out_bytes};
        BPT_TRY(bpt_builder_copy_samples(b, BPT_PHASE_FORWARD, (bpt_task_info){"forward", l->name},
                                         t, from, to, in_bytes, out_bytes - in_bytes,
                                         in->value_ready[t], &out->value_ready[t]));
    }
    *state = in;
    return BPT_OK;
}

static bpt_status plan_backward(const bpt_layer *l, bpt_builder *b, bpt_activation *const *inputs,
                                const bpt_activation *out, void *state) {
    const size_t in_bytes = bpt_shape_bytes(l->in, out->type);
    const size_t out_bytes = bpt_shape_bytes(l->out, out->type);
    bpt_activation *in = state;
    if (!in->wants_grad) return BPT_OK;
    for (size_t t = 0; t < b->n_tiles; t++) {
        const bpt_sample_run from = {out->grad[t], out_bytes}, to = {in->grad[t], in_bytes};
        BPT_TRY(bpt_builder_copy_samples(b, BPT_PHASE_BACKWARD,
                                         (bpt_task_info){"backward", l->name}, t, from, to,
                                         in_bytes, 0, out->grad_ready[t], &in->grad_ready[t]));
    }
    return bpt_builder_convert_back(b, l->name, inputs[0], in);
}

static const char *const fields[] = {"channels"};

const bpt_layer_kind bpt_layer_pad_channels = {
    .name = "pad_channels",
    .fields = fields,
    .n_fields = sizeof fields / sizeof *fields,
    .config_bytes = sizeof(bpt_pad_channels_config),
    .said_bytes = BPT__BYTES_TO(bpt_pad_channels_config, channels),
    .parse = parse,
    .infer = infer,
    .forward_flops = bpt__no_flops,
    .plan_forward = plan_forward,
    .plan_backward = plan_backward,
};
