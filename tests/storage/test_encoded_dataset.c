/* Datasets of JPEG files: written and read back, described, checked, damaged. ctest: TIMEOUT=60 */
#include "base/memory.h"
#include "storage/dataset/dataset.h"
#include "tests/storage/made_database.h"
#include "tests/storage/made_dataset.h"
#include "tests/storage/made_encoded.h"

#include <fcntl.h>
#include <lmdb.h>
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

enum { N = 30 };

static made_place place;

static int set_up(void **state) {
    (void)state;
    place = made_place_create();
    return 0;
}

static int tear_down(void **state) {
    (void)state;
    made_place_remove(&place);
    return bpt_memory_live() == 0 ? 0 : 1;
}

static bpt_dataset *open_dataset(const bpt_split **train) {
    bpt_dataset *dataset;
    assert_int_equal(bpt_dataset_open(place.dataset, &dataset), BPT_OK);
    assert_int_equal(bpt_dataset_find(dataset, "train", train), BPT_OK);
    return dataset;
}

static bpt_status verify(uint64_t *n_sound) {
    return bpt_dataset_verify(place.dataset, NULL, NULL, n_sound);
}

static void make(uint32_t C, uint32_t n) {
    const bpt_writer_options o = made_encoded_options("train", C);
    assert_int_equal(made_encoded_split(place.dataset, &o, n), BPT_OK);
}

static void gives_back_the_files(void **state) {
    (void)state;
    for (uint32_t C = 1; C <= 3; C += 2) {
        snprintf(place.dataset, sizeof place.dataset, "%s/%u", place.directory, C);
        make(C, N);
        const bpt_split *train;
        bpt_dataset *dataset = open_dataset(&train);
        const bpt_dataset_info *info = bpt_dataset_describe(dataset);
        assert_int_equal(info->format, BPT_DATASET_FORMAT_ENCODED);
        assert_string_equal(info->encoding, "jpeg");
        assert_true(info->encoded);
        assert_int_equal(info->C, C);
        assert_int_equal(info->H, 0);
        assert_int_equal(train->count, N);
        bpt_extent expected = {.least_H = 1000, .least_W = 1000};
        double sum[3] = {0}, square[3] = {0};
        bpt_image_file file = {0};
        for (uint32_t i = 0; i < N; i++) {
            const bpt_record r = made_encoded_record(i, C, &file);
            bpt_record found;
            uint32_t label;
            assert_int_equal(bpt_dataset_get_record(dataset, train, i, &found, &label), BPT_OK);
            assert_int_equal(label, i % 3);
            assert_int_equal(found.H, r.H);
            assert_int_equal(found.W, r.W);
            assert_int_equal(found.size, r.size);
            assert_memory_equal(found.data, r.data, r.size);
            assert_memory_equal(found.sum, r.sum, C * sizeof *r.sum);
            assert_memory_equal(found.square, r.square, C * sizeof *r.square);
            const uint64_t pixels = (uint64_t)r.H * r.W;
            expected.bytes += r.size;
            expected.pixels += pixels;
            if (pixels > expected.most_pixels) expected.most_pixels = pixels;
            if (r.H < expected.least_H) expected.least_H = r.H;
            if (r.W < expected.least_W) expected.least_W = r.W;
            if (r.H > expected.most_H) expected.most_H = r.H;
            if (r.W > expected.most_W) expected.most_W = r.W;
            for (uint32_t c = 0; c < C; c++) {
                sum[c] += (double)r.sum[c];
                square[c] += (double)r.square[c];
            }
        }
        bpt_free(file.data);
        assert_memory_equal(&train->extent, &expected, sizeof expected);
        for (uint32_t c = 0; c < C; c++) { /* of all pixels: large images count for more */
            const double mean = sum[c] / (double)expected.pixels;
            const double variance = square[c] / (double)expected.pixels - mean * mean;
            assert_true(fabs(train->mean[c] - mean / 255) < 1e-12);
            assert_true(fabs(train->std[c] - sqrt(variance) / 255) < 1e-9);
        }
        bpt_dataset_close(dataset);
        uint64_t n_sound;
        assert_int_equal(verify(&n_sound), BPT_OK);
        assert_int_equal(n_sound, N);
    }
}

