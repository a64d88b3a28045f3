#include "tests/inner/onnx_message.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

/* Last: it needs those above, and defines fail and skip. */
#include <cmocka.h>

typedef struct {
    const uint8_t *at, *end;
} cursor;

typedef struct {
    uint64_t number, value; /* value: of a varint, or four bytes */
    cursor bytes;
} field;

static uint64_t read_varint(cursor *c) {
    uint64_t value = 0;
    for (unsigned shift = 0;; shift += 7) {
        assert_true(c->at < c->end && shift < 70);
        value |= (uint64_t)(*c->at & 0x7f) << shift;
        if (*c->at++ < 0x80) return value;
    }
}

static cursor take(cursor *c, uint64_t size) {
    assert_true(size <= (uint64_t)(c->end - c->at));
    const cursor taken = {c->at, c->at + size};
    c->at += size;
    return taken;
}

/* @return false at the end */
static bool next(cursor *c, field *f) {
    if (c->at == c->end) return false;
    const uint64_t tag = read_varint(c);
    *f = (field){.number = tag >> 3};
    switch (tag & 7) {
    case 0:
        f->value = read_varint(c);
        break;
    case 2:
        f->bytes = take(c, read_varint(c));
        break;
    case 5:
        f->bytes = take(c, 4);
        for (int i = 3; i >= 0; i--) f->value = f->value << 8 | f->bytes.at[i];
        break;
    default:
        fail_msg("field %d is of kind %d", (int)f->number, (int)(tag & 7));
    }
    return true;
}

static void copy_text(const field *f, char *text) {
    const size_t length = (size_t)(f->bytes.end - f->bytes.at);
    assert_true(length < ONNX_NAME);
    memcpy(text, f->bytes.at, length);
    text[length] = '\0';
}

static void unknown(const char *message, const field *f) {
    fail_msg("%s has a field %d", message, (int)f->number);
}

static void read_tensor(cursor c, onnx_tensor *t) {
    *t = (onnx_tensor){0};
    for (field f; next(&c, &f);) switch (f.number) {
        case 1:
            assert_true(t->n_dims < ONNX_DIMS);
            t->dims[t->n_dims++] = (int64_t)f.value;
            break;
        case 2:
            t->type = (int64_t)f.value;
            break;
        case 8:
            copy_text(&f, t->name);
            break;
        case 9:
            t->raw = f.bytes.at;
            t->raw_bytes = (size_t)(f.bytes.end - f.bytes.at);
            break;
        default:
            unknown("TensorProto", &f);
        }
}

static void read_attribute(cursor c, onnx_attribute *a) {
    uint32_t bits;
    for (field f; next(&c, &f);) switch (f.number) {
        case 1:
            copy_text(&f, a->name);
            break;
        case 2:
            bits = (uint32_t)f.value;
            memcpy(&a->f, &bits, sizeof bits);
            break;
        case 3:
            a->i = (int64_t)f.value;
            break;
        case 8:
            assert_true(a->n_ints < ONNX_DIMS);
            a->ints[a->n_ints++] = (int64_t)f.value;
            break;
        case 20:
            a->type = (int64_t)f.value;
            break;
        default:
            unknown("AttributeProto", &f);
        }
}

static void read_node(cursor c, onnx_node *n) {
    for (field f; next(&c, &f);) switch (f.number) {
        case 1:
            assert_true(n->n_inputs < ONNX_INPUTS);
            copy_text(&f, n->inputs[n->n_inputs++]);
            break;
        case 2:
            assert_string_equal(n->output, ""); /* one alone */
            copy_text(&f, n->output);
            break;
        case 3:
            copy_text(&f, n->name);
            break;
        case 4:
            copy_text(&f, n->op);
            break;
        case 5:
            assert_true(n->n_attributes < ONNX_ATTRIBUTES);
            read_attribute(f.bytes, &n->attributes[n->n_attributes++]);
            break;
        default:
            unknown("NodeProto", &f);
        }
}

