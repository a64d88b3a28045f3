/* Statuses, their texts, and the last error of a thread. */
#include "base/status.h"

#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

static void test_every_status_has_its_own_name_value_and_exit_status(void **state) {
    (void)state;
    static const struct {
        bpt_status status;
        const char *name, *text;
        int exit_status;
    } rows[] = {
#define X(name, value, exit_status, text) {(bpt_status)(value), "BPT_" #name, text, exit_status},
        BPT_STATUS_LIST(X)
#undef X
    };
    const size_t n = sizeof rows / sizeof *rows;
    for (size_t i = 0; i < n; i++) {
        assert_string_equal(bpt_status_name(rows[i].status), rows[i].name);
        assert_string_equal(bpt_status_text(rows[i].status), rows[i].text);
        assert_int_equal(bpt_status_exit(rows[i].status), rows[i].exit_status);
        assert_true(i == 0 ? rows[i].status == 0 : rows[i].status < 0);
        for (size_t j = 0; j < i; j++) {
            assert_int_not_equal(rows[i].status, rows[j].status);
            assert_string_not_equal(rows[i].text, rows[j].text);
        }
    }
}

/* The promise of every command's --help. */
static void test_exit_statuses_are_the_published_ones(void **state) {
    (void)state;
    assert_int_equal(bpt_status_exit(BPT_OK), 0);
    assert_int_equal(bpt_status_exit(BPT_EIO), 1);
    assert_int_equal(bpt_status_exit(BPT_ENOMEM), 1);
    assert_int_equal(bpt_status_exit(BPT_EUSAGE), 2);
    assert_int_equal(bpt_status_exit(BPT_EDATA), 3);
    assert_int_equal(bpt_status_exit(BPT_ECORRUPT), 3);
    assert_int_equal(bpt_status_exit(BPT_ENUMERIC), 4);
    assert_int_equal(bpt_status_exit(BPT_ESTOPPED), 75);
}

static void test_a_status_from_nowhere_is_a_failure(void **state) {
    (void)state;
    const bpt_status unknown = (bpt_status)-99;
    assert_int_equal(bpt_status_exit(unknown), 1);
    assert_non_null(bpt_status_name(unknown));
    assert_non_null(bpt_status_text(unknown));
}

static void test_fail_records_text_and_clears_the_hint(void **state) {
    (void)state;
    assert_int_equal(bpt_fail(BPT_EDATA, "record %d of %s", 7, "train"), BPT_EDATA);
    bpt_hint("run %s", "bpt-ingest verify");
    assert_int_equal(bpt_error_last()->status, BPT_EDATA);
    assert_string_equal(bpt_error_last()->text, "record 7 of train");
    assert_string_equal(bpt_error_last()->hint, "run bpt-ingest verify");

    assert_int_equal(bpt_fail(BPT_EIO, "disk"), BPT_EIO);
    assert_string_equal(bpt_error_last()->text, "disk");
    assert_string_equal(bpt_error_last()->hint, "");
}

static void test_long_texts_are_cut(void **state) {
    (void)state;
    char word[2 * BPT_ERROR_TEXT_SIZE];
    memset(word, 'x', sizeof word - 1);
    word[sizeof word - 1] = '\0';
    assert_int_equal(bpt_fail(BPT_EIO, "%s", word), BPT_EIO);
    bpt_hint("%s", word);
    assert_int_equal(strlen(bpt_error_last()->text), BPT_ERROR_TEXT_SIZE - 1);
    assert_int_equal(strlen(bpt_error_last()->hint), BPT_ERROR_HINT_SIZE - 1);
}

/* A text may be built from the one that it replaces. */
static void test_control_characters_do_not_come_through(void **state) {
    (void)state;
    (void)bpt_fail(BPT_EIO, "no %s", "\x1b[2J\n\x7f caf\xc3\xa9");
    bpt_hint("try %s", "a\tb\r");
    assert_string_equal(bpt_error_last()->text, "no ?[2J?? caf\xc3\xa9");
    assert_string_equal(bpt_error_last()->hint, "try a?b?");
    (void)bpt_fail(BPT_EIO, "%s",
                   "x\xc2\x9b"
                   "31m \xc2\x80\xc2\x9f\xc2\xa0 \xc2");
    assert_string_equal(bpt_error_last()->text, "x??31m ????\xc2\xa0 \xc2");
}

