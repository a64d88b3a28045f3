/** @file storage/augmentations/image_move.h
 * Inside of storage: moves of an image's pixels, one after another become one.
 *
 * Sides and planes have at most 2^28 pixels.
 *
 * Threads: any; nothing is shared. */
#ifndef BPT_STORAGE_IMAGE_MOVE_H
#define BPT_STORAGE_IMAGE_MOVE_H

#include "base/images.h"

#include <stdbool.h>
#include <stdint.h>

/** @return a side that stays as it is */
bpt_side_move bpt__side_still(uint32_t side);

/** @return pixel i becomes what was at i + by, black where there was nothing
 * @param by less than @p side, either way */
bpt_side_move bpt__side_shifted(uint32_t side, int64_t by);

/** @return the last pixel first */
bpt_side_move bpt__side_mirrored(uint32_t side);

/** @return an image that stays as it is */
bpt_image_move bpt__image_still(uint32_t H, uint32_t W);

/** @return one move, and then another, of what the first has left */
bpt_image_move bpt__image_move_then(bpt_image_move first, bpt_image_move next);

/** @return whether each pixel stays where it is */
bool bpt__image_is_still(bpt_image_move move, uint32_t H, uint32_t W);

/** Moves an image.
 * @param in      shape [C,H,W]
 * @param[out] out shape [C,H,W] */
void bpt__image_make_move(bpt_image_move move, uint32_t C, uint32_t H, uint32_t W,
                          const uint8_t *restrict in, uint8_t *restrict out);

#endif
