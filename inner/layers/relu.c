/* Rectifier: y = max(x, 0). */
#include "inner/layers/fields.h"

static bpt_status parse(bpt_layer *l, const bpt_model_scope *scope, const bpt_yaml *doc,
                        const bpt_yaml_node *fields) {
    (void)l;
    (void)scope;
    (void)doc;
    (void)fields;
    return BPT_OK;
}

static bpt_status infer(bpt_layer *l, bpt_segments *s) {
    (void)s;
    l->out = l->in;
    return BPT_OK;
}

static uint64_t forward_flops(const bpt_layer *l) {
    (void)l;
    return 0;
}

const bpt_layer_kind bpt_layer_relu = {
    .name = "relu",
    .parse = parse,
    .infer = infer,
    .forward_flops = forward_flops,
};