static void does_not_mix_with_raw_ones(void **state) {
    (void)state;
    bpt_writer *writer;
    const bpt_writer_options raw = made_options("test", 3, 8, 8);
    make(3, 3);
    assert_int_equal(bpt_writer_open(place.dataset, &raw, &writer), BPT_EDATA);
    assert_non_null(strstr(bpt_error_last()->text, "holds encoded images, the new ones are raw"));
    bpt_writer_options grey = made_encoded_options("test", 1);
    assert_int_equal(bpt_writer_open(place.dataset, &grey, &writer), BPT_EDATA);
    grey.C = 2;
    assert_int_equal(bpt_writer_open(place.dataset, &grey, &writer), BPT_EUSAGE);
    const bpt_split *train;
    bpt_dataset *dataset = open_dataset(&train);
    const uint8_t *pixels;
    uint32_t label;
    bpt_record record;
    assert_int_equal(bpt_dataset_get(dataset, train, 0, &pixels, &label), BPT_EUSAGE);
    assert_int_equal(bpt_dataset_get_record(dataset, train, 3, &record, &label), BPT_EUSAGE);
    bpt_dataset_close(dataset);
    snprintf(place.dataset, sizeof place.dataset, "%s/raw", place.directory);
    assert_int_equal(made_split(place.dataset, &raw, 1, 5), BPT_OK);
    const bpt_writer_options other = made_encoded_options("train", 3);
    assert_int_equal(bpt_writer_open(place.dataset, &other, &writer), BPT_EDATA);
    /* The only split may be replaced by encoded images. */
    bpt_writer_options again = made_encoded_options("test", 3);
    again.replace = true;
    assert_int_equal(made_encoded_split(place.dataset, &again, 4), BPT_OK);
    uint64_t n_sound;
    assert_int_equal(verify(&n_sound), BPT_OK);
    assert_int_equal(n_sound, 4);
}

static void says_at_which_size_images_are_wanted(void **state) {
    (void)state;
    const bpt_split *train;
    make(3, 2);
    bpt_dataset *dataset = open_dataset(&train);
    assert_int_equal(bpt_dataset_bring_to(dataset, 0, 8), BPT_EUSAGE);
    assert_int_equal(bpt_dataset_bring_to(dataset, 8, 16385), BPT_EUSAGE);
    assert_int_equal(bpt_dataset_describe(dataset)->H, 0);
    assert_int_equal(bpt_dataset_bring_to(dataset, 16384, 16384), BPT_OK);
    assert_int_equal(bpt_dataset_bring_to(dataset, 24, 32), BPT_OK);
    assert_int_equal(bpt_dataset_describe(dataset)->H, 24);
    assert_int_equal(bpt_dataset_describe(dataset)->W, 32);
    bpt_dataset_close(dataset);
    snprintf(place.dataset, sizeof place.dataset, "%s/raw", place.directory);
    const bpt_writer_options raw = made_options("train", 3, 8, 9);
    assert_int_equal(made_split(place.dataset, &raw, 1, 5), BPT_OK);
    dataset = open_dataset(&train);
    assert_int_equal(bpt_dataset_bring_to(dataset, 8, 9), BPT_OK);
    assert_int_equal(bpt_dataset_bring_to(dataset, 9, 9), BPT_EUSAGE);
    bpt_dataset_close(dataset);
}

/* @param[out] text shape [size]: an entry of `meta` without its checksum */
static void get_meta(const char *name, char *text, size_t size) {
    made_database meta;
    MDB_val key = {strlen(name), (void *)(uintptr_t)name}, value;
    assert_true(made_database_open(place.dataset, "meta", MDB_RDONLY, &meta));
    assert_int_equal(mdb_get(meta.txn, meta.dbi, &key, &value), 0);
    assert_true(value.mv_size - 8 < size);
    memcpy(text, (const char *)value.mv_data + 8, value.mv_size - 8);
    text[value.mv_size - 8] = '\0';
    made_database_close(&meta, false);
}

/* To the letter: programs that know format 1 alone read what is raw, and refuse what is not. */
static void raw_ones_are_still_of_format_1(void **state) {
    (void)state;
    char text[512];
    const bpt_writer_options raw = made_options("train", 1, 2, 2);
    assert_int_equal(made_split(place.dataset, &raw, 1, 1), BPT_OK);
    get_meta("dataset", text, sizeof text);
    assert_string_equal(text,
                        "{\"format\": 1, \"shape\": [1, 2, 2], \"encoding\": \"raw\", "
                        "\"checksum\": \"xxh3-64\", \"classes\": [\"0\", \"1\", \"2\"]}");
    get_meta("split/train", text, sizeof text);
    text[strcspn(text, "[")] = '\0';
    assert_string_equal(
        text,
        "{\"name\": \"train\", \"generation\": 1, \"count\": 1, \"pack\": 670, \"per_class\": ");
    snprintf(place.dataset, sizeof place.dataset, "%s/encoded", place.directory);
    make(1, 1);
    get_meta("dataset", text, sizeof text);
    assert_string_equal(text,
                        "{\"format\": 2, \"channels\": 1, \"encoding\": \"jpeg\", "
                        "\"checksum\": \"xxh3-64\", \"classes\": [\"0\", \"1\", \"2\"]}");
}

