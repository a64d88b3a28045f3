/** @file inner/onnx/proto.h
 * Writes a message of Protocol Buffers, field by field. For this folder only.
 *
 * A message within the message is put between bpt__proto_open() and bpt__proto_close(), which sets
 * its length before what has been put since. Long fields stay where they are: the message is a list
 * of parts. Running out of memory is remembered and reported by bpt__proto_end(), so that calls
 * need no check each.
 *
 * Threads: one. */
#ifndef BPT_INNER_ONNX_PROTO_H
#define BPT_INNER_ONNX_PROTO_H

#include "base/file.h"
#include "base/status.h"

#include <stddef.h>
#include <stdint.h>

/** Bytes of somebody else's within the message. */
typedef struct bpt__proto_lent {
    size_t at; /* bytes of bpt__proto.bytes before them */
    bpt_bytes bytes;
} bpt__proto_lent;

/** Zero-initialise; release with bpt__proto_free(). */
typedef struct bpt__proto {
    char *bytes; /* all but what is lent, shape [length] */
    size_t length, capacity;
    bpt__proto_lent *lent; /* in the order of the message, shape [n_lent] */
    size_t n_lent, lent_capacity;
    bpt_bytes *parts; /* of bpt__proto_end() */
    bpt_status status;
} bpt__proto;

/** Where a message within the message begins. */
typedef struct bpt__proto_mark {
    size_t length, n_lent;
} bpt__proto_mark;

/* Every call below adds one field. @p field its number, 1 to 2^29 - 1 */

/** A whole number (int32, int64, an enum), as a varint. */
void bpt__proto_number(bpt__proto *p, uint32_t field, int64_t value);
void bpt__proto_float(bpt__proto *p, uint32_t field, float value);

/** @param data shape [size], copied */
void bpt__proto_bytes(bpt__proto *p, uint32_t field, const void *data, size_t size);

/** A text has to be UTF-8: where it is not, "?" stands for its bytes beyond ASCII. */
void bpt__proto_text(bpt__proto *p, uint32_t field, const char *text);

/** @param data shape [size], borrowed until the message is written */
void bpt__proto_lend(bpt__proto *p, uint32_t field, const void *data, size_t size);

bpt__proto_mark bpt__proto_open(const bpt__proto *p);
void bpt__proto_close(bpt__proto *p, uint32_t field, bpt__proto_mark begin);

/** @return bytes of the message so far */
size_t bpt__proto_size(const bpt__proto *p);

/** @param[out] parts of the message, one behind the other, shape [*n]; borrowed from @p p, to which
 * nothing is added any more
 * @return BPT_OK, BPT_ENOMEM (now or before) */
bpt_status bpt__proto_end(bpt__proto *p, const bpt_bytes **parts, size_t *n);

void bpt__proto_free(bpt__proto *p);

#endif
