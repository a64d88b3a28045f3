/* Whole files or none: reading, atomic writing, folders. */
#include "base/file.h"
#include "base/memory.h"
#include "tests/base/support.h"

#include <sys/mount.h>
#include <sys/resource.h>
#include <sys/stat.h>

#include <dirent.h>
#include <errno.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

static void assert_content(const char *path, const char *expected) {
    char *data;
    size_t size;
    assert_int_equal(bpt_file_read(path, 1 << 20, &data, &size), BPT_OK);
    assert_int_equal(size, strlen(expected));
    assert_string_equal(data, expected);
    bpt_free(data);
}

/* @return number of entries of a folder whose names begin with @p prefix */
static int count_entries(const char *folder, const char *prefix) {
    DIR *dir = opendir(folder);
    assert_non_null(dir);
    int n = 0;
    for (const struct dirent *e; (e = readdir(dir));)
        if (strcmp(e->d_name, ".") != 0 && strcmp(e->d_name, "..") != 0)
            n += strncmp(e->d_name, prefix, strlen(prefix)) == 0;
    closedir(dir);
    return n;
}

static void test_errno_is_translated(void **state) {
    (void)state;
    static const struct {
        int error_number;
        bpt_status status;
    } rows[] = {{ENOSPC, BPT_ENOSPC}, {EDQUOT, BPT_ENOSPC}, {ENOENT, BPT_ENOENT},
                {EEXIST, BPT_EEXIST}, {ENOMEM, BPT_ENOMEM}, {EACCES, BPT_EIO}};
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        assert_int_equal(bpt_fail_errno(rows[i].error_number, "open", "x"), rows[i].status);
    assert_string_equal(bpt_error_last()->text, "cannot open x: Permission denied");
    assert_int_equal(bpt_fail_errno(EMFILE, "open", "x"), BPT_EIO);
    assert_non_null(strstr(bpt_error_last()->hint, "ulimit -n"));
    bool there = true;
    assert_int_equal(bpt_path_look("nothing/there", &there), BPT_OK);
    assert_false(there);
    assert_non_null(strstr(bpt_error_last()->hint, "ulimit -n")); /* as it was */
}

static void test_only_regular_files_are_opened(void **state) {
    (void)state;
    char path[SUPPORT_PATH_SIZE];
    int fd = -1;
    uint64_t bytes;
    assert_int_equal(mkfifo(support_path(path, "pipe"), 0600), 0);
    assert_int_equal(bpt_file_open(path, &fd, &bytes), BPT_EDATA); /* and does not wait */
    assert_non_null(strstr(bpt_error_last()->text, path));
    assert_int_equal(bpt_file_open(support_scratch(), &fd, &bytes), BPT_EDATA);
    assert_int_equal(bpt_file_open("/dev/null", &fd, &bytes), BPT_EDATA);
    assert_int_equal(bpt_file_open(support_path(path, "none"), &fd, &bytes), BPT_ENOENT);
    assert_int_equal(fd, -1);
    support_write(path, "five", "five!", 5);
    assert_int_equal(bpt_file_open(path, &fd, &bytes), BPT_OK);
    assert_int_equal(bytes, 5);
    close(fd);
}

/* Exit status 3 speaks of data; what cannot be written is no such thing. */
static void test_what_cannot_be_written_is_no_missing_data(void **state) {
    (void)state;
    assert_int_equal(bpt_fail_write(ENOENT, "write", "x"), BPT_EIO);
    assert_string_equal(bpt_error_last()->text, "cannot write x: No such file or directory");
    assert_string_equal(bpt_error_last()->hint, "");
    assert_int_equal(bpt_fail_write(ENOTDIR, "write", "x"), BPT_EIO);
    assert_int_equal(bpt_fail_write(ENOSPC, "write", "x"), BPT_ENOSPC);
    assert_int_equal(bpt_fail_write(EFBIG, "write", "x"), BPT_EIO);
    assert_non_null(strstr(bpt_error_last()->hint, "ulimit -f"));
}

