/* The folder of a run: what may be there before it, what it removes of that and what it leaves,
 * what it counts, and what is left of one that was made in vain. */
#include "base/file.h"
#include "base/file_system.h"
#include "base/memory.h"
#include "tests/tools/work_place.h"
#include "tools/train/options/train_options.h"
#include "tools/train/run/run_folder.h"
#include "tools/train/run/run_lock.h"

#include <sys/stat.h>

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* Last: it needs those above, and defines fail and skip. */
#include <cmocka.h>

#define CONFIG "# effective configuration of bpt-train; and so on\n"

static bpt_train_options options;
static bpt_option_set *set;

static int set_up_group(void **state) {
    (void)state;
    char *words[] = {"bpt-train"};
    bpt_option_request request;
    if (bpt_options_parse(&bpt_train_command, 1, words, &options, &request, &set) != BPT_OK)
        return -1;
    return work_place_open(state);
}

static int tear_down_group(void **state) {
    (void)state;
    bpt_option_set_free(set);
    return work_place_close(state);
}

/* ---- what the system does: ld --wrap ---- */

static bool another_is_first; /* to make the folder */
static bool disk_is_full;

bpt_status __real_bpt_dir_create_counted(const char *path, bool must_be_new, size_t *n_made);
bpt_status __wrap_bpt_dir_create_counted(const char *path, bool must_be_new, size_t *n_made);

bpt_status __wrap_bpt_dir_create_counted(const char *path, bool must_be_new, size_t *n_made) {
    if (another_is_first)
        assert_int_equal(__real_bpt_dir_create_counted(path, true, n_made), BPT_OK);
    another_is_first = false;
    return __real_bpt_dir_create_counted(path, must_be_new, n_made);
}

bpt_status __real_bpt_file_write(const char *path, const void *data, size_t size);
bpt_status __wrap_bpt_file_write(const char *path, const void *data, size_t size);

bpt_status __wrap_bpt_file_write(const char *path, const void *data, size_t size) {
    return disk_is_full ? bpt_fail(BPT_ENOSPC, "full") : __real_bpt_file_write(path, data, size);
}

static struct {
    unsigned slept_us, seen_at_us; /* what rank 0 has made shows then */
    const char *from, *to;         /* by its name */
} sight;

int __wrap_usleep(useconds_t us);

int __wrap_usleep(useconds_t us) {
    sight.slept_us += us;
    if (sight.from && sight.slept_us == sight.seen_at_us)
        assert_int_equal(rename(sight.from, sight.to), 0);
    return 0;
}

/* ---- files ---- */

/* All of these are there, or none of them. */
static void assert_there(bool there, const char *folder, const char *const *names, size_t n) {
    for (size_t i = 0; i < n; i++) {
        char path[256];
        snprintf(path, sizeof path, "%s/%s", folder, names[i]);
        if (bpt_path_exists(path) != there)
            fail_msg("%s is %s", path, there ? "gone" : "there still");
    }
}

#define COUNT(names) (sizeof(names) / sizeof *(names))

/* ---- runs ---- */

static bpt_run_folder *open_run(const char *path, bpt_run_folder_mode mode) {
    bpt_run_folder *run = NULL;
    assert_int_equal(bpt_run_folder_open(path, mode, &run), BPT_OK);
    return run;
}

static bpt_status begin(bpt_run_folder *run, uint32_t n_ranks, bool anew) {
    char text[] = "name: m\n";
    const bpt_bytes model = {text, sizeof text - 1};
    return bpt_run_folder_begin(run, n_ranks, anew, &bpt_train_command, &options, &model);
}

static void assert_refused(const char *path, bpt_run_folder_mode mode, bpt_status status,
                           const char *says, const char *hint) {
    bpt_run_folder *run = NULL;
    assert_int_equal(bpt_run_folder_look(path, mode), status);
    assert_int_equal(bpt_run_folder_open(path, mode, &run), status);
    assert_null(run);
    assert_non_null(strstr(bpt_error_last()->text, says));
    assert_non_null(strstr(bpt_error_last()->hint, hint));
}

static void assert_taken(const char *path, bpt_run_folder_mode mode) {
    assert_int_equal(bpt_run_folder_look(path, mode), BPT_OK);
    bpt_run_folder_close(open_run(path, mode));
}

