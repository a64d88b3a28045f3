#include "tests/base/sample_command.h"

#include "base/memory.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

/* One message begins with the option's name, as most do, and one does not. */
static bpt_status check_model(const char *text) {
    if (strcmp(text, "huge") == 0) return bpt_fail(BPT_EUSAGE, "--model: \"huge\" is not small");
    if (strcmp(text, "none") != 0) return BPT_OK;
    (void)bpt_fail(BPT_EUSAGE, "there is no model \"none\"");
    bpt_hint("the model is small");
    return BPT_EUSAGE;
}

static const bpt_option table[] = {
    {.name = "force",
     .letter = 'f',
     .type = BPT_OPTION_FLAG,
     .offset = offsetof(sample_settings, force),
     .help = "overwrite",
     .group = "output"},
    {.name = "epochs",
     .letter = 'e',
     .type = BPT_OPTION_INT,
     .offset = offsetof(sample_settings, epochs),
     .value = "10",
     .min = 1,
     .max = 1000,
     .unit = "N",
     .help = "passes over the data",
     .group = "training"},
    {.name = "cache",
     .type = BPT_OPTION_SIZE,
     .offset = offsetof(sample_settings, cache),
     .value = "64M",
     .min = 1024,
     .max = 1e18,
     .unit = "BYTES",
     .help = "memory for\ndecoded images"},
    {.name = "lr",
     .letter = 'l',
     .type = BPT_OPTION_REAL,
     .offset = offsetof(sample_settings, lr),
     .value = "0.1",
     .min = 0,
     .max = 100,
     .unit = "RATE",
     .help = "learning rate"},
    {.name = "model",
     .letter = 'm',
     .type = BPT_OPTION_TEXT,
     .offset = offsetof(sample_settings, model),
     .value = "small",
     .unit = "NAME",
     .check = check_model,
     .help = "network"},
    {.name = "data",
     .type = BPT_OPTION_TEXT,
     .offset = offsetof(sample_settings, data),
     .unit = "DATASET",
     .help = "dataset"},
    {.name = "device",
     .letter = 'd',
     .type = BPT_OPTION_CHOICE,
     .offset = offsetof(sample_settings, device),
     .value = "auto",
     .choices = "auto|cpu|cuda",
     .help = "where to compute"},
    {.name = "resize",
     .letter = 'r',
     .type = BPT_OPTION_PAIR,
     .offset = offsetof(sample_settings, resize),
     .min = 0,
     .max = 4096,
     .unit = "H W",
     .help = "size of images"},
    {.name = "sync",
     .type = BPT_OPTION_LIST,
     .offset = offsetof(sample_settings, sync),
     .value = "8,14,18",
     .unit = "STEPS",
     .help = "steps to stop at"},
    {.name = "rank",
     .type = BPT_OPTION_INT,
     .offset = offsetof(sample_settings, rank),
     .min = 1,
     .max = 9,
     .unit = "N",
     .help = "one rank only"},
};

/* "cash" is nearer to cache, and there is no option output. */
static const bpt_option_alias aliases[] = {
    {"passes", "epochs"}, {"cash", "lr"}, {"epoch", "output"}, {0}};

const bpt_command sample_command = {
    .name = "bpt-test run",
    .synopsis = "[option...] FILE...",
    .summary = "Tests options.",
    .epilogue = "Exit status: 0.",
    .options = table,
    .n_options = sizeof table / sizeof *table,
    .min_operands = 0,
    .max_operands = 2,
    .aliases = aliases,
};

enum { MAX_ARGS = 40 };

/* Splits @p line at "|" and parses it. */
bpt_status sample_parse_line(const char *line, sample_settings *values, bpt_option_request *request,
                             bpt_option_set **set) {
    static char copy[2048];
    assert_true(strlen(line) < sizeof copy);
    strcpy(copy, line);
    char *argv[MAX_ARGS] = {(char *)"program"};
    int argc = 1;
    for (char *p = copy; *line && p;) {
        char *bar = strchr(p, '|');
        if (bar) *bar++ = '\0';
        argv[argc++] = p;
        p = bar;
    }
    return bpt_options_parse(&sample_command, argc, argv, values, request, set);
}

bpt_option_set *sample_parse(const char *line, sample_settings *values) {
    bpt_option_request request;
    bpt_option_set *set;
    memset(values, 0xA5, sizeof *values); /* parsing fills in all of it */
    const bpt_status status = sample_parse_line(line, values, &request, &set);
    if (status != BPT_OK) assert_string_equal(bpt_error_last()->text, "");
    assert_int_equal(request, BPT_REQUEST_RUN);
    return set;
}

void sample_refused(const char *line, const char *text, const char *hint) {
    sample_settings values;
    bpt_option_request request;
    bpt_option_set *set = NULL;
    const uint64_t live = bpt_memory_live();
    assert_int_equal(sample_parse_line(line, &values, &request, &set), BPT_EUSAGE);
    assert_null(set);
    assert_string_equal(bpt_error_last()->text, text);
    if (hint) assert_string_equal(bpt_error_last()->hint, hint);
    assert_int_equal(bpt_memory_live(), live);
}

void sample_list_equal(const int64_t *list, size_t n, const int64_t *expected) {
    for (size_t i = 0; i < BPT_OPTION_LIST_MAX; i++)
        assert_int_equal(list[i], i < n ? expected[i] : -1);
}
