#include "inner/layers/layer.h"

static const bpt_layer_kind *const kinds[] = {
    &bpt_layer_add,  &bpt_layer_avgpool, &bpt_layer_batchnorm,    &bpt_layer_concat,
    &bpt_layer_conv, &bpt_layer_dropout, &bpt_layer_fc,           &bpt_layer_global_avgpool,
    &bpt_layer_lrn,  &bpt_layer_maxpool, &bpt_layer_pad_channels, &bpt_layer_relu,
};

const bpt_layer_kind *const *bpt_layer_kinds(size_t *n) {
    *n = sizeof kinds / sizeof *kinds;
    return kinds;
}