static void test_read_gives_every_byte(void **state) {
    (void)state;
    char path[SUPPORT_PATH_SIZE];
    support_write(path, "bytes", "a\0b\n", 4);
    char *data = NULL;
    size_t size = 0;
    assert_int_equal(bpt_file_read(path, 4, &data, &size), BPT_OK);
    assert_int_equal(size, 4);
    assert_memory_equal(data, "a\0b\n", 5); /* and one 0 */
    bpt_free(data);

    support_write(path, "empty", "", 0);
    assert_int_equal(bpt_file_read(path, 0, &data, &size), BPT_OK);
    assert_int_equal(size, 0);
    assert_int_equal(data[0], 0);
    bpt_free(data);
}

static void test_read_refuses_with_path_and_reason(void **state) {
    (void)state;
    char path[SUPPORT_PATH_SIZE];
    char *data = NULL;
    size_t size = 42;
    support_write(path, "four", "1234", 4);
    assert_int_equal(bpt_file_read(path, 3, &data, &size), BPT_EDATA);
    assert_non_null(strstr(bpt_error_last()->text, path));
    assert_int_equal(bpt_file_read(support_path(path, "none"), 99, &data, &size), BPT_ENOENT);
    assert_non_null(strstr(bpt_error_last()->text, path));
    assert_int_equal(bpt_file_read(support_path(path, "four/x"), 99, &data, &size), BPT_ENOENT);
    assert_int_equal(bpt_file_read(support_scratch(), 99, &data, &size), BPT_EDATA);
    assert_null(data);
    assert_int_equal(size, 42);
}

static void test_write_replaces_a_file(void **state) {
    (void)state;
    char path[SUPPORT_PATH_SIZE];
    support_path(path, "written");
    assert_int_equal(bpt_file_write(path, "old content", 11), BPT_OK);
    assert_content(path, "old content");
    assert_int_equal(bpt_file_write(path, "new", 3), BPT_OK);
    assert_content(path, "new");
    assert_int_equal(bpt_file_write(path, "", 0), BPT_OK);
    assert_content(path, "");
    assert_int_equal(count_entries(support_scratch(), "written"), 1);
}

static void test_write_joins_parts(void **state) {
    (void)state;
    char path[SUPPORT_PATH_SIZE];
    const bpt_bytes parts[] = {{"one ", 4}, {NULL, 0}, {"two", 3}};
    assert_int_equal(bpt_file_write_parts(support_path(path, "joined"), parts, 3), BPT_OK);
    assert_content(path, "one two");
    assert_int_equal(bpt_file_write_parts(path, NULL, 0), BPT_OK);
    assert_content(path, "");
}

static void test_write_without_a_folder_in_the_path(void **state) {
    (void)state;
    char *before = getcwd(NULL, 0);
    assert_non_null(before);
    assert_int_equal(chdir(support_scratch()), 0);
    assert_int_equal(bpt_file_write("plain", "x", 1), BPT_OK);
    assert_content("plain", "x");
    assert_int_equal(chdir(before), 0);
    free(before);
}

static void test_write_into_nothing_is_refused(void **state) {
    (void)state;
    char path[SUPPORT_PATH_SIZE];
    assert_int_equal(bpt_file_write(support_path(path, "no/folder"), "x", 1), BPT_EIO);
    assert_int_equal(bpt_dir_create(support_path(path, "target"), true), BPT_OK);
    assert_int_not_equal(bpt_file_write(path, "x", 1), BPT_OK); /* a folder stands there */
    assert_int_equal(count_entries(support_scratch(), "target"), 1);
}

static void test_try_leaves_all_as_it_was(void **state) {
    (void)state;
    char path[SUPPORT_PATH_SIZE], long_name[252] = "";
    memset(long_name, 'x', sizeof long_name - 1); /* with the end of the temporary one too long */
    support_write(path, "tried", "old", 3);
    assert_int_equal(bpt_file_try(path), BPT_OK);
    assert_content(path, "old");
    assert_int_equal(bpt_file_try(support_path(path, "untried")), BPT_OK);
    assert_int_equal(bpt_file_try(support_path(path, "no/folder")), BPT_EIO);
    assert_int_equal(bpt_file_try(support_path(path, long_name)), BPT_EIO);
    assert_int_equal(count_entries(support_scratch(), "tried"), 1);
    assert_int_equal(count_entries(support_scratch(), "untried"), 0);
    assert_int_equal(count_entries(support_scratch(), "xxx"), 0);
}

