/* Batches: right values, in the order of the requests, whatever the number of threads.
 * ctest: TIMEOUT=60 */
#include "base/memory.h"
#include "base/random.h"
#include "storage/loader/loader.h"
#include "tests/storage/made_dataset.h"
#include "tests/storage/made_group.h"

#include <fcntl.h>
#include <math.h>
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

enum { C = 2, H = 7, W = 5, RECORD = C * H * W, COUNT = 500, BATCH = 16 };

typedef struct subject {
    made_place place;
    bpt_dataset *dataset;
    const bpt_split *split;
} subject;

static int set_up(void **state) {
    static subject s;
    s.place = made_place_create();
    const bpt_writer_options o = made_options("train", C, H, W);
    if (made_split(s.place.dataset, &o, 3, COUNT) != BPT_OK) return 1;
    if (bpt_dataset_open(s.place.dataset, &s.dataset) != BPT_OK) return 1;
    if (bpt_dataset_find(s.dataset, "train", &s.split) != BPT_OK) return 1;
    *state = &s;
    return 0;
}

static int tear_down(void **state) {
    subject *s = *state;
    bpt_dataset_close(s->dataset);
    made_place_remove(&s->place);
    return 0;
}

static bpt_loader *create(const subject *s, uint32_t n_threads, uint32_t depth, bool normalised) {
    bpt_loader *loader;
    const bpt_loader_options o = {.batch = BATCH,
                                  .n_threads = n_threads,
                                  .depth = depth,
                                  .mean = normalised ? s->split->mean : NULL,
                                  .std = normalised ? s->split->std : NULL};
    assert_int_equal(bpt_loader_create(s->dataset, s->split, &o, &loader), BPT_OK);
    return loader;
}

static void expect_batch(const subject *s, const bpt_batch *batch, const uint32_t *indices,
                         uint32_t n, bool normalised) {
    assert_int_equal(batch->n, n);
    for (uint32_t i = 0; i < n; i++) {
        assert_int_equal(batch->labels[i], made_label(3, indices[i], 3));
        for (size_t p = 0; p < RECORD; p++) {
            const size_t c = p / (H * W);
            double expected = made_pixel(3, indices[i], p) / 255.0;
            if (normalised) expected = (expected - s->split->mean[c]) / s->split->std[c];
            assert_true(fabs(batch->pixels[i * RECORD + p] - expected) < 1e-6);
        }
    }
    for (uint32_t i = n; i < BATCH; i++) {
        assert_int_equal(batch->labels[i], -1);
        for (size_t p = 0; p < RECORD; p++) assert_true(batch->pixels[i * RECORD + p] == 0);
    }
}

static void gives_what_was_requested(void **state) {
    const subject *s = *state;
    for (int normalised = 0; normalised < 2; normalised++) {
        bpt_loader *loader = create(s, 2, 3, normalised);
        bpt_batch batch;
        const uint32_t full[BATCH] = {499, 0, 7, 7,   31,  32,  33,  498,
                                      1,   2, 3, 100, 200, 300, 400, 5};
        const uint32_t part[3] = {13, 12, 11};
        assert_int_equal(bpt_loader_room(loader), 3);
        assert_int_equal(bpt_loader_request(loader, full, NULL, BATCH), BPT_OK);
        assert_int_equal(bpt_loader_request(loader, part, NULL, 3), BPT_OK);
        assert_int_equal(bpt_loader_room(loader), 1);
        assert_int_equal(bpt_loader_next(loader, &batch), BPT_OK);
        expect_batch(s, &batch, full, BATCH, normalised);
        bpt_loader_release(loader, &batch);
        assert_int_equal(bpt_loader_next(loader, &batch), BPT_OK);
        expect_batch(s, &batch, part, 3, normalised);
        bpt_loader_release(loader, &batch);
        /* A slot that held a full batch now holds a part: the rest is cleared. */
        for (int i = 0; i < 3; i++) {
            assert_int_equal(bpt_loader_request(loader, part + i, NULL, 1), BPT_OK);
            assert_int_equal(bpt_loader_next(loader, &batch), BPT_OK);
            expect_batch(s, &batch, part + i, 1, normalised);
            bpt_loader_release(loader, &batch);
        }
        bpt_loader_destroy(loader);
    }
}

