/* Importers on files made here: what they read, and what they refuse. ctest: TIMEOUT=30 */
#include "base/file.h"
#include "base/memory.h"
#include "storage/importers/importer.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <zlib.h>

#include <cmocka.h>

static char directory[64];

static int set_up(void **state) {
    (void)state;
    strcpy(directory, "/tmp/bpt-importers-XXXXXX");
    return mkdtemp(directory) ? 0 : 1;
}

static int tear_down(void **state) {
    (void)state;
    bpt_dir_remove(directory);
    return bpt_memory_live() == 0 ? 0 : 1;
}

static const char *in_directory(const char *name) {
    static char paths[4][128];
    static unsigned next;
    char *path = paths[next++ % 4];
    snprintf(path, sizeof paths[0], "%s/%s", directory, name);
    return path;
}

static void put_file(const char *name, const void *data, size_t size) {
    FILE *file = fopen(in_directory(name), "wb");
    assert_non_null(file);
    assert_int_equal(fwrite(data, 1, size, file), size);
    assert_int_equal(fclose(file), 0);
}

static void put_gz(const char *name, const void *data, unsigned size) {
    gzFile file = gzopen(in_directory(name), "wb");
    assert_non_null(file);
    assert_int_equal(gzwrite(file, data, size), size);
    assert_int_equal(gzclose(file), Z_OK);
}

/* Takes the next item and its pixels. */
static bpt_status take(const bpt_importer *importer, void *import, bpt_import_item *item,
                       uint8_t *pixels, uint32_t *label) {
    bpt_import_buffer buffer = {0};
    bpt_import_image image;
    bpt_status status = importer->next(import, item);
    if (status == BPT_OK) status = importer->load(import, item, &buffer, &image);
    if (status == BPT_OK) {
        assert_false(image.encoded);
        assert_int_equal(image.size, (size_t)image.C * image.H * image.W);
        memcpy(pixels, image.bytes, image.size);
        *label = image.label;
    }
    bpt_free(buffer.bytes);
    return status;
}

/* ---- idx ---- */

enum { N = 5, SIDES = 6, IMAGE_BYTES = 16 + N * SIDES, LABEL_BYTES = 8 + N };

static const uint8_t images[IMAGE_BYTES] = {0, 0, 8, 3, 0, 0, 0, 5, 0, 0, 0, 2, 0, 0, 0, 3, 10};
static const uint8_t labels[LABEL_BYTES] = {0, 0, 8, 1, 0, 0, 0, 5, 1, 0, 4, 2, 2};

static bpt_status open_idx(const char *images_name, const char *labels_name, bpt_import_plan *plan,
                           void **import) {
    char *files[] = {(char *)(uintptr_t)in_directory(images_name),
                     (char *)(uintptr_t)in_directory(labels_name)};
    const bpt_import_source source = {.files = files, .n_files = 2};
    return bpt_importer_find("idx")->open(&source, plan, import);
}

/* Opens and reads all. */
static bpt_status read_idx(const char *images_name, const char *labels_name) {
    bpt_import_plan plan;
    void *import;
    BPT_TRY(open_idx(images_name, labels_name, &plan, &import));
    uint8_t *pixels = malloc((size_t)plan.C * plan.H * plan.W);
    assert_non_null(pixels);
    bpt_status status = BPT_OK;
    bpt_import_item item = {0};
    for (uint64_t i = 0; i < plan.count && status == BPT_OK; i++) {
        uint32_t label;
        status = take(bpt_importer_find("idx"), import, &item, pixels, &label);
    }
    bpt_free(item.owned.bytes);
    free(pixels);
    bpt_importer_find("idx")->close(import);
    return status;
}

