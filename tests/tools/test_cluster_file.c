/* The file that describes a cluster: what is written is read back, what people write by hand comes
 * to what they mean, and what is wrong in one is refused with its line. */
#include "base/file.h"
#include "base/memory.h"
#include "tests/base/near.h"
#include "tools/plan/cluster_file.h"

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

static bpt_cluster_file parse(const char *text) {
    bpt_cluster_file file;
    if (bpt_cluster_file_parse("c.yaml", text, strlen(text), &file) != BPT_OK)
        fail_msg("%s", bpt_error_last()->text);
    return file;
}

/* ---- what is written ---- */

static bpt_cluster example(bpt_node nodes[2]) {
    nodes[0] = (bpt_node){.name = "it's: node1",
                          .count = 4,
                          .threads = 8,
                          .on_device = true,
                          .steps = {{8, 0.00123456}, {64, 0.0076543}},
                          .n_steps = 2,
                          .memory_bytes = 16.75e9,
                          .link_bytes_per_s = 1.1712e8,
                          .message_s_per_byte = 4.125e-10,
                          .copy_s = 3.3e-4,
                          .load_s_per_image = 4.567e-6};
    nodes[1] =
        (bpt_node){.name = "old", .count = 1, .threads = 1, .steps = {{1, 1.0 / 3}}, .n_steps = 1};
    return (bpt_cluster){.nodes = nodes,
                         .n_nodes = 2,
                         .latency_s = 45.5e-6,
                         .model = {.name = "lenet",
                                   .identity = "0123456789abcdef",
                                   .precision = "fp32",
                                   .optimizer = "sgd"}};
}

static bpt_cluster_file write_and_read(const bpt_cluster *c) {
    bpt_cluster_file file;
    assert_int_equal(bpt_cluster_file_write(path, c, "# for people\n"), BPT_OK);
    if (bpt_cluster_file_read(path, &file) != BPT_OK) fail_msg("%s", bpt_error_last()->text);
    return file;
}

#define ASSERT_SAME(a, b, field) assert_near((a).field, (b).field, 1e-5 * (b).field)

static void assert_same_node(const bpt_node *a, const bpt_node *b) {
    assert_string_equal(a->name, b->name);
    assert_int_equal(a->count, b->count);
    assert_int_equal(a->threads, b->threads);
    assert_int_equal(a->on_device, b->on_device);
    assert_int_equal(a->n_steps, b->n_steps);
    for (uint32_t i = 0; i < a->n_steps; i++) {
        ASSERT_SAME(*a, *b, steps[i].samples);
        ASSERT_SAME(*a, *b, steps[i].seconds);
    }
    ASSERT_SAME(*a, *b, memory_bytes);
    ASSERT_SAME(*a, *b, link_bytes_per_s);
    ASSERT_SAME(*a, *b, message_s_per_byte);
    ASSERT_SAME(*a, *b, copy_s);
    ASSERT_SAME(*a, *b, load_s_per_image);
}

static void test_round_trip(void **state) {
    (void)state;
    bpt_node nodes[2];
    bpt_cluster c = example(nodes);
    bpt_cluster_file file = write_and_read(&c);
    assert_int_equal(file.cluster.n_nodes, 2);
    for (int i = 0; i < 2; i++) assert_same_node(&file.cluster.nodes[i], &nodes[i]);
    ASSERT_SAME(file.cluster, c, latency_s);
    assert_string_equal(file.cluster.model.name, "lenet");
    assert_string_equal(file.cluster.model.identity, "0123456789abcdef");
    assert_string_equal(file.cluster.model.precision, "fp32");
    assert_string_equal(file.cluster.model.optimizer, "sgd");
    bpt_cluster_file_free(&file);
    c.model = (bpt_cluster_model){0};
    c.latency_s = 0;
    file = write_and_read(&c);
    assert_null(file.cluster.model.name);
    assert_null(file.cluster.model.optimizer);
    assert_near(file.cluster.latency_s, 0, 0);
    bpt_cluster_file_free(&file);
}

