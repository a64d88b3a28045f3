/* The importers of folders and lists on files made here. ctest: TIMEOUT=30 */
#include "base/memory.h"
#include "storage/importers/class_table.h"
#include "tests/storage/made_files.h"

#include <sys/stat.h>

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

enum { MAX_ITEMS = 64 };

static made_item items[MAX_ITEMS];
static size_t n_items;
static bpt_import_plan plan;

static void expect_item(size_t i, const char *name, uint32_t label, const char *content) {
    assert_true(i < n_items);
    assert_string_equal(items[i].name, name);
    assert_int_equal(items[i].label, label);
    assert_true(items[i].encoded);
    assert_int_equal(items[i].size, strlen(content));
    assert_memory_equal(items[i].head, content, strlen(content) < 16 ? strlen(content) : 16);
}

/* ---- folder ---- */

static bpt_status read_folder(const char *name, const char *const *classes, uint32_t n_classes) {
    char *files[] = {made_path(name)};
    const bpt_import_source source = {
        .files = files, .n_files = 1, .class_names = classes, .n_class_names = n_classes};
    return made_import("folder", &source, items, MAX_ITEMS, &n_items, &plan);
}

static void refuse_folder(const char *name, const char *const *classes, uint32_t n_classes,
                          bpt_status status, const char *text) {
    char *files[] = {made_path(name)};
    const bpt_import_source source = {
        .files = files, .n_files = 1, .class_names = classes, .n_class_names = n_classes};
    made_refused("folder", &source, status, text);
}

static void make_flowers(void) {
    made_text("flowers/rose/b.jpg", "rose b");
    made_text("flowers/rose/a.jpg", "rose a");
    made_text("flowers/rose/deep/er/c.png", "rose c");
    made_text("flowers/rose/deep.jpg", "rose deep");
    made_text("flowers/rose/.hidden.jpg", "no");
    made_text("flowers/rose/.git/x.jpg", "no");
    made_text("flowers/Tulip/1.jpg", "tulip 1");
    made_text("flowers/README", "about");
    made_text("flowers/.DS_Store", "no");
    assert_int_equal(mkdir(made_path("flowers/aster"), 0777), 0);
}

static void folder_gives_files_in_byte_order(void **state) {
    (void)state;
    make_flowers();
    assert_int_equal(read_folder("flowers", NULL, 0), BPT_OK);
    assert_int_equal(plan.n_classes, 3); /* Tulip, aster (empty), rose */
    assert_int_equal(n_items, 5);
    expect_item(0, "flowers/Tulip/1.jpg", 0, "tulip 1");
    expect_item(1, "flowers/rose/a.jpg", 2, "rose a");
    expect_item(2, "flowers/rose/b.jpg", 2, "rose b");
    expect_item(3, "flowers/rose/deep.jpg", 2, "rose deep");
    expect_item(4, "flowers/rose/deep/er/c.png", 2, "rose c");
}

static void folder_follows_links(void **state) {
    (void)state;
    make_flowers();
    assert_int_equal(symlink("../rose/a.jpg", made_path("flowers/aster/link.jpg")), 0);
    assert_int_equal(symlink("nowhere", made_path("flowers/aster/broken.jpg")), 0);
    assert_int_equal(symlink("rose", made_path("flowers/rosa")), 0);
    assert_int_equal(read_folder("flowers", NULL, 0), BPT_OK);
    assert_int_equal(plan.n_classes, 4);
    assert_int_equal(items[1].status, BPT_ENOENT);
    assert_non_null(strstr(items[1].name, "aster/broken.jpg"));
    expect_item(2, "flowers/aster/link.jpg", 1, "rose a");
    expect_item(3, "flowers/rosa/a.jpg", 2, "rose a");
    assert_int_equal(symlink("..", made_path("flowers/aster/loop")), 0);
    refuse_folder("flowers", NULL, 0, BPT_EDATA, "does a link lead back up?");
}

