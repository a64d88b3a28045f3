/* The option table: every type, every source, and what is refused. */
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
#include <unistd.h>

#include <cmocka.h>

static void test_defaults_fill_every_field(void **state) {
    (void)state;
    sample_settings v;
    bpt_option_set *set = sample_parse("", &v);
    assert_false(v.force);
    assert_int_equal(v.epochs, 10);
    assert_int_equal(v.cache, 64 << 20);
    assert_true(v.lr == 0.1);
    assert_string_equal(v.model, "small");
    assert_null(v.data);
    assert_int_equal(v.device, 0);
    assert_int_equal(v.resize[0], 0);
    assert_int_equal(v.resize[1], 0);
    sample_list_equal(v.sync, 3, (const int64_t[]){8, 14, 18});
    assert_int_equal(v.rank, 0);
    for (size_t i = 0; i < sample_command.n_options; i++)
        assert_int_equal(bpt_option_where(set, sample_command.options[i].name), BPT_SOURCE_DEFAULT);
    int n = 42;
    bpt_option_operands(set, &n);
    assert_int_equal(n, 0);
    bpt_option_set_free(set);
    bpt_option_set_free(NULL);
}

/* The same sample_settings in each way to write them. */
static void test_command_line_sets_every_type(void **state) {
    (void)state;
    static const char *const lines[] = {
        "--force|--epochs|20|--cache|3G|--lr|2.5e-3|--model|a b|--data|/d|--device|cuda|"
        "--resize|32|48|--sync|1,2|--rank|9",
        "--force=true|--epochs=20|--cache=3G|--lr=2.5e-3|--model=a b|--data=/d|--device=cuda|"
        "--resize=32 48|--sync=1,2|--rank=9",
        "-f|-e|20|--cache|3145728K|-l|.0025|-m|a b|--data|/d|-d|cuda|-r|32|48|--sync|1,2,|--rank|9",
        "-f|-e|20|--cache|3G|-l|.0025|-m|a b|--data|/d|-d|cuda|-r|32x48|--sync|1,2,|--rank|9",
        "-f|-e|20|--cache|3G|-l|.0025|-m|a b|--data|/d|-d|cuda|-r32x48|--sync|1,2,|--rank|9",
        "-f|-e|20|--cache|3G|-l|.0025|-m|a b|--data|/d|-d|cuda|--resize=32x48|--sync|1,2,|--rank|9",
        "-f|-e20|--cache|3221225472|-l0.0025|-ma b|--data|/d|-dcuda|-r32 48|--sync|1,2|--rank|9",
        "--epochs|3|--epochs|20|--force=false|--force|--cache|3072M|--lr|0.0025|--model|x|"
        "--model|a b|--data|/d|--device|cpu|--device|cuda|--resize|1|1|--resize|32|48|--sync|5|"
        "--sync|1,2|--rank|9", /* the last one counts */
    };
    for (size_t i = 0; i < sizeof lines / sizeof *lines; i++) {
        sample_settings v;
        bpt_option_set *set = sample_parse(lines[i], &v);
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
        for (size_t k = 0; k < sample_command.n_options; k++)
            assert_int_equal(bpt_option_where(set, sample_command.options[k].name),
                             BPT_SOURCE_COMMAND_LINE);
        bpt_option_set_free(set);
    }
}

static bool is_default(const char *name, const sample_settings *values) {
    return bpt_option_is_default(&sample_command, name, values);
}

static void test_defaults_are_known_as_such(void **state) {
    (void)state;
    sample_settings v;
    static const char *const lines[] = {
        "",
        "--force=false|--epochs|10|--cache|65536K|--lr|1e-1|--model|small|--device|auto|"
        "--resize|0x0|--sync|8,14,18,"};
    for (size_t i = 0; i < sizeof lines / sizeof *lines; i++) {
        bpt_option_set *set = sample_parse(lines[i], &v);
        for (size_t k = 0; k < sample_command.n_options; k++)
            assert_true(is_default(sample_command.options[k].name, &v));
        bpt_option_set_free(set);
    }
    bpt_option_set *set = sample_parse(
        "--force|--epochs|20|--cache|3G|--lr|2.5e-3|--model|a|--data|/d|--device|cuda|"
        "--resize|0|48|--sync|8,14,19|--rank|9",
        &v);
    for (size_t k = 0; k < sample_command.n_options; k++)
        assert_false(is_default(sample_command.options[k].name, &v));
    bpt_option_set_free(set);
}

