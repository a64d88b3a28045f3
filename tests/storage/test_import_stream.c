/* The threaded stream of records, over an importer made here. ctest: TIMEOUT=60 */
#include "base/memory.h"
#include "storage/importers/import_stream.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

/* An importer whose items are what the test wants. */
typedef struct made {
    uint64_t count;
    uint64_t next;
    uint64_t breaks_at;             /* next() fails there; UINT64_MAX: nowhere */
    uint32_t side;                  /* of the images */
    bool (*is_bad)(uint64_t i);     /* NULL: none is */
    uint32_t (*channels)(uint64_t); /* NULL: 1 */
    uint32_t odd_size;              /* this item has another size; 0: none */
    bool no_memory;                 /* bad ones fail with BPT_ENOMEM */
    atomic_int in_next;             /* threads in there */
    atomic_uint_fast64_t named;
} made;

static bpt_status made_next(void *import, bpt_import_item *item) {
    made *m = import;
    if (atomic_fetch_add(&m->in_next, 1) != 0) abort(); /* one thread at a time */
    bpt_status status = BPT_OK;
    item->number = m->next++;
    atomic_store(&m->named, m->next);
    if (item->number == m->breaks_at) status = bpt_fail(BPT_EDATA, "the source is cut");
    atomic_fetch_sub(&m->in_next, 1);
    return status;
}

static bpt_status made_load(void *import, const bpt_import_item *item, bpt_import_buffer *buffer,
                            bpt_import_image *image) {
    const made *m = import;
    const uint64_t i = item->number;
    if (i % 7 == 0) usleep(300); /* so that threads overtake one another */
    if (m->is_bad && m->is_bad(i))
        return bpt_fail(m->no_memory ? BPT_ENOMEM : BPT_EDATA, "item %llu is bad",
                        (unsigned long long)i);
    const uint32_t side = m->odd_size && i == m->odd_size ? m->side + 1 : m->side;
    const uint32_t C = m->channels ? m->channels(i) : 1;
    const size_t size = (size_t)C * side * side;
    BPT_TRY(BPT_GROW("made image", size, &buffer->bytes, &buffer->capacity));
    for (size_t p = 0; p < size; p++) buffer->bytes[p] = (uint8_t)(i * 13 + p * 7);
    *image = (bpt_import_image){.label = (uint32_t)(i % 5),
                                .bytes = buffer->bytes,
                                .size = size,
                                .C = C,
                                .H = side,
                                .W = side};
    return BPT_OK;
}

static void made_describe(void *import, const bpt_import_item *item, char *name, size_t size) {
    (void)import;
    snprintf(name, size, "item %llu", (unsigned long long)item->number);
}

static const bpt_importer made_importer = {
    .name = "made", .next = made_next, .load = made_load, .describe = made_describe};

static bpt_import_stream *open_stream(made *m, unsigned n_threads, uint32_t C) {
    m->next = 0;
    const bpt_import_plan plan = {.count = m->count, .n_classes = 5};
    const bpt_import_stream_options options = {.fit = {.C = C}, .n_threads = n_threads};
    bpt_import_stream *stream;
    assert_int_equal(bpt_import_stream_open(&made_importer, m, &plan, &options, &stream), BPT_OK);
    return stream;
}

static bpt_status next(bpt_import_stream *stream, bpt_import_record *record) {
    return bpt_import_stream_next(stream, record);
}

static int tear_down(void **state) {
    (void)state;
    return bpt_memory_live() == 0 ? 0 : 1;
}

static bool every_ninth(uint64_t i) {
    return i % 9 == 4;
}

static const unsigned thread_counts[] = {1, 2, 3, 8};

static void order_is_that_of_the_items(void **state) {
    (void)state;
    for (size_t t = 0; t < sizeof thread_counts / sizeof *thread_counts; t++)
        for (uint32_t side = 4; side <= 700; side *= 13) { /* many to a batch, few, one */
            made m = {.count = side < 600 ? 1500 : 40, .breaks_at = UINT64_MAX, .side = side};
            bpt_import_stream *stream = open_stream(&m, thread_counts[t], 0);
            for (uint64_t i = 0; i < m.count; i++) {
                bpt_import_record record;
                assert_int_equal(next(stream, &record), BPT_OK);
                assert_null(record.error);
                assert_int_equal(record.number, i);
                assert_int_equal(record.label, i % 5);
                assert_int_equal(record.H, side);
                for (size_t p = 0; p < (size_t)side * side; p += 11)
                    assert_int_equal(record.pixels[p], (uint8_t)(i * 13 + p * 7));
            }
            bpt_import_stream_close(stream);
        }
}

