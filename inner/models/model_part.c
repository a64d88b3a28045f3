#include "inner/models/model_part.h"

#include "base/memory.h"
#include "base/text.h"
#include "inner/models/model_parts.h"

#include <assert.h>
#include <stdio.h>
#include <string.h>

/* ---- where the border may be ---- */

/* @return segments of the layers up to @p layer */
static size_t segments_up_to(const bpt_model *m, size_t layer) {
    return m->layers[layer].first_segment + m->layers[layer].n_segments;
}

static const bpt_layer *find_bypass(const bpt_model *m, size_t layer) {
    for (size_t i = layer + 1; i < m->n_layers; i++)
        for (size_t j = 0; j < m->layers[i].n_inputs; j++)
            if (m->layers[i].inputs[j] <= layer) return &m->layers[i];
    return NULL;
}

bpt_border_kind bpt_model_border(const bpt_model *m, size_t layer, const bpt_layer **by) {
    const bpt_layer *bypass = find_bypass(m, layer);
    const size_t n_segments = segments_up_to(m, layer);
    if (layer + 1 == m->n_layers) return BPT_BORDER_AT_END;
    if (bypass) {
        if (by) *by = bypass;
        return BPT_BORDER_BYPASSED;
    }
    return n_segments == 0 || n_segments == m->segments.n ? BPT_BORDER_NO_WEIGHTS
                                                          : BPT_BORDER_POSSIBLE;
}

/* ---- by name ---- */

static void hint_at_borders(const bpt_model *m) {
    char list[BPT_ERROR_HINT_SIZE / 2] = "";
    for (size_t i = 0; i + 1 < m->n_layers; i++)
        if (bpt_model_border(m, i, NULL) == BPT_BORDER_POSSIBLE)
            bpt_list_add(list, sizeof list, m->layers[i + 1].name);
    if (list[0])
        bpt_hint("it can be parted before %s", list);
    else
        bpt_hint("it cannot be parted anywhere");
}

static bpt_status fail_impossible(const bpt_model *m, const bpt_layer *first, const char *why) {
    const bpt_status status = bpt_fail(BPT_EUSAGE, "model %s cannot be parted before layer %s: %s",
                                       m->name, first->name, why);
    hint_at_borders(m);
    return status;
}

bpt_status bpt_model_find_border(const bpt_model *m, const char *name, size_t *layer) {
    const bpt_layer *by = NULL;
    char why[BPT_NAME_SIZE + 64];
    size_t i;
    BPT_TRY(bpt_model_find_layer(m, name, &i));
    if (i == 0) return fail_impossible(m, &m->layers[i], "it is the first one");
    switch (bpt_model_border(m, i - 1, &by)) {
    case BPT_BORDER_BYPASSED:
        snprintf(why, sizeof why, "layer %s takes something from before it besides what %s gives",
                 by->name, m->layers[i - 1].name);
        return fail_impossible(m, &m->layers[i], why);
    case BPT_BORDER_NO_WEIGHTS:
        return fail_impossible(m, &m->layers[i], "one of the parts would have no weights");
    case BPT_BORDER_AT_END: /* not before a layer */
    case BPT_BORDER_POSSIBLE:
        break;
    }
    *layer = i - 1;
    return BPT_OK;
}

/* ---- parts ---- */

/* A range of layers, and of their segments. */
typedef struct {
    size_t begin, end, first_segment, n_segments;
} range;

static range range_of(const bpt_model *m, size_t layer, bpt_model_role role) {
    const size_t n_head = segments_up_to(m, layer);
    if (role == BPT_MODEL_HEAD) return (range){0, layer + 1, 0, n_head};
    return (range){layer + 1, m->n_layers, n_head, m->segments.n - n_head};
}

/* Activations behind a layer that multiplies have the type that the network has for them, those
 * behind others that of their first input; of an add that a layer before it does, of that layer. */