static void test_one_value_is_copied(void **state) {
    (void)state;
    sample_settings from, to;
    bpt_option_set *set = sample_parse(
        "--force|--epochs|20|--cache|3G|--lr|2.5e-3|--model|a|--data|/d|--device|cuda|"
        "--resize|0|48|--sync|8,14,19|--rank|9",
        &from);
    for (size_t i = 0; i < sample_command.n_options; i++) {
        bpt_option_set *other = sample_parse("", &to);
        bpt_option_copy(&sample_command, sample_command.options[i].name, &from, &to);
        for (size_t k = 0; k < sample_command.n_options; k++)
            assert_int_equal(is_default(sample_command.options[k].name, &to), i != k);
        bpt_option_set_free(other);
    }
    bpt_option_copy(&sample_command, "model", &from, &to);
    assert_string_equal(to.model, "a");
    sample_list_equal(to.sync, 3, (const int64_t[]){8, 14, 18});
    bpt_option_copy(&sample_command, "sync", &from, &to);
    sample_list_equal(to.sync, 3, (const int64_t[]){8, 14, 19});
    bpt_option_set_free(set);
}

static void test_values_may_look_like_anything(void **state) {
    (void)state;
    sample_settings v;
    bpt_option_set *set = sample_parse("--model=a=b|--data||--sync=", &v);
    assert_string_equal(v.model, "a=b");
    assert_string_equal(v.data, "");
    sample_list_equal(v.sync, 0, NULL);
    bpt_option_set_free(set);
    set = sample_parse("--model|-x|--data=--force", &v);
    assert_string_equal(v.model, "-x");
    assert_string_equal(v.data, "--force");
    assert_false(v.force);
    bpt_option_set_free(set);
}

static void test_operands_are_kept_in_order(void **state) {
    (void)state;
    sample_settings v;
    bpt_option_set *set = sample_parse("one|--epochs|3|-|--force", &v);
    int n;
    char *const *operands = bpt_option_operands(set, &n);
    assert_int_equal(n, 2);
    assert_string_equal(operands[0], "one");
    assert_string_equal(operands[1], "-");
    assert_true(v.force);
    bpt_option_set_free(set);
    set = sample_parse("--|--force|-e", &v);
    operands = bpt_option_operands(set, &n);
    assert_int_equal(n, 2);
    assert_string_equal(operands[0], "--force");
    assert_string_equal(operands[1], "-e");
    assert_false(v.force);
    bpt_option_set_free(set);
}

static void test_number_of_operands_is_checked(void **state) {
    (void)state;
    sample_refused("a|b|c", "unexpected argument \"c\"", "usage: bpt-test run [option...] FILE...");
    bpt_command strict = sample_command;
    strict.min_operands = 2;
    sample_settings v;
    bpt_option_request request;
    bpt_option_set *set = NULL;
    char *argv[] = {(char *)"program", (char *)"one"};
    assert_int_equal(bpt_options_parse(&strict, 2, argv, &v, &request, &set), BPT_EUSAGE);
    assert_string_equal(bpt_error_last()->text, "1 argument is missing");
    assert_int_equal(bpt_options_parse(&strict, 1, argv, &v, &request, &set), BPT_EUSAGE);
    assert_string_equal(bpt_error_last()->text, "2 arguments are missing");
    strict.max_operands = -1;
    char *many[12];
    for (int i = 0; i < 12; i++) many[i] = (char *)"x";
    assert_int_equal(bpt_options_parse(&strict, 12, many, &v, &request, &set), BPT_OK);
    int n;
    bpt_option_operands(set, &n);
    assert_int_equal(n, 11);
    bpt_option_set_free(set);
}