static void folder_tells_what_is_no_image_file(void **state) {
    (void)state;
    made_text("f/a/1.jpg", "");
    made_text("f/a/2.jpg", "fine");
    assert_int_equal(mkfifo(made_path("f/a/3.jpg"), 0666), 0);
    assert_int_equal(read_folder("f", NULL, 0), BPT_OK);
    assert_int_equal(n_items, 3);
    assert_int_equal(items[0].status, BPT_EDATA);
    assert_non_null(strstr(items[0].name, "f/a/1.jpg is empty"));
    expect_item(1, "f/a/2.jpg", 0, "fine");
    assert_int_equal(items[2].status, BPT_EDATA);
    assert_non_null(strstr(items[2].name, "f/a/3.jpg is not a file"));
}

static void folder_keeps_to_known_classes(void **state) {
    (void)state;
    make_flowers();
    static const char *const known[] = {"rose", "oak", "Tulip", "aster"};
    assert_int_equal(read_folder("flowers", known, 4), BPT_OK);
    assert_int_equal(plan.n_classes, 4);
    assert_int_equal(n_items, 5);
    expect_item(0, "flowers/rose/a.jpg", 0, "rose a");
    expect_item(4, "flowers/Tulip/1.jpg", 2, "tulip 1");
    refuse_folder("flowers", known, 2, BPT_EDATA, "flowers: there is no class \"Tulip\"");
    static const char *const twice[] = {"rose", "rose"};
    refuse_folder("flowers", twice, 2, BPT_EUSAGE, "\"rose\" is given twice");
}

static void folder_refuses_what_is_none(void **state) {
    (void)state;
    made_text("flat/1.jpg", "image");
    made_text("file", "text");
    assert_int_equal(mkdir(made_path("void"), 0777), 0);
    assert_int_equal(mkdir(made_path("void/class"), 0777), 0);
    refuse_folder("missing", NULL, 0, BPT_ENOENT, "missing");
    assert_null(strstr(bpt_error_last()->hint, "--help"));
    refuse_folder("file", NULL, 0, BPT_ENOENT, "file");
    assert_non_null(strstr(bpt_error_last()->hint, "`bpt-ingest --help`"));
    made_text("shard-0.tar", "");
    refuse_folder("shard-0.tar", NULL, 0, BPT_ENOENT, "shard-0.tar");
    assert_non_null(strstr(bpt_error_last()->hint, "bpt-ingest webdataset"));
    refuse_folder("flat", NULL, 0, BPT_EDATA, "flat holds no folders");
    assert_non_null(strstr(bpt_error_last()->hint, "bpt-ingest list"));
    refuse_folder("void", NULL, 0, BPT_EDATA, "no folder in");
    assert_non_null(strstr(bpt_error_last()->hint, "FOLDER/cat/1.jpg"));
    refuse_folder("void/class", NULL, 0, BPT_EDATA, "class holds no folders");
    assert_non_null(strstr(bpt_error_last()->hint, "FOLDER/cat/1.jpg"));
}

/* ---- list ---- */

static bpt_status read_list(const char *text, const char *root, const char *const *classes,
                            uint32_t n_classes) {
    made_text("lists/list.txt", text);
    char *files[] = {made_path("lists/list.txt")};
    const bpt_import_source source = {.files = files,
                                      .n_files = 1,
                                      .root = root,
                                      .class_names = classes,
                                      .n_class_names = n_classes};
    return made_import("list", &source, items, MAX_ITEMS, &n_items, &plan);
}

