/* Scratch: records that came in parcels are there, whole, and stay there. ctest: TIMEOUT=60 */
#include "base/checksum.h"
#include "base/file.h"
#include "base/memory.h"
#include "storage/dataset/parcel.h"
#include "storage/dataset/scratch.h"
#include "tests/storage/made_dataset.h"
#include "tests/storage/made_group.h"

#include <sys/wait.h>

#include <dlfcn.h>
#include <errno.h>
#include <lmdb.h>
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

enum { TRAIN = 300, TEST = 70, H = 20, W = 30, RECORD = H * W };

typedef struct subject {
    made_place place;
    bpt_dataset *dataset;
    const bpt_split *train, *test;
    char *description;
    size_t size;
    uint64_t identity;
    char path[100]; /* of scratch; not there when a test begins */
} subject;

static int set_up(void **state) {
    static subject s;
    s.place = made_place_create();
    const bpt_writer_options train = made_options("train", 1, H, W);
    const bpt_writer_options test = made_options("test", 1, H, W);
    if (made_split(s.place.dataset, &train, 1, TRAIN) != BPT_OK ||
        made_split(s.place.dataset, &test, 2, TEST) != BPT_OK ||
        bpt_dataset_open(s.place.dataset, &s.dataset) != BPT_OK ||
        bpt_dataset_find(s.dataset, "train", &s.train) != BPT_OK ||
        bpt_dataset_find(s.dataset, "test", &s.test) != BPT_OK ||
        bpt_dataset_export(s.dataset, &s.description, &s.size) != BPT_OK)
        return 1;
    s.identity = bpt_checksum(s.description, s.size);
    snprintf(s.path, sizeof s.path, "%s/scratch/rank-1", s.place.directory);
    *state = &s;
    return 0;
}

static int tear_down(void **state) {
    subject *s = *state;
    bpt_free(s->description);
    bpt_dataset_close(s->dataset);
    made_place_remove(&s->place);
    return 0;
}

static int remove_scratch(void **state) {
    const subject *s = *state;
    char parent[100];
    snprintf(parent, sizeof parent, "%s/scratch", s->place.directory);
    return bpt_dir_remove(parent) == BPT_OK ? 0 : 1;
}

static bpt_scratch *open_scratch(const subject *s) {
    bpt_scratch *scratch = NULL;
    if (bpt_scratch_open(s->path, s->description, s->size, &scratch) != BPT_OK)
        fail_msg("%s", bpt_error_last()->text);
    return scratch;
}

static const bpt_split *split_of(const bpt_scratch *scratch, const char *name) {
    const bpt_split *split = NULL;
    assert_int_equal(bpt_dataset_find(bpt_scratch_dataset(scratch), name, &split), BPT_OK);
    return split;
}

/* @return a parcel, for free() */
static uint8_t *make(const subject *s, const bpt_split *split, const uint32_t *indices,
                     uint32_t n) {
    uint8_t *parcel = malloc(bpt_parcel_bytes(RECORD, n));
    assert_non_null(parcel);
    assert_int_equal(bpt_parcel_make(s->dataset, split, s->identity, indices, n, parcel), BPT_OK);
    return parcel;
}

static bpt_status add(const subject *s, bpt_scratch *scratch, const char *name,
                      const uint32_t *indices, uint32_t n) {
    const bpt_split *from = strcmp(name, "train") == 0 ? s->train : s->test;
    uint8_t *parcel = make(s, from, indices, n);
    const bpt_status status = bpt_scratch_add(scratch, split_of(scratch, name), indices, n, parcel);
    free(parcel);
    return status;
}

/* Adds every stride-th record from first on, some to a parcel. */
static void add_some(const subject *s, bpt_scratch *scratch, uint32_t first, uint32_t stride) {
    enum { MOST = 7 };
    uint32_t indices[MOST], n = 0;
    for (uint32_t i = first; i < TRAIN; i += stride) {
        indices[n++] = i;
        if (n < MOST && i + stride < TRAIN) continue;
        assert_int_equal(add(s, scratch, "train", indices, n), BPT_OK);
        n = 0;
    }
}