static void test_unknown_options_propose_the_nearest(void **state) {
    (void)state;
    sample_refused("--epoch|3", "unknown option \"epoch\"",
                   "did you mean \"epochs\"? `bpt-test run --help` lists all options");
    sample_refused("--modle=x", "unknown option \"modle\"",
                   "did you mean \"model\"? `bpt-test run --help` lists all options");
    sample_refused("--hlep", "unknown option \"hlep\"",
                   "did you mean \"help\"? `bpt-test run --help` lists all options");
    sample_refused("--qwertyuiop", "unknown option \"qwertyuiop\"",
                   "`bpt-test run --help` lists all options");
    sample_refused("-z", "unknown option \"-z\"", "`bpt-test run --help` lists all options");
    sample_settings v;
    bpt_option_request request;
    bpt_option_set *set = NULL;
    char line[1000] = "--";
    memset(line + 2, 'x', 900);
    assert_int_equal(sample_parse_line(line, &v, &request, &set), BPT_EUSAGE);
}

static void test_names_of_other_programs_propose_the_option(void **state) {
    (void)state;
    sample_refused("--passes=3", "unknown option \"passes\"",
                   "did you mean \"epochs\"? `bpt-test run --help` lists all options");
    sample_refused("--cash|3", "unknown option \"cash\"", /* the list goes before what is near */
                   "did you mean \"lr\"? `bpt-test run --help` lists all options");
}

static void test_one_dash_before_a_long_name_is_refused(void **state) {
    (void)state;
    sample_refused(
        "-model|x", "unknown option \"-model\"",
        "long options have two dashes: --model; `bpt-test run --help` lists all options");
    sample_refused("-data=/d", "unknown option \"-data\"",
                   "long options have two dashes: --data; `bpt-test run --help` lists all options");
    sample_settings v;
    bpt_option_set *set = sample_parse("-modell|-dcuda", &v); /* values, and no names */
    assert_string_equal(v.model, "odell");
    assert_int_equal(v.device, 2);
    bpt_option_set_free(set);
}

static void test_wrong_values_are_refused(void **state) {
    (void)state;
    sample_refused("--epochs", "--epochs needs a value", NULL);
    sample_refused("--resize|3", "--resize takes two whole numbers like 32 48 or 32x48", NULL);
    sample_refused("--epochs|ten", "--epochs: \"ten\" is not a whole number", NULL);
    sample_refused("--epochs|3x", "--epochs: \"3x\" is not a whole number", NULL);
    sample_refused("--epochs=", "--epochs: \"\" is not a whole number", NULL);
    sample_refused("--epochs|99999999999999999999",
                   "--epochs: \"99999999999999999999\" is not a whole number", NULL);
    sample_refused("--lr|fast", "--lr: \"fast\" is not a number", NULL);
    sample_refused("--lr|nan", "--lr: \"nan\" is not a number", NULL);
    sample_refused("--lr|1e999", "--lr: \"1e999\" is not a number", NULL);
    sample_refused("--model|huge", "--model: \"huge\" is not small", NULL);
    sample_refused("--model=none", "there is no model \"none\"", "the model is small");
    sample_refused("--force=yes", "--force: \"yes\" is not true or false", NULL);
    sample_refused("--device|gpu", "--device: \"gpu\" is not known", "choose one of auto|cpu|cuda");
    sample_refused("--device|aut", "--device: \"aut\" is not known", NULL);
    sample_refused("--device=", "--device: \"\" is not known", NULL);
    static const char *const pairs[] = {"3", "3x", "", "x", "3 "};
    for (size_t i = 0; i < sizeof pairs / sizeof *pairs; i++) {
        char line[64], text[128];
        snprintf(line, sizeof line, "--resize=%s", pairs[i]);
        snprintf(text, sizeof text, "--resize: \"%s\" is not two whole numbers like 32 48 or 32x48",
                 pairs[i]);
        sample_refused(line, text, NULL);
    }
    sample_refused("--resize|3x4x5", "--resize: \"4x5\" is not a whole number", NULL);
    sample_refused("--resize|3|x", "--resize: \"x\" is not a whole number", NULL);
    static const char *const sizes[] = {"1T", "1KB", "K", "-1", " -1", "1.5M", "", "99999999999G"};
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
        char line[64], text[128];
        snprintf(line, sizeof line, "--cache=%s", sizes[i]);
        snprintf(text, sizeof text, "--cache: \"%s\" is not a size like 512, 64K, 8M or 1G",
                 sizes[i]);
        sample_refused(line, text, NULL);
    }
    /* a pair must not become another one by being cut */
    sample_refused(
        "--resize|1|00000000000000000000000000000000000000000000000000000000000000000002",
        "--resize: "
        "\"00000000000000000000000000000000000000000000000000000000000000000002\" is not "
        "a whole number",
        NULL);
}

