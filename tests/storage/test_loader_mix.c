/* Batches of mixed images: each image with one of the whole split, both as the rest of the list
 * leaves them in that pass; raw and encoded. ctest: TIMEOUT=60 */
#include "base/memory.h"
#include "base/random.h"
#include "storage/loader/loader.h"
#include "storage/loader/pass_image.h"
#include "tests/storage/augment_subject.h"
#include "tests/storage/made_dataset.h"
#include "tests/storage/made_encoded.h"
#include "tests/storage/made_group.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

enum { C = 3, H = 14, W = 11, RECORD = C * H * W, RAW = 150, ENCODED = 40, SEED = 5, BATCH = 16 };

typedef struct source {
    made_place place;
    bpt_dataset *dataset;
    const bpt_split *split;
    uint32_t n;
} source;

typedef struct subject {
    source raw, encoded;
} subject;

/* A pass over a split, in the order of its records. */
typedef struct images {
    uint8_t pixels[RAW][RECORD];
    int32_t labels[RAW], second_labels[RAW];
    float second_parts[RAW];
} images;

static bpt_status open_source(source *s) {
    BPT_TRY(bpt_dataset_open(s->place.dataset, &s->dataset));
    return bpt_dataset_find(s->dataset, "train", &s->split);
}

static int set_up(void **state) {
    static subject s;
    s.raw = (source){.place = made_place_create(), .n = RAW};
    s.encoded = (source){.place = made_place_create(), .n = ENCODED};
    *state = &s;
    const bpt_writer_options raw = made_options("train", C, H, W);
    const bpt_writer_options encoded = made_encoded_options("train", C);
    return made_split(s.raw.place.dataset, &raw, 3, RAW) != BPT_OK ||
           made_encoded_split(s.encoded.place.dataset, &encoded, ENCODED) != BPT_OK ||
           open_source(&s.raw) != BPT_OK || open_source(&s.encoded) != BPT_OK ||
           bpt_dataset_bring_to(s.encoded.dataset, H, W) != BPT_OK;
}

static int tear_down(void **state) {
    subject *s = *state;
    bpt_dataset_close(s->raw.dataset);
    bpt_dataset_close(s->encoded.dataset);
    made_place_remove(&s->raw.place);
    made_place_remove(&s->encoded.place);
    return 0;
}

/* ---- batches ---- */

static void keep(const bpt_batch *batch, uint32_t first, images *out) {
    for (uint32_t i = 0; i < batch->n; i++) {
        const float *pixels = batch->pixels + (size_t)i * RECORD;
        for (size_t p = 0; p < RECORD; p++) {
            out->pixels[first + i][p] = (uint8_t)lroundf(255 * pixels[p]);
            assert_true(fabsf(255 * pixels[p] - out->pixels[first + i][p]) < 1e-3f);
        }
        out->labels[first + i] = batch->labels[i];
        out->second_labels[first + i] = batch->second_labels ? batch->second_labels[i] : -1;
        out->second_parts[first + i] = batch->second_labels ? batch->second_parts[i] : 0;
    }
}

/* @param partners shape [n_partners], may be NULL */
static void take(const source *s, const char *list, const uint32_t *partners, uint32_t n_partners,
                 uint32_t pass, images *out) {
    const bpt_loader_options o = {.batch = BATCH,
                                  .n_threads = 2,
                                  .depth = 1,
                                  .augment = subject_list(list),
                                  .seed = SEED,
                                  .partners = partners,
                                  .n_partners = n_partners};
    bpt_loader *loader;
    assert_int_equal(bpt_loader_create(s->dataset, s->split, &o, &loader), BPT_OK);
    for (uint32_t first = 0; first < s->n; first += BATCH) {
        const uint32_t n = s->n - first < BATCH ? s->n - first : BATCH;
        uint32_t indices[BATCH], passes[BATCH];
        bpt_batch batch;
        for (uint32_t i = 0; i < n; i++) {
            indices[i] = first + i;
            passes[i] = pass;
        }
        assert_int_equal(bpt_loader_request(loader, indices, passes, n), BPT_OK);
        assert_int_equal(bpt_loader_next(loader, &batch), BPT_OK);
        keep(&batch, first, out);
        bpt_loader_release(loader, &batch);
    }
    bpt_loader_destroy(loader);
}

