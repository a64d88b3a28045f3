/* The importer of WebDataset's shards, and the reader of tar files, on archives made here.
 * ctest: TIMEOUT=60 */
#include "base/memory.h"
#include "storage/importers/tar_file.h"
#include "tests/storage/made_files.h"
#include "tests/storage/made_tar.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

enum { MAX_ITEMS = 32 };

static made_tar tar;
static made_item items[MAX_ITEMS];
static size_t n_items;
static bpt_import_plan plan;

static void put_tar(const char *name) {
    made_tar_end(&tar);
    made_bytes(name, tar.bytes, tar.size);
    tar.size = 0;
}

static bpt_status read_shards(size_t n, const char *const *names, const char *const *classes,
                              uint32_t n_classes) {
    char *files[4];
    for (size_t i = 0; i < n; i++) files[i] = made_path(names[i]);
    const bpt_import_source source = {
        .files = files, .n_files = n, .class_names = classes, .n_class_names = n_classes};
    return made_import("webdataset", &source, items, MAX_ITEMS, &n_items, &plan);
}

static bpt_status read_shard(const char *name) {
    return read_shards(1, &name, NULL, 0);
}

static void expect_item(size_t i, const char *name, uint32_t label, const char *content) {
    assert_true(i < n_items);
    assert_string_equal(items[i].name, name);
    assert_int_equal(items[i].label, label);
    assert_int_equal(items[i].size, strlen(content));
    assert_memory_equal(items[i].head, content, strlen(content));
}

static void expect_bad(size_t i, const char *name, const char *why) {
    assert_true(i < n_items);
    assert_int_equal(items[i].status, BPT_EDATA);
    if (!strstr(items[i].name, name) || !strstr(items[i].name, why))
        print_error("%s\n", items[i].name);
    assert_non_null(strstr(items[i].name, name));
    assert_non_null(strstr(items[i].name, why));
}

static void samples_are_found_in_order(void **state) {
    (void)state;
    made_tar_add(&tar, "./", '5', "", 0);
    made_tar_text(&tar, "0001.jpg", "one");
    made_tar_text(&tar, "0001.json", "{}");
    made_tar_text(&tar, "0001.cls", "3\n");
    made_tar_text(&tar, "0002.cls", "0");
    made_tar_text(&tar, "0002.PNG", "two");
    made_tar_text(&tar, "README", "no sample");
    made_tar_text(&tar, ".hidden.jpg", "none either");
    put_tar("a.tar");
    made_tar_text(&tar, "dir.x/0003.jpeg", "three");
    made_tar_text(&tar, "dir.x/0003.seg.png", "not the image");
    made_tar_text(&tar, "dir.x/0003.cls", " 12 ");
    put_tar("b.tar");
    const char *const names[] = {"a.tar", "b.tar"};
    assert_int_equal(read_shards(2, names, NULL, 0), BPT_OK);
    assert_int_equal(n_items, 3);
    assert_int_equal(plan.n_classes, 13);
    expect_item(0, "a.tar: 0001", 3, "one");
    expect_item(1, "a.tar: 0002", 0, "two");
    expect_item(2, "b.tar: dir.x/0003", 12, "three");
}

static void names_of_classes_are_known(void **state) {
    (void)state;
    static const char *const known[] = {"rose", "oak"};
    made_tar_text(&tar, "1.jpg", "a");
    made_tar_text(&tar, "1.cls", "oak\n");
    made_tar_text(&tar, "2.jpg", "b");
    made_tar_text(&tar, "2.cls", "0");
    made_tar_text(&tar, "3.jpg", "c");
    made_tar_text(&tar, "3.cls", "elm");
    made_tar_text(&tar, "4.jpg", "d");
    made_tar_text(&tar, "4.cls", "2");
    put_tar("a.tar");
    const char *const names[] = {"a.tar"};
    assert_int_equal(read_shards(1, names, known, 2), BPT_OK);
    assert_int_equal(plan.n_classes, 2);
    expect_item(0, "a.tar: 1", 1, "a");
    expect_item(1, "a.tar: 2", 0, "b");
    expect_bad(2, "a.tar: 3", "name of one that is known");
    expect_bad(3, "a.tar: 4", "number of a class");
}

