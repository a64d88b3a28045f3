/* Parts of a JPEG have the pixels of the whole, and the whole's damage. */
#include "base/memory.h"
#include "storage/images/image_decoder.h"
#include "storage/images/resize.h"
#include "tests/storage/made_images.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <turbojpeg.h>

#include <cmocka.h>

enum { SIDE = 200, ROOM = 3 * SIDE * SIDE };

static made_file file;
static uint8_t picture[4 * SIDE * SIDE], whole[ROOM], part[ROOM], expected[ROOM];
static bpt_image_resizer *resizer;

static int set_up(void **state) {
    assert_int_equal(bpt_image_resizer_open(&resizer), BPT_OK);
    return bpt_image_decoder_open(NULL, (bpt_image_decoder **)state) == BPT_OK ? 0 : 1;
}

static int tear_down(void **state) {
    bpt_image_resizer_close(resizer);
    bpt_image_decoder_close(*state);
    return bpt_memory_live() == 0 ? 0 : 1;
}

/* Numbers that follow from those before: the same in every run. */
static uint32_t draw(uint32_t n) {
    static uint64_t state = 1;
    state = state * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
    return (uint32_t)(state >> 33) % n;
}

static bpt_status decode(bpt_image_decoder *decoder, const bpt_image_frame *f, uint32_t C,
                         uint8_t *out) {
    const bpt_image_wish wish = {.frame = *f, .C = C};
    return bpt_image_decode(decoder, "a.jpg", file.data, file.size, &wish, out);
}

/* All of it at a size that libjpeg-turbo can decode at. */
static bpt_image_frame all_at(uint32_t H, uint32_t W, uint32_t divisor) {
    const bpt_image_fit fit = {.H = (H + divisor - 1) / divisor, .W = (W + divisor - 1) / divisor};
    return bpt_image_fit_frame(&fit, H, W);
}

/* A frame at random that is resized from that size. */
static bpt_image_frame any_frame(uint32_t H, uint32_t W, uint32_t divisor) {
    bpt_image_frame f = all_at(H, W, divisor);
    if (divisor == 1) {
        f.h = 1 + draw(H);
        f.w = 1 + draw(W);
        f.y = draw(H - f.h + 1);
        f.x = draw(W - f.w + 1);
        f.scaled_h = draw(3) ? 1 + draw(SIDE) : f.h;
        f.scaled_w = draw(3) ? 1 + draw(SIDE) : f.w;
    }
    f.H = 1 + draw(f.scaled_h);
    f.W = 1 + draw(f.scaled_w);
    f.crop_y = draw(f.scaled_h - f.H + 1);
    f.crop_x = draw(f.scaled_w - f.W + 1);
    return f;
}

/* Of the file, decoded whole at a size. */
static void expect_parts(bpt_image_decoder *decoder, uint32_t H, uint32_t W, uint32_t C,
                         uint32_t divisor) {
    const bpt_image_frame all = all_at(H, W, divisor);
    assert_int_equal(decode(decoder, &all, C, whole), BPT_OK);
    for (int i = 0; i < 8; i++) {
        const bpt_image_frame f = any_frame(H, W, divisor);
        bpt_image_frame rest = f;
        if (divisor > 1) {
            rest.h = all.H;
            rest.w = all.W;
        }
        memset(part, 0xA5, sizeof part);
        assert_int_equal(decode(decoder, &f, C, part), BPT_OK);
        assert_int_equal(bpt_image_resize(resizer, &rest, whole, C, all.H, all.W, expected),
                         BPT_OK);
        const size_t n = (size_t)C * f.H * f.W;
        if (memcmp(part, expected, n) != 0)
            print_error("%u x %u / %u, C = %u, part %u + %u, %u + %u of %u x %u\n", H, W, divisor,
                        C, f.crop_y, f.H, f.crop_x, f.W, f.scaled_h, f.scaled_w);
        assert_memory_equal(part, expected, n);
    }
}

static void parts_are_those_of_the_whole(void **state) {
    static const int kinds[] = {TJSAMP_444, TJSAMP_422, TJSAMP_420, TJSAMP_GRAY,
                                TJSAMP_440, TJSAMP_411, TJSAMP_444};
    static const int flags[] = {0, TJFLAG_PROGRESSIVE};
    for (uint32_t i = 0; i < 400; i++) {
        const uint32_t k = i % 7, o = draw(8) + 1;
        const uint32_t H = 1 + draw(SIDE), W = 1 + draw(SIDE);
        const bool inks = k == 6;
        made_picture(picture, H, W, inks ? 4 : 3);
        made_jpeg(&file, picture, H, W, inks ? TJPF_CMYK : TJPF_RGB, kinds[k], 90,
                  flags[draw(4) == 0]);
        uint8_t tiff[32];
        made_add_exif(&file, tiff, made_exif(tiff, o, o % 2));
        const uint32_t C = draw(4) ? 3 : 1;
        for (uint32_t divisor = 1; divisor <= 8; divisor *= 2)
            expect_parts(*state, o > 4 ? W : H, o > 4 ? H : W, C, divisor);
    }
}

static void expect_same_verdict(bpt_image_decoder *decoder, const bpt_image_frame *all,
                                const bpt_image_frame *f) {
    static char text[512];
    const bpt_status status = decode(decoder, all, 3, whole);
    if (status != BPT_OK) snprintf(text, sizeof text, "%s", bpt_error_last()->text);
    assert_int_equal(decode(decoder, f, 3, part), status);
    if (status != BPT_OK) assert_string_equal(bpt_error_last()->text, text);
}

/* Wherever it is, in the part or outside. */
static void damage_outside_of_the_part_is_damage(void **state) {
    enum { H = 60, W = 75 };
    static const int kinds[] = {TJSAMP_444, TJSAMP_420};
    const bpt_image_frame frames[] = {{0, 0, 9, 9, 9, 9, 0, 0, 9, 9},
                                      {30, 30, 20, 20, 10, 10, 2, 2, 5, 5},
                                      {59, 74, 1, 1, 1, 1, 0, 0, 1, 1}};
    made_picture(picture, H, W, 3);
    const bpt_image_frame all = all_at(H, W, 1);
    int n_damaged = 0;
    for (size_t k = 0; k < 2; k++) {
        made_jpeg(&file, picture, H, W, TJPF_RGB, kinds[k], 80, 0);
        const size_t end = file.size;
        for (size_t at = made_find_marker(&file, 0xDA) + 14; at < end; at++) {
            const bpt_image_frame *f = &frames[at % 3];
            const uint8_t kept = file.data[at];
            file.data[at] ^= (uint8_t)(1 + draw(255));
            expect_same_verdict(*state, &all, f);
            n_damaged += decode(*state, f, 3, part) != BPT_OK;
            file.data[at] = kept;
            file.size = at;
            expect_same_verdict(*state, &all, f);
            assert_int_equal(decode(*state, f, 3, part), BPT_EDATA);
            file.size = end;
        }
    }
    assert_true(n_damaged > 100);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(parts_are_those_of_the_whole, set_up, tear_down),
        cmocka_unit_test_setup_teardown(damage_outside_of_the_part_is_damage, set_up, tear_down),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
