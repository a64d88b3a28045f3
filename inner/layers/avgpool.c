/* Mean over windows. */
#include "inner/layers/fields.h"
#include "inner/layers/pooling.h"

static bpt_status parse(bpt_layer *l, const bpt_model_scope *scope, const bpt_yaml *doc,
                        const bpt_yaml_node *fields) {
    (void)scope;
    bpt_pool_config *config = l->config;
    BPT_TRY(bpt__pool_parse(l, doc, fields));
    return bpt__field_bool(l, doc, fields, "include_pad", true, &config->include_pad);
}

static bpt_status infer(bpt_layer *l, bpt_segments *s) {
    (void)s;
    const bpt_pool_config *config = l->config;
    l->out.c = l->in.c;
    return bpt__window_infer(l, config->kernel, config->stride, config->pad);
}

static bpt_status plan_forward(const bpt_layer *l, bpt_builder *b, bpt_activation *const *inputs,
                               bpt_activation *out, void **state) {
    const bpt_pool_config *config = l->config;
    const bpt_pool_kind kind = config->include_pad ? BPT_POOL_AVERAGE : BPT_POOL_AVERAGE_INSIDE;
    return bpt__pool_plan_forward(l, b, kind, config, inputs[0], out, state);
}

static const char *const fields[] = {"kernel", "stride", "pad", "include_pad"};

const bpt_layer_kind bpt_layer_avgpool = {
    .name = "avgpool",
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
