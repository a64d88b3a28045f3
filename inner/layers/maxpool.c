/* Maximum over windows. Padding never wins: it counts as minus infinity. */
#include "inner/layers/fields.h"

#include <inttypes.h>

static bpt_status parse(bpt_layer *l, const bpt_model_scope *scope, const bpt_yaml *doc,
                        const bpt_yaml_node *fields) {
    (void)scope;
    bpt_pool_config *config = l->config;
    const int64_t *kernel = config->kernel, *pad = config->pad;
    BPT_TRY(bpt__field_pair(l, doc, fields, "kernel", 1, NULL, config->kernel));
    BPT_TRY(bpt__field_pair(l, doc, fields, "stride", 1, kernel, config->stride));
    BPT_TRY(bpt__field_pair(l, doc, fields, "pad", 0, (int64_t[]){0, 0}, config->pad));
    /* So that no window lies in the padding alone. */
    if (pad[0] > kernel[0] / 2 || pad[1] > kernel[1] / 2)
        return bpt_yaml_fail(doc, bpt_yaml_find(fields, "pad"),
                             "layer %s: pad %" PRId64 "x%" PRId64
                             " is more than half of its kernel %" PRId64 "x%" PRId64,
                             l->name, pad[0], pad[1], kernel[0], kernel[1]);
    return BPT_OK;
}

static bpt_status infer(bpt_layer *l, bpt_segments *s) {
    (void)s;
    const bpt_pool_config *config = l->config;
    l->out.c = l->in.c;
    return bpt__window_infer(l, config->kernel, config->stride, config->pad);
}

static uint64_t forward_flops(const bpt_layer *l) {
    (void)l;
    return 0;
}

static const char *const fields[] = {"kernel", "stride", "pad"};

const bpt_layer_kind bpt_layer_maxpool = {
    .name = "maxpool",
    .fields = fields,
    .n_fields = sizeof fields / sizeof *fields,
    .config_bytes = sizeof(bpt_pool_config),
    .parse = parse,
    .infer = infer,
    .forward_flops = forward_flops,
};
