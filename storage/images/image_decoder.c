#include "storage/images/image_decoder.h"

#include "base/memory.h"
#include "storage/images/codecs.h"
#include "storage/images/scale.h"
#include "storage/images/taps.h"

#include <string.h>

struct bpt_image_decoder {
    bpt_image_limits limits;
    bpt__jpeg *jpeg;
    bpt_image_resizer *resizer;
    bpt__packed image, turned;
};

bpt_status bpt_image_decoder_open(const bpt_image_limits *limits, bpt_image_decoder **out) {
    const bpt_image_limits standard = BPT_IMAGE_LIMITS_INIT;
    if (!limits) limits = &standard;
    if (limits->side > BPT_IMAGE_MAX_SIDE)
        return bpt_fail(BPT_EUSAGE, "images of up to %u pixels a side; at most %d can be read",
                        limits->side, BPT_IMAGE_MAX_SIDE);
    bpt_image_decoder *d;
    BPT_TRY(BPT_NEW("image decoder", 1, &d));
    d->limits = *limits;
    bpt_status status;
    BPT_TRY_GOTO(status, bpt__jpeg_open(&d->jpeg), fail);
    BPT_TRY_GOTO(status, bpt_image_resizer_open(&d->resizer), fail);
    *out = d;
    return BPT_OK;
fail:
    bpt_image_decoder_close(d);
    return status;
}

void bpt_image_decoder_close(bpt_image_decoder *d) {
    if (!d) return;
    bpt__packed_clear(&d->turned);
    bpt__packed_clear(&d->image);
    bpt_image_resizer_close(d->resizer);
    bpt__jpeg_close(d->jpeg);
    bpt_free(d);
}

static uint32_t ceil_div(uint32_t a, uint32_t b) {
    return (a + b - 1) / b;
}

/* The size that libjpeg-turbo should decode at: only halves have fast code there. */
static uint32_t choose_divisor(const bpt_image_info *info, const bpt_image_wish *wish) {
    const bpt_image_frame *f = &wish->frame;
    const bool all = f->h == info->H && f->w == info->W;
    if (info->format != BPT_IMAGE_JPEG || wish->whole || (!all && !wish->near)) return 1;
    const uint32_t up = all ? 1 : 0; /* of a part, pixels at its border may be half outside */
    uint32_t divisor = 8;
    while (divisor > 1 && ((f->h + up * (divisor - 1)) / divisor < f->scaled_h ||
                           (f->w + up * (divisor - 1)) / divisor < f->scaled_w))
        divisor /= 2;
    return divisor;
}

/* A range of pixels, [*from, *from + *length), of an image decoded at a part of its size.
 * @param whole what is there of the decoded image */
static void shrink_range(uint32_t *from, uint32_t *length, uint32_t divisor, uint32_t whole) {
    *length = (*length + divisor / 2) / divisor;
    if (*length > whole) *length = whole;
    *from /= divisor;
    if (*from > whole - *length) *from = whole - *length;
}

/* The frame in an image of h x w pixels, decoded at a part of its size. */
static void shrink_frame(bpt_image_frame *f, uint32_t h, uint32_t w, uint32_t divisor) {
    const uint32_t small_h = ceil_div(h, divisor), small_w = ceil_div(w, divisor);
    if (f->h == h && f->w == w) {
        f->h = small_h;
        f->w = small_w;
        return;
    }
    shrink_range(&f->y, &f->h, divisor, small_h);
    shrink_range(&f->x, &f->w, divisor, small_w);
}

/* To planes: 1 of 1 lane, 3 of 4. */
static bpt_status apply_frame(bpt_image_decoder *d, const bpt_image_frame *f, uint8_t *pixels) {
    const bpt__packed *image = &d->image;
    if (f->h != f->scaled_h || f->w != f->scaled_w)
        return bpt__scale_packed(d->resizer, f, image->pixels, image->lanes, image->W, pixels);
    bpt__packed_to_planes(image, f->y + f->crop_y, f->x + f->crop_x, f->H, f->W, pixels);
    return BPT_OK;
}

/* What a frame looks at, as it stands in the file. */
static bpt__region region_of(const bpt_image_frame *f, const bpt_image_info *info,
                             uint32_t divisor) {
    uint32_t y, x, h, w;
    bpt__taps_span(f->h, f->scaled_h, f->crop_y, f->H, &y, &h);
    bpt__taps_span(f->w, f->scaled_w, f->crop_x, f->W, &x, &w);
    y += f->y;
    x += f->x;
    const uint32_t o = info->orientation;
    if (o == 3 || o == 4 || o == 7 || o == 8) y = ceil_div(info->H, divisor) - y - h;
    if (o == 2 || o == 3 || o == 6 || o == 7) x = ceil_div(info->W, divisor) - x - w;
    return o > 4 ? (bpt__region){.y = x, .x = y, .h = w, .w = h}
                 : (bpt__region){.y = y, .x = x, .h = h, .w = w};
}

bpt_status bpt_image_decode(bpt_image_decoder *d, const char *name, const void *data, size_t size,
                            const bpt_image_wish *wish, uint8_t *pixels) {
    bpt_image_info info;
    BPT_TRY(bpt_image_look(name, data, size, &d->limits, &info));
    BPT_TRY(bpt_image_frame_check(&wish->frame, info.H, info.W));
    if (wish->C != 1 && wish->C != 3)
        return bpt_fail(BPT_EUSAGE, "images of %u colours; 1 or 3 can be had", wish->C);
    const uint32_t divisor = choose_divisor(&info, wish);
    bpt_image_frame frame = wish->frame;
    if (divisor > 1) shrink_frame(&frame, info.H, info.W, divisor);
    const bpt__region region = region_of(&frame, &info, divisor);
    if (info.format == BPT_IMAGE_JPEG)
        BPT_TRY(bpt__jpeg_decode(d->jpeg, name, data, size, &info, wish->C, divisor, &region,
                                 &d->image));
    else
        BPT_TRY(bpt__png_decode(name, data, size, &info, &d->image));
    if (d->image.lanes == 4 && wish->C == 1) bpt__packed_to_grey(&d->image);
    BPT_TRY(bpt__packed_turn(&d->image, info.orientation, &d->turned));
    BPT_TRY(apply_frame(d, &frame, pixels));
    const size_t plane = (size_t)frame.H * frame.W;
    if (d->image.lanes == 1 && wish->C == 3) {
        memcpy(pixels + plane, pixels, plane);
        memcpy(pixels + 2 * plane, pixels, plane);
    }
    return BPT_OK;
}