static bool is_right(const uint8_t *pixels, uint32_t label, uint32_t salt, uint32_t i) {
    if (label != made_label(salt, i, 3)) return false;
    for (size_t p = 0; p < RECORD; p++)
        if (pixels[p] != made_pixel(salt, i, p)) return false;
    return true;
}

static bool reads(const bpt_scratch *scratch, const char *name, uint32_t salt, uint32_t i) {
    const uint8_t *pixels;
    uint32_t label;
    const bpt_dataset *d = bpt_scratch_dataset(scratch);
    return bpt_dataset_get(d, split_of(scratch, name), i, &pixels, &label) == BPT_OK &&
           is_right(pixels, label, salt, i);
}

/* Those of a stride, and no others, are here. */
static void assert_holds(const bpt_scratch *scratch, uint32_t first, uint32_t stride) {
    const bpt_split *train = split_of(scratch, "train");
    for (uint32_t i = 0; i < TRAIN; i++) {
        const bool here = i >= first && (i - first) % stride == 0;
        assert_int_equal(bpt_scratch_has(scratch, train, i), here);
        assert_int_equal(reads(scratch, "train", 1, i), here);
    }
}

static void describes_the_dataset(void **state) {
    const subject *s = *state;
    bpt_scratch *scratch = open_scratch(s);
    const bpt_dataset_info *mine = bpt_dataset_describe(bpt_scratch_dataset(scratch));
    const bpt_dataset_info *theirs = bpt_dataset_describe(s->dataset);
    assert_int_equal(mine->H, theirs->H);
    assert_int_equal(mine->n_splits, 2);
    const bpt_split *train = split_of(scratch, "train");
    assert_int_equal(train->count, TRAIN);
    assert_true(train->mean[0] == s->train->mean[0]);
    assert_holds(scratch, TRAIN, 1); /* nothing */
    assert_false(bpt_scratch_has(scratch, split_of(scratch, "test"), 0));
    const uint8_t *pixels;
    uint32_t label;
    const bpt_dataset *d = bpt_scratch_dataset(scratch);
    assert_int_equal(bpt_dataset_get(d, train, 5, &pixels, &label), BPT_EUSAGE);
    assert_int_equal(bpt_dataset_get(d, train, TRAIN, &pixels, &label), BPT_EUSAGE);
    bpt_scratch_close(scratch);
}

static void keeps_what_came(void **state) {
    const subject *s = *state;
    bpt_scratch *scratch = open_scratch(s);
    add_some(s, scratch, 2, 3);
    assert_int_equal(add(s, scratch, "test", (uint32_t[]){69, 0}, 2), BPT_OK);
    assert_holds(scratch, 2, 3);
    bpt_scratch_close(scratch);

    scratch = open_scratch(s); /* as a job does that goes on */
    assert_holds(scratch, 2, 3);
    assert_true(reads(scratch, "test", 2, 69));
    assert_true(reads(scratch, "test", 2, 0));
    assert_false(reads(scratch, "test", 2, 1));
    assert_int_equal(add(s, scratch, "train", (uint32_t[]){0, 5}, 2), BPT_EUSAGE); /* 5 is here */
    assert_holds(scratch, 2, 3);
    add_some(s, scratch, 0, 3);
    add_some(s, scratch, 1, 3);
    assert_holds(scratch, 0, 1);
    bpt_scratch_close(scratch);
}

/* What a reader was given stays as it is, whatever comes. */
static void records_do_not_move(void **state) {
    const subject *s = *state;
    bpt_scratch *scratch = open_scratch(s);
    const bpt_dataset *d = bpt_scratch_dataset(scratch);
    const bpt_split *train = split_of(scratch, "train");
    const uint8_t *pixels[TRAIN];
    uint32_t label[TRAIN];
    for (uint32_t i = 0; i < TRAIN; i++) {
        assert_int_equal(add(s, scratch, "train", &i, 1), BPT_OK);
        assert_int_equal(bpt_dataset_get(d, train, i, &pixels[i], &label[i]), BPT_OK);
    }
    for (uint32_t i = 0; i < TRAIN; i++) assert_true(is_right(pixels[i], label[i], 1, i));
    bpt_scratch_close(scratch);
}

typedef struct {
    const bpt_scratch *scratch;
    const bpt_split *train;
    atomic_bool stop, wrong;
} reader;

