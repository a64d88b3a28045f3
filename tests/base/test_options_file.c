/* Options from configuration files, and the effective configuration that is printed. */
#include "base/memory.h"
#include "base/options.h"
#include "tests/base/sample_command.h"
#include "tests/base/support.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

/* Writes a configuration file, and "--config|PATH|<rest>" to @p line. */
static char *with_config(char line[1024], const char *text, const char *rest) {
    char path[SUPPORT_PATH_SIZE];
    support_write(path, "config.yaml", text, strlen(text));
    snprintf(line, 1024, "--config|%s%s%s", path, *rest ? "|" : "", rest);
    return line;
}

static const char full_config[] =
    "force: true\n"
    "epochs: 20\n"
    "cache: 3G\n"
    "lr: 2.5e-3\n"
    "model: \"a b\"\n"
    "data: /d\n"
    "device: cuda\n"
    "resize: 32 48\n"
    "sync: 1,2\n"
    "rank: 9\n";

static void test_file_sets_every_type(void **state) {
    (void)state;
    sample_settings v;
    char line[1024];
    bpt_option_set *set = sample_parse(with_config(line, full_config, ""), &v);
    assert_true(v.force);
    assert_int_equal(v.epochs, 20);
    assert_int_equal(v.cache, (uint64_t)3 << 30);
    assert_true(v.lr == 0.0025);
    assert_string_equal(v.model, "a b");
    assert_string_equal(v.data, "/d");
    assert_int_equal(v.device, 2);
    assert_int_equal(v.resize[0], 32);
    assert_int_equal(v.resize[1], 48);
    sample_list_equal(v.sync, 2, (const int64_t[]){1, 2});
    assert_int_equal(v.rank, 9);
    for (size_t i = 0; i < sample_command.n_options; i++)
        assert_int_equal(bpt_option_where(set, sample_command.options[i].name), BPT_SOURCE_FILE);
    bpt_option_set_free(set);
}

/* Numbers may be written as YAML's lists or as on the command line. */
static void test_file_takes_lists_in_every_form(void **state) {
    (void)state;
    static const char *const forms[] = {
        "resize: [32, 48]\nsync: [1, 2]\n",   "resize:\n  - 32\n  - 48\nsync:\n- 1\n- 2\n",
        "resize: 32 48\nsync: 1,2\n",         "resize: 32x48\nsync: 1, 2\n",
        "resize: \"32 48\"\nsync: \"1,2\"\n", /* as older runs wrote it */
    };
    sample_settings v;
    char line[1024];
    for (size_t i = 0; i < sizeof forms / sizeof *forms; i++) {
        bpt_option_set *set = sample_parse(with_config(line, forms[i], ""), &v);
        assert_int_equal(v.resize[0], 32);
        assert_int_equal(v.resize[1], 48);
        sample_list_equal(v.sync, 2, (const int64_t[]){1, 2});
        bpt_option_set_free(set);
    }
    bpt_option_set_free(sample_parse(with_config(line, "sync: []\n", ""), &v));
    sample_list_equal(v.sync, 0, NULL);
    bpt_option_set_free(sample_parse(with_config(line, "sync: 5\n", ""), &v));
    sample_list_equal(v.sync, 1, (const int64_t[]){5});
}

static void test_what_the_command_line_overrides_is_known(void **state) {
    (void)state;
    sample_settings v;
    char line[1024];
    bpt_option_set *set = sample_parse(
        with_config(line, "epochs: 5\nsync: [1, 2]\nlr: 3\n", "--epochs|7|--sync|9|--device|cpu"),
        &v);
    assert_string_equal(bpt_option_beside(set, "epochs", "lr"), "5");
    assert_string_equal(bpt_option_beside(set, "sync", "lr"), "1,2");
    assert_string_equal(bpt_option_beside(set, "lr", "lr"), "3"); /* not overridden */
    assert_null(bpt_option_beside(set, "device", "lr"));          /* not in the file */
    assert_null(bpt_option_beside(set, "model", "lr"));           /* nowhere */
    assert_null(bpt_option_beside(set, "lr", "epochs"));          /* whose value is of no file */
    sample_list_equal(v.sync, 1, (const int64_t[]){9});
    bpt_option_set_free(set);
}

/* The line begins with another file. */
static char *with_first(char line[1024], const char *text, const char *rest) {
    char path[SUPPORT_PATH_SIZE];
    support_write(path, "first.yaml", text, strlen(text));
    snprintf(line, 1024, "--config|%s|%.500s", path, rest);
    return line;
}

