/* Which layers are computed together: a ReLU, or an addition and a ReLU, with the layer before
 * them. They touch each value once; alone each would read and write the whole activation. */
#include "inner/models/model_parts.h"

/* @param activation 0: the model's input, 1 + i: the output of layer i
 * @return the only reader of an activation, NULL if there is none or more than one */
static bpt_layer *only_reader(const bpt_model *m, size_t activation) {
    bpt_layer *reader = NULL;
    for (size_t i = 0; i < m->n_layers; i++)
        for (size_t j = 0; j < m->layers[i].n_inputs; j++) {
            if (m->layers[i].inputs[j] != activation) continue;
            if (reader) return NULL;
            reader = &m->layers[i];
        }
    return reader;
}

/* An add of two can be done by the one whose turn comes last: the other's output is there then.
 * @return whether @p l does the work of @p add now */
static bool fuse_add(bpt_layer *l, bpt_layer *add) {
    const size_t activation = l->index + 1;
    if (!l->kind->fuses_add || add->kind != &bpt_layer_add || add->n_inputs != 2) return false;
    const size_t own = add->inputs[1] == activation ? 1 : 0;
    if (add->inputs[1 - own] > l->index) return false;
    l->fusion.add = add->index + 1;
    add->fusion = (bpt_fusion){.done = true, .own = own};
    return true;
}

static void fuse(const bpt_model *m, bpt_layer *l) {
    bpt_layer *next = only_reader(m, l->index + 1);
    if (next && fuse_add(l, next)) next = only_reader(m, next->index + 1);
    if (!next || !l->kind->fuses_relu || next->kind != &bpt_layer_relu) return;
    l->fusion.relu = true;
    next->fusion.done = true;
}

void bpt__model_fuse(bpt_model *m) {
    for (size_t i = 0; i < m->n_layers; i++)
        if (m->layers[i].kind->fuses_relu || m->layers[i].kind->fuses_add) fuse(m, &m->layers[i]);
}
