#include "storage/importers/import_picture.h"

#include "base/memory.h"
#include "storage/images/image_decoder.h"
#include "storage/images/resize.h"

#include <string.h>

struct bpt__picture_maker {
    bpt_image_decoder *decoder;
    bpt_image_resizer *resizer;
    bpt_import_buffer converted; /* pixels with the channels that are wanted */
};

bpt_status bpt__picture_maker_create(bpt__picture_maker **out) {
    bpt__picture_maker *m;
    BPT_TRY(BPT_NEW("picture maker", 1, &m));
    bpt_status status = bpt_image_decoder_open(NULL, &m->decoder);
    if (status == BPT_OK) status = bpt_image_resizer_open(&m->resizer);
    if (status == BPT_OK)
        *out = m;
    else
        bpt__picture_maker_free(m);
    return status;
}

void bpt__picture_maker_free(bpt__picture_maker *m) {
    if (!m) return;
    bpt_image_decoder_close(m->decoder);
    bpt_image_resizer_close(m->resizer);
    bpt_free(m->converted.bytes);
    bpt_free(m);
}

static void grey_to_colour(const uint8_t *grey, size_t plane, uint8_t *out) {
    for (size_t c = 0; c < 3; c++) memcpy(out + c * plane, grey, plane);
}

static void colour_to_grey(const uint8_t *rgb, size_t plane, uint8_t *out) {
    const uint8_t *r = rgb, *g = rgb + plane, *b = g + plane;
    for (size_t i = 0; i < plane; i++)
        out[i] = (uint8_t)((299u * r[i] + 587u * g[i] + 114u * b[i] + 500) / 1000);
}

/* @param[out] pixels shape [C,H,W] of the image, or converted */
static bpt_status convert(bpt__picture_maker *m, uint32_t C, const char *name,
                          const bpt_import_image *image, const uint8_t **pixels) {
    *pixels = image->bytes;
    if (C == image->C) return BPT_OK;
    const size_t plane = (size_t)image->H * image->W;
    if (image->C != 1 && image->C != 3)
        return bpt_fail(BPT_EDATA, "%s has %u channels, which cannot become %u", name, image->C, C);
    BPT_TRY(BPT_GROW("image", C * plane, &m->converted.bytes, &m->converted.capacity));
    if (C == 3)
        grey_to_colour(image->bytes, plane, m->converted.bytes);
    else
        colour_to_grey(image->bytes, plane, m->converted.bytes);
    *pixels = m->converted.bytes;
    return BPT_OK;
}

/* Makes room for a picture of a shape. */
static bpt_status shape(bpt__picture *out, uint32_t C, const bpt_image_frame *frame) {
    size_t size;
    out->C = C;
    out->H = frame->H;
    out->W = frame->W;
    BPT_TRY(bpt_size_multiply((size_t)C * out->H, out->W, &size));
    if (size <= out->pixels.capacity) return BPT_OK;
    /* No more than that: mostly all are of one size, and many are in flight. */
    bpt_free(out->pixels.bytes);
    out->pixels = (bpt_import_buffer){0};
    BPT_TRY(BPT_NEW("image", size, &out->pixels.bytes));
    out->pixels.capacity = size;
    return BPT_OK;
}

static bpt_status decode(bpt__picture_maker *m, const bpt_picture_fit *fit, const char *name,
                         const bpt_import_image *image, bpt__picture *out) {
    bpt_image_info info;
    BPT_TRY(bpt_image_look(name, image->bytes, image->size, NULL, &info));
    const bpt_image_wish wish = {.frame = bpt_image_fit_frame(&fit->size, info.H, info.W),
                                 .C = fit->C ? fit->C : info.C};
    BPT_TRY(shape(out, wish.C, &wish.frame));
    return bpt_image_decode(m->decoder, name, image->bytes, image->size, &wish, out->pixels.bytes);
}

static bool is_whole(const bpt_image_frame *f) {
    return f->H == f->h && f->W == f->w && f->scaled_h == f->h && f->scaled_w == f->w;
}

/* Of pixels: first colours, then size, as a decoder does it. */
static bpt_status adapt(bpt__picture_maker *m, const bpt_picture_fit *fit, const char *name,
                        const bpt_import_image *image, bpt__picture *out) {
    const uint8_t *pixels;
    const uint32_t H = image->H, W = image->W, C = fit->C ? fit->C : image->C;
    if (H > BPT_IMAGE_MAX_SIDE || W > BPT_IMAGE_MAX_SIDE)
        return bpt_fail(BPT_EDATA, "%s has %ux%u pixels (HxW), and a side has at most %d", name, H,
                        W, BPT_IMAGE_MAX_SIDE);
    const bpt_image_frame frame = bpt_image_fit_frame(&fit->size, H, W);
    BPT_TRY(convert(m, C, name, image, &pixels));
    BPT_TRY(shape(out, C, &frame));
    if (!is_whole(&frame))
        return bpt_image_resize(m->resizer, &frame, pixels, C, H, W, out->pixels.bytes);
    memcpy(out->pixels.bytes, pixels, (size_t)C * H * W);
    return BPT_OK;
}

bpt_status bpt__picture_make(bpt__picture_maker *m, const bpt_picture_fit *fit, const char *name,
                             const bpt_import_image *image, bpt__picture *out) {
    return image->encoded ? decode(m, fit, name, image, out) : adapt(m, fit, name, image, out);
}
