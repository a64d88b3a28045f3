/* Mean of each channel over all its pixels. */
#include "inner/layers/fields.h"
#include "inner/layers/pooling.h"

static bpt_status infer(bpt_layer *l, bpt_segments *s) {
    (void)s;
    l->out = (bpt_shape){.c = l->in.c, .h = 1, .w = 1};
    return BPT_OK;
}

static bpt_status plan_forward(const bpt_layer *l, bpt_builder *b, bpt_activation *const *inputs,
                               bpt_activation *out, void **state) {
    const bpt_pool_config whole = {.kernel = {l->in.h, l->in.w}, .stride = {1, 1}};
    return bpt__pool_plan_forward(l, b, BPT_POOL_AVERAGE_INSIDE, &whole, inputs[0], out, state);
}

const bpt_layer_kind bpt_layer_global_avgpool = {
    .name = "global_avgpool",
    .parse = bpt__no_fields,
    .infer = infer,
    .forward_flops = bpt__no_flops,
    .plan_forward = plan_forward,
    .plan_backward = bpt__pool_plan_backward,
};
