/* window: H by W pixels of the image as it is stored, anywhere in it, where H by W is the size that
 * the network takes, as Caffe's crop_size and torchvision's RandomCrop(size). Of an image that has
 * not so many it is the largest part of that shape, enlarged. */
#include "storage/augmentation.h"

/* @return round(a * b / c), half up, at least 1 */
static uint32_t in_ratio(uint32_t a, uint32_t b, uint32_t c) {
    const uint64_t side = ((uint64_t)a * b * 2 + c) / ((uint64_t)c * 2);
    return side > 0 ? (uint32_t)side : 1;
}

static void part(const uint32_t *values, bpt_random *random, uint32_t H, uint32_t W,
                 bpt_image_frame *frame) {
    (void)values;
    uint32_t h = frame->scaled_h, w = frame->scaled_w;
    if (h > H || w > W) {
        const bool all_rows = (uint64_t)h * W >= (uint64_t)w * H;
        const uint32_t other = all_rows ? in_ratio(w, H, h) : in_ratio(h, W, w);
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