/* ---- the reference ---- */

/* @param alone the same pass without the mixing */
static void expect_mixed(const source *s, const char *list, const uint32_t *partners,
                         uint32_t n_partners, uint32_t pass, const images *alone,
                         const images *found) {
    const bpt_augment a = subject_list(list);
    for (uint32_t i = 0; i < s->n; i++) {
        uint8_t expected[RECORD];
        bpt_random random = bpt_random_stream(SEED, BPT_PURPOSE_MIX, (uint64_t)pass << 32 | i);
        const uint32_t drawn = bpt_random_below(&random, partners ? n_partners : s->n);
        const uint32_t partner = partners ? partners[drawn] : drawn;
        memcpy(expected, alone->pixels[i], RECORD);
        const float part = bpt_augment_mix(&a, &random, C, H, W, expected, alone->pixels[partner]);
        assert_memory_equal(found->pixels[i], expected, RECORD);
        assert_int_equal(found->labels[i], alone->labels[i]);
        assert_int_equal(found->second_labels[i], alone->labels[partner]);
        assert_true(found->second_parts[i] == part);
    }
}

static void check(const source *s, const char *before, const char *mixing, const uint32_t *partners,
                  uint32_t n_partners) {
    static images alone, found;
    char list[200];
    snprintf(list, sizeof list, "%s%s%s", before, *before ? "," : "", mixing);
    for (uint32_t pass = 0; pass < 3; pass++) {
        take(s, *before ? before : "none", NULL, 0, pass, &alone);
        take(s, list, partners, n_partners, pass, &found);
        expect_mixed(s, list, partners, n_partners, pass, &alone, &found);
    }
}

static void mixes_what_the_list_leaves(void **state) {
    const subject *s = *state;
    check(&s->raw, "", "mixup=0.4", NULL, 0);
    check(&s->raw, "", "cutmix=1", NULL, 0);
    check(&s->raw, "crop=2,flip", "cutmix=1", NULL, 0);
    check(&s->raw, "resized-crop,erase=1", "mixup=1,cutmix=0.5", NULL, 0);
}

static void mixes_encoded_images(void **state) {
    const subject *s = *state;
    check(&s->encoded, "", "cutmix=1", NULL, 0);
    check(&s->encoded, "crop=3", "mixup=1", NULL, 0);
    check(&s->encoded, "resized-crop=0.3,flip", "cutmix=1,mixup=0.2", NULL, 0);
}

static void mixes_with_those_alone_that_are_named(void **state) {
    const subject *s = *state;
    const uint32_t partners[] = {3, 7, 11, 149};
    check(&s->raw, "flip", "mixup=1", partners, 4);
}

/* Over many passes each image meets each one of the split as often: chi squared of all pairs. */
static void meets_the_whole_split(void **state) {
    const subject *s = *state;
    enum { N_PASSES = 3000 };
    static uint32_t n_of[RAW][RAW];
    const bpt__pass_images mixed = {.split = s->raw.split, .seed = SEED};
    const double expected = (double)N_PASSES / RAW, freedom = (double)RAW * (RAW - 1);
    double sum = 0;
    for (uint32_t pass = 0; pass < N_PASSES; pass++)
        for (uint32_t i = 0; i < RAW; i++) n_of[i][bpt__pass_image_partner(&mixed, i, pass)]++;
    for (int i = 0; i < RAW; i++)
        for (int k = 0; k < RAW; k++) sum += pow(n_of[i][k] - expected, 2) / expected;
    assert_true(fabs(sum - freedom) < 4.7 * sqrt(2 * freedom));
}