static void missing_partners_are_bad_items(void **state) {
    (void)state;
    made_tar_text(&tar, "1.jpg", "a");
    made_tar_text(&tar, "2.cls", "1");
    made_tar_text(&tar, "3.jpg", "c");
    made_tar_text(&tar, "3.cls", "1");
    made_tar_text(&tar, "3.png", "c");
    made_tar_text(&tar, "4.jpg", "d");
    made_tar_text(&tar, "4.cls", "1");
    made_tar_text(&tar, "4.cls", "2");
    made_tar_text(&tar, "5.jpg", "e");
    made_tar_text(&tar, "5.cls", "-1");
    made_tar_text(&tar, "6.jpg", "");
    made_tar_text(&tar, "6.cls", "1");
    made_tar_text(&tar, "7.json", "{}");
    made_tar_text(&tar, "8.jpg", "fine");
    made_tar_text(&tar, "8.cls", "1");
    made_tar_text(&tar, "9.jpg", "i");
    made_tar_text(&tar, "9.cls", "");
    put_tar("a.tar");
    assert_int_equal(read_shard("a.tar"), BPT_OK);
    assert_int_equal(n_items, 9);
    expect_bad(0, "a.tar: 1", "no .cls");
    expect_bad(1, "a.tar: 2", "no .jpg, .jpeg or .png");
    expect_bad(2, "a.tar: 3", "more than one image");
    expect_bad(3, "a.tar: 4", "more than one .cls");
    expect_bad(4, "a.tar: 5", "neither the number");
    expect_bad(5, "a.tar: 6", "empty");
    expect_bad(6, "a.tar: 7", "no .jpg");
    expect_item(7, "a.tar: 8", 1, "fine");
    expect_bad(8, "a.tar: 9", "neither the number");
}

/* Long names in all three ways, and sizes that are said elsewhere. */
static void dialects_of_tar_are_read(void **state) {
    (void)state;
    char folder[131], name[300], record[400];
    memset(folder, 'f', 130);
    folder[130] = '\0';
    snprintf(name, sizeof name, "%s/1.jpg", folder);
    made_tar_text(&tar, name, "ustar");
    snprintf(name, sizeof name, "%s/1.cls", folder);
    made_tar_text(&tar, name, "1");
    memset(name, 'g', 200);
    strcpy(name + 200, ".jpg");
    made_tar_add(&tar, "././@LongLink", 'L', name, strlen(name) + 1);
    made_tar_text(&tar, "cut", "gnu");
    strcpy(name + 200, ".cls");
    made_tar_add(&tar, "././@LongLink", 'L', name, strlen(name) + 1);
    made_tar_text(&tar, "cut", "2");
    made_tar_add(&tar, "global", 'g', "13 comment=x\n", 13);
    memset(name, 'p', 210);
    strcpy(name + 210, ".jpg");
    snprintf(record, sizeof record, "224 path=%s\n9 size=3\n", name);
    made_tar_add(&tar, "pax", 'x', record, strlen(record));
    const size_t at = tar.size;
    made_tar_text(&tar, "cut", "pax");
    memcpy(tar.bytes + at + 124, "00000000000", 11);
    made_tar_sum(&tar, at);
    strcpy(name + 210, ".cls");
    snprintf(record, sizeof record, "224 path=%s\n", name);
    made_tar_add(&tar, "pax", 'x', record, strlen(record));
    made_tar_text(&tar, "cut", "3");
    const size_t binary = tar.size;
    made_tar_text(&tar, "4.jpg", "base 256");
    memcpy(tar.bytes + binary + 124, "\x80\0\0\0\0\0\0\0\0\0\0\x08", 12);
    made_tar_sum(&tar, binary);
    made_tar_text(&tar, "4.cls", "4");
    put_tar("a.tar");
    assert_int_equal(read_shard("a.tar"), BPT_OK);
    assert_int_equal(n_items, 4);
    static const char *const contents[] = {"ustar", "gnu", "pax", "base 256"};
    static const size_t lengths[] = {132, 200, 210, 1};
    for (uint32_t i = 0; i < 4; i++) {
        assert_int_equal(items[i].status, BPT_OK);
        assert_int_equal(items[i].label, i + 1);
        assert_memory_equal(items[i].head, contents[i], strlen(contents[i]));
        assert_int_equal(strlen(items[i].name), strlen("a.tar: ") + lengths[i]);
    }
}

