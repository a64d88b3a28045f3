/* shift=PERCENT: the image moved by whole pixels, up to so much of its height and width either way;
 * black where nothing is. */
#include "storage/augmentations/augmentation.h"
#include "storage/augmentations/image_move.h"

enum { WHOLE = 100 * BPT_AUGMENT_UNIT };

/* One that moves by a pixel at least. */
static uint32_t smallest(const uint32_t *values) {
    return (WHOLE + values[0] - 1) / values[0];
}

static int64_t draw(bpt_random *random, uint32_t side, uint32_t percent) {
    const uint32_t most = (uint32_t)((uint64_t)side * percent / WHOLE);
    return (int64_t)bpt_random_below(random, 2 * most + 1) - most;
}

static bpt_image_move move(const uint32_t *values, bpt_random *random, uint32_t H, uint32_t W) {
    const int64_t dy = draw(random, H, values[0]);
    const int64_t dx = draw(random, W, values[0]);
    return (bpt_image_move){bpt__side_shifted(H, dy), bpt__side_shifted(W, dx)};
}

const bpt_augmentation bpt_augmentation_shift = {.name = "shift",
                                                 .example = "shift=10",
                                                 .n_parameters = 1,
                                                 .parameters = {{.name = "PERCENT",
                                                                 .required = true,
                                                                 .min = BPT_AUGMENT_UNIT / 10,
                                                                 .max = 90 * BPT_AUGMENT_UNIT}},
                                                 .smallest = smallest,
                                                 .move = move};
