/** @file storage/images/jpeg_read.h
 * libjpeg-turbo's decoder, from bytes to packed pixels, and what it says on the way. For this
 * folder only.
 *
 * Threads: any; nothing is shared. */
#ifndef BPT_STORAGE_IMAGES_JPEG_READ_H
#define BPT_STORAGE_IMAGES_JPEG_READ_H

#include "storage/images/codecs.h"

/** What libjpeg-turbo made of a file. */
typedef struct bpt__jpeg_report {
    bool failed;      /* there are no pixels */
    bool warned;      /* pixels may be damaged */
    char reason[200]; /* the error, or else the first warning */
} bpt__jpeg_report;

/** Reads a file to its end. Everything is decoded, so that all damage is reported, but where a file
 * allows it only pixels of the region are computed.
 * @param divisor 1, 2, 4, 8
 * @param region  within @p out: what has to be right there; the rest may be anything
 * @param out     whose sides are the file's over @p divisor, rounded up. 1 lane: grey; 4: of a file
 *                with four inks these, else red, green, blue */
void bpt__jpeg_read(const uint8_t *data, size_t size, uint32_t divisor, const bpt__region *region,
                    bpt__packed *out, bpt__jpeg_report *report);

#endif