/* ---- what may be there ---- */

/* A run is known by its configuration; one that was killed before that, by having nothing else. */
static void test_what_is_a_run(void **state) {
    (void)state;
    static const char *const early[] = {"early/run.lock", "early/config.yaml.tmp-12"};
    make_folder("run");
    make_folder("early/checkpoints");
    make_folder("early/exchange");
    put_file("run/config.yaml", CONFIG);
    put_file("run/notes", "mine");
    for (size_t i = 0; i < COUNT(early); i++) put_file(early[i], "");
    static const bpt_run_folder_mode again[] = {BPT_RUN_REPLACE, BPT_RUN_GO_ON};
    for (size_t i = 0; i < 2; i++) {
        assert_taken("run", again[i]);
        assert_taken("early", again[i]);
        put_file("early/run.lock", "");
    }
    assert_refused("run", BPT_RUN_NEW, BPT_EEXIST, "the run folder run exists already",
                   "--resume auto");
    assert_refused("early", BPT_RUN_NEW, BPT_EEXIST, "the run folder early exists already",
                   "--force");
}

static void test_what_is_none(void **state) {
    (void)state;
    static const char *const not_early[] = {"checkpoints/step-1", "exchange/x",
                                            "config.yaml",        "config.yaml.old",
                                            "config.yml.tmp-1",   "run.lock.old"};
    for (size_t i = 0; i < COUNT(not_early); i++) {
        char path[64];
        assert_int_equal(work_place_clear(state), 0);
        make_folder("other/checkpoints");
        make_folder("other/exchange");
        snprintf(path, sizeof path, "other/%s", not_early[i]);
        put_file(path, "# somebody's configuration of bpt-train\n");
        assert_refused("other", BPT_RUN_NEW, BPT_EEXIST, "other exists already",
                       "it is not a run folder");
        assert_refused("other", BPT_RUN_REPLACE, BPT_EUSAGE, "other is not a run folder",
                       "--resume other");
        assert_refused("other", BPT_RUN_GO_ON, BPT_EUSAGE, "left as it is", "name another");
        assert_true(bpt_path_exists(path));
    }
    assert_int_equal(work_place_clear(state), 0);
    make_folder("other");
    put_large_file("other/config.yaml"); /* no run has one as large */
    assert_refused("other", BPT_RUN_GO_ON, BPT_EUSAGE, "other is not a run folder", "");
    put_file("file", "");
    assert_refused("file", BPT_RUN_REPLACE, BPT_EUSAGE, "file is not a run folder", "");
}

/* ---- beginning ---- */

static const char *const kept_by_all[] = {"notes",
                                          "notes.tmp-1",
                                          "chart.svg.old",
                                          "log.rank-0.old.txt",
                                          "log.rank-.txt",
                                          "gpu.rank-0.yaml.tmp-",
                                          "tuned.rank-0.old.yaml",
                                          "xlog.rank-0.txt",
                                          "summary.json.tmp-mine",
                                          "checkpoints/notes",
                                          "checkpoints/step-",
                                          "exchange/shards.json.old",
                                          "exchange/updates.rank-0.old.jsonl"};
static const char *const halves[] = {
    "summary.json.tmp-1",         "model.yaml.tmp-1",
    "config.yaml.tmp-12",         "model.safetensors.tmp-1",
    "gpu.rank-3.yaml.tmp-1",      "tuned.rank-0.yaml.tmp-1",
    "metrics.jsonl.tmp-1",        "chart.svg.tmp-1",
    "exchange/shards.json.tmp-1", "exchange/steps.rank-0.jsonl.tmp-1"};
static const char *const of_training[] = {"metrics.jsonl", "chart.svg", "log.rank-0.txt",
                                          "log.rank-12.txt"};
static const char *const of_exchange[] = {"exchange/shards.json", "exchange/updates.rank-0.jsonl",
                                          "exchange/steps.rank-1.jsonl",
                                          "exchange/border.rank-2.jsonl"};
static const char *const of_ranks[] = {"gpu.rank-0.yaml", "tuned.rank-1.yaml"};
static const char *const of_more_ranks[] = {"gpu.rank-2.yaml", "tuned.rank-2.yaml",
                                            "tuned.rank-10.yaml"};
