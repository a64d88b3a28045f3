#include "base/json.h"

#include "base/file.h"
#include "base/memory.h"

#include <inttypes.h>
#include <jansson.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- writing ---- */

static void append(bpt_json_writer *w, const char *text, size_t length) {
    if (w->status != BPT_OK) return;
    w->status = BPT_GROW("JSON text", w->length + length + 1, &w->text, &w->capacity);
    if (w->status != BPT_OK) return;
    memcpy(w->text + w->length, text, length);
    w->length += length;
    w->text[w->length] = '\0';
}

static void append_text(bpt_json_writer *w, const char *text) {
    append(w, text, strlen(text));
}

/* @return bytes of the UTF-8 sequence at p (RFC 3629: shortest form, no surrogates), 0 if it is
 * none */
static size_t utf8_length(const unsigned char *p) {
    if (p[0] < 0x80) return 1;
    if (p[0] < 0xC2 || p[0] > 0xF4) return 0;
    const unsigned char low = p[0] == 0xE0 ? 0xA0 : p[0] == 0xF0 ? 0x90 : 0x80;
    const unsigned char high = p[0] == 0xED ? 0x9F : p[0] == 0xF4 ? 0x8F : 0xBF;
    if (p[1] < low || p[1] > high) return 0;
    const size_t length = p[0] >= 0xF0 ? 4 : p[0] >= 0xE0 ? 3 : 2;
    for (size_t i = 2; i < length; i++)
        if ((p[i] & 0xC0) != 0x80) return 0;
    return length;
}

/* Names of files and hosts are any bytes; those that are no UTF-8 become U+FFFD, since a reader
 * refuses the whole text otherwise. */
static void append_quoted(bpt_json_writer *w, const char *text) {
    append(w, "\"", 1);
    for (const char *p = text; *p;) {
        const unsigned char c = (unsigned char)*p;
        const size_t length = utf8_length((const unsigned char *)p);
        char escape[8];
        if (length == 0) {
            append_text(w, "\xEF\xBF\xBD");
        } else if (c == '"' || c == '\\' || c < 0x20) {
            snprintf(escape, sizeof escape, c < 0x20 ? "\\u%04x" : "\\%c", c);
            append_text(w, c == '\n' ? "\\n" : escape);
        } else {
            append(w, p, length);
        }
        p += length ? length : 1;
    }
    append(w, "\"", 1);
}

/* Everything that comes before a value: the comma and the key. */
static void begin_item(bpt_json_writer *w, const char *key) {
    if (w->has_items[w->depth]) append(w, ", ", 2);
    w->has_items[w->depth] = true;
    if (!key) return;
    append_quoted(w, key);
    append(w, ": ", 2);
}

static void open_nested(bpt_json_writer *w, const char *key, const char *bracket) {
    begin_item(w, key);
    append_text(w, bracket);
    if (w->depth == BPT_JSON_DEPTH) {
        w->status = bpt_fail(BPT_EFULL, "JSON text is nested deeper than %d", BPT_JSON_DEPTH);
        return;
    }
    w->has_items[++w->depth] = false;
}

static void close_nested(bpt_json_writer *w, const char *bracket) {
    if (w->depth > 0) w->depth--;
    append_text(w, bracket);
}

void bpt_json_open_object(bpt_json_writer *w, const char *key) {
    open_nested(w, key, "{");
}

void bpt_json_open_array(bpt_json_writer *w, const char *key) {
    open_nested(w, key, "[");
}

void bpt_json_close_object(bpt_json_writer *w) {
    close_nested(w, "}");
}

void bpt_json_close_array(bpt_json_writer *w) {
    close_nested(w, "]");
}

void bpt_json_put_u64(bpt_json_writer *w, const char *key, uint64_t value) {
    char text[32];
    snprintf(text, sizeof text, "%" PRIu64, value);
    begin_item(w, key);
    append_text(w, text);
}

void bpt_json_put_i64(bpt_json_writer *w, const char *key, int64_t value) {
    char text[32];
    snprintf(text, sizeof text, "%" PRId64, value);
    begin_item(w, key);
    append_text(w, text);
}

void bpt_json_put_real(bpt_json_writer *w, const char *key, double value) {
    char text[40];
    if (!isfinite(value)) {
        bpt_json_put_null(w, key);
        return;
    }
    snprintf(text, sizeof text, "%.9g", value);
    if (strtod(text, NULL) != value) snprintf(text, sizeof text, "%.17g", value);
    begin_item(w, key);
    append_text(w, text);
}

void bpt_json_put_text(bpt_json_writer *w, const char *key, const char *value) {
    begin_item(w, key);
    append_quoted(w, value);
}

void bpt_json_put_bool(bpt_json_writer *w, const char *key, bool value) {
    begin_item(w, key);
    append_text(w, value ? "true" : "false");
}

void bpt_json_put_null(bpt_json_writer *w, const char *key) {
    begin_item(w, key);
    append_text(w, "null");
}

bpt_status bpt_json_end_text(bpt_json_writer *w, const char **text, size_t *length) {
    BPT_TRY(w->status);
    *text = w->length ? w->text : "";
    *length = w->length;
    return BPT_OK;
}

void bpt_json_reset(bpt_json_writer *w) {
    w->length = 0;
    w->depth = 0;
    w->has_items[0] = false;
    w->status = BPT_OK;
}

void bpt_json_free(bpt_json_writer *w) {
    bpt_free(w->text);
    *w = (bpt_json_writer){0};
}

