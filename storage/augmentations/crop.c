/* crop=PIXELS: a window of the image's own size, anywhere in the image with so many black pixels
 * around it. */
#include "storage/augmentations/augmentation.h"
#include "storage/augmentations/image_move.h"

/* At least one pixel of the image is in any window. */
static uint32_t smallest(const uint32_t *values) {
    return values[0] + 1;
}

static bpt_image_move move(const uint32_t *values, bpt_random *random, uint32_t H, uint32_t W) {
    const int64_t dy = (int64_t)bpt_random_below(random, 2 * values[0] + 1) - values[0];
    const int64_t dx = (int64_t)bpt_random_below(random, 2 * values[0] + 1) - values[0];
    return (bpt_image_move){bpt__side_shifted(H, dy), bpt__side_shifted(W, dx)};
}

const bpt_augmentation bpt_augmentation_crop = {
    .name = "crop",
    .example = "crop=4",
    .n_parameters = 1,
    .parameters = {{.name = "PIXELS", .counts = true, .required = true, .min = 1, .max = 1024}},
    .smallest = smallest,
    .move = move};
