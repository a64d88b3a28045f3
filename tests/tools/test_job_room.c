/* What a job makes of the room on its disks: of its weights and checkpoints, there where each of
 * them is written. Disks and what lies on them are made up. */
#include "base/file_system.h"
#include "base/log.h"
#include "base/memory.h"
#include "base/text.h"
#include "tests/tools/made_job.h"
#include "tools/train/job/checkpoint.h"
#include "tools/train/job/job_parts.h"
#include "tools/train/run/checkpoint_files.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

/* Last: it needs those above, and defines fail and skip. */
#include <cmocka.h>

/* ---- disks: ld --wrap ---- */

enum { MOST = 4, FREES = 5000 /* bytes of weights that --force removes */ };

static struct {
    bool apart;                    /* checkpoints lie on another disk */
    uint64_t free_bytes[2];        /* of the folder's disk; of that other one */
    bool replaces;                 /* --force */
    uint64_t there[MOST], n_there; /* bytes of whole checkpoints, newest first */
    uint64_t goes;                 /* bytes of the others */
    uint64_t step;                 /* that was asked of */
    bool unseen;                   /* the folder of checkpoints */
    int32_t outcomes[2];           /* of a checkpoint, by rank */
    char said[400];
} world;

bpt_file_system __wrap_bpt_file_system_at(const char *path);
const char *__wrap_bpt_run_folder_path(const bpt_run_folder *run);
bpt_status __wrap_bpt_run_folder_entry(const bpt_run_folder *run, const char *name, char **out);
bool __wrap_bpt_run_folder_is_apart(const char *run, const char *name);
uint64_t __wrap_bpt_run_folder_frees(const bpt_run_folder *run);
bool __wrap_bpt_run_folder_replaces(const bpt_run_folder *run);
bpt_status __wrap_bpt_checkpoint_bytes(const char *folder, uint64_t step, uint64_t **bytes,
                                       size_t *n, uint64_t *goes);
bpt_status __wrap_bpt_comm_table(bpt_comm *comm, const char *what, const void *mine, size_t bytes,
                                 void **all);