static bpt_status write_once(void *arg) {
    const char *path = arg;
    const bpt_status status = bpt_file_write(path, "new", 3);
    if (status != BPT_OK) assert_content(path, "old");
    return status;
}

static void test_write_that_runs_out_of_memory_keeps_the_old_file(void **state) {
    (void)state;
    char path[SUPPORT_PATH_SIZE];
    support_write(path, "kept", "old", 3);
    support_fail_each_allocation(write_once, path);
    assert_content(path, "new");
    assert_int_equal(count_entries(support_scratch(), "kept"), 1);
}

/* A limit on the size of files stands for a disk that fails in the middle of a file. */
static void test_write_that_fails_keeps_the_old_file(void **state) {
    (void)state;
    char path[SUPPORT_PATH_SIZE];
    support_write(path, "limited", "old", 3);
    struct rlimit before;
    assert_int_equal(getrlimit(RLIMIT_FSIZE, &before), 0);
    static const char large[65536];
    signal(SIGXFSZ, SIG_IGN);
    const struct rlimit low = {.rlim_cur = 4096, .rlim_max = before.rlim_max};
    assert_int_equal(setrlimit(RLIMIT_FSIZE, &low), 0);
    const bpt_status status = bpt_file_write(path, large, sizeof large);
    assert_int_equal(setrlimit(RLIMIT_FSIZE, &before), 0);
    signal(SIGXFSZ, SIG_DFL);
    assert_int_equal(status, BPT_EIO);
    assert_content(path, "old");
    assert_int_equal(count_entries(support_scratch(), "limited"), 1);
}

/* Needs the right to mount; elsewhere the case above is all there is. */
static void test_full_disk_keeps_the_old_file(void **state) {
    (void)state;
    char folder[SUPPORT_PATH_SIZE], path[SUPPORT_PATH_SIZE];
    assert_int_equal(bpt_dir_create(support_path(folder, "disk"), true), BPT_OK);
    if (mount("bpt-test", folder, "tmpfs", 0, "size=64k") != 0) skip();
    support_write(path, "disk/file", "old", 3);
    static const char large[256 * 1024];
    const bpt_status status = bpt_file_write(path, large, sizeof large);
    const int entries = count_entries(folder, "");
    char *data = NULL;
    size_t size = 0;
    const bpt_status read_status = bpt_file_read(path, 99, &data, &size);
    const bpt_status small_status = bpt_file_write(path, "new", 3);
    umount(folder);
    assert_int_equal(status, BPT_ENOSPC);
    assert_int_equal(entries, 1);
    assert_int_equal(read_status, BPT_OK);
    assert_string_equal(data, "old");
    assert_int_equal(small_status, BPT_OK);
    bpt_free(data);
}

static void append(const char *path, const char *text) {
    FILE *file = NULL;
    assert_int_equal(bpt_file_append(path, &file), BPT_OK);
    assert_true(fputs(text, file) >= 0);
    assert_int_equal(fclose(file), 0);
}

static void test_lines_are_appended_behind_whole_ones(void **state) {
    (void)state;
    enum { LONG = 3 * 4096 };
    char path[SUPPORT_PATH_SIZE], text[LONG + 16];
    support_path(path, "lines");
    append(path, "one\n");
    append(path, "two\nthr");
    append(path, "four\n");
    assert_content(path, "one\ntwo\nfour\n");
    /* However long what is torn is, and if it is all. */
    memset(text, 'x', LONG);
    for (size_t n = LONG - 4096 - 2; n <= LONG - 4096 + 2; n++) {
        text[n] = '\0';
        support_write(path, "lines", text, n);
        append(path, "a\n");
        append(path, text);
        append(path, "b\n");
        assert_content(path, "a\nb\n");
        text[n] = 'x';
    }
    /* Bytes that no text has end no line. */
    support_write(path, "lines", "a\n\0\0", 4);
    append(path, "b\n");
    assert_content(path, "a\nb\n");
}

static void test_what_cannot_be_cut_is_appended_to(void **state) {
    (void)state;
    char path[SUPPORT_PATH_SIZE];
    FILE *file = NULL;
    append("/dev/null", "to nobody\n");
    append("/dev/zero", "which has no end\n");
    assert_int_equal(bpt_file_append(support_path(path, "no/folder/lines"), &file), BPT_EIO);
    assert_non_null(strstr(bpt_error_last()->text, path));
    assert_null(file);
}