/* Names of hosts and models are not this program's: they break neither line nor file. */
static void test_unfit_names(void **state) {
    (void)state;
    bpt_node nodes[2];
    bpt_cluster c = example(nodes);
    char longest[400];
    memset(longest, 'x', sizeof longest - 1);
    longest[sizeof longest - 1] = '\0';
    nodes[0].name = "two\nlines";
    nodes[1].name = longest;
    c.model.name = "  # \t'\"";
    bpt_cluster_file file = write_and_read(&c);
    assert_string_equal(file.cluster.nodes[0].name, "two\\x0alines");
    assert_int_equal(strlen(file.cluster.nodes[1].name), 255);
    assert_string_equal(file.cluster.model.name, "  # \\x09'\"");
    bpt_cluster_file_free(&file);
}

static void test_comment(void **state) {
    (void)state;
    bpt_node nodes[2];
    const bpt_cluster c = example(nodes);
    char *text;
    size_t size;
    assert_int_equal(bpt_cluster_file_write(path, &c, "# one\n# two\n"), BPT_OK);
    assert_int_equal(bpt_file_read(path, 4096, &text, &size), BPT_OK);
    assert_ptr_equal(strstr(text, "# one\n# two\nbpt-cluster: 1\n"), text);
    bpt_free(text);
}

/* ---- by hand ---- */

static void test_least(void **state) {
    (void)state;
    bpt_cluster_file file = parse("bpt-cluster: 1\nnodes:\n  - name: a\n    images-per-s: 310\n");
    const bpt_node *n = file.cluster.nodes;
    assert_int_equal(file.cluster.n_nodes, 1);
    assert_string_equal(n->name, "a");
    assert_true(n->count == 1 && n->threads == 1 && n->n_steps == 1);
    assert_near(n->steps[0].samples, 1, 0);
    assert_near(n->steps[0].seconds, 1.0 / 310, 1e-12);
    assert_near(n->memory_bytes + n->link_bytes_per_s + n->message_s_per_byte, 0, 0);
    assert_near(n->copy_s + n->load_s_per_image + file.cluster.latency_s, 0, 0);
    assert_null(file.cluster.model.name);
    bpt_cluster_file_free(&file);
}

static const char whole[] =
    "bpt-cluster: 1\n"                      /* 1 */
    "latency-us: 45\n"                      /* 2 */
    "model:\n"                              /* 3 */
    "  name: 'lenet'\n"                     /* 4 */
    "  identity: '0123456789abcdef'\n"      /* 5 */
    "  precision: fp32\n"                   /* 6 */
    "nodes:\n"                              /* 7 */
    "  - name: 'node1'\n"                   /* 8 */
    "    count: 4\n"                        /* 9 */
    "    threads: 8\n"                      /* 10 */
    "    steps: [[8, 1.2], [64, 7.4]]\n"    /* 11 */
    "    memory-gb: 16\n"                   /* 12 */
    "    link-mbit: 1000\n"                 /* 13 */
    "    message-ns-per-kb: 400\n"          /* 14 */
    "    copy-ms: 0.3\n"                    /* 15 */
    "    load-us-per-image: 4.5\n"          /* 16 */
    "  - {name: old, images-per-s: 1e2}\n"; /* 17 */

static void test_units(void **state) {
    (void)state;
    bpt_cluster_file file = parse(whole);
    const bpt_node expected = {.name = "node1",
                               .count = 4,
                               .threads = 8,
                               .steps = {{8, 1.2e-3}, {64, 7.4e-3}},
                               .n_steps = 2,
                               .memory_bytes = 16e9,
                               .link_bytes_per_s = 125e6,
                               .message_s_per_byte = 400e-9 / 1000,
                               .copy_s = 0.3e-3,
                               .load_s_per_image = 4.5e-6};
    assert_same_node(&file.cluster.nodes[0], &expected);
    assert_near(file.cluster.latency_s, 45e-6, 1e-12);
    assert_null(file.cluster.model.optimizer);
    bpt_cluster_file_free(&file);
}

