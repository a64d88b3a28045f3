#include "storage/importers/import_encoded.h"

#include "base/memory.h"
#include "storage/images/image_decoder.h"
#include "storage/images/image_encoder.h"

#include <string.h>

struct bpt__file_maker {
    int quality;
    bpt__picture_maker *maker;
    bpt_image_encoder *encoder;
    bpt_image_decoder *decoder;
    bpt__picture picture;      /* of an image that has to be encoded */
    bpt_import_buffer decoded; /* what a file decodes to */
};

bpt_status bpt__file_maker_create(int quality, bpt__file_maker **out) {
    bpt__file_maker *m;
    BPT_TRY(BPT_NEW("file maker", 1, &m));
    m->quality = quality;
    bpt_status status = bpt__picture_maker_create(&m->maker);
    if (status == BPT_OK) status = bpt_image_encoder_open(&m->encoder);
    if (status == BPT_OK) status = bpt_image_decoder_open(NULL, &m->decoder);
    if (status == BPT_OK)
        *out = m;
    else
        bpt__file_maker_free(m);
    return status;
}

void bpt__file_maker_free(bpt__file_maker *m) {
    if (!m) return;
    bpt__picture_maker_free(m->maker);
    bpt_image_encoder_close(m->encoder);
    bpt_image_decoder_close(m->decoder);
    bpt_free(m->picture.pixels.bytes);
    bpt_free(m->decoded.bytes);
    bpt_free(m);
}

static bool can_stay(const bpt_picture_fit *fit, const bpt_image_info *info) {
    const bpt_image_frame f = bpt_image_fit_frame(&fit->size, info->H, info->W);
    return info->format == BPT_IMAGE_JPEG && info->orientation == 1 &&
           info->colour != BPT_IMAGE_CMYK && !(info->C == 3 && fit->C == 1) && f.H == info->H &&
           f.W == info->W && f.scaled_h == f.h && f.scaled_w == f.w;
}

/* Copies the file: the importer needs its memory again. */
static bpt_status keep(const bpt_image_info *info, const bpt_import_image *image,
                       bpt__picture *out) {
    BPT_TRY(BPT_GROW("file of an image", image->size, &out->pixels.bytes, &out->pixels.capacity));
    memcpy(out->pixels.bytes, image->bytes, image->size);
    out->C = info->C;
    out->H = info->H;
    out->W = info->W;
    out->file.size = image->size;
    return BPT_OK;
}

/* @param C of the image */
static bpt_status encode(bpt__file_maker *m, const bpt_picture_fit *fit, uint32_t C,
                         const char *name, const bpt_import_image *image, bpt__picture *out) {
    bpt__picture *p = &m->picture;
    const bpt_picture_fit grey = {.size = fit->size, .C = 1};
    BPT_TRY(bpt__picture_make(m->maker, C == 1 ? &grey : fit, name, image, p));
    if (p->C != 1 && p->C != 3)
        return bpt_fail(BPT_EDATA, "%s has %u channels; a JPEG has 1 or 3", name, p->C);
    bpt_image_file file = {.data = out->pixels.bytes, .capacity = out->pixels.capacity};
    const bpt_status status = bpt_image_encode_jpeg(m->encoder, p->pixels.bytes, p->C, p->H, p->W,
                                                    m->quality, BPT_JPEG_420, &file);
    out->pixels = (bpt_import_buffer){file.data, file.capacity};
    out->C = p->C;
    out->H = p->H;
    out->W = p->W;
    out->file.size = file.size;
    return status;
}

static bpt_status measure(bpt__file_maker *m, const char *name, bpt__picture *out) {
    const bpt_image_fit as_is = {0};
    const bpt_image_wish wish = {.frame = bpt_image_fit_frame(&as_is, out->H, out->W), .C = out->C};
    const size_t size = (size_t)out->C * out->H * out->W;
    out->file.data = out->pixels.bytes;
    out->file.H = out->H;
    out->file.W = out->W;
    BPT_TRY(BPT_GROW("image", size, &m->decoded.bytes, &m->decoded.capacity));
    BPT_TRY(bpt_image_decode(m->decoder, name, out->file.data, out->file.size, &wish,
                             m->decoded.bytes));
    bpt_record_measure(&out->file, m->decoded.bytes, out->C);
    return BPT_OK;
}

bpt_status bpt__file_make(bpt__file_maker *m, const bpt_picture_fit *fit, const char *name,
                          const bpt_import_image *image, bpt__picture *out) {
    bpt_image_info info = {0};
    if (image->encoded) BPT_TRY(bpt_image_look(name, image->bytes, image->size, NULL, &info));
    if (image->encoded && can_stay(fit, &info))
        BPT_TRY(keep(&info, image, out));
    else
        BPT_TRY(encode(m, fit, image->encoded ? info.C : image->C, name, image, out));
    return measure(m, name, out);
}
