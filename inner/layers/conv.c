/* Convolution: y[k] = bias[k] + sum over c of x[c] * weight[k][c], cross-correlation as is usual.
 */
#include "inner/layers/fields.h"

static bpt_status parse(bpt_layer *l, const bpt_model_scope *scope, const bpt_yaml *doc,
                        const bpt_yaml_node *fields) {
    bpt_conv_config *config = l->config;
    BPT_TRY(bpt__field_channels(l, scope, doc, fields, "filters", &config->filters));
    BPT_TRY(bpt__field_pair(l, doc, fields, "kernel", 1, NULL, config->kernel));
    BPT_TRY(bpt__field_pair(l, doc, fields, "stride", 1, (int64_t[]){1, 1}, config->stride));
    BPT_TRY(bpt__field_pair(l, doc, fields, "pad", 0, (int64_t[]){0, 0}, config->pad));
    return bpt__field_bool(l, doc, fields, "bias", true, &config->bias);
}

static bpt_status infer(bpt_layer *l, bpt_segments *s) {
    const bpt_conv_config *config = l->config;
    BPT_TRY(bpt__window_infer(l, config->kernel, config->stride, config->pad));
    l->out.c = config->filters;
    const int64_t dims[] = {config->filters, l->in.c, config->kernel[0], config->kernel[1]};
    return bpt__weights_infer(l, s, dims, 4, config->bias);
}

static uint64_t forward_flops(const bpt_layer *l) {
    const bpt_conv_config *config = l->config;
    const int64_t per_output = l->in.c * config->kernel[0] * config->kernel[1];
    return 2 * (uint64_t)(l->out.c * l->out.h * l->out.w) * (uint64_t)per_output;
}

static const char *const fields[] = {"filters", "kernel", "stride", "pad", "bias"};

const bpt_layer_kind bpt_layer_conv = {
    .name = "conv",
    .fields = fields,
    .n_fields = sizeof fields / sizeof *fields,
    .config_bytes = sizeof(bpt_conv_config),
    .parse = parse,
    .infer = infer,
    .forward_flops = forward_flops,
};