static void what_is_no_shard_is_refused(void **state) {
    (void)state;
    made_text("text.tar", "this is not a tar file, which would begin with a header");
    made_bytes("gz.tar", "\x1f\x8b\x08 and so on", 14);
    made_text("empty.tar", "");
    put_tar("none.tar");
    made_tar_text(&tar, "readme.txt", "no sample has an image");
    made_tar_text(&tar, "1.jpg", "cut");
    made_bytes("cut.tar", tar.bytes, tar.size); /* before its mark of the end */
    made_bytes("short.tar", tar.bytes, tar.size - 510);
    tar.bytes[3] ^= 1;
    put_tar("sum.tar");
    char *file[1];
    const struct {
        const char *name, *text;
        bpt_status status;
    } wrong[] = {{"text.tar", "it ends early", BPT_EDATA},
                 {"gz.tar", "is compressed", BPT_EDATA},
                 {"empty.tar", "is empty", BPT_EDATA},
                 {"none.tar", "holds no samples", BPT_EDATA},
                 {"cut.tar", "mark of the end", BPT_EDATA},
                 {"short.tar", "ends within the file", BPT_EDATA},
                 {"sum.tar", "wrong checksum", BPT_EDATA},
                 {"missing.tar", "missing.tar", BPT_ENOENT},
                 {".", "not a file", BPT_EDATA}};
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        file[0] = made_path(wrong[i].name);
        made_refused("webdataset", &(bpt_import_source){.files = file, .n_files = 1},
                     wrong[i].status, wrong[i].text);
        assert_non_null(strstr(bpt_error_last()->text, file[0]));
    }
}

static void refuse_tar(const char *says) {
    put_tar("a.tar");
    if (read_shard("a.tar") != BPT_EDATA || !strstr(bpt_error_last()->text, says))
        fail_msg("%s: %s", says, bpt_error_last()->text);
}

static void pax_headers_that_make_no_sense(void **state) {
    (void)state;
    static const char *const wrong[] = {"16 path=long.jpg\n",
                                        "17 path=long.jpgX",
                                        "18 path=long.jpg\n",
                                        "path=long.jpg\n",
                                        "16path=long.jpg\n",
                                        "2 \n",
                                        "0 a=b\n",
                                        "99999999999999999999 a=b\n"};
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        made_tar_add(&tar, "pax", 'x', wrong[i], strlen(wrong[i]));
        made_tar_text(&tar, "1.jpg", "image");
        refuse_tar("a pax header that makes no sense");
    }
    static const char *const sizes[] = {"10 size=a\n", "12 size=-17\n",
                                        "31 size=1000000000000000000000\n"};
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
        made_tar_add(&tar, "pax", 'x', sizes[i], strlen(sizes[i]));
        made_tar_text(&tar, "1.jpg", "image");
        refuse_tar("a size that is no number");
    }
}

/* What pax says of a size is of the member, not of a long name before it. */
static void a_long_name_has_its_own_size(void **state) {
    (void)state;
    made_tar_add(&tar, "pax", 'x', "9 size=5\n", 9);
    made_tar_add(&tar, "././@LongLink", 'L', "longer.jpg", 11);
    made_tar_text(&tar, "cut", "image");
    made_tar_text(&tar, "longer.cls", "1");
    put_tar("a.tar");
    assert_int_equal(read_shard("a.tar"), BPT_OK);
    assert_int_equal(n_items, 1);
    expect_item(0, "a.tar: longer", 1, "image");
}