static void bad_items_come_in_order(void **state) {
    (void)state;
    for (size_t t = 0; t < sizeof thread_counts / sizeof *thread_counts; t++) {
        made m = {.count = 300, .breaks_at = UINT64_MAX, .side = 4, .is_bad = every_ninth};
        bpt_import_stream *stream = open_stream(&m, thread_counts[t], 0);
        for (uint64_t i = 0; i < m.count; i++) {
            bpt_import_record record;
            char text[48];
            assert_int_equal(next(stream, &record), BPT_OK);
            assert_int_equal(record.number, i);
            assert_int_equal(record.error != NULL, every_ninth(i));
            assert_int_equal(record.pixels == NULL, every_ninth(i));
            if (!record.error) continue;
            snprintf(text, sizeof text, "item %llu is bad", (unsigned long long)i);
            assert_int_equal(record.error->status, BPT_EDATA);
            assert_string_equal(record.error->text, text);
        }
        bpt_import_stream_close(stream);
    }
}

/* Takes records until one cannot be had. @return how many came; its status is in *status */
static uint64_t count_until_error(made *m, unsigned n_threads, uint32_t C, bpt_status *status) {
    bpt_import_stream *stream = open_stream(m, n_threads, C);
    uint64_t n = 0;
    bpt_import_record record;
    *status = BPT_OK;
    for (; n < m->count; n++) {
        *status = next(stream, &record);
        if (*status != BPT_OK) break;
    }
    bpt_import_stream_close(stream);
    return n;
}

static bool only_sixth(uint64_t i) {
    return i == 6;
}

static void what_no_item_can_help_ends_it(void **state) {
    (void)state;
    for (size_t t = 0; t < sizeof thread_counts / sizeof *thread_counts; t++) {
        bpt_status status;
        made cut = {.count = 300, .breaks_at = 123, .side = 4};
        assert_int_equal(count_until_error(&cut, thread_counts[t], 0, &status), 123);
        assert_int_equal(status, BPT_EDATA);
        assert_string_equal(bpt_error_last()->text, "the source is cut");
        made poor = {.count = 300,
                     .breaks_at = UINT64_MAX,
                     .side = 4,
                     .is_bad = only_sixth,
                     .no_memory = true};
        assert_int_equal(count_until_error(&poor, thread_counts[t], 0, &status), 6);
        assert_int_equal(status, BPT_ENOMEM);
    }
}

static uint32_t colour_first(uint64_t i) {
    return i % 2 ? 1 : 3;
}

static uint32_t grey_first(uint64_t i) {
    return i < 77 ? 1 : 3;
}

static void shapes_must_agree(void **state) {
    (void)state;
    bpt_status status;
    made odd = {.count = 100, .breaks_at = UINT64_MAX, .side = 4, .odd_size = 70};
    assert_int_equal(count_until_error(&odd, 3, 0, &status), 70);
    assert_int_equal(status, BPT_EDATA);
    assert_string_equal(bpt_error_last()->text,
                        "item 70 has 5x5 pixels (HxW), the images before it have 4x4");
    assert_non_null(strstr(bpt_error_last()->hint, "--resize"));
    made mixed = {.count = 100, .breaks_at = UINT64_MAX, .side = 4, .channels = grey_first};
    assert_int_equal(count_until_error(&mixed, 3, 0, &status), 77);
    assert_int_equal(status, BPT_EDATA);
    assert_string_equal(bpt_error_last()->text,
                        "item 77 has 3 channels, the images before it have 1");
    assert_int_equal(count_until_error(&mixed, 3, 1, &status), 100);
    assert_int_equal(count_until_error(&mixed, 3, 3, &status), 100);
}

static void grey_among_colours_becomes_colour(void **state) {
    (void)state;
    enum { SIDE = 4, PLANE = SIDE * SIDE };
    for (uint32_t C = 0; C <= 3; C += 3) {
        made m = {.count = 50, .breaks_at = UINT64_MAX, .side = SIDE, .channels = colour_first};
        bpt_import_stream *stream = open_stream(&m, 2, C);
        for (uint64_t i = 0; i < m.count; i++) {
            bpt_import_record record;
            assert_int_equal(next(stream, &record), BPT_OK);
            assert_int_equal(record.C, 3);
            for (size_t p = 0; p < 3 * PLANE; p++) {
                const size_t from = i % 2 ? p % PLANE : p;
                assert_int_equal(record.pixels[p], (uint8_t)(i * 13 + from * 7));
            }
        }
        bpt_import_stream_close(stream);
    }
}

static uint32_t three(uint64_t i) {
    (void)i;
    return 3;
}

static void colour_becomes_grey_as_luma(void **state) {
    (void)state;
    made m = {.count = 20, .breaks_at = UINT64_MAX, .side = 4, .channels = three};
    bpt_import_stream *stream = open_stream(&m, 2, 1);
    for (uint64_t i = 0; i < m.count; i++) {
        bpt_import_record record;
        assert_int_equal(next(stream, &record), BPT_OK);
        assert_int_equal(record.C, 1);
        for (size_t p = 0; p < 16; p++) {
            const double y = .299 * (uint8_t)(i * 13 + p * 7) +
                             .587 * (uint8_t)(i * 13 + (p + 16) * 7) +
                             .114 * (uint8_t)(i * 13 + (p + 32) * 7);
            assert_true(record.pixels[p] <= y + .5 + 1e-9 && record.pixels[p] >= y - .5 - 1e-9);
        }
    }
    bpt_import_stream_close(stream);
}

