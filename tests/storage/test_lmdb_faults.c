/* Any call of LMDB may fail, once or from then on, and the file may be cut short at any: each time
 * an error with the right status, nothing leaks or hangs, what was there before is sound, and what
 * was to be stored is there whole or not at all. ld --wrap counts the calls.
 * ctest: slow TIMEOUT=600 */
#include "base/checksum.h"
#include "base/log.h"
#include "base/memory.h"
#include "storage/dataset/parcel.h"
#include "storage/dataset/scratch.h"
#include "storage/importers/importer.h"
#include "storage/loader/loader.h"
#include "tests/storage/made_dataset.h"
#include "tests/storage/made_lmdb.h"

#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/wait.h>

#include <errno.h>
#include <fcntl.h>
#include <lmdb.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

/* ---- the failing calls ---- */

/* Instead of a code: the file is cut short, or its second half is written over, and the call goes
 * on. */
enum { CUT = 1000000, OVERWRITE };

static struct {
    int code;     /* what a call fails with; 0: none does */
    int left;     /* calls that still go well */
    bool forever; /* those after it fail as well */
    char file[120];
} fault;
static int *n_fired; /* shared with children */

static void inject(int code, int after, bool forever) {
    fault.code = code;
    fault.left = after;
    fault.forever = forever;
    *n_fired = 0;
}

static void cut(void) {
    struct stat info;
    if (stat(fault.file, &info) == 0 && truncate(fault.file, info.st_size / 8192 * 4096) != 0)
        _exit(99);
}

static void overwrite(void) {
    static const char zeros[4096];
    struct stat info;
    const int fd = open(fault.file, O_WRONLY | O_CLOEXEC);
    if (fd < 0 || fstat(fd, &info) != 0) return;
    for (off_t at = info.st_size / 8192 * 4096; at < info.st_size; at += sizeof zeros)
        if (pwrite(fd, zeros, sizeof zeros, at) != sizeof zeros) _exit(99);
    close(fd);
}

/* @return the code that the call shall fail with, 0: none */
static int strike(void) {
    if (fault.code == 0 || fault.left-- > 0) return 0;
    if (fault.left < -1 && !fault.forever) return 0;
    ++*n_fired;
    if (fault.code != CUT && fault.code != OVERWRITE) return fault.code;
    (fault.code == CUT ? cut : overwrite)();
    return 0;
}

#define MAY_FAIL(name, parameters, arguments)                                                      \
    int __real_##name parameters;                                                                  \
    int __wrap_##name parameters;                                                                  \
    int __wrap_##name parameters {                                                                 \
        const int code = strike();                                                                 \
        return code ? code : __real_##name arguments;                                              \
    }

MAY_FAIL(mdb_env_create, (MDB_env * *env), (env))
MAY_FAIL(mdb_env_set_maxdbs, (MDB_env * env, MDB_dbi n), (env, n))
MAY_FAIL(mdb_env_open, (MDB_env * env, const char *path, unsigned flags, mdb_mode_t mode),
         (env, path, flags, mode))
MAY_FAIL(mdb_txn_begin, (MDB_env * env, MDB_txn *parent, unsigned flags, MDB_txn **txn),
         (env, parent, flags, txn))
MAY_FAIL(mdb_txn_renew, (MDB_txn * txn), (txn))
MAY_FAIL(mdb_dbi_open, (MDB_txn * txn, const char *name, unsigned flags, MDB_dbi *dbi),
         (txn, name, flags, dbi))
MAY_FAIL(mdb_drop, (MDB_txn * txn, MDB_dbi dbi, int del), (txn, dbi, del))
MAY_FAIL(mdb_stat, (MDB_txn * txn, MDB_dbi dbi, MDB_stat *stat), (txn, dbi, stat))
MAY_FAIL(mdb_cursor_open, (MDB_txn * txn, MDB_dbi dbi, MDB_cursor **cursor), (txn, dbi, cursor))
MAY_FAIL(mdb_cursor_get, (MDB_cursor * cursor, MDB_val *key, MDB_val *value, MDB_cursor_op op),
         (cursor, key, value, op))
MAY_FAIL(mdb_get, (MDB_txn * txn, MDB_dbi dbi, MDB_val *key, MDB_val *value),
         (txn, dbi, key, value))
