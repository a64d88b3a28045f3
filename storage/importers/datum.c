#include "storage/importers/datum.h"

/* How a field is written. developers.google.com/protocol-buffers, "Encoding". */
enum { WIRE_VARINT = 0, WIRE_64 = 1, WIRE_BYTES = 2, WIRE_32 = 5 };

enum {
    FIELD_CHANNELS = 1,
    FIELD_HEIGHT = 2,
    FIELD_WIDTH = 3,
    FIELD_DATA = 4,
    FIELD_LABEL = 5,
    FIELD_FLOATS = 6,
    FIELD_ENCODED = 7
};

typedef struct cursor {
    const uint8_t *at, *end;
} cursor;

/* Seven bits a byte, the lowest first, at most ten bytes. */
static bool read_varint(cursor *c, uint64_t *value) {
    *value = 0;
    for (unsigned shift = 0; shift < 70 && c->at < c->end; shift += 7) {
        const uint8_t byte = *c->at++;
        if (shift == 63 && byte > 1) return false;
        *value |= (uint64_t)(byte & 0x7f) << shift;
        if (byte < 0x80) return true;
    }
    return false;
}

static bool skip(cursor *c, uint64_t n) {
    if (n > (uint64_t)(c->end - c->at)) return false;
    c->at += n;
    return true;
}

/* As C does it: a negative int32 is written as 64 bits. */
static void take_number(bpt__datum *d, uint64_t field, uint64_t value) {
    const int32_t number = (int32_t)(uint32_t)value;
    switch (field) {
    case FIELD_CHANNELS:
        d->channels = number;
        break;
    case FIELD_HEIGHT:
        d->height = number;
        break;
    case FIELD_WIDTH:
        d->width = number;
        break;
    case FIELD_LABEL:
        d->label = number;
        break;
    case FIELD_ENCODED:
        d->encoded = value != 0;
        break;
    default:
        break;
    }
}

/* @return whether a field may be written so */
static bool is_kind(uint64_t field, unsigned wire) {
    switch (field) {
    case FIELD_CHANNELS:
    case FIELD_HEIGHT:
    case FIELD_WIDTH:
    case FIELD_LABEL:
    case FIELD_ENCODED:
        return wire == WIRE_VARINT;
    case FIELD_DATA:
        return wire == WIRE_BYTES;
    case FIELD_FLOATS:
        return wire == WIRE_32 || wire == WIRE_BYTES; /* one by one, or packed */
    default:
        return field != 0;
    }
}

static const char *read_field(cursor *c, bpt__datum *d) {
    static const char beyond[] = "a field reaches beyond the end";
    uint64_t tag, value;
    if (!read_varint(c, &tag)) return "the tag of a field is no number";
    const uint64_t field = tag >> 3;
    const unsigned wire = tag & 7;
    if (!is_kind(field, wire)) return "a field has a type that a Datum's has not";
    if (field == FIELD_FLOATS) d->has_floats = true;
    switch (wire) {
    case WIRE_VARINT:
        if (!read_varint(c, &value)) return "a number does not end";
        take_number(d, field, value);
        return NULL;
    case WIRE_64:
        return skip(c, 8) ? NULL : beyond;
    case WIRE_32:
        return skip(c, 4) ? NULL : beyond;
    case WIRE_BYTES:
        if (!read_varint(c, &value)) return "a length does not end";
        if (field == FIELD_DATA) {
            d->data = c->at;
            d->n_data = (size_t)value;
        }
        return skip(c, value) ? NULL : beyond;
    default:
        return "a field is of a kind that Protocol Buffers do not have, or groups";
    }
}

const char *bpt__datum_read(const uint8_t *message, size_t size, bpt__datum *datum) {
    cursor c = {message, message + size};
    *datum = (bpt__datum){0};
    while (c.at < c.end) {
        const char *wrong = read_field(&c, datum);
        if (wrong) return wrong;
    }
    return NULL;
}
