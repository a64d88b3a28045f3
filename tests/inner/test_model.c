/* Models: what the built-in ones are, what a file may say, and what errors say. */
#include "base/memory.h"
#include "inner/models/model.h"

#include <inttypes.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* Last: it needs those above, and defines fail and skip. */
#include <cmocka.h>

#define HEAD "name: t\ninput: [3, 9, 11]\nclasses: 7\nlayers:\n" /* layers start at line 5 */

static bpt_status parse(const char *text, const bpt_model_override *override, bpt_model **m) {
    return bpt_model_parse("t.yaml", text, strlen(text), override, m);
}

static bpt_model *must_parse(const char *text) {
    bpt_model *m = NULL;
    if (parse(text, NULL, &m) != BPT_OK) fail_msg("%s", bpt_error_last()->text);
    return m;
}

static void check_shape(bpt_shape shape, int64_t c, int64_t h, int64_t w) {
    assert_int_equal(shape.c, c);
    assert_int_equal(shape.h, h);
    assert_int_equal(shape.w, w);
}

static void check_segment(const bpt_model *m, size_t i, const char *name, size_t offset,
                          size_t count, int64_t fan_in) {
    const bpt_segment *s = &m->segments.items[i];
    assert_string_equal(s->name, name);
    assert_int_equal(s->offset, offset);
    assert_int_equal(s->count, count);
    assert_int_equal(s->role.fan_in, fan_in);
    assert_int_equal(s->role.decays, fan_in != 0);
}

static void check_error(const char *text, const char *message, const char *hint) {
    bpt_model *m = NULL;
    assert_int_equal(parse(text, NULL, &m), BPT_EUSAGE);
    assert_null(m);
    assert_string_equal(bpt_error_last()->text, message);
    if (hint) assert_string_equal(bpt_error_last()->hint, hint);
    assert_true(bpt_error_last()->hint[0] != '\0'); /* there is always something to do */
}

/* ---- built-in models, counted by hand ---- */

static void test_lenet(void **state) {
    (void)state;
    bpt_model *m = NULL;
    assert_int_equal(bpt_model_load("lenet", NULL, &m), BPT_OK);
    assert_string_equal(m->name, "lenet");
    assert_int_equal(m->n_layers, 9);
    check_shape(m->layers[0].out, 20, 24, 24);
    check_shape(m->layers[2].out, 20, 12, 12);
    check_shape(m->layers[3].out, 50, 8, 8);
    check_shape(m->layers[5].out, 50, 4, 4);
    check_shape(m->layers[8].out, 10, 1, 1);
    assert_string_equal(m->layers[1].name, "relu1");
    assert_string_equal(m->layers[4].name, "relu2");
    assert_int_equal(m->segments.n, 8);
    check_segment(m, 0, "conv1.weight", 0, 500, 25);
    check_segment(m, 1, "conv1.bias", 500, 20, 0);
    check_segment(m, 2, "conv2.weight", 520, 25000, 500);
    check_segment(m, 3, "conv2.bias", 25520, 50, 0);
    check_segment(m, 4, "fc1.weight", 25570, 400000, 800);
    check_segment(m, 5, "fc1.bias", 425570, 500, 0);
    check_segment(m, 6, "fc2.weight", 426070, 5000, 500);
    check_segment(m, 7, "fc2.bias", 431070, 10, 0);
    assert_int_equal(m->segments.n_elements, 431080);
    assert_int_equal(m->layers[8].first_segment, 6);
    assert_int_equal(m->layers[8].n_segments, 2);
    /* 20*24*24*25 + 50*8*8*500 + 400000 + 5000 multiply-adds forward */
    assert_int_equal(bpt_model_training_flops(m), 3 * 2 * (288000 + 1600000 + 405000));
    bpt_model_free(m);
}