static void idx_reads_plain_and_gzip(void **state) {
    (void)state;
    put_file("images", images, sizeof images);
    put_file("labels", labels, sizeof labels);
    put_gz("images.gz", images, sizeof images);
    put_gz("labels.gz", labels, sizeof labels);
    put_gz("images.misnamed", images, sizeof images);
    const char *const names[][2] = {
        {"images", "labels"}, {"images.gz", "labels.gz"}, {"images.misnamed", "labels"}};
    for (size_t c = 0; c < 3; c++) {
        bpt_import_plan plan;
        void *import;
        assert_int_equal(open_idx(names[c][0], names[c][1], &plan, &import), BPT_OK);
        assert_int_equal(plan.C, 1);
        assert_int_equal(plan.H, 2);
        assert_int_equal(plan.W, 3);
        assert_int_equal(plan.count, N);
        assert_int_equal(plan.n_classes, 5);
        bpt_import_item item = {0};
        for (uint32_t i = 0; i < N; i++) {
            uint8_t pixels[SIDES];
            uint32_t label;
            assert_int_equal(take(bpt_importer_find("idx"), import, &item, pixels, &label), BPT_OK);
            assert_int_equal(label, labels[8 + i]);
            assert_memory_equal(pixels, images + 16 + i * SIDES, SIDES);
        }
        bpt_free(item.owned.bytes);
        bpt_importer_find("idx")->close(import);
    }
}

static void expect_idx(const char *images_name, const char *labels_name, bpt_status expected,
                       const char *text) {
    const bpt_status status = read_idx(images_name, labels_name);
    if (status != expected || !strstr(bpt_error_last()->text, text))
        print_error("%s + %s: %s: %s\n", images_name, labels_name, bpt_status_name(status),
                    bpt_error_last()->text);
    assert_int_equal(status, expected);
    assert_non_null(strstr(bpt_error_last()->text, text));
}

static void idx_refuses_what_is_wrong(void **state) {
    (void)state;
    put_file("images", images, sizeof images);
    put_file("labels", labels, sizeof labels);
    put_file("empty", "", 0);
    put_file("text", "<html>404", 9);
    put_file("short", images, 3);
    put_file("cut", images, sizeof images - 1);
    uint8_t changed[IMAGE_BYTES + 1];
    memcpy(changed, images, sizeof images);
    put_file("long", changed, sizeof changed);
    changed[7] = 6;
    put_file("six", changed, sizeof changed - 1);
    changed[7] = 5;
    changed[8] = 0xFF;
    put_file("huge", changed, sizeof changed - 1);
    memset(changed + 8, 0, 4);
    put_file("flat", changed, sizeof changed - 1);
    memcpy(changed + 8, (const uint8_t[]){0, 0, 0, 1, 0, 0, 0x40, 0}, 8);
    put_file("widest", changed, sizeof changed - 1);
    changed[15] = 1;
    put_file("wider", changed, sizeof changed - 1);
    memcpy(changed, images, sizeof images);
    changed[2] = 0x0D;
    put_file("floats", changed, sizeof images);
    uint8_t many[LABEL_BYTES];
    memcpy(many, labels, sizeof labels);
    memset(many + 4, 0xFF, 4);
    put_file("liar", many, sizeof many);
    memset(many + 4, 0, 4);
    put_file("none", many, sizeof many);
    expect_idx("missing", "labels", BPT_ENOENT, "missing");
    expect_idx("images", "missing", BPT_ENOENT, "missing");
    expect_idx("empty", "labels", BPT_EDATA, "empty");
    expect_idx("images", "empty", BPT_EDATA, "empty");
    expect_idx(".", "labels", BPT_EDATA, "not a file");
    expect_idx("text", "labels", BPT_EDATA, "no IDX file of images");
    expect_idx("labels", "images", BPT_EDATA, "no IDX file of images");
    assert_non_null(strstr(bpt_error_last()->hint, "IMAGES LABELS"));
    expect_idx("floats", "labels", BPT_EDATA, "no IDX file");
    expect_idx("short", "labels", BPT_EDATA, "its header");
    expect_idx("cut", "labels", BPT_EDATA, "image 4 of 5");
    expect_idx("long", "labels", BPT_EDATA, "goes on");
    expect_idx("six", "labels", BPT_EDATA, "6 images");
    expect_idx("huge", "labels", BPT_EDATA, "announces");
    expect_idx("flat", "labels", BPT_EDATA, "announces");
    expect_idx("widest", "labels", BPT_EDATA, "image 0 of 5"); /* which is not there */
    expect_idx("wider", "labels", BPT_EDATA, "announces images of 1x16385");
    expect_idx("images", "liar", BPT_EDATA, "its labels");
    expect_idx("images", "none", BPT_EDATA, "no labels");
}

