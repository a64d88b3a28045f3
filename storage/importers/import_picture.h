/** @file storage/importers/import_picture.h
 * From an image as an importer gives it to the pixels of a record.
 *
 * Threads: a maker belongs to one thread at a time; have one for each. */
#ifndef BPT_STORAGE_IMPORT_PICTURE_H
#define BPT_STORAGE_IMPORT_PICTURE_H

#include "base/status.h"
#include "storage/dataset/record.h"
#include "storage/images/frame.h"
#include "storage/importers/importer.h"

#include <stdint.h>

/** What pixels are to become. */
typedef struct bpt_picture_fit {
    bpt_image_fit size; /* as bpt_image_fit_check() allows */
    uint32_t C;         /* 1: grey, by Rec. 601 luma; 3: red, green, blue; 0: as it is */
} bpt_picture_fit;

/** A picture: shape [C,H,W], or a file. Zero-initialise; its memory is used again; release
 * .pixels.bytes. */
typedef struct bpt__picture {
    bpt_import_buffer pixels; /* or the bytes of the file */
    uint32_t C, H, W;
    bpt_record file; /* of storage/importers/import_encoded.h, its data in .pixels; .size 0: there
                        are pixels */
} bpt__picture;

typedef struct bpt__picture_maker bpt__picture_maker;

/** @param[out] out caller owns, bpt__picture_maker_free() @return BPT_OK, BPT_ENOMEM */
bpt_status bpt__picture_maker_create(bpt__picture_maker **out);
/** NULL is allowed. */
void bpt__picture_maker_free(bpt__picture_maker *maker);

/** Makes a picture of an image.
 * @param name of the image, for messages
 * @return BPT_OK, BPT_EDATA (no sound image, one beyond the limits of storage/images/image.h,
 *         or channels that cannot become those that are wanted), BPT_ENOMEM */
bpt_status bpt__picture_make(bpt__picture_maker *maker, const bpt_picture_fit *fit,
                             const char *name, const bpt_import_image *image, bpt__picture *out);

#endif
