/* The tree of a model's file becomes a model without shapes. */
#include "base/memory.h"
#include "base/options.h"
#include "base/text.h"
#include "inner/models/model_parts.h"

#include <assert.h>
#include <ctype.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

enum { MAX_LAYERS = 1024, MAX_CLASSES = 1 << 20, MAX_FIELDS = 15 };

#define NAME_HINT "without a name a layer is called by its kind and number: conv1, relu2"

/* @return @p status, whose error was recorded just now */
static bpt_status fail_with_hint(bpt_status status, const char *hint) {
    bpt_hint("%s", hint);
    return status;
}

/* ---- the head of the file ---- */

static bpt_status find_required(const bpt_yaml *doc, const char *key, const bpt_yaml_node **n) {
    *n = bpt_yaml_find(bpt_yaml_root(doc), key);
    if (*n) return BPT_OK;
    const bpt_status status = bpt_yaml_fail(doc, bpt_yaml_root(doc), "%s is missing", key);
    bpt_hint("a model has the keys name, input, classes and layers");
    return status;
}

static bpt_status read_input(const bpt_yaml *doc, bpt_shape *shape) {
    const bpt_yaml_node *n;
    BPT_TRY(find_required(doc, "input", &n));
    if (bpt_yaml_node_kind(n) != BPT_YAML_LIST || bpt_yaml_size(n) != 3)
        return fail_with_hint(
            bpt_yaml_fail(doc, n, "input must be a list [channels, height, width]"),
            "e.g. input: [3, 32, 32]");
    int64_t *const into[] = {&shape->c, &shape->h, &shape->w};
    for (size_t i = 0; i < 3; i++)
        BPT_TRY(bpt_yaml_get_int(doc, bpt_yaml_at(n, i), "input", 1, BPT__MAX_ACTIVATION, into[i]));
    return BPT_OK;
}

static bpt_status apply_override(bpt_model *m, const bpt_model_override *override) {
    if (override) {
        if (override->input.c) m->input.c = override->input.c;
        if (override->input.h) m->input.h = override->input.h;
        if (override->input.w) m->input.w = override->input.w;
        if (override->classes) m->classes = override->classes;
    }
    if (!bpt__shape_is_allowed(m->input))
        return bpt_fail(BPT_EUSAGE,
                        "%s: the input %" PRId64 "x%" PRId64 "x%" PRId64
                        " is empty or larger than %d values",
                        m->source, m->input.c, m->input.h, m->input.w, BPT__MAX_ACTIVATION);
    if (m->classes < 1 || m->classes > MAX_CLASSES)
        return bpt_fail(BPT_EUSAGE, "%s: %" PRId64 " classes, outside of 1 to %d", m->source,
                        m->classes, MAX_CLASSES);
    return BPT_OK;
}

static bpt_status read_head(bpt_model *m, const bpt_yaml *doc, const bpt_model_override *override) {
    static const char *const keys[] = {"name", "input", "classes", "layers"};
    const bpt_yaml_node *n;
    const char *name;
    BPT_TRY(bpt_yaml_check_keys(doc, bpt_yaml_root(doc), "a model", keys, 4));
    BPT_TRY(find_required(doc, "name", &n));
    BPT_TRY(bpt_yaml_get_text(doc, n, "name", &name));
    BPT_TRY(bpt_strdup(name, &m->name));
    BPT_TRY(read_input(doc, &m->input));
    BPT_TRY(find_required(doc, "classes", &n));
    BPT_TRY(bpt_yaml_get_int(doc, n, "classes", 1, MAX_CLASSES, &m->classes));
    return apply_override(m, override);
}

/* ---- layers ---- */

static const bpt_layer_kind *find_kind(const char *name) {
    size_t n;
    const bpt_layer_kind *const *kinds = bpt_layer_kinds(&n);
    for (size_t i = 0; i < n; i++)
        if (strcmp(kinds[i]->name, name) == 0) return kinds[i];
    return NULL;
}

/* What files of other systems have that has another name here, or none. @return NULL: not known */
static const char *known_elsewhere(const char *name) {
    static const struct {
        const char *name, *hint;
    } layers[] = {
        {"dense", "a fully connected layer is called fc"},
        {"linear", "a fully connected layer is called fc"},
        {"conv2d", "a convolution is called conv"},
        {"flatten", "leave it out: fc takes all values of its input"},
        {"softmax",
         "leave it out: it is behind the last layer, with the loss, and not written down"},
        {"residual", "name the layers that are added, e.g. \"- add: {input: [a, b]}\""},
    };
    for (size_t i = 0; i < sizeof layers / sizeof *layers; i++)
        if (strcasecmp(name, layers[i].name) == 0) return layers[i].hint;
    return NULL;
}

static bpt_status fail_unknown_kind(const bpt_yaml *doc, const bpt_yaml_node *item,
                                    const char *name) {
    enum { MAX_KINDS = 32 };
    const char *names[MAX_KINDS];
    char list[BPT_ERROR_HINT_SIZE / 2] = "";
    size_t n;
    const bpt_layer_kind *const *kinds = bpt_layer_kinds(&n);
    if (n > MAX_KINDS) n = MAX_KINDS;
    for (size_t i = 0; i < n; i++) {
        names[i] = kinds[i]->name;
        bpt_list_add(list, sizeof list, names[i]);
    }
    const char *nearest = bpt_nearest(name, names, n);
    const bpt_status status = bpt_yaml_fail(doc, item, "there is no kind of layer \"%s\"", name);
    if (known_elsewhere(name))
        bpt_hint("%s; the kinds are %s", known_elsewhere(name), list);
    else if (nearest)
        bpt_hint("did you mean \"%s\"? the kinds are %s", nearest, list);
    else
        bpt_hint("the kinds are %s", list);
    return status;
}