static void test_lenet_with_another_input(void **state) {
    (void)state;
    bpt_model *m = NULL;
    const bpt_model_override o = {.input = {3, 32, 32}, .classes = 100};
    assert_int_equal(bpt_model_load("lenet", &o, &m), BPT_OK);
    check_shape(m->input, 3, 32, 32);
    assert_int_equal(m->classes, 100);
    check_shape(m->layers[5].out, 50, 5, 5);
    assert_int_equal(m->segments.n_elements, 20 * 75 + 20 + 25050 + 500 * 1250 + 500 + 50100);
    bpt_model_free(m);

    const bpt_model_override small = {.input = {1, 8, 8}};
    assert_int_equal(bpt_model_load("lenet", &small, &m), BPT_EUSAGE);
    assert_non_null(strstr(bpt_error_last()->text,
                           "lenet.yaml:9: layer conv2: the input 20x2x2 is smaller than its "
                           "kernel 5x5"));
    assert_string_equal(bpt_error_last()->hint, "the input of the model is 1x8x8");
}

static void test_vgg_small(void **state) {
    (void)state;
    bpt_model *m = NULL;
    assert_int_equal(bpt_model_load("vgg-small", NULL, &m), BPT_OK);
    /* 3x3 convolutions with bias: 3-64-64, 64-128-128, 128-256-256-256; 256*4*4-512-10 */
    const size_t expected[] = {1792, 36928, 73856, 147584, 295168, 590080, 590080, 2097664, 5130};
    size_t n = 0, total = 0;
    for (size_t i = 0; i < m->n_layers; i++) {
        const bpt_layer *l = &m->layers[i];
        if (l->n_segments == 0) continue;
        const bpt_segment *weight = &m->segments.items[l->first_segment];
        assert_int_equal(weight[0].count + weight[1].count, expected[n++]);
        total += weight[0].count + weight[1].count;
    }
    assert_int_equal(n, 9);
    assert_int_equal(total, 3838282);
    assert_int_equal(m->segments.n_elements, total);
    bpt_model_free(m);
}

static void test_unknown_name_lists_the_known(void **state) {
    (void)state;
    bpt_model *m = NULL;
    assert_int_equal(bpt_model_load("lenett", NULL, &m), BPT_EUSAGE);
    assert_string_equal(bpt_error_last()->text, "no model is named \"lenett\"");
    assert_string_equal(bpt_error_last()->hint,
                        "did you mean \"lenet\"? known: alexnet, googlenet, lenet, mobilenet, "
                        "resnet18, resnet20, resnet50, resnet56, vgg-small, vgg16; "
                        "or give the path of a .yaml file");
    assert_int_equal(bpt_model_load("", NULL, &m), BPT_EUSAGE);
    assert_int_equal(bpt_model_load("./no-such.yaml", NULL, &m), BPT_EUSAGE);
    assert_int_equal(bpt_model_load("no-such.yml", NULL, &m), BPT_EUSAGE);
    assert_null(m);
}

static void test_load_by_path(void **state) {
    (void)state;
    char folder[] = "/tmp/bpt-test-model-XXXXXX";
    char path[64];
    assert_non_null(mkdtemp(folder));
    snprintf(path, sizeof path, "%s/m.yml", folder);
    FILE *f = fopen(path, "w");
    assert_non_null(f);
    fputs(HEAD "  - fc: {outputs: classes}\n", f);
    fclose(f);
    bpt_model *m = NULL;
    assert_int_equal(bpt_model_load(path, NULL, &m), BPT_OK);
    unlink(path); /* what it was made of is known without the file */
    assert_string_equal(m->source, path);
    assert_int_equal(m->segments.n_elements, 7 * 297 + 7);
    assert_string_equal(m->text, HEAD "  - fc: {outputs: classes}\n");
    assert_int_equal(m->text_bytes, strlen(m->text));
    bpt_model_free(m);
    rmdir(folder);
}

/* ---- what a file may say ---- */

