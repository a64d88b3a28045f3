/* Augmented batches: an image of a pass is the same whatever the number of threads, of batches
 * ahead and of ranks that share the split, and whatever else is in its batch. ctest: TIMEOUT=60 */
#include "base/memory.h"
#include "base/random.h"
#include "storage/augmentations/augmentation.h"
#include "storage/loader/loader.h"
#include "tests/storage/batch_floats.h"
#include "tests/storage/made_dataset.h"
#include "tests/storage/made_group.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

enum { C = 3, H = 14, W = 11, RECORD = C * H * W, COUNT = 230, MAX_LISTS = 32 };
enum { ROW = RECORD + 2 }; /* an image, and what it is mixed with: second label and its part */

typedef struct subject {
    made_place place;
    bpt_dataset *dataset;
    const bpt_split *split;
    float *expected, *found; /* shape [COUNT, ROW], in the order of the records */
    char lists[MAX_LISTS][200];
    int n_lists;
} subject;

/* Each kind that is for raw images alone, and all of them one after another. */
static void write_lists(subject *s) {
    const bpt_augmentation *kind;
    char all[200] = "";
    for (size_t k = 0; (kind = bpt_augmentation_at(k)); k++) {
        if (bpt_augmentation_wants_encoded(kind)) continue;
        snprintf(s->lists[s->n_lists++], 200, "%s", kind->example);
        snprintf(all + strlen(all), sizeof all - strlen(all), "%s%s", all[0] ? "," : "",
                 kind->example);
    }
    memcpy(s->lists[s->n_lists++], all, sizeof all);
}

static int set_up(void **state) {
    static subject s;
    s.place = made_place_create();
    const bpt_writer_options o = made_options("train", C, H, W);
    if (made_split(s.place.dataset, &o, 3, COUNT) != BPT_OK) return 1;
    if (bpt_dataset_open(s.place.dataset, &s.dataset) != BPT_OK) return 1;
    if (bpt_dataset_find(s.dataset, "train", &s.split) != BPT_OK) return 1;
    s.expected = malloc(sizeof(float) * COUNT * ROW);
    s.found = malloc(sizeof(float) * COUNT * ROW);
    if (!s.expected || !s.found) return 1;
    write_lists(&s);
    *state = &s;
    return 0;
}

static int tear_down(void **state) {
    subject *s = *state;
    free(s->expected);
    free(s->found);
    bpt_dataset_close(s->dataset);
    made_place_remove(&s->place);
    return 0;
}

/* Takes every n_ranks-th record of an order, as rank number rank, into its place in @p out. */
static void take_share(const subject *s, const bpt_loader_options *o, uint32_t pass, uint32_t rank,
                       uint32_t n_ranks, float *out) {
    uint32_t order[COUNT], passes[COUNT], n = 0, requested = 0;
    bpt_loader *loader;
    bpt_random_permutation(11, BPT_PURPOSE_TEST, n_ranks, order, COUNT);
    for (uint32_t i = rank; i < COUNT; i += n_ranks) {
        passes[n] = pass;
        order[n++] = order[i];
    }
    assert_int_equal(bpt_loader_create(s->dataset, s->split, o, &loader), BPT_OK);
    const uint64_t allocations = bpt_memory_allocations();
    for (uint32_t taken = 0; taken < n;) {
        while (requested < n && bpt_loader_room(loader) > 0) {
            const uint32_t more = n - requested < o->batch ? n - requested : o->batch;
            assert_int_equal(bpt_loader_request(loader, order + requested, passes, more), BPT_OK);
            requested += more;
        }
        bpt_batch batch;
        assert_int_equal(bpt_loader_next(loader, &batch), BPT_OK);
        for (uint32_t i = 0; i < batch.n; i++, taken++) {
            assert_int_equal(batch.labels[i], made_label(3, order[taken], 3));
            float *row = out + (size_t)order[taken] * ROW;
            batch_floats(&batch, i, C, H, W, row);
            row[RECORD] = batch.second_labels ? (float)batch.second_labels[i] : -1;
            row[RECORD + 1] = batch.second_labels ? batch.second_parts[i] : 0;
        }
        bpt_loader_release(loader, &batch);
    }
    assert_int_equal(bpt_memory_allocations(), allocations);
    bpt_loader_destroy(loader);
}

static void take_as(const subject *s, bool bytes, const char *list, uint32_t pass, uint32_t n_ranks,
                    uint32_t n_threads, uint32_t depth, uint32_t size, float *out) {
    const double mean[C] = {0.48, 0.25, 0.61}, std[C] = {0.2, 0.31, 0.27};
    bpt_loader_options o = {.batch = size,
                            .n_threads = n_threads,
                            .depth = depth,
                            .as_images = bytes,
                            .mean = mean,
                            .std = std,
                            .seed = 5};
    assert_int_equal(bpt_augment_parse(list, &o.augment), BPT_OK);
    memset(out, 0xff, sizeof(float) * COUNT * ROW); /* no number: none may be left */
    for (uint32_t rank = 0; rank < n_ranks; rank++) take_share(s, &o, pass, rank, n_ranks, out);
}

