/* The file of bpt-tune: what is written is read back, what is wrong in one is refused with its
 * line, and a key that differs in any field is refused with both values. */
#include "base/file.h"
#include "base/memory.h"
#include "inner/cpu/cpu_library.h"
#include "tools/tuned_file.h"

#include <sys/utsname.h>

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

/* Last: it needs those above, and defines fail and skip. */
#include <cmocka.h>

static char path[64];

/* ---- a machine and a dataset that are made up: ld --wrap ---- */

static const char *cpuinfo; /* NULL: the machine's own */
static bpt_dataset_info info;

FILE *__real_fopen(const char *name, const char *mode);
FILE *__wrap_fopen(const char *name, const char *mode);
const bpt_dataset_info *__wrap_bpt_dataset_describe(const bpt_dataset *dataset);

FILE *__wrap_fopen(const char *name, const char *mode) {
    if (!cpuinfo || strcmp(name, "/proc/cpuinfo") != 0) return __real_fopen(name, mode);
    return cpuinfo[0] ? fmemopen((char *)cpuinfo, strlen(cpuinfo), "r") : NULL;
}

const bpt_dataset_info *__wrap_bpt_dataset_describe(const bpt_dataset *dataset) {
    (void)dataset;
    return &info;
}

/* ---- what is written ---- */

static bpt_tuned example(bpt_task_cost costs[2]) {
    bpt_tuned t = {.choices = {.threads = 3, .policy = "fifo"}, .costs = costs, .n_costs = 2};
    for (int i = 0; i < BPT_N_TUNED_FIELDS; i++)
        snprintf(t.key.value[i], sizeof t.key.value[i], "it's: value %d", i);
    costs[0] = (bpt_task_cost){"conv 'a', b", "conv forward", 1};
    costs[1] = (bpt_task_cost){"loss", "softmax: loss", UINT64_C(9000000000)};
    return t;
}

static bpt_tuned *write_and_read(const bpt_tuned *t) {
    bpt_tuned *read = NULL;
    assert_int_equal(bpt_tuned_write(path, t, "# for people\n"), BPT_OK);
    assert_int_equal(bpt_tuned_read(path, &read), BPT_OK);
    return read;
}

static void test_round_trip(void **state) {
    (void)state;
    bpt_task_cost costs[2];
    bpt_tuned t = example(costs), *read = write_and_read(&t);
    assert_memory_equal(&read->key, &t.key, sizeof t.key);
    assert_memory_equal(&read->choices, &t.choices, sizeof t.choices);
    assert_int_equal(read->n_costs, 2);
    for (int i = 0; i < 2; i++) {
        assert_string_equal(read->costs[i].label, costs[i].label);
        assert_string_equal(read->costs[i].kind, costs[i].kind);
        assert_true(read->costs[i].ns == costs[i].ns);
    }
    bpt_tuned_free(read);
    t.choices.loader_threads = 2;
    t.choices.prefetch = 16;
    t.n_costs = 0;
    read = write_and_read(&t);
    assert_memory_equal(&read->choices, &t.choices, sizeof t.choices);
    assert_int_equal(read->n_costs, 0);
    bpt_tuned_free(read);
}

/* A convolution that was measured whole and in two ranges of channels. */
static void fill_cuts(bpt_cost_table *cuts) {
    bpt_cost cost = {.problem = {.c = 16, .h = 8, .w = 8, .k = 32, .p = 8, .q = 8, .r = 3, .s = 3}};
    cost.problem.groups = cost.problem.stride[0] = cost.problem.stride[1] = 1;
    cost.problem.dilation[0] = cost.problem.dilation[1] = cost.problem.pad[1] = 1;
    *cuts = (bpt_cost_table){.workers = 2, .margin_percent = 5};
    cost.cut = (bpt_cut){1, 1, 1};
    cost.ns = 1000;
    assert_int_equal(bpt_cost_table_add(cuts, &cost), BPT_OK);
    cost.cut.channels = 2;
    cost.ns = 600;
    assert_int_equal(bpt_cost_table_add(cuts, &cost), BPT_OK);
}

