/* The event stream of libyaml becomes a tree of nodes. Containers that are still open form a
 * stack; a node is appended to the innermost one. */
#include "base/yaml.h"

#include "base/file.h"
#include "base/memory.h"
#include "base/options.h"
#include "base/text.h"

#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <yaml.h>

/* Values: those of the costs of a network with hundreds of unlike convolutions fit. */
enum { MAX_DEPTH = 32, MAX_NODES = 1000000, MAX_KEYS = 1000, MAX_BYTES = 4 << 20 };

struct bpt_yaml_node {
    bpt_yaml_kind kind;
    int line;
    char *text;             /* of a scalar */
    bpt_yaml_node **items;  /* of a list or map */
    bpt_yaml_node **keys;   /* of a map: scalars */
    size_t n_items, n_keys; /* a map with a key that waits for its value has one key more */
    size_t items_capacity, keys_capacity;
};

struct bpt_yaml {
    char *name;
    bpt_yaml_node *root;
    size_t n_nodes;
};

static void free_node(bpt_yaml_node *n) {
    if (!n) return;
    for (size_t i = 0; i < n->n_items; i++) free_node(n->items[i]);
    for (size_t i = 0; i < n->n_keys; i++) free_node(n->keys[i]);
    bpt_free(n->items);
    bpt_free(n->keys);
    bpt_free(n->text);
    bpt_free(n);
}

static bpt_status fail_at(const bpt_yaml *doc, size_t line0, const char *text) {
    return bpt_fail(BPT_EUSAGE, "%s:%zu: %s", doc->name, line0 + 1, text);
}

static bpt_status attach_key(bpt_yaml *doc, bpt_yaml_node *map, bpt_yaml_node *key) {
    if (key->kind != BPT_YAML_SCALAR) return bpt_yaml_fail(doc, key, "a key must be a plain word");
    if (map->n_keys == MAX_KEYS)
        return bpt_yaml_fail(doc, key, "a map has more than %d keys", MAX_KEYS);
    if (bpt_yaml_find(map, key->text))
        return bpt_yaml_fail(doc, key, "\"%s\" is given twice", key->text);
    BPT_TRY(BPT_GROW("YAML keys", map->n_keys + 1, &map->keys, &map->keys_capacity));
    map->keys[map->n_keys++] = key;
    return BPT_OK;
}

/* Adds a key or a value to the innermost open container; takes over *node on success. */
static bpt_status attach(bpt_yaml *doc, bpt_yaml_node *parent, bpt_yaml_node *node) {
    if (!parent) {
        doc->root = node;
        return BPT_OK;
    }
    if (parent->kind == BPT_YAML_MAP && parent->n_keys == parent->n_items)
        return attach_key(doc, parent, node);
    BPT_TRY(BPT_GROW("YAML items", parent->n_items + 1, &parent->items, &parent->items_capacity));
    parent->items[parent->n_items++] = node;
    return BPT_OK;
}

/* @return the name after an & at this event, NULL if there is none */
static const yaml_char_t *anchor_of(const yaml_event_t *event) {
    switch (event->type) {
    case YAML_SCALAR_EVENT:
        return event->data.scalar.anchor;
    case YAML_SEQUENCE_START_EVENT:
        return event->data.sequence_start.anchor;
    case YAML_MAPPING_START_EVENT:
        return event->data.mapping_start.anchor;
    default:
        return NULL;
    }
}

static bpt_status add_node(bpt_yaml *doc, bpt_yaml_node *parent, const yaml_event_t *event,
                           bpt_yaml_kind kind, bpt_yaml_node **out) {
    const size_t line0 = event->start_mark.line;
    if (++doc->n_nodes > MAX_NODES)
        return fail_at(doc, line0, "too many values for a configuration file");
    if (anchor_of(event)) return fail_at(doc, line0, "anchors (&name) are not supported");
    bpt_yaml_node *node;
    BPT_TRY(BPT_NEW("YAML node", 1, &node));
    node->kind = kind;
    node->line = (int)line0 + 1;
    bpt_status status;
    if (kind == BPT_YAML_SCALAR) {
        const char *text = (const char *)event->data.scalar.value;
        if (strlen(text) != event->data.scalar.length) {
            status = fail_at(doc, line0, "a text must not hold a 0 byte");
            goto err_free;
        }
        BPT_TRY_GOTO(status, bpt_strdup(text, &node->text), err_free);
    }
    BPT_TRY_GOTO(status, attach(doc, parent, node), err_free);
    if (out) *out = node;
    return BPT_OK;
err_free:
    free_node(node);
    return status;
}

typedef struct {
    bpt_yaml *doc;
    bpt_yaml_node *open[MAX_DEPTH];
    int depth;
} builder;

static bpt_status open_container(builder *b, const yaml_event_t *event, bpt_yaml_kind kind) {
    if (b->depth == MAX_DEPTH) return fail_at(b->doc, event->start_mark.line, "nested too deeply");
    bpt_yaml_node *parent = b->depth ? b->open[b->depth - 1] : NULL;
    bpt_yaml_node *node = NULL;
    BPT_TRY(add_node(b->doc, parent, event, kind, &node));
    b->open[b->depth++] = node;
    return BPT_OK;
}

