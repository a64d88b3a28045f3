/** @file storage/images/image.h
 * Image files in memory: what they are, by their header alone, and how their pixels become bpt's.
 *
 * bpt reads JPEG and PNG, told apart by their first bytes, never by a name. Pixels are 8-bit
 * planes, shape [C,H,W], C = 1 (grey) or 3 (red, green, blue), upright. The rules:
 * - Grey becomes colour as three equal planes; colour becomes grey as Rec. 601 luma, rounded
 *   (0.299 R + 0.587 G + 0.114 B; of a JPEG in YCbCr that is its Y).
 * - CMYK becomes R = round((255 - C) * (255 - K) / 255), G with M and B with Y likewise. A file
 * with an Adobe marker holds inverted inks: 255 - C and so on are what is stored.
 * - What is transparent is laid over white: round((v * a + 255 * (255 - a)) / 255).
 * - 16 bits become 8 by round(v / 257); fewer than 8 are spread over 0 to 255.
 * - Colour profiles and gamma are not applied: values are taken as they are stored.
 * - The orientation of Exif (JPEG, and PNG's eXIf) is applied. An Exif block that makes no sense
 *   counts as none.
 *
 * Threads: every function may be called by any number of threads. */
#ifndef BPT_STORAGE_IMAGES_IMAGE_H
#define BPT_STORAGE_IMAGES_IMAGE_H

#include "base/status.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/** Which rules these are, and those of storage/images/resize.h: another number wherever the same
 * file gives other pixels. An ingestion that was stopped does not go on with other rules. */
enum { BPT_IMAGE_RULES = 2 };

typedef enum bpt_image_format { BPT_IMAGE_JPEG, BPT_IMAGE_PNG } bpt_image_format;

/* What the file's samples are. */
typedef enum bpt_image_colour {
    BPT_IMAGE_GREY,
    BPT_IMAGE_RGB, /* also YCbCr, and colours of a palette */
    BPT_IMAGE_CMYK /* also YCCK */
} bpt_image_colour;

/** What an image may be. Within these limits a decoder takes at most 16 bytes of memory a pixel of
 * the largest file, and 32 MiB: 4 for its pixels, 4 if it has to be turned, up to 8 for the
 * coefficients of a JPEG with several scans. What is beyond is refused before anything is allocated
 * for it. */
typedef struct bpt_image_limits {
    uint64_t bytes;  /* of the file */
    uint64_t pixels; /* H*W */
    uint32_t side;   /* H and W; at most BPT_IMAGE_MAX_SIDE */
} bpt_image_limits;

enum { BPT_IMAGE_MAX_SIDE = 16384 };

#define BPT_IMAGE_LIMITS_INIT                                                                      \
    { .bytes = UINT64_C(256) << 20, .pixels = UINT64_C(128) << 20, .side = BPT_IMAGE_MAX_SIDE }

/** What a header tells. */
typedef struct bpt_image_info {
    bpt_image_format format;
    bpt_image_colour colour;
    uint32_t H, W;        /* upright: of the image as it is shown */
    uint32_t C;           /* of the image as it is: 1 for BPT_IMAGE_GREY, else 3 */
    uint32_t bits;        /* of a sample: 1, 2, 4, 8, 16; of a palette's colours 8 */
    uint32_t orientation; /* 1 to 8 as Exif has it; 1: the file's rows are the image's */
    bool alpha;           /* some of it may be transparent */
    bool progressive;     /* or interlaced */
    bool adobe;           /* a JPEG with Adobe's marker */
} bpt_image_info;

/** Reads the header: width, height, colours, orientation. Of the pixels nothing is looked at.
 * @param name   what the image is, for messages: a path
 * @param data   the whole file, shape [size]
 * @param limits NULL: BPT_IMAGE_LIMITS_INIT
 * @param[out] info set on success
 * @return BPT_OK, BPT_EDATA (empty; another format, named, with a hint how to convert; a header
 * that is cut or makes no sense; beyond a limit, with the values) */
bpt_status bpt_image_look(const char *name, const void *data, size_t size,
                          const bpt_image_limits *limits, bpt_image_info *info);

#endif
