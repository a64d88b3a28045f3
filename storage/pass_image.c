#include "storage/pass_image.h"

#include "storage/record_decode.h"

static bpt_random choices(const bpt__pass_images *p, uint32_t index, uint32_t pass) {
    return bpt_random_stream(p->seed, BPT_PURPOSE_AUGMENT, (uint64_t)pass << 32 | index);
}

static bpt_status take_raw(const bpt__pass_images *p, const bpt__image_scratch *s, uint32_t index,
                           uint32_t pass, const uint8_t **pixels, uint32_t *label) {
    BPT_TRY(bpt_dataset_get(p->dataset, p->split, index, pixels, label));
    if (p->augment.n == 0) return BPT_OK;
    bpt_random random = choices(p, index, pass);
    *pixels = bpt_augment_apply(&p->augment, &random, p->C, p->H, p->W, *pixels, s->augmented);
    return BPT_OK;
}

static bpt_status take_encoded(const bpt__pass_images *p, const bpt__image_scratch *s,
                               uint32_t index, uint32_t pass, const uint8_t **pixels,
                               uint32_t *label) {
    const bpt_augment *a = &p->augment;
    bpt_random random = choices(p, index, pass);
    bpt_record record;
    BPT_TRY(bpt_dataset_get_record(p->dataset, p->split, index, &record, label));
    bpt_image_frame frame = bpt_record_middle(record.H, record.W, p->H, p->W);
    const bool part = bpt_augment_takes_part(a);
    if (part) {
        frame = (bpt_image_frame){.scaled_h = p->H, .scaled_w = p->W, .H = p->H, .W = p->W};
        bpt_augment_part(a, &random, record.H, record.W, &frame);
    }
    BPT_TRY(
        bpt_record_decode(s->decoder, p->dataset, p->split, index, &record, &frame, s->decoded));
    *pixels = part ? bpt_augment_apply_rest(a, &random, p->C, p->H, p->W, s->decoded, s->augmented)
                   : bpt_augment_apply(a, &random, p->C, p->H, p->W, s->decoded, s->augmented);
    return BPT_OK;
}

bpt_status bpt__pass_image(const bpt__pass_images *p, const bpt__image_scratch *s, uint32_t index,
                           uint32_t pass, const uint8_t **pixels, uint32_t *label) {
    return p->encoded ? take_encoded(p, s, index, pass, pixels, label)
                      : take_raw(p, s, index, pass, pixels, label);
}
