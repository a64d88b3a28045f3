/* vflip: half of all images are mirrored top to bottom. */
#include "storage/augmentations/augmentation.h"
#include "storage/augmentations/image_move.h"

static bpt_image_move move(const uint32_t *values, bpt_random *random, uint32_t H, uint32_t W) {
    (void)values;
    bpt_image_move m = bpt__image_still(H, W);
    if (bpt_random_below(random, 2) == 1) m.y = bpt__side_mirrored(H);
    return m;
}

const bpt_augmentation bpt_augmentation_vflip = {.name = "vflip", .example = "vflip", .move = move};