static void test_cuts_are_there_where_they_were_chosen(void **state) {
    (void)state;
    bpt_task_cost costs[2];
    bpt_cost_table cuts;
    char *written, *again;
    bpt_tuned t = example(costs), *read = write_and_read(&t);
    assert_null(read->choices.cuts);
    bpt_tuned_free(read);
    fill_cuts(&cuts);
    t.choices.cuts = &cuts;
    read = write_and_read(&t);
    assert_non_null(read->choices.cuts);
    assert_int_equal(read->n_costs, 2);
    assert_int_equal(bpt_cost_table_write(&cuts, 0, &written), BPT_OK);
    assert_int_equal(bpt_cost_table_write(read->choices.cuts, 0, &again), BPT_OK);
    assert_string_equal(written, again);
    /* What was read can be written again. */
    bpt_tuned *twice = write_and_read(read);
    assert_int_equal(twice->choices.cuts->n, 2);
    bpt_tuned_free(twice);
    bpt_tuned_free(read);
    bpt_free(again);
    bpt_free(written);
    bpt_cost_table_clear(&cuts);
}

static void test_costs_by_name(void **state) {
    (void)state;
    bpt_task_cost costs[2];
    bpt_tuned t = example(costs);
    for (int twice = 0; twice < 2; twice++) {
        assert_true(bpt_tuned_cost(&t, "loss", "softmax: loss") == costs[1].ns);
        assert_true(bpt_tuned_cost(&t, "conv 'a', b", "conv forward") == 1);
        assert_true(bpt_tuned_cost(&t, "loss", "conv forward") == 0);
    }
    t.n_costs = 0;
    assert_true(bpt_tuned_cost(&t, "loss", "softmax: loss") == 0);
}

static void test_every_field_of_the_key_counts(void **state) {
    (void)state;
    bpt_task_cost costs[2];
    const bpt_tuned t = example(costs);
    assert_int_equal(bpt_tuned_key_check("f.yaml", &t.key, &t.key, NULL), BPT_OK);
    for (int i = 0; i < BPT_N_TUNED_FIELDS; i++) {
        bpt_tuned_key other = t.key;
        other.value[i][0] = 'X';
        assert_int_equal(bpt_tuned_key_check("f.yaml", &other, &t.key, "node7"), BPT_EUSAGE);
        const bpt_error *error = bpt_error_last();
        assert_non_null(strstr(error->text, "f.yaml"));
        assert_non_null(strstr(error->text, bpt_tuned_field_name((bpt_tuned_field)i)));
        assert_non_null(strstr(error->text, other.value[i]));
        assert_non_null(strstr(error->text, t.key.value[i]));
        assert_non_null(strstr(error->text, ", that of this run on node7 is "));
        assert_non_null(strstr(error->hint, "bpt-tune"));
    }
}

/* What to do about it: by the option, with the value of this run, or on this machine. */
static void test_hints(void **state) {
    (void)state;
    static const struct {
        bpt_tuned_field field;
        const char *here, *hint;
    } cases[] = {
        {BPT_TUNED_CORES, "1", "with 1 core (taskset"},
        {BPT_TUNED_CORES, "12", "with 12 cores (taskset"},
        {BPT_TUNED_CPU, "x", "on this machine, or leave out --tuned; `--tuned %h.yaml`"},
        {BPT_TUNED_BATCH, "32", "again with --batch-size 32, or"},
        {BPT_TUNED_PRECISION, "bf16", "again with --precision bf16, or"},
        {BPT_TUNED_OPTIMIZER, "adamw", "again with --optimizer adamw, or"},
        {BPT_TUNED_MODEL, "x", "again with the --model of this command, or"},
    };
    bpt_task_cost costs[2];
    const bpt_tuned t = example(costs);
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        bpt_tuned_key here = t.key;
        snprintf(here.value[cases[i].field], sizeof here.value[0], "%s", cases[i].here);
        assert_int_equal(bpt_tuned_key_check("f.yaml", &t.key, &here, NULL), BPT_EUSAGE);
        if (!strstr(bpt_error_last()->hint, cases[i].hint))
            fail_msg("%s: %s", cases[i].hint, bpt_error_last()->hint);
    }
}

/* ---- what is wrong in a file ---- */

static char text[4096];

