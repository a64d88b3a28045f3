/* What comes out of images of every kind, and which are refused. */
#include "base/memory.h"
#include "storage/images/image_decoder.h"
#include "storage/images/resize.h"
#include "tests/storage/made_images.h"

#include <png.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <turbojpeg.h>

#include <cmocka.h>

static made_file file;
static uint8_t pixels[3 * 512 * 512];

static int set_up(void **state) {
    return bpt_image_decoder_open(NULL, (bpt_image_decoder **)state) == BPT_OK ? 0 : 1;
}

static int tear_down(void **state) {
    bpt_image_decoder_close(*state);
    return bpt_memory_live() == 0 ? 0 : 1;
}

static bpt_image_info look(void) {
    bpt_image_info info;
    const bpt_status status = bpt_image_look("a.file", file.data, file.size, NULL, &info);
    if (status != BPT_OK) print_error("%s\n", bpt_error_last()->text);
    assert_int_equal(status, BPT_OK);
    return info;
}

/* Decodes the file to pixels. */
static bpt_image_frame decode(bpt_image_decoder *decoder, bpt_image_fit fit, uint32_t C,
                              bool whole) {
    const bpt_image_info info = look();
    const bpt_image_frame frame = bpt_image_fit_frame(&fit, info.H, info.W);
    const bpt_image_wish wish = {.frame = frame, .C = C, .whole = whole};
    assert_true((size_t)C * frame.H * frame.W <= sizeof pixels);
    memset(pixels, 0xA5, sizeof pixels);
    const bpt_status status =
        bpt_image_decode(decoder, "a.file", file.data, file.size, &wish, pixels);
    if (status != BPT_OK) print_error("%s\n", bpt_error_last()->text);
    assert_int_equal(status, BPT_OK);
    return frame;
}

static uint8_t luma(const uint8_t *rgb) {
    return (uint8_t)(0.299 * rgb[0] + 0.587 * rgb[1] + 0.114 * rgb[2] + 0.5);
}

/* ---- PNG: exact ---- */

enum { SIDE_H = 13, SIDE_W = 17, N = SIDE_H * SIDE_W };

/* Sample i of a row that PNG packed. */
static uint32_t sample(const uint8_t *row, size_t i, int bits) {
    if (bits == 16) return (uint32_t)row[2 * i] << 8 | row[2 * i + 1];
    const size_t at = i * (size_t)bits;
    return (row[at / 8] >> (8 - bits - (int)(at % 8))) & ((1U << bits) - 1);
}

static double to_8_bits(uint32_t value, int bits) {
    return (uint8_t)(value * 255.0 / ((1U << bits) - 1) + 0.5);
}

/* The colour that a pixel should have, by the rules of storage/images/image.h. */
static void expected_pixel(const made_png_kind *k, const uint8_t *row, size_t x, uint8_t *rgb) {
    static const int n_samples[7] = {1, 0, 3, 1, 2, 0, 4};
    const int n = n_samples[k->colour_type];
    uint32_t s[4];
    for (int i = 0; i < n; i++) s[i] = sample(row, x * (size_t)n + (size_t)i, k->bits);
    double value[3], alpha = 255;
    for (int c = 0; c < 3; c++) value[c] = to_8_bits(s[n >= 3 ? c : 0], k->bits);
    if (k->colour_type == PNG_COLOR_TYPE_PALETTE) {
        for (int c = 0; c < 3; c++) value[c] = k->palette[3 * s[0] + c];
        if (k->palette_alpha) alpha = k->palette_alpha[s[0]];
    }
    if (n == 2 || n == 4) alpha = to_8_bits(s[n - 1], k->bits);
    if (k->transparent) {
        bool same = true;
        for (int i = 0; i < n; i++) same = same && s[i] == k->transparent[i];
        if (same) alpha = 0;
    }
    for (int c = 0; c < 3; c++)
        rgb[c] = (uint8_t)((value[c] * alpha + 255 * (255 - alpha)) / 255 + 0.5);
}

