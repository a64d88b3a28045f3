/** @file storage/importers/import_encoded.h
 * From an image as an importer gives it to the JPEG file of an encoded record.
 *
 * A JPEG that needs no change is kept, byte for byte. It needs one where its size is to be another,
 * Exif says that it has to be turned, its inks are CMYK, or it is in colour and wanted in grey.
 * What is grey stays grey also where colour is wanted: its decoder makes three equal channels. All
 * others, and what is no JPEG, are made into pictures (storage/importers/import_picture.h) and
 * encoded: baseline, one colour for two by two pixels (4:2:0). Every file is decoded once, whole:
 * so it is known to be sound, and its pixels are counted.
 *
 * Threads: a maker belongs to one thread at a time; have one for each. */
#ifndef BPT_STORAGE_IMPORT_ENCODED_H
#define BPT_STORAGE_IMPORT_ENCODED_H

#include "storage/importers/import_picture.h"

typedef struct bpt__file_maker bpt__file_maker;

/** @param quality 1 to 100, of files that have to be encoded
 * @param[out] out caller owns, bpt__file_maker_free() @return BPT_OK, BPT_ENOMEM */
bpt_status bpt__file_maker_create(int quality, bpt__file_maker **out);
/** NULL is allowed. */
void bpt__file_maker_free(bpt__file_maker *maker);

/** Makes a file of an image.
 * @param name of the image, for messages
 * @param[in,out] out .file, whose sums are of .C channels: those of the file
 * @return as bpt__picture_make() */
bpt_status bpt__file_make(bpt__file_maker *maker, const bpt_picture_fit *fit, const char *name,
                          const bpt_import_image *image, bpt__picture *out);

#endif