/* Large ones: several chunks, and one that is larger than a chunk. */
static void takes_files_of_any_size(void **state) {
    (void)state;
    enum { LARGE = 20 << 20, SMALL = 3 << 20 };
    uint8_t *bytes = calloc(1, LARGE);
    assert_non_null(bytes);
    bpt_writer *writer;
    const bpt_writer_options o = made_encoded_options("train", 1);
    assert_int_equal(bpt_writer_open(place.dataset, &o, &writer), BPT_OK);
    const size_t sizes[] = {1, SMALL, SMALL, LARGE, 7, SMALL, SMALL, SMALL, SMALL, SMALL, SMALL, 9};
    enum { N_SIZES = sizeof sizes / sizeof *sizes };
    for (uint32_t i = 0; i < N_SIZES; i++) {
        bytes[0] = (uint8_t)i;
        bytes[sizes[i] - 1] = (uint8_t)(i + 1);
        const bpt_record r = {.data = bytes, .size = sizes[i], .H = 1 + i, .W = 1};
        assert_int_equal(bpt_writer_append_record(writer, &r, i % 3), BPT_OK);
    }
    const bpt_record r = {.data = bytes, .size = 1, .H = 1, .W = 1};
    assert_int_equal(bpt_writer_append_record(writer, &r, 2), BPT_OK);
    assert_int_equal(bpt_writer_commit(writer), BPT_OK);
    bpt_writer_close(writer);
    const bpt_split *train;
    bpt_dataset *dataset = open_dataset(&train);
    for (uint32_t i = 0; i < N_SIZES; i++) {
        bpt_record found;
        uint32_t label;
        assert_int_equal(bpt_dataset_get_record(dataset, train, i, &found, &label), BPT_OK);
        assert_int_equal(found.size, sizes[i]);
        assert_int_equal(found.H, 1 + i);
        assert_int_equal(found.data[sizes[i] - 1], i + 1);
    }
    bpt_dataset_close(dataset);
    free(bytes);
    /* They are no images, as the checks say. */
    uint64_t n_sound;
    assert_int_equal(verify(&n_sound), BPT_ECORRUPT);
    assert_int_equal(n_sound, 0);
    assert_non_null(strstr(bpt_error_last()->text, "split train, record 0: its file"));
    assert_non_null(strstr(bpt_error_last()->text, "and 12 more such places"));
}

/* Writes three records, the second of them other than it should be. */
static void write_wrong(const bpt_record *wrong) {
    bpt_image_file file = {0};
    bpt_writer *writer;
    bpt_writer_options o = made_encoded_options("train", 3);
    o.replace = true;
    assert_int_equal(bpt_writer_open(place.dataset, &o, &writer), BPT_OK);
    for (uint32_t i = 0; i < 3; i++) {
        const bpt_record r = made_encoded_record(i, 3, &file);
        assert_int_equal(bpt_writer_append_record(writer, i == 1 ? wrong : &r, 0), BPT_OK);
    }
    assert_int_equal(bpt_writer_commit(writer), BPT_OK);
    bpt_writer_close(writer);
    bpt_free(file.data);
}

/* Checksums are right; what they cover is not. */
static void sees_files_that_are_wrong(void **state) {
    (void)state;
    const struct {
        const char *text;
        int what;
    } cases[] = {{"is cut short", 0},
                 {"pixels (HxW), not", 1},
                 {"its pixels are not those that were stored", 2},
                 {"its file is no JPEG", 3}};
    bpt_image_file file = {0}, png = {0};
    bpt_image_encoder *encoder;
    assert_int_equal(bpt_image_encoder_open(&encoder), BPT_OK);
    for (size_t c = 0; c < sizeof cases / sizeof *cases; c++) {
        bpt_record r = made_encoded_record(1, 3, &file);
        const uint8_t pixels[3] = {0};
        switch (cases[c].what) {
        case 0:
            r.size -= r.size / 3;
            break;
        case 1:
            r.H++;
            break;
        case 2:
            r.sum[2]--;
            break;
        default:
            assert_int_equal(bpt_image_encode_png(encoder, pixels, 3, 1, 1, &png), BPT_OK);
            r = (bpt_record){.data = png.data, .size = png.size, .H = 1, .W = 1};
        }
        write_wrong(&r);
        uint64_t n_sound;
        assert_int_equal(verify(&n_sound), BPT_ECORRUPT);
        assert_int_equal(n_sound, 2);
        assert_non_null(strstr(bpt_error_last()->text, "split train, record 1: "));
        assert_non_null(strstr(bpt_error_last()->text, cases[c].text));
    }
    bpt_image_encoder_close(encoder);
    bpt_free(file.data);
    bpt_free(png.data);
}