static void check_png(bpt_image_decoder *decoder, const made_png_kind *kind, bool is_grey,
                      bool has_alpha) {
    static const int n_samples[7] = {1, 0, 3, 1, 2, 0, 4};
    const size_t row_bytes =
        ((size_t)SIDE_W * (size_t)n_samples[kind->colour_type] * (size_t)kind->bits + 7) / 8;
    static uint8_t rows[SIDE_H * SIDE_W * 8];
    made_noise(rows, sizeof rows, (uint64_t)kind->bits);
    for (int i = 0; kind->transparent && i < n_samples[kind->colour_type]; i++) {
        /* make sure that it occurs: the first pixel */
        const uint32_t t = kind->transparent[i];
        if (kind->bits == 16) {
            rows[2 * i] = (uint8_t)(t >> 8);
            rows[2 * i + 1] = (uint8_t)t;
        } else {
            const int shift = 8 - kind->bits;
            rows[i] = (uint8_t)((rows[i] & ((1 << shift) - 1)) | t << shift);
        }
    }
    made_png(&file, kind, rows, row_bytes, SIDE_H, SIDE_W);

    const bpt_image_info info = look();
    assert_int_equal(info.format, BPT_IMAGE_PNG);
    assert_int_equal(info.colour, is_grey ? BPT_IMAGE_GREY : BPT_IMAGE_RGB);
    assert_int_equal(info.C, is_grey ? 1 : 3);
    assert_int_equal(info.H, SIDE_H);
    assert_int_equal(info.W, SIDE_W);
    assert_int_equal(info.alpha, has_alpha);
    assert_int_equal(info.progressive, kind->interlaced);
    assert_int_equal(info.bits, kind->palette ? 8 : kind->bits);

    static uint8_t in_colour[3 * N];
    decode(decoder, (bpt_image_fit){0}, 3, false);
    memcpy(in_colour, pixels, sizeof in_colour);
    decode(decoder, (bpt_image_fit){0}, 1, false);
    for (size_t i = 0; i < N; i++) {
        uint8_t rgb[3];
        expected_pixel(kind, rows + i / SIDE_W * row_bytes, i % SIDE_W, rgb);
        for (size_t c = 0; c < 3; c++) assert_int_equal(in_colour[c * N + i], rgb[c]);
        assert_in_range(pixels[i], luma(rgb) - (luma(rgb) > 0), luma(rgb) + 1);
        if (is_grey) assert_int_equal(pixels[i], rgb[0]);
    }
}

static void png_of_every_kind(void **state) {
    static uint8_t palette[3 * 256], palette_alpha[256];
    made_noise(palette, sizeof palette, 3);
    made_noise(palette_alpha, sizeof palette_alpha, 4);
    static const uint16_t grey = 1, colour[3] = {7, 8, 9};
    enum { G = PNG_COLOR_TYPE_GRAY, P = PNG_COLOR_TYPE_PALETTE };
    for (int interlaced = 0; interlaced < 2; interlaced++) {
        const bool i = interlaced;
        for (int bits = 1; bits <= 16; bits *= 2) {
            check_png(*state, &(made_png_kind){G, bits, i, 0, 0, 0, 0}, true, false);
            check_png(*state, &(made_png_kind){G, bits, i, 0, 0, 0, &grey}, true, true);
            if (bits == 16) continue;
            const int n = 1 << bits;
            check_png(*state, &(made_png_kind){P, bits, i, palette, n, 0, 0}, false, false);
            check_png(*state, &(made_png_kind){P, bits, i, palette, n, palette_alpha, 0}, false,
                      true);
        }
        for (int bits = 8; bits <= 16; bits += 8) {
            const int rgb = PNG_COLOR_TYPE_RGB;
            check_png(*state, &(made_png_kind){rgb, bits, i, 0, 0, 0, 0}, false, false);
            check_png(*state, &(made_png_kind){rgb, bits, i, 0, 0, 0, colour}, false, true);
            check_png(*state, &(made_png_kind){PNG_COLOR_TYPE_GRAY_ALPHA, bits, i, 0, 0, 0, 0},
                      true, true);
            check_png(*state, &(made_png_kind){PNG_COLOR_TYPE_RGB_ALPHA, bits, i, 0, 0, 0, 0},
                      false, true);
        }
    }
}

