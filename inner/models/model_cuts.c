/* What networks of a model are told about cutting convolutions. */
#include "inner/models/model.h"

#include <assert.h>
#include <string.h>

void bpt_model_use_costs(bpt_model *model, const bpt_cost_table *costs) {
    model->costs = costs;
}

bpt_status bpt_model_set_cut(bpt_model *model, const char *layer, bpt_conv_step step, bpt_cut cut) {
    assert(cut.channels <= BPT_MAX_CUT && cut.rows <= BPT_MAX_CUT);
    for (size_t i = 0; i < model->n_layers; i++) {
        const bpt_layer *l = &model->layers[i];
        if (l->kind != &bpt_layer_conv || strcmp(l->name, layer) != 0) continue;
        bpt_conv_config *config = l->config;
        config->cut_is_given[step] = true;
        config->cut[step] = cut;
        return BPT_OK;
    }
    return bpt_fail(BPT_EUSAGE, "%s: there is no convolution %s", model->source, layer);
}

void bpt_model_set_cuts(bpt_model *model, const bpt_cut *cut) {
    for (size_t i = 0; i < model->n_layers; i++) {
        if (model->layers[i].kind != &bpt_layer_conv) continue;
        bpt_conv_config *config = model->layers[i].config;
        for (int step = 0; step < BPT_N_CONV_STEPS; step++) {
            config->cut_is_given[step] = cut != NULL;
            config->cut[step] = cut ? *cut : (bpt_cut){0};
        }
    }
}