static void refuses_wrong_requests(void **state) {
    const subject *s = *state;
    bpt_loader *loader = create(s, 1, 2, false);
    bpt_batch batch;
    uint32_t indices[BATCH + 1] = {0};
    assert_int_equal(bpt_loader_next(loader, &batch), BPT_EUSAGE);
    assert_int_equal(bpt_loader_request(loader, indices, NULL, 0), BPT_EUSAGE);
    assert_int_equal(bpt_loader_request(loader, indices, NULL, BATCH + 1), BPT_EUSAGE);
    indices[3] = COUNT;
    assert_int_equal(bpt_loader_request(loader, indices, NULL, 4), BPT_EUSAGE);
    assert_int_equal(bpt_loader_request(loader, indices, NULL, 3), BPT_OK);
    assert_int_equal(bpt_loader_request(loader, indices, NULL, 3), BPT_OK);
    assert_int_equal(bpt_loader_request(loader, indices, NULL, 3), BPT_EFULL);
    assert_int_equal(bpt_loader_room(loader), 0);
    assert_int_equal(bpt_loader_next(loader, &batch), BPT_OK);
    assert_int_equal(bpt_loader_request(loader, indices, NULL, 3), BPT_EFULL); /* lent counts */
    bpt_loader_release(loader, &batch);
    assert_int_equal(bpt_loader_request(loader, indices, NULL, 3), BPT_OK);
    bpt_loader_destroy(loader); /* with requests under way */
    const bpt_loader_options bad[] = {{.batch = 0, .n_threads = 1, .depth = 1},
                                      {.batch = 1, .n_threads = 0, .depth = 1},
                                      {.batch = 1, .n_threads = 65, .depth = 1},
                                      {.batch = 1, .n_threads = 1, .depth = 0},
                                      {.batch = 1, .n_threads = 1, .depth = 1025}};
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++)
        assert_int_equal(bpt_loader_create(s->dataset, s->split, &bad[i], &loader), BPT_EUSAGE);
}

/* Pass number pass over the split in one order, all batches one after another.
 * @param list augmentations
 * @param out  shape [COUNT, RECORD + 1] */
static void take_pass(const subject *s, const char *list, uint32_t pass, uint32_t n_threads,
                      uint32_t depth, float *out) {
    uint32_t order[COUNT], passes[COUNT];
    bpt_random_permutation(11, BPT_PURPOSE_TEST, 0, order, COUNT);
    for (int i = 0; i < COUNT; i++) passes[i] = pass;
    bpt_loader *loader;
    bpt_loader_options o = {.batch = BATCH,
                            .n_threads = n_threads,
                            .depth = depth,
                            .mean = s->split->mean,
                            .std = s->split->std,
                            .seed = 5};
    assert_int_equal(bpt_augment_parse(list, &o.augment), BPT_OK);
    assert_int_equal(bpt_loader_create(s->dataset, s->split, &o, &loader), BPT_OK);
    uint32_t requested = 0, taken = 0;
    uint64_t allocations = 0;
    while (taken < COUNT) {
        for (; requested < COUNT && bpt_loader_room(loader) > 0;) {
            const uint32_t n = COUNT - requested < BATCH ? COUNT - requested : BATCH;
            assert_int_equal(bpt_loader_request(loader, order + requested, passes, n), BPT_OK);
            requested += n;
        }
        bpt_batch batch;
        assert_int_equal(bpt_loader_next(loader, &batch), BPT_OK);
        if (taken == 0) allocations = bpt_memory_allocations();
        for (uint32_t i = 0; i < batch.n; i++, taken++, out += RECORD + 1) {
            memcpy(out, batch.pixels + i * RECORD, RECORD * sizeof *out);
            out[RECORD] = (float)batch.labels[i];
        }
        bpt_loader_release(loader, &batch);
    }
    assert_int_equal(bpt_memory_allocations(), allocations);
    assert_true(bpt_loader_wait_ns(loader) < 60000000000u);
    bpt_loader_destroy(loader);
}