static void load_text(void) {
    char *data;
    size_t size;
    assert_int_equal(bpt_file_read(path, sizeof text - 1, &data, &size), BPT_OK);
    memcpy(text, data, size + 1);
    bpt_free(data);
}

/* Replaces the first @p from by @p to, and expects a refusal that says @p says. */
static void refuses(const char *from, const char *to, const char *says) {
    char changed[8192];
    bpt_tuned *read;
    const char *at = strstr(text, from);
    assert_non_null(at);
    const int n = snprintf(changed, sizeof changed, "%.*s%s%s", (int)(at - text), text, to,
                           at + strlen(from));
    assert_int_equal(bpt_file_write(path, changed, (size_t)n), BPT_OK);
    assert_int_equal(bpt_tuned_read(path, &read), BPT_EUSAGE);
    if (!strstr(bpt_error_last()->text, says)) fail_msg("%s: %s", says, bpt_error_last()->text);
    assert_non_null(strstr(bpt_error_last()->text, path));
}

static void test_wrong_files(void **state) {
    (void)state;
    bpt_task_cost costs[2];
    const bpt_tuned t = example(costs);
    bpt_tuned_free(write_and_read(&t));
    load_text();
    refuses("tuned: 4", "tuned: 1", "is of format 1, this program reads format 4");
    assert_non_null(strstr(bpt_error_last()->hint, "run bpt-tune again"));
    refuses("tuned: 4", "tuned: 5\nlater: 1", "is of format 5, this program reads format 4");
    refuses("tuned: 4", "tuned: 4\nlater: 1", "later");
    refuses("tuned: 4", "tuned: two", "whole number");
    refuses("tuned: 4", "", "there is no \"tuned\"");
    refuses("choices:", "choice:", "choice");
    refuses("threads: 3", "threads: 0", "threads is 0");
    refuses("threads: 3", "threads: 257", "threads is 257");
    refuses("threads: 3", "thread: 3", "thread");
    refuses("policy: fifo", "policy: lifo", "lifo");
    refuses("policy: fifo", "policy: fifo\n  prefetch: 1", "prefetch is 1");
    refuses("policy: fifo", "policy: fifo\n  loader-threads: 65", "loader-threads is 65");
    refuses(", 1]", ", 0]", "nanoseconds is 0");
    refuses(", 1]", "]", "a cost is");
    refuses("  - [", "  - 4\n  - [", "a cost is");
    refuses("costs:", "costs: 3\nkosts:", "kosts");
    refuses("costs:", "cuts: 3\ncosts:", "a cost table");
    refuses("costs:", "cuts: {workers: 0, costs: []}\ncosts:", "workers is 0");
    refuses("rows: 2", "rows: 3", "2 rows of costs and cuts are there, not 3");
    refuses("rows: 2", "rows: -1", "rows is -1");
    refuses("rows: 2", "", "the end is missing");
    for (int i = 0; i < BPT_N_TUNED_FIELDS; i++) {
        char line[64];
        snprintf(line, sizeof line, "  %s: ", bpt_tuned_field_name((bpt_tuned_field)i));
        refuses(line, "  nosuch: ", "nosuch");
    }
    bpt_tuned *read;
    unlink(path);
    assert_int_equal(bpt_tuned_read(path, &read), BPT_EUSAGE);
}

/* A file that was cut off anywhere, between two rows too, is refused. */
static void test_every_beginning(void **state) {
    (void)state;
    bpt_task_cost costs[2];
    bpt_cost_table cuts;
    bpt_tuned t = example(costs), *read;
    fill_cuts(&cuts);
    t.choices.cuts = &cuts;
    bpt_tuned_free(write_and_read(&t));
    bpt_cost_table_clear(&cuts);
    load_text();
    for (size_t n = 0; n < strlen(text) - 1; n++) { /* without its newline it is whole */
        assert_int_equal(bpt_file_write(path, text, n), BPT_OK);
        assert_int_equal(bpt_tuned_read(path, &read), BPT_EUSAGE);
    }
}