/* A copy of a file, with the first @p from replaced by @p to. */
static const char *change(const char *from, const char *to) {
    static char changed[4096];
    const char *at = strstr(whole, from);
    assert_non_null(at);
    snprintf(changed, sizeof changed, "%.*s%s%s", (int)(at - whole), whole, to, at + strlen(from));
    return changed;
}

/* Of twice the speed: times are halved, and neither memory nor link is another. */
static void test_speed(void **state) {
    (void)state;
    bpt_cluster_file as_is = parse(whole);
    bpt_cluster_file file = parse(change("    count: 4", "    count: 4\n    speed: 2"));
    bpt_node expected = as_is.cluster.nodes[0];
    for (int i = 0; i < 2; i++) expected.steps[i].seconds /= 2;
    expected.message_s_per_byte /= 2;
    expected.copy_s /= 2;
    expected.load_s_per_image /= 2;
    assert_same_node(&file.cluster.nodes[0], &expected);
    assert_same_node(&file.cluster.nodes[1], &as_is.cluster.nodes[1]);
    bpt_cluster_file_free(&file);
    bpt_cluster_file_free(&as_is);
    file = parse(change("images-per-s: 1e2", "images-per-s: 1e2, speed: 0.5"));
    assert_near(file.cluster.nodes[1].steps[0].seconds, 0.02, 1e-9);
    bpt_cluster_file_free(&file);
}

/* ---- what is wrong in a file ---- */

static void refuses(const char *from, const char *to, int line, const char *says) {
    char expected[300];
    bpt_cluster_file file;
    const char *text = change(from, to);
    if (bpt_cluster_file_parse("c.yaml", text, strlen(text), &file) != BPT_EUSAGE)
        fail_msg("not refused: %s", to);
    bpt_cluster_file_free(&file);
    snprintf(expected, sizeof expected, "c.yaml:%d: %s", line, says);
    if (!strstr(bpt_error_last()->text, expected))
        fail_msg("%s: %s", expected, bpt_error_last()->text);
    assert_true(bpt_error_last()->hint[0] != '\0');
}

static void test_wrong_formats(void **state) {
    (void)state;
    refuses("bpt-cluster: 1", "bpt-cluster: 2", 1, "the file is of format 2, this program reads");
    assert_non_null(strstr(bpt_error_last()->hint, "bpt-plan --measure again"));
    refuses("bpt-cluster: 1", "later: {}\nbpt-cluster: 7", 2, "the file is of format 7");
    refuses("bpt-cluster: 1", "bpt-cluster: one", 1, "bpt-cluster must be a whole number");
    refuses("bpt-cluster: 1", "cluster: 1", 1, "there is no \"bpt-cluster\"");
    refuses(whole, "- 1\n", 1, "there is no \"bpt-cluster\"");
    refuses(whole, "", 1, "there is no \"bpt-cluster\"");
    refuses("latency-us", "latency", 2, "");
    assert_non_null(strstr(bpt_error_last()->text, "\"latency\""));
    refuses("latency-us: 45", "latency-us: -1", 2, "latency-us is -1");
    refuses("latency-us: 45", "latency-us: nan", 2, "latency-us must be a number");
}

static void test_wrong_models(void **state) {
    (void)state;
    refuses(strstr(whole, "model:"), "model: lenet\nnodes: []\n", 3, "the model must be a map");
    refuses("precision:", "precisions:", 6, "");
    assert_non_null(strstr(bpt_error_last()->hint, "precision"));
    refuses("0123456789abcdef", "0123456789abcde", 5, "identity is 16 digits of 0 to 9 and a to f");
    refuses("0123456789abcdef", "0123456789abcdeF", 5, "identity is 16 digits");
    refuses("0123456789abcdef", "0123456789abcdef0", 5, "identity is 16 digits");
    refuses("'lenet'", "\"len\\net\"", 4, "name has a control character");
    refuses("'lenet'", "''", 4, "name is empty");
    refuses("'lenet'", "[lenet]", 4, "name must be one word or text");
}