static void test_dir_create_makes_parents(void **state) {
    (void)state;
    char path[SUPPORT_PATH_SIZE];
    assert_int_equal(bpt_dir_create(support_path(path, "a//b/c"), true), BPT_OK);
    assert_true(bpt_path_exists(path));
    assert_int_equal(bpt_dir_create(path, false), BPT_OK);
    assert_int_equal(bpt_dir_create(path, true), BPT_EEXIST);
    assert_non_null(strstr(bpt_error_last()->text, path));
    assert_int_equal(bpt_dir_sync(path), BPT_OK);
    assert_int_equal(bpt_dir_sync(support_path(path, "none")), BPT_EIO);
}

/* Each from here: what it is told to make, and what it makes of that. */
static void test_dir_create_counts_what_it_makes(void **state) {
    (void)state;
    static const struct {
        const char *path;
        size_t n;
    } cases[] = {{"counted", 1},         {"counted", 0},       {"counted/a//b/c///", 3},
                 {"counted/a/b/d/e", 2}, {"counted/a/b/c", 0}, {"counted/x/../y", 1}};
    char path[SUPPORT_PATH_SIZE];
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        size_t n = 9;
        const char *made = support_path(path, cases[i].path);
        assert_int_equal(bpt_dir_create_counted(made, false, &n), BPT_OK);
        assert_int_equal(n, cases[i].n);
    }
}

static void test_dir_take_back_stops_where_something_is(void **state) {
    (void)state;
    char path[SUPPORT_PATH_SIZE];
    size_t n;
    assert_int_equal(bpt_dir_create(support_path(path, "here/before"), true), BPT_OK);
    assert_int_equal(bpt_dir_create_counted(support_path(path, "here/before/a//b/c/"), true, &n),
                     BPT_OK);
    bpt_dir_take_back(path, n);
    assert_false(bpt_path_exists(support_path(path, "here/before/a")));
    assert_true(bpt_path_exists(support_path(path, "here/before"))); /* empty, and not its own */

    assert_int_equal(bpt_dir_create_counted(support_path(path, "here/a/b/c"), true, &n), BPT_OK);
    support_write(path, "here/a/file", "x", 1);
    assert_int_equal(bpt_dir_remove(support_path(path, "here/a/b/c")), BPT_OK); /* itself first */
    (void)bpt_fail(BPT_EDATA, "why");
    bpt_dir_take_back(path, n);
    assert_string_equal(bpt_error_last()->text, "why");
    assert_false(bpt_path_exists(support_path(path, "here/a/b")));
    assert_true(bpt_path_exists(support_path(path, "here/a/file")));

    assert_int_equal(bpt_dir_create(support_path(path, "here/stays"), true), BPT_OK);
    bpt_dir_take_back(path, 0);
    assert_true(bpt_path_exists(path));
}

static void test_dir_create_leaves_no_parents_where_it_fails(void **state) {
    (void)state;
    char path[SUPPORT_PATH_SIZE], name[300] = "", relative[400];
    size_t n = 9;
    memset(name, 'n', sizeof name - 1);
    assert_int_equal(bpt_dir_create(support_path(path, "vain"), true), BPT_OK);
    static const char *const ends[] = {"", "/below"};
    for (size_t i = 0; i < 2; i++) {
        snprintf(relative, sizeof relative, "vain/a/b/%s%s", name, ends[i]);
        assert_int_equal(bpt_dir_create_counted(support_path(path, relative), true, &n), BPT_EIO);
        assert_int_equal(n, 0);
        assert_non_null(strstr(bpt_error_last()->text, "too long"));
        assert_false(bpt_path_exists(support_path(path, "vain/a")));
        assert_true(bpt_path_exists(support_path(path, "vain")));
    }
}

static void test_dir_create_takes_a_slash_at_the_end(void **state) {
    (void)state;
    char path[SUPPORT_PATH_SIZE];
    assert_int_equal(bpt_dir_create(support_path(path, "slash/run//"), true), BPT_OK);
    assert_int_equal(bpt_dir_create(path, true), BPT_EEXIST);
    assert_int_equal(bpt_dir_create(path, false), BPT_OK);
    assert_int_equal(bpt_dir_create("/", false), BPT_OK);
}

