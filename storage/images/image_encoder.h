/** @file storage/images/image_encoder.h
 * From pixels to the bytes of a JPEG or PNG file.
 *
 * The bytes depend on pixels and options alone, given the versions of libjpeg-turbo, libpng and
 * zlib.
 *
 * Threads: an encoder belongs to one thread at a time; have one for each. */
#ifndef BPT_STORAGE_IMAGES_IMAGE_ENCODER_H
#define BPT_STORAGE_IMAGES_IMAGE_ENCODER_H

#include "base/status.h"

#include <stddef.h>
#include <stdint.h>

typedef struct bpt_image_encoder bpt_image_encoder;

/** @param[out] out caller owns, bpt_image_encoder_close()
 * @return BPT_OK, BPT_ENOMEM */
bpt_status bpt_image_encoder_open(bpt_image_encoder **out);
/** NULL is allowed. */
void bpt_image_encoder_close(bpt_image_encoder *encoder);

/** A file in memory that the caller owns and may use again for the next: starts as all zero, grows
 * as needed, data is released by bpt_free(). */
typedef struct bpt_image_file {
    uint8_t *data;   /* shape [size] */
    size_t size;     /* bytes */
    size_t capacity; /* bytes allocated */
} bpt_image_file;

/** How the colours of a JPEG are stored; of a grey one it says nothing. */
typedef enum bpt_jpeg_chroma {
    BPT_JPEG_444, /* as many as pixels */
    BPT_JPEG_420  /* one for two by two pixels */
} bpt_jpeg_chroma;

/** Encodes a baseline JPEG.
 * @param pixels  shape [C,H,W], C 1 or 3, H and W 1 to BPT_IMAGE_MAX_SIDE
 * @param quality 1 to 100
 * @param[in,out] file on error its size is 0
 * @return BPT_OK, BPT_EUSAGE (C, H, W or quality out of range), BPT_ENOMEM, BPT_EBACKEND */
bpt_status bpt_image_encode_jpeg(bpt_image_encoder *encoder, const uint8_t *pixels, uint32_t C,
                                 uint32_t H, uint32_t W, int quality, bpt_jpeg_chroma chroma,
                                 bpt_image_file *file);

/** Encodes a PNG, grey or RGB, 8 bits.
 * @param pixels shape [C,H,W], C 1 or 3, H and W 1 to BPT_IMAGE_MAX_SIDE
 * @param[in,out] file on error its size is 0
 * @return BPT_OK, BPT_EUSAGE (C, H or W out of range), BPT_ENOMEM, BPT_EBACKEND */
bpt_status bpt_image_encode_png(bpt_image_encoder *encoder, const uint8_t *pixels, uint32_t C,
                                uint32_t H, uint32_t W, bpt_image_file *file);

#endif