MAY_FAIL(mdb_put, (MDB_txn * txn, MDB_dbi dbi, MDB_val *key, MDB_val *value, unsigned flags),
         (txn, dbi, key, value, flags))

/* Where LMDB cannot map so much, it has given up the map it had. */
int __real_mdb_env_set_mapsize(MDB_env *env, size_t size);
int __wrap_mdb_env_set_mapsize(MDB_env *env, size_t size);
int __wrap_mdb_env_set_mapsize(MDB_env *env, size_t size) {
    const int code = strike();
    if (code == 0) return __real_mdb_env_set_mapsize(env, size);
    assert_int_equal(__real_mdb_env_set_mapsize(env, (size_t)1 << 60), ENOMEM);
    return code;
}

/* A commit that fails ends its transaction all the same. */
int __real_mdb_txn_commit(MDB_txn *txn);
int __wrap_mdb_txn_commit(MDB_txn *txn);
int __wrap_mdb_txn_commit(MDB_txn *txn) {
    const int code = strike();
    if (code == 0) return __real_mdb_txn_commit(txn);
    mdb_txn_abort(txn);
    return code;
}

/* ---- what is tried ---- */

/* Records of 256 KiB, so that a few of them need a larger map than the first. */
enum { H = 256, W = 1024, RECORD = H * W, OLD = 2, NEW = 6, OLD_SALT = 1, NEW_SALT = 2 };
enum { BEGUN = 2, CHUNK = 64, RESUMED = 70 }; /* more than a chunk of 16 MiB is resumed */

static made_place place;
static char source[100], scratch_folder[100], lmdb[100]; /* beside the dataset */

/* A record is all one byte: quick to make and to check. */
static uint8_t shade(uint32_t salt, uint32_t i) {
    return (uint8_t)(salt * 100 + i);
}

static bool is_shade(const uint8_t *pixels, uint32_t salt, uint32_t i) {
    return pixels[0] == shade(salt, i) && memcmp(pixels, pixels + 1, RECORD - 1) == 0;
}

static bpt_status append_shades(bpt_writer *writer, uint32_t salt, uint32_t from, uint32_t to) {
    static uint8_t pixels[RECORD];
    bpt_status status = BPT_OK;
    for (uint32_t i = from; i < to && status == BPT_OK; i++) {
        memset(pixels, shade(salt, i), sizeof pixels);
        status = bpt_writer_append(writer, pixels, i % 3);
    }
    return status;
}

/* Writes records [from, to) and ends the writer. */
static bpt_status write_records(bpt_writer *writer, uint32_t salt, uint32_t from, uint32_t to,
                                bool commit) {
    bpt_status status = append_shades(writer, salt, from, to);
    if (status == BPT_OK && commit) status = bpt_writer_commit(writer);
    bpt_writer_close(writer);
    return status;
}

static bpt_status write_split(const char *path, const char *name, bool replace, uint32_t salt,
                              uint32_t n) {
    bpt_writer_options o = made_options(name, 1, H, W);
    o.replace = replace;
    bpt_writer *writer;
    BPT_TRY(bpt_writer_open(path, &o, &writer));
    return write_records(writer, salt, 0, n, true);
}

/* To a split of BEGUN records. */
static bpt_status append_records(void) {
    bpt_writer_options o = made_options("new", 1, H, W);
    o.append = true;
    bpt_writer *writer;
    BPT_TRY(bpt_writer_open(place.dataset, &o, &writer));
    return write_records(writer, NEW_SALT, BEGUN, NEW, true);
}

static bpt_writer_options with_terms(void) {
    bpt_writer_options o = made_options("new", 1, H, W);
    o.terms = "this\n";
    o.origin = "that\n";
    return o;
}

/* One that ended behind its first chunk. */
static bpt_status stop_split(void) {
    const bpt_writer_options o = with_terms();
    bpt_writer *writer;
    BPT_TRY(bpt_writer_open(place.dataset, &o, &writer));
    return write_records(writer, NEW_SALT, 0, CHUNK, false);
}

static bpt_status resume_split(void) {
    const bpt_writer_options o = with_terms();
    bpt_writer *writer;
    BPT_TRY(bpt_writer_resume(place.dataset, &o, &writer));
    assert_non_null(writer);
    return write_records(writer, NEW_SALT, (uint32_t)bpt_writer_position(writer), RESUMED, true);
}

