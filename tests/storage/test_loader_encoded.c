/* Batches of encoded records: each image is what a naive reference makes of its file, for any
 * number of threads; damage is reported. ctest: TIMEOUT=120 */
#include "base/memory.h"
#include "storage/augmentations/augmentation.h"
#include "storage/dataset/record_decode.h"
#include "storage/images/image_decoder.h"
#include "storage/loader/loader.h"
#include "tests/storage/batch_floats.h"
#include "tests/storage/made_dataset.h"
#include "tests/storage/made_encoded.h"
#include "tests/storage/made_group.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

enum { C = 3, COUNT = 40, BATCH = 7, MAX_SIDE = 160, MAX_VALUES = C * MAX_SIDE * MAX_SIDE };

static const struct {
    uint32_t H, W;
} sizes[] = {{24, 32}, {32, 24}, {16, 16}, {64, 64}, {150, 150}, {10, 90}, {1, 1}};
enum { N_SIZES = sizeof sizes / sizeof *sizes };

typedef struct subject {
    made_place place;
    bpt_dataset *dataset;
    const bpt_split *split;
    bpt_image_decoder *decoder;
    float *one, *many; /* shape [COUNT, MAX_VALUES] */
} subject;

static int set_up(void **state) {
    static subject s;
    s.place = made_place_create();
    const bpt_writer_options o = made_encoded_options("train", C);
    s.one = malloc(sizeof(float) * COUNT * MAX_VALUES);
    s.many = malloc(sizeof(float) * COUNT * MAX_VALUES);
    *state = &s;
    return !s.one || !s.many || made_encoded_split(s.place.dataset, &o, COUNT) != BPT_OK ||
           bpt_dataset_open(s.place.dataset, &s.dataset) != BPT_OK ||
           bpt_dataset_find(s.dataset, "train", &s.split) != BPT_OK ||
           bpt_image_decoder_open(NULL, &s.decoder) != BPT_OK;
}

static int tear_down(void **state) {
    subject *s = *state;
    bpt_dataset_close(s->dataset);
    bpt_image_decoder_close(s->decoder);
    made_place_remove(&s->place);
    free(s->one);
    free(s->many);
    return 0;
}

/* ---- the reference ---- */

/* The value at pixel i of a side of n pixels that becomes m: the share of each pixel of the n.
 * @param[out] shares shape [n] */
static void shares_of(uint32_t i, uint32_t n, uint32_t m, double *shares) {
    const double scale = (double)n / m;
    for (uint32_t k = 0; k < n; k++) shares[k] = 0;
    if (m <= n) { /* the area that it covers */
        const double from = i * scale, to = from + scale;
        for (uint32_t k = 0; k < n; k++) {
            const double covered = fmin(to, k + 1) - fmax(from, k);
            if (covered > 0) shares[k] = covered / scale;
        }
        return;
    }
    const double at = fmin(fmax((i + .5) * scale - .5, 0), n - 1);
    const uint32_t k = (uint32_t)at;
    shares[k] += 1 - (at - k);
    if (k + 1 < n) shares[k + 1] += at - k;
}

/* What a frame makes of one plane, before it is rounded.
 * @param[out] out shape [f->H, f->W] */
static void resize(const bpt_image_frame *f, const uint8_t *in, uint32_t in_W, double *out) {
    static double rows[MAX_SIDE], columns[MAX_SIDE][MAX_SIDE];
    for (uint32_t x = 0; x < f->W; x++) shares_of(f->crop_x + x, f->w, f->scaled_w, columns[x]);
    for (uint32_t y = 0; y < f->H; y++) {
        shares_of(f->crop_y + y, f->h, f->scaled_h, rows);
        for (uint32_t x = 0; x < f->W; x++) {
            double sum = 0;
            for (uint32_t i = 0; i < f->h; i++)
                for (uint32_t k = 0; rows[i] > 0 && k < f->w; k++)
                    sum += rows[i] * columns[x][k] * in[(f->y + i) * in_W + f->x + k];
            out[y * f->W + x] = sum;
        }
    }
}