static void all_of_16_bits_are_rounded(void **state) {
    static uint8_t rows[1 << 17];
    for (size_t i = 0; i < sizeof rows / 2; i++) {
        rows[2 * i] = (uint8_t)(i >> 8);
        rows[2 * i + 1] = (uint8_t)i;
    }
    made_png(&file, &(made_png_kind){.colour_type = PNG_COLOR_TYPE_GRAY, .bits = 16}, rows, 512,
             256, 256);
    decode(*state, (bpt_image_fit){0}, 1, false);
    for (uint32_t i = 0; i < 1 << 16; i++) assert_int_equal(pixels[i], (i * 255 + 32767) / 65535);
}

/* ---- JPEG ---- */

/* One colour all over: what a pixel becomes does not depend on how it is coded. */
static void expect_flat(bpt_image_decoder *decoder, const uint8_t *rgb, int tolerance) {
    for (int C = 1; C <= 3; C += 2) {
        const bpt_image_frame f = decode(decoder, (bpt_image_fit){0}, (uint32_t)C, false);
        const size_t n = (size_t)f.H * f.W;
        const uint8_t grey = luma(rgb);
        for (size_t i = 0; i < (size_t)C * n; i++) {
            const int expected = C == 1 ? grey : rgb[i / n];
            if (abs(pixels[i] - expected) > tolerance)
                print_error("C %d, value %zu: %d, expected %d\n", C, i, pixels[i], expected);
            assert_true(abs(pixels[i] - expected) <= tolerance);
        }
    }
}

static void fill(uint8_t *out, size_t n, const uint8_t *values, size_t n_values) {
    for (size_t i = 0; i < n; i++) out[i] = values[i % n_values];
}

static void jpeg_of_every_kind(void **state) {
    static const uint8_t colours[][3] = {{0, 0, 0},    {255, 255, 255}, {200, 30, 60},
                                         {20, 180, 9}, {40, 60, 230},   {128, 128, 128}};
    static const int chromas[] = {TJSAMP_444, TJSAMP_422, TJSAMP_420,
                                  TJSAMP_440, TJSAMP_411, TJSAMP_GRAY};
    static uint8_t in[3 * 35 * 21];
    for (size_t c = 0; c < sizeof colours / sizeof colours[0]; c++)
        for (size_t k = 0; k < sizeof chromas / sizeof chromas[0]; k++)
            for (int progressive = 0; progressive < 2; progressive++) {
                fill(in, sizeof in, colours[c], 3);
                made_jpeg(&file, in, 35, 21, TJPF_RGB, chromas[k], 100,
                          progressive ? TJFLAG_PROGRESSIVE : 0);
                const bool grey = chromas[k] == TJSAMP_GRAY;
                const bpt_image_info info = look();
                assert_int_equal(info.format, BPT_IMAGE_JPEG);
                assert_int_equal(info.colour, grey ? BPT_IMAGE_GREY : BPT_IMAGE_RGB);
                assert_int_equal(info.C, grey ? 1 : 3);
                assert_int_equal(info.H, 35);
                assert_int_equal(info.W, 21);
                assert_int_equal(info.progressive, progressive);
                assert_int_equal(info.orientation, 1);
                const uint8_t y = luma(colours[c]), as_grey[3] = {y, y, y};
                expect_flat(*state, grey ? as_grey : colours[c], 2);
            }
}

static void arithmetic_jpeg_is_read(void **state) {
    static uint8_t in[3 * 16 * 16];
    static const uint8_t colour[3] = {90, 160, 30};
    fill(in, sizeof in, colour, 3);
    setenv("TJ_ARITHMETIC", "1", 1);
    made_jpeg(&file, in, 16, 16, TJPF_RGB, TJSAMP_420, 100, 0);
    unsetenv("TJ_ARITHMETIC");
    assert_int_equal(file.data[made_find_marker(&file, 0xC9)], 0xFF);
    expect_flat(*state, colour, 2);
}