static bool is_typed(const bpt_model *m, size_t layer) {
    for (;;) {
        const bpt_layer *l = &m->layers[layer];
        if (l->kind == &bpt_layer_conv || l->kind == &bpt_layer_fc) return true;
        const size_t input = l->inputs[l->fusion.done ? l->fusion.own : 0];
        if (input == 0) return false;
        layer = input - 1;
    }
}

static bpt_status copy_segments(const bpt_model *whole, range r, bpt_model *part) {
    const bpt_segments *from = &whole->segments;
    bpt_segments *to = &part->segments;
    BPT_TRY(BPT_NEW("table of weights", r.n_segments, &to->items));
    to->n = to->capacity = r.n_segments;
    to->n_before = r.first_segment;
    part->first_element = from->items[r.first_segment].offset;
    memcpy(to->items, from->items + r.first_segment, to->n * sizeof *to->items);
    for (size_t i = 0; i < to->n; i++) {
        to->items[i].offset -= part->first_element;
        to->n_elements += to->items[i].count;
    }
    return BPT_OK;
}

/* @param l a copy of the whole model's layer, whose memory it gets one by one */
static bpt_status copy_memory(const bpt_layer *from, bpt_layer *l) {
    const size_t n = from->n_inputs;
    BPT_TRY(bpt_alloc("layer settings", 1, from->kind->config_bytes, &l->config));
    BPT_TRY(BPT_NEW("layer inputs", n, &l->inputs));
    BPT_TRY(BPT_NEW("input shapes", n, &l->ins));
    if (from->kind->config_bytes) memcpy(l->config, from->config, from->kind->config_bytes);
    memcpy(l->inputs, from->inputs, n * sizeof *l->inputs);
    memcpy(l->ins, from->ins, n * sizeof *l->ins);
    return BPT_OK;
}

static bpt_status copy_layers(const bpt_model *whole, range r, bpt_model *part) {
    BPT_TRY(BPT_NEW("layers", r.end - r.begin, &part->layers));
    for (size_t i = r.begin; i < r.end; i++) {
        bpt_layer *l = &part->layers[part->n_layers++];
        *l = whole->layers[i];
        l->config = NULL;
        l->inputs = NULL;
        l->ins = NULL;
        l->fusion = (bpt_fusion){0}; /* may reach over the border */
        l->index -= r.begin;
        l->first_segment -= r.first_segment;
        BPT_TRY(copy_memory(&whole->layers[i], l));
        for (size_t j = 0; j < l->n_inputs; j++) l->inputs[j] -= r.begin;
    }
    return BPT_OK;
}

static bpt_status fill(const bpt_model *whole, size_t layer, bpt_model_role role, bpt_model *part) {
    const range r = range_of(whole, layer, role);
    const bool tail = role == BPT_MODEL_TAIL;
    BPT_TRY(bpt_strdup(whole->name, &part->name));
    BPT_TRY(bpt_strdup(whole->source, &part->source));
    BPT_TRY(copy_segments(whole, r, part));
    BPT_TRY(copy_layers(whole, r, part));
    part->role = role;
    part->input = tail ? whole->layers[layer].out : whole->input;
    part->typed_input = tail && is_typed(whole, layer);
    part->classes = whole->classes;
    part->costs = whole->costs;
    bpt__model_fuse(part);
    return BPT_OK;
}

bpt_status bpt_model_part(const bpt_model *whole, size_t layer, bpt_model_role role,
                          bpt_model **out) {
    bpt_model *part;
    assert(whole->role == BPT_MODEL_WHOLE && role != BPT_MODEL_WHOLE && whole->n_frozen == 0);
    assert(bpt_model_border(whole, layer, NULL) == BPT_BORDER_POSSIBLE);
    BPT_TRY(BPT_NEW("part of a model", 1, &part));
    const bpt_status status = fill(whole, layer, role, part);
    if (status == BPT_OK)
        *out = part;
    else
        bpt_model_free(part);
    return status;
}
