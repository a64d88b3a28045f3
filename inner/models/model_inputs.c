/* Which layers a layer takes its input from. */
#include "base/memory.h"
#include "base/options.h"
#include "inner/models/model_parts.h"

#include <string.h>

enum { MAX_INPUTS = 64 };

/* ---- one name ---- */

static bpt_status fail_unknown(const bpt_model *m, const bpt_layer *l, const bpt_yaml *doc,
                               const bpt_yaml_node *n, const char *name) {
    const char **names;
    BPT_TRY(BPT_NEW("layer names", m->n_layers, &names));
    size_t n_names = 0;
    for (const bpt_layer *other = m->layers; other != l; other++) names[n_names++] = other->name;
    names[n_names++] = "input";
    const char *nearest = bpt_nearest(name, names, n_names);
    const bpt_status status =
        bpt_yaml_fail(doc, n, "layer %s: no layer before it is called \"%s\"", l->name, name);
    if (nearest)
        bpt_hint("did you mean \"%s\"?", nearest);
    else
        bpt_hint("an input is the name of an earlier layer, or input for the model's own");
    bpt_free(names);
    return status;
}

static bpt_status read_input(const bpt_model *m, const bpt_layer *l, const bpt_yaml *doc,
                             const bpt_yaml_node *n, size_t *index) {
    const char *name;
    BPT_TRY(bpt_yaml_get_text(doc, n, "an input", &name));
    if (strcmp(name, "input") == 0) {
        *index = 0;
        return BPT_OK;
    }
    for (const bpt_layer *other = m->layers; other != l; other++)
        if (strcmp(other->name, name) == 0) {
            *index = (size_t)(other - m->layers) + 1;
            return BPT_OK;
        }
    return fail_unknown(m, l, doc, n, name);
}

/* ---- all of a layer ---- */

static bpt_status check_number(const bpt_layer *l, const bpt_yaml *doc, const bpt_yaml_node *n,
                               size_t n_inputs) {
    bpt_status status;
    if (!l->kind->joins && n_inputs != 1) {
        status = bpt_yaml_fail(doc, n, "layer %s: %s takes one input, not %zu", l->name,
                               l->kind->name, n_inputs);
        bpt_hint("join them in a layer before it: add (values) or concat (channels)");
        return status;
    }
    if (n_inputs > MAX_INPUTS) {
        status = bpt_yaml_fail(doc, n, "layer %s: %zu inputs, more than %d", l->name, n_inputs,
                               MAX_INPUTS);
        bpt_hint("join some of them in a layer before it");
        return status;
    }
    if (!l->kind->joins || n_inputs >= 2) return BPT_OK;
    status = bpt_yaml_fail(doc, n, "layer %s: %s takes two or more inputs", l->name, l->kind->name);
    bpt_hint("name them: \"- %s: {input: [conv1, conv2]}\"", l->kind->name);
    return status;
}

bpt_status bpt__model_read_inputs(const bpt_model *m, bpt_layer *l, const bpt_yaml *doc,
                                  const bpt_yaml_node *fields) {
    const bpt_yaml_node *n = fields ? bpt_yaml_find(fields, "input") : NULL;
    const bool is_list = n && bpt_yaml_node_kind(n) == BPT_YAML_LIST;
    const size_t n_inputs = is_list ? bpt_yaml_size(n) : 1;
    if (l->kind->joins && !n) {
        const bpt_status status = bpt_fail(BPT_EUSAGE, "%s:%d: layer %s: input is missing",
                                           bpt_yaml_name(doc), l->line, l->name);
        bpt_hint("name what it joins: \"- %s: {input: [conv1, conv2]}\"", l->kind->name);
        return status;
    }
    if (n) BPT_TRY(check_number(l, doc, n, n_inputs));
    BPT_TRY(BPT_NEW("layer inputs", n_inputs, &l->inputs));
    BPT_TRY(BPT_NEW("input shapes", n_inputs, &l->ins));
    l->n_inputs = n_inputs;
    if (!n) l->inputs[0] = (size_t)(l - m->layers); /* the layer before, or the model's input */
    for (size_t j = 0; n && j < n_inputs; j++)
        BPT_TRY(read_input(m, l, doc, is_list ? bpt_yaml_at(n, j) : n, &l->inputs[j]));
    return BPT_OK;
}

static bool is_used(const bpt_model *m, size_t layer) {
    for (size_t i = layer + 1; i < m->n_layers; i++)
        for (size_t j = 0; j < m->layers[i].n_inputs; j++)
            if (m->layers[i].inputs[j] == layer + 1) return true;
    return false;
}

bpt_status bpt__model_check_uses(const bpt_model *m) {
    for (size_t i = 0; i + 1 < m->n_layers; i++) {
        const bpt_layer *l = &m->layers[i];
        if (is_used(m, i)) continue;
        const bpt_status status = bpt_fail(
            BPT_EUSAGE, "%s:%d: layer %s: no layer takes its output, and it is not the last",
            m->source, l->line, l->name);
        bpt_hint("name it as the input of another layer, or leave it out");
        return status;
    }
    return BPT_OK;
}
