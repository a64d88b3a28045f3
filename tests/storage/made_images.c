#include "tests/storage/made_images.h"

#include <png.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <turbojpeg.h>
#include <zlib.h>

static void need(bool condition, const char *what) {
    if (condition) return;
    fprintf(stderr, "made_images: %s\n", what);
    abort();
}

void made_jpeg(made_file *file, const uint8_t *pixels, uint32_t H, uint32_t W, int format,
               int chroma, int quality, int flags) {
    const tjhandle handle = tjInitCompress();
    unsigned char *bytes = NULL;
    unsigned long size = 0;
    need(handle && tjCompress2(handle, pixels, (int)W, 0, (int)H, format, &bytes, &size, chroma,
                               quality, flags | TJFLAG_ACCURATEDCT) == 0,
         "tjCompress2");
    need(size <= sizeof file->data, "JPEG too large");
    memcpy(file->data, bytes, size);
    file->size = size;
    tjFree(bytes);
    tjDestroy(handle);
}

static void on_write(png_structp png, png_bytep data, size_t size) {
    made_file *file = png_get_io_ptr(png);
    need(size <= sizeof file->data - file->size, "PNG too large");
    memcpy(file->data + file->size, data, size);
    file->size += size;
}

static void on_flush(png_structp png) {
    (void)png;
}

static void set_transparency(png_structp png, png_infop info, const made_png_kind *kind) {
    png_color palette[256];
    for (int i = 0; i < kind->n_palette; i++)
        palette[i] =
            (png_color){kind->palette[3 * i], kind->palette[3 * i + 1], kind->palette[3 * i + 2]};
    if (kind->palette) png_set_PLTE(png, info, palette, kind->n_palette);
    if (kind->palette_alpha) png_set_tRNS(png, info, kind->palette_alpha, kind->n_palette, NULL);
    if (!kind->transparent) return;
    const uint16_t *t = kind->transparent;
    png_color_16 colour = {.gray = t[0]};
    if (kind->colour_type == PNG_COLOR_TYPE_RGB)
        colour = (png_color_16){.red = t[0], .green = t[1], .blue = t[2]};
    png_set_tRNS(png, info, NULL, 0, &colour);
}

void made_png(made_file *file, const made_png_kind *kind, const uint8_t *rows, size_t row_bytes,
              uint32_t H, uint32_t W) {
    file->size = 0;
    png_structp png = png_create_write_struct(PNG_LIBPNG_VER_STRING, NULL, NULL, NULL);
    png_infop info = png_create_info_struct(png);
    png_set_write_fn(png, file, on_write, on_flush);
    png_set_IHDR(png, info, W, H, kind->bits, kind->colour_type,
                 kind->interlaced ? PNG_INTERLACE_ADAM7 : PNG_INTERLACE_NONE,
                 PNG_COMPRESSION_TYPE_DEFAULT, PNG_FILTER_TYPE_DEFAULT);
    set_transparency(png, info, kind);
    png_write_info(png, info);
    const int n_passes = kind->interlaced ? png_set_interlace_handling(png) : 1;
    for (int pass = 0; pass < n_passes; pass++)
        for (uint32_t y = 0; y < H; y++) png_write_row(png, rows + y * row_bytes);
    png_write_end(png, info);
    png_destroy_write_struct(&png, &info);
}

void made_insert(made_file *file, size_t at, const void *bytes, size_t n) {
    need(n <= sizeof file->data - file->size && at <= file->size, "insert");
    memmove(file->data + at + n, file->data + at, file->size - at);
    memcpy(file->data + at, bytes, n);
    file->size += n;
}

void made_remove(made_file *file, size_t at, size_t n) {
    need(at + n <= file->size, "remove");
    memmove(file->data + at, file->data + at + n, file->size - at - n);
    file->size -= n;
}

size_t made_find_marker(const made_file *file, uint8_t marker) {
    size_t at = 2;
    while (at + 4 <= file->size && file->data[at] == 0xFF) {
        if (file->data[at + 1] == marker) return at;
        at += 2 + ((size_t)file->data[at + 2] << 8 | file->data[at + 3]);
    }
    need(false, "no such marker");
    return 0;
}

static void put(uint8_t *out, uint32_t value, int n, bool little_endian) {
    for (int i = 0; i < n; i++) out[little_endian ? i : n - 1 - i] = (uint8_t)(value >> (8 * i));
}

size_t made_exif(uint8_t *tiff, uint32_t orientation, bool little) {
    memcpy(tiff, little ? "II*\0" : "MM\0*", 4);
    put(tiff + 4, 8, 4, little);       /* where the directory is */
    put(tiff + 8, 1, 2, little);       /* its entries */
    put(tiff + 10, 0x0112, 2, little); /* orientation */
    put(tiff + 12, 3, 2, little);      /* a short */
    put(tiff + 14, 1, 4, little);      /* one of them */
    memset(tiff + 18, 0, 8);           /* the value's other half; no further directory */
    put(tiff + 18, orientation, 2, little);
    return 26;
}

void made_add_chunk(made_file *file, const char *type, const void *body, size_t size) {
    uint8_t chunk[4 + 4 + 64 + 4];
    need(size <= 64, "chunk too large");
    put(chunk, (uint32_t)size, 4, false);
    memcpy(chunk + 4, type, 4);
    memcpy(chunk + 8, body, size);
    put(chunk + 8 + size, (uint32_t)crc32(0, chunk + 4, (uInt)size + 4), 4, false);
    made_insert(file, 8 + 25, chunk, size + 12);
}

void made_add_exif(made_file *file, const uint8_t *tiff, size_t size) {
    if (file->data[0] != 0xFF) {
        made_add_chunk(file, "eXIf", tiff, size);
        return;
    }
    uint8_t segment[4 + 6 + 64] = {0xFF, 0xE1, 0, 0, 'E', 'x', 'i', 'f'};
    need(size <= 64, "Exif too large");
    put(segment + 2, (uint32_t)size + 8, 2, false);
    memcpy(segment + 10, tiff, size);
    made_insert(file, 2, segment, size + 10);
}

void made_noise(uint8_t *out, size_t n, uint64_t seed) {
    uint64_t x = seed * 2 + 1;
    for (size_t i = 0; i < n; i++) {
        x = x * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
        out[i] = (uint8_t)(x >> 56);
    }
}

void made_picture(uint8_t *out, uint32_t H, uint32_t W, uint32_t lanes) {
    for (uint32_t y = 0; y < H; y++)
        for (uint32_t x = 0; x < W; x++)
            for (uint32_t c = 0; c < lanes; c++) {
                const int64_t dy = (int64_t)(y * 2) - (int64_t)(H + 3 * c);
                const int64_t dx = (int64_t)(x * 2) - (int64_t)W + (int64_t)(5 * c);
                const bool disc = dy * dy * 4 + dx * dx * 4 < (int64_t)H * W;
                const uint32_t slope = (x * (c + 1) * 90 / W + y * (3 - c % 3) * 50 / H) % 200;
                out[((size_t)y * W + x) * lanes + c] = (uint8_t)(disc ? 230 - slope : 30 + slope);
            }
}
