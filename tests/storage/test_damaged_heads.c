/* The two head pages, which LMDB believes before anything else: whatever stands in them, a dataset
 * is read right or is damaged (exit status 3); nothing crashes, and no other error is said. ctest:
 * TIMEOUT=60 */
#include "base/status.h"
#include "tests/storage/made_dataset.h"
#include "tests/storage/made_group.h"

#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <unistd.h>

#include <cmocka.h>

/* Records of a page and a half, so that values have several pages. */
enum {
    COUNT = 40,
    SIDE = 80,
    PAGE = 4096,
    HEADER = 16,
    HEAD_WORDS = 17,
    MAP_WORD = 2,
    LAST_WORD = 15
};

typedef struct subject {
    made_place place;
    int fd;
    uint64_t words[2][HEAD_WORDS]; /* of the heads, as they were */
} subject;

static off_t word_at(size_t head, size_t word) {
    return (off_t)(head * PAGE + HEADER + word * sizeof(uint64_t));
}

static int set_up(void **state) {
    static subject s;
    char file[120];
    s.place = made_place_create();
    const bpt_writer_options o = made_options("train", 1, SIDE, SIDE);
    if (made_split(s.place.dataset, &o, 1, COUNT) != BPT_OK) return 1;
    snprintf(file, sizeof file, "%s/data.mdb", s.place.dataset);
    s.fd = open(file, O_RDWR);
    *state = &s;
    for (size_t h = 0; h < 2; h++)
        if (pread(s.fd, s.words[h], sizeof s.words[h], word_at(h, 0)) != sizeof s.words[h])
            return 1;
    return 0;
}

static int tear_down(void **state) {
    const subject *s = *state;
    close(s->fd);
    made_place_remove(&s->place);
    return 0;
}

static void put_word(const subject *s, size_t head, size_t word, uint64_t value) {
    assert_int_equal(pwrite(s->fd, &value, sizeof value, word_at(head, word)), sizeof value);
}

static void restore(const subject *s) {
    for (size_t h = 0; h < 2; h++)
        assert_int_equal(pwrite(s->fd, s->words[h], sizeof s->words[h], word_at(h, 0)),
                         sizeof s->words[h]);
}

/* @return whether it was found to be damaged */
static bool open_and_read(const subject *s) {
    bpt_dataset *dataset;
    const bpt_split *split;
    const bpt_status status = bpt_dataset_open(s->place.dataset, &dataset);
    if (status != BPT_OK) {
        if (bpt_status_exit(status) != 3) fail_msg("%s", bpt_error_last()->text);
        return true;
    }
    assert_int_equal(bpt_dataset_find(dataset, "train", &split), BPT_OK);
    assert_int_equal(made_equal(dataset, split, 1), COUNT);
    bpt_dataset_close(dataset);
    return false;
}

static const uint64_t values[] = {0,
                                  1,
                                  2,
                                  3,
                                  1 << 12,
                                  (uint64_t)1 << 31,
                                  (uint64_t)1 << 46,
                                  (uint64_t)1 << 47,
                                  (uint64_t)1 << 49,
                                  (uint64_t)1 << 62,
                                  (uint64_t)1 << 63,
                                  UINT64_MAX};
enum { N_VALUES = sizeof values / sizeof *values };

static void any_word(void **state) {
    const subject *s = *state;
    int n_damaged = 0;
    for (size_t word = 0; word < HEAD_WORDS; word++)
        for (size_t i = 0; i < N_VALUES; i++)
            for (size_t heads = 1; heads < 4; heads++) {
                for (size_t h = 0; h < 2; h++)
                    if (heads & (h + 1)) put_word(s, h, word, values[i]);
                n_damaged += open_and_read(s);
                restore(s);
            }
    assert_true(n_damaged > HEAD_WORDS * N_VALUES);
    assert_false(open_and_read(s));
}

static void any_sizes(void **state) {
    const subject *s = *state;
    for (size_t i = 0; i < N_VALUES; i++)
        for (size_t j = 0; j < N_VALUES; j++) {
            for (size_t h = 0; h < 2; h++) {
                put_word(s, h, MAP_WORD, values[i]);
                put_word(s, h, LAST_WORD, values[j]);
            }
            (void)open_and_read(s);
            restore(s);
        }
}

/* LMDB maps no more than that: what lies beyond cannot be read. */
static void values_beyond_the_last_page(void **state) {
    const subject *s = *state;
    const uint64_t last = s->words[0][LAST_WORD] > s->words[1][LAST_WORD] ? s->words[0][LAST_WORD]
                                                                          : s->words[1][LAST_WORD];
    for (uint64_t less = 1; less < 20; less++) {
        for (size_t h = 0; h < 2; h++) {
            put_word(s, h, LAST_WORD, last - less);
            put_word(s, h, MAP_WORD, (last - less + 1) * PAGE);
        }
        assert_true(open_and_read(s));
        restore(s);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(any_word),
        cmocka_unit_test(any_sizes),
        cmocka_unit_test(values_beyond_the_last_page),
    };
    return made_run_group(tests, set_up, tear_down);
}