static void test_wrong_lists_are_refused(void **state) {
    (void)state;
    static const char *const lists[] = {"1,,2", ",", "1;2", "a", "1,-2", "-1"};
    for (size_t i = 0; i < sizeof lists / sizeof *lists; i++) {
        char line[64];
        sample_settings v;
        bpt_option_request request;
        bpt_option_set *set = NULL;
        snprintf(line, sizeof line, "--sync=%s", lists[i]);
        assert_int_equal(sample_parse_line(line, &v, &request, &set), BPT_EUSAGE);
        assert_int_equal(strncmp(bpt_error_last()->text, "--sync: ", 8), 0);
    }
    sample_settings v;
    bpt_option_set *set = sample_parse("--sync=1,2,3,4,5,6,7,8,9,10,11,12,13,14,15,16", &v);
    for (int i = 0; i < BPT_OPTION_LIST_MAX; i++) assert_int_equal(v.sync[i], i + 1);
    bpt_option_set_free(set);
    sample_refused("--sync=1,2,3,4,5,6,7,8,9,10,11,12,13,14,15,16,17",
                   "--sync: \"1,2,3,4,5,6,7,8,9,10,11,12,13,14,15,16,17\" is not a short list "
                   "of whole numbers like 8,14,18",
                   NULL);
}

static void test_ranges_are_refused_not_clamped(void **state) {
    (void)state;
    sample_settings v;
    bpt_option_set_free(sample_parse("--epochs|1|--lr|0|--cache|1K|--resize|0|4096", &v));
    bpt_option_set_free(sample_parse("--epochs|1000|--lr|100", &v));
    sample_refused("--epochs|0", "--epochs: 0 is out of range, it must be between 1 and 1000",
                   NULL);
    sample_refused("--epochs|1001", "--epochs: 1001 is out of range, it must be between 1 and 1000",
                   NULL);
    sample_refused("--lr|-1e-9", "--lr: -1e-9 is out of range, it must be between 0 and 100", NULL);
    sample_refused("--cache|1023", "--cache: 1023 is out of range, it must be at least 1024", NULL);
    sample_refused("--resize|3|4097",
                   "--resize: 4097 is out of range, it must be between 0 and 4096", NULL);
}

static void test_help_and_version_win_over_what_follows(void **state) {
    (void)state;
    sample_settings v;
    bpt_option_request request;
    bpt_option_set *set;
    support_capture_start(STDOUT_FILENO);
    const bpt_status status = sample_parse_line("--epochs|3|--help|--nonsense", &v, &request, &set);
    char *text = support_capture_end();
    assert_int_equal(status, BPT_OK);
    assert_int_equal(request, BPT_REQUEST_HELP);
    bpt_option_set_free(set);
    char *direct;
    size_t size;
    FILE *out = open_memstream(&direct, &size);
    bpt_options_help(&sample_command, out);
    fclose(out);
    assert_string_equal(text, direct);
    free(direct);
    free(text);

    support_capture_start(STDOUT_FILENO);
    const bpt_status version_status = sample_parse_line("--version|a|b|c|d", &v, &request, &set);
    text = support_capture_end();
    assert_int_equal(version_status, BPT_OK);
    assert_int_equal(request, BPT_REQUEST_VERSION);
    assert_string_equal(text, "bpt-test " BPT_VERSION "\n");
    bpt_option_set_free(set);
    free(text);

    bpt_options_name_version("7.5+of_a_test");
    support_capture_start(STDOUT_FILENO);
    assert_int_equal(sample_parse_line("--version|a|b|c|d", &v, &request, &set), BPT_OK);
    text = support_capture_end();
    bpt_options_name_version(BPT_VERSION);
    assert_string_equal(text, "bpt-test 7.5+of_a_test\n");
    bpt_option_set_free(set);
    free(text);
}

