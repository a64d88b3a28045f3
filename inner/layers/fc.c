/* Fully connected: y = weight x + bias over all values of the input, flattened row-major. */
#include "inner/layers/fields.h"

static bpt_status parse(bpt_layer *l, const bpt_model_scope *scope, const bpt_yaml *doc,
                        const bpt_yaml_node *fields) {
    bpt_fc_config *config = l->config;
    BPT_TRY(bpt__field_channels(l, scope, doc, fields, "outputs", &config->outputs));
    return bpt__field_bool(l, doc, fields, "bias", true, &config->bias);
}

static int64_t n_inputs(const bpt_layer *l) {
    return l->in.c * l->in.h * l->in.w;
}

static bpt_status infer(bpt_layer *l, bpt_segments *s) {
    const bpt_fc_config *config = l->config;
    l->out = (bpt_shape){.c = config->outputs, .h = 1, .w = 1};
    const int64_t dims[] = {config->outputs, n_inputs(l)};
    return bpt__weights_infer(l, s, dims, 2, config->bias);
}

static uint64_t forward_flops(const bpt_layer *l) {
    return 2 * (uint64_t)l->out.c * (uint64_t)n_inputs(l);
}

static const char *const fields[] = {"outputs", "bias"};

const bpt_layer_kind bpt_layer_fc = {
    .name = "fc",
    .fields = fields,
    .n_fields = sizeof fields / sizeof *fields,
    .config_bytes = sizeof(bpt_fc_config),
    .parse = parse,
    .infer = infer,
    .forward_flops = forward_flops,
};