static void test_fields(void **state) {
    (void)state;
    bpt_model *m = must_parse(HEAD
                              "  - conv: {filters: 4, kernel: [3, 5], stride: [2, 1], pad: [1, 0],"
                              " bias: false}\n"
                              "  - conv: {filters: classes, kernel: 1}\n"
                              "  - maxpool: {kernel: [2, 3], pad: [1, 0]}\n"
                              "  - relu: {name: Last-relu_1}\n"
                              "  - maxpool: {kernel: 2, stride: 1}\n"
                              "  - fc: {outputs: 7, bias: false}\n");
    const bpt_conv_config *conv = m->layers[0].config;
    assert_int_equal(conv->filters, 4);
    assert_int_equal(conv->kernel[0], 3);
    assert_int_equal(conv->kernel[1], 5);
    assert_int_equal(conv->stride[0], 2);
    assert_int_equal(conv->stride[1], 1);
    assert_int_equal(conv->pad[0], 1);
    assert_int_equal(conv->pad[1], 0);
    assert_false(conv->bias);
    check_shape(m->layers[0].out, 4, 5, 7);
    const bpt_conv_config *second = m->layers[1].config;
    assert_int_equal(second->filters, 7);
    assert_int_equal(second->stride[1], 1);
    assert_true(second->bias);
    const bpt_pool_config *pool = m->layers[2].config;
    assert_int_equal(pool->stride[0], 2);
    assert_int_equal(pool->stride[1], 3);
    check_shape(m->layers[2].out, 7, 3, 2); /* (5 + 2 - 2) / 2 + 1; (7 - 3) / 3 + 1 */
    assert_string_equal(m->layers[2].name, "maxpool1");
    assert_string_equal(m->layers[3].name, "Last-relu_1");
    assert_string_equal(m->layers[4].name, "maxpool2");
    check_shape(m->layers[4].out, 7, 2, 1);
    assert_int_equal(m->layers[3].line, 8);
    assert_int_equal(m->segments.n, 4);
    check_segment(m, 0, "conv1.weight", 0, 4 * 3 * 15, 45);
    check_segment(m, 1, "conv2.weight", 180, 28, 4);
    check_segment(m, 2, "conv2.bias", 208, 7, 0);
    check_segment(m, 3, "fc1.weight", 215, 98, 14);
    assert_int_equal(m->segments.items[0].n_dims, 4);
    assert_int_equal(m->segments.items[0].dims[1], 3);
    assert_int_equal(m->segments.items[0].dims[3], 5);
    assert_int_equal(m->segments.items[3].dims[1], 14);
    bpt_model_free(m);
}

static void test_override_keeps_zeros(void **state) {
    (void)state;
    bpt_model *m = NULL;
    const bpt_model_override o = {.input = {.h = 5}};
    assert_int_equal(parse(HEAD "  - fc: {outputs: classes}\n", &o, &m), BPT_OK);
    check_shape(m->input, 3, 5, 11);
    assert_int_equal(m->classes, 7);
    bpt_model_free(m);
    const bpt_model_override negative = {.input = {3, -1, 5}};
    assert_int_equal(parse(HEAD "  - relu\n", &negative, &m), BPT_EUSAGE);
    const bpt_model_override huge = {.input = {INT64_MAX, 2, INT64_MAX}};
    assert_int_equal(parse(HEAD "  - relu\n", &huge, &m), BPT_EUSAGE);
    const bpt_model_override classes = {.classes = -3};
    assert_int_equal(parse(HEAD "  - relu\n", &classes, &m), BPT_EUSAGE);
    const bpt_model_override many = {.classes = (1 << 20) + 1};
    assert_int_equal(parse(HEAD "  - fc: {outputs: classes}\n", &many, &m), BPT_EUSAGE);
    assert_string_equal(bpt_error_last()->text, "t.yaml: 1048577 classes, outside of 1 to 1048576");
}

static void test_print(void **state) {
    (void)state;
    char *text = NULL;
    size_t size = 0;
    FILE *out = open_memstream(&text, &size);
    bpt_model *m = NULL;
    assert_int_equal(bpt_model_load("lenet", NULL, &m), BPT_OK);
    bpt_model_print(m, out);
    fclose(out);
    assert_non_null(strstr(text, "\nconv2  conv       50x8x8       25050      3.200\n"));
    assert_non_null(strstr(text, "\ntotal             10x1x1      431080      4.586\n"));
    assert_null(strstr(text, "running"));
    free(text);
    bpt_model_free(m);
}

/* By what a model is, not by its name. */
static bpt_model *must_parse_width(int outputs) {
    char text[200];
    snprintf(text, sizeof text,
             "name: t\ninput: [1, 4, 4]\nclasses: 3\nlayers:\n"
             "  - fc: {outputs: %d}\n  - fc: {outputs: classes}\n",
             outputs);
    return must_parse(text);
}

static void test_identify(void **state) {
    (void)state;
    uint64_t first, again, other;
    bpt_model *m = must_parse_width(5), *same = must_parse_width(5), *n = must_parse_width(6);
    assert_int_equal(bpt_model_identify(m, &first), BPT_OK);
    assert_int_equal(bpt_model_identify(same, &again), BPT_OK);
    assert_int_equal(bpt_model_identify(n, &other), BPT_OK);
    assert_true(first == again);
    assert_true(first != other);
    bpt_model_free(m);
    bpt_model_free(same);
    bpt_model_free(n);
}

