/* Any bytes as a record of an encoded dataset, of one channel and of three. What is read lies
 * inside of them and is written the same again; its file decodes to pixels or is refused, whole
 * and as the middle part that a smaller image takes. */
#include "storage/dataset/record.h"
#include "storage/dataset/record_decode.h"

#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum { MOST_PIXELS = 1 << 16 }; /* of records that are decoded, so that many can be */

static void write_again(const uint8_t *bytes, size_t size, uint32_t C, const bpt_record *r) {
    if (r->data < bytes || r->data + r->size != bytes + size) abort();
    if (bpt__record_bytes(r, C) != size) abort();
    uint8_t *again = malloc(size);
    if (!again) abort();
    bpt__record_write(r, C, again);
    if (memcmp(again, bytes, size) != 0) abort();
    free(again);
}

static void decode(const bpt_record *r, uint32_t C, const bpt_image_frame *frame) {
    static bpt_image_decoder *decoder;
    if (!decoder && bpt_image_decoder_open(NULL, &decoder) != BPT_OK) abort();
    uint8_t *pixels = malloc((size_t)C * frame->H * frame->W);
    if (!pixels) abort();
    const bpt_status status = bpt__record_decode_file(decoder, C, r, frame, pixels);
    if (status != BPT_OK && status != BPT_EDATA) abort();
    free(pixels);
}

static void try_record(const uint8_t *bytes, size_t size, uint32_t C) {
    bpt_record r;
    if (!bpt__record_read(bytes, size, C, &r)) return;
    write_again(bytes, size, C, &r);
    if ((uint64_t)r.H * r.W > MOST_PIXELS) return;
    const bpt_image_frame whole = bpt_record_middle(r.H, r.W, r.H, r.W),
                          small = bpt_record_middle(r.H, r.W, 5, 6);
    decode(&r, C, &whole);
    decode(&r, C, &small);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    /* In memory of its own, so that a sanitizer sees a byte that is read behind it. */
    uint8_t *bytes = malloc(size ? size : 1);
    if (!bytes) abort();
    if (size) memcpy(bytes, data, size);
    try_record(bytes, size, 1);
    try_record(bytes, size, 3);
    free(bytes);
    return 0;
}
