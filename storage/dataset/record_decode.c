#include "storage/dataset/record_decode.h"

#include "storage/dataset/dataset_private.h"

bpt_image_frame bpt_record_middle(uint32_t record_H, uint32_t record_W, uint32_t H, uint32_t W) {
    bpt_image_frame f = {
        .h = record_H, .w = record_W, .scaled_h = H, .scaled_w = W, .H = H, .W = W};
    if ((uint64_t)H * record_W >= (uint64_t)W * record_H) /* it is wider: columns are lost */
        f.scaled_w = bpt_image_side(record_W, H, record_H);
    else
        f.scaled_h = bpt_image_side(record_H, W, record_W);
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
    return bpt__dataset_damaged(dataset, split, i, bpt_error_last()->text);
}