static uint64_t identity_of(const char *layers) {
    char text[600];
    uint64_t identity;
    snprintf(text, sizeof text,
             "name: t\ninput: [4, 8, 8]\nclasses: 3\nlayers:\n%s  - fc: {outputs: classes}\n",
             layers);
    bpt_model *m = must_parse(text);
    assert_int_equal(bpt_model_identify(m, &identity), BPT_OK);
    bpt_model_free(m);
    return identity;
}

/* Which print the same table. */
static void test_identify_settings(void **state) {
    (void)state;
    static const char *const pairs[][2] = {
        {"  - dropout: {rate: 0.5}\n", "  - dropout: {rate: 0.25}\n"},
        {"  - batchnorm: {momentum: 0.1}\n", "  - batchnorm: {momentum: 0.2}\n"},
        {"  - conv: {filters: 4, kernel: 3, pad: 1}\n",
         "  - conv: {filters: 4, kernel: 3, pad: 2, dilation: 2}\n"},
        {"  - maxpool: {kernel: 3, stride: 2, pad: 1}\n", "  - maxpool: {kernel: 2, stride: 2}\n"},
        {"  - lrn: {size: 3}\n", "  - lrn: {size: 5}\n"},
        {"  - relu: {name: a}\n  - relu: {name: b}\n  - add: {input: [a, b]}\n",
         "  - relu: {name: a}\n  - relu: {name: b}\n  - add: {input: [b, input]}\n"},
    };
    for (size_t i = 0; i < sizeof pairs / sizeof *pairs; i++) {
        assert_true(identity_of(pairs[i][0]) == identity_of(pairs[i][0]));
        assert_true(identity_of(pairs[i][0]) != identity_of(pairs[i][1]));
    }
}

/* Whatever the length of names and numbers: every row has the length of the heading, and ends its
 * columns where that does. Running statistics are no parameters. */
static void test_print_in_columns(void **state) {
    (void)state;
    char *text = NULL;
    size_t size = 0;
    FILE *out = open_memstream(&text, &size);
    bpt_model *m = must_parse(
        "name: t\ninput: [100000, 2, 3]\nclasses: 7\nlayers:\n"
        "  - global_avgpool: {name: a-name-of-thirty-one-characters}\n"
        "  - batchnorm: {name: b}\n"
        "  - fc: {outputs: classes}\n");
    assert_int_equal(bpt_model_parameters(m), 2 * 100000 + 700007);
    assert_int_equal(bpt_model_running_statistics(m), 2 * 100000);
    bpt_model_print(m, out);
    fclose(out);
    const size_t width = strcspn(text, "\n");
    const size_t end = (size_t)(strstr(text, "parameters") - text) + sizeof "parameters" - 1;
    const char *line = text;
    for (int i = 0; i < 6; i++, line += width + 1) {
        assert_int_equal(strcspn(line, "\n"), width);
        assert_true(line[end - 1] != ' ' && line[end] == ' ' && line[end + 1] == ' ');
    }
    assert_string_equal(line,
                        "and 200000 running statistics, which are not learned: no parameters\n");
    free(text);
    bpt_model_free(m);
}

/* ---- layers that are computed together ---- */

/* @param expected a letter a layer: r does the ReLU behind it too, a the add, b both; d is done by
 * another; - neither */
static void check_fusions(const char *layers, const char *expected) {
    char text[1024], found[64] = "";
    bpt_model *m;
    snprintf(text, sizeof text,
             "{name: t, input: [3, 8, 8], classes: 4, layers: [%s, fc: {outputs: classes}]}",
             layers);
    assert_int_equal(bpt_model_parse("t.yaml", text, strlen(text), NULL, &m), BPT_OK);
    for (size_t i = 0; i < m->n_layers; i++) {
        const bpt_fusion *f = &m->layers[i].fusion;
        found[i] = f->done ? 'd' : f->add ? (f->relu ? 'b' : 'a') : f->relu ? 'r' : '-';
    }
    assert_string_equal(found, expected);
    bpt_model_free(m);
}