static void says_what_is_not_there(void **state) {
    const source *s = &((const subject *)*state)->raw;
    bpt_loader_options o = {.batch = BATCH, .n_threads = 1, .depth = 1};
    const uint32_t indices[] = {5, 6, 7};
    bpt_loader *loader;
    bpt_batch batch;
    for (int mixes = 0; mixes < 2; mixes++) {
        o.augment = subject_list(mixes ? "flip,mixup=1" : "flip");
        assert_int_equal(bpt_loader_create(s->dataset, s->split, &o, &loader), BPT_OK);
        assert_int_equal(bpt_loader_request(loader, indices, NULL, 3), BPT_OK);
        assert_int_equal(bpt_loader_next(loader, &batch), BPT_OK);
        if (mixes) {
            for (int i = 0; i < 3; i++) assert_in_range(batch.second_labels[i], 0, 2);
            for (int i = 3; i < BATCH; i++) {
                assert_int_equal(batch.second_labels[i], -1);
                assert_true(batch.second_parts[i] == 0);
            }
        } else {
            assert_null(batch.second_labels);
            assert_null(batch.second_parts);
        }
        bpt_loader_destroy(loader);
    }
}

static void wants_images_to_mix_with(void **state) {
    const source *s = &((const subject *)*state)->raw;
    const uint32_t wrong[] = {0, RAW - 1, RAW};
    bpt_loader_options o = {.batch = BATCH, .n_threads = 1, .depth = 1, .partners = wrong};
    bpt_loader *loader;
    for (int mixes = 0; mixes < 2; mixes++)
        for (o.n_partners = 0; o.n_partners < 4; o.n_partners++) {
            const bool refused = mixes && (o.n_partners == 0 || o.n_partners == 3);
            o.augment = subject_list(mixes ? "mixup=1" : "flip");
            assert_int_equal(bpt_loader_create(s->dataset, s->split, &o, &loader),
                             refused ? BPT_EUSAGE : BPT_OK);
            if (!refused) bpt_loader_destroy(loader);
        }
}

/* @return the bytes that are allocated for a loader, as each allocation says them when it fails */
static size_t allocated(const source *s, const bpt_loader_options *o) {
    size_t sum = 0;
    bpt_loader *loader;
    for (int64_t n = 0;; n++) {
        size_t bytes;
        bpt_memory_fail_at(n);
        const bpt_status status = bpt_loader_create(s->dataset, s->split, o, &loader);
        bpt_memory_fail_at(-1);
        if (status == BPT_OK) break;
        const char *said = strstr(bpt_error_last()->text, "cannot allocate ");
        assert_non_null(said);
        assert_int_equal(sscanf(said, "cannot allocate %zu bytes", &bytes), 1);
        sum += bytes;
    }
    bpt_loader_destroy(loader);
    return sum;
}

/* What an augmentation adds to the plan is what it adds to the allocations. */
static void says_how_much_memory_it_takes(void **state) {
    const source *s = &((const subject *)*state)->raw;
    static const char *const lists[] = {"none", "flip", "cutmix=1", "flip,cutmix=1,mixup=1"};
    bpt_loader_options o = {.batch = BATCH, .n_threads = 3, .depth = 4, .as_images = true};
    const size_t planned = bpt_loader_bytes(&o, RECORD), taken = allocated(s, &o);
    for (int bytes = 1; bytes >= 0; bytes--)
        for (int i = 0; i < 4; i++) {
            o.as_images = bytes;
            o.augment = subject_list(lists[i]);
            const size_t more = bpt_loader_bytes(&o, RECORD) - planned;
            assert_int_equal(allocated(s, &o) - taken, more);
            assert_true((more > 0) == (i > 0 || !bytes));
        }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(mixes_what_the_list_leaves),
        cmocka_unit_test(mixes_encoded_images),
        cmocka_unit_test(mixes_with_those_alone_that_are_named),
        cmocka_unit_test(meets_the_whole_split),
        cmocka_unit_test(says_what_is_not_there),
        cmocka_unit_test(wants_images_to_mix_with),
        cmocka_unit_test(says_how_much_memory_it_takes),
    };
    return made_run_group(tests, set_up, tear_down);
}
