/** @file storage/images/exif.h
 * The orientation in an Exif block. For this folder only.
 *
 * Threads: pure. */
#ifndef BPT_STORAGE_IMAGES_EXIF_H
#define BPT_STORAGE_IMAGES_EXIF_H

#include <stddef.h>
#include <stdint.h>

/** Source: Exif 2.32, 4.6.4 (tag 0x0112 of the first directory of a TIFF header).
 * @param tiff from its byte order mark on, shape [size]
 * @return 1 to 8; 1 also where there is none, or the block makes no sense */
uint32_t bpt__exif_orientation(const uint8_t *tiff, size_t size);

#endif