static void *read_on(void *arg) {
    reader *r = arg;
    for (uint32_t i = 0; !atomic_load(&r->stop); i = (i + 1) % TRAIN) {
        const uint8_t *pixels;
        uint32_t label;
        if (!bpt_scratch_has(r->scratch, r->train, i)) continue;
        if (bpt_dataset_get(bpt_scratch_dataset(r->scratch), r->train, i, &pixels, &label) !=
                BPT_OK ||
            !is_right(pixels, label, 1, i))
            atomic_store(&r->wrong, true);
    }
    return NULL;
}

static void is_read_while_more_comes(void **state) {
    const subject *s = *state;
    bpt_scratch *scratch = open_scratch(s);
    reader r = {.scratch = scratch, .train = split_of(scratch, "train")};
    pthread_t threads[2];
    for (int t = 0; t < 2; t++) assert_int_equal(pthread_create(&threads[t], NULL, read_on, &r), 0);
    for (uint32_t first = 0; first < 5; first++) add_some(s, scratch, first, 5);
    atomic_store(&r.stop, true);
    for (int t = 0; t < 2; t++) pthread_join(threads[t], NULL);
    assert_false(atomic_load(&r.wrong));
    assert_holds(scratch, 0, 1);
    bpt_scratch_close(scratch);
}

static void refuses_damaged_parcels(void **state) {
    const subject *s = *state;
    bpt_scratch *scratch = open_scratch(s);
    const bpt_split *train = split_of(scratch, "train"), *test = split_of(scratch, "test");
    const uint32_t indices[] = {3, 200, 7}, others[] = {3, 200, 8};
    uint8_t *parcel = make(s, s->train, indices, 3);
    const size_t size = bpt_parcel_bytes(RECORD, 3);
    for (size_t at = 0; at < size; at += at < 64 || at + 64 > size ? 1 : 97) {
        parcel[at] ^= 0x10;
        assert_int_equal(bpt_scratch_add(scratch, train, indices, 3, parcel), BPT_ECORRUPT);
        parcel[at] ^= 0x10;
    }
    assert_int_equal(bpt_scratch_add(scratch, train, others, 3, parcel), BPT_ECORRUPT);
    assert_int_equal(bpt_scratch_add(scratch, test, indices, 3, parcel), BPT_EUSAGE); /* no 200 */
    assert_holds(scratch, TRAIN, 1); /* nothing of it */
    assert_int_equal(bpt_scratch_add(scratch, train, indices, 3, parcel), BPT_OK);
    for (int i = 0; i < 3; i++) assert_true(reads(scratch, "train", 1, indices[i]));
    free(parcel);
    bpt_scratch_close(scratch);
}

/* A process that is killed leaves what was complete. */
static void outlives_its_process(void **state) {
    const subject *s = *state;
    const pid_t child = fork();
    assert_true(child >= 0);
    if (child == 0) {
        bpt_scratch *scratch;
        if (bpt_scratch_open(s->path, s->description, s->size, &scratch) != BPT_OK) _exit(1);
        for (uint32_t i = 0; i < 50; i++) /* by hand: asserts belong to the parent */
        {
            uint8_t parcel[8 * RECORD];
            const bpt_split *train;
            if (bpt_dataset_find(bpt_scratch_dataset(scratch), "train", &train) != BPT_OK ||
                bpt_parcel_make(s->dataset, s->train, s->identity, &i, 1, parcel) != BPT_OK ||
                bpt_scratch_add(scratch, train, &i, 1, parcel) != BPT_OK)
                _exit(1);
        }
        kill(getpid(), SIGKILL);
    }
    int status;
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_true(WIFSIGNALED(status));
    bpt_scratch *scratch = open_scratch(s);
    const bpt_split *train = split_of(scratch, "train");
    for (uint32_t i = 0; i < TRAIN; i++)
        assert_int_equal(bpt_scratch_has(scratch, train, i), i < 50);
    for (uint32_t i = 0; i < 50; i++) assert_true(reads(scratch, "train", 1, i));
    bpt_scratch_close(scratch);
}