static bpt_status add_split(void) {
    return write_split(place.dataset, "new", false, NEW_SALT, NEW);
}

/* Of a dataset that is divided: "beside" and "new" appear at once. */
static bpt_status add_pair(void) {
    const bpt_writer_options beside = made_options("beside", 1, H, W);
    const bpt_writer_options o = made_options("new", 1, H, W);
    bpt_writer *writer;
    BPT_TRY(bpt_writer_open(place.dataset, &beside, &writer));
    bpt_status status = append_shades(writer, NEW_SALT, 0, OLD);
    if (status == BPT_OK) status = bpt_writer_next(writer, &o);
    if (status == BPT_OK) return write_records(writer, NEW_SALT, 0, NEW, true);
    bpt_writer_close(writer);
    return status;
}

static bpt_status replace_split(void) {
    return write_split(place.dataset, "new", true, NEW_SALT, NEW);
}

/* As merge and split do: one dataset is read while another is written. */
static bpt_status copy_split(void) {
    bpt_dataset *from = NULL;
    const bpt_split *split;
    bpt_writer *writer = NULL;
    const bpt_writer_options o = made_options("new", 1, H, W);
    bpt_status status;
    BPT_TRY_GOTO(status, bpt_dataset_open(source, &from), done);
    BPT_TRY_GOTO(status, bpt_dataset_find(from, "train", &split), done);
    BPT_TRY_GOTO(status, bpt_writer_open(place.dataset, &o, &writer), done);
    for (uint32_t i = 0; i < split->count; i++) {
        const uint8_t *pixels;
        uint32_t label;
        BPT_TRY_GOTO(status, bpt_dataset_get(from, split, i, &pixels, &label), done);
        BPT_TRY_GOTO(status, bpt_writer_append(writer, pixels, label), done);
    }
    BPT_TRY_GOTO(status, bpt_dataset_check(from), done);
    status = bpt_writer_commit(writer);
done:
    bpt_writer_close(writer);
    bpt_dataset_close(from);
    return status;
}

static bpt_status verify(void) {
    uint64_t n_records;
    return bpt_dataset_verify(place.dataset, NULL, NULL, &n_records);
}

static bpt_status load_batches(const bpt_dataset *dataset, const bpt_split *split) {
    const bpt_loader_options o = {.batch = OLD, .n_threads = 2, .depth = 2};
    const uint32_t indices[OLD] = {1, 0};
    bpt_loader *loader;
    bpt_batch batch;
    BPT_TRY(bpt_loader_create(dataset, split, &o, &loader));
    bpt_status status = bpt_loader_request(loader, indices, NULL, OLD);
    if (status == BPT_OK) status = bpt_loader_next(loader, &batch);
    for (uint32_t i = 0; status == BPT_OK && i < OLD; i++) {
        assert_int_equal(batch.labels[i], indices[i] % 3);
        for (size_t p = 0; p < RECORD; p += 999)
            assert_int_equal((int)(batch.pixels[i * RECORD + p] * 255 + .5F),
                             shade(OLD_SALT, indices[i]));
    }
    bpt_loader_destroy(loader);
    return status;
}

static bpt_status load(void) {
    bpt_dataset *dataset;
    const bpt_split *split;
    BPT_TRY(bpt_dataset_open(place.dataset, &dataset));
    bpt_status status = bpt_dataset_find(dataset, "old", &split);
    if (status == BPT_OK) status = load_batches(dataset, split);
    bpt_dataset_close(dataset);
    return status;
}

/* ---- scratch, and Caffe's LMDB ---- */

static bpt_status add_parcel(bpt_scratch *scratch, const bpt_dataset *dataset, uint32_t i,
                             uint64_t identity, uint8_t *parcel) {
    const bpt_split *from, *to;
    const uint8_t *pixels;
    uint32_t label;
    BPT_TRY(bpt_dataset_find(dataset, "old", &from));
    BPT_TRY(bpt_dataset_find(bpt_scratch_dataset(scratch), "old", &to));
    if (!bpt_scratch_has(scratch, to, i)) {
        BPT_TRY(bpt_parcel_make(dataset, from, identity, &i, 1, parcel));
        BPT_TRY(bpt_scratch_add(scratch, to, &i, 1, parcel));
    }
    BPT_TRY(bpt_dataset_get(bpt_scratch_dataset(scratch), to, i, &pixels, &label));
    const bool right = is_shade(pixels, OLD_SALT, i);
    BPT_TRY(bpt_dataset_check(bpt_scratch_dataset(scratch)));
    assert_true(right);
    assert_int_equal(label, i % 3);
    return BPT_OK;
}