static uint32_t divisor_of(const bpt_image_frame *f, bool all) {
    for (uint32_t n = 8; n > 1; n /= 2) {
        const uint32_t up = all ? n - 1 : 0;
        if ((f->h + up) / n >= f->scaled_h && (f->w + up) / n >= f->scaled_w) return n;
    }
    return 1;
}

/* Decodes a record at a part of its size and brings a frame of it to its size.
 * @param[out] out shape [C, f->H, f->W]
 * @return the part */
static uint32_t reference(const subject *s, const bpt_record *r, bpt_image_frame f, double *out) {
    static uint8_t decoded[MAX_VALUES];
    const bool all = f.h == r->H && f.w == r->W;
    const uint32_t n = divisor_of(&f, all), H = (r->H + n - 1) / n, W = (r->W + n - 1) / n;
    const bpt_image_wish wish = {
        .frame = {.h = r->H, .w = r->W, .scaled_h = H, .scaled_w = W, .H = H, .W = W}, .C = C};
    assert_int_equal(bpt_image_decode(s->decoder, "x", r->data, r->size, &wish, decoded), BPT_OK);
    if (all) {
        f.h = H;
        f.w = W;
    } else {
        f.h = (uint32_t)floor((double)f.h / n + .5);
        f.w = (uint32_t)floor((double)f.w / n + .5);
        f.y = f.y / n + f.h > H ? H - f.h : f.y / n;
        f.x = f.x / n + f.w > W ? W - f.w : f.x / n;
    }
    const size_t plane = (size_t)f.H * f.W;
    for (size_t c = 0; c < C; c++) resize(&f, decoded + c * H * W, W, out + c * plane);
    return n;
}

/* The middle, by its words: the smallest size that covers H by W. */
static bpt_image_frame middle(const bpt_record *r, uint32_t H, uint32_t W) {
    const double by_rows = (double)H / r->H, by_columns = (double)W / r->W;
    const double scale = fmax(by_rows, by_columns);
    bpt_image_frame f = {.h = r->H, .w = r->W, .H = H, .W = W};
    f.scaled_h = by_rows >= by_columns ? H : (uint32_t)floor(r->H * scale + .5 + 1e-9);
    f.scaled_w = by_rows >= by_columns ? (uint32_t)floor(r->W * scale + .5 + 1e-9) : W;
    f.crop_y = (f.scaled_h - H) / 2;
    f.crop_x = (f.scaled_w - W) / 2;
    return f;
}

/* ---- batches ---- */

static void take_as(const subject *s, bool bytes, const char *list, uint32_t pass,
                    uint32_t n_threads, uint32_t depth, float *out) {
    const bpt_dataset_info *info = bpt_dataset_describe(s->dataset);
    const size_t values = (size_t)C * info->H * info->W;
    bpt_loader_options o = {
        .batch = BATCH, .n_threads = n_threads, .depth = depth, .as_images = bytes, .seed = 3};
    bpt_loader *loader;
    uint32_t indices[COUNT], passes[COUNT], requested = 0;
    uint64_t allocations = 0;
    assert_int_equal(bpt_augment_parse(list, &o.augment), BPT_OK);
    assert_int_equal(bpt_loader_create(s->dataset, s->split, &o, &loader), BPT_OK);
    for (uint32_t i = 0; i < COUNT; i++) {
        indices[i] = (i * 7 + 3) % COUNT;
        passes[i] = pass;
    }
    /* Twice: in the second round every decoder has room for what it meets, where there is one. */
    for (uint32_t taken = 0; taken < 2 * COUNT;) {
        while (requested < 2 * COUNT && bpt_loader_room(loader) > 0) {
            const uint32_t from = requested % COUNT;
            const uint32_t n = COUNT - from < BATCH ? COUNT - from : BATCH;
            assert_int_equal(bpt_loader_request(loader, indices + from, passes + from, n), BPT_OK);
            requested += n;
        }
        bpt_batch batch;
        if (taken == COUNT) allocations = bpt_memory_allocations();
        assert_int_equal(bpt_loader_next(loader, &batch), BPT_OK);
        for (uint32_t i = 0; i < batch.n; i++, taken++) {
            const uint32_t index = indices[taken % COUNT];
            assert_int_equal(batch.labels[i], index % 3);
            batch_floats(&batch, i, C, info->H, info->W, out + index * values);
        }
        bpt_loader_release(loader, &batch);
    }
    if (n_threads == 1) assert_int_equal(bpt_memory_allocations(), allocations);
    bpt_loader_destroy(loader);
}

