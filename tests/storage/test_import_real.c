/* Caffe's LMDBs of the test data against the files that they were made of, byte by byte.
 * ctest: data TIMEOUT=60 */
#include "base/memory.h"
#include "storage/importers/encoded_file.h"
#include "storage/importers/importer.h"
#include "storage/importers/tar_file.h"

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

static const char *data; /* folder of the test data */

static char *in_data(const char *name) {
    static char paths[4][512];
    static unsigned next;
    char *path = paths[next++ % 4];
    snprintf(path, sizeof paths[0], "%s/%s", data, name);
    return path;
}

/* An import under way. */
typedef struct reading {
    const bpt_importer *importer;
    void *import;
    bpt_import_plan plan;
    bpt_import_item item;
    bpt_import_buffer buffer;
} reading;

static void begin(reading *r, const char *importer, char **files, size_t n) {
    *r = (reading){.importer = bpt_importer_find(importer)};
    const bpt_import_source source = {.files = files, .n_files = n};
    assert_int_equal(r->importer->open(&source, &r->plan, &r->import), BPT_OK);
}

static bpt_import_image take(reading *r) {
    bpt_import_image image;
    assert_int_equal(r->importer->next(r->import, &r->item), BPT_OK);
    assert_int_equal(r->importer->load(r->import, &r->item, &r->buffer, &image), BPT_OK);
    return image;
}

static void end(reading *r) {
    r->importer->close(r->import);
    bpt_free(r->item.owned.bytes);
    bpt_free(r->buffer.bytes);
}

static void raw_images_are_those_of_idx(void **state) {
    (void)state;
    char *lmdb[] = {in_data("caffe-lmdb/fashion_t10k_first1000_lmdb")};
    char *idx[] = {in_data("fashion-mnist/t10k-images-idx3-ubyte.gz"),
                   in_data("fashion-mnist/t10k-labels-idx1-ubyte.gz")};
    reading a, b;
    begin(&a, "caffe", lmdb, 1);
    begin(&b, "idx", idx, 2);
    assert_int_equal(a.plan.count, 1000);
    assert_int_equal(a.plan.n_classes, 10);
    for (int i = 0; i < 1000; i++) {
        const bpt_import_image x = take(&a), y = take(&b);
        assert_false(x.encoded);
        assert_int_equal(x.C, 1);
        assert_int_equal(x.H, 28);
        assert_int_equal(x.W, 28);
        assert_int_equal(x.label, y.label);
        assert_memory_equal(x.bytes, y.bytes, 28 * 28);
    }
    end(&a);
    end(&b);
}

/* Finds the member whose name ends so. */
static void find_member(const char *path, const char *ending, bpt__tar_member *member) {
    bpt__tar_file *tar;
    bool found;
    assert_int_equal(bpt__tar_open(path, &tar), BPT_OK);
    for (;;) {
        assert_int_equal(bpt__tar_next(tar, member, &found), BPT_OK);
        assert_true(found);
        const size_t n = strlen(member->name), m = strlen(ending);
        if (n >= m && strcmp(member->name + n - m, ending) == 0) break;
    }
    bpt__tar_close(tar);
}

static void encoded_images_are_the_files(void **state) {
    (void)state;
    static const char *const classes[] = {"daisy", "dandelion", "roses", "sunflowers", "tulips"};
    char *lmdb[] = {in_data("caffe-lmdb/flowers_val_encoded60_lmdb")};
    reading a;
    begin(&a, "caffe", lmdb, 1);
    assert_int_equal(a.plan.count, 60);
    assert_int_equal(a.plan.n_classes, 5);
    uint32_t per_class[5] = {0};
    bpt_import_buffer file = {0};
    for (int i = 0; i < 60; i++) {
        const bpt_import_image x = take(&a);
        char name[BPT_IMPORT_NAME_SIZE], ending[BPT_IMPORT_NAME_SIZE];
        a.importer->describe(a.import, &a.item, name, sizeof name);
        const char *key = strstr(name, ": key ");
        assert_non_null(key);
        const char *rest = strchr(key, '_'); /* 00000059_tulips/8668973377_c69527db42_m.jpg */
        assert_non_null(rest);
        snprintf(ending, sizeof ending, "/val/%s", rest + 1);
        bpt__tar_member member;
        find_member(in_data("flowers/flowers750.tar"), ending, &member);
        assert_true(x.encoded);
        assert_int_equal(x.size, member.size);
        assert_int_equal(bpt__encoded_piece_read(in_data("flowers/flowers750.tar"), "x",
                                                 member.offset, (size_t)member.size, &file),
                         BPT_OK);
        assert_memory_equal(x.bytes, file.bytes, x.size);
        assert_true(x.label < 5);
        assert_memory_equal(rest + 1, classes[x.label], strlen(classes[x.label]));
        per_class[x.label]++;
    }
    for (int c = 0; c < 5; c++) assert_int_equal(per_class[c], 12);
    bpt_free(file.bytes);
    end(&a);
}

int main(void) {
    data = getenv("BPT_TEST_DATA");
    if (!data || access(in_data("caffe-lmdb"), R_OK) != 0 ||
        access(in_data("flowers/flowers750.tar"), R_OK) != 0 ||
        access(in_data("fashion-mnist"), R_OK) != 0) {
        printf("skipped: no LMDBs of Caffe's, flowers and Fashion-MNIST at BPT_TEST_DATA\n");
        return 77;
    }
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(raw_images_are_those_of_idx),
        cmocka_unit_test(encoded_images_are_the_files),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