static bpt_status keep_parcels(void) {
    bpt_dataset *dataset;
    bpt_scratch *scratch = NULL;
    char *description = NULL;
    size_t size;
    bpt_status status;
    uint8_t *parcel = malloc(bpt_parcel_bytes(RECORD, 1));
    assert_non_null(parcel);
    BPT_TRY_GOTO(status, bpt_dataset_open(place.dataset, &dataset), done);
    BPT_TRY_GOTO(status, bpt_dataset_export(dataset, &description, &size), close);
    BPT_TRY_GOTO(status, bpt_scratch_open(scratch_folder, description, size, &scratch), close);
    for (uint32_t i = 0; i < OLD && status == BPT_OK; i++)
        status = add_parcel(scratch, dataset, i, bpt_checksum(description, size), parcel);
close:
    bpt_scratch_close(scratch);
    bpt_free(description);
    bpt_dataset_close(dataset);
done:
    free(parcel);
    return status;
}

enum { N_DATA = 4 };

static bpt_status read_items(const bpt_importer *importer, void *import, uint64_t count) {
    bpt_import_item item = {0};
    bpt_import_buffer buffer = {0};
    bpt_status status = BPT_OK;
    for (uint8_t i = 0; i < count && status == BPT_OK; i++) {
        bpt_import_image image = {0};
        uint8_t pixels[4] = {0};
        status = importer->next(import, &item);
        if (status == BPT_OK) status = importer->load(import, &item, &buffer, &image);
        if (status == BPT_OK && image.size == sizeof pixels)
            memcpy(pixels, image.bytes, sizeof pixels);
        const bpt_status checked = importer->check(import);
        if (checked != BPT_OK) status = checked;
        if (status == BPT_OK) assert_memory_equal(pixels, ((uint8_t[]){i, i, i, i}), 4);
    }
    bpt_free(item.owned.bytes);
    bpt_free(buffer.bytes);
    return status;
}

static bpt_status read_lmdb(void) {
    const bpt_importer *importer = bpt_importer_find("caffe");
    char *const files[] = {lmdb};
    const bpt_import_source from = {.files = files, .n_files = 1};
    bpt_import_plan plan = {0};
    void *import;
    BPT_TRY(importer->open(&from, &plan, &import));
    assert_int_equal(plan.count, N_DATA);
    const bpt_status status = read_items(importer, import, plan.count);
    importer->close(import);
    return status;
}

/* ---- the trials ---- */

typedef struct deed {
    bpt_status (*run)(void);
    const char *cut; /* file of the place that is cut short */
    bool stores;     /* a split "new" in the dataset */
    bool had_new, no_dataset;
    bool pairs;       /* with "beside" */
    uint32_t n_begun; /* records of "new" that are there before */
    uint32_t n_new;   /* all in the end; 0: NEW */
} deed;

static const deed
    adds = {.run = add_split, .cut = "data/data.mdb", .stores = true},
    replaces = {.run = replace_split, .cut = "data/data.mdb", .stores = true, .had_new = true},
    appends = {.run = append_records,
               .cut = "data/data.mdb",
               .stores = true,
               .had_new = true,
               .n_begun = BEGUN},
    resumes = {.run = resume_split, .cut = "data/data.mdb", .stores = true, .n_new = RESUMED},
    resumes_the_first = {.run = resume_split,
                         .cut = "data/data.mdb",
                         .stores = true,
                         .no_dataset = true,
                         .n_new = RESUMED},
    divides = {.run = add_pair, .cut = "data/data.mdb", .stores = true, .pairs = true},
    begins = {.run = add_split, .cut = "data/data.mdb", .stores = true, .no_dataset = true},
    copies = {.run = copy_split, .cut = "source/data.mdb", .stores = true},
    verifies = {.run = verify, .cut = "data/data.mdb"},
    loads = {.run = load, .cut = "data/data.mdb"},
    keeps = {.run = keep_parcels, .cut = "scratch/samples.mdb"},
    imports = {.run = read_lmdb, .cut = "lmdb/data.mdb"};

