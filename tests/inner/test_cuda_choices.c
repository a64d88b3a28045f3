/* What was chosen by measurement, as a file: written and read, and what is no such file. Needs no
 * GPU.
 *
 * ctest: cpu TIMEOUT=30 */
#include "base/memory.h"
#include "inner/cuda/cuda_choices.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

/* Last: it needs those above, and defines fail and skip. */
#include <cmocka.h>

static const bpt__choice_terms terms = {"NVIDIA H100 80GB HBM3", 91900, 130100, false};

static bpt__choices some(void) {
    bpt__choices c = {0};
    for (int i = 0; i < 3; i++) {
        bpt__choice choice = {.way = i % 2, .list = i, .place = 5 - i, .ns = 1000 + i};
        snprintf(choice.key, sizeof choice.key, "conv step %d type 1 n256 3x3 s1x1 bias", i);
        assert_int_equal(bpt__choices_note(&c, &choice), BPT_OK);
    }
    return c;
}

static bpt_status read_text(const char *text, const bpt__choice_terms *at, bpt__choices *c,
                            const char **unlike) {
    bpt_yaml *doc;
    BPT_TRY(bpt_yaml_parse("choices.yaml", text, strlen(text), &doc));
    const bpt_status status = bpt__choices_read(c, doc, bpt_yaml_root(doc), at, unlike);
    bpt_yaml_free(doc);
    return status;
}

static void test_round_trip(void **state) {
    (void)state;
    bpt__choices written = some(), read = {0};
    char *text;
    const char *unlike;
    assert_int_equal(bpt__choices_write(&written, &terms, &text), BPT_OK);
    assert_int_equal(read_text(text, &terms, &read, &unlike), BPT_OK);
    assert_null(unlike);
    assert_int_equal(read.n, written.n);
    for (size_t i = 0; i < written.n; i++) {
        const bpt__choice *a = &written.items[i], *b = bpt__choices_find(&read, a->key);
        assert_non_null(b);
        assert_int_equal(a->way, b->way);
        assert_int_equal(a->list, b->list);
        assert_int_equal(a->place, b->place);
        assert_int_equal(a->ns, b->ns);
    }
    assert_null(bpt__choices_find(&read, "conv step 7"));
    bpt_free(text);
    bpt__choices_clear(&read);
    bpt__choices_clear(&written);
}

static void test_empty(void **state) {
    (void)state;
    bpt__choices none = {0}, read = {0};
    char *text;
    const char *unlike;
    assert_int_equal(bpt__choices_write(&none, &terms, &text), BPT_OK);
    assert_int_equal(read_text(text, &terms, &read, &unlike), BPT_OK);
    assert_null(unlike);
    assert_int_equal(read.n, 0);
    bpt_free(text);
}

/* Of another card or library, or with other products: nothing is taken. */
static void test_other_terms(void **state) {
    (void)state;
    static const struct {
        bpt__choice_terms terms;
        const char *unlike;
    } others[] = {
        {{"NVIDIA A100", 91900, 130100, false}, "another card"},
        {{"NVIDIA A100", 91901, 130200, true}, "another card"},
        {{"NVIDIA H100 80GB HBM3", 91901, 130100, false}, "another version of cuDNN"},
        {{"NVIDIA H100 80GB HBM3", 91900, 130200, false}, "another version of cuBLASLt"},
        {{"NVIDIA H100 80GB HBM3", 91900, 130100, true}, "another --precision than tf32"}};
    bpt__choices written = some();
    char *text;
    assert_int_equal(bpt__choices_write(&written, &terms, &text), BPT_OK);
    for (size_t i = 0; i < sizeof others / sizeof *others; i++) {
        bpt__choices read = {0};
        const char *unlike;
        assert_int_equal(read_text(text, &others[i].terms, &read, &unlike), BPT_OK);
        assert_string_equal(unlike, others[i].unlike);
        assert_int_equal(read.n, 0);
    }
    bpt_free(text);
    bpt__choices_clear(&written);
}