static void test_dir_create_does_not_take_a_file_for_a_folder(void **state) {
    (void)state;
    char path[SUPPORT_PATH_SIZE];
    support_write(path, "a-file", "x", 1);
    assert_int_equal(bpt_dir_create(path, false), BPT_EEXIST);
    assert_int_equal(bpt_dir_create(support_path(path, "a-file/below"), false), BPT_EIO);
    assert_content(support_path(path, "a-file"), "x");
}

/* Neither where all goes well nor where it does not. */
static void test_nothing_stays_open(void **state) {
    (void)state;
    char path[SUPPORT_PATH_SIZE], *data;
    size_t size;
    const int before = count_entries("/proc/self/fd", "");
    assert_int_equal(bpt_dir_create(support_path(path, "open/a/b"), true), BPT_OK);
    assert_int_equal(bpt_dir_sync(path), BPT_OK);
    assert_int_not_equal(bpt_file_write(path, "x", 1), BPT_OK); /* a folder is there */
    assert_int_equal(bpt_file_try(support_path(path, "open/file")), BPT_OK);
    assert_int_equal(bpt_file_write(path, "xyz", 3), BPT_OK);
    assert_int_equal(bpt_file_read(path, 2, &data, &size), BPT_EDATA);
    assert_content(path, "xyz");
    assert_int_equal(bpt_file_write(support_path(path, "none/file"), "x", 1), BPT_EIO);
    assert_int_equal(bpt_file_read(support_path(path, "open"), 9, &data, &size), BPT_EDATA);
    assert_int_equal(count_entries("/proc/self/fd", ""), before);
}

/* The kernel lets nobody make or remove anything there. */
static void test_folders_that_cannot_be_changed_are_named(void **state) {
    (void)state;
    assert_int_equal(bpt_dir_create("/proc/bpt/run", false), BPT_EIO);
    assert_non_null(strstr(bpt_error_last()->text, "/proc/bpt/run"));
    assert_int_equal(bpt_dir_remove("/proc/self/task"), BPT_EIO);
    assert_non_null(strstr(bpt_error_last()->text, "/proc/self/task"));
}

static void test_dir_remove_takes_all_but_what_links_point_to(void **state) {
    (void)state;
    char path[SUPPORT_PATH_SIZE], outside[SUPPORT_PATH_SIZE], kept[SUPPORT_PATH_SIZE];
    assert_int_equal(bpt_dir_create(support_path(outside, "outside"), true), BPT_OK);
    support_write(kept, "outside/kept", "x", 1);
    assert_int_equal(bpt_dir_create(support_path(path, "tree/sub/deep"), true), BPT_OK);
    support_write(path, "tree/sub/deep/file", "x", 1);
    assert_int_equal(symlink(outside, support_path(path, "tree/sub/folder-link")), 0);
    assert_int_equal(symlink(kept, support_path(path, "tree/file-link")), 0);
    assert_int_equal(symlink("nowhere", support_path(path, "tree/dangling")), 0);
    assert_int_equal(bpt_dir_remove(support_path(path, "tree")), BPT_OK);
    assert_false(bpt_path_exists(path));
    assert_content(kept, "x");
    assert_int_equal(bpt_dir_remove(path), BPT_OK); /* missing is no error */

    assert_int_equal(symlink(outside, support_path(path, "link")), 0);
    assert_int_equal(bpt_dir_remove(path), BPT_OK);
    assert_false(bpt_path_exists(path));
    assert_content(kept, "x");
}

