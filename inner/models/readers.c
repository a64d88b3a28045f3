#include "inner/models/readers.h"

#include "base/memory.h"

static void read_activation(bpt_readers *r, size_t layer, size_t activation) {
    r->inputs[layer][r->n_inputs[layer]++] = (bpt_reading){activation, r->n[activation]++};
}

static bpt_status find_inputs(const bpt_model *model, const bpt_layer *l, bpt_readers *r) {
    BPT_TRY(BPT_NEW("inputs of a layer", l->n_inputs + 1, &r->inputs[l->index]));
    if (l->fusion.done) { /* of an add, the one input that is not read yet */
        read_activation(r, l->index, l->inputs[l->fusion.own]);
        return BPT_OK;
    }
    for (size_t j = 0; j < l->n_inputs; j++) read_activation(r, l->index, l->inputs[j]);
    if (l->fusion.add) {
        const bpt_layer *add = &model->layers[l->fusion.add - 1];
        read_activation(r, l->index, add->inputs[1 - add->fusion.own]);
    }
    return BPT_OK;
}

bpt_status bpt_readers_find(const bpt_model *model, bpt_readers *r) {
    *r = (bpt_readers){.n_layers = model->n_layers};
    BPT_TRY(BPT_NEW("readers of activations", model->n_layers + 1, &r->n));
    BPT_TRY(BPT_NEW("inputs of layers", model->n_layers, &r->inputs));
    BPT_TRY(BPT_NEW("numbers of inputs", model->n_layers, &r->n_inputs));
    for (size_t i = 0; i < model->n_layers; i++) BPT_TRY(find_inputs(model, &model->layers[i], r));
    return BPT_OK;
}

void bpt_readers_clear(bpt_readers *r) {
    for (size_t i = 0; r->inputs && i < r->n_layers; i++) bpt_free(r->inputs[i]);
    bpt_free(r->inputs);
    bpt_free(r->n_inputs);
    bpt_free(r->n);
    *r = (bpt_readers){0};
}