static const char *const of_the_end[] = {"model.safetensors", "checkpoints/step-00000010/DONE"};
static const char *const torn[] = {"checkpoints/step-00000020.part/x",
                                   "checkpoints/step-00000030.old/x"};

static void put_all(const char *folder, const char *const *names, size_t n) {
    for (size_t i = 0; i < n; i++) {
        char path[128], parent[128];
        snprintf(path, sizeof path, "%s/%s", folder, names[i]);
        strcpy(parent, path);
        *strrchr(parent, '/') = '\0';
        make_folder(parent);
        put_file(path, "x");
    }
}

static void fill_run(const char *folder) {
    put_all(folder, kept_by_all, COUNT(kept_by_all));
    put_all(folder, halves, COUNT(halves));
    put_all(folder, of_training, COUNT(of_training));
    put_all(folder, of_exchange, COUNT(of_exchange));
    put_all(folder, of_ranks, COUNT(of_ranks));
    put_all(folder, of_more_ranks, COUNT(of_more_ranks));
    put_all(folder, of_the_end, COUNT(of_the_end));
    put_all(folder, torn, COUNT(torn));
    const char *const rest[] = {"summary.json", "model.yaml"};
    put_all(folder, rest, COUNT(rest));
    char config[64];
    snprintf(config, sizeof config, "%s/config.yaml", folder);
    put_file(config, CONFIG);
}

static void assert_begun(const char *folder) {
    const char *const gone[] = {"summary.json"};
    char path[64], *text;
    size_t size;
    assert_there(true, folder, kept_by_all, COUNT(kept_by_all));
    assert_there(false, folder, halves, COUNT(halves));
    assert_there(false, folder, of_more_ranks, COUNT(of_more_ranks));
    assert_there(false, folder, gone, 1);
    snprintf(path, sizeof path, "%s/config.yaml", folder);
    assert_int_equal(bpt_file_read(path, 1 << 20, &text, &size), BPT_OK);
    assert_non_null(strstr(text,
                           "# effective configuration of bpt-train; repeat with: bpt-train "
                           "--config THIS --output NEW\n"));
    assert_non_null(strstr(text, "\nbatch-size: "));
    bpt_free(text);
    snprintf(path, sizeof path, "%s/model.yaml", folder);
    assert_int_equal(bpt_file_read(path, 100, &text, &size), BPT_OK);
    assert_string_equal(text, "name: m\n");
    bpt_free(text);
}

/* Who goes on has what the run has learnt and told, and the final weights of before until the end.
 */
static void test_going_on(void **state) {
    (void)state;
    fill_run("run");
    bpt_run_folder *run = open_run("run", BPT_RUN_GO_ON);
    assert_false(bpt_run_folder_replaces(run));
    assert_int_equal(bpt_run_folder_frees(run), 0);
    assert_int_equal(begin(run, 2, false), BPT_OK);
    assert_begun("run");
    assert_there(true, "run", of_training, COUNT(of_training));
    assert_there(true, "run", of_exchange, COUNT(of_exchange));
    assert_there(true, "run", of_ranks, COUNT(of_ranks));
    assert_there(true, "run", of_the_end, COUNT(of_the_end));
    assert_there(false, "run", torn, COUNT(torn));
    bpt_run_folder_close(run);
    assert_begun("run");
    assert_false(bpt_path_exists("run/run.lock"));
}

/* Without a checkpoint it begins anew, and what ranks wrote at this start stays. */
static void test_going_on_from_nothing(void **state) {
    (void)state;
    fill_run("run");
    bpt_run_folder *run = open_run("run", BPT_RUN_GO_ON);
    assert_int_equal(begin(run, 2, true), BPT_OK);
    assert_begun("run");
    assert_there(false, "run", of_training, COUNT(of_training));
    assert_there(false, "run", of_exchange, COUNT(of_exchange));
    assert_there(true, "run", of_ranks, COUNT(of_ranks));
    assert_there(true, "run", of_the_end, COUNT(of_the_end));
    assert_there(true, "run", torn, COUNT(torn));
    bpt_run_folder_close(run);
}

