/** @file storage/dataset/record.h
 * An image that a dataset keeps as a JPEG file, and the bytes that stand for it in a value.
 * docs/formats.md describes them.
 *
 * Threads: any; plain functions. */
#ifndef BPT_STORAGE_RECORD_H
#define BPT_STORAGE_RECORD_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { BPT_RECORD_MAX_C = 3 };

/** The file, and what is known of its pixels without decoding it. */
typedef struct bpt_record {
    const uint8_t *data; /* a JPEG file, shape [size] */
    size_t size;         /* bytes, at most 2^28 */
    uint32_t H, W;       /* pixels of the upright image, each at most BPT_IMAGE_MAX_SIDE */
    uint64_t sum[BPT_RECORD_MAX_C];    /* of all pixels of a channel, shape [C] of the dataset */
    uint64_t square[BPT_RECORD_MAX_C]; /* of their squares, likewise */
} bpt_record;

/** Sets the sums of a record.
 * @param pixels what its file decodes to, shape [C,record->H,record->W]
 * @param C      1 or 3 */
void bpt_record_measure(bpt_record *record, const uint8_t *pixels, uint32_t C);

/** Makes the sums of a grey record those of three equal channels. */
void bpt_record_widen(bpt_record *record);

/** @return bytes that bpt__record_write() writes, for a dataset of @p C channels (1 or 3) */
size_t bpt__record_bytes(const bpt_record *record, uint32_t C);

/** @param[out] out shape [bpt__record_bytes()] */
void bpt__record_write(const bpt_record *record, uint32_t C, uint8_t *out);

/** Reads any bytes.
 * @param bytes shape [size]; the record's data point into it
 * @param[out] record set on success
 * @return whether they are those of a record: sides within the limits of storage/images/image.h,
 *         sums that such an image can have, a file that is not empty (what is in it is for a
 *         decoder to say) */
bool bpt__record_read(const uint8_t *bytes, size_t size, uint32_t C, bpt_record *record);

#endif