static void take(const subject *s, const char *list, uint32_t pass, uint32_t n_threads,
                 uint32_t depth, float *out) {
    take_as(s, false, list, pass, n_threads, depth, out);
}

/* Values of 0 to 1 are pixels; those are the rounded reference. */
static void expect_image(const float *found, const double *expected, size_t n) {
    for (size_t p = 0; p < n; p++) {
        const double pixel = found[p] * 255.0;
        assert_true(fabs(pixel - round(pixel)) < 1e-3);
        assert_true(fabs(pixel - expected[p]) < .5 + .01);
    }
}

static void takes_the_middle(void **state) {
    const subject *s = *state;
    static double expected[MAX_VALUES];
    uint32_t n_of[9] = {0};
    for (size_t k = 0; k < N_SIZES; k++) {
        const uint32_t H = sizes[k].H, W = sizes[k].W;
        assert_int_equal(bpt_dataset_bring_to(s->dataset, H, W), BPT_OK);
        take(s, "none", 0, 2, 3, s->one);
        for (uint32_t i = 0; i < COUNT; i++) {
            bpt_record r;
            uint32_t label;
            assert_int_equal(bpt_dataset_get_record(s->dataset, s->split, i, &r, &label), BPT_OK);
            n_of[reference(s, &r, middle(&r, H, W), expected)]++;
            expect_image(s->one + i * (size_t)C * H * W, expected, (size_t)C * H * W);
        }
    }
    for (uint32_t n = 1; n <= 8; n *= 2) assert_true(n_of[n] > 0); /* all were there */
}

typedef void frame_check(const bpt_record *record, const bpt_image_frame *frame);

/* Images of each size by a list that begins with a part, against the reference.
 * @param[in,out] n_of how many were decoded at a part 1 / n of their size */
static void expect_parts(const subject *s, const char *list, frame_check *check, uint32_t n_of[9]) {
    static double expected[MAX_VALUES];
    bpt_augment augment;
    assert_int_equal(bpt_augment_parse(list, &augment), BPT_OK);
    for (size_t k = 0; k < N_SIZES; k++) {
        const uint32_t H = sizes[k].H, W = sizes[k].W;
        assert_int_equal(bpt_dataset_bring_to(s->dataset, H, W), BPT_OK);
        take(s, list, 2, 2, 3, s->one);
        for (uint32_t i = 0; i < COUNT; i++) {
            bpt_record r;
            uint32_t label;
            bpt_random random = bpt_random_stream(3, BPT_PURPOSE_AUGMENT, (uint64_t)2 << 32 | i);
            assert_int_equal(bpt_dataset_get_record(s->dataset, s->split, i, &r, &label), BPT_OK);
            bpt_image_frame f = {.scaled_h = H, .scaled_w = W, .H = H, .W = W};
            bpt_augment_part(&augment, &random, r.H, r.W, &f);
            assert_int_equal(bpt_image_frame_check(&f, r.H, r.W), BPT_OK);
            check(&r, &f);
            n_of[reference(s, &r, f, expected)]++;
            expect_image(s->one + i * (size_t)C * H * W, expected, (size_t)C * H * W);
        }
    }
}