static bpt_status take_event(builder *b, const yaml_event_t *event) {
    switch (event->type) {
    case YAML_SCALAR_EVENT:
        return add_node(b->doc, b->depth ? b->open[b->depth - 1] : NULL, event, BPT_YAML_SCALAR,
                        NULL);
    case YAML_SEQUENCE_START_EVENT:
        return open_container(b, event, BPT_YAML_LIST);
    case YAML_MAPPING_START_EVENT:
        return open_container(b, event, BPT_YAML_MAP);
    case YAML_SEQUENCE_END_EVENT:
    case YAML_MAPPING_END_EVENT:
        b->depth--;
        return BPT_OK;
    case YAML_ALIAS_EVENT:
        return fail_at(b->doc, event->start_mark.line, "aliases (*name) are not supported");
    case YAML_DOCUMENT_START_EVENT:
        if (b->doc->root)
            return fail_at(b->doc, event->start_mark.line, "a second document begins");
        return BPT_OK;
    default:
        return BPT_OK;
    }
}

/* Bytes that are no text have no line in libyaml, only an offset. */
static size_t problem_line(const yaml_parser_t *parser, const char *text, size_t size) {
    if (parser->error != YAML_READER_ERROR) return parser->problem_mark.line;
    size_t line = 0;
    for (size_t i = 0; i < size && i < parser->problem_offset; i++) line += text[i] == '\n';
    return line;
}

/* Whether what the scanner cannot read is a tab with nothing but spaces before it. Elsewhere tabs
 * are allowed, also at the beginning of a line within brackets. */
static bool is_at_indenting_tab(const yaml_parser_t *parser, const char *text, size_t size) {
    size_t line = parser->problem_mark.line, i = 0;
    if (parser->error != YAML_SCANNER_ERROR) return false;
    for (; line > 0 && i < size; i++) line -= text[i] == '\n';
    const size_t begin = i;
    while (i < size && text[i] == ' ') i++;
    return i < size && text[i] == '\t' && parser->problem_mark.column == i - begin;
}

/* What libyaml says of a tab names no tab. */
static const char *problem_text(const yaml_parser_t *parser, const char *text, size_t size) {
    if (is_at_indenting_tab(parser, text, size))
        return "a tab at the beginning of the line: YAML indents by spaces";
    return parser->problem ? parser->problem : "not valid YAML";
}

static bpt_status build_tree(bpt_yaml *doc, yaml_parser_t *parser, const char *text, size_t size) {
    builder b = {.doc = doc};
    bool over = false;
    while (!over) {
        yaml_event_t event;
        if (!yaml_parser_parse(parser, &event)) {
            if (parser->error == YAML_MEMORY_ERROR)
                return bpt_fail(BPT_ENOMEM, "%s: out of memory", doc->name);
            return fail_at(doc, problem_line(parser, text, size), problem_text(parser, text, size));
        }
        over = event.type == YAML_STREAM_END_EVENT;
        const bpt_status status = take_event(&b, &event);
        yaml_event_delete(&event);
        BPT_TRY(status);
    }
    return BPT_OK;
}

bpt_status bpt_yaml_parse(const char *name, const char *text, size_t size, bpt_yaml **out) {
    bpt_yaml *doc;
    BPT_TRY(BPT_NEW("YAML document", 1, &doc));
    bpt_status status;
    BPT_TRY_GOTO(status, bpt_strdup(name, &doc->name), err_free);
    yaml_parser_t parser;
    if (!yaml_parser_initialize(&parser)) {
        status = bpt_fail(BPT_ENOMEM, "%s: out of memory", name);
        goto err_free;
    }
    yaml_parser_set_input_string(&parser, (const unsigned char *)text, size);
    status = build_tree(doc, &parser, text, size);
    yaml_parser_delete(&parser);
    if (status == BPT_OK && !doc->root) {
        status = BPT_NEW("YAML node", 1, &doc->root);
        if (status == BPT_OK) *doc->root = (bpt_yaml_node){.kind = BPT_YAML_MAP, .line = 1};
    }
    if (status != BPT_OK) goto err_free;
    *out = doc;
    return BPT_OK;
err_free:
    bpt_yaml_free(doc);
    return status;
}

bpt_status bpt_yaml_read(const char *path, char **text, size_t *size) {
    const bpt_status status = bpt_file_read(path, MAX_BYTES, text, size);
    /* A configuration that is not there, or cannot be one, is no missing data. */
    if (status == BPT_ENOENT || status == BPT_EDATA)
        return bpt_fail(BPT_EUSAGE, "%s", bpt_error_last()->text);
    return status;
}

bpt_status bpt_yaml_load(const char *path, bpt_yaml **doc) {
    char *text;
    size_t size;
    BPT_TRY(bpt_yaml_read(path, &text, &size));
    const bpt_status status = bpt_yaml_parse(path, text, size, doc);
    bpt_free(text);
    return status;
}