static void test_dir_bytes_counts_what_is_on_the_disk(void **state) {
    (void)state;
    enum { LARGE = 1 << 20 };
    static const char zeros[LARGE];
    char path[SUPPORT_PATH_SIZE], inside[SUPPORT_PATH_SIZE], inside_two[SUPPORT_PATH_SIZE];
    assert_int_equal(bpt_dir_bytes(support_path(path, "not/there")), 0);
    support_write(path, "large", zeros, LARGE);
    const uint64_t of_file = bpt_dir_bytes(path);
    assert_true(of_file >= LARGE && of_file < 2 * LARGE);
    assert_int_equal(bpt_dir_create(support_path(path, "counted/sub"), true), BPT_OK);
    support_write(inside, "counted/one", zeros, LARGE);
    support_write(inside_two, "counted/sub/two", zeros, LARGE);
    assert_int_equal(symlink("../large", support_path(inside, "counted/link")), 0);
    const uint64_t of_folder = bpt_dir_bytes(support_path(path, "counted"));
    assert_true(of_folder >= 2 * LARGE && of_folder < 3 * LARGE);
    assert_int_equal(link(inside_two, support_path(inside, "another-name")), 0);
    assert_int_equal(bpt_dir_bytes(path), of_folder - of_file); /* it stays under that name */
}

static void test_path_exists_sees_dangling_links(void **state) {
    (void)state;
    char path[SUPPORT_PATH_SIZE];
    assert_true(bpt_path_exists(support_scratch()));
    assert_false(bpt_path_exists(support_path(path, "nothing")));
    assert_int_equal(symlink("nothing", support_path(path, "dangling")), 0);
    assert_true(bpt_path_exists(path));
}

static void test_what_a_killed_writer_leaves_is_a_part(void **state) {
    (void)state;
    assert_true(bpt_file_is_part_end(".tmp-4711"));
    const char *others[] = {"", ".tmp-", ".tmp-mine", ".tmp-1.old", ".tmp", "x.tmp-1"};
    for (size_t i = 0; i < sizeof others / sizeof *others; i++)
        assert_false(bpt_file_is_part_end(others[i]));
}

static void test_links_lead_to_folders(void **state) {
    (void)state;
    char path[SUPPORT_PATH_SIZE];
    support_path(path, "to-folder");
    assert_int_equal(symlink(".", path), 0);
    assert_true(bpt_path_is_folder(path));
    assert_int_equal(unlink(path), 0);
    assert_false(bpt_path_is_folder(path));
    assert_int_equal(bpt_file_write(path, "x", 1), BPT_OK);
    assert_false(bpt_path_is_folder(path));
    assert_int_equal(unlink(path), 0);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_errno_is_translated),
        cmocka_unit_test(test_only_regular_files_are_opened),
        cmocka_unit_test(test_what_cannot_be_written_is_no_missing_data),
        cmocka_unit_test(test_read_gives_every_byte),
        cmocka_unit_test(test_read_refuses_with_path_and_reason),
        cmocka_unit_test(test_write_replaces_a_file),
        cmocka_unit_test(test_write_joins_parts),
        cmocka_unit_test(test_write_without_a_folder_in_the_path),
        cmocka_unit_test(test_write_into_nothing_is_refused),
        cmocka_unit_test(test_try_leaves_all_as_it_was),
        cmocka_unit_test(test_write_that_runs_out_of_memory_keeps_the_old_file),
        cmocka_unit_test(test_write_that_fails_keeps_the_old_file),
        cmocka_unit_test(test_full_disk_keeps_the_old_file),
        cmocka_unit_test(test_lines_are_appended_behind_whole_ones),
        cmocka_unit_test(test_what_cannot_be_cut_is_appended_to),
        cmocka_unit_test(test_dir_create_makes_parents),
        cmocka_unit_test(test_dir_create_counts_what_it_makes),
        cmocka_unit_test(test_dir_take_back_stops_where_something_is),
        cmocka_unit_test(test_dir_create_leaves_no_parents_where_it_fails),
        cmocka_unit_test(test_dir_create_takes_a_slash_at_the_end),
        cmocka_unit_test(test_dir_create_does_not_take_a_file_for_a_folder),
        cmocka_unit_test(test_nothing_stays_open),
        cmocka_unit_test(test_folders_that_cannot_be_changed_are_named),
        cmocka_unit_test(test_dir_remove_takes_all_but_what_links_point_to),
        cmocka_unit_test(test_dir_bytes_counts_what_is_on_the_disk),
        cmocka_unit_test(test_path_exists_sees_dangling_links),
        cmocka_unit_test(test_what_a_killed_writer_leaves_is_a_part),
        cmocka_unit_test(test_links_lead_to_folders),
    };
    return cmocka_run_group_tests(tests, support_make_scratch, support_remove_scratch);
}
