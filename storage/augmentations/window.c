/* window: H by W pixels of the image as it is stored, anywhere in it, where H by W is the size that
 * the network takes, as Caffe's crop_size and torchvision's RandomCrop(size). Of an image that has
 * not so many it is the largest part of that shape, enlarged. */
#include "storage/augmentations/augmentation.h"

static void part(const uint32_t *values, bpt_random *random, uint32_t H, uint32_t W,
                 bpt_image_frame *frame) {
    (void)values;
    uint32_t h = frame->scaled_h, w = frame->scaled_w;
    if (h > H || w > W) {
        const bool all_rows = (uint64_t)h * W >= (uint64_t)w * H;
        const uint32_t other = all_rows ? bpt_image_side(w, H, h) : bpt_image_side(h, W, w);
        h = all_rows ? H : other;
        w = all_rows ? other : W;
    }
    frame->h = h;
    frame->w = w;
    frame->y = bpt_random_below(random, H - h + 1);
    frame->x = bpt_random_below(random, W - w + 1);
}

const bpt_augmentation bpt_augmentation_window = {
    .name = "window", .example = "window", .part = part};