/* Three colours that an Adobe marker says are no YCbCr. */
static void rgb_jpeg_is_read(void **state) {
    static uint8_t in[3 * 16 * 16];
    static const uint8_t colour[3] = {90, 160, 30};
    fill(in, sizeof in, colour, 3);
    made_jpeg(&file, in, 16, 16, TJPF_RGB, TJSAMP_444, 100, 0);
    const size_t jfif = made_find_marker(&file, 0xE0);
    made_remove(&file, jfif, 18);
    static const uint8_t adobe[16] = {0xFF, 0xEE, 0, 14, 'A', 'd', 'o', 'b', 'e', 0, 100};
    made_insert(&file, 2, adobe, sizeof adobe);
    assert_true(look().adobe);
    /* its Y, Cb, Cr are now its red, green, blue */
    const uint8_t y = luma(colour);
    const uint8_t stored[3] = {y, (uint8_t)(128.5 + 0.564 * (colour[2] - y)),
                               (uint8_t)(128.5 + 0.713 * (colour[0] - y))};
    expect_flat(*state, stored, 2);
}

static void cmyk_becomes_rgb(void **state) {
    static const uint8_t inks[][4] = {{0, 0, 0, 0},        {255, 255, 255, 255}, {0, 0, 0, 255},
                                      {200, 100, 50, 180}, {10, 250, 90, 255},   {255, 0, 255, 30}};
    enum { ADOBE_BYTES = 16, TRANSFORM = 15 };
    static uint8_t in[4 * 16 * 16];
    for (size_t i = 0; i < sizeof inks / sizeof inks[0]; i++) {
        const uint8_t *v = inks[i]; /* as stored: what is inverted is light */
        uint8_t inverted[3];
        for (int c = 0; c < 3; c++) inverted[c] = (uint8_t)(v[c] * v[3] / 255.0 + 0.5);
        fill(in, sizeof in, v, 4);
        for (int progressive = 0; progressive < 2; progressive++) {
            made_jpeg(&file, in, 16, 16, TJPF_CMYK, TJSAMP_444, 100,
                      progressive ? TJFLAG_PROGRESSIVE : 0);
            const bpt_image_info info = look();
            assert_int_equal(info.colour, BPT_IMAGE_CMYK);
            assert_int_equal(info.C, 3);
            assert_true(info.adobe);
            expect_flat(*state, inverted, 3);
        }
        /* The same without a marker, all but one ink 128: YCCK and CMYK agree on such a file only
         * where the colours are neutral. */
        const uint8_t neutral[4] = {128, 128, 128, v[3]};
        fill(in, sizeof in, neutral, 4);
        made_jpeg(&file, in, 16, 16, TJPF_CMYK, TJSAMP_444, 100, 0);
        const size_t adobe = made_find_marker(&file, 0xEE);
        assert_int_equal(file.data[adobe + TRANSFORM], 2);
        file.data[adobe + TRANSFORM] = 0;
        /* YCCK of (128, 128, 128): Y 127, Cb and Cr 128, now taken as cyan, magenta, yellow */
        const uint8_t light = (uint8_t)(128 * v[3] / 255.0 + 0.5);
        expect_flat(*state, (uint8_t[3]){light, light, light}, 3);
        made_remove(&file, adobe, ADOBE_BYTES);
        assert_false(look().adobe);
        const uint8_t dark = (uint8_t)(127 * (255 - v[3]) / 255.0 + 0.5);
        expect_flat(*state, (uint8_t[3]){dark, dark, dark}, 3);
    }
}

/* ---- orientation ---- */

static void orientations_are_applied(void **state) {
    static const char *const upright[8] = {"abcdef", "cbafed", "fedcba", "defabc",
                                           "adbecf", "daebfc", "fcebda", "cfbead"};
    static const uint8_t colours[6 * 3] = "Aa0Bb1Cc2Dd3Ee4Ff";
    for (uint32_t o = 1; o <= 8; o++)
        for (int grey = 0; grey < 2; grey++) {
            const made_png_kind kind = {
                .colour_type = grey ? PNG_COLOR_TYPE_GRAY : PNG_COLOR_TYPE_RGB, .bits = 8};
            made_png(&file, &kind, grey ? (const uint8_t *)"abcdef" : colours, grey ? 3 : 9, 2, 3);
            uint8_t tiff[32];
            made_add_exif(&file, tiff, made_exif(tiff, o, o % 2));
            const bpt_image_info info = look();
            assert_int_equal(info.orientation, o);
            assert_int_equal(info.H, o > 4 ? 3 : 2);
            assert_int_equal(info.W, o > 4 ? 2 : 3);
            decode(*state, (bpt_image_fit){0}, grey ? 1 : 3, false);
            for (int i = 0; i < 6; i++) {
                const int from = upright[o - 1][i] - 'a';
                if (grey)
                    assert_int_equal(pixels[i], 'a' + from);
                else
                    for (int c = 0; c < 3; c++)
                        assert_int_equal(pixels[6 * c + i], colours[3 * from + c]);
            }
        }
}

