/* What of a run's folder replacing it frees: counted is what is removed, on the same disk. */
#include "base/file.h"
#include "tests/tools/work_place.h"
#include "tools/train/run/run_folder.h"

#include <sys/stat.h>

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

/* Last: it needs those above, and defines fail and skip. */
#include <cmocka.h>

#define CONFIG "# effective configuration of bpt-train; and so on\n"

/* @return in units of a large file; what is small is little of one */
static unsigned large(uint64_t bytes) {
    return (unsigned)((bytes + LARGE_FILE / 4) / LARGE_FILE);
}

/* Counted is what is removed: not what stays, what is somebody's, or what lies on another disk. */
static void test_room(void **state) {
    (void)state;
    make_folder("run/checkpoints/step-1");
    make_folder("run/exchange");
    put_file("run/config.yaml", CONFIG);
    const uint64_t little = bpt_run_folder_bytes("run");
    assert_int_equal(large(little), 0);
    put_large_file("run/notes");
    put_large_file("run/model.yaml"); /* until there is another */
    put_large_file("run/checkpoints/notes");
    assert_int_equal(bpt_run_folder_bytes("run"), little);
    put_large_file("run/model.safetensors");
    put_large_file("run/exchange/updates.rank-0.jsonl");
    make_folder("run/gpu.rank-0.yaml");
    put_large_file("run/gpu.rank-0.yaml/large"); /* removed by its name */
    bpt_run_folder *run = NULL;
    assert_int_equal(bpt_run_folder_open("run", BPT_RUN_REPLACE, &run), BPT_OK);
    assert_int_equal(large(bpt_run_folder_frees(run)), 3);
    put_large_file("run/checkpoints/step-1/model.safetensors");
    assert_int_equal(large(bpt_run_folder_bytes("run")), 4);
    assert_int_equal(large(bpt_run_folder_frees(run)), 3); /* but for checkpoints */
    bpt_run_folder_close(run);
    assert_int_equal(bpt_run_folder_bytes("nothing"), 0);
}

/* /dev/shm is another disk, as a rule. */
static void test_another_disk(void **state) {
    (void)state;
    struct stat here, there;
    char shm[] = "/dev/shm/bpt-run-folder-XXXXXX", path[64];
    if (!mkdtemp(shm)) skip();
    assert_int_equal(stat(work_place(), &here), 0);
    assert_int_equal(stat(shm, &there), 0);
    if (here.st_dev == there.st_dev) {
        (void)rmdir(shm);
        skip();
    }
    make_folder("run/exchange");
    put_file("run/config.yaml", CONFIG);
    assert_int_equal(symlink(shm, "run/checkpoints"), 0);
    snprintf(path, sizeof path, "%s/step-1", shm);
    put_large_file(path);
    assert_true(bpt_run_folder_is_apart("run", "checkpoints"));
    assert_false(bpt_run_folder_is_apart("run", "exchange"));
    assert_false(bpt_run_folder_is_apart("run", "nothing"));
    assert_false(bpt_run_folder_is_apart("nothing", "checkpoints"));
    assert_int_equal(large(bpt_run_folder_bytes("run")), 0);
    assert_int_equal(bpt_dir_remove(shm), BPT_OK);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(test_room, work_place_clear),
        cmocka_unit_test_setup(test_another_disk, work_place_clear),
    };
    return cmocka_run_group_tests(tests, work_place_open, work_place_close);
}