static void test_fusions(void **state) {
    (void)state;
    check_fusions("batchnorm, relu", "rd-");
    check_fusions("relu, batchnorm", "---");
    check_fusions("conv: {filters: 5, kernel: 1}, relu, maxpool: {kernel: 2}, relu", "rd---");
    check_fusions("conv: {filters: 3, kernel: 1}, add: {input: [conv1, input]}, relu", "----");
    check_fusions("batchnorm, relu, relu", "rd--");
    /* both readers want what is before the ReLU */
    check_fusions("batchnorm: {name: b}, relu: {name: r}, add: {input: [b, r]}", "----");
    /* the second of the two is the last to come */
    check_fusions(
        "batchnorm: {name: b}, batchnorm: {name: c, input: input}, "
        "add: {input: [b, c]}, relu",
        "-bdd-");
    check_fusions("batchnorm: {name: b}, batchnorm: {name: c, input: input}, add: {input: [c, b]}",
                  "-ad-");
    /* the other input comes later and cannot add */
    check_fusions(
        "batchnorm: {name: b}, maxpool: {name: m, input: input, kernel: 1}, "
        "add: {input: [b, m]}, relu",
        "-----");
    check_fusions("batchnorm: {name: b}, add: {input: [b, input, input]}, relu", "----");
    check_fusions("batchnorm: {name: b}, add: {input: [b, b]}", "---");
}

/* ---- errors ---- */

static void test_errors_of_the_head(void **state) {
    (void)state;
    check_error("", "t.yaml:1: name is missing",
                "a model has the keys name, input, classes and layers");
    check_error("name: t\nsize: 3", "t.yaml:2: a model has no field \"size\"",
                "known here: name, input, classes, layers");
    check_error("name: {\n", "t.yaml:2: did not find expected node content",
                "docs/models.md has the format: all keys, kinds of layers, fields and limits");
    check_error("- 1", "t.yaml:1: a model must be a map (name: value)", NULL);
    check_error("name: t\ninputs: [1, 2, 3]", "t.yaml:2: a model has no field \"inputs\"",
                "did you mean \"input\"?");
    check_error("name: t\ninput: [1, 2]\n",
                "t.yaml:2: input must be a list [channels, height, width]", NULL);
    check_error("name: t\ninput: [1, 0, 2]\n", "t.yaml:2: input is 0, outside of 1 to 1073741824",
                NULL);
    check_error("name: t\ninput: [1024, 1048576, 2]\nclasses: 2",
                "t.yaml: the input 1024x1048576x2 is empty or larger than 1073741824 values", NULL);
    check_error("name: t\ninput: [1073741824, 1073741824, 16]\nclasses: 2", /* 2^64 */
                "t.yaml: the input 1073741824x1073741824x16 is empty or larger than 1073741824 "
                "values",
                NULL);
    check_error("name: t\ninput: [1, 2, 3]\n", "t.yaml:1: classes is missing", NULL);
    check_error("name: t\ninput: [1, 2, 3]\nclasses: 2", "t.yaml:1: layers is missing", NULL);
    check_error("name: t\ninput: [1, 2, 3]\nclasses: 2\nlayers: []",
                "t.yaml:4: layers must be a list of at least one layer", NULL);
    check_error("name: [t]\ninput: [1, 2, 3]\nclasses: 2\nlayers: []",
                "t.yaml:1: name must be one word or text", NULL);
}

#define KINDS                                                                                      \
    "the kinds are add, avgpool, batchnorm, concat, conv, dropout, fc, global_avgpool, lrn, "      \
    "maxpool, pad_channels, relu"

