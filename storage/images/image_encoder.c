#include "storage/images/image_encoder.h"

#include "base/memory.h"
#include "storage/images/image.h"

#include <png.h>
#include <setjmp.h>
#include <string.h>
#include <turbojpeg.h>

struct bpt_image_encoder {
    tjhandle jpeg;
    unsigned char *bytes; /* of the JPEG made last, libjpeg-turbo's: tjFree(), */
    unsigned long size;   /* which it uses again unless this is 0 */
    uint8_t *packed;      /* shape [H,W,C] or a row of that */
    size_t capacity;
};

bpt_status bpt_image_encoder_open(bpt_image_encoder **out) {
    bpt_image_encoder *e;
    BPT_TRY(BPT_NEW("image encoder", 1, &e));
    e->jpeg = tjInitCompress();
    if (!e->jpeg) {
        bpt_image_encoder_close(e);
        return bpt_fail(BPT_ENOMEM, "image encoder: libjpeg-turbo has no memory");
    }
    *out = e;
    return BPT_OK;
}

void bpt_image_encoder_close(bpt_image_encoder *e) {
    if (!e) return;
    if (e->jpeg) tjDestroy(e->jpeg);
    tjFree(e->bytes);
    bpt_free(e->packed);
    bpt_free(e);
}

static bpt_status check(uint32_t C, uint32_t H, uint32_t W) {
    if ((C != 1 && C != 3) || H < 1 || W < 1 || H > BPT_IMAGE_MAX_SIDE || W > BPT_IMAGE_MAX_SIDE)
        return bpt_fail(BPT_EUSAGE,
                        "an image of %u x %u x %u pixels; 1 or 3 colours and sides of 1 to %d can "
                        "be written",
                        C, H, W, BPT_IMAGE_MAX_SIDE);
    return BPT_OK;
}

/* Planes side by side, n pixels. */
static void interleave(const uint8_t *pixels, size_t plane, uint32_t C, size_t n, uint8_t *out) {
    for (uint32_t c = 0; c < C; c++)
        for (size_t i = 0; i < n; i++) out[i * C + c] = pixels[c * plane + i];
}

static bpt_status append(bpt_image_file *file, const void *data, size_t size) {
    BPT_TRY(BPT_GROW("image file", file->size + size, &file->data, &file->capacity));
    memcpy(file->data + file->size, data, size);
    file->size += size;
    return BPT_OK;
}

/* ---- JPEG ---- */

/* Fails; what was written of a JPEG is of no use, also not as a place for the next one. */
static bpt_status drop_bytes(bpt_image_encoder *e) {
    const char *reason = tjGetErrorStr2(e->jpeg);
    tjFree(e->bytes);
    e->bytes = NULL;
    e->size = 0;
    return bpt_fail(strstr(reason, "emory") ? BPT_ENOMEM : BPT_EBACKEND, "cannot encode a JPEG: %s",
                    reason);
}

bpt_status bpt_image_encode_jpeg(bpt_image_encoder *e, const uint8_t *pixels, uint32_t C,
                                 uint32_t H, uint32_t W, int quality, bpt_jpeg_chroma chroma,
                                 bpt_image_file *file) {
    file->size = 0;
    BPT_TRY(check(C, H, W));
    if (quality < 1 || quality > 100)
        return bpt_fail(BPT_EUSAGE, "JPEG of quality %d; the range is 1 to 100", quality);
    const size_t n = (size_t)H * W;
    if (C == 3) {
        BPT_TRY(BPT_GROW("image to encode", 3 * n, &e->packed, &e->capacity));
        interleave(pixels, n, 3, n, e->packed);
    }
    if (tjCompress2(e->jpeg, C == 3 ? e->packed : pixels, (int)W, (int)(W * C), (int)H,
                    C == 3 ? TJPF_RGB : TJPF_GRAY, &e->bytes, &e->size,
                    C == 1                   ? TJSAMP_GRAY
                    : chroma == BPT_JPEG_444 ? TJSAMP_444
                                             : TJSAMP_420,
                    quality, TJFLAG_ACCURATEDCT) != 0)
        return drop_bytes(e);
    return append(file, e->bytes, e->size);
}

/* ---- PNG ---- */

typedef struct png_writer {
    bpt_image_file *file;
    jmp_buf failed; /* libpng does not return from an error */
    bpt_status status;
} png_writer;

static void on_error(png_structp png, png_const_charp reason) {
    png_writer *w = png_get_error_ptr(png);
    if (w->status == BPT_OK)
        w->status = bpt_fail(strstr(reason, "emory") ? BPT_ENOMEM : BPT_EBACKEND,
                             "cannot encode a PNG: %s", reason);
    longjmp(w->failed, 1);
}

static void on_warning(png_structp png, png_const_charp reason) {
    (void)png;
    (void)reason;
}

static void on_write(png_structp png, png_bytep data, size_t size) {
    png_writer *w = png_get_io_ptr(png);
    w->status = append(w->file, data, size);
    if (w->status != BPT_OK) png_error(png, "no memory");
}

static void on_flush(png_structp png) {
    (void)png;
}

static void write_image(png_structp png, png_infop info, const uint8_t *pixels, uint32_t C,
                        uint32_t H, uint32_t W, uint8_t *row) {
    png_set_IHDR(png, info, W, H, 8, C == 3 ? PNG_COLOR_TYPE_RGB : PNG_COLOR_TYPE_GRAY,
                 PNG_INTERLACE_NONE, PNG_COMPRESSION_TYPE_DEFAULT, PNG_FILTER_TYPE_DEFAULT);
    png_write_info(png, info);
    for (uint32_t y = 0; y < H; y++) {
        interleave(pixels + (size_t)y * W, (size_t)H * W, C, W, row);
        png_write_row(png, row);
    }
    png_write_end(png, info);
}

bpt_status bpt_image_encode_png(bpt_image_encoder *e, const uint8_t *pixels, uint32_t C, uint32_t H,
                                uint32_t W, bpt_image_file *file) {
    file->size = 0;
    BPT_TRY(check(C, H, W));
    BPT_TRY(BPT_GROW("image to encode", (size_t)W * C, &e->packed, &e->capacity));
    png_writer w = {.file = file};
    png_structp png = png_create_write_struct(PNG_LIBPNG_VER_STRING, &w, on_error, on_warning);
    png_infop info = png ? png_create_info_struct(png) : NULL;
    if (!info) {
        w.status = bpt_fail(BPT_ENOMEM, "cannot encode a PNG: libpng has no memory");
    } else if (setjmp(w.failed) == 0) {
        png_set_write_fn(png, &w, on_write, on_flush);
        write_image(png, info, pixels, C, H, W, e->packed);
    }
    png_destroy_write_struct(&png, &info);
    if (w.status != BPT_OK) file->size = 0;
    return w.status;
}
