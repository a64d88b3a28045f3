/** @file storage/images/resize.h
 * Changes the size of images: the same bits on every machine.
 *
 * Rows and columns are treated apart. Along a side that gets shorter a pixel of the result is the
 * mean over the area that it covers, pixels at its border counting by the share that it covers of
 * them. Along a side that gets longer it is interpolated linearly between the two pixels whose
 * centres are nearest, the outermost ones going on for ever. A side that keeps its length stays as
 * it is. The result is the exact value rounded to the nearest; where that lies within 0.04 of the
 * middle of two, it may be either.
 *
 * Threads: a resizer belongs to one thread at a time. */
#ifndef BPT_STORAGE_IMAGES_RESIZE_H
#define BPT_STORAGE_IMAGES_RESIZE_H

#include "base/status.h"
#include "storage/images/frame.h"

#include <stdint.h>

/** Tables and rows, kept from one image to the next: once they are large enough, nothing is
 * allocated. */
typedef struct bpt_image_resizer bpt_image_resizer;

/** @param[out] out caller owns, bpt_image_resizer_close()
 * @return BPT_OK, BPT_ENOMEM */
bpt_status bpt_image_resizer_open(bpt_image_resizer **out);
/** NULL is allowed. */
void bpt_image_resizer_close(bpt_image_resizer *resizer);

/** Cuts, resizes and cuts.
 * @param frame for an image of H by W
 * @param in    shape [C,H,W]
 * @param C     at least 1
 * @param[out] out shape [C,frame->H,frame->W]; must not overlap @p in
 * @return BPT_OK, BPT_EUSAGE (bpt_image_frame_check()), BPT_ENOMEM */
bpt_status bpt_image_resize(bpt_image_resizer *resizer, const bpt_image_frame *frame,
                            const uint8_t *in, uint32_t C, uint32_t H, uint32_t W, uint8_t *out);

#endif
