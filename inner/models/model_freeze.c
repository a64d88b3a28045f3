/* Layers that do not learn: those before a layer, up to the last of them that has weights. What
 * stands between, a dropout say, belongs to what learns. */
#include "base/memory.h"
#include "base/options.h"
#include "inner/models/model.h"

#include <assert.h>
#include <string.h>

static bpt_status fail_unknown(const bpt_model *m, const char *name) {
    const char **names;
    BPT_TRY(BPT_NEW("layer names", m->n_layers, &names));
    for (size_t i = 0; i < m->n_layers; i++) names[i] = m->layers[i].name;
    const char *nearest = bpt_nearest(name, names, m->n_layers);
    const bpt_status status =
        bpt_fail(BPT_EUSAGE, "model %s has no layer called \"%s\"", m->name, name);
    if (nearest) bpt_hint("did you mean \"%s\"?", nearest);
    bpt_free(names);
    return status;
}

bpt_status bpt_model_find_layer(const bpt_model *m, const char *name, size_t *layer) {
    for (size_t i = 0; i < m->n_layers; i++) {
        if (strcmp(m->layers[i].name, name) != 0) continue;
        *layer = i;
        return BPT_OK;
    }
    return fail_unknown(m, name);
}

bpt_status bpt_model_freeze_before(bpt_model *m, const char *first) {
    size_t end, n_segments = 0;
    assert(m->role == BPT_MODEL_WHOLE);
    BPT_TRY(bpt_model_find_layer(m, first, &end));
    for (size_t i = end; i < m->n_layers; i++) n_segments += m->layers[i].n_segments;
    if (n_segments == 0)
        return bpt_fail(BPT_EUSAGE, "model %s has no weights from layer %s on: nothing would learn",
                        m->name, first);
    while (end > 0 && m->layers[end - 1].n_segments == 0) end--;
    if (end == 0)
        return bpt_fail(BPT_EUSAGE, "model %s has no weights before layer %s: nothing is frozen",
                        m->name, first);
    m->n_frozen = end;
    return BPT_OK;
}

size_t bpt_model_frozen_segments(const bpt_model *m) {
    size_t n = 0;
    for (size_t i = 0; i < m->n_frozen; i++) n += m->layers[i].n_segments;
    return n;
}

size_t bpt_model_frozen_elements(const bpt_model *m) {
    return m->n_frozen > 0 ? m->segments.items[bpt_model_frozen_segments(m)].offset : 0;
}

size_t bpt_model_learned_elements(const bpt_model *m) {
    return m->segments.n_elements - bpt_model_frozen_elements(m);
}