void __wrap_bpt_log(bpt_log_level level, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

bpt_file_system __wrap_bpt_file_system_at(const char *path) {
    const bool other = world.apart && strcmp(path, "run/checkpoints") == 0;
    return (bpt_file_system){.kind = "ext4", .free_bytes = world.free_bytes[other]};
}

const char *__wrap_bpt_run_folder_path(const bpt_run_folder *run) {
    (void)run;
    return "run";
}

bpt_status __wrap_bpt_run_folder_entry(const bpt_run_folder *run, const char *name, char **out) {
    (void)run;
    return bpt_strf(out, "run/%s", name);
}

bool __wrap_bpt_run_folder_is_apart(const char *run, const char *name) {
    assert_string_equal(run, "run");
    assert_string_equal(name, "checkpoints");
    return world.apart;
}

uint64_t __wrap_bpt_run_folder_frees(const bpt_run_folder *run) {
    (void)run;
    return FREES;
}

bool __wrap_bpt_run_folder_replaces(const bpt_run_folder *run) {
    (void)run;
    return world.replaces;
}

bpt_status __wrap_bpt_checkpoint_bytes(const char *folder, uint64_t step, uint64_t **bytes,
                                       size_t *n, uint64_t *goes) {
    assert_string_equal(folder, "run/checkpoints");
    world.step = step;
    if (world.unseen) return bpt_fail(BPT_EIO, "cannot see run/checkpoints");
    BPT_TRY(BPT_NEW("bytes", MOST, bytes));
    memcpy(*bytes, world.there, sizeof world.there);
    *n = world.n_there;
    *goes = world.goes;
    return BPT_OK;
}

bpt_status __wrap_bpt_comm_table(bpt_comm *comm, const char *what, const void *mine, size_t bytes,
                                 void **all) {
    int32_t *outcomes;
    (void)comm, (void)what, (void)mine;
    assert_int_equal(bytes, sizeof *outcomes);
    assert_int_equal(BPT_NEW("outcomes", 2, &outcomes), BPT_OK);
    memcpy(outcomes, world.outcomes, sizeof world.outcomes);
    *all = outcomes;
    return BPT_OK;
}

void __wrap_bpt_log(bpt_log_level level, const char *format, ...) {
    va_list values;
    assert_int_equal(level, BPT_LOG_WARN);
    va_start(values, format);
    (void)vsnprintf(world.said, sizeof world.said, format, values);
    va_end(values);
}

/* ---- jobs ---- */

static bpt_train_options options;
static uint64_t weights; /* bytes */

/* Two ranks train, each with a vector of momentum; a checkpoint is due at 400 of 1000 samples, and
 * at 800: three vectors each. */
static bpt_job begin(void) {
    memset(&world, 0, sizeof world);
    options = made.options;
    options.checkpoint_keep = 3;
    bpt_job job = made_job_of(&options, BPT_UPDATE_ALLREDUCE, 0, 2, 0);
    weights = made.model->segments.n_elements * sizeof(float);
    job.total_samples = 1000;
    job.checkpoint_every = 400;
    job.count.progress = 320;
    return job;
}

/* @param least what is to be free on a disk beside so much that goes: the job begins with that, and
 * not with less */
static void assert_least(const bpt_job *job, int disk, uint64_t least) {
    world.free_bytes[disk] = least;
    assert_int_equal(bpt__job_check_room(job), BPT_OK);
    world.free_bytes[disk] = least - 1;
    assert_int_equal(bpt__job_check_room(job), BPT_ENOSPC);
}

static void assert_says(const char *text) {
    if (!strstr(world.said, text)) fail_msg("\"%s\" does not say \"%s\"", world.said, text);
}

/* ---- how much ---- */

static void test_vectors(void **state) {
    (void)state;
    bpt_job job = begin();
    assert_int_equal(bpt_job_need(&job, false).least, 4 * weights + BPT_RUN_NEED_OTHERS);
    assert_int_equal(bpt_job_need(&job, true).least, weights + BPT_RUN_NEED_OTHERS);
    job.terms.momentum = 0.5; /* a vector of all */
    assert_int_equal(bpt_job_need(&job, false).least, 5 * weights + BPT_RUN_NEED_OTHERS);
    job = begin();
    job.n_ranks++; /* a server has no optimiser */
    job.n_servers++;
    assert_int_equal(bpt_job_need(&job, false).least, 4 * weights + BPT_RUN_NEED_OTHERS);
    options.momentum = 0;
    assert_int_equal(bpt_job_need(&job, false).least, 2 * weights + BPT_RUN_NEED_OTHERS);
    job.checkpoint_every = 0;
    assert_int_equal(bpt_job_need(&job, false).least, weights + BPT_RUN_NEED_OTHERS);
}

/* Where weights merge one waits for an exchange: that under way, of up to --sync-every steps of
 * all, or the one after it. */
static void test_late_ones(void **state) {
    (void)state;
    bpt_job job = begin();
    job.pace.limit = 20;
    job.total_samples = 400 + 2 * 20 * job.batch_all;
    assert_int_equal(bpt_job_need(&job, false).checkpoints, 1);
    job.update = BPT_UPDATE_AGWU;
    assert_int_equal(bpt_job_need(&job, false).checkpoints, 0);
    job.total_samples++;
    assert_int_equal(bpt_job_need(&job, false).checkpoints, 1);
}

/* ---- what is there ---- */

/* What the job replaces makes room: weights, checkpoints that are not whole or of later steps, and
 * with --force all. */
static void test_what_goes(void **state) {
    (void)state;
    bpt_job job = begin();
    const uint64_t all = 4 * weights + BPT_RUN_NEED_OTHERS;
    assert_least(&job, 0, all - FREES);
    assert_int_equal(world.step, 320 / job.batch_all);
    world.goes = 700;
    assert_least(&job, 0, all - FREES - 700);
    world.n_there = 2;
    world.there[0] = 300;
    world.there[1] = 80;
    assert_least(&job, 0, all - FREES - 700);
    assert_string_equal(bpt_error_last()->hint,
                        "make room there, or go on with an --output on another disk and --resume "
                        "run");
    world.replaces = true;
    assert_least(&job, 0, all - FREES - 700 - 380);
    assert_non_null(strstr(bpt_error_last()->text, " MB are free with what is removed"));
    assert_string_equal(bpt_error_last()->hint,
                        "make room there, or name an --output on another disk");
    world.free_bytes[0] = UINT64_MAX; /* it does not tell */
    assert_int_equal(bpt__job_check_room(&job), BPT_OK);
}

/* Each of two disks is to have room for its own, by what goes from it. */
static void test_two_disks(void **state) {
    (void)state;
    bpt_job job = begin();
    world.apart = true;
    world.free_bytes[1] = 6 * weights + BPT_RUN_NEED_OTHERS;
    world.goes = 700;
    assert_least(&job, 0, weights + BPT_RUN_NEED_OTHERS - FREES);
    world.free_bytes[0] = 2 * weights + BPT_RUN_NEED_OTHERS;
    assert_least(&job, 1, 3 * weights + BPT_RUN_NEED_OTHERS - 700);
    assert_non_null(strstr(bpt_error_last()->text, "in run/checkpoints: a checkpoint takes "));
    assert_says("checkpoints of the run take ");
}

/* Where none is due the disk of checkpoints may be full. */
static void test_none_is_due(void **state) {
    (void)state;
    bpt_job job = begin();
    world.apart = true;
    world.free_bytes[0] = 2 * weights + BPT_RUN_NEED_OTHERS;
    job.count.progress = 900; /* of 1000 */
    assert_int_equal(bpt__job_check_room(&job), BPT_OK);
    world.said[0] = '\0';
    job.checkpoint_every = 0;
    assert_int_equal(bpt__job_check_room(&job), BPT_OK);
    assert_string_equal(world.said, "");
}

/* Room for the next checkpoint and not for all is worth a warning, which says what helps. */
static void test_warnings(void **state) {
    (void)state;
    bpt_job job = begin();
    const uint64_t all = 7 * weights + BPT_RUN_NEED_OTHERS - FREES;
    world.free_bytes[0] = all;
    assert_int_equal(bpt__job_check_room(&job), BPT_OK);
    assert_string_equal(world.said, "");
    world.free_bytes[0] = all - 1;
    assert_int_equal(bpt__job_check_room(&job), BPT_OK);
    assert_says("checkpoints and weights of the run take ");
    assert_says(
        " on the disk of run with what is removed: make room meanwhile, or lower "
        "--checkpoint-keep");
    options.checkpoint_keep = 1;
    world.free_bytes[0] = 6 * weights + BPT_RUN_NEED_OTHERS - FREES - 1;
    assert_int_equal(bpt__job_check_room(&job), BPT_OK);
    assert_says(": make room meanwhile");
    assert_null(strstr(world.said, "--checkpoint-keep"));
}

/* ---- one more, while the run is under way ---- */

static void assert_has(const bpt_job *job, int disk, uint64_t least) {
    world.free_bytes[disk] = least;
    world.said[0] = '\0';
    assert_true(bpt__job_has_room(job));
    assert_string_equal(world.said, "");
    world.free_bytes[disk] = least - 1;
    assert_false(bpt__job_has_room(job));
}

/* One is whole before any goes: also of those that the run has begun with, of later steps. */
static void test_one_more(void **state) {
    (void)state;
    bpt_job job = begin();
    world.replaces = true; /* what that removes is gone */
    world.goes = 700;
    assert_has(&job, 0, 4 * weights + BPT_RUN_NEED_OTHERS);
    assert_says("no checkpoint is made by time: one and the weights at the end take ");
    assert_true(world.step == UINT64_MAX);
    world.apart = true;
    world.free_bytes[0] = 0;
    assert_has(&job, 1, 3 * weights + BPT_RUN_NEED_OTHERS);
    assert_says("no checkpoint is made by time: one takes ");
    assert_says(" are free in run/checkpoints");
    world.free_bytes[1] = UINT64_MAX; /* it does not tell */
    assert_true(bpt__job_has_room(&job));
    world.free_bytes[1] = 1 << 30;
    assert_true(bpt__job_has_room(&job));
    world.unseen = true;
    assert_false(bpt__job_has_room(&job));
    assert_string_equal(world.said, "no checkpoint is made by time: cannot see run/checkpoints");
}

/* The run goes on without one that had no room, on whichever rank; not where anything else was the
 * reason on any. */
static void test_one_that_was_not_made(void **state) {
    (void)state;
    static const struct {
        bpt_status outcomes[2]; /* the first is this rank's */
        bool goes_on;
    } cases[] = {
        {{BPT_ENOSPC, BPT_ENOSPC}, true}, {{BPT_ENOSPC, BPT_EPEER}, true},
        {{BPT_EPEER, BPT_ENOSPC}, true},  {{BPT_EPEER, BPT_EIO}, false},
        {{BPT_EIO, BPT_EPEER}, false},    {{BPT_ENOSPC, BPT_EIO}, false},
        {{BPT_ECOMM, BPT_ENOSPC}, false},
    };
    bpt_job job = begin();
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        const bpt_status failed = cases[i].outcomes[0];
        for (int r = 0; r < 2; r++) world.outcomes[r] = cases[i].outcomes[r];
        world.said[0] = '\0';
        (void)bpt_fail(failed, "not saved");
        assert_int_equal(bpt_checkpoint_forgo(&job, failed), cases[i].goes_on ? BPT_OK : failed);
        assert_string_equal(bpt_error_last()->text, "not saved");
        assert_string_equal(world.said,
                            cases[i].goes_on ? "not saved; the run goes on without" : "");
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_vectors),     cmocka_unit_test(test_late_ones),
        cmocka_unit_test(test_what_goes),   cmocka_unit_test(test_two_disks),
        cmocka_unit_test(test_none_is_due), cmocka_unit_test(test_warnings),
        cmocka_unit_test(test_one_more),    cmocka_unit_test(test_one_that_was_not_made),
    };
    return cmocka_run_group_tests(tests, made_set_up, made_tear_down);
}