/* What was read and not asked for is not handed on. */
static void test_used(void **state) {
    (void)state;
    bpt__choices written = some(), read = {0}, again = {0};
    char *text;
    const char *unlike;
    assert_int_equal(bpt__choices_write(&written, &terms, &text), BPT_OK);
    assert_int_equal(read_text(text, &terms, &read, &unlike), BPT_OK);
    bpt_free(text);
    assert_non_null(bpt__choices_find(&read, written.items[2].key));
    assert_int_equal(bpt__choices_write(&read, &terms, &text), BPT_OK);
    assert_int_equal(read_text(text, &terms, &again, &unlike), BPT_OK);
    bpt_free(text);
    assert_int_equal(again.n, 1);
    assert_string_equal(again.items[0].key, written.items[2].key);
    bpt__choices_clear(&again);
    bpt__choices_clear(&read);
    bpt__choices_clear(&written);
}

static void test_tf32(void **state) {
    (void)state;
    bpt__choice_terms tf32 = terms;
    bpt__choices none = {0}, read = {0};
    const char *unlike;
    char *text;
    tf32.tf32 = true;
    assert_int_equal(bpt__choices_write(&none, &tf32, &text), BPT_OK);
    assert_int_equal(read_text(text, &terms, &read, &unlike), BPT_OK);
    assert_string_equal(unlike, "--precision tf32");
    bpt_free(text);
}

/* A file of another format is not used, whatever it holds. */
static void test_other_formats(void **state) {
    (void)state;
    static const char *const texts[] = {
        "format: 1\ngpu: \"NVIDIA H100 80GB HBM3\"\ncudnn: 91900\ncublaslt: 130100\n"
        "tf32: false\nchoices: [[conv, 0, 1, 2]]",
        "format: 3\ngpu: \"NVIDIA H100 80GB HBM3\"\ncudnn: 91900\ncublaslt: 130100\n"
        "tf32: false\nmore: 1\nchoices: []",
        "format: 3\nothers: []",
    };
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
        bpt__choices read = {0};
        const char *unlike = NULL;
        assert_int_equal(read_text(texts[i], &terms, &read, &unlike), BPT_OK);
        assert_string_equal(unlike, "another format");
        assert_int_equal(read.n, 0);
    }
}

static void test_later_counts(void **state) {
    (void)state;
    bpt__choices c = some();
    bpt__choice again = c.items[1];
    again.place = 42;
    assert_int_equal(bpt__choices_note(&c, &again), BPT_OK);
    assert_int_equal(c.n, 3);
    assert_int_equal(bpt__choices_find(&c, again.key)->place, 42);
    bpt__choices_clear(&c);
}

#define HEAD                                                                                       \
    "format: 2\ngpu: \"NVIDIA H100 80GB HBM3\"\ncudnn: 91900\ncublaslt: 130100\ntf32: false\n"

static void test_bad_files(void **state) {
    (void)state;
    static const char *const texts[] = {
        "[]",
        "format: 2",
        "format: two",
        HEAD,
        HEAD "choices: 3",
        HEAD "choices: [[conv, 0, 1, 2]]",
        HEAD "choices: [[conv, 0, 0, 1, two]]",
        HEAD "choices: [[conv, 2, 0, 1, 2]]",
        HEAD "choices: [[conv, 0, 3, 1, 2]]",
        HEAD "choices: [[conv, 0, 0, -1, 2]]",
        HEAD "choices: [conv]",
        HEAD "choices: []\nmore: 1",
    };
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
        bpt__choices read = {0};
        const char *unlike;
        if (read_text(texts[i], &terms, &read, &unlike) != BPT_EUSAGE)
            fail_msg("taken: %s", texts[i]);
        bpt__choices_clear(&read);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_round_trip),  cmocka_unit_test(test_empty),
        cmocka_unit_test(test_used),        cmocka_unit_test(test_other_formats),
        cmocka_unit_test(test_other_terms), cmocka_unit_test(test_later_counts),
        cmocka_unit_test(test_bad_files),   cmocka_unit_test(test_tf32),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
