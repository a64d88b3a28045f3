/** @file storage/images/codecs.h
 * What each file format does for image.h and image_decoder.h. For this folder only.
 *
 * Threads: as the functions that call these. */
#ifndef BPT_STORAGE_IMAGES_CODECS_H
#define BPT_STORAGE_IMAGES_CODECS_H

#include "storage/images/image.h"
#include "storage/images/packed.h"

/** Reads a header. @param[out] info its H and W are the file's, not yet turned, and not checked
 * @return BPT_OK, BPT_EDATA */
bpt_status bpt__jpeg_look(const char *name, const uint8_t *data, size_t size, bpt_image_info *info);
bpt_status bpt__png_look(const char *name, const uint8_t *data, size_t size, bpt_image_info *info);

/** Where the pixels of a JPEG begin: the first SOS segment, from its marker on.
 * @param size of a file that bpt__jpeg_look() accepts
 * @return offset */
size_t bpt__jpeg_scan_offset(const uint8_t *data, size_t size);

/** What the scans of a JPEG are. */
typedef struct bpt__jpeg_scans {
    uint64_t n;
    bool restart; /* their coded bytes have markers to start again at */
} bpt__jpeg_scans;

/** Counts them up to the end of the image, which need not be that of the file.
 * @param size of a file that bpt__jpeg_look() accepts */
bpt__jpeg_scans bpt__jpeg_count_scans(const uint8_t *data, size_t size);

/** A part of an image, in pixels as they are stored, not yet turned; never empty. */
typedef struct bpt__region {
    uint32_t y, x, h, w;
} bpt__region;

/** A copy that files with slips are mended in. */
typedef struct bpt__jpeg bpt__jpeg;

/** @param[out] out caller owns, bpt__jpeg_close() @return BPT_OK, BPT_ENOMEM */
bpt_status bpt__jpeg_open(bpt__jpeg **out);
void bpt__jpeg_close(bpt__jpeg *jpeg);

/** Decodes into @p out: 1 lane if the file is grey or @p C is 1 and it is no CMYK, else 4.
 * @param info    of bpt_image_look()
 * @param divisor 1, 2, 4, 8: sides become ceil(side / divisor)
 * @param region  of the pixels at that size; those outside may become anything
 * @return BPT_OK, BPT_EDATA, BPT_ENOMEM */
bpt_status bpt__jpeg_decode(bpt__jpeg *jpeg, const char *name, const uint8_t *data, size_t size,
                            const bpt_image_info *info, uint32_t C, uint32_t divisor,
                            const bpt__region *region, bpt__packed *out);

/** Decodes into @p out: 1 lane if the file is grey without alpha, else 4 with what is transparent
 * laid over white.
 * @return BPT_OK, BPT_EDATA, BPT_ENOMEM */
bpt_status bpt__png_decode(const char *name, const uint8_t *data, size_t size,
                           const bpt_image_info *info, bpt__packed *out);

#endif