/* A changed byte of a record, wherever: its reader is told, nobody else. */
static void reports_changed_records(void **state) {
    (void)state;
    static uint8_t content[4 << 20];
    make(3, N);
    char path[128];
    snprintf(path, sizeof path, "%s/data.mdb", place.dataset);
    const int fd = open(path, O_RDWR);
    assert_true(fd >= 0);
    const ssize_t size = pread(fd, content, sizeof content, 0);
    assert_in_range(size, 1, sizeof content - 1);
    for (uint32_t i = 0; i < N; i += 4) {
        const bpt_split *train;
        bpt_record r;
        uint32_t label;
        bpt_dataset *dataset = open_dataset(&train);
        assert_int_equal(bpt_dataset_get_record(dataset, train, i, &r, &label), BPT_OK);
        const uint8_t *found = memmem(content, (size_t)size, r.data, r.size);
        assert_non_null(found);
        const size_t r_size = r.size;
        bpt_dataset_close(dataset);
        /* the file, the sums, the height, the label, the header, the spare bytes at the end */
        const ptrdiff_t offsets[] = {(ptrdiff_t)(r_size / 2), -1, -50, -56, -58, -62, -90,
                                     (ptrdiff_t)r_size};
        for (size_t k = 0; k < sizeof offsets / sizeof *offsets; k++) {
            const off_t at = found - content + offsets[k];
            const uint8_t changed = content[at] ^ 0x41;
            assert_int_equal(pwrite(fd, &changed, 1, at), 1);
            dataset = open_dataset(&train);
            assert_int_equal(bpt_dataset_get_record(dataset, train, i, &r, &label), BPT_ECORRUPT);
            char expected[64];
            snprintf(expected, sizeof expected, "split train, record %u: ", i);
            assert_non_null(strstr(bpt_error_last()->text, expected));
            assert_int_equal(bpt_dataset_get_record(dataset, train, i + 1, &r, &label), BPT_OK);
            bpt_dataset_close(dataset);
            uint64_t n_sound;
            assert_int_equal(verify(&n_sound), BPT_ECORRUPT);
            assert_int_equal(n_sound, N - 1);
            assert_int_equal(pwrite(fd, &content[at], 1, at), 1);
        }
    }
    close(fd);
}

static void survives_any_failed_allocation(void **state) {
    (void)state;
    int n = 0;
    for (bpt_status status = BPT_ENOMEM; status != BPT_OK; n++) {
        /* The files are made before anything fails. */
        bpt_memory_fail_at(-1);
        bpt_writer_options o = made_encoded_options("train", 3);
        o.replace = true;
        bpt_image_file file = {0};
        const bpt_record record = made_encoded_record(0, 3, &file);
        bpt_writer *writer;
        bpt_memory_fail_at(n);
        status = bpt_writer_open(place.dataset, &o, &writer);
        if (status == BPT_OK) {
            status = bpt_writer_append_record(writer, &record, 0);
            if (status == BPT_OK) status = bpt_writer_commit(writer);
            bpt_writer_close(writer);
        }
        uint64_t n_sound;
        if (status == BPT_OK) status = verify(&n_sound);
        bpt_memory_fail_at(-1);
        assert_true(status == BPT_OK || status == BPT_ENOMEM);
        bpt_free(file.data);
        assert_int_equal(bpt_memory_live(), 0);
        assert_true(n < 1000);
    }
    assert_true(n > 30);
}

int main(void) {
#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)
    const struct CMUnitTest tests[] = {
        TEST(gives_back_the_files),
        TEST(does_not_mix_with_raw_ones),
        TEST(says_at_which_size_images_are_wanted),
        TEST(raw_ones_are_still_of_format_1),
        TEST(takes_files_of_any_size),
        TEST(sees_files_that_are_wrong),
        TEST(reports_changed_records),
        TEST(survives_any_failed_allocation),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