static void check_area(const bpt_record *r, const bpt_image_frame *f) {
    const double area = (double)f->h * f->w / ((double)r->H * r->W);
    assert_true(area > .08 && area <= 1);
}

static void takes_a_part_of_the_image_as_it_is(void **state) {
    uint32_t n_of[9] = {0};
    expect_parts(*state, "resized-crop=0.1:1", check_area, n_of);
    for (uint32_t n = 1; n <= 8; n *= 2) assert_true(n_of[n] > 0);
}

static uint32_t n_enlarged;

/* Pixels as they are; of an image without so many all of its height or width, in the ratio of what
 * is wanted. */
static void check_window(const bpt_record *r, const bpt_image_frame *f) {
    if (f->H <= r->H && f->W <= r->W) {
        assert_int_equal(f->h, f->H);
        assert_int_equal(f->w, f->W);
        return;
    }
    n_enlarged++;
    const double w = fmax((double)r->H * f->W / f->H, 1), h = fmax((double)r->W * f->H / f->W, 1);
    assert_true((f->h == r->H && fabs(f->w - w) <= .5) || (f->w == r->W && fabs(f->h - h) <= .5));
}

static void takes_a_window_of_the_networks_size(void **state) {
    uint32_t n_of[9] = {0};
    n_enlarged = 0;
    expect_parts(*state, "window", check_window, n_of);
    assert_int_equal(n_of[1], N_SIZES * COUNT);
    assert_true(n_enlarged > 0 && n_enlarged < N_SIZES * COUNT);
}

/* Each place comes, and about as often as any other. */
static void a_window_may_be_anywhere(void **state) {
    (void)state;
    enum { H = 10, W = 12, SIDE = 8, N = 15000, PLACES = (H - SIDE + 1) * (W - SIDE + 1) };
    uint32_t n[H - SIDE + 1][W - SIDE + 1] = {{0}};
    bpt_augment augment;
    assert_int_equal(bpt_augment_parse("window", &augment), BPT_OK);
    for (uint64_t i = 0; i < N; i++) {
        bpt_random random = bpt_random_stream(3, BPT_PURPOSE_AUGMENT, i);
        bpt_image_frame f = {.scaled_h = SIDE, .scaled_w = SIDE, .H = SIDE, .W = SIDE};
        bpt_augment_part(&augment, &random, H, W, &f);
        assert_true(f.y <= H - SIDE && f.x <= W - SIDE);
        n[f.y][f.x]++;
    }
    for (uint32_t y = 0; y <= H - SIDE; y++)
        for (uint32_t x = 0; x <= W - SIDE; x++)
            assert_in_range(n[y][x], N / PLACES * 8 / 10, N / PLACES * 12 / 10);
}

/* What comes behind in the list acts on the image of the network's size. */
static void goes_on_with_the_rest(void **state) {
    const subject *s = *state;
    enum { H = 20, W = 30, VALUES = C * H * W };
    static uint8_t pixels[VALUES], scratch[2 * VALUES];
    const char *lists[][2] = {{"crop=4,flip", "none"},
                              {"resized-crop=0.5,flip,jitter", "resized-crop=0.5"},
                              {"window,flip,jitter", "window"}};
    assert_int_equal(bpt_dataset_bring_to(s->dataset, H, W), BPT_OK);
    for (int k = 0; k < 3; k++) {
        int n_other = 0;
        bpt_augment augment;
        assert_int_equal(bpt_augment_parse(lists[k][0], &augment), BPT_OK);
        take(s, lists[k][0], 5, 1, 2, s->one);
        take(s, lists[k][1], 5, 1, 2, s->many);
        for (uint32_t i = 0; i < COUNT; i++) {
            bpt_record r;
            uint32_t label;
            bpt_image_frame f = {.scaled_h = H, .scaled_w = W, .H = H, .W = W};
            bpt_random random = bpt_random_stream(3, BPT_PURPOSE_AUGMENT, (uint64_t)5 << 32 | i);
            assert_int_equal(bpt_dataset_get_record(s->dataset, s->split, i, &r, &label), BPT_OK);
            for (size_t p = 0; p < VALUES; p++)
                pixels[p] = (uint8_t)lrintf(s->many[i * VALUES + p] * 255);
            assert_int_equal(bpt_augment_takes_part(&augment), k > 0);
            if (k > 0) bpt_augment_part(&augment, &random, r.H, r.W, &f);
            const uint8_t *out =
                bpt_augment_apply(&augment, k > 0, &random, C, H, W, pixels, scratch, NULL);
            n_other += memcmp(out, pixels, VALUES) != 0;
            for (size_t p = 0; p < VALUES; p++)
                assert_int_equal(lrintf(s->one[i * VALUES + p] * 255), out[p]);
        }
        assert_true(n_other > COUNT / 2);
    }
}