static void ends_at_any_moment(void **state) {
    (void)state;
    for (size_t t = 0; t < sizeof thread_counts / sizeof *thread_counts; t++)
        for (uint64_t stop = 0; stop < 90; stop += 11) {
            made m = {.count = 100000, .breaks_at = UINT64_MAX, .side = 60};
            bpt_import_stream *stream = open_stream(&m, thread_counts[t], 0);
            bpt_import_record record;
            for (uint64_t i = 0; i < stop; i++) assert_int_equal(next(stream, &record), BPT_OK);
            bpt_import_stream_close(stream);
        }
}

/* Small images by bytes, large ones by their number. */
static void items_in_flight_are_bounded(void **state) {
    (void)state;
    enum { THREADS = 2 };
    static const struct {
        uint32_t side;
        uint64_t most;
    } cases[] = {{400, ((uint64_t)48 << 20) / (400 * 400) + 6}, {3000, 3 * THREADS}};
    for (size_t c = 0; c < 2; c++) {
        made m = {.count = 100000, .breaks_at = UINT64_MAX, .side = cases[c].side};
        bpt_import_stream *stream = open_stream(&m, THREADS, 0);
        bpt_import_record record;
        for (uint64_t i = 0; i < 16; i++) {
            assert_int_equal(next(stream, &record), BPT_OK);
            if (i % 8 == 0) usleep(20000); /* the workers run as far ahead as they may */
            assert_in_range(atomic_load(&m.named) - i, 1, cases[c].most);
        }
        bpt_import_stream_close(stream);
    }
}

static void thread_counts_are_checked(void **state) {
    (void)state;
    made m = {.count = 3};
    const bpt_import_plan plan = {.count = 3, .n_classes = 5};
    bpt_import_stream *stream;
    for (unsigned n = 0; n <= BPT_IMPORT_MAX_THREADS + 1; n += BPT_IMPORT_MAX_THREADS + 1)
        assert_int_equal(bpt_import_stream_open(&made_importer, &m, &plan,
                                                &(bpt_import_stream_options){.n_threads = n},
                                                &stream),
                         BPT_EUSAGE);
}

/* Item 7 was changed at second 10. */
static bool made_changed(void *import, const bpt_import_item *item, struct timespec *when) {
    (void)import;
    *when = (struct timespec){.tv_sec = item->number == 7 ? 10 : 3};
    return true;
}

/* Items that are done with are named, not loaded; the others must be like them. */
static void begins_behind_what_is_done(void **state) {
    (void)state;
    bpt_importer importer = made_importer;
    importer.changed = made_changed;
    const bpt_import_plan plan = {.count = 30, .n_classes = 5};
    bpt_import_stream_options o = {
        .C = 1, .H = 4, .W = 4, .n_threads = 2, .begin = 8, .since = {.tv_sec = 5}};
    bpt_import_stream *stream;
    bpt_import_record record;
    made m = {.count = 30, .breaks_at = UINT64_MAX, .side = 4};
    assert_int_equal(bpt_import_stream_open(&importer, &m, &plan, &o, &stream), BPT_EDATA);
    assert_non_null(strstr(bpt_error_last()->text, "item 7 is stored, and was changed after"));
    o.since.tv_sec = 10;
    for (o.begin = 0; o.begin <= plan.count; o.begin += 10) {
        m.next = 0;
        assert_int_equal(bpt_import_stream_open(&importer, &m, &plan, &o, &stream), BPT_OK);
        for (uint64_t i = o.begin; i < plan.count; i++) {
            assert_int_equal(next(stream, &record), BPT_OK);
            assert_int_equal(record.number, i);
            assert_int_equal(record.pixels[1], (uint8_t)(i * 13 + 7));
        }
        bpt_import_stream_close(stream);
    }
    assert_int_equal(bpt_import_stream_open(&importer, &m, &plan, &o, &stream), BPT_EUSAGE);
    o.begin = 20;
    o.H = 5;
    m.next = 0;
    assert_int_equal(bpt_import_stream_open(&importer, &m, &plan, &o, &stream), BPT_OK);
    assert_int_equal(next(stream, &record), BPT_EDATA);
    assert_non_null(
        strstr(bpt_error_last()->text, "has 4x4 pixels (HxW), the images before it have 5x4"));
    bpt_import_stream_close(stream);
    o.begin = 20;
    m.next = 0;
    m.breaks_at = 15;
    assert_int_equal(bpt_import_stream_open(&importer, &m, &plan, &o, &stream), BPT_EDATA);
    assert_non_null(strstr(bpt_error_last()->text, "the source is cut"));
}

int main(void) {
#define TEST(name) cmocka_unit_test_teardown(name, tear_down)
    const struct CMUnitTest tests[] = {
        TEST(order_is_that_of_the_items),
        TEST(bad_items_come_in_order),
        TEST(what_no_item_can_help_ends_it),
        TEST(shapes_must_agree),
        TEST(grey_among_colours_becomes_colour),
        TEST(colour_becomes_grey_as_luma),
        TEST(ends_at_any_moment),
        TEST(items_in_flight_are_bounded),
        TEST(thread_counts_are_checked),
        TEST(begins_behind_what_is_done),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