static void list_takes_numbers_and_names(void **state) {
    (void)state;
    made_text("lists/a.jpg", "a");
    made_text("lists/sub/with space.jpg", "b");
    assert_int_equal(read_list("\xEF\xBB\xBF"
                               "a.jpg 7\r\n\n  sub/with space.jpg   2  \na.jpg 0",
                               NULL, NULL, 0),
                     BPT_OK);
    assert_int_equal(n_items, 3);
    assert_int_equal(plan.n_classes, 8);
    expect_item(0, "lists/a.jpg", 7, "a");
    expect_item(1, "lists/sub/with space.jpg", 2, "b");
    expect_item(2, "lists/a.jpg", 0, "a");
    assert_int_equal(read_list("a.jpg rose\na.jpg Oak\na.jpg 3\na.jpg rose\n", NULL, NULL, 0),
                     BPT_OK);
    assert_int_equal(plan.n_classes, 3); /* 3, Oak, rose */
    expect_item(0, "lists/a.jpg", 2, "a");
    expect_item(1, "lists/a.jpg", 1, "a");
    expect_item(2, "lists/a.jpg", 0, "a");
    expect_item(3, "lists/a.jpg", 2, "a");
    assert_int_equal(read_list("sub/with space.jpg\tred rose\n", NULL, NULL, 0), BPT_OK);
    expect_item(0, "lists/sub/with space.jpg", 0, "b");
}

static void list_keeps_to_known_classes(void **state) {
    (void)state;
    made_text("lists/a.jpg", "a");
    static const char *const known[] = {"rose", "2", "oak"};
    assert_int_equal(read_list("a.jpg oak\na.jpg 0\na.jpg 2\n", NULL, known, 3), BPT_OK);
    assert_int_equal(plan.n_classes, 3);
    expect_item(0, "lists/a.jpg", 2, "a");
    expect_item(1, "lists/a.jpg", 0, "a");
    expect_item(2, "lists/a.jpg", 1, "a"); /* the name goes before the number */
    assert_int_equal(read_list("a.jpg 0\na.jpg 3\n", NULL, known, 3), BPT_EDATA);
    assert_non_null(strstr(bpt_error_last()->text, "list.txt: line 2: there is no class \"3\""));
    assert_int_equal(read_list("a.jpg tulip\n", NULL, known, 3), BPT_EDATA);
}

static void list_finds_its_files(void **state) {
    (void)state;
    made_text("other/x.jpg", "x");
    char text[256];
    snprintf(text, sizeof text, "%s 1\n", made_path("other/x.jpg"));
    assert_int_equal(read_list(text, NULL, NULL, 0), BPT_OK);
    expect_item(0, "other/x.jpg", 1, "x");
    assert_int_equal(read_list("x.jpg 1\n", made_path("other"), NULL, 0), BPT_OK);
    expect_item(0, "other/x.jpg", 1, "x");
    assert_int_equal(read_list("x.jpg 1\n", made_path("other/"), NULL, 0), BPT_OK);
    expect_item(0, "other/x.jpg", 1, "x");
    assert_int_equal(read_list("\nx.jpg 1\n", NULL, NULL, 0), BPT_OK);
    assert_int_equal(items[0].status, BPT_ENOENT);
    assert_non_null(strstr(items[0].name, "lists/x.jpg"));
    assert_non_null(strstr(bpt_error_last()->hint, "line 2"));
}

static void list_refuses_what_is_none(void **state) {
    (void)state;
    const char *const wrong[][2] = {{"", "lists no images"},
                                    {"\n \n", "lists no images"},
                                    {"a.jpg 1\nb.jpg\n", "line 2 is no path and label: \"b.jpg\""},
                                    {"7", "line 1 is no path and label"}};
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        assert_int_equal(read_list(wrong[i][0], NULL, NULL, 0), BPT_EDATA);
        assert_non_null(strstr(bpt_error_last()->text, wrong[i][1]));
    }
    made_bytes("zero", "a\0 1", 4);
    char *files[] = {made_path("zero"), made_path("none")};
    made_refused("list", &(bpt_import_source){.files = files, .n_files = 1}, BPT_EDATA,
                 "holds a 0 byte");
    made_refused("list", &(bpt_import_source){.files = files + 1, .n_files = 1}, BPT_ENOENT,
                 "none");
    made_refused("list", &(bpt_import_source){.files = files, .n_files = 2}, BPT_EUSAGE, "one");
    assert_int_equal(read_list("a.jpg 65536\na.jpg 65535", NULL, NULL, 0), BPT_OK);
    assert_int_equal(plan.n_classes, 2); /* what is no class number is a name */
}