static void check_replaced(const char *folder) {
    bpt_run_folder *run = open_run(folder, BPT_RUN_REPLACE);
    assert_true(bpt_run_folder_replaces(run));
    assert_int_equal(begin(run, 2, false), BPT_OK);
    assert_begun(folder);
    assert_there(false, folder, of_training, COUNT(of_training));
    assert_there(false, folder, of_exchange, COUNT(of_exchange));
    assert_there(false, folder, of_ranks, COUNT(of_ranks));
    assert_there(false, folder, of_the_end, COUNT(of_the_end));
    assert_there(false, folder, torn, COUNT(torn));
    bpt_run_folder_close(run);
}

/* Of what lies in subfolders too, also where these are links; those stay. */
static void test_replacing(void **state) {
    (void)state;
    struct stat link;
    fill_run("run");
    check_replaced("run");
    make_folder("disk/checkpoints");
    make_folder("disk/exchange");
    make_folder("linked");
    assert_int_equal(symlink("../disk/checkpoints", "linked/checkpoints"), 0);
    assert_int_equal(symlink("../disk/exchange", "linked/exchange"), 0);
    fill_run("linked");
    check_replaced("linked");
    assert_int_equal(lstat("linked/checkpoints", &link), 0);
    assert_true(S_ISLNK(link.st_mode));
    assert_true(bpt_path_exists("disk/checkpoints/notes"));
    assert_false(bpt_path_exists("disk/checkpoints/step-00000010"));
}

/* A subfolder of which nothing is left is made anew. */
static void test_subfolders(void **state) {
    (void)state;
    bpt_run_folder *run = open_run("run", BPT_RUN_NEW);
    assert_int_equal(begin(run, 1, true), BPT_OK);
    bpt_run_folder_keep(run);
    bpt_run_folder_close(run);
    assert_true(bpt_path_is_folder("run/checkpoints") && bpt_path_is_folder("run/exchange"));
    put_file("run/metrics.jsonl", "");
    assert_int_equal(rmdir("run/exchange"), 0);
    put_file("run/exchange", "");
    run = open_run("run", BPT_RUN_REPLACE);
    assert_int_equal(begin(run, 1, false), BPT_EIO);
    assert_non_null(strstr(bpt_error_last()->text, "run/exchange is no folder"));
    bpt_run_folder_close(run);
    assert_true(bpt_path_exists("run/metrics.jsonl")); /* it has removed nothing */
}

/* What fails has left what the folder is known by. */
static void test_full_disk(void **state) {
    (void)state;
    fill_run("run");
    bpt_run_folder *run = open_run("run", BPT_RUN_REPLACE);
    disk_is_full = true;
    assert_int_equal(begin(run, 2, false), BPT_ENOSPC);
    disk_is_full = false;
    bpt_run_folder_close(run);
    assert_true(bpt_path_exists("run/model.yaml"));
    assert_taken("run", BPT_RUN_REPLACE);
}

/* A missing one is no error, whatever a run makes in it. */
static void test_removing_nothing(void **state) {
    (void)state;
    bpt_run_folder *run = open_run("run", BPT_RUN_NEW);
    assert_int_equal(bpt_run_folder_remove(run, "exchange"), BPT_OK);
    assert_int_equal(bpt_run_folder_remove(run, "summary.json"), BPT_OK);
    bpt_run_folder_close(run);
}

/* ---- what was made in vain ---- */

/* The folders that this start made go again, and no other. */
static void test_taking_back(void **state) {
    (void)state;
    static const char *const paths[] = {"a/b/c", "a/b/c/", "a//b///c//", "./a/b/c"};
    for (size_t i = 0; i < COUNT(paths); i++) {
        bpt_run_folder *run = open_run(paths[i], BPT_RUN_REPLACE);
        assert_false(bpt_run_folder_replaces(run));
        assert_int_equal(begin(run, 1, true), BPT_OK);
        bpt_run_folder_close(run);
        assert_false(bpt_path_exists("a"));
    }
    make_folder("a");
    bpt_run_folder_close(open_run("a/b/c", BPT_RUN_NEW));
    assert_true(bpt_path_exists("a"));
    assert_false(bpt_path_exists("a/b"));
    make_folder("a/b/c"); /* that was there, with nothing in it */
    bpt_run_folder_close(open_run("a/b/c", BPT_RUN_GO_ON));
    assert_true(bpt_path_exists("a/b/c"));
    char path[128];
    snprintf(path, sizeof path, "%s/x/y", work_place());
    bpt_run_folder_close(open_run(path, BPT_RUN_NEW));
    assert_false(bpt_path_exists("x"));
    bpt_run_folder *run = open_run("x/y", BPT_RUN_NEW); /* and somebody removes it */
    assert_int_equal(bpt_dir_remove("x/y"), BPT_OK);
    bpt_run_folder_close(run);
    assert_false(bpt_path_exists("x"));
}