/* Larger than a tile, not square, with a change of size that follows. */
static void turned_jpeg_is_the_turned_image(void **state) {
    enum { H = 45, W = 70 };
    static uint8_t in[H * W * 3], straight[3 * H * W];
    made_picture(in, H, W, 3);
    made_jpeg(&file, in, H, W, TJPF_RGB, TJSAMP_420, 90, 0);
    decode(*state, (bpt_image_fit){0}, 3, false);
    memcpy(straight, pixels, sizeof straight);
    uint8_t tiff[32];
    made_add_exif(&file, tiff, made_exif(tiff, 6, false));
    decode(*state, (bpt_image_fit){0}, 3, false);
    for (size_t c = 0; c < 3; c++)
        for (size_t y = 0; y < W; y++)
            for (size_t x = 0; x < H; x++)
                assert_int_equal(pixels[c * H * W + y * H + x],
                                 straight[c * H * W + (H - 1 - x) * W + y]);
    static uint8_t upright[3 * H * W], expected[3 * 40 * 30];
    memcpy(upright, pixels, sizeof upright);
    const bpt_image_frame f = decode(*state, (bpt_image_fit){.H = 40, .W = 30}, 3, false);
    bpt_image_resizer *r;
    assert_int_equal(bpt_image_resizer_open(&r), BPT_OK);
    assert_int_equal(bpt_image_resize(r, &f, upright, 3, W, H, expected), BPT_OK);
    assert_memory_equal(pixels, expected, sizeof expected);
    bpt_image_resizer_close(r);
}

static void senseless_exif_is_none(void **state) {
    static uint8_t in[3 * 8 * 12];
    for (int png = 0; png < 2; png++)
        for (int i = 0; i < 300; i++) {
            made_picture(in, 8, 12, 3);
            if (png)
                made_png(&file, &(made_png_kind){.colour_type = PNG_COLOR_TYPE_RGB, .bits = 8}, in,
                         36, 8, 12);
            else
                made_jpeg(&file, in, 8, 12, TJPF_RGB, TJSAMP_444, 90, 0);
            uint8_t tiff[32];
            size_t size = made_exif(tiff, 6, i % 2);
            if (i < 26)
                size = (size_t)i < 20 ? (size_t)i : 19; /* cut before the value ends */
            else if (i < 260)
                made_noise(tiff, size, (uint64_t)i);
            else
                made_exif(tiff, (uint32_t)(i < 270 ? 0 : i - 260 + 8), i % 2);
            if (i == 280) tiff[4 + 3 * !(i % 2)] = 25; /* directory at the end */
            made_add_exif(&file, tiff, size);
            assert_int_equal(look().orientation, 1);
            decode(*state, (bpt_image_fit){0}, 3, false);
        }
}

/* ---- sizes ---- */

static void decode_with_tj(uint8_t *planes, uint32_t H, uint32_t W) {
    static uint8_t packed[3 * 512 * 512];
    const tjhandle handle = tjInitDecompress();
    assert_int_equal(tjDecompress2(handle, file.data, file.size, packed, (int)W, 0, (int)H,
                                   TJPF_RGB, TJFLAG_ACCURATEDCT),
                     0);
    tjDestroy(handle);
    for (size_t i = 0; i < (size_t)H * W; i++)
        for (size_t c = 0; c < 3; c++) planes[c * H * W + i] = packed[3 * i + c];
}

/* The size that libjpeg-turbo should have decoded at, for a wished size. */
static void expect_scaled(bpt_image_decoder *decoder, bpt_image_fit fit, uint32_t H, uint32_t W,
                          bool whole) {
    static uint8_t scaled[3 * 512 * 512], expected[3 * 512 * 512];
    bpt_image_frame f = decode(decoder, fit, 3, whole);
    decode_with_tj(scaled, H, W);
    f.h = H;
    f.w = W;
    bpt_image_resizer *r;
    assert_int_equal(bpt_image_resizer_open(&r), BPT_OK);
    assert_int_equal(bpt_image_resize(r, &f, scaled, 3, H, W, expected), BPT_OK);
    assert_memory_equal(pixels, expected, (size_t)3 * f.H * f.W);
    bpt_image_resizer_close(r);
}

