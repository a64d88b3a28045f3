#include "storage/images/codecs.h"

#include <png.h>
#include <setjmp.h>
#include <string.h>

/* What libpng's callbacks are given. */
typedef struct reader {
    const char *name;
    const uint8_t *data;
    size_t size, at;
    const bpt_image_info *info;
    bpt__packed *out;
    jmp_buf failed; /* libpng does not return from an error */
    bpt_status status;
} reader;

static void on_error(png_structp png, png_const_charp reason) {
    reader *r = png_get_error_ptr(png);
    if (strstr(reason, "Out of memory") || strstr(reason, "out of memory"))
        r->status = bpt_fail(BPT_ENOMEM, "%s: libpng has no memory", r->name);
    else if (r->at > r->size)
        r->status = bpt_fail(BPT_EDATA, "%s is cut short: its pixels end early", r->name);
    else
        r->status = bpt_fail(BPT_EDATA, "%s is a damaged PNG: %s", r->name, reason);
    if (r->status == BPT_EDATA) bpt_hint("fetch the file again");
    longjmp(r->failed, 1);
}

/* Warnings are of chunks that say nothing about pixels. */
static void on_warning(png_structp png, png_const_charp reason) {
    (void)png;
    (void)reason;
}

static void on_read(png_structp png, png_bytep out, size_t n) {
    reader *r = png_get_io_ptr(png);
    if (n > r->size - r->at) {
        r->at = r->size + 1;
        png_error(png, "end of file");
    }
    memcpy(out, r->data + r->at, n);
    r->at += n;
}

/* Every kind of pixel becomes 1 lane of grey or 4 of red, green, blue, alpha. */
static void ask_for_lanes(png_structp png, uint32_t lanes) {
    png_set_expand(png);
    png_set_scale_16(png);
    if (lanes == 1) {
        png_set_strip_alpha(png);
    } else {
        png_set_gray_to_rgb(png);
        png_set_add_alpha(png, 0xFF, PNG_FILLER_AFTER);
    }
}

static void read_rows(png_structp png, png_infop info, const bpt__packed *out) {
    const int n_passes = png_set_interlace_handling(png);
    png_read_update_info(png, info);
    const size_t pitch = (size_t)out->W * out->lanes;
    if (png_get_rowbytes(png, info) != pitch || png_get_image_height(png, info) != out->H)
        png_error(png, "rows of another length than its header tells");
    for (int pass = 0; pass < n_passes; pass++)
        for (uint32_t y = 0; y < out->H; y++) png_read_row(png, out->pixels + y * pitch, NULL);
    png_read_end(png, NULL);
}

static void read_image(png_structp png, png_infop info, reader *r) {
    png_set_user_limits(png, BPT_IMAGE_MAX_SIDE, BPT_IMAGE_MAX_SIDE);
    /* Chunks that say nothing about pixels are skipped, whatever they would unpack to. */
    png_set_keep_unknown_chunks(png, PNG_HANDLE_CHUNK_NEVER, NULL, -1);
    png_set_read_fn(png, r, on_read);
    png_read_info(png, info);
    ask_for_lanes(png, r->out->lanes);
    read_rows(png, info, r->out);
}

bpt_status bpt__png_decode(const char *name, const uint8_t *data, size_t size,
                           const bpt_image_info *info, bpt__packed *out) {
    const bool sideways = info->orientation > 4;
    const uint32_t H = sideways ? info->W : info->H, W = sideways ? info->H : info->W;
    const uint32_t lanes = info->colour == BPT_IMAGE_GREY && !info->alpha ? 1 : 4;
    BPT_TRY(bpt__packed_reserve(out, H, W, lanes));
    reader r = {.name = name, .data = data, .size = size, .info = info, .out = out};
    png_structp png = png_create_read_struct(PNG_LIBPNG_VER_STRING, &r, on_error, on_warning);
    png_infop png_info = png ? png_create_info_struct(png) : NULL;
    if (!png_info)
        r.status = bpt_fail(BPT_ENOMEM, "%s: libpng has no memory", name);
    else if (setjmp(r.failed) == 0)
        read_image(png, png_info, &r);
    png_destroy_read_struct(&png, &png_info, NULL);
    if (r.status == BPT_OK && info->alpha) bpt__packed_over_white(out);
    return r.status;
}
