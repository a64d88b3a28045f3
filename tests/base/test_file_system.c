/* What is told of a file system, by what the kernel says of it. */
#include "base/file_system.h"

#include <sys/statfs.h>

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

static struct statfs answer;
static int result;

int __wrap_statfs(const char *path, struct statfs *fs);

int __wrap_statfs(const char *path, struct statfs *fs) {
    assert_string_equal(path, "/tmp");
    *fs = answer;
    return result;
}

static bpt_file_system at(uint32_t type) {
    answer = (struct statfs){.f_blocks = 9, .f_bavail = 7, .f_bsize = 4096};
    answer.f_type = (__typeof__(answer.f_type))type;
    return bpt_file_system_at("/tmp/is/not/there");
}

static void test_network(void **state) {
    (void)state;
    static const struct {
        uint32_t type;
        const char *kind;
    } kinds[] = {{0x6969, "nfs"},        {0x0BD00BD0, "lustre"}, {0x47504653, "gpfs"},
                 {0x19830326, "beegfs"}, {0x00C36400, "ceph"},   {0xFF534D42, "cifs"},
                 {0xFE534D42, "smb2"},   {0x5346414F, "afs"},    {0x01021997, "9p"},
                 {0x65735546, "fuse"}};
    for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++) {
        const bpt_file_system fs = at(kinds[i].type);
        assert_string_equal(fs.kind, kinds[i].kind);
        assert_true(fs.network);
        assert_int_equal(fs.free_bytes, 7 * 4096);
    }
}

static void test_local(void **state) {
    (void)state;
    assert_string_equal(at(0xEF53).kind, "ext4");
    assert_false(at(0xEF53).network);
    assert_string_equal(at(0x12345).kind, "0x12345"); /* nobody knows: it counts as local */
    assert_false(at(0x12345).network);
}

static void test_unknown(void **state) {
    (void)state;
    result = -1;
    assert_string_equal(at(0x6969).kind, "");
    assert_false(at(0x6969).network);
    result = 0;
}

/* As file systems of user space say that have not been taught to. */
static void test_room_that_is_not_told(void **state) {
    (void)state;
    (void)at(0x65735546);
    answer.f_blocks = answer.f_bavail = 0;
    assert_int_equal(bpt_file_system_at("/tmp/is/not/there").free_bytes, UINT64_MAX);
    answer.f_blocks = 9;
    assert_int_equal(bpt_file_system_at("/tmp/is/not/there").free_bytes, 0);
}

static void test_nearest(void **state) {
    (void)state;
    char found[64];
    bpt_path_nearest("/tmp/is/not//there/", found, sizeof found);
    assert_string_equal(found, "/tmp");
    bpt_path_nearest("nor/this", found, sizeof found);
    assert_string_equal(found, ".");
    bpt_path_nearest("/", found, sizeof found);
    assert_string_equal(found, "/");
}

static void test_lies_in(void **state) {
    (void)state;
    char folder[] = "/tmp/bpt-test-XXXXXX", path[64], link[64], here[4096];
    assert_non_null(mkdtemp(folder));
    assert_non_null(getcwd(here, sizeof here));
    assert_int_equal(chdir(folder), 0);
    static const struct {
        const char *path, *folder;
        bool in;
    } cases[] = {
        {"run", "run", true},        {"run/x", "run/", true},  {"./run//x/", "run/./", true},
        {"running", "run", false},   {"run", "run/x", false},  {"other/run", "run", false},
        {".run/x", ".run", true},    {".run/x", "run", false}, {"link/run/x", "run", true},
        {"run/x", "link/run", true}, {"/run", "run", false},   {"dangling/x", "dangling", true},
        {"../x", ".", false},        {"run", ".", true},       {"x", "/", true},
    };
    assert_int_equal(symlink(folder, "link"), 0);
    assert_int_equal(symlink("nowhere", "dangling"), 0);
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        if (bpt_path_lies_in(cases[i].path, cases[i].folder) != cases[i].in)
            fail_msg("%s in %s", cases[i].path, cases[i].folder);
    snprintf(path, sizeof path, "%s/run/x", folder);
    assert_true(bpt_path_lies_in(path, "run"));
    assert_true(bpt_path_lies_in("run", folder));
    assert_int_equal(chdir(here), 0);
    snprintf(link, sizeof link, "%s/link", folder);
    assert_int_equal(unlink(link), 0);
    snprintf(link, sizeof link, "%s/dangling", folder);
    assert_int_equal(unlink(link), 0);
    assert_int_equal(rmdir(folder), 0);
}

static void test_only_folders_are_written_to(void **state) {
    (void)state;
    assert_int_equal(bpt_path_check_writable("/tmp/is/not/there"), BPT_OK);
    assert_int_equal(bpt_path_check_writable("/bin/sh"), BPT_EIO); /* root may write and run it */
    assert_string_equal(bpt_error_last()->text, "cannot write to /bin/sh: Not a directory");
    assert_int_equal(bpt_path_check_writable("/bin/sh/there"), BPT_EIO);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_network),
                                       cmocka_unit_test(test_local),
                                       cmocka_unit_test(test_unknown),
                                       cmocka_unit_test(test_room_that_is_not_told),
                                       cmocka_unit_test(test_nearest),
                                       cmocka_unit_test(test_lies_in),
                                       cmocka_unit_test(test_only_folders_are_written_to)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