static void does_not_depend_on_threads(void **state) {
    const subject *s = *state;
    const size_t size = (size_t)COUNT * (RECORD + 1);
    float *one = malloc(size * sizeof *one), *many = malloc(size * sizeof *many);
    assert_non_null(one);
    assert_non_null(many);
    const char *const lists[] = {"none", "crop=2,flip"};
    for (size_t list = 0; list < 2; list++) {
        take_pass(s, lists[list], 0, 1, 1, one);
        const uint32_t cases[][2] = {{1, 4}, {2, 2}, {4, 3}, {8, 32}};
        for (size_t i = 0; i < 4; i++) {
            take_pass(s, lists[list], 0, cases[i][0], cases[i][1], many);
            assert_memory_equal(one, many, size * sizeof *one);
        }
    }
    free(one);
    free(many);
}

/* Augmented images keep their labels and are others in each pass; without augmentation the pass
 * makes no difference. */
static void augments_each_pass_anew(void **state) {
    const subject *s = *state;
    const size_t size = (size_t)COUNT * (RECORD + 1);
    float *pass[3];
    for (int i = 0; i < 3; i++) assert_non_null(pass[i] = malloc(size * sizeof **pass));
    take_pass(s, "none", 0, 2, 3, pass[0]);
    take_pass(s, "none", 1, 2, 3, pass[1]);
    assert_memory_equal(pass[0], pass[1], size * sizeof **pass);
    take_pass(s, "crop=2,flip", 0, 2, 3, pass[1]);
    take_pass(s, "crop=2,flip", 1, 2, 3, pass[2]);
    int n_unlike[2] = {0, 0};
    for (size_t i = 0; i < size; i += RECORD + 1) {
        for (int p = 0; p < 2; p++) {
            assert_true(pass[p][i + RECORD] == pass[p + 1][i + RECORD]);
            n_unlike[p] += memcmp(pass[p] + i, pass[p + 1] + i, RECORD * sizeof **pass) != 0;
        }
    }
    assert_in_range(n_unlike[0], COUNT * 9 / 10, COUNT); /* one in 50 stays as it is */
    assert_in_range(n_unlike[1], COUNT * 9 / 10, COUNT);
    for (int i = 0; i < 3; i++) free(pass[i]);
}

static void refuses_too_small_images(void **state) {
    const subject *s = *state;
    bpt_loader *loader;
    bpt_loader_options o = BPT_LOADER_OPTIONS_INIT;
    assert_int_equal(bpt_augment_parse("crop=5", &o.augment), BPT_OK);
    assert_int_equal(bpt_loader_create(s->dataset, s->split, &o, &loader), BPT_EUSAGE);
}

static void keeps_lent_batches(void **state) {
    const subject *s = *state;
    bpt_loader *loader = create(s, 2, 4, false);
    bpt_batch held, batch;
    uint32_t index = 42;
    assert_int_equal(bpt_loader_request(loader, &index, NULL, 1), BPT_OK);
    assert_int_equal(bpt_loader_next(loader, &held), BPT_OK);
    for (uint32_t i = 0; i < 3; i++)
        assert_int_equal(bpt_loader_request(loader, &i, NULL, 1), BPT_OK);
    for (uint32_t i = 0; i < 3; i++) {
        assert_int_equal(bpt_loader_next(loader, &batch), BPT_OK);
        expect_batch(s, &batch, &i, 1, false);
        bpt_loader_release(loader, &batch);
    }
    expect_batch(s, &held, &index, 1, false);
    assert_int_equal(bpt_loader_room(loader), 0);
    bpt_loader_release(loader, &held);
    assert_int_equal(bpt_loader_room(loader), 4);
    bpt_loader_destroy(loader);
}