/* Splits an item of the list into its kind and its map of fields (NULL for a bare name). */
static bpt_status split_item(const bpt_yaml *doc, const bpt_yaml_node *item,
                             const bpt_layer_kind **kind, const bpt_yaml_node **fields) {
    const char *name = bpt_yaml_text(item);
    *fields = NULL;
    if (!name) {
        if (bpt_yaml_node_kind(item) != BPT_YAML_MAP || bpt_yaml_size(item) != 1)
            return fail_with_hint(bpt_yaml_fail(doc, item,
                                                "a layer is a kind, or one kind with its fields: "
                                                "\"- relu\", \"- maxpool: {kernel: 2}\""),
                                  "each layer is an item of the list with a dash of its own");
        name = bpt_yaml_key(item, 0);
        *fields = bpt_yaml_at(item, 0);
    }
    *kind = find_kind(name);
    return *kind ? BPT_OK : fail_unknown_kind(doc, item, name);
}

static bool is_layer_name(const char *name) {
    const size_t n = strlen(name);
    if (n == 0 || n >= sizeof((bpt_layer *)NULL)->name) return false;
    for (const char *p = name; *p; p++)
        if (!isalnum((unsigned char)*p) && *p != '-' && *p != '_') return false;
    return true;
}

/* What else tasks and inputs are called by. */
static bool is_taken(const char *name) {
    static const char *const taken[] = {"input", "loss", "border", "gradients"};
    for (size_t i = 0; i < sizeof taken / sizeof *taken; i++)
        if (strcmp(name, taken[i]) == 0) return true;
    return false;
}

/* The name that is given, else the kind and the number of layers of this kind up to this one. */
static bpt_status name_layer(const bpt_model *m, bpt_layer *l, const bpt_yaml *doc,
                             const bpt_yaml_node *fields) {
    const bpt_yaml_node *n = fields ? bpt_yaml_find(fields, "name") : NULL;
    if (n) {
        const char *name;
        BPT_TRY(bpt_yaml_get_text(doc, n, "the name of a layer", &name));
        if (!is_layer_name(name))
            return fail_with_hint(
                bpt_yaml_fail(doc, n,
                              "layer name \"%s\": letters, digits, - and _ are allowed, "
                              "%zu of them at most",
                              name, sizeof l->name - 1),
                NAME_HINT);
        if (is_taken(name))
            return fail_with_hint(
                bpt_yaml_fail(doc, n, "a layer cannot be called %s: that is the model's", name),
                NAME_HINT);
        snprintf(l->name, sizeof l->name, "%s", name);
    } else {
        int number = 1;
        for (const bpt_layer *other = m->layers; other != l; other++)
            if (other->kind == l->kind) number++;
        snprintf(l->name, sizeof l->name, "%.16s%d", l->kind->name, number);
    }
    for (const bpt_layer *other = m->layers; other != l; other++)
        if (strcmp(other->name, l->name) == 0)
            return fail_with_hint(
                bpt_fail(BPT_EUSAGE, "%s:%d: layer %s: line %d has a layer of this name already",
                         m->source, l->line, l->name, other->line),
                "give each layer a name of its own; without one it is called by kind and number");
    return BPT_OK;
}

static bpt_status check_fields(const bpt_layer *l, const bpt_yaml *doc,
                               const bpt_yaml_node *fields) {
    const char *known[MAX_FIELDS + 2] = {"name", "input"};
    size_t n = 2;
    assert(l->kind->n_fields <= MAX_FIELDS);
    for (size_t i = 0; i < l->kind->n_fields; i++) known[n++] = l->kind->fields[i];
    char what[BPT_NAME_SIZE];
    snprintf(what, sizeof what, "layer %s", l->name);
    return bpt_yaml_check_keys(doc, fields, what, known, n);
}

static bpt_status read_layer(bpt_model *m, const bpt_yaml *doc, const bpt_yaml_node *item) {
    bpt_layer *l = &m->layers[m->n_layers];
    const bpt_model_scope scope = {.classes = m->classes};
    const bpt_yaml_node *fields;
    l->line = bpt_yaml_line(item);
    l->index = l->number = m->n_layers;
    BPT_TRY(split_item(doc, item, &l->kind, &fields));
    m->n_layers++;
    BPT_TRY(bpt_alloc("layer settings", 1, l->kind->config_bytes, &l->config));
    BPT_TRY(name_layer(m, l, doc, fields));
    if (fields) BPT_TRY(check_fields(l, doc, fields));
    BPT_TRY(bpt__model_read_inputs(m, l, doc, fields));
    return l->kind->parse(l, &scope, doc, fields);
}

static bpt_status read_layers(bpt_model *m, const bpt_yaml *doc) {
    const bpt_yaml_node *list;
    BPT_TRY(find_required(doc, "layers", &list));
    const size_t n = bpt_yaml_size(list);
    if (bpt_yaml_node_kind(list) != BPT_YAML_LIST || n == 0)
        return fail_with_hint(
            bpt_yaml_fail(doc, list, "layers must be a list of at least one layer"),
            "a layer a line, the last one e.g. \"- fc: {outputs: classes}\"");
    if (n > MAX_LAYERS) return bpt_yaml_fail(doc, list, "%zu layers, more than %d", n, MAX_LAYERS);
    BPT_TRY(BPT_NEW("layers", n, &m->layers));
    for (size_t i = 0; i < n; i++) BPT_TRY(read_layer(m, doc, bpt_yaml_at(list, i)));
    return bpt__model_check_uses(m);
}

bpt_status bpt__model_read(const bpt_yaml *doc, const bpt_model_override *override, bpt_model *m) {
    BPT_TRY(read_head(m, doc, override));
    return read_layers(m, doc);
}