/* Every length of a cut gzip file, and a change of any of its bytes, ends with an error (or, for a
 * few bytes of gzip's header, changes nothing). */
static void idx_survives_damaged_gzip(void **state) {
    (void)state;
    put_gz("images.gz", images, sizeof images);
    put_gz("labels.gz", labels, sizeof labels);
    char *content;
    size_t size;
    assert_int_equal(bpt_file_read(in_directory("images.gz"), 4096, &content, &size), BPT_OK);
    for (size_t cut = 0; cut < size; cut++) {
        put_file("damaged", content, cut);
        assert_int_equal(read_idx("damaged", "labels.gz"), BPT_EDATA);
    }
    for (size_t at = 0; at < size; at++) {
        content[at] ^= 0x21;
        put_file("damaged", content, size);
        const bpt_status status = read_idx("damaged", "labels.gz");
        assert_true(status == BPT_EDATA || (status == BPT_OK && at >= 3 && at < 10));
        content[at] ^= 0x21;
    }
    put_file("damaged", content, size - 9);
    expect_idx("damaged", "labels.gz", BPT_EDATA, "its gzip stream is cut");
    content[size - 5] ^= 0x21; /* of the checksum */
    put_file("damaged", content, size);
    expect_idx("damaged", "labels.gz", BPT_EDATA, "is damaged at");
    bpt_free(content);
}

/* ---- cifar ---- */

enum { CIFAR = 3072 };

static void put_cifar(const char *name, size_t label_bytes, size_t n, uint8_t first_label) {
    const size_t record = label_bytes + CIFAR;
    uint8_t *content = calloc(n, record);
    assert_non_null(content);
    for (size_t i = 0; i < n; i++) {
        content[i * record] = label_bytes == 1 ? (uint8_t)(first_label + i) : 19;
        if (label_bytes == 2) content[i * record + 1] = (uint8_t)(first_label + i);
        for (size_t p = 0; p < CIFAR; p++)
            content[i * record + label_bytes + p] = (uint8_t)(i * 31 + p % 251);
    }
    put_file(name, content, n * record);
    free(content);
}

static bpt_status open_cifar(size_t n_files, char **names, bpt_import_plan *plan, void **import) {
    static char *files[4]; /* the importer borrows them */
    for (size_t i = 0; i < n_files; i++) files[i] = (char *)(uintptr_t)in_directory(names[i]);
    const bpt_import_source source = {.files = files, .n_files = n_files};
    return bpt_importer_find("cifar")->open(&source, plan, import);
}

static void cifar_reads_both_variants(void **state) {
    (void)state;
    char a[] = "a.bin", b[] = "b.bin";
    for (size_t label_bytes = 1; label_bytes <= 2; label_bytes++) {
        put_cifar(a, label_bytes, 4, 0);
        put_cifar(b, label_bytes, 3, 4);
        char *names[] = {a, b};
        bpt_import_plan plan;
        void *import;
        assert_int_equal(open_cifar(2, names, &plan, &import), BPT_OK);
        assert_int_equal(plan.count, 7);
        assert_int_equal(plan.C, 3);
        assert_int_equal(plan.n_classes, label_bytes == 1 ? 10 : 100);
        assert_string_equal(plan.class_names[5], label_bytes == 1 ? "dog" : "bed");
        assert_string_equal(plan.class_names[plan.n_classes - 1],
                            label_bytes == 1 ? "truck" : "worm");
        bpt_import_item item = {0};
        for (uint32_t i = 0; i < 7; i++) {
            uint8_t pixels[CIFAR];
            uint32_t label;
            assert_int_equal(take(bpt_importer_find("cifar"), import, &item, pixels, &label),
                             BPT_OK);
            assert_int_equal(label, i);
            assert_int_equal(pixels[0], (i < 4 ? i : i - 4) * 31 % 256);
            assert_int_equal(pixels[250], ((i < 4 ? i : i - 4) * 31 + 250) % 256);
            char name[BPT_IMPORT_NAME_SIZE], end[32];
            bpt_importer_find("cifar")->describe(import, &item, name, sizeof name);
            snprintf(end, sizeof end, "%s: record %u", i < 4 ? "a.bin" : "b.bin",
                     i < 4 ? i : i - 4);
            assert_non_null(strstr(name, end));
        }
        bpt_free(item.owned.bytes);
        bpt_importer_find("cifar")->close(import);
    }
}