static void test_wrong_nodes(void **state) {
    (void)state;
    char longest[300];
    refuses(strstr(whole, "nodes:"), "nodes: 1\n", 7, "\"nodes\" is a list of at least one node");
    refuses(strstr(whole, "nodes:"), "nodes: []\n", 7, "\"nodes\" is a list of at least one node");
    refuses(strstr(whole, "nodes:"), "", 1, "there is no \"nodes\"");
    refuses("name: 'node1'\n", "count: 1\n", 9, "\"count\" is given twice");
    refuses("name: 'node1'\n", "speed: 1\n", 8, "a node has no \"name\"");
    refuses("'node1'", "\"a\\x7f\"", 8, "name has a control character");
    memset(longest, 'x', 256);
    longest[256] = '\0';
    refuses("'node1'", longest, 8, "name has more than 255 bytes");
    refuses("count: 4", "count: 0", 9, "count is 0");
    refuses("count: 4", "count: 4097", 9, "count is 4097");
    refuses("count: 4", "count: 4096", 17, "these are more than 4096 machines");
    refuses("threads: 8", "threads: 0", 10, "threads is 0");
    refuses("threads: 8", "threads: 257", 10, "threads is 257");
    refuses("threads: 8", "on-device: 3", 10, "on-device");
    refuses("threads: 8", "thread: 8", 10, "");
    refuses("memory-gb: 16", "memory-gb: 0", 12, "memory-gb is 0");
    refuses("memory-gb: 16", "memory-gb: inf", 12, "memory-gb must be a number");
    refuses("link-mbit: 1000", "link-mbit: 0", 13, "link-mbit is 0");
    refuses("per-kb: 400", "per-kb: -1", 14, "message-ns-per-kb is -1");
    refuses("copy-ms: 0.3", "copy-ms: 1e10", 15, "copy-ms is 1e+10");
    refuses("image: 4.5", "image: nan", 16, "load-us-per-image must be a number");
}

static void test_wrong_steps(void **state) {
    (void)state;
    refuses("steps: [[8, 1.2], [64, 7.4]]", "steps: 8", 11, "\"steps\" is a list of 1 to 8 steps");
    refuses("steps: [[8, 1.2], [64, 7.4]]", "steps: []", 11, "\"steps\" is a list of 1 to 8 steps");
    refuses("[[8, 1.2], [64, 7.4]]", "[[1,1],[2,2],[3,3],[4,4],[5,5],[6,6],[7,7],[8,8],[9,9]]", 11,
            "\"steps\" is a list of 1 to 8 steps");
    refuses("[8, 1.2]", "[8]", 11, "a step is [samples, milliseconds]");
    refuses("[8, 1.2]", "8", 11, "a step is [samples, milliseconds]");
    refuses("[8, 1.2]", "[8, 1.2, 3]", 11, "a step is [samples, milliseconds]");
    refuses("[8, 1.2]", "[0, 1.2]", 11, "samples is 0");
    refuses("[8, 1.2]", "[8.5, 1.2]", 11, "samples must be a whole number");
    refuses("[8, 1.2]", "[1000001, 1.2]", 11, "samples is 1000001");
    refuses("[8, 1.2]", "[8, 0]", 11, "milliseconds is 0");
    refuses("[8, 1.2]", "[8, nan]", 11, "milliseconds must be a number");
    refuses("[8, 1.2]", "[64, 1.2]", 11, "a step of 64 samples comes behind one of 64");
    refuses("[8, 1.2]", "[65, 1.2]", 11, "a step of 64 samples comes behind one of 65");
    refuses("[8, 1.2]", "[8, 7.5]", 11, "a step of 64 samples takes less than one of 8");
    refuses("    steps", "    images-per-s: 3\n    steps", 8, "\"steps\" and \"images-per-s\" say");
    refuses(", images-per-s: 1e2", "", 17, "there is neither \"steps\" nor \"images-per-s\"");
    refuses("images-per-s: 1e2", "images-per-s: 0", 17, "images-per-s is 0");
    refuses("images-per-s: 1e2", "images-per-s: inf", 17, "images-per-s must be a number");
    refuses("threads: 8", "speed: 0", 10, "speed is 0");
    refuses("threads: 8", "speed: 1001", 10, "speed is 1001");
    refuses("threads: 8", "speed: -inf", 10, "speed must be a number");
}