/* ---- class tables ---- */

static void classes_are_found_by_name(void **state) {
    (void)state;
    enum { N = 3000 };
    bpt__class_table t = {0};
    char name[16];
    uint32_t number, *numbers;
    assert_false(bpt__class_table_find(&t, "0", &number));
    for (uint32_t turn = 0; turn < 2; turn++)
        for (uint32_t i = 0; i < N; i++) {
            snprintf(name, sizeof name, "%u", i * 7);
            assert_int_equal(bpt__class_table_add(&t, "here", name, &number), BPT_OK);
            assert_int_equal(number, i);
        }
    assert_int_equal(t.n, N);
    assert_false(bpt__class_table_find(&t, "1", &number));
    assert_int_equal(bpt__class_table_sort(&t, &numbers), BPT_OK);
    for (uint32_t i = 0; i < N; i++) {
        snprintf(name, sizeof name, "%u", i * 7);
        assert_true(bpt__class_table_find(&t, name, &number));
        assert_int_equal(number, numbers[i]);
        assert_string_equal(t.names[number], name);
        if (i > 0) assert_true(strcmp(t.names[i - 1], t.names[i]) < 0);
    }
    bpt_free(numbers);
    bpt__class_table_free(&t);
}

static void classes_are_limited(void **state) {
    (void)state;
    bpt__class_table t = {0};
    char name[16];
    uint32_t number;
    for (uint32_t i = 0; i < BPT_IMPORT_MAX_CLASSES; i++) {
        snprintf(name, sizeof name, "%u", i);
        if (bpt__class_table_add(&t, "here", name, &number) != BPT_OK) fail();
    }
    assert_int_equal(bpt__class_table_add(&t, "here", "one more", &number), BPT_EDATA);
    assert_int_equal(bpt__class_table_add(&t, "here", "\xff", &number), BPT_EDATA);
    assert_non_null(strstr(bpt_error_last()->text, "is no class name: empty or not UTF-8"));
    assert_int_equal(bpt__class_table_add(&t, "here", "65535", &number), BPT_OK);
    bpt__class_table_free(&t);
}

/* Every allocation fails in turn: an error, no leak. */
static void memory_may_run_out(void **state) {
    (void)state;
    make_flowers();
    made_text("lists/list.txt", "a.jpg rose\nb.jpg oak\n");
    static const char *const importers[] = {"folder", "list"};
    char *folder = made_path("flowers"), *list = made_path("lists/list.txt");
    for (size_t k = 0; k < 2; k++)
        for (int64_t n = 0;; n++) {
            char *files[] = {k == 0 ? folder : list};
            const bpt_import_source source = {.files = files, .n_files = 1};
            void *import;
            bpt_memory_fail_at(n);
            const bpt_status status =
                bpt_importer_find(importers[k])->open(&source, &plan, &import);
            bpt_memory_fail_at(-1);
            if (status == BPT_OK) {
                bpt_importer_find(importers[k])->close(import);
                assert_true(n > 5);
                break;
            }
            assert_int_equal(status, BPT_ENOMEM);
            assert_int_equal(bpt_memory_live(), 0);
        }
}

int main(void) {
#define TEST(name) cmocka_unit_test_setup_teardown(name, made_files_set_up, made_files_tear_down)
    const struct CMUnitTest tests[] = {
        TEST(folder_gives_files_in_byte_order),
        TEST(folder_follows_links),
        TEST(folder_tells_what_is_no_image_file),
        TEST(folder_keeps_to_known_classes),
        TEST(folder_refuses_what_is_none),
        TEST(list_takes_numbers_and_names),
        TEST(list_keeps_to_known_classes),
        TEST(list_finds_its_files),
        TEST(list_refuses_what_is_none),
        TEST(classes_are_found_by_name),
        TEST(classes_are_limited),
        TEST(memory_may_run_out),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
