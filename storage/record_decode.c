#include "storage/record_decode.h"

#include "storage/dataset_private.h"

/* @return round(a * b / c), half up, at least `least` and at most what a side may have */
static uint32_t scale(uint32_t a, uint32_t b, uint32_t c, uint32_t least) {
    const uint64_t side = ((uint64_t)a * b * 2 + c) / ((uint64_t)c * 2);
    if (side > BPT_IMAGE_MAX_SIDE) return BPT_IMAGE_MAX_SIDE;
    return side < least ? least : (uint32_t)side;
}

bpt_image_frame bpt_record_middle(uint32_t record_H, uint32_t record_W, uint32_t H, uint32_t W) {
    bpt_image_frame f = {
        .h = record_H, .w = record_W, .scaled_h = H, .scaled_w = W, .H = H, .W = W};
    if ((uint64_t)H * record_W >= (uint64_t)W * record_H) /* it is wider: columns are lost */
        f.scaled_w = scale(record_W, H, record_H, W);
    else
        f.scaled_h = scale(record_H, W, record_W, H);
    f.crop_y = (f.scaled_h - H) / 2;
    f.crop_x = (f.scaled_w - W) / 2;
    return f;
}

/* The size of the image has been taken from the record: it must be that of the file. */
bpt_status bpt__record_decode_file(bpt_image_decoder *decoder, uint32_t C, const bpt_record *r,
                                   const bpt_image_frame *frame, uint8_t *pixels) {
    bpt_image_info info;
    BPT_TRY(bpt_image_look("its file", r->data, r->size, NULL, &info));
    if (info.format != BPT_IMAGE_JPEG) return bpt_fail(BPT_EDATA, "its file is no JPEG");
    if (info.H != r->H || info.W != r->W)
        return bpt_fail(BPT_EDATA, "its file has %ux%u pixels (HxW), not %ux%u", info.H, info.W,
                        r->H, r->W);
    const bpt_image_wish wish = {.frame = *frame, .C = C, .near = true};
    return bpt_image_decode(decoder, "its file", r->data, r->size, &wish, pixels);
}

bpt_status bpt_record_decode(bpt_image_decoder *decoder, const bpt_dataset *dataset,
                             const bpt_split *split, uint32_t i, const bpt_record *record,
                             const bpt_image_frame *frame, uint8_t *pixels) {
    const bpt_status status =
        bpt__record_decode_file(decoder, dataset->info->C, record, frame, pixels);
    if (status != BPT_EDATA) return status;
    bpt_error error;
    bpt_error_get(&error);
    return bpt__dataset_damaged(dataset, split, i, error.text);
}