static void take(const subject *s, const char *list, uint32_t pass, uint32_t n_ranks,
                 uint32_t n_threads, uint32_t depth, uint32_t size, float *out) {
    take_as(s, false, list, pass, n_ranks, n_threads, depth, size, out);
}

/* Bytes, moved and normalised by whoever takes them, are the floats of a loader that does it. */
static void is_the_same_in_bytes(void **state) {
    const subject *s = *state;
    static const char *const more[] = {"none", "crop=4,flip,vflip,shift=20,crop=10",
                                       "flip,jitter,crop=2", "crop=2,flip,mixup=1"};
    for (int i = 0; i < s->n_lists + 4; i++) {
        const char *list = i < s->n_lists ? s->lists[i] : more[i - s->n_lists];
        take(s, list, 3, 1, 2, 4, 16, s->expected);
        take_as(s, true, list, 3, 2, 2, 3, 7, s->found);
        assert_memory_equal(s->expected, s->found, sizeof(float) * COUNT * ROW);
    }
}

/* What is left to whoever takes the bytes, and how many images there are. */
static void says_what_is_left(void **state) {
    const subject *s = *state;
    static const struct {
        const char *list;
        bool moves;
    } cases[] = {{"none", false},       {"flip", true},         {"crop=2,flip", true},
                 {"jitter,flip", true}, {"flip,jitter", false}, {"flip,cutmix=1", false}};
    const uint32_t indices[3] = {7, 0, 9};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        bpt_loader_options o = {.batch = 5, .n_threads = 1, .depth = 1, .as_images = true};
        bpt_loader *loader;
        bpt_batch batch;
        assert_int_equal(bpt_augment_parse(cases[i].list, &o.augment), BPT_OK);
        assert_int_equal(bpt_loader_create(s->dataset, s->split, &o, &loader), BPT_OK);
        assert_int_equal(bpt_loader_request(loader, indices, NULL, 3), BPT_OK);
        assert_int_equal(bpt_loader_next(loader, &batch), BPT_OK);
        const bpt_images *images = batch.input;
        assert_null(batch.pixels);
        assert_int_equal(images->n, 3);
        assert_int_equal(images->moves != NULL, cases[i].moves);
        assert_int_equal(batch.labels[3], -1);
        bpt_loader_release(loader, &batch);
        bpt_loader_destroy(loader);
    }
}

static void does_not_depend_on_threads_and_ranks(void **state) {
    const subject *s = *state;
    const struct {
        uint32_t n_ranks, n_threads, depth, size;
    } cases[] = {{1, 2, 4, 16}, {1, 5, 32, 7}, {2, 1, 2, 16}, {3, 2, 3, 5}, {4, 4, 9, 1}};
    for (int list = 0; list < s->n_lists; list++) {
        take(s, s->lists[list], 1, 1, 1, 1, 16, s->expected);
        for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
            take(s, s->lists[list], 1, cases[i].n_ranks, cases[i].n_threads, cases[i].depth,
                 cases[i].size, s->found);
            assert_memory_equal(s->expected, s->found, sizeof(float) * COUNT * ROW);
        }
    }
}

/* In another pass at least a quarter of the images are others, where half are left alone twice. */
static void is_another_in_each_pass(void **state) {
    const subject *s = *state;
    for (int list = 0; list < s->n_lists; list++) {
        int n_unlike = 0;
        take(s, s->lists[list], 1, 1, 2, 4, 16, s->expected);
        take(s, s->lists[list], 2, 1, 2, 4, 16, s->found);
        for (size_t i = 0; i < COUNT; i++)
            n_unlike +=
                memcmp(s->expected + i * ROW, s->found + i * ROW, RECORD * sizeof *s->found) != 0;
        assert_in_range(n_unlike, COUNT / 4, COUNT);
    }
}

static void refuses_what_is_for_encoded_images(void **state) {
    const subject *s = *state;
    bpt_loader_options o = BPT_LOADER_OPTIONS_INIT;
    bpt_loader *loader;
    assert_int_equal(bpt_augment_parse("flip,window", &o.augment), BPT_OK);
    assert_int_equal(bpt_loader_create(s->dataset, s->split, &o, &loader), BPT_EUSAGE);
    assert_non_null(strstr(bpt_error_last()->text, "window is for images"));
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(does_not_depend_on_threads_and_ranks),
        cmocka_unit_test(is_another_in_each_pass),
        cmocka_unit_test(is_the_same_in_bytes),
        cmocka_unit_test(says_what_is_left),
        cmocka_unit_test(refuses_what_is_for_encoded_images),
    };
    return made_run_group(tests, set_up, tear_down);
}