static void test_errors_of_layers(void **state) {
    (void)state;
    check_error(HEAD "  - relu\n  - maxpol: {kernel: 2}\n",
                "t.yaml:6: there is no kind of layer \"maxpol\"",
                "did you mean \"maxpool\"? " KINDS);
    check_error(
        HEAD "  - softmax\n", "t.yaml:5: there is no kind of layer \"softmax\"",
        "leave it out: it is behind the last layer, with the loss, and not written down; " KINDS);
    check_error(HEAD "  - Linear: {outputs: 3}\n", "t.yaml:5: there is no kind of layer \"Linear\"",
                "a fully connected layer is called fc; " KINDS);
    check_error(HEAD "  - transformer\n", "t.yaml:5: there is no kind of layer \"transformer\"",
                KINDS);
    check_error(HEAD "  - {relu: {}, fc: {}}\n",
                "t.yaml:5: a layer is a kind, or one kind with its fields: \"- relu\", \"- "
                "maxpool: {kernel: 2}\"",
                NULL);
    check_error(HEAD "  - conv: {filtres: 3, kernel: 3}\n",
                "t.yaml:5: layer conv1 has no field \"filtres\"", "did you mean \"filters\"?");
    check_error(HEAD "  - conv\n", "t.yaml:5: layer conv1: filters is missing",
                "filters takes a whole number or the word classes, e.g. \"- conv: {filters: 16}\"");
    check_error(
        HEAD "  - conv: {name: a, filters: 2}\n", "t.yaml:5: layer a: kernel is missing",
        "kernel takes a whole number or a list [rows, columns], e.g. \"- conv: {kernel: 3}\"");
    check_error(HEAD "  - relu: {slope: 3}\n", "t.yaml:5: layer relu1 has no field \"slope\"",
                "known here: name, input");
    check_error(HEAD "  - relu: {input: [input, input]}\n",
                "t.yaml:5: layer relu1: relu takes one input, not 2",
                "join them in a layer before it: add (values) or concat (channels)");
    check_error(HEAD "  - relu: 3\n", "t.yaml:5: layer relu1 must be a map (name: value)", NULL);
    check_error(HEAD "  - conv: {filters: many, kernel: 3}\n",
                "t.yaml:5: layer conv1: filters must be a whole number",
                "filters takes a whole number or the word classes");
    check_error(HEAD "  - conv: {filters: 0, kernel: 3}\n",
                "t.yaml:5: layer conv1: filters is 0, outside of 1 to 1048576", NULL);
    check_error(HEAD "  - conv: {filters: 2, kernel: [1, 2, 3]}\n",
                "t.yaml:5: layer conv1: kernel must be a whole number or a list [rows, columns]",
                NULL);
    check_error(HEAD "  - conv: {filters: 2, kernel: 3, stride: 0}\n",
                "t.yaml:5: layer conv1: stride is 0, outside of 1 to 1024", NULL);
    check_error(HEAD "  - conv: {filters: 2, kernel: 3, bias: maybe}\n",
                "t.yaml:5: layer conv1: bias must be true or false", NULL);
    check_error(HEAD "  - maxpool: {kernel: 3,\n     pad: 2}\n",
                "t.yaml:6: layer maxpool1: pad 2x2 is more than half of its kernel 3x3", NULL);
}

static void test_too_many_layers(void **state) {
    (void)state;
    enum { N = 1025 };
    static const char head[] = HEAD, line[] = "  - relu\n";
    char *text = malloc(sizeof head + N * sizeof line), *at = text;
    assert_non_null(text);
    at += sprintf(at, "%s", head);
    for (int i = 0; i < N; i++) at += sprintf(at, "%s", line);
    check_error(text, "t.yaml:5: 1025 layers, more than 1024", NULL);
    free(text);
}

static void test_errors_of_names(void **state) {
    (void)state;
    check_error(HEAD "  - relu: {name: a}\n  - relu: {name: a}\n",
                "t.yaml:6: layer a: line 5 has a layer of this name already", NULL);
    check_error(HEAD "  - relu: {name: relu2}\n  - relu\n",
                "t.yaml:6: layer relu2: line 5 has a layer of this name already", NULL);
    check_error(HEAD "  - relu: {name: a.b}\n",
                "t.yaml:5: layer name \"a.b\": letters, digits, - and _ are allowed, 31 of them at "
                "most",
                NULL);
    check_error(HEAD "  - relu: {name: ''}\n",
                "t.yaml:5: layer name \"\": letters, digits, - and _ are allowed, 31 of them at "
                "most",
                NULL);
    check_error(HEAD "  - relu: {name: a1234567890123456789012345678901}\n",
                "t.yaml:5: layer name \"a1234567890123456789012345678901\": letters, digits, - and "
                "_ are allowed, 31 of them at most",
                NULL);
    static const char *const taken[] = {"input", "loss", "border", "gradients"};
    for (size_t i = 0; i < sizeof taken / sizeof *taken; i++) {
        char text[128], message[128];
        snprintf(text, sizeof text, HEAD "  - relu: {name: %s}\n", taken[i]);
        snprintf(message, sizeof message,
                 "t.yaml:5: a layer cannot be called %s: that is the model's", taken[i]);
        check_error(text, message, NULL);
    }
}