/* A damaged record spoils its own batch only. */
static void reports_damage(void **state) {
    subject *s = *state;
    const uint8_t *pixels;
    uint32_t label;
    char file[100], content[COUNT * RECORD * 2];
    snprintf(file, sizeof file, "%s/data.mdb", s->place.dataset);
    const int fd = open(file, O_RDWR);
    assert_true(fd >= 0);
    assert_int_equal(bpt_dataset_get(s->dataset, s->split, 250, &pixels, &label), BPT_OK);
    const ssize_t size = pread(fd, content, sizeof content, 0);
    assert_true(size > 0);
    const char *found = memmem(content, (size_t)size, pixels, RECORD);
    assert_non_null(found);
    const char changed = (char)(*found + 1);
    assert_int_equal(pwrite(fd, &changed, 1, found - content), 1);
    /* Opened anew, since this process has found the value intact before. */
    bpt_dataset_close(s->dataset);
    assert_int_equal(bpt_dataset_open(s->place.dataset, &s->dataset), BPT_OK);
    assert_int_equal(bpt_dataset_find(s->dataset, "train", &s->split), BPT_OK);
    bpt_loader *loader = create(s, 2, 4, false);
    bpt_batch batch;
    const uint32_t good[2] = {0, 499}, bad[2] = {1, 250};
    assert_int_equal(bpt_loader_request(loader, good, NULL, 2), BPT_OK);
    assert_int_equal(bpt_loader_request(loader, bad, NULL, 2), BPT_OK);
    assert_int_equal(bpt_loader_request(loader, good + 1, NULL, 1), BPT_OK);
    assert_int_equal(bpt_loader_next(loader, &batch), BPT_OK);
    bpt_loader_release(loader, &batch);
    assert_int_equal(bpt_loader_next(loader, &batch), BPT_ECORRUPT);
    assert_non_null(strstr(bpt_error_last()->text, "split train, records"));
    assert_int_equal(bpt_loader_next(loader, &batch), BPT_OK);
    expect_batch(s, &batch, good + 1, 1, false);
    bpt_loader_release(loader, &batch);
    assert_int_equal(bpt_loader_room(loader), 4);
    bpt_loader_destroy(loader);
    assert_int_equal(pwrite(fd, found, 1, found - content), 1);
    close(fd);
}

static void survives_failed_allocations(void **state) {
    const subject *s = *state;
    const uint64_t live = bpt_memory_live();
    bpt_loader_options o = BPT_LOADER_OPTIONS_INIT;
    assert_int_equal(bpt_augment_parse("crop=2,mixup=1", &o.augment), BPT_OK);
    bpt_loader *loader;
    bpt_status status = BPT_ENOMEM;
    for (int64_t n = 0; status != BPT_OK; n++) {
        bpt_memory_fail_at(n);
        status = bpt_loader_create(s->dataset, s->split, &o, &loader);
        bpt_memory_fail_at(-1);
        if (status == BPT_OK) break;
        assert_int_equal(status, BPT_ENOMEM);
        assert_int_equal(bpt_memory_live(), live);
    }
    bpt_loader_destroy(loader);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(gives_what_was_requested),    cmocka_unit_test(refuses_wrong_requests),
        cmocka_unit_test(does_not_depend_on_threads),  cmocka_unit_test(keeps_lent_batches),
        cmocka_unit_test(survives_failed_allocations), cmocka_unit_test(reports_damage),
        cmocka_unit_test(augments_each_pass_anew),     cmocka_unit_test(refuses_too_small_images),
    };
    return made_run_group(tests, set_up, tear_down);
}