/* Nor on whether they are made floats here, or by whoever takes the bytes. */
static void does_not_depend_on_threads(void **state) {
    const subject *s = *state;
    const char *lists[] = {"none", "resized-crop,flip", "window,flip", "crop=3,erase"};
    const uint32_t cases[][2] = {{1, 4}, {2, 2}, {4, 3}, {8, 32}};
    enum { H = 33, W = 29, VALUES = C * H * W };
    assert_int_equal(bpt_dataset_bring_to(s->dataset, H, W), BPT_OK);
    for (size_t k = 0; k < sizeof lists / sizeof *lists; k++) {
        take(s, lists[k], 1, 1, 1, s->one);
        for (size_t i = 0; i < 4; i++) {
            memset(s->many, 0xff, sizeof(float) * COUNT * VALUES);
            take_as(s, i % 2, lists[k], 1, cases[i][0], cases[i][1], s->many);
            assert_memory_equal(s->one, s->many, sizeof(float) * COUNT * VALUES);
        }
    }
}

static void refuses_what_it_cannot_do(void **state) {
    const subject *s = *state;
    bpt_loader *loader;
    bpt_dataset *fresh;
    const bpt_split *split;
    bpt_loader_options o = BPT_LOADER_OPTIONS_INIT;
    assert_int_equal(bpt_dataset_open(s->place.dataset, &fresh), BPT_OK);
    assert_int_equal(bpt_dataset_find(fresh, "train", &split), BPT_OK);
    assert_int_equal(bpt_loader_create(fresh, split, &o, &loader), BPT_EUSAGE);
    assert_int_equal(bpt_dataset_bring_to(fresh, 8, 8), BPT_OK);
    assert_int_equal(bpt_augment_parse("flip,resized-crop", &o.augment), BPT_OK);
    assert_int_equal(bpt_loader_create(fresh, split, &o, &loader), BPT_EUSAGE);
    assert_non_null(strstr(bpt_error_last()->text, "resized-crop can only be the first"));
    assert_int_equal(bpt_augment_parse("flip,window", &o.augment), BPT_OK);
    assert_int_equal(bpt_loader_create(fresh, split, &o, &loader), BPT_EUSAGE);
    assert_non_null(strstr(bpt_error_last()->text, "window can only be the first"));
    assert_int_equal(bpt_augment_check_images(&o.augment, false, 8, 8), BPT_EUSAGE);
    assert_non_null(strstr(bpt_error_last()->hint, "--encoded"));
    assert_int_equal(bpt_augment_parse("crop=8", &o.augment), BPT_OK);
    assert_int_equal(bpt_loader_create(fresh, split, &o, &loader), BPT_EUSAGE);
    int n = 0;
    assert_int_equal(bpt_augment_parse("flip", &o.augment), BPT_OK);
    for (bpt_status status = BPT_ENOMEM; status != BPT_OK; n++) {
        const uint64_t live = bpt_memory_live();
        bpt_memory_fail_at(n);
        status = bpt_loader_create(fresh, split, &o, &loader);
        bpt_memory_fail_at(-1);
        assert_true(status == BPT_OK || status == BPT_ENOMEM);
        if (status == BPT_OK) bpt_loader_destroy(loader);
        assert_int_equal(bpt_memory_live(), live);
        assert_true(n < 100);
    }
    bpt_dataset_close(fresh);
}