static void belongs_to_one_dataset(void **state) {
    const subject *s = *state;
    uint64_t bytes = 1;
    assert_int_equal(bpt_scratch_look(s->path, s->description, s->size, &bytes), BPT_OK);
    assert_int_equal(bytes, 0);
    assert_false(bpt_path_exists(s->path)); /* a look makes nothing */

    bpt_scratch *scratch = open_scratch(s), *second;
    assert_int_equal(bpt_scratch_open(s->path, s->description, s->size, &second), BPT_EIO);
    assert_non_null(strstr(bpt_error_last()->text, "scratch folder"));
    bpt_scratch_close(scratch);
    assert_int_equal(bpt_scratch_look(s->path, s->description, s->size, &bytes), BPT_OK);
    assert_true(bytes > 0);

    char *other = malloc(s->size);
    assert_non_null(other);
    memcpy(other, s->description, s->size);
    other[s->size - 3] ^= 1;
    assert_int_equal(bpt_scratch_open(s->path, other, s->size, &second), BPT_EDATA);
    assert_int_equal(bpt_scratch_look(s->path, other, s->size, &bytes), BPT_EDATA);
    assert_true(strlen(bpt_error_last()->hint) > 0);
    free(other);
    scratch = open_scratch(s); /* none the worse for it */
    bpt_scratch_close(scratch);

    bpt_dataset *dataset;
    bpt_writer *writer;
    const bpt_writer_options options = made_options("train", 1, H, W);
    assert_int_equal(bpt_dataset_open(s->path, &dataset), BPT_ENOENT);
    assert_int_equal(bpt_writer_open(s->path, &options, &writer), BPT_EEXIST);
    assert_int_equal(bpt_scratch_open(s->place.dataset, s->description, s->size, &second),
                     BPT_EEXIST);
}

static void refuses_descriptions_that_are_none(void **state) {
    const subject *s = *state;
    bpt_scratch *scratch;
    for (size_t size = 1; size < s->size; size += 13) {
        const bpt_status status = bpt_scratch_open(s->path, s->description, size, &scratch);
        assert_int_equal(bpt_status_exit(status), 3);
        assert_int_equal(remove_scratch(state), 0);
    }
}

/* Finds a record's pixels in the file and changes one of them, also in pages that are free by now:
 * a small parcel is copied with its neighbours. */
static void change_record(const char *path, uint32_t salt, uint32_t i) {
    char file[128], *data;
    size_t size;
    uint8_t pixels[RECORD];
    for (size_t p = 0; p < RECORD; p++) pixels[p] = made_pixel(salt, i, p);
    snprintf(file, sizeof file, "%s/samples.mdb", path);
    assert_int_equal(bpt_file_read(file, 64 << 20, &data, &size), BPT_OK);
    uint32_t n = 0;
    for (char *found; (found = memmem(data, size, pixels, RECORD)); n++) found[RECORD / 2] ^= 1;
    assert_true(n > 0);
    FILE *out = fopen(file, "wb");
    assert_non_null(out);
    assert_int_equal(fwrite(data, 1, size, out), size);
    assert_int_equal(fclose(out), 0);
    bpt_free(data);
}

static void finds_damage_when_it_reads(void **state) {
    const subject *s = *state;
    bpt_scratch *scratch = open_scratch(s);
    assert_int_equal(add(s, scratch, "train", (uint32_t[]){4, 5}, 2), BPT_OK);
    assert_int_equal(add(s, scratch, "train", (uint32_t[]){6}, 1), BPT_OK);
    bpt_scratch_close(scratch);
    change_record(s->path, 1, 5);
    scratch = open_scratch(s);
    const uint8_t *pixels;
    uint32_t label;
    const bpt_dataset *d = bpt_scratch_dataset(scratch);
    const bpt_split *train = split_of(scratch, "train");
    for (uint32_t i = 4; i < 6; i++)
        assert_int_equal(bpt_dataset_get(d, train, i, &pixels, &label), BPT_ECORRUPT);
    assert_non_null(strstr(bpt_error_last()->hint, "remove it"));
    assert_true(reads(scratch, "train", 1, 6));
    bpt_scratch_close(scratch);
}

