/* Convolution: y[k] = bias[k] + sum over c of x[c] * weight[k][c], cross-correlation as is usual.
 */
#include "inner/layers/conv_state.h"
#include "inner/layers/fields.h"

#include <inttypes.h>

static bpt_status parse(bpt_layer *l, const bpt_model_scope *scope, const bpt_yaml *doc,
                        const bpt_yaml_node *fields) {
    bpt_conv_config *config = l->config;
    BPT_TRY(bpt__field_channels(l, scope, doc, fields, "filters", &config->filters));
    BPT_TRY(bpt__field_pair(l, doc, fields, "kernel", 1, NULL, config->kernel));
    BPT_TRY(bpt__field_pair(l, doc, fields, "stride", 1, (int64_t[]){1, 1}, config->stride));
    BPT_TRY(bpt__field_pair(l, doc, fields, "pad", 0, (int64_t[]){0, 0}, config->pad));
    BPT_TRY(bpt__field_pair(l, doc, fields, "dilation", 1, (int64_t[]){1, 1}, config->dilation));
    BPT_TRY(bpt__field_int(l, doc, fields, "groups", 1, BPT__MAX_CHANNELS, 1, &config->groups));
    return bpt__field_bool(l, doc, fields, "bias", true, &config->bias);
}

static bpt_status check_groups(const bpt_layer *l, const bpt_conv_config *config) {
    if (l->in.c % config->groups == 0 && config->filters % config->groups == 0) return BPT_OK;
    return bpt_fail(BPT_EUSAGE,
                    "%" PRId64 " input channels and %" PRId64 " filters do not divide in %" PRId64
                    " groups",
                    l->in.c, config->filters, config->groups);
}

static bpt_status infer(bpt_layer *l, bpt_segments *s) {
    const bpt_conv_config *config = l->config;
    int64_t extent[2]; /* of the kernel with its gaps */
    for (int i = 0; i < 2; i++) extent[i] = (config->kernel[i] - 1) * config->dilation[i] + 1;
    BPT_TRY(check_groups(l, config));
    BPT_TRY(bpt__window_infer(l, extent, config->stride, config->pad));
    l->out.c = config->filters;
    const int64_t dims[] = {config->filters, l->in.c / config->groups, config->kernel[0],
                            config->kernel[1]};
    return bpt__weights_infer(l, s, dims, 4, config->bias);
}

static uint64_t forward_flops(const bpt_layer *l) {
    const bpt_conv_config *config = l->config;
    const int64_t per_output = l->in.c / config->groups * config->kernel[0] * config->kernel[1];
    return 2 * (uint64_t)(l->out.c * l->out.h * l->out.w) * (uint64_t)per_output;
}

static const char *const fields[] = {"filters",  "kernel", "stride", "pad",
                                     "dilation", "groups", "bias"};

const bpt_layer_kind bpt_layer_conv = {
    .name = "conv",
    .fuses_relu = true,
    .fields = fields,
    .n_fields = sizeof fields / sizeof *fields,
    .config_bytes = sizeof(bpt_conv_config),
    .said_bytes = BPT__BYTES_TO(bpt_conv_config, bias),
    .parse = parse,
    .infer = infer,
    .forward_flops = forward_flops,
    .plan_forward = bpt__conv_plan_forward,
    .plan_backward = bpt__conv_plan_backward,
};