static void test_fail_can_quote_the_last_error(void **state) {
    (void)state;
    assert_int_equal(bpt_fail(BPT_EIO, "disk"), BPT_EIO);
    bpt_hint("look");
    assert_int_equal(bpt_fail(BPT_EDATA, "shard 3: %s", bpt_error_last()->text), BPT_EDATA);
    assert_string_equal(bpt_error_last()->text, "shard 3: disk");
    assert_int_equal(bpt_fail(BPT_EDATA, "rank 1: %s", bpt_error_last()->text), BPT_EDATA);
    bpt_hint("look there: %s", bpt_error_last()->text);
    assert_string_equal(bpt_error_last()->hint, "look there: rank 1: shard 3: disk");
}

static void *fail_elsewhere(void *out) {
    if (bpt_fail(BPT_ENOSPC, "other thread") == BPT_ENOSPC) bpt_hint("free some space");
    bpt_error_get(out);
    return NULL;
}

static void test_the_last_error_belongs_to_its_thread_and_can_be_carried(void **state) {
    (void)state;
    assert_int_equal(bpt_fail(BPT_EUSAGE, "mine"), BPT_EUSAGE);
    bpt_error carried;
    pthread_t thread;
    assert_int_equal(pthread_create(&thread, NULL, fail_elsewhere, &carried), 0);
    assert_int_equal(pthread_join(thread, NULL), 0);
    assert_string_equal(bpt_error_last()->text, "mine");

    assert_int_equal(bpt_error_put(&carried), BPT_ENOSPC);
    assert_int_equal(bpt_error_last()->status, BPT_ENOSPC);
    assert_string_equal(bpt_error_last()->text, "other thread");
    assert_string_equal(bpt_error_last()->hint, "free some space");
    assert_int_equal(bpt_error_put(bpt_error_last()), BPT_ENOSPC);
    assert_string_equal(bpt_error_last()->text, "other thread");
}

static bpt_status pass_on(bpt_status status, int *reached) {
    BPT_TRY(status);
    *reached = 1;
    return BPT_OK;
}

static bpt_status unwind(bpt_status result, int *undone) {
    bpt_status status;
    BPT_TRY_GOTO(status, result, err_undo);
    return BPT_OK;
err_undo:
    *undone = 1;
    return status;
}

static void test_try_returns_or_jumps_on_failure_only(void **state) {
    (void)state;
    int reached = 0, undone = 0;
    assert_int_equal(pass_on(BPT_ECOMM, &reached), BPT_ECOMM);
    assert_int_equal(reached, 0);
    assert_int_equal(pass_on(BPT_OK, &reached), BPT_OK);
    assert_int_equal(reached, 1);
    assert_int_equal(unwind(BPT_OK, &undone), BPT_OK);
    assert_int_equal(undone, 0);
    assert_int_equal(unwind(BPT_EPEER, &undone), BPT_EPEER);
    assert_int_equal(undone, 1);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_every_status_has_its_own_name_value_and_exit_status),
        cmocka_unit_test(test_exit_statuses_are_the_published_ones),
        cmocka_unit_test(test_a_status_from_nowhere_is_a_failure),
        cmocka_unit_test(test_fail_records_text_and_clears_the_hint),
        cmocka_unit_test(test_long_texts_are_cut),
        cmocka_unit_test(test_control_characters_do_not_come_through),
        cmocka_unit_test(test_fail_can_quote_the_last_error),
        cmocka_unit_test(test_the_last_error_belongs_to_its_thread_and_can_be_carried),
        cmocka_unit_test(test_try_returns_or_jumps_on_failure_only),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