static void test_later_files_win_over_earlier_ones(void **state) {
    (void)state;
    sample_settings v;
    char line[1024], rest[1024];
    with_config(rest, "lr: 2\ndata: /b\nepochs: 6\n", "--epochs|7");
    bpt_option_set *set = sample_parse(
        with_first(line, "lr: 3\nmodel: a b\ndata: /a\nforce: true\nepochs: 5\n", rest), &v);
    assert_true(v.lr == 2);
    assert_string_equal(v.data, "/b");
    assert_string_equal(v.model, "a b");
    assert_true(v.force);
    assert_int_equal(v.epochs, 7);
    assert_int_equal(bpt_option_where(set, "lr"), BPT_SOURCE_FILE);
    assert_int_equal(bpt_option_where(set, "model"), BPT_SOURCE_FILE);
    assert_int_equal(bpt_option_where(set, "epochs"), BPT_SOURCE_COMMAND_LINE);
    assert_int_equal(bpt_option_where(set, "device"), BPT_SOURCE_DEFAULT);
    /* What a value was meant for. */
    assert_string_equal(bpt_option_beside(set, "lr", "model"), "3");
    assert_string_equal(bpt_option_beside(set, "lr", "data"), "2");
    assert_string_equal(bpt_option_beside(set, "model", "data"), "a b");
    assert_string_equal(bpt_option_beside(set, "epochs", "model"), "5");
    bpt_option_set_free(set);
}

static void test_each_of_several_files_is_looked_at(void **state) {
    (void)state;
    sample_settings v;
    bpt_option_request request;
    bpt_option_set *set;
    char line[1024], rest[1024];
    with_config(rest, "epochs: 6\n", "");
    with_first(line, "\nepochs: 0\n", rest);
    assert_int_equal(sample_parse_line(line, &v, &request, &set), BPT_EUSAGE);
    assert_non_null(strstr(bpt_error_last()->text, "first.yaml:2: epochs"));
}

static void test_command_line_wins_over_file_over_default(void **state) {
    (void)state;
    /* wherever --config stands on the line */
    static const char *const before[] = {"", "--epochs|7|--force=false|"};
    static const char *const after[] = {"--epochs|7|--force=false", ""};
    for (int i = 0; i < 2; i++) {
        sample_settings v;
        char line[1024], config[1024];
        with_config(config, "epochs: 5\nlr: 3\nforce: true\n", after[i]);
        snprintf(line, sizeof line, "%s%.900s", before[i], config);
        bpt_option_set *set = sample_parse(line, &v);
        assert_int_equal(v.epochs, 7);
        assert_true(v.lr == 3);
        assert_string_equal(v.model, "small");
        assert_false(v.force);
        assert_int_equal(bpt_option_where(set, "epochs"), BPT_SOURCE_COMMAND_LINE);
        assert_int_equal(bpt_option_where(set, "force"), BPT_SOURCE_COMMAND_LINE);
        assert_int_equal(bpt_option_where(set, "lr"), BPT_SOURCE_FILE);
        assert_int_equal(bpt_option_where(set, "model"), BPT_SOURCE_DEFAULT);
        bpt_option_set_free(set);
    }
}

static void test_an_empty_file_changes_nothing(void **state) {
    (void)state;
    sample_settings v;
    char line[1024];
    bpt_option_set_free(sample_parse(with_config(line, "# nothing\n", ""), &v));
    assert_int_equal(v.epochs, 10);
}

static void assert_config_refused(const char *text, const char *expected, const char *hint) {
    char line[1024], path[SUPPORT_PATH_SIZE], message[BPT_ERROR_TEXT_SIZE];
    support_path(path, "config.yaml");
    with_config(line, text, "");
    const char *mark = strchr(expected, '@'); /* stands for the file's path */
    assert_non_null(mark);
    snprintf(message, sizeof message, "%.*s%.200s%s", (int)(mark - expected), expected, path,
             mark + 1);
    sample_refused(line, message, hint);
}

