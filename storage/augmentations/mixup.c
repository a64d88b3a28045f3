/* mixup=ALPHA: the mixup of Zhang, Cisse, Dauphin and Lopez-Paz (mixup: beyond empirical risk
 * minimization, ICLR 2018). An image becomes L image + (1 - L) other, with L the larger of
 * X and 1 - X, in 1 / 65536, and X from Beta(ALPHA, ALPHA); pixels are rounded, halves up. Two
 * images and X are as likely as the two turned about and 1 - X, where all images are trained on
 * equally often: then all mixtures are as likely as in the paper, and of every image a pass has at
 * least half. */
#include "base/clones.h"
#include "storage/augmentations/beta.h"

enum { ONE = BPT__BETA_ONE };

BPT_CLONES static void blend(uint32_t weight, uint8_t *restrict image,
                             const uint8_t *restrict other, size_t n) {
    for (size_t i = 0; i < n; i++)
        image[i] = (uint8_t)((weight * image[i] + (ONE - weight) * other[i] + ONE / 2) / ONE);
}

static float mix(const uint32_t *values, bpt_random *random, uint32_t C, uint32_t H, uint32_t W,
                 uint8_t *restrict image, const uint8_t *restrict other) {
    const uint32_t drawn = bpt__draw_beta(random, values[0]);
    const uint32_t weight = drawn > ONE / 2 ? drawn : ONE - drawn;
    blend(weight, image, other, (size_t)C * H * W);
    return (float)(ONE - weight) / ONE;
}

const bpt_augmentation bpt_augmentation_mixup = {.name = "mixup",
                                                 .example = "mixup=0.2",
                                                 .n_parameters = 1,
                                                 .parameters = {BPT__BETA_ALPHA},
                                                 .mix = mix};