void bpt_yaml_free(bpt_yaml *doc) {
    if (!doc) return;
    free_node(doc->root);
    bpt_free(doc->name);
    bpt_free(doc);
}

const char *bpt_yaml_name(const bpt_yaml *doc) {
    return doc->name;
}

const bpt_yaml_node *bpt_yaml_root(const bpt_yaml *doc) {
    return doc->root;
}

bpt_yaml_kind bpt_yaml_node_kind(const bpt_yaml_node *n) {
    return n->kind;
}

int bpt_yaml_line(const bpt_yaml_node *n) {
    return n->line;
}

size_t bpt_yaml_size(const bpt_yaml_node *n) {
    return n->n_items;
}

const bpt_yaml_node *bpt_yaml_at(const bpt_yaml_node *n, size_t i) {
    return n->items[i];
}

const char *bpt_yaml_key(const bpt_yaml_node *map, size_t i) {
    return map->keys[i]->text;
}

const char *bpt_yaml_text(const bpt_yaml_node *n) {
    return n->text;
}

const bpt_yaml_node *bpt_yaml_find(const bpt_yaml_node *map, const char *key) {
    for (size_t i = 0; i < map->n_keys; i++)
        if (strcmp(map->keys[i]->text, key) == 0) return map->items[i];
    return NULL;
}

bpt_status bpt_yaml_fail(const bpt_yaml *doc, const bpt_yaml_node *n, const char *format, ...) {
    char text[BPT_ERROR_TEXT_SIZE];
    va_list args;
    va_start(args, format);
    vsnprintf(text, sizeof text, format, args);
    va_end(args);
    return fail_at(doc, (size_t)n->line - 1, text);
}

static void hint_known(const char *const *known, size_t n_known) {
    char list[BPT_ERROR_HINT_SIZE / 2] = "";
    for (size_t i = 0; i < n_known; i++) bpt_list_add(list, sizeof list, known[i]);
    bpt_hint("known here: %s", list);
}

bpt_status bpt_yaml_check_keys(const bpt_yaml *doc, const bpt_yaml_node *n, const char *what,
                               const char *const *known, size_t n_known) {
    if (n->kind != BPT_YAML_MAP)
        return bpt_yaml_fail(doc, n, "%s must be a map (name: value)", what);
    for (size_t i = 0; i < n->n_items; i++) {
        const char *key = n->keys[i]->text;
        size_t k = 0;
        while (k < n_known && strcmp(known[k], key) != 0) k++;
        if (k < n_known) continue;
        const char *nearest = bpt_nearest(key, known, n_known);
        const bpt_status status =
            bpt_yaml_fail(doc, n->keys[i], "%s has no field \"%s\"", what, key);
        if (nearest)
            bpt_hint("did you mean \"%s\"?", nearest);
        else
            hint_known(known, n_known);
        return status;
    }
    return BPT_OK;
}

bpt_status bpt_yaml_get_int(const bpt_yaml *doc, const bpt_yaml_node *n, const char *what,
                            int64_t min, int64_t max, int64_t *out) {
    char *end = NULL;
    errno = 0;
    const long long value = n->text && *n->text ? strtoll(n->text, &end, 10) : 0;
    if (!end || *end || errno) return bpt_yaml_fail(doc, n, "%s must be a whole number", what);
    if (value < min || value > max)
        return bpt_yaml_fail(doc, n, "%s is %lld, outside of %" PRId64 " to %" PRId64, what, value,
                             min, max);
    *out = value;
    return BPT_OK;
}

bpt_status bpt_yaml_get_real(const bpt_yaml *doc, const bpt_yaml_node *n, const char *what,
                             double min, double max, double *out) {
    char *end = NULL;
    const double value = n->text && *n->text ? strtod(n->text, &end) : 0.0;
    if (!end || *end || !isfinite(value)) return bpt_yaml_fail(doc, n, "%s must be a number", what);
    if (value < min || value > max)
        return bpt_yaml_fail(doc, n, "%s is %g, outside of %g to %g", what, value, min, max);
    *out = value;
    return BPT_OK;
}

bpt_status bpt_yaml_get_bool(const bpt_yaml *doc, const bpt_yaml_node *n, const char *what,
                             bool *out) {
    const bool yes = n->text && strcmp(n->text, "true") == 0;
    if (!yes && !(n->text && strcmp(n->text, "false") == 0))
        return bpt_yaml_fail(doc, n, "%s must be true or false", what);
    *out = yes;
    return BPT_OK;
}

bpt_status bpt_yaml_get_text(const bpt_yaml *doc, const bpt_yaml_node *n, const char *what,
                             const char **out) {
    if (!n->text) return bpt_yaml_fail(doc, n, "%s must be one word or text", what);
    *out = n->text;
    return BPT_OK;
}

/* Between single quotes every character but the quote itself stands for itself. */
void bpt_yaml_put_text(FILE *out, const char *text) {
    putc('\'', out);
    for (; *text; text++) {
        if (*text == '\'') putc('\'', out);
        putc(*text, out);
    }
    putc('\'', out);
}
