/* Maximum over windows. Padding never wins: it counts as minus infinity. */
#include "inner/layers/fields.h"
#include "inner/layers/pooling.h"

static bpt_status parse(bpt_layer *l, const bpt_model_scope *scope, const bpt_yaml *doc,
                        const bpt_yaml_node *fields) {
    bpt_pool_config *config = l->config;
    (void)scope;
    BPT_TRY(bpt__pool_parse(l, doc, fields));
    return bpt__field_bool(l, doc, fields, "ceil", false, &config->ceil);
}

/* One window more where some of the input is left over, unless all of it would be padding. */
static int64_t with_last_window(int64_t out, int64_t in, int64_t kernel, int64_t stride,
                                int64_t pad) {
    const bool left_over = (in + 2 * pad - kernel) % stride != 0;
    return left_over && out * stride < in + pad ? out + 1 : out;
}

static bpt_status infer(bpt_layer *l, bpt_segments *s) {
    (void)s;
    const bpt_pool_config *config = l->config;
    l->out.c = l->in.c;
    BPT_TRY(bpt__window_infer(l, config->kernel, config->stride, config->pad));
    if (!config->ceil) return BPT_OK;
    const int64_t *kernel = config->kernel, *stride = config->stride, *pad = config->pad;
    l->out.h = with_last_window(l->out.h, l->in.h, kernel[0], stride[0], pad[0]);
    l->out.w = with_last_window(l->out.w, l->in.w, kernel[1], stride[1], pad[1]);
    return BPT_OK;
}

static bpt_status plan_forward(const bpt_layer *l, bpt_builder *b, bpt_activation *const *inputs,
                               bpt_activation *out, void **state) {
    return bpt__pool_plan_forward(l, b, BPT_POOL_MAX, l->config, inputs[0], out, state);
}

static const char *const fields[] = {"kernel", "stride", "pad", "ceil"};

const bpt_layer_kind bpt_layer_maxpool = {
    .name = "maxpool",
    .fields = fields,
    .n_fields = sizeof fields / sizeof *fields,
    .config_bytes = sizeof(bpt_pool_config),
    .said_bytes = BPT__BYTES_TO(bpt_pool_config, ceil),
    .parse = parse,
    .infer = infer,
    .forward_flops = bpt__no_flops,
    .plan_forward = plan_forward,
    .plan_backward = bpt__pool_plan_backward,
};