static void small_targets_are_decoded_small(void **state) {
    enum { H = 101, W = 150 };
    static uint8_t in[H * W * 3];
    made_picture(in, H, W, 3);
    for (int progressive = 0; progressive < 2; progressive++) {
        made_jpeg(&file, in, H, W, TJPF_RGB, progressive ? TJSAMP_444 : TJSAMP_420, 85,
                  progressive ? TJFLAG_PROGRESSIVE : 0);
        expect_scaled(*state, (bpt_image_fit){.H = 51, .W = 75}, 51, 75, false);
        expect_scaled(*state, (bpt_image_fit){.H = 52, .W = 75}, H, W, false);
        expect_scaled(*state, (bpt_image_fit){.H = 51, .W = 76}, H, W, false);
        expect_scaled(*state, (bpt_image_fit){.H = 26, .W = 38}, 26, 38, false);
        expect_scaled(*state, (bpt_image_fit){.H = 27, .W = 38}, 51, 75, false);
        expect_scaled(*state, (bpt_image_fit){.H = 13, .W = 1}, 13, 19, false);
        expect_scaled(*state, (bpt_image_fit){.H = 1, .W = 1}, 13, 19, false);
        expect_scaled(*state, (bpt_image_fit){.short_side = 40, .H = 32, .W = 20}, 51, 75, false);
        expect_scaled(*state, (bpt_image_fit){.H = 13, .W = 1}, H, W, true);
        expect_scaled(*state, (bpt_image_fit){.H = 120, .W = 1}, H, W, false);
    }
}

static void parts_are_cut_from_the_whole(void **state) {
    enum { H = 101, W = 150 };
    static uint8_t in[H * W * 3], all[3 * H * W], expected[3 * 10 * 12];
    made_picture(in, H, W, 3);
    made_jpeg(&file, in, H, W, TJPF_RGB, TJSAMP_444, 85, 0);
    decode(*state, (bpt_image_fit){0}, 3, false);
    memcpy(all, pixels, sizeof all);
    const bpt_image_frame frames[] = {
        {1, 2, 100, 148, 10, 12, 0, 0, 10, 12},  {50, 60, 10, 12, 10, 12, 0, 0, 10, 12},
        {50, 60, 20, 20, 20, 20, 3, 4, 10, 12},  {1, 2, 90, 140, 40, 50, 7, 9, 9, 11},
        {3, 0, 97, 150, 90, 140, 0, 131, 12, 9}, {50, 60, 10, 12, 30, 29, 9, 8, 10, 10}};
    bpt_image_resizer *r;
    assert_int_equal(bpt_image_resizer_open(&r), BPT_OK);
    for (size_t i = 0; i < sizeof frames / sizeof frames[0]; i++) {
        const bpt_image_wish wish = {.frame = frames[i], .C = 3};
        assert_int_equal(bpt_image_decode(*state, "a", file.data, file.size, &wish, pixels),
                         BPT_OK);
        assert_int_equal(bpt_image_resize(r, &frames[i], all, 3, H, W, expected), BPT_OK);
        assert_memory_equal(pixels, expected, (size_t)3 * frames[i].H * frames[i].W);
    }
    bpt_image_resizer_close(r);
}

/* ---- what is refused ---- */

static void expect_refused(const void *data, size_t size, const bpt_image_limits *limits,
                           const char *text) {
    bpt_image_info info;
    const uint64_t before = bpt_memory_allocations();
    const bpt_status status = bpt_image_look("a.file", data, size, limits, &info);
    assert_int_equal(bpt_memory_allocations(), before);
    if (status != BPT_EDATA || !strstr(bpt_error_last()->text, text))
        print_error("%s: %s, expected %s\n", bpt_status_name(status), bpt_error_last()->text, text);
    assert_int_equal(status, BPT_EDATA);
    assert_non_null(strstr(bpt_error_last()->text, text));
    assert_non_null(strstr(bpt_error_last()->text, "a.file"));
}