static void sizes_that_cannot_be(void **state) {
    (void)state;
    enum { AT_SIZE = 124, BLOCK = 512, LONG = (1 << 20) + 1 };
    static const char *const wrong[] = {
        "\x80\x01\0\0\0\0\0\0\0\0\0\x05", "\x80\0\0\x01\0\0\0\0\0\0\0\x05",
        "\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff", "0000000000x"};
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        made_tar_text(&tar, "1.jpg", "image");
        memcpy(tar.bytes + AT_SIZE, wrong[i], 12);
        made_tar_sum(&tar, 0);
        refuse_tar("a size of no number");
    }
    made_tar_add(&tar, "././@LongLink", 'L', "", 0);
    snprintf((char *)tar.bytes + AT_SIZE, 12, "%011o", LONG);
    made_tar_sum(&tar, 0);
    static uint8_t whole[BLOCK + LONG + BLOCK];
    memcpy(whole, tar.bytes, BLOCK);
    made_bytes("a.tar", whole, sizeof whole);
    tar.size = 0;
    assert_int_equal(read_shard("a.tar"), BPT_EDATA);
    assert_non_null(strstr(bpt_error_last()->text, "a name or header of over 1 MiB"));
}

/* Any byte changed, any length: an error or other samples, never a crash. */
static void damage_is_an_error(void **state) {
    (void)state;
    made_tar_add(&tar, "pax", 'x', "17 path=long.jpg\n", 17);
    made_tar_text(&tar, "1.jpg", "image");
    made_tar_add(&tar, "././@LongLink", 'L', "longer.cls", 11);
    made_tar_text(&tar, "1.cls", "1");
    made_tar_end(&tar);
    for (size_t at = 0; at < tar.size; at += 5)
        for (int bit = 0; bit < 8; bit += 3) {
            const size_t header = at / 512 * 512;
            tar.bytes[at] ^= (uint8_t)(1 << bit);
            static made_tar summed; /* as somebody who means harm would make it */
            summed = tar;
            if (header % 1024 == 0 && (at < header + 148 || at >= header + 156))
                made_tar_sum(&summed, header);
            made_bytes("changed.tar", summed.bytes, summed.size);
            tar.bytes[at] ^= (uint8_t)(1 << bit);
            const bpt_status status = read_shard("changed.tar");
            assert_true(status == BPT_OK || status == BPT_EDATA);
        }
    for (size_t cut = 0; cut + 1024 < tar.size; cut += 100) {
        made_bytes("changed.tar", tar.bytes, cut);
        assert_int_equal(read_shard("changed.tar"), BPT_EDATA);
    }
    tar.size = 0;
}

/* Every allocation fails in turn: an error, no leak. */
static void memory_may_run_out(void **state) {
    (void)state;
    static const char *const known[] = {"rose", "oak"};
    made_tar_add(&tar, "pax", 'x', "17 path=long.jpg\n", 17);
    made_tar_text(&tar, "cut", "image");
    made_tar_text(&tar, "long.cls", "oak");
    made_tar_text(&tar, "2.jpg", "image");
    put_tar("a.tar");
    char *files[] = {made_path("a.tar")};
    const bpt_import_source source = {
        .files = files, .n_files = 1, .class_names = known, .n_class_names = 2};
    const bpt_importer *importer = bpt_importer_find("webdataset");
    for (int64_t n = 0;; n++) {
        void *import;
        bpt_memory_fail_at(n);
        const bpt_status status = importer->open(&source, &plan, &import);
        bpt_memory_fail_at(-1);
        if (status == BPT_OK) {
            assert_int_equal(plan.count, 2);
            assert_string_equal(plan.class_names[1], "oak");
            importer->close(import);
            assert_true(n > 10);
            break;
        }
        assert_int_equal(status, BPT_ENOMEM);
        assert_int_equal(bpt_memory_live(), 0);
    }
}

int main(void) {
#define TEST(name) cmocka_unit_test_setup_teardown(name, made_files_set_up, made_files_tear_down)
    const struct CMUnitTest tests[] = {
        TEST(samples_are_found_in_order),
        TEST(names_of_classes_are_known),
        TEST(missing_partners_are_bad_items),
        TEST(dialects_of_tar_are_read),
        TEST(what_is_no_shard_is_refused),
        TEST(pax_headers_that_make_no_sense),
        TEST(a_long_name_has_its_own_size),
        TEST(sizes_that_cannot_be),
        TEST(damage_is_an_error),
        TEST(memory_may_run_out),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