static void test_errors_in_a_file_name_its_line(void **state) {
    (void)state;
    assert_config_refused("lr: 1\nepochs: 0\n",
                          "@:2: epochs: 0 is out of range, it must be between 1 and 1000", "");
    assert_config_refused("\ndevice: gpu\n", "@:2: device: \"gpu\" is not known",
                          "choose one of auto|cpu|cuda");
    assert_config_refused("\nmodel: huge\n", "@:2: model: \"huge\" is not small", "");
    assert_config_refused("model: none\n", "@:1: there is no model \"none\"", "the model is small");
    assert_config_refused("epohcs: 3\n", "unknown option \"epohcs\" in @:1",
                          "did you mean \"epochs\"? `bpt-test run --help` lists all options");
    assert_config_refused("force: yes\n", "@:1: force: \"yes\" is not true or false", "");
    assert_config_refused("lr: [1]\n", "@:1: lr takes one value",
                          "write it as on the command line, without brackets and dashes");
    assert_config_refused("sync: {a: 1}\n", "@:1: sync takes whole numbers, like [8, 14]", "");
    assert_config_refused("sync: [1,\n  two]\n", "@:2: sync must be a whole number", "");
    assert_config_refused("sync: [1, [2]]\n", "@:1: sync must be a whole number", "");
    assert_config_refused("sync: [1, \"2,3\"]\n", "@:1: sync must be a whole number", "");
    assert_config_refused("sync: [1,2,3,4,5,6,7,8,9,10,11,12,13,14,15,16,17]\n",
                          "@:1: sync: 17 numbers, more than 16", "");
    assert_config_refused("resize: [1]\n",
                          "@:1: resize: \"1\" is not two whole numbers like 32 48 or 32x48", "");
    assert_config_refused("resize: [1, 2, 3]\n", "@:1: resize: \"2 3\" is not a whole number", "");
    assert_config_refused("resize: [1, 9999]\n",
                          "@:1: resize: 9999 is out of range, it must be between 0 and 4096", "");
    assert_config_refused("- epochs\n", "@:1: a configuration is a map (option: value)", "");
    assert_config_refused("epochs: 3\nepochs: 4\n", "@:2: \"epochs\" is given twice", "");
    assert_config_refused("config: x\n", "unknown option \"config\" in @:1",
                          "`bpt-test run --help` lists all options");
    /* a value that the command line overrides may be wrong, an unknown name may not */
    sample_settings v;
    char line[1024];
    bpt_option_set_free(sample_parse(with_config(line, "epochs: 0\n", "--epochs|3"), &v));
    assert_int_equal(v.epochs, 3);
}

static void test_a_missing_file_is_refused(void **state) {
    (void)state;
    sample_settings v;
    bpt_option_request request;
    bpt_option_set *set = NULL;
    assert_int_equal(sample_parse_line("--config|/no/such.yaml", &v, &request, &set), BPT_EUSAGE);
    assert_non_null(strstr(bpt_error_last()->text, "/no/such.yaml"));
    assert_null(set);
    sample_refused("--config", "--config needs a value", NULL);
}

/* @return the printed configuration; the caller frees it with free() */
static char *print(const sample_settings *values) {
    char *text;
    size_t size;
    FILE *out = open_memstream(&text, &size);
    assert_non_null(out);
    bpt_options_print(&sample_command, values, out);
    fclose(out);
    return text;
}

static void test_printed_configuration(void **state) {
    (void)state;
    sample_settings v;
    bpt_option_set *set = sample_parse("--lr|0.1|--resize|0|5|--device|cpu", &v);
    char *text = print(&v);
    assert_string_equal(text,
                        "force: false\n"
                        "epochs: 10\n"
                        "cache: 67108864\n"
                        "lr: 0.1\n"
                        "model: \"small\"\n"
                        "device: cpu\n"
                        "resize: [0, 5]\n"
                        "sync: [8, 14, 18]\n");
    free(text);
    bpt_option_set_free(set);
}

/* What is printed for @p line reads back to the same values, field by field. */
static void assert_round_trip(const char *line) {
    sample_settings a, b;
    bpt_option_set *first = sample_parse(line, &a);
    char *text = print(&a);
    char config_line[1024];
    bpt_option_set *second = sample_parse(with_config(config_line, text, ""), &b);
    assert_int_equal(a.force, b.force);
    assert_int_equal(a.epochs, b.epochs);
    assert_true(a.cache == b.cache);
    assert_true(a.lr == b.lr);
    assert_string_equal(a.model, b.model);
    assert_int_equal(a.data == NULL, b.data == NULL);
    if (a.data) assert_string_equal(a.data, b.data);
    assert_int_equal(a.device, b.device);
    assert_memory_equal(a.resize, b.resize, sizeof a.resize);
    assert_memory_equal(a.sync, b.sync, sizeof a.sync);
    assert_int_equal(a.rank, b.rank);
    char *again = print(&b);
    assert_string_equal(text, again);
    free(again);
    free(text);
    bpt_option_set_free(first);
    bpt_option_set_free(second);
}