static void read_shape(cursor c, onnx_info *info) {
    for (field f, d; next(&c, &f);) {
        assert_int_equal(f.number, 1);
        assert_true(info->n_dims < ONNX_DIMS && next(&f.bytes, &d));
        info->dims[info->n_dims++] = d.number == 1 ? (int64_t)d.value : -1;
        if (d.number == 2) copy_text(&d, info->dim_name);
        assert_false(next(&f.bytes, &d));
    }
}

static void read_tensor_type(cursor c, onnx_info *info) {
    for (field f; next(&c, &f);) switch (f.number) {
        case 1:
            info->type = (int64_t)f.value;
            break;
        case 2:
            read_shape(f.bytes, info);
            break;
        default:
            unknown("TypeProto.Tensor", &f);
        }
}

static void read_info(cursor c, onnx_info *info) {
    field type;
    assert_string_equal(info->name, ""); /* one alone */
    for (field f; next(&c, &f);) switch (f.number) {
        case 1:
            copy_text(&f, info->name);
            break;
        case 2:
            assert_true(next(&f.bytes, &type) && type.number == 1);
            read_tensor_type(type.bytes, info);
            assert_false(next(&f.bytes, &type));
            break;
        case 3:
            copy_text(&f, info->text);
            break;
        default:
            unknown("ValueInfoProto", &f);
        }
}

static void *grow(void *list, size_t n, size_t size) {
    char *grown = realloc(list, (n + 1) * size);
    assert_non_null(grown);
    memset(grown + n * size, 0, size);
    return grown;
}

static void read_graph(cursor c, onnx_model *m) {
    for (field f; next(&c, &f);) switch (f.number) {
        case 1:
            m->nodes = grow(m->nodes, m->n_nodes, sizeof *m->nodes);
            read_node(f.bytes, &m->nodes[m->n_nodes++]);
            break;
        case 2:
            copy_text(&f, m->graph);
            break;
        case 5:
            m->tensors = grow(m->tensors, m->n_tensors, sizeof *m->tensors);
            read_tensor(f.bytes, &m->tensors[m->n_tensors++]);
            break;
        case 11:
            read_info(f.bytes, &m->input);
            break;
        case 12:
            read_info(f.bytes, &m->output);
            break;
        default:
            unknown("GraphProto", &f);
        }
}

static void read_entry(cursor c, onnx_entry *e) {
    for (field f; next(&c, &f);) {
        assert_true(f.number == 1 || f.number == 2);
        copy_text(&f, f.number == 1 ? e->key : e->value);
    }
}

static void read_operators(cursor c, onnx_model *m) {
    for (field f; next(&c, &f);) {
        assert_int_equal(f.number, 2); /* of the domain without a name */
        m->operators = (int64_t)f.value;
    }
}

onnx_model *onnx_read(const uint8_t *file, size_t size) {
    onnx_model *m = calloc(1, sizeof *m);
    cursor c = {file, file + size};
    assert_non_null(m);
    for (field f; next(&c, &f);) switch (f.number) {
        case 1:
            m->format = (int64_t)f.value;
            break;
        case 2:
            copy_text(&f, m->producer);
            break;
        case 3:
            copy_text(&f, m->version);
            break;
        case 7:
            read_graph(f.bytes, m);
            break;
        case 8:
            read_operators(f.bytes, m);
            break;
        case 14:
            assert_true(m->n_entries < ONNX_ENTRIES);
            read_entry(f.bytes, &m->entries[m->n_entries++]);
            break;
        default:
            unknown("ModelProto", &f);
        }
    return m;
}

void onnx_free(onnx_model *m) {
    free(m->nodes);
    free(m->tensors);
    free(m);
}

const onnx_attribute *onnx_find(const onnx_node *node, const char *name) {
    for (int i = 0; i < node->n_attributes; i++)
        if (strcmp(node->attributes[i].name, name) == 0) return &node->attributes[i];
    return NULL;
}