/* Nothing is lost where memory ends, and the file is read once it does not. */
static void test_lack_of_memory(void **state) {
    (void)state;
    bpt_task_cost costs[2];
    bpt_cost_table cuts;
    bpt_tuned t = example(costs), *read = NULL;
    fill_cuts(&cuts);
    t.choices.cuts = &cuts;
    bpt_tuned_free(write_and_read(&t));
    bpt_cost_table_clear(&cuts);
    const uint64_t live = bpt_memory_live();
    int n = 0;
    for (; n < 1000 && !read; n++) {
        bpt_memory_fail_at(n);
        const bpt_status status = bpt_tuned_read(path, &read);
        bpt_memory_fail_at(-1);
        assert_true(status == (read ? BPT_OK : BPT_ENOMEM));
        if (!read) assert_true(bpt_memory_live() == live);
    }
    assert_true(n > 10 && read);
    bpt_tuned_free(read);
    assert_true(bpt_memory_live() == live);
}

static void test_path_of_a_host(void **state) {
    (void)state;
    char host[256] = "", expected[600], *made;
    assert_int_equal(gethostname(host, sizeof host - 1), 0);
    assert_false(bpt_tuned_path_varies("tuned.yaml"));
    assert_true(bpt_tuned_path_varies("tuned/%h.yaml"));
    assert_int_equal(bpt_tuned_path("100%/tuned.yaml", &made), BPT_OK);
    assert_string_equal(made, "100%/tuned.yaml");
    bpt_free(made);
    snprintf(expected, sizeof expected, "%s/t-%s.yaml", host, host);
    assert_int_equal(bpt_tuned_path("%h/t-%h.yaml", &made), BPT_OK);
    assert_string_equal(made, expected);
    bpt_free(made);
}

/* ---- the key of a step ---- */

static const char layers_text[] =
    "name: small\n"
    "input: [1, 8, 8]\n"
    "classes: 4\n"
    "layers:\n"
    "  - conv: {name: conv1, filters: %d, kernel: 3}\n"
    "  - fc: {outputs: classes}\n";

/* @param step but for the model */
static bpt_tuned_key key_with(bpt_tuned_step step, int filters, const bpt_model_override *shape) {
    char yaml[512];
    bpt_model *model;
    bpt_tuned_key key;
    const int n = snprintf(yaml, sizeof yaml, layers_text, filters);
    assert_int_equal(bpt_model_parse("small", yaml, (size_t)n, shape, &model), BPT_OK);
    step.model = model;
    assert_int_equal(bpt_tuned_key_make(&step, &key), BPT_OK);
    bpt_model_free(model);
    return key;
}

static bpt_tuned_key key_in(bpt_value_type type, int filters, bpt_shape input, int64_t classes) {
    const bpt_model_override shape = {input, classes};
    return key_with((bpt_tuned_step){NULL, 32, type, "sgd", 2, NULL}, filters, &shape);
}

static bpt_tuned_key key_of(int filters, bpt_shape input, int64_t classes) {
    return key_in(BPT_F32, filters, input, classes);
}

static void test_key_of_a_step(void **state) {
    (void)state;
    const bpt_tuned_key key = key_of(8, (bpt_shape){0}, 0);
    for (int i = 0; i < BPT_N_TUNED_FIELDS; i++) assert_true(key.value[i][0]);
    assert_string_equal(key.value[BPT_TUNED_MODEL], "small");
    assert_string_equal(key.value[BPT_TUNED_INPUT], "1x8x8");
    assert_string_equal(key.value[BPT_TUNED_BATCH], "32");
    assert_string_equal(key.value[BPT_TUNED_CORES], "2");
    assert_string_equal(key.value[BPT_TUNED_PRECISION], "fp32");
    const bpt_tuned_key half = key_in(BPT_BF16, 8, (bpt_shape){0}, 0);
    assert_string_equal(half.value[BPT_TUNED_PRECISION], "bf16");
    char library[BPT_TUNED_VALUE_SIZE];
    bpt_cpu_library(library, sizeof library);
    assert_string_equal(key.value[BPT_TUNED_LIBRARY], library);
    char instructions[BPT_TUNED_VALUE_SIZE];
    snprintf(instructions, sizeof instructions, "0x%x", bpt_cpu_instructions());
    assert_string_equal(key.value[BPT_TUNED_INSTRUCTIONS], instructions);
    const bpt_tuned_key same = key_of(8, (bpt_shape){1, 8, 8}, 4);
    assert_memory_equal(&key, &same, sizeof key);
    /* The same name, another network. */
    const bpt_tuned_key wider = key_of(9, (bpt_shape){0}, 0);
    assert_string_equal(wider.value[BPT_TUNED_MODEL], "small");
    assert_string_not_equal(wider.value[BPT_TUNED_LAYERS], key.value[BPT_TUNED_LAYERS]);
    const bpt_tuned_key larger = key_of(8, (bpt_shape){1, 9, 8}, 5);
    assert_string_equal(larger.value[BPT_TUNED_INPUT], "1x9x8");
    assert_string_equal(larger.value[BPT_TUNED_CLASSES], "5");
}

