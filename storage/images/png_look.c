/* The chunks of a PNG, for what its header tells. Source: PNG, third edition, sections 5 and 11. */
#include "storage/images/codecs.h"
#include "storage/images/exif.h"

#include <string.h>
#include <zlib.h>

enum { SIGNATURE_BYTES = 8, CHUNK_BYTES = 12, HEADER_BYTES = 13, LARGEST_CHUNK = 0x7FFFFFFF };

typedef struct chunk {
    const uint8_t *type; /* 4 letters */
    const uint8_t *body;
    size_t size; /* of the body */
} chunk;

static uint32_t number(const uint8_t *at) {
    return (uint32_t)at[0] << 24 | (uint32_t)at[1] << 16 | (uint32_t)at[2] << 8 | at[3];
}

/* @param[in,out] at where the chunk begins; then where the next one does
 * @return false at the end, or where the file is cut */
static bool next_chunk(const uint8_t *data, size_t size, size_t *at, chunk *out) {
    if (size - *at < CHUNK_BYTES) return false;
    const size_t length = number(data + *at);
    if (length > LARGEST_CHUNK || size - *at - CHUNK_BYTES < length) return false;
    *out = (chunk){.type = data + *at + 4, .body = data + *at + 8, .size = length};
    *at += CHUNK_BYTES + length;
    return true;
}

static bool is(const chunk *c, const char *type) {
    return memcmp(c->type, type, 4) == 0;
}

static bool is_intact(const chunk *c) {
    return crc32(crc32(0, NULL, 0), c->type, (uInt)c->size + 4) == number(c->body + c->size);
}

static bpt_status damaged(const char *name, const char *why) {
    const bpt_status status = bpt_fail(BPT_EDATA, "%s is a damaged PNG: %s", name, why);
    bpt_hint("fetch the file again");
    return status;
}

enum { GREY = 0, RGB = 2, PALETTE = 3, GREY_ALPHA = 4, RGB_ALPHA = 6 };

static bool is_allowed(uint32_t bits, uint32_t kind) {
    switch (kind) {
    case GREY:
        return bits == 1 || bits == 2 || bits == 4 || bits == 8 || bits == 16;
    case PALETTE:
        return bits == 1 || bits == 2 || bits == 4 || bits == 8;
    case RGB:
    case GREY_ALPHA:
    case RGB_ALPHA:
        return bits == 8 || bits == 16;
    default:
        return false;
    }
}

static bpt_status read_header(const char *name, const chunk *c, bpt_image_info *info) {
    if (!is(c, "IHDR") || c->size != HEADER_BYTES)
        return damaged(name, "it does not begin with a header");
    if (!is_intact(c)) return damaged(name, "its header fails its checksum");
    const uint32_t bits = c->body[8], kind = c->body[9];
    if (!is_allowed(bits, kind) || c->body[10] != 0 || c->body[11] != 0 || c->body[12] > 1)
        return damaged(name, "its header makes no sense");
    *info = (bpt_image_info){
        .format = BPT_IMAGE_PNG,
        .colour = kind == GREY || kind == GREY_ALPHA ? BPT_IMAGE_GREY : BPT_IMAGE_RGB,
        .W = number(c->body),
        .H = number(c->body + 4),
        .bits = kind == PALETTE ? 8 : bits,
        .orientation = 1,
        .alpha = kind == GREY_ALPHA || kind == RGB_ALPHA,
        .progressive = c->body[12] == 1,
    };
    return BPT_OK;
}

bpt_status bpt__png_look(const char *name, const uint8_t *data, size_t size, bpt_image_info *info) {
    size_t at = SIGNATURE_BYTES;
    chunk c;
    if (!next_chunk(data, size, &at, &c)) {
        const bpt_status status = bpt_fail(BPT_EDATA, "%s is cut short within its header", name);
        bpt_hint("fetch the file again");
        return status;
    }
    BPT_TRY(read_header(name, &c, info));
    bool has_exif = false;
    while (next_chunk(data, size, &at, &c) && !is(&c, "IEND")) {
        if (is(&c, "tRNS")) {
            if (!is_intact(&c)) return damaged(name, "its transparency fails its checksum");
            info->alpha = true;
        }
        if (is(&c, "eXIf") && !has_exif && is_intact(&c)) {
            info->orientation = bpt__exif_orientation(c.body, c.size);
            has_exif = true;
        }
    }
    return BPT_OK;
}