static void test_help_text(void **state) {
    (void)state;
    char *text;
    size_t size;
    FILE *out = open_memstream(&text, &size);
    bpt_options_help(&sample_command, out);
    fclose(out);
    static const char expected[] =
        "usage: bpt-test run [option...] FILE...\n"
        "\n"
        "Tests options.\n"
        "\n"
        "output:\n"
        "  -f, --force                 overwrite\n"
        "\n"
        "training:\n"
        "  -e, --epochs N              passes over the data (default: 10)\n"
        "      --cache BYTES           memory for\n"
        "                              decoded images (default: 64M)\n"
        "  -l, --lr RATE               learning rate (default: 0.1)\n"
        "  -m, --model NAME            network (default: small)\n"
        "      --data DATASET          dataset\n"
        "  -d, --device auto|cpu|cuda  where to compute (default: auto)\n"
        "  -r, --resize H W            size of images\n"
        "      --sync STEPS            steps to stop at (default: 8,14,18)\n"
        "      --rank N                one rank only\n"
        "\n"
        "common:\n"
        "      --config FILE           read options from a YAML file, one a line (name: value); "
        "of\n"
        "                              several files later ones win, and the command line always\n"
        "      --help                  print this and exit\n"
        "      --version               print the version and exit\n"
        "\n"
        "Exit status: 0.\n";
    assert_string_equal(text, expected);
    free(text);
}

static void test_help_of_a_long_option_begins_on_the_next_line(void **state) {
    (void)state;
    static const bpt_option option = {.name = "placement",
                                      .type = BPT_OPTION_CHOICE,
                                      .choices = "round-robin|measured",
                                      .help = "where shards live"};
    const bpt_command one = {
        .name = "bpt-test", .synopsis = "", .summary = "One.", .options = &option, .n_options = 1};
    char *text;
    size_t size;
    FILE *out = open_memstream(&text, &size);
    bpt_options_help(&one, out);
    fclose(out);
    assert_non_null(strstr(text,
                           "\noptions:\n"
                           "      --placement round-robin|measured\n"
                           "                              where shards live\n"));
    free(text);
}

static void test_nearest(void **state) {
    (void)state;
    static const char *const names[] = {"batch-size", "epochs", "lr", "lr-scale", "momentum"};
    assert_string_equal(bpt_nearest("batchsize", names, 5), "batch-size");
    assert_string_equal(bpt_nearest("batch", names, 5), "batch-size"); /* a beginning */
    assert_string_equal(bpt_nearest("momntum", names, 5), "momentum");
    assert_string_equal(bpt_nearest("epohcs", names, 5), "epochs");
    assert_string_equal(bpt_nearest("lrs", names, 5), "lr");
    assert_null(bpt_nearest("zebra", names, 5));
    assert_null(bpt_nearest("lr", names, 0));
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_defaults_fill_every_field),
        cmocka_unit_test(test_command_line_sets_every_type),
        cmocka_unit_test(test_defaults_are_known_as_such),
        cmocka_unit_test(test_one_value_is_copied),
        cmocka_unit_test(test_values_may_look_like_anything),
        cmocka_unit_test(test_operands_are_kept_in_order),
        cmocka_unit_test(test_number_of_operands_is_checked),
        cmocka_unit_test(test_unknown_options_propose_the_nearest),
        cmocka_unit_test(test_names_of_other_programs_propose_the_option),
        cmocka_unit_test(test_one_dash_before_a_long_name_is_refused),
        cmocka_unit_test(test_wrong_values_are_refused),
        cmocka_unit_test(test_wrong_lists_are_refused),
        cmocka_unit_test(test_ranges_are_refused_not_clamped),
        cmocka_unit_test(test_help_and_version_win_over_what_follows),
        cmocka_unit_test(test_help_text),
        cmocka_unit_test(test_help_of_a_long_option_begins_on_the_next_line),
        cmocka_unit_test(test_nearest),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