/* 3073 records of 3074 bytes are as long as 3074 of 3073. */
static void cifar_tells_variants_of_one_size(void **state) {
    (void)state;
    char name[] = "both.bin";
    for (size_t label_bytes = 1; label_bytes <= 2; label_bytes++) {
        const size_t n = CIFAR + 3 - label_bytes, record = label_bytes + CIFAR;
        uint8_t *content = malloc(n * record);
        assert_non_null(content);
        memset(content, 250, n * record);
        for (size_t i = 0; i < n; i++) memset(content + i * record, 9, label_bytes);
        put_file(name, content, n * record);
        bpt_import_plan plan;
        void *import;
        assert_int_equal(open_cifar(1, (char *[]){name}, &plan, &import), BPT_OK);
        assert_int_equal(plan.n_classes, label_bytes == 1 ? 10 : 100);
        assert_int_equal(plan.count, n);
        bpt_importer_find("cifar")->close(import);
        memset(content, 5, n * record); /* labels of either */
        put_file(name, content, n * record);
        assert_int_equal(open_cifar(1, (char *[]){name}, &plan, &import), BPT_EDATA);
        free(content);
    }
}

static void cifar_refuses_what_is_wrong(void **state) {
    (void)state;
    char ten[] = "10.bin", hundred[] = "100.bin", odd[] = "odd", gz[] = "gz", bad[] = "bad",
         empty[] = "empty", missing[] = "missing", folder[] = ".";
    put_cifar(ten, 1, 2, 0);
    put_cifar(hundred, 2, 2, 0);
    put_cifar(bad, 1, 2, 9); /* labels 9 and 10 */
    put_file(odd, "0123456789", 10);
    put_file(gz, "\x1f\x8b 345", 6);
    put_file(empty, "", 0);
    bpt_import_plan plan;
    void *import;
    assert_int_equal(open_cifar(2, (char *[]){ten, hundred}, &plan, &import), BPT_EDATA);
    assert_non_null(strstr(bpt_error_last()->text, "100.bin is of CIFAR-100"));
    assert_int_equal(open_cifar(1, (char *[]){odd}, &plan, &import), BPT_EDATA);
    assert_int_equal(open_cifar(1, (char *[]){empty}, &plan, &import), BPT_EDATA);
    assert_int_equal(open_cifar(1, (char *[]){missing}, &plan, &import), BPT_ENOENT);
    assert_int_equal(open_cifar(1, (char *[]){folder}, &plan, &import), BPT_EDATA);
    assert_non_null(strstr(bpt_error_last()->text, "is not a file"));
    assert_int_equal(open_cifar(1, (char *[]){gz}, &plan, &import), BPT_EDATA);
    assert_non_null(strstr(bpt_error_last()->hint, "unpack"));
    assert_int_equal(open_cifar(1, (char *[]){bad}, &plan, &import), BPT_OK);
    uint8_t pixels[CIFAR];
    uint32_t label;
    bpt_import_item item = {0};
    assert_int_equal(take(bpt_importer_find("cifar"), import, &item, pixels, &label), BPT_OK);
    assert_int_equal(take(bpt_importer_find("cifar"), import, &item, pixels, &label), BPT_EDATA);
    assert_non_null(strstr(bpt_error_last()->text, "record 1 has label 10"));
    bpt_free(item.owned.bytes);
    bpt_importer_find("cifar")->close(import);
}

/* ---- glyphs ---- */

enum { GLYPH = 28 * 28 };

typedef struct glyph {
    uint8_t pixels[GLYPH];
    uint32_t label;
} glyph;

static void draw(uint64_t seed, const char *split, glyph *out, uint64_t n) {
    const bpt_import_source source = {.count = n, .seed = seed, .split = split};
    bpt_import_plan plan;
    void *import;
    assert_int_equal(bpt_importer_find("glyphs")->open(&source, &plan, &import), BPT_OK);
    assert_int_equal(plan.count, n);
    assert_int_equal(plan.C * plan.H * plan.W, GLYPH);
    assert_int_equal(plan.n_classes, 10);
    bpt_import_item item = {0};
    for (uint64_t i = 0; i < n; i++)
        assert_int_equal(
            take(bpt_importer_find("glyphs"), import, &item, out[i].pixels, &out[i].label), BPT_OK);
    bpt_importer_find("glyphs")->close(import);
}