static void says_how_much_memory_decoding_takes(void **state) {
    const subject *s = *state;
    const size_t image = 12 * s->split->extent.most_pixels;
    assert_int_equal(bpt_loader_decoding_bytes(s->split, 3, 100), 3 * (image + 100));
    assert_int_equal(bpt_loader_decoding_bytes(&(bpt_split){.count = 1}, 3, 100), 0);
    const bpt_split huge = {.extent = {.most_pixels = UINT64_MAX / 2}};
    assert_true(bpt_loader_decoding_bytes(&huge, 3, 100) == SIZE_MAX);
}

/* A file that is wrong under a right checksum spoils its own batch. */
static void reports_files_that_are_wrong(void **state) {
    (void)state;
    made_place place = made_place_create();
    const bpt_writer_options o = made_encoded_options("train", C);
    bpt_writer *writer;
    bpt_image_file file = {0};
    assert_int_equal(bpt_writer_open(place.dataset, &o, &writer), BPT_OK);
    for (uint32_t i = 0; i < 8; i++) {
        bpt_record r = made_encoded_record(i, C, &file);
        if (i == 3) r.size -= r.size / 2;
        if (i == 5) r.W--;
        assert_int_equal(bpt_writer_append_record(writer, &r, 0), BPT_OK);
    }
    assert_int_equal(bpt_writer_commit(writer), BPT_OK);
    bpt_writer_close(writer);
    bpt_free(file.data);
    bpt_dataset *dataset;
    const bpt_split *split;
    bpt_loader *loader;
    const bpt_loader_options options = {.batch = 1, .n_threads = 2, .depth = 8};
    assert_int_equal(bpt_dataset_open(place.dataset, &dataset), BPT_OK);
    assert_int_equal(bpt_dataset_find(dataset, "train", &split), BPT_OK);
    assert_int_equal(bpt_dataset_bring_to(dataset, 32, 32), BPT_OK);
    assert_int_equal(bpt_loader_create(dataset, split, &options, &loader), BPT_OK);
    for (uint32_t i = 0; i < 8; i++)
        assert_int_equal(bpt_loader_request(loader, &i, NULL, 1), BPT_OK);
    for (uint32_t i = 0; i < 8; i++) {
        bpt_batch batch;
        const bpt_status status = bpt_loader_next(loader, &batch);
        char expected[64];
        snprintf(expected, sizeof expected, "split train, record %u: its file ", i);
        assert_int_equal(status, i == 3 || i == 5 ? BPT_ECORRUPT : BPT_OK);
        if (status != BPT_OK) assert_non_null(strstr(bpt_error_last()->text, expected));
        if (status == BPT_OK) bpt_loader_release(loader, &batch);
    }
    bpt_loader_destroy(loader);
    bpt_dataset_close(dataset);
    made_place_remove(&place);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(takes_the_middle),
        cmocka_unit_test(takes_a_part_of_the_image_as_it_is),
        cmocka_unit_test(takes_a_window_of_the_networks_size),
        cmocka_unit_test(a_window_may_be_anywhere),
        cmocka_unit_test(goes_on_with_the_rest),
        cmocka_unit_test(does_not_depend_on_threads),
        cmocka_unit_test(refuses_what_it_cannot_do),
        cmocka_unit_test(says_how_much_memory_decoding_takes),
        cmocka_unit_test(reports_files_that_are_wrong),
    };
    return made_run_group(tests, set_up, tear_down);
}
