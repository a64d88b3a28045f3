#include "inner/onnx/proto.h"

#include "base/little_endian.h"
#include "base/memory.h"
#include "base/text.h"

#include <string.h>

/* How a field is written. developers.google.com/protocol-buffers, "Encoding". */
enum { WIRE_VARINT = 0, WIRE_BYTES = 2, WIRE_32 = 5 };

enum { MOST_VARINT = 10, MOST_HEAD = 2 * MOST_VARINT }; /* bytes */

/* Seven bits a byte, the lowest first. @return the byte behind */
static uint8_t *put_varint(uint8_t *at, uint64_t value) {
    for (; value >= 0x80; value >>= 7) *at++ = (uint8_t)(value | 0x80);
    *at++ = (uint8_t)value;
    return at;
}

static uint8_t *put_tag(uint8_t *at, uint32_t field, unsigned wire) {
    return put_varint(at, (uint64_t)field << 3 | wire);
}

/* Makes room for @p size bytes before those from @p at on. @return where; NULL: there is none */
static char *insert(bpt__proto *p, size_t at, size_t size) {
    if (p->status == BPT_OK)
        p->status = BPT_GROW("ONNX file", bpt_size_add(p->length, size), &p->bytes, &p->capacity);
    if (p->status != BPT_OK) return NULL;
    memmove(p->bytes + at + size, p->bytes + at, p->length - at);
    p->length += size;
    return p->bytes + at;
}

static void append(bpt__proto *p, const void *data, size_t size) {
    char *to = insert(p, p->length, size);
    if (to && size > 0) memcpy(to, data, size);
}

static void append_head(bpt__proto *p, uint32_t field, size_t size) {
    uint8_t head[MOST_HEAD], *end = put_varint(put_tag(head, field, WIRE_BYTES), size);
    append(p, head, (size_t)(end - head));
}

void bpt__proto_number(bpt__proto *p, uint32_t field, int64_t value) {
    uint8_t bytes[MOST_HEAD],
        *end = put_varint(put_tag(bytes, field, WIRE_VARINT), (uint64_t)value);
    append(p, bytes, (size_t)(end - bytes));
}

void bpt__proto_float(bpt__proto *p, uint32_t field, float value) {
    uint8_t bytes[MOST_HEAD];
    uint32_t bits;
    memcpy(&bits, &value, sizeof bits);
    const uint8_t *end = bpt_put_u32(put_tag(bytes, field, WIRE_32), bits);
    append(p, bytes, (size_t)(end - bytes));
}

void bpt__proto_bytes(bpt__proto *p, uint32_t field, const void *data, size_t size) {
    append_head(p, field, size);
    append(p, data, size);
}

void bpt__proto_text(bpt__proto *p, uint32_t field, const char *text) {
    const size_t length = strlen(text);
    const bool is_utf8 = bpt_text_is_utf8(text);
    append_head(p, field, length);
    char *to = insert(p, p->length, length);
    for (size_t i = 0; to && i < length; i++)
        to[i] = is_utf8 || (unsigned char)text[i] < 0x80 ? text[i] : '?';
}

void bpt__proto_lend(bpt__proto *p, uint32_t field, const void *data, size_t size) {
    append_head(p, field, size);
    if (p->status == BPT_OK)
        p->status = BPT_GROW("ONNX file", p->n_lent + 1, &p->lent, &p->lent_capacity);
    if (p->status == BPT_OK) p->lent[p->n_lent++] = (bpt__proto_lent){p->length, {data, size}};
}

bpt__proto_mark bpt__proto_open(const bpt__proto *p) {
    return (bpt__proto_mark){p->length, p->n_lent};
}

static size_t size_from(const bpt__proto *p, bpt__proto_mark begin) {
    size_t size = p->length - begin.length;
    for (size_t i = begin.n_lent; i < p->n_lent; i++) size += p->lent[i].bytes.size;
    return size;
}

void bpt__proto_close(bpt__proto *p, uint32_t field, bpt__proto_mark begin) {
    if (p->status != BPT_OK) return;
    uint8_t head[MOST_HEAD];
    const uint8_t *end = put_varint(put_tag(head, field, WIRE_BYTES), size_from(p, begin));
    const size_t size = (size_t)(end - head);
    char *to = insert(p, begin.length, size);
    if (!to) return;
    memcpy(to, head, size);
    for (size_t i = begin.n_lent; i < p->n_lent; i++) p->lent[i].at += size;
}

size_t bpt__proto_size(const bpt__proto *p) {
    return size_from(p, (bpt__proto_mark){0, 0});
}

bpt_status bpt__proto_end(bpt__proto *p, const bpt_bytes **parts, size_t *n) {
    size_t from = 0;
    BPT_TRY(p->status);
    BPT_TRY(BPT_NEW("ONNX file", 2 * p->n_lent + 1, &p->parts));
    for (size_t i = 0; i < p->n_lent; i++) {
        const size_t at = p->lent[i].at;
        p->parts[2 * i] = (bpt_bytes){p->bytes + from, at - from};
        p->parts[2 * i + 1] = p->lent[i].bytes;
        from = at;
    }
    p->parts[2 * p->n_lent] = (bpt_bytes){p->bytes + from, p->length - from};
    *parts = p->parts;
    *n = 2 * p->n_lent + 1;
    return BPT_OK;
}

void bpt__proto_free(bpt__proto *p) {
    bpt_free(p->bytes);
    bpt_free(p->lent);
    bpt_free(p->parts);
}