static void test_errors_of_shapes(void **state) {
    (void)state;
    check_error(HEAD "  - maxpool: {kernel: 4}\n  - conv: {filters: 4, kernel: 5, pad: 1}\n",
                "t.yaml:6: layer conv1: the input 3x2x2, padded by 1x1, is smaller than its "
                "kernel 5x5",
                "the input of the model is 3x9x11");
    check_error(HEAD "  - conv: {filters: 4, kernel: 1, groups: 3}\n",
                "t.yaml:5: layer conv1: 3 input channels and 4 filters do not divide in 3 groups",
                NULL);
    check_error(HEAD "  - conv: {filters: 4, kernel: 1, groups: 2}\n",
                "t.yaml:5: layer conv1: 3 input channels and 4 filters do not divide in 2 groups",
                NULL);
    check_error(HEAD "  - relu\n",
                "t.yaml:5: layer relu1: the last layer gives 3x9x11, not 7x1x1: one value for each "
                "class",
                "end the model with \"- fc: {outputs: classes}\"");
    check_error(HEAD "  - conv: {filters: classes, kernel: [8, 11]}\n",
                "t.yaml:5: layer conv1: the last layer gives 7x2x1, not 7x1x1: one value for each "
                "class",
                NULL);
    check_error(HEAD "  - conv: {filters: classes, kernel: [9, 10]}\n",
                "t.yaml:5: layer conv1: the last layer gives 7x1x2, not 7x1x1: one value for each "
                "class",
                NULL);
    check_error(HEAD "  - fc: {outputs: 1048576}\n  - fc: {outputs: 1048576}\n",
                "t.yaml:6: layer fc2: with fc2.weight the model has more than 1073741824 weights",
                NULL);
    check_error(HEAD "  - conv: {filters: 1048576, kernel: 1, pad: 1000}\n",
                "t.yaml:5: layer conv1: the output 1048576x2009x2011 is larger than 1073741824 "
                "values",
                NULL);
}

/* Classes from pixels, with nothing in between that could learn. */
static void test_without_weights(void **state) {
    (void)state;
    check_error(
        "name: t\ninput: [7, 2, 2]\nclasses: 7\nlayers:\n  - relu\n"
        "  - maxpool: {kernel: 2}\n",
        "t.yaml: there is nothing to train: no layer has weights", NULL);
}

/* Every allocation may fail, and nothing is left behind. */
static void test_out_of_memory(void **state) {
    (void)state;
    const uint64_t before = bpt_memory_live();
    bpt_status status = BPT_ENOMEM;
    int64_t n = 0;
    for (; status != BPT_OK && n < 10000; n++) {
        bpt_model *m = NULL;
        bpt_memory_fail_at(n);
        status = bpt_model_load("lenet", NULL, &m);
        bpt_memory_fail_at(-1);
        if (status != BPT_OK) assert_int_equal(status, BPT_ENOMEM);
        bpt_model_free(m);
        assert_int_equal(bpt_memory_live(), before);
    }
    assert_int_equal(status, BPT_OK);
    assert_true(n > 50);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_lenet),
        cmocka_unit_test(test_lenet_with_another_input),
        cmocka_unit_test(test_vgg_small),
        cmocka_unit_test(test_unknown_name_lists_the_known),
        cmocka_unit_test(test_load_by_path),
        cmocka_unit_test(test_fields),
        cmocka_unit_test(test_override_keeps_zeros),
        cmocka_unit_test(test_print),
        cmocka_unit_test(test_print_in_columns),
        cmocka_unit_test(test_identify),
        cmocka_unit_test(test_identify_settings),
        cmocka_unit_test(test_fusions),
        cmocka_unit_test(test_errors_of_the_head),
        cmocka_unit_test(test_errors_of_layers),
        cmocka_unit_test(test_too_many_layers),
        cmocka_unit_test(test_errors_of_names),
        cmocka_unit_test(test_errors_of_shapes),
        cmocka_unit_test(test_without_weights),
        cmocka_unit_test(test_out_of_memory),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
