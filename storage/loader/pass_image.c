#include "storage/loader/pass_image.h"

#include "storage/dataset/record_decode.h"

#include <assert.h>
#include <string.h>

static bpt_random choices(const bpt__pass_images *p, uint32_t index, uint32_t pass) {
    return bpt_random_stream(p->seed, BPT_PURPOSE_AUGMENT, (uint64_t)pass << 32 | index);
}

/* As it is before it is mixed. */
static bpt_status take_raw(const bpt__pass_images *p, const bpt__image_scratch *s, uint32_t index,
                           uint32_t pass, bpt__pass_image *image) {
    BPT_TRY(bpt_dataset_get(p->dataset, p->split, index, &image->pixels, &image->label));
    if (p->augment.n == 0) return BPT_OK;
    bpt_random random = choices(p, index, pass);
    image->pixels = bpt_augment_apply(&p->augment, 0, &random, p->C, p->H, p->W, image->pixels,
                                      s->augmented, p->leaves_moves ? &image->move : NULL);
    return BPT_OK;
}

static bpt_status take_encoded(const bpt__pass_images *p, const bpt__image_scratch *s,
                               uint32_t index, uint32_t pass, bpt__pass_image *image) {
    const bpt_augment *a = &p->augment;
    bpt_random random = choices(p, index, pass);
    bpt_record record;
    BPT_TRY(bpt_dataset_get_record(p->dataset, p->split, index, &record, &image->label));
    bpt_image_frame frame = bpt_record_middle(record.H, record.W, p->H, p->W);
    const bool part = bpt_augment_takes_part(a);
    if (part) {
        frame = (bpt_image_frame){.scaled_h = p->H, .scaled_w = p->W, .H = p->H, .W = p->W};
        bpt_augment_part(a, &random, record.H, record.W, &frame);
    }
    BPT_TRY(
        bpt_record_decode(s->decoder, p->dataset, p->split, index, &record, &frame, s->decoded));
    image->pixels = bpt_augment_apply(a, part, &random, p->C, p->H, p->W, s->decoded, s->augmented,
                                      p->leaves_moves ? &image->move : NULL);
    return BPT_OK;
}

static bpt_status take(const bpt__pass_images *p, const bpt__image_scratch *s, uint32_t index,
                       uint32_t pass, bpt__pass_image *image) {
    return p->encoded ? take_encoded(p, s, index, pass, image) : take_raw(p, s, index, pass, image);
}

/* ---- mixing ---- */

/* A stream of its own: who the other image is, is known before anything is decoded.
 * @param[out] random where the other choices come from */
static uint32_t draw_partner(const bpt__pass_images *p, uint32_t index, uint32_t pass,
                             bpt_random *random) {
    *random = bpt_random_stream(p->seed, BPT_PURPOSE_MIX, (uint64_t)pass << 32 | index);
    if (!p->partners) return bpt_random_below(random, p->split->count);
    return p->partners[bpt_random_below(random, p->n_partners)];
}

uint32_t bpt__pass_image_partner(const bpt__pass_images *p, uint32_t index, uint32_t pass) {
    bpt_random random;
    return draw_partner(p, index, pass, &random);
}

static bpt_status mix(const bpt__pass_images *p, const bpt__image_scratch *s, uint32_t index,
                      uint32_t pass, bpt__pass_image *image) {
    bpt_random random;
    const uint32_t partner = draw_partner(p, index, pass, &random);
    bpt__pass_image other;
    assert(!p->leaves_moves);
    memcpy(s->mixed, image->pixels, (size_t)p->C * p->H * p->W); /* the rest is for the other */
    BPT_TRY(take(p, s, partner, pass, &other));
    image->second_part =
        bpt_augment_mix(&p->augment, &random, p->C, p->H, p->W, s->mixed, other.pixels);
    image->second_label = (int32_t)other.label;
    image->pixels = s->mixed;
    return BPT_OK;
}

bpt_status bpt__pass_image_make(const bpt__pass_images *p, const bpt__image_scratch *s,
                                uint32_t index, uint32_t pass, bpt__pass_image *image) {
    *image = (bpt__pass_image){.second_label = -1};
    BPT_TRY(take(p, s, index, pass, image));
    return bpt_augment_mixes(&p->augment) ? mix(p, s, index, pass, image) : BPT_OK;
}