static void prepare(const deed *d) {
    inject(0, 0, false);
    place = made_place_create();
    snprintf(source, sizeof source, "%s/source", place.directory);
    snprintf(scratch_folder, sizeof scratch_folder, "%s/scratch", place.directory);
    snprintf(lmdb, sizeof lmdb, "%s/lmdb", place.directory);
    snprintf(fault.file, sizeof fault.file, "%s/%s", place.directory, d->cut);
    if (!d->no_dataset)
        assert_int_equal(write_split(place.dataset, "old", false, OLD_SALT, OLD), BPT_OK);
    if (d->n_begun)
        assert_int_equal(write_split(place.dataset, "new", false, NEW_SALT, d->n_begun), BPT_OK);
    else if (d->had_new)
        assert_int_equal(write_split(place.dataset, "new", false, 3, 1), BPT_OK);
    if (d->run == resume_split) assert_int_equal(stop_split(), BPT_OK);
    if (d->run == copy_split)
        assert_int_equal(write_split(source, "train", false, NEW_SALT, NEW), BPT_OK);
    if (d->run == read_lmdb) made_lmdb(lmdb, N_DATA);
}

static bool holds(const bpt_dataset *dataset, const char *name, uint32_t salt, uint32_t n) {
    const bpt_split *split;
    if (bpt_dataset_find(dataset, name, &split) != BPT_OK || split->count != n) return false;
    for (uint32_t i = 0; i < n; i++) {
        const uint8_t *pixels;
        uint32_t label;
        if (bpt_dataset_get(dataset, split, i, &pixels, &label) != BPT_OK || label != i % 3 ||
            !is_shade(pixels, salt, i))
            return false;
    }
    return true;
}

/* What was there is there; the new split is there whole or not at all, and if it was said so. */
static void inspect(const deed *d, bpt_status status) {
    bpt_dataset *dataset;
    const bpt_status opened = bpt_dataset_open(place.dataset, &dataset);
    if (d->no_dataset && status != BPT_OK) {
        assert_int_equal(opened, BPT_ENOENT);
        return;
    }
    assert_int_equal(opened, BPT_OK);
    const bool is_new = holds(dataset, "new", NEW_SALT, d->n_new ? d->n_new : NEW);
    const size_t n_splits = bpt_dataset_describe(dataset)->n_splits;
    if (!d->no_dataset) assert_true(holds(dataset, "old", OLD_SALT, OLD));
    if (d->n_begun && !is_new)
        assert_true(holds(dataset, "new", NEW_SALT, d->n_begun));
    else if (d->had_new && !is_new)
        assert_true(holds(dataset, "new", 3, 1));
    assert_int_equal(n_splits,
                     (size_t)!d->no_dataset + (d->had_new || is_new) + (d->pairs && is_new));
    if (d->pairs) assert_int_equal(holds(dataset, "beside", NEW_SALT, OLD), is_new);
    assert_int_equal(is_new, d->stores && status == BPT_OK);
    bpt_dataset_close(dataset);
    assert_int_equal(verify(), BPT_OK);
}

static void expect_right_error(int code, bpt_status status) {
    const bpt_error *e = bpt_error_last();
    if (status != e->status || !e->text[0] || strstr(e->text, "Success"))
        fail_msg("status %s, but %s: %s", bpt_status_name(status), bpt_status_name(e->status),
                 e->text);
    if (bpt_status_exit(status) != (code == MDB_CORRUPTED ? 3 : 1) ||
        (code == ENOSPC && status != BPT_ENOSPC) || (code == ENOMEM && status != BPT_ENOMEM))
        fail_msg("status %s after %s: %s", bpt_status_name(status), mdb_strerror(code), e->text);
}

static const int codes[] = {EIO, ENOSPC, ENOMEM, MDB_CORRUPTED};
enum { N_CODES = sizeof codes / sizeof *codes };

/* Sanitizers, which look for other faults and are three times as slow, see every fifth call. */
#ifdef __SANITIZE_ADDRESS__
enum { STRIDE = 5 };
#else
enum { STRIDE = 1 };
#endif

/* Resuming takes long: each call of it fails once or from then on. */
static int stride(const deed *d) {
    return d->n_new && STRIDE == 1 ? 2 : STRIDE;
}

