/* Maximum over windows. Padding never wins: it counts as minus infinity. */
#include "inner/layers/fields.h"
#include "inner/layers/pooling.h"

static bpt_status parse(bpt_layer *l, const bpt_model_scope *scope, const bpt_yaml *doc,
                        const bpt_yaml_node *fields) {
    (void)scope;
    return bpt__pool_parse(l, doc, fields);
}

static bpt_status infer(bpt_layer *l, bpt_segments *s) {
    (void)s;
    const bpt_pool_config *config = l->config;
    l->out.c = l->in.c;
    return bpt__window_infer(l, config->kernel, config->stride, config->pad);
}

static bpt_status plan_forward(const bpt_layer *l, bpt_builder *b, bpt_activation *const *inputs,
                               bpt_activation *out, void **state) {
    return bpt__pool_plan_forward(l, b, BPT_POOL_MAX, l->config, inputs[0], out, state);
}

static const char *const fields[] = {"kernel", "stride", "pad"};

const bpt_layer_kind bpt_layer_maxpool = {
    .name = "maxpool",
    .fields = fields,
    .n_fields = sizeof fields / sizeof *fields,
    .config_bytes = sizeof(bpt_pool_config),
    .parse = parse,
    .infer = infer,
    .forward_flops = bpt__no_flops,
    .plan_forward = plan_forward,
    .plan_backward = bpt__pool_plan_backward,
};
