/** @file tests/storage/made_images.h
 * Image files of every kind, made by the libraries themselves, for tests.
 *
 * Threads: one at a time. What goes wrong ends the program. */
#ifndef BPT_TESTS_STORAGE_MADE_IMAGES_H
#define BPT_TESTS_STORAGE_MADE_IMAGES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { MADE_MAX_BYTES = 1 << 20 };

/** A file in memory. */
typedef struct made_file {
    size_t size;
    uint8_t data[MADE_MAX_BYTES];
} made_file;

/** Encodes with libjpeg-turbo.
 * @param pixels packed as @p format, a TJPF_*, says, rows without gaps
 * @param chroma TJSAMP_*; a CMYK image becomes YCCK with an Adobe marker
 * @param flags  TJFLAG_* */
void made_jpeg(made_file *file, const uint8_t *pixels, uint32_t H, uint32_t W, int format,
               int chroma, int quality, int flags);

/** What kind of PNG. */
typedef struct made_png_kind {
    int colour_type; /* PNG_COLOR_TYPE_* */
    int bits;
    bool interlaced;
    const uint8_t *palette; /* shape [n_palette,3] */
    int n_palette;
    const uint8_t *palette_alpha; /* shape [n_palette]; NULL: none */
    const uint16_t *transparent;  /* the grey, or red, green, blue, that is transparent; or NULL */
} made_png_kind;

/** Encodes with libpng.
 * @param rows samples as PNG packs them: big-endian, several to a byte below 8 bits */
void made_png(made_file *file, const made_png_kind *kind, const uint8_t *rows, size_t row_bytes,
              uint32_t H, uint32_t W);

/** Puts bytes into a file at an offset; what is behind moves. */
void made_insert(made_file *file, size_t at, const void *bytes, size_t n);
/** Takes n bytes out. */
void made_remove(made_file *file, size_t at, size_t n);

/** @return offset of the 0xFF before the first marker of that code in a JPEG's header; ends the
 * program where there is none */
size_t made_find_marker(const made_file *file, uint8_t marker);

/** An Exif block of one tag, from its byte order mark on. @return its size, at most 32 */
size_t made_exif(uint8_t *tiff, uint32_t orientation, bool little_endian);

/** Adds an Exif block to a JPEG (APP1) or a PNG (eXIf). */
void made_add_exif(made_file *file, const uint8_t *tiff, size_t size);

/** Adds a chunk, with its checksum, behind the header of a PNG. */
void made_add_chunk(made_file *file, const char *type, const void *body, size_t size);

/** Random bytes, the same for the same seed. */
void made_noise(uint8_t *out, size_t n, uint64_t seed);

/** A photograph of sorts, shape [H,W,lanes]: slopes and discs, other ones in every lane. */
void made_picture(uint8_t *out, uint32_t H, uint32_t W, uint32_t lanes);

#endif
