/** @file storage/images/image_decoder.h
 * From the bytes of a JPEG or PNG file to pixels: upright, in the colours and size that are wanted.
 * The rules for colours, and what is refused by its header, stand in storage/images/image.h.
 *
 *     bpt_image_look() -> bpt_image_fit_frame() -> bpt_image_decode() to [C,frame.H,frame.W]
 *
 * A file that is cut short or damaged is an error, never an image that is grey from some row on. Of
 * what libjpeg-turbo warns about, two things that leave every pixel whole are let pass: bytes
 * between the last pixel and the end marker, and a sequential file with the wrong spectral range in
 * its first scan header.
 *
 * Pixels depend on the bytes, the frame and C alone, given the version of libjpeg-turbo: not on
 * threads, or on what was decoded before.
 *
 * Threads: a decoder belongs to one thread at a time; have one for each. */
#ifndef BPT_STORAGE_IMAGES_IMAGE_DECODER_H
#define BPT_STORAGE_IMAGES_IMAGE_DECODER_H

#include "base/status.h"
#include "storage/images/frame.h"
#include "storage/images/image.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef struct bpt_image_decoder bpt_image_decoder;

/** @param limits copied; NULL: BPT_IMAGE_LIMITS_INIT
 * @param[out] out caller owns, bpt_image_decoder_close()
 * @return BPT_OK, BPT_EUSAGE (limits->side above BPT_IMAGE_MAX_SIDE), BPT_ENOMEM */
bpt_status bpt_image_decoder_open(const bpt_image_limits *limits, bpt_image_decoder **out);
/** NULL is allowed. */
void bpt_image_decoder_close(bpt_image_decoder *decoder);

/** What is wanted of an image. */
typedef struct bpt_image_wish {
    bpt_image_frame frame; /* for H and W of bpt_image_look() */
    uint32_t C;            /* 1 or 3; bpt_image_info.C: as it is */
    /* A JPEG of which the whole is taken is decoded at a half, a quarter or an eighth of its size,
     * at the smallest of these at which ceil(H / n) >= frame.scaled_h and ceil(W / n) >=
     * frame.scaled_w, and resized from there: faster, and the frequencies that the target cannot
     * hold never arise; pixels differ a little from those of a resized whole. This forbids it. */
    bool whole;
    /* Allows it also where a part is taken, by the same rule for frame.h and frame.w (rounded
     * down). Its first row and column then lie up to one pixel of the decoded size beside. */
    bool near;
} bpt_image_wish;

/** Decodes an image. Orientation comes first, then colours, then the frame.
 * A decoder keeps its buffers: it allocates only when an image is larger than those before it
 * (libjpeg-turbo and libpng allocate what they need for an image and free it with it).
 * @param name   what the image is, for messages: a path
 * @param data   the whole file, shape [size]; borrowed for the call
 * @param[out] pixels shape [C,frame.H,frame.W]; on error its content is undefined
 * @return BPT_OK, BPT_EDATA (as bpt_image_look(), and: cut short or damaged, with the reason; more
 *         than 500 scans, or scans of more than 2^31 pixels in all), BPT_EUSAGE (C, or
 *         bpt_image_frame_check()), BPT_ENOMEM */
bpt_status bpt_image_decode(bpt_image_decoder *decoder, const char *name, const void *data,
                            size_t size, const bpt_image_wish *wish, uint8_t *pixels);

#endif
