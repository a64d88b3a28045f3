/* The shards of a run as they are written down, and as they are read. */
#include "base/file.h"
#include "base/memory.h"
#include "tests/tools/work_place.h"
#include "tools/train/run/shard_log.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

/* Last: it needs those above, and defines fail and skip. */
#include <cmocka.h>

enum { N = 160, N_SHARDS = 3, FIRST_HOST = 2 };

static const char path[] = "run/exchange/shards.json";

/* As they were made: their borders, and who hosts them. */
static void test_there_and_back(void **state) {
    (void)state;
    bpt_run_folder *run = NULL;
    bpt_shard_table *table = NULL, *read = NULL;
    char *text;
    size_t size;
    assert_int_equal(
        bpt_shard_table_at(N, N_SHARDS, FIRST_HOST, (const uint64_t[]){0, 32, 96}, &table), BPT_OK);
    make_folder("run/exchange");
    assert_int_equal(bpt_run_folder_open("run", BPT_RUN_GO_ON, &run), BPT_OK);
    assert_int_equal(bpt_shard_log_write(run, table), BPT_OK);
    bpt_run_folder_close(run);
    assert_int_equal(bpt_file_read(path, 1000, &text, &size), BPT_OK);
    assert_string_equal(text, "{\"begin\": [0, 32, 96]}\n");
    bpt_free(text);
    assert_int_equal(bpt_shard_log_read("run", N, N_SHARDS, FIRST_HOST, &read), BPT_OK);
    assert_int_equal(bpt_shard_count(read), N_SHARDS);
    for (uint32_t s = 0; s < N_SHARDS; s++) {
        const bpt_shard *a = bpt_shard_at(table, s), *b = bpt_shard_at(read, s);
        assert_true(a->begin == b->begin && a->end == b->end);
        assert_int_equal(b->host, FIRST_HOST + s);
    }
    bpt_shard_table_free(read);
    bpt_shard_table_free(table);
}

static void test_files_that_are_none(void **state) {
    (void)state;
    static const struct {
        const char *text, *says;
    } cases[] = {
        {"{\"begin\": [0, 32]}", "one number for each of 3 shards"},
        {"{\"begin\": [0, 32, 96, 128]}", "one number for each of 3 shards"},
        {"{\"begin\": [0, 32, 96], \"more\": 1}", "one number for each of 3 shards"},
        {"{\"begin\": [0, 96, 32]}", "these are no borders of shards"},
        {"{\"begin\": [16, 32, 96]}", "these are no borders of shards"},
        {"{\"begin\": [0, 33, 96]}", "these are no borders of shards"},
        {"{\"begin\": [0, 32, 161]}", "160"},
        {"{\"begin\": [0, 32, -1]}", path},
        {"{\"begin\": 0}", path},
        {"{}", path},
        {"", path},
    };
    bpt_shard_table *read = NULL;
    make_folder("run/exchange");
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        put_file(path, cases[i].text);
        assert_int_equal(bpt_shard_log_read("run", N, N_SHARDS, FIRST_HOST, &read), BPT_EDATA);
        assert_null(read);
        if (!strstr(bpt_error_last()->text, cases[i].says) || !strstr(bpt_error_last()->text, path))
            fail_msg("%s: %s", cases[i].text, bpt_error_last()->text);
    }
    assert_int_equal(bpt_shard_log_read("nothing", N, N_SHARDS, FIRST_HOST, &read), BPT_ENOENT);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(test_there_and_back, work_place_clear),
        cmocka_unit_test_setup(test_files_that_are_none, work_place_clear),
    };
    return cmocka_run_group_tests(tests, work_place_open, work_place_close);
}