/* One that another job makes at that moment is as any that is there, and that job's. */
static void test_another_is_first(void **state) {
    (void)state;
    bpt_run_folder *run = NULL;
    make_folder("a");
    another_is_first = true;
    assert_int_equal(bpt_run_folder_open("a/b", BPT_RUN_NEW, &run), BPT_EEXIST);
    assert_null(run);
    assert_non_null(strstr(bpt_error_last()->hint, "--resume auto"));
    assert_true(bpt_path_exists("a/b"));
    another_is_first = true;
    bpt_run_folder_close(open_run("a/c", BPT_RUN_GO_ON));
    assert_true(bpt_path_exists("a/c"));
}

/* What is of value stays, and so does what somebody else has put there meanwhile. */
static void test_keeping(void **state) {
    (void)state;
    bpt_run_folder *run = open_run("a/b", BPT_RUN_NEW);
    assert_int_equal(begin(run, 1, true), BPT_OK);
    bpt_run_folder_keep(run);
    bpt_run_folder_close(run);
    assert_true(bpt_path_exists("a/b/config.yaml"));
    run = open_run("c/d", BPT_RUN_NEW);
    assert_int_equal(begin(run, 1, true), BPT_OK);
    put_file("c/d/notes", "mine");
    put_file("c/notes", "mine");
    (void)bpt_fail(BPT_EDATA, "why it ends");
    bpt_run_folder_close(run);
    assert_string_equal(bpt_error_last()->text, "why it ends");
    assert_true(bpt_path_exists("c/d/notes"));
    assert_false(bpt_path_exists("c/d/config.yaml"));
    assert_false(bpt_path_exists("c/d/model.yaml"));
    assert_int_equal(unlink("c/d/notes"), 0);
    assert_int_equal(rmdir("c/d"), 0);
    bpt_run_folder_close(open_run("c/d/e", BPT_RUN_NEW));
    assert_true(bpt_path_exists("c/notes"));
    assert_false(bpt_path_exists("c/d"));
}

/* ---- what it tells ---- */

static void test_holding(void **state) {
    (void)state;
    make_folder("run/checkpoints/step-1");
    make_folder("linked");
    make_folder("disk/step-2");
    make_folder("running");
    assert_int_equal(symlink("../disk", "linked/checkpoints"), 0);
    assert_true(bpt_run_folder_holds("run", "run"));
    assert_true(bpt_run_folder_holds("run", "running/../run/checkpoints/step-1"));
    assert_true(bpt_run_folder_holds("linked", "disk/step-2"));
    assert_false(bpt_run_folder_holds("run", "disk/step-2"));
    assert_false(bpt_run_folder_holds("run", "running"));
    assert_false(bpt_run_folder_holds("run", "run/checkpoints/step-3"));
    assert_false(bpt_run_folder_holds("nothing", "nothing"));
    assert_false(bpt_run_folder_goes_on("run", NULL));
    assert_true(bpt_run_folder_goes_on("nothing", "auto"));
    assert_true(bpt_run_folder_goes_on("run", "run/checkpoints"));
    assert_false(bpt_run_folder_goes_on("run", "disk/step-2"));
}

static bool finished(const char *path) {
    bool is = true;
    assert_int_equal(bpt_run_folder_finished(path, &is), BPT_OK);
    return is;
}

static void test_finished(void **state) {
    (void)state;
    make_folder("run");
    assert_false(finished("nothing"));
    assert_false(finished("run"));
    put_file("run/summary.json", "{}");
    assert_false(finished("run")); /* somebody's summary of something */
    put_file("run/config.yaml", CONFIG);
    assert_true(finished("run"));
    assert_int_equal(unlink("run/summary.json"), 0);
    assert_false(finished("run"));
}