static bool same(const glyph *a, const glyph *b) {
    return a->label == b->label && memcmp(a->pixels, b->pixels, GLYPH) == 0;
}

static void glyphs_follow_their_seed(void **state) {
    (void)state;
    enum { COUNT = 200 };
    static glyph a[COUNT], b[COUNT], more[COUNT + 50];
    draw(1, "train", a, COUNT);
    draw(1, "train", b, COUNT);
    draw(1, "train", more, COUNT + 50);
    for (size_t i = 0; i < COUNT; i++) {
        assert_true(same(&a[i], &b[i]));
        assert_true(same(&a[i], &more[i]));
        for (size_t j = 0; j < i; j++) assert_memory_not_equal(a[i].pixels, a[j].pixels, GLYPH);
    }
    draw(2, "train", b, COUNT);
    for (size_t i = 0; i < COUNT; i++) assert_memory_not_equal(a[i].pixels, b[i].pixels, GLYPH);
    draw(1, "test", b, COUNT);
    for (size_t i = 0; i < COUNT; i++) assert_memory_not_equal(a[i].pixels, b[i].pixels, GLYPH);
}

static void glyphs_are_balanced_and_visible(void **state) {
    (void)state;
    enum { COUNT = 1000 };
    static glyph drawn[COUNT];
    draw(3, "train", drawn, COUNT);
    uint32_t in_ten = 0;
    bool orders_differ = false;
    for (size_t i = 0; i < COUNT; i++) {
        assert_true(drawn[i].label < 10);
        in_ten |= 1u << drawn[i].label;
        if (i % 10 == 9) {
            assert_int_equal(in_ten, 1023);
            in_ten = 0;
        }
        orders_differ |= drawn[i].label != drawn[i % 10].label;
        size_t bright = 0;
        for (size_t p = 0; p < GLYPH; p++) bright += drawn[i].pixels[p] > 100;
        assert_in_range(bright, 15, 400);
    }
    assert_true(orders_differ);
}

/* Of all that show a digit: ink in the upper half less that in the lower, and in the right less
 * that in the left. */
static void add_sides(const glyph *g, int64_t *upper, int64_t *right) {
    for (int p = 0; p < GLYPH; p++) {
        *upper += p / 28 < 14 ? g->pixels[p] : -g->pixels[p];
        *right += p % 28 < 14 ? -g->pixels[p] : g->pixels[p];
    }
}

/* A 7 has more above and on the right, as a 9, a 6 below and on the left. */
static void glyphs_stand_upright(void **state) {
    (void)state;
    enum { COUNT = 1000 };
    static glyph drawn[COUNT];
    int64_t upper[10] = {0}, right[10] = {0};
    draw(3, "train", drawn, COUNT);
    for (size_t i = 0; i < COUNT; i++)
        add_sides(&drawn[i], &upper[drawn[i].label], &right[drawn[i].label]);
    assert_true(upper[7] > 0 && upper[9] > 0 && upper[6] < 0);
    assert_true(right[7] > 0 && right[9] > 0 && right[6] < 0);
}

static void registry_knows_its_importers(void **state) {
    (void)state;
    assert_null(bpt_importer_find("jpeg"));
    for (size_t i = 0; bpt_importer_at(i); i++)
        assert_ptr_equal(bpt_importer_find(bpt_importer_at(i)->name), bpt_importer_at(i));
}

int main(void) {
#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)
    const struct CMUnitTest tests[] = {
        TEST(idx_reads_plain_and_gzip),
        TEST(idx_refuses_what_is_wrong),
        TEST(idx_survives_damaged_gzip),
        TEST(cifar_reads_both_variants),
        TEST(cifar_tells_variants_of_one_size),
        TEST(cifar_refuses_what_is_wrong),
        TEST(glyphs_follow_their_seed),
        TEST(glyphs_are_balanced_and_visible),
        TEST(glyphs_stand_upright),
        TEST(registry_knows_its_importers),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
