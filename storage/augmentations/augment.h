/** @file storage/augmentations/augment.h
 * What is done to a training image before the network sees it, so that it never sees the same one
 * twice: a list of augmentations, done in the order of the list.
 *
 * Every random choice comes from the stream that the caller gives, which names the image and its
 * pass: the result does not depend on threads, ranks or time. Pixels are reckoned in whole numbers:
 * nor does it depend on the machine.
 *
 * Threads: a bpt_augment is read-only once parsed; any number of threads may use it. */
#ifndef BPT_STORAGE_AUGMENT_H
#define BPT_STORAGE_AUGMENT_H

#include "base/images.h"
#include "base/random.h"
#include "base/status.h"
#include "storage/images/frame.h"

#include <stdbool.h>
#include <stdint.h>

enum { BPT_AUGMENT_MAX = 16, BPT_AUGMENT_VALUES = 4 };

/** What --help says of a list: each kind as it is written, and its values where they are left out.
 */
#define BPT_AUGMENT_HELP                                                                           \
    "what is done to training images, in this order, e.g. crop=4,flip:\n"                          \
    "crop=PIXELS: a window of their size, so many black pixels around;\n"                          \
    "resized-crop=FROM:TO:RATIO (0.08:1:0.75): FROM to TO of the area,\n"                          \
    "sides as RATIO to 1/RATIO, enlarged;\n"                                                       \
    "window: of encoded datasets, and first: a part of the network's size,\n"                      \
    "pixel for pixel;\n"                                                                           \
    "flip, vflip: half of them mirrored left to right, top to bottom;\n"                           \
    "rotate=DEGREES, shift=PERCENT: by up to so much either way;\n"                                \
    "jitter=BRIGHTNESS:CONTRAST:SATURATION (0.4:0.4:0.4): each times\n"                            \
    "1 - so much to 1 + so much;\n"                                                                \
    "erase=PROBABILITY:FROM:TO:RATIO (0.5:0.02:0.4:0.3): noise over FROM\n"                        \
    "to TO of the area;\n"                                                                         \
    "at the end, mixup=ALPHA: another image blended in; cutmix=ALPHA: a box\n"                     \
    "of another in it; labels likewise; of both, an image gets one;\n"                             \
    "in brackets: defaults of values; the last of them may be left out"

typedef struct bpt_augmentation bpt_augmentation; /* storage/augmentations/augmentation.h */

/** The list: a plain value. All zero: nothing is done. */
typedef struct bpt_augment {
    struct {
        const bpt_augmentation *kind;
        uint32_t values[BPT_AUGMENT_VALUES]; /* of its parameters, in their units */
    } steps[BPT_AUGMENT_MAX];
    uint32_t n;
} bpt_augment;

/** Reads a list: items "name" or "name=value:value:..." with commas between them, such as
 * "crop=4,flip"; "none" is the empty one.
 * @param[out] augment set on success
 * @return BPT_OK, BPT_EUSAGE (with hint: no such augmentation, a value out of range or missing, or
 *         something behind one that mixes images) */
bpt_status bpt_augment_parse(const char *text, bpt_augment *augment);

/** @return whether images are mixed with others: what the last of the list do, one or two of them
 */
bool bpt_augment_mixes(const bpt_augment *augment);

/** Mixes an image with another; where the list has two ways, by one of them, which is drawn.
 * @param augment bpt_augment_mixes()
 * @param random  where the choices come from
 * @param image   shape [C,H,W], at most 2^28 of them, as what else is in the list has left it
 * @param other   likewise; not changed
 * @return which part of the image is now the other's, 0 to 1 */
float bpt_augment_mix(const bpt_augment *augment, bpt_random *random, uint32_t C, uint32_t H,
                      uint32_t W, uint8_t *image, const uint8_t *other);

/** @return BPT_OK, BPT_EUSAGE (an image of H*W is too small for one of the list, named) */
bpt_status bpt_augment_check(const bpt_augment *augment, uint32_t H, uint32_t W);

/** Likewise for images of a dataset. Of those that are brought to a size first, as those of encoded
 * datasets, an augmentation that takes a part of them (resized-crop, window) takes it from the
 * image as it was: so it has to come first. window wants such images.
 * @param H, W what the images are brought to, or have
 * @return BPT_OK, BPT_EUSAGE (one comes later, or the images are raw; or as bpt_augment_check()) */
bpt_status bpt_augment_check_images(const bpt_augment *augment, bool encoded, uint32_t H,
                                    uint32_t W);

/** @return whether the list begins with one that takes a part of the image */
bool bpt_augment_takes_part(const bpt_augment *augment);

/** Draws the part, if bpt_augment_takes_part().
 * @param random at the start of its stream
 * @param H, W   of the image that it is taken from, at most 2^28 pixels
 * @param[in,out] frame .scaled_h and .scaled_w are what the part is brought to; .y, .x, .h and .w
 *                are set */
void bpt_augment_part(const bpt_augment *augment, bpt_random *random, uint32_t H, uint32_t W,
                      bpt_image_frame *frame);

/** @return whether the list ends with augmentations that only move pixels: whoever takes the image
 * may do these */
bool bpt_augment_ends_in_moves(const bpt_augment *augment);

/** Changes one image, and does not mix it. Moves of pixels that follow each other are one.
 * @param done    how many of the list are done: 1 behind bpt_augment_part(), else 0
 * @param random  where the choices come from, as the first of the list has left it
 * @param pixels  shape [C,H,W], at most 2^28 of them; not changed
 * @param scratch shape [2,C,H,W]
 * @param[out] left the moves that the list ends with, which are not done then. NULL: they are
 * @return the changed image, shape [C,H,W]: in @p scratch, or @p pixels if nothing changed */
const uint8_t *bpt_augment_apply(const bpt_augment *augment, uint32_t done, bpt_random *random,
                                 uint32_t C, uint32_t H, uint32_t W, const uint8_t *pixels,
                                 uint8_t *scratch, bpt_image_move *left);

#endif
