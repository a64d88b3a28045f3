#include "storage/augmentations/augment.h"

#include "storage/augmentations/augmentation.h"
#include "storage/augmentations/image_move.h"

#include <assert.h>

static const bpt_augmentation *const kinds[] = {
    &bpt_augmentation_crop,  &bpt_augmentation_resized_crop, &bpt_augmentation_window,
    &bpt_augmentation_flip,  &bpt_augmentation_vflip,        &bpt_augmentation_rotate,
    &bpt_augmentation_shift, &bpt_augmentation_jitter,       &bpt_augmentation_erase,
    &bpt_augmentation_mixup, &bpt_augmentation_cutmix};

const bpt_augmentation *bpt_augmentation_at(size_t i) {
    return i < sizeof kinds / sizeof *kinds ? kinds[i] : NULL;
}

bpt_status bpt_augment_check(const bpt_augment *a, uint32_t H, uint32_t W) {
    for (uint32_t i = 0; i < a->n; i++) {
        const bpt_augmentation *kind = a->steps[i].kind;
        const uint32_t smallest = kind->smallest ? kind->smallest(a->steps[i].values) : 1;
        if (H >= smallest && W >= smallest) continue;
        char values[64];
        bpt_augmentation_values(kind, a->steps[i].values, kind->n_parameters, values,
                                sizeof values);
        const bpt_status status =
            bpt_fail(BPT_EUSAGE, "augmentation %s=%s wants images of at least %ux%u, not %ux%u",
                     kind->name, values, smallest, smallest, H, W);
        bpt_hint("give --augment another value, or leave %s out", kind->name);
        return status;
    }
    return BPT_OK;
}

static bpt_status check_for_raw(const bpt_augment *a) {
    for (uint32_t i = 0; i < a->n; i++) {
        const char *name = a->steps[i].kind->name;
        if (!bpt_augmentation_wants_encoded(a->steps[i].kind)) continue;
        const bpt_status status =
            bpt_fail(BPT_EUSAGE,
                     "augmentation %s is for images that are larger than the network's "
                     "input: those of encoded datasets",
                     name);
        bpt_hint("leave %s out, or store the images with bpt-ingest --encoded", name);
        return status;
    }
    return BPT_OK;
}

static bpt_status check_for_encoded(const bpt_augment *a) {
    for (uint32_t i = 1; i < a->n; i++) {
        const char *name = a->steps[i].kind->name;
        if (!a->steps[i].kind->part) continue;
        const bpt_status status = bpt_fail(
            BPT_EUSAGE, "of encoded images augmentation %s can only be the first, not behind %s",
            name, a->steps[i - 1].kind->name);
        bpt_hint("begin --augment with %s: it takes its part from the image as it is stored", name);
        return status;
    }
    return BPT_OK;
}

bpt_status bpt_augment_check_images(const bpt_augment *a, bool encoded, uint32_t H, uint32_t W) {
    BPT_TRY(encoded ? check_for_encoded(a) : check_for_raw(a));
    return bpt_augment_check(a, H, W);
}

bool bpt_augment_takes_part(const bpt_augment *a) {
    return a->n > 0 && a->steps[0].kind->part;
}

void bpt_augment_part(const bpt_augment *a, bpt_random *random, uint32_t H, uint32_t W,
                      bpt_image_frame *frame) {
    a->steps[0].kind->part(a->steps[0].values, random, H, W, frame);
}

/* An image on its way through the list. */
typedef struct way {
    uint32_t C, H, W;
    const uint8_t *pixels; /* as it is, but for the move */
    bpt_image_move move;   /* that it is still to make */
    uint8_t *scratch;      /* shape [2,C,H,W] */
    uint32_t half;         /* of it, the one to write next */
} way;

static uint8_t *next_half(const way *w) {
    return w->scratch + w->half * ((size_t)w->C * w->H * w->W);
}

static void put(way *w, const uint8_t *pixels) {
    w->pixels = pixels;
    w->half = 1 - w->half;
}

static void make_move(way *w) {
    uint8_t *out = next_half(w);
    if (bpt__image_is_still(w->move, w->H, w->W)) return;
    bpt__image_make_move(w->move, w->C, w->H, w->W, w->pixels, out);
    w->move = bpt__image_still(w->H, w->W);
    put(w, out);
}

static void change(way *w, const bpt_augmentation *kind, const uint32_t *values,
                   bpt_random *random) {
    assert(kind->apply); /* bpt_augment_check_images() */
    make_move(w);
    uint8_t *out = next_half(w);
    if (kind->apply(values, random, w->C, w->H, w->W, w->pixels, out)) put(w, out);
}

bool bpt_augment_ends_in_moves(const bpt_augment *a) {
    return a->n > 0 && a->steps[a->n - 1].kind->move;
}

const uint8_t *bpt_augment_apply(const bpt_augment *a, uint32_t done, bpt_random *random,
                                 uint32_t C, uint32_t H, uint32_t W, const uint8_t *pixels,
                                 uint8_t *scratch, bpt_image_move *left) {
    way w = {C, H, W, pixels, bpt__image_still(H, W), scratch, 0};
    for (uint32_t i = done; i < a->n && !a->steps[i].kind->mix; i++) {
        const bpt_augmentation *kind = a->steps[i].kind;
        const uint32_t *values = a->steps[i].values;
        if (kind->move)
            w.move = bpt__image_move_then(w.move, kind->move(values, random, H, W));
        else
            change(&w, kind, values, random);
    }
    if (left)
        *left = w.move;
    else
        make_move(&w);
    return w.pixels;
}

/* @return how many of the list mix images: its last ones */
static uint32_t n_mixing(const bpt_augment *a) {
    uint32_t n = 0;
    while (n < a->n && a->steps[a->n - 1 - n].kind->mix) n++;
    return n;
}

bool bpt_augment_mixes(const bpt_augment *a) {
    return n_mixing(a) > 0;
}

float bpt_augment_mix(const bpt_augment *a, bpt_random *random, uint32_t C, uint32_t H, uint32_t W,
                      uint8_t *image, const uint8_t *other) {
    const uint32_t n = n_mixing(a), i = a->n - n + (n > 1 ? bpt_random_below(random, n) : 0);
    return a->steps[i].kind->mix(a->steps[i].values, random, C, H, W, image, other);
}