/* @param turn which code the first call fails with; the next one's is the next */
static void fails_well(const deed *d, int turn, bool forever) {
    bool fired = true;
    for (int after = (turn + forever) % stride(d); fired; after += stride(d)) {
        const int code = codes[(after / stride(d) + turn) % N_CODES];
        prepare(d);
        const uint64_t live = bpt_memory_live();
        inject(code, after, forever);
        bpt_status status = d->run();
        fired = *n_fired > 0;
        if (status != BPT_OK) expect_right_error(code, status);
        if (!fired) assert_int_equal(status, BPT_OK);
        if (forever && fired && after == 0) assert_int_not_equal(status, BPT_OK);
        inject(0, 0, false);
        assert_int_equal(bpt_memory_live(), live);
        inspect(d, status);
        if (status != BPT_OK && after % 3 == 0) { /* the same again goes well */
            status = d->run();
            assert_int_equal(status, BPT_OK);
            inspect(d, status);
        }
        made_place_remove(&place);
        assert_true(after < 300);
    }
}

/* Each in a process of its own: one that LMDB cannot go on in ends, with the same status.
 * @param harm CUT; or OVERWRITE, of which LMDB tells in words of its own as well (1) */
static void survives(const deed *d, int harm) {
    int n_told = 0, n_cuts = 0;
    for (bool fired = true; fired; n_cuts += STRIDE) {
        prepare(d);
        inject(harm, n_cuts, false);
        fflush(stdout);
        const pid_t pid = fork();
        assert_true(pid >= 0);
        if (pid == 0) {
            if (!freopen("/dev/null", "w", stderr)) _exit(98);
            signal(SIGABRT, SIG_DFL); /* instead of cmocka's */
            signal(SIGSEGV, SIG_DFL);
            _exit(bpt_status_exit(d->run()));
        }
        int status;
        assert_int_equal(waitpid(pid, &status, 0), pid);
        fired = *n_fired > 0;
        const int ended = WIFEXITED(status) ? WEXITSTATUS(status) : -1;
        const bool may = ended == 0 || ended == 3 || (harm == OVERWRITE && ended == 1);
        if (!may) fail_msg("harmed at call %d: ended with %x", n_cuts, (unsigned)status);
        if (!fired) assert_int_equal(status, 0);
        n_told += status != 0;
        inject(0, 0, false);
        made_place_remove(&place);
        assert_true(n_cuts < 300);
    }
    print_message("of %d %s %d were told, the others came after all reading\n", n_cuts / STRIDE - 1,
                  harm == CUT ? "cuts" : "overwritings", n_told);
    if (harm == CUT) assert_true(n_told > 0);
}

static void try_all(const deed *d) {
    const int n_turns = d->stores ? 1 : N_CODES; /* writing takes long */
    for (int turn = 0; turn < n_turns; turn++) {
        fails_well(d, turn, false);
        fails_well(d, turn + 2, true);
    }
    survives(d, CUT);
    if (d->n_new == 0) survives(d, OVERWRITE); /* resuming takes long */
}

#define TRY(name)                                                                                  \
    static void test_##name(void **state) {                                                        \
        (void)state;                                                                               \
        try_all(&name);                                                                            \
    }

TRY(adds)
TRY(replaces)
TRY(appends)
TRY(resumes)
TRY(resumes_the_first)
TRY(divides)
TRY(begins)
TRY(copies)
TRY(verifies)
TRY(loads)
TRY(keeps)
TRY(imports)

int main(void) {
#ifdef __SANITIZE_THREAD__
    print_message("skipped: it forks, and the thread sanitizer may hang there\n");
    return 77;
#endif
    bpt_log_setup(0, BPT_LOG_ERROR);
    n_fired =
        mmap(NULL, sizeof *n_fired, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (n_fired == MAP_FAILED) return 1;
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_adds),
        cmocka_unit_test(test_replaces),
        cmocka_unit_test(test_appends),
        cmocka_unit_test(test_resumes),
        cmocka_unit_test(test_resumes_the_first),
        cmocka_unit_test(test_divides),
        cmocka_unit_test(test_begins),
        cmocka_unit_test(test_copies),
        cmocka_unit_test(test_verifies),
        cmocka_unit_test(test_loads),
        cmocka_unit_test(test_keeps),
        cmocka_unit_test(test_imports),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