static void test_printed_configuration_reads_back(void **state) {
    (void)state;
    static const char *const lines[] = {
        "",
        "--force|--epochs|1000|--cache|5G|--lr|1e-30|--model|x|--data|y|--device|cuda|"
        "--resize|7|0|--sync|0|--rank|1",
        "--resize|0|7",
        "--sync=", /* emptied: must not come back as the default */
        "--sync|1,2,3,4,5,6,7,8,9,10,11,12,13,14,15,16",
        "--lr|0.30000000000000004",
        "--lr|0.1",
        "--lr|99.999999999999986",
        "--model=|--data=",
    };
    for (size_t i = 0; i < sizeof lines / sizeof *lines; i++) assert_round_trip(lines[i]);
}

static void test_texts_of_any_kind_read_back(void **state) {
    (void)state;
    static const char *const texts[] = {
        "a: b",
        "#x",
        "x # y",
        " lead",
        "trail ",
        "'single'",
        "\"double\"",
        "back\\",
        "\\n",
        "line\nend\n",
        "tab\t",
        "~",
        "null",
        "true",
        "- x",
        "*alias",
        "&anchor",
        "!tag",
        "%25",
        "@home",
        "[1, 2]",
        "{a: b}",
        "? x",
        "---",
        "...",
        "0x10",
        "猫/Grüße",
        "\xF0\x9F\x90\x88",
        "\x7f",
        "\x01\x1b",
        "\r\n",
        "a\xC2\x85"
        "b",
        "\xC2\x9F",
        "a\u2028b",
        "\u2029",
        "\uFEFF",
        "a,b",
        "${HOME}",
        "$(id)`id`",
        "caf\u00E9 \u2030",
    };
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
        char line[256];
        snprintf(line, sizeof line, "--model=%s|--data|%s", texts[i], texts[i]);
        assert_round_trip(line);
    }
    char ascii[160] = "--model=";
    for (int c = 1; c < 128; c++)
        if (c != '|') ascii[strlen(ascii)] = (char)c;
    assert_round_trip(ascii);
}

static bpt_status parse_once(void *arg) {
    sample_settings v;
    bpt_option_request request;
    bpt_option_set *set;
    BPT_TRY(sample_parse_line(arg, &v, &request, &set));
    const bool has_default = v.model != NULL;
    bpt_option_set_free(set);
    return has_default ? BPT_OK : BPT_EDATA;
}

static void test_allocation_failures_are_reported(void **state) {
    (void)state;
    char line[1024];
    support_fail_each_allocation(parse_once, (void *)"");
    support_fail_each_allocation(parse_once,
                                 with_config(line, full_config, "--model|m|--data|d|one|two"));
    support_fail_each_allocation(parse_once, with_config(line, full_config, ""));
}

/* With no memory even for the proposal, the answer is still an error and nothing leaks. */
static void test_allocation_failures_on_the_way_to_an_error(void **state) {
    (void)state;
    static const char *const lines[] = {"--epohcs|3", "a|b|c", "--model|x|--epochs|0"};
    for (size_t i = 0; i < sizeof lines / sizeof *lines; i++) {
        bpt_status status = BPT_ENOMEM;
        for (int n = 0; status == BPT_ENOMEM; n++) {
            const uint64_t live = bpt_memory_live();
            bpt_memory_fail_at(n);
            status = parse_once((void *)lines[i]);
            bpt_memory_fail_at(-1);
            assert_int_equal(bpt_memory_live(), live);
        }
        assert_int_equal(status, BPT_EUSAGE);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_file_sets_every_type),
        cmocka_unit_test(test_file_takes_lists_in_every_form),
        cmocka_unit_test(test_what_the_command_line_overrides_is_known),
        cmocka_unit_test(test_later_files_win_over_earlier_ones),
        cmocka_unit_test(test_each_of_several_files_is_looked_at),
        cmocka_unit_test(test_command_line_wins_over_file_over_default),
        cmocka_unit_test(test_an_empty_file_changes_nothing),
        cmocka_unit_test(test_errors_in_a_file_name_its_line),
        cmocka_unit_test(test_a_missing_file_is_refused),
        cmocka_unit_test(test_printed_configuration),
        cmocka_unit_test(test_printed_configuration_reads_back),
        cmocka_unit_test(test_texts_of_any_kind_read_back),
        cmocka_unit_test(test_allocation_failures_are_reported),
        cmocka_unit_test(test_allocation_failures_on_the_way_to_an_error),
    };
    return cmocka_run_group_tests(tests, support_make_scratch, support_remove_scratch);
}