static void assert_processor(const char *text_of_system, const char *name) {
    cpuinfo = text_of_system;
    const bpt_tuned_key key = key_of(8, (bpt_shape){0}, 0);
    cpuinfo = NULL;
    assert_string_equal(key.value[BPT_TUNED_CPU], name);
}

/* By the first one's name; else by its architecture. */
static void test_processors(void **state) {
    (void)state;
    struct utsname system;
    assert_int_equal(uname(&system), 0);
    assert_processor("processor\t: 0\nmodel name\t: Some CPU @ 2.4GHz\nmodel name\t: Other\n",
                     "Some CPU @ 2.4GHz");
    assert_processor("processor\t: 0\nBogoMIPS\t: 50.00\n", system.machine);
    assert_processor("", system.machine);
}

static void test_optimiser_and_images(void **state) {
    (void)state;
    bpt_tuned_step step = {NULL, 32, BPT_F32, "adam\nw", 2, NULL};
    const bpt_tuned_key none = key_with(step, 8, NULL);
    /* A name is anybody's, and breaks no line. */
    assert_string_equal(none.value[BPT_TUNED_OPTIMIZER], "adam\\x0aw");
    assert_string_equal(none.value[BPT_TUNED_IMAGES], "none");
    step.dataset = (const bpt_dataset *)&info;
    for (int encoded = 0; encoded < 2; encoded++) {
        info.encoded = encoded;
        const bpt_tuned_key key = key_with(step, 8, NULL);
        assert_string_equal(key.value[BPT_TUNED_IMAGES], encoded ? "encoded" : "raw");
    }
}

/* Where one of the two loads nothing it says nothing of loading. */
static void test_how_images_are_stored(void **state) {
    (void)state;
    const bpt_tuned_key none = key_of(8, (bpt_shape){0}, 0);
    bpt_tuned_key raw = none, encoded = none;
    assert_string_equal(none.value[BPT_TUNED_IMAGES], "none");
    strcpy(raw.value[BPT_TUNED_IMAGES], "raw");
    strcpy(encoded.value[BPT_TUNED_IMAGES], "encoded");
    assert_int_equal(bpt_tuned_key_check("f.yaml", &none, &raw, NULL), BPT_OK);
    assert_int_equal(bpt_tuned_key_check("f.yaml", &encoded, &none, NULL), BPT_OK);
    assert_int_equal(bpt_tuned_key_check("f.yaml", &raw, &encoded, NULL), BPT_EUSAGE);
    assert_non_null(strstr(bpt_error_last()->hint, "--data"));
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_round_trip),
        cmocka_unit_test(test_cuts_are_there_where_they_were_chosen),
        cmocka_unit_test(test_costs_by_name),
        cmocka_unit_test(test_wrong_files),
        cmocka_unit_test(test_every_beginning),
        cmocka_unit_test(test_every_field_of_the_key_counts),
        cmocka_unit_test(test_hints),
        cmocka_unit_test(test_lack_of_memory),
        cmocka_unit_test(test_path_of_a_host),
        cmocka_unit_test(test_key_of_a_step),
        cmocka_unit_test(test_processors),
        cmocka_unit_test(test_optimiser_and_images),
        cmocka_unit_test(test_how_images_are_stored),
    };
    snprintf(path, sizeof path, "tuned-%d.yaml", (int)getpid());
    const int failed = cmocka_run_group_tests(tests, NULL, NULL);
    unlink(path);
    return failed;
}
