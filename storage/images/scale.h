/** @file storage/images/scale.h
 * bpt_image_resize() for packed pixels. For this folder only.
 *
 * Threads: as storage/images/resize.h. */
#ifndef BPT_STORAGE_IMAGES_SCALE_H
#define BPT_STORAGE_IMAGES_SCALE_H

#include "storage/images/resize.h"

/** @param frame that bpt_image_frame_check() allows, with a change of size
 * @param in    shape [rows,W,lanes], rows at least frame->y + frame->h
 * @param lanes 1, or 4 of which the last is not looked at
 * @param[out] out shape [C,frame->H,frame->W], C = 1 for 1 lane, 3 for 4
 * @return BPT_OK, BPT_ENOMEM */
bpt_status bpt__scale_packed(bpt_image_resizer *resizer, const bpt_image_frame *frame,
                             const uint8_t *in, uint32_t lanes, uint32_t W, uint8_t *out);

#endif