static void test_equal_times(void **state) {
    (void)state;
    bpt_cluster_file file = parse(change("[8, 1.2]", "[8, 7.4]"));
    assert_near(file.cluster.nodes[0].steps[0].seconds, 7.4e-3, 1e-12);
    bpt_cluster_file_free(&file);
}

static void test_no_such_file(void **state) {
    (void)state;
    bpt_cluster_file file;
    unlink(path);
    assert_int_equal(bpt_cluster_file_read(path, &file), BPT_EUSAGE);
    assert_non_null(strstr(bpt_error_last()->text, path));
    assert_non_null(strstr(bpt_error_last()->hint, "bpt-plan --measure"));
    bpt_cluster_file_free(&file);
}

/* Nothing is lost where memory ends, and the file is read once it does not. */
static void test_lack_of_memory(void **state) {
    (void)state;
    const uint64_t live = bpt_memory_live();
    bpt_status status = BPT_ENOMEM;
    int n = 0;
    for (; n < 1000 && status != BPT_OK; n++) {
        bpt_cluster_file file;
        bpt_memory_fail_at(n);
        status = bpt_cluster_file_parse("c.yaml", whole, strlen(whole), &file);
        bpt_memory_fail_at(-1);
        assert_true(status == BPT_OK || status == BPT_ENOMEM);
        bpt_cluster_file_free(&file);
        assert_true(bpt_memory_live() == live);
    }
    assert_true(n > 10 && status == BPT_OK);
}

/* ---- where it is written ---- */

static void assert_place(const char *text, bpt_status expected) {
    assert_int_equal(bpt_file_write(path, text, strlen(text)), BPT_OK);
    assert_int_equal(bpt_cluster_file_check_place(path), expected);
}

static void test_place(void **state) {
    (void)state;
    unlink(path);
    assert_int_equal(bpt_cluster_file_check_place(path), BPT_OK);
    assert_place("", BPT_OK);
    assert_place(whole, BPT_OK);
    assert_place("bpt-cluster: 99\n", BPT_OK);
    assert_place("nodes: []\n", BPT_EEXIST);
    assert_non_null(strstr(bpt_error_last()->text, "exists already and is no file of bpt-plan"));
    assert_true(bpt_error_last()->hint[0] != '\0');
    assert_place("bpt-cluster: [\n", BPT_EEXIST);
    unlink(path);
    assert_int_equal(symlink("nowhere-at-all", path), 0);
    assert_int_equal(bpt_cluster_file_check_place(path), BPT_EEXIST);
    unlink(path);
    assert_int_equal(bpt_cluster_file_check_place("/"), BPT_EEXIST);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_round_trip),     cmocka_unit_test(test_unfit_names),
        cmocka_unit_test(test_comment),        cmocka_unit_test(test_least),
        cmocka_unit_test(test_units),          cmocka_unit_test(test_speed),
        cmocka_unit_test(test_wrong_formats),  cmocka_unit_test(test_wrong_models),
        cmocka_unit_test(test_wrong_nodes),    cmocka_unit_test(test_wrong_steps),
        cmocka_unit_test(test_equal_times),    cmocka_unit_test(test_no_such_file),
        cmocka_unit_test(test_lack_of_memory), cmocka_unit_test(test_place),
    };
    snprintf(path, sizeof path, "cluster-%d.yaml", (int)getpid());
    const int failed = cmocka_run_group_tests(tests, NULL, NULL);
    unlink(path);
    return failed;
}