/* ---- reading: a bpt_json is a json_t under another name ---- */

struct bpt_json_doc {
    json_t *root;
    char *what;
};

static const json_t *native(const bpt_json *v) {
    return (const json_t *)v;
}

static const bpt_json *wrap(const json_t *v) {
    return (const bpt_json *)v;
}

bpt_status bpt_json_parse(const char *what, const char *text, size_t length, bpt_json_doc **doc) {
    bpt_json_doc *d;
    BPT_TRY(BPT_NEW("JSON document", 1, &d));
    bpt_status status;
    BPT_TRY_GOTO(status, bpt_strdup(what, &d->what), err_free);
    json_error_t error;
    d->root = json_loadb(text, length, JSON_REJECT_DUPLICATES | JSON_DECODE_ANY, &error);
    if (!d->root) {
        status =
            bpt_fail(BPT_EDATA, "%s: not valid JSON, line %d: %s", what, error.line, error.text);
        goto err_free;
    }
    *doc = d;
    return BPT_OK;
err_free:
    bpt_json_doc_free(d);
    return status;
}

bpt_status bpt_json_load(const char *path, size_t max_bytes, bpt_json_doc **doc) {
    char *text;
    size_t size;
    BPT_TRY(bpt_file_read(path, max_bytes, &text, &size));
    const bpt_status status = bpt_json_parse(path, text, size, doc);
    bpt_free(text);
    return status;
}

void bpt_json_doc_free(bpt_json_doc *doc) {
    if (!doc) return;
    json_decref(doc->root);
    bpt_free(doc->what);
    bpt_free(doc);
}

const bpt_json *bpt_json_root(const bpt_json_doc *doc) {
    return wrap(doc->root);
}

bool bpt_json_is_object(const bpt_json *v) {
    return json_is_object(native(v));
}

bool bpt_json_is_array(const bpt_json *v) {
    return json_is_array(native(v));
}

size_t bpt_json_size(const bpt_json *v) {
    return bpt_json_is_array(v) ? json_array_size(native(v)) : json_object_size(native(v));
}

const bpt_json *bpt_json_at(const bpt_json *array, size_t i) {
    return wrap(json_array_get(native(array), i));
}

const bpt_json *bpt_json_member(const bpt_json *object, size_t i, const char **key) {
    json_t *o = (json_t *)native(object);
    void *it = json_object_iter(o);
    for (; it && i > 0; i--) it = json_object_iter_next(o, it);
    if (!it) return NULL;
    *key = json_object_iter_key(it);
    return wrap(json_object_iter_value(it));
}

const bpt_json *bpt_json_find(const bpt_json *object, const char *key) {
    return wrap(json_object_get(native(object), key));
}

static const json_t *pick(const bpt_json *v, const char *key) {
    return native(key ? bpt_json_find(v, key) : v);
}

static bpt_status wrong_type(const bpt_json_doc *d, const json_t *v, const char *key,
                             const char *expected) {
    const char *name = key ? key : "value";
    if (!v) return bpt_fail(BPT_EDATA, "%s: \"%s\" is missing", d->what, name);
    return bpt_fail(BPT_EDATA, "%s: \"%s\" is not %s", d->what, name, expected);
}

bpt_status bpt_json_get_object(const bpt_json_doc *d, const bpt_json *v, const char *key,
                               const bpt_json **out) {
    const json_t *value = pick(v, key);
    if (!json_is_object(value)) return wrong_type(d, value, key, "an object");
    *out = wrap(value);
    return BPT_OK;
}

bpt_status bpt_json_get_array(const bpt_json_doc *d, const bpt_json *v, const char *key,
                              const bpt_json **out) {
    const json_t *value = pick(v, key);
    if (!json_is_array(value)) return wrong_type(d, value, key, "an array");
    *out = wrap(value);
    return BPT_OK;
}

bpt_status bpt_json_get_u64(const bpt_json_doc *d, const bpt_json *v, const char *key, uint64_t min,
                            uint64_t max, uint64_t *out) {
    const json_t *value = pick(v, key);
    if (!json_is_integer(value)) return wrong_type(d, value, key, "a whole number");
    const json_int_t number = json_integer_value(value);
    if (number < 0 || (uint64_t)number < min || (uint64_t)number > max)
        return bpt_fail(
            BPT_EDATA, "%s: \"%s\" is %" JSON_INTEGER_FORMAT ", outside of %" PRIu64 " to %" PRIu64,
            d->what, key ? key : "value", number, min, max);
    *out = (uint64_t)number;
    return BPT_OK;
}

bpt_status bpt_json_get_real(const bpt_json_doc *d, const bpt_json *v, const char *key,
                             double *out) {
    const json_t *value = pick(v, key);
    if (!json_is_number(value)) return wrong_type(d, value, key, "a number");
    *out = json_number_value(value);
    return BPT_OK;
}

bpt_status bpt_json_get_text(const bpt_json_doc *d, const bpt_json *v, const char *key,
                             const char **out) {
    const json_t *value = pick(v, key);
    if (!json_is_string(value)) return wrong_type(d, value, key, "a text");
    *out = json_string_value(value);
    return BPT_OK;
}

bpt_status bpt_json_get_bool(const bpt_json_doc *d, const bpt_json *v, const char *key, bool *out) {
    const json_t *value = pick(v, key);
    if (!json_is_boolean(value)) return wrong_type(d, value, key, "true or false");
    *out = json_is_true(value);
    return BPT_OK;
}