static void other_formats_are_named(void **state) {
    (void)state;
    static const struct {
        const char *bytes;
        size_t size;
        const char *text;
    } files[] = {
        {"", 0, "is empty"},
        {"GIF89a", 6, "is a GIF image; bpt reads JPEG and PNG"},
        {"RIFF\x10\0\0\0WEBPVP8 ", 16, "is a WebP image"},
        {"BM\x36\0\0\0", 6, "is a BMP image"},
        {"II*\0\x08\0\0\0", 8, "is a TIFF image"},
        {"MM\0*\0\0\0\x08", 8, "is a TIFF image"},
        {"\0\0\0\x18"
         "ftypheic\0\0\0\0",
         16, "is a HEIF image"},
        {"\0\0\0\x18"
         "ftypmif1\0\0\0\0",
         16, "is a HEIF image"},
        {"\0\0\0\x18"
         "ftypavif\0\0\0\0",
         16, "is an AVIF image"},
        {"\0\0\0\x0CjP  \r\n\x87\n", 12, "is a JPEG 2000 image"},
        {"\xFF\x0A\x01\x02", 4, "is a JPEG XL image"},
        {"8BPS\0\x01", 6, "is a PSD image"},
        {"P6\n2 2\n255\n", 11, "is a PNM image"},
        {"<svg xmlns", 10, "is an SVG image"},
        {"<?xml version=\"1.0\"?>\n<svg>", 27, "is an SVG image"},
        {"<?xml version=\"1.0\"?>\n<html>", 28, "is no image of a known format"},
        {"<html>404", 9, "is no image of a known format"},
        {"P", 1, "is no image of a known format"},
        {"\xFF\xD8", 2, "is no image of a known format"},
    };
    for (size_t i = 0; i < sizeof files / sizeof files[0]; i++) {
        expect_refused(files[i].bytes, files[i].size, NULL, files[i].text);
        assert_true(strlen(bpt_error_last()->hint) > 0);
    }
}

/* A JPEG header that claims a size, and nothing behind. */
static void claim_jpeg(uint32_t H, uint32_t W, uint8_t bits, uint8_t n, uint8_t marker) {
    file.size = 0;
    const uint8_t start[] = {0xFF,       0xD8,
                             0xFF,       marker,
                             0,          8 + 3 * n,
                             bits,       (uint8_t)(H >> 8),
                             (uint8_t)H, (uint8_t)(W >> 8),
                             (uint8_t)W, n};
    made_insert(&file, 0, start, sizeof start);
    for (uint8_t c = 0; c < n; c++) made_insert(&file, file.size, (uint8_t[]){c, 0x11, 0}, 3);
    made_insert(&file, file.size, "\xFF\xDA\0\x08\x01\0\0\0\x3F\0", 10);
}

static void large_images_are_refused_by_their_header(void **state) {
    claim_jpeg(16384, 8192, 8, 3, 0xC0);
    assert_int_equal(look().H, 16384);
    claim_jpeg(16384, 8193, 8, 3, 0xC0);
    expect_refused(file.data, file.size, NULL, "16384 x 8193 pixels; the limit is 16384 a side");
    claim_jpeg(16385, 1, 8, 3, 0xC2);
    expect_refused(file.data, file.size, NULL, "16385 x 1 pixels");
    claim_jpeg(1, 65535, 8, 1, 0xC0);
    expect_refused(file.data, file.size, NULL, "1 x 65535 pixels");
    bpt_image_limits limits = BPT_IMAGE_LIMITS_INIT;
    limits.pixels = 99;
    claim_jpeg(10, 10, 8, 1, 0xC0);
    expect_refused(file.data, file.size, &limits, "10 x 10 pixels");
    limits.pixels = 100;
    bpt_image_info info;
    assert_int_equal(bpt_image_look("a", file.data, file.size, &limits, &info), BPT_OK);
    limits.bytes = file.size - 1;
    expect_refused(file.data, file.size, &limits, "bytes; the limit is");
    limits.bytes = file.size;
    limits.side = 9;
    expect_refused(file.data, file.size, &limits, "the limit is 9 a side");

    static uint8_t row[BPT_IMAGE_MAX_SIDE + 1];
    const made_png_kind grey = {.colour_type = PNG_COLOR_TYPE_GRAY, .bits = 8};
    made_png(&file, &grey, row, sizeof row, 1, sizeof row);
    expect_refused(file.data, file.size, NULL, "1 x 16385 pixels");

    /* A decoder holds its own limits, and cannot be opened for more than can be resized. */
    (void)state;
    bpt_image_decoder *small;
    limits.side = BPT_IMAGE_MAX_SIDE + 1;
    assert_int_equal(bpt_image_decoder_open(&limits, &small), BPT_EUSAGE);
    limits.side = 9;
    assert_int_equal(bpt_image_decoder_open(&limits, &small), BPT_OK);
    claim_jpeg(10, 1, 8, 1, 0xC0);
    const bpt_image_wish wish = {bpt_image_fit_frame(&(bpt_image_fit){0}, 10, 1), 1, false, false};
    assert_int_equal(bpt_image_decode(small, "a", file.data, file.size, &wish, pixels), BPT_EDATA);
    bpt_image_decoder_close(small);
}