static bpt_status open_and_add(const subject *s) {
    bpt_scratch *scratch;
    BPT_TRY(bpt_scratch_open(s->path, s->description, s->size, &scratch));
    const uint32_t i = 9;
    uint8_t *parcel = make(s, s->train, &i, 1);
    const bpt_split *train = split_of(scratch, "train");
    bpt_status status = BPT_OK;
    if (!bpt_scratch_has(scratch, train, i))
        status = bpt_scratch_add(scratch, train, &i, 1, parcel);
    bpt_scratch_close(scratch);
    free(parcel);
    return status;
}

static void no_memory(void **state) {
    const subject *s = *state;
    const uint64_t live = bpt_memory_live();
    bpt_status status = BPT_ENOMEM;
    for (int64_t n = 0; status != BPT_OK; n++) {
        bpt_memory_fail_at(n);
        status = open_and_add(s);
        bpt_memory_fail_at(-1);
        assert_true(status == BPT_OK || status == BPT_ENOMEM);
        assert_int_equal(bpt_memory_live(), live);
    }
    bpt_scratch *scratch = open_scratch(s);
    assert_true(reads(scratch, "train", 1, 9));
    bpt_scratch_close(scratch);
}

static void tells_its_bytes(void **state) {
    const subject *s = *state;
    const size_t places = (TRAIN + TEST) * 8, blocks = 2 * sizeof(void *); /* one a split */
    assert_int_equal(bpt_scratch_bytes(bpt_dataset_describe(s->dataset)), places + blocks);
}

/* Beginnings of transactions before the one that finds no memory, which LMDB takes by itself; -1:
 * all find it. Takes the place of LMDB's own function. */
static int begins_left = -1;

int mdb_txn_begin(MDB_env *env, MDB_txn *parent, unsigned flags, MDB_txn **txn) {
    static int (*begin)(MDB_env *, MDB_txn *, unsigned, MDB_txn **);
    if (!begin) *(void **)&begin = dlsym(RTLD_NEXT, "mdb_txn_begin");
    if (begins_left >= 0 && begins_left-- == 0) return ENOMEM;
    return begin(env, parent, flags, txn);
}

/* What could not be added can be added later: nothing fails once a parcel is written. */
static void transactions_fail(void **state) {
    const subject *s = *state;
    bpt_scratch *scratch = open_scratch(s);
    bpt_status status = BPT_ENOMEM;
    int n = 0;
    for (; status != BPT_OK; n++) {
        begins_left = n;
        status = add(s, scratch, "train", (uint32_t[]){7, 8}, 2);
        const bool failed = begins_left < 0;
        begins_left = -1;
        assert_int_equal(status, failed ? BPT_ENOMEM : BPT_OK);
        assert_int_equal(bpt_scratch_has(scratch, split_of(scratch, "train"), 7), !failed);
    }
    assert_true(n > 1);
    assert_int_equal(add(s, scratch, "train", (uint32_t[]){9}, 1), BPT_OK);
    for (uint32_t i = 7; i < 10; i++) assert_true(reads(scratch, "train", 1, i));
    bpt_scratch_close(scratch);
    scratch = open_scratch(s);
    for (uint32_t i = 7; i < 10; i++) assert_true(reads(scratch, "train", 1, i));
    bpt_scratch_close(scratch);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_teardown(describes_the_dataset, remove_scratch),
        cmocka_unit_test_teardown(keeps_what_came, remove_scratch),
        cmocka_unit_test_teardown(records_do_not_move, remove_scratch),
        cmocka_unit_test_teardown(is_read_while_more_comes, remove_scratch),
        cmocka_unit_test_teardown(refuses_damaged_parcels, remove_scratch),
        cmocka_unit_test_teardown(outlives_its_process, remove_scratch),
        cmocka_unit_test_teardown(belongs_to_one_dataset, remove_scratch),
        cmocka_unit_test_teardown(refuses_descriptions_that_are_none, remove_scratch),
        cmocka_unit_test_teardown(finds_damage_when_it_reads, remove_scratch),
        cmocka_unit_test_teardown(no_memory, remove_scratch),
        cmocka_unit_test_teardown(transactions_fail, remove_scratch),
        cmocka_unit_test(tells_its_bytes),
    };
    return made_run_group(tests, set_up, tear_down);
}