static void test_gone(void **state) {
    (void)state;
    bpt_run_folder *run = open_run("run", BPT_RUN_NEW);
    assert_int_equal(begin(run, 1, true), BPT_OK);
    assert_int_equal(bpt_run_folder_check(run), BPT_OK);
    assert_string_equal(bpt_run_folder_path(run), "run");
    assert_int_equal(rename("run", "moved"), 0);
    assert_int_equal(bpt_run_folder_check(run), BPT_EIO);
    assert_non_null(strstr(bpt_error_last()->text, "the run folder run is gone"));
    bpt_run_folder_close(run); /* which cannot be cleared any more */
    assert_non_null(strstr(bpt_error_last()->text, "the run folder run is gone"));
}

static void test_gpus(void **state) {
    (void)state;
    unsigned rank = 99;
    make_folder("run");
    put_file("run/gpu.rank-1.old.yaml", "");
    put_file("run/tuned.rank-1.yaml", "");
    assert_false(bpt_run_folder_had_gpu("run", &rank));
    assert_false(bpt_run_folder_had_gpu("nothing", &rank));
    assert_int_equal(rank, 99);
    put_file("run/gpu.rank-12.yaml", "");
    assert_true(bpt_run_folder_had_gpu("run", &rank));
    assert_int_equal(rank, 12);
}

/* ---- other ranks ---- */

static void test_joining(void **state) {
    (void)state;
    bpt_run_folder *other = NULL, *run = open_run("run", BPT_RUN_NEW);
    char mark[BPT_RUN_MARK_SIZE];
    strcpy(mark, bpt_run_folder_mark(run));
    assert_non_null(strstr(mark, "process "));
    assert_int_equal(bpt_run_folder_join("run", mark, &other), BPT_OK);
    assert_string_equal(bpt_run_folder_path(other), "run");
    assert_false(bpt_run_folder_replaces(other));
    bpt_run_folder_close(other);
    assert_true(bpt_path_exists("run/run.lock")); /* which is rank 0's */
    bpt_run_folder_close(run);
    assert_false(bpt_path_exists("run"));
}

static void assert_not_joined(const char *mark, const char *says) {
    bpt_run_folder *other = NULL;
    sight.slept_us = 0;
    assert_int_equal(bpt_run_folder_join("run", mark, &other), BPT_EUSAGE);
    assert_null(other);
    assert_int_equal(sight.slept_us, 5000000);
    assert_string_equal(bpt_error_last()->text, says);
}

/* Some seconds are waited for what rank 0 has made. */
static void test_seen_late(void **state) {
    (void)state;
    bpt_run_folder *other = NULL, *run = open_run("elsewhere", BPT_RUN_NEW);
    const char *const mark = bpt_run_folder_mark(run);
    sight.from = NULL;
    assert_not_joined(mark, "the run folder run is not seen on this host");
    make_folder("run");
    put_file("run/run.lock", "process 1 on another host\n");
    assert_not_joined(mark, "the run folder run on this host is not rank 0's");
    sight.slept_us = 0;
    sight.seen_at_us = 4000000;
    sight.from = "elsewhere/run.lock";
    sight.to = "run/run.lock";
    assert_int_equal(bpt_run_folder_join("run", mark, &other), BPT_OK);
    assert_int_equal(sight.slept_us, 4000000);
    bpt_run_folder_close(other);
    bpt_run_folder_close(run);
}

int main(void) {
#define TEST(name) cmocka_unit_test_setup(name, work_place_clear)
    const struct CMUnitTest tests[] = {
        TEST(test_what_is_a_run), TEST(test_what_is_none),
        TEST(test_going_on),      TEST(test_going_on_from_nothing),
        TEST(test_replacing),     TEST(test_subfolders),
        TEST(test_full_disk),     TEST(test_removing_nothing),
        TEST(test_taking_back),   TEST(test_another_is_first),
        TEST(test_keeping),       TEST(test_holding),
        TEST(test_finished),      TEST(test_gone),
        TEST(test_gpus),          TEST(test_joining),
        TEST(test_seen_late),
    };
    return cmocka_run_group_tests(tests, set_up_group, tear_down_group);
}