static void unreadable_jpegs_say_why(void **state) {
    (void)state;
    claim_jpeg(8, 8, 12, 1, 0xC1);
    expect_refused(file.data, file.size, NULL, "samples of other than 8 bits");
    claim_jpeg(8, 8, 8, 2, 0xC0);
    expect_refused(file.data, file.size, NULL, "other than 1, 3 or 4 colours");
    claim_jpeg(8, 8, 8, 3, 0xC3);
    expect_refused(file.data, file.size, NULL, "lossless or hierarchical");
    claim_jpeg(0, 8, 8, 1, 0xC0);
    expect_refused(file.data, file.size, NULL, "0 x 8 pixels");
    expect_refused("\xFF\xD8\xFF\xD9", 4, NULL, "ends before any pixel");
}

static void wishes_are_checked(void **state) {
    static uint8_t in[8 * 8];
    made_jpeg(&file, in, 8, 8, TJPF_GRAY, TJSAMP_GRAY, 90, 0);
    bpt_image_wish wish = {.frame = bpt_image_fit_frame(&(bpt_image_fit){0}, 8, 8), .C = 2};
    assert_int_equal(bpt_image_decode(*state, "a", file.data, file.size, &wish, pixels),
                     BPT_EUSAGE);
    wish.C = 1;
    assert_int_equal(bpt_image_decode(*state, "a", file.data, file.size, &wish, pixels), BPT_OK);
    wish.frame.w = 9;
    assert_int_equal(bpt_image_decode(*state, "a", file.data, file.size, &wish, pixels),
                     BPT_EUSAGE);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(png_of_every_kind, set_up, tear_down),
        cmocka_unit_test_setup_teardown(all_of_16_bits_are_rounded, set_up, tear_down),
        cmocka_unit_test_setup_teardown(jpeg_of_every_kind, set_up, tear_down),
        cmocka_unit_test_setup_teardown(arithmetic_jpeg_is_read, set_up, tear_down),
        cmocka_unit_test_setup_teardown(rgb_jpeg_is_read, set_up, tear_down),
        cmocka_unit_test_setup_teardown(cmyk_becomes_rgb, set_up, tear_down),
        cmocka_unit_test_setup_teardown(orientations_are_applied, set_up, tear_down),
        cmocka_unit_test_setup_teardown(turned_jpeg_is_the_turned_image, set_up, tear_down),
        cmocka_unit_test_setup_teardown(senseless_exif_is_none, set_up, tear_down),
        cmocka_unit_test_setup_teardown(small_targets_are_decoded_small, set_up, tear_down),
        cmocka_unit_test_setup_teardown(parts_are_cut_from_the_whole, set_up, tear_down),
        cmocka_unit_test_setup_teardown(other_formats_are_named, set_up, tear_down),
        cmocka_unit_test_setup_teardown(large_images_are_refused_by_their_header, set_up,
                                        tear_down),
        cmocka_unit_test_setup_teardown(unreadable_jpegs_say_why, set_up, tear_down),
        cmocka_unit_test_setup_teardown(wishes_are_checked, set_up, tear_down),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
